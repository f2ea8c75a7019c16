"""B5: the rows of a MEMORY.md, and merging two versions of one for git."""

import contextlib
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kept.errors import InvalidInput
from kept.exchange import memory_md as page
from kept.exchange.memory_md_merge import MAX_PROSE, merge

BASE = "# Memory\n\nOur notes.\n\n## Key Decisions\n"
BASE += "- API uses Fastify ^ka1\n- Node is version 20 ^ka2\n- Tests use pytest ^ka3\n"


def merged(ours: str, theirs: str) -> str:
    return merge(BASE, ours, theirs)[0]


@given(st.text(alphabet=st.sampled_from("-*# ^k1a\n\r\t`~<!->x\u2028"), max_size=200) | st.text(max_size=100))
def test_any_file_is_its_rows(text: str) -> None:
    assert "".join(row.raw for row in page.parse(text)) == text
    rows = page.parse(text)
    page.find_edits({"1": "x"}, rows)
    page.find_edits(None, rows)


@given(st.text(alphabet=st.sampled_from("-*# ^k1a\n\t`~<!->x"), max_size=200))
def test_a_file_without_edits_is_woven_as_it_is(text: str) -> None:
    rows = page.parse(text)
    edits = page.find_edits(page.snapshot(rows), rows)
    lines = [
        page.PageLine(mark=mark, text=rows[n].text or "", section=rows[n].section or "Project Context")
        for n, mark in edits.marks.items()
    ]
    assert page.weave(rows, edits.marks, lines, leave=range(len(rows))) == text


def test_a_bullet_that_an_editor_wrapped_is_one_entry() -> None:
    rows = page.parse("## Key Decisions\n- API uses Fastify,\n  not Express ^k1\n  - a detail\n")
    assert [row.text for row in rows if row.is_entry] == ["API uses Fastify, not Express"]


def test_git_merges_keep_what_both_sides_did() -> None:
    ours = BASE.replace("version 20", "version 22").replace("- Tests use pytest ^ka3\n", "")
    theirs = BASE.replace("Fastify", "Fastify 5") + "- Lint with ruff ^kb1\n"
    for one, other in ((ours, theirs), (theirs, ours)):
        text, clashes = merge(BASE, one, other)
        assert not clashes
        assert {row.text for row in page.parse(text) if row.is_entry} == {
            "API uses Fastify 5",
            "Node is version 22",
            "Lint with ruff",
        }


def test_where_both_sides_changed_a_line_both_stay() -> None:
    text, clashes = merge(BASE, BASE.replace("20", "22"), BASE.replace("20", "24"))
    assert "- Node is version 22 ^ka2\n- Node is version 24\n" in text
    assert clashes == ["^ka2 was changed on both sides"]
    text, clashes = merge(BASE, BASE.replace("- Node is version 20 ^ka2\n", ""), BASE.replace("20", "24"))
    assert "Node is version 24" in text
    assert len(clashes) == 1


def test_prose_of_both_sides_is_merged() -> None:
    ours = BASE.replace("Our notes.", "Our notes.\nRead them.")
    theirs = BASE.replace("# Memory\n", "# Memory of the team\n") + "\n## Mine\nwords\n"
    text = merged(ours, theirs)
    for line in ("# Memory of the team\n", "Our notes.\nRead them.\n", "## Mine\nwords\n"):
        assert line in text
    assert "# Memory\n" not in text


def test_git_merges_lines_below_headings_of_ones_own_in_their_place() -> None:
    base = f"{BASE}\n## Ops\n\nThe rules.\n\n- Deploys run on Fridays ^kc1\n\n## Other\nwords\n"
    ours = base.replace("Fridays", "Tuesdays")
    theirs = base.replace("^kc1\n", "^kc1\n- Never deploy at night\n") + "\n## New\n- Ask before a release\n"
    text, clashes = merge(base, ours, theirs)
    assert not clashes
    assert "## Ops\n\nThe rules.\n\n- Deploys run on Tuesdays ^kc1\n- Never deploy at night\n" in text
    assert text.endswith("## Other\nwords\n\n## New\n- Ask before a release\n")
    assert text.count("## New") == text.count("## Ops") == 1


@given(st.lists(st.sampled_from(range(6))))
def test_a_merge_with_an_unchanged_side_is_the_other_side(order: list[int]) -> None:
    lines = BASE.split("\n")
    other = "\n".join(lines[:5] + [f"- line {n}" for n in order] + lines[5:])
    assert merge(BASE, other, BASE)[0] == other
    texts = [row.text for row in page.parse(merged(BASE, other)) if row.is_entry]
    assert set(texts) == {row.text for row in page.parse(other) if row.is_entry}


# Files that a stranger made

HOSTILE = {
    "nested bullets": lambda n: "".join(" " * depth + "- x y of use\n" for depth in range(n // 20)),
    "indented to death": lambda n: "- a b\n" + " " * n + "\x0b\n",
    "spaces in a heading": lambda n: "# x" + " #" * (n // 2) + "x\n",
    "hashes in a heading": lambda n: "# x" + "# \t" * (n // 3) + "x\n",
    "spaces before no mark": lambda n: "- a b" + " " * n + "^K\n",
    "marks in a row": lambda n: "- a" + " ^k1" * (n // 4) + "!\n",
    "one entry of many lines": lambda n: "## Warnings\n- a b\n" + "  c\n" * (n // 4),
    "one statement of many lines": lambda n: "- a b\n" + "  c d\n" * (n // 6),
    "brackets": lambda n: "- " + "[" * n + "\n",
    "fences": lambda n: "```\n" * (n // 4),
    "prose below a heading": lambda n: "## Warnings\n" + "words\n" * (n // 6),
    "headings": lambda n: "".join(f"## {number}\n" for number in range(n // 8)),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_file_of_a_stranger_is_read_and_woven_in_linear_time(name: str) -> None:
    text = HOSTILE[name](60_000)
    entries = [
        page.PageLine(mark=f"m{number}", text=f"memory {number}", section=section)
        for section in ("Warnings", "Key Decisions")
        for number in range(100)
    ]
    start = time.perf_counter()
    rows = page.parse(text)
    edits = page.find_edits({"1": "x"}, rows)
    page.weave(rows, edits.marks, page.choose(rows, entries, 1_000_000), leave=edits.added)
    assert time.perf_counter() - start < 5
    assert "".join(row.raw for row in rows) == text


@pytest.mark.parametrize("name", HOSTILE)
def test_git_merges_files_of_a_stranger_in_bounded_time(name: str) -> None:
    base, ours, theirs = (HOSTILE[name](size) for size in (20_000, 21_000, 22_000))
    start = time.perf_counter()
    with contextlib.suppress(InvalidInput):
        merge(base, ours, theirs.replace("x", "z"))
    page_of = "# M\n## Key Decisions\n" + "".join(f"- {{0}} item {number} is of use\n" for number in range(3000))
    assert merge(*(page_of.format(side) for side in "abc"))[0].count("\n") == 6002
    assert time.perf_counter() - start < 10


def test_git_merges_long_prose_if_little_of_it_changed_and_says_so_otherwise() -> None:
    lines = [f"line {number}\n" for number in range(3 * MAX_PROSE)]
    ours, theirs = ["ours\n", *lines], [*lines, "theirs\n"]
    assert merge("".join(lines), "".join(ours), "".join(theirs)) == ("".join(["ours\n", *lines, "theirs\n"]), [])
    with pytest.raises(InvalidInput, match="differ between the versions"):
        merge("".join(lines), "".join(ours), "other\n" + "".join(reversed(lines)))
