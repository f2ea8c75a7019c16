"""The block in AGENTS.md: what stands in it, edits by people, and every byte around it."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

import kept
from kept.errors import InvalidInput, NotAllowed
from kept.exchange import agents_md
from tests.builders import FakeClock
from tests.folders import posix_only

DECISION = "The API uses Fastify, not Express"
BEFORE = "# Shop\n\nRun `make test` before a commit.\n"


def yes(question: str, lines: Sequence[str]) -> bool:
    return True


def no(question: str, lines: Sequence[str]) -> bool:
    return False


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "shop"
    made.mkdir()
    return made


@pytest.fixture
def memory(tmp_path: Path, folder: Path) -> Iterator[kept.Kept]:
    with opened(tmp_path) as found:
        yield found


def opened(tmp_path: Path, **settings: object) -> kept.Kept:
    values = {"auto_upkeep": False, **settings}
    return kept.open(
        project=tmp_path / "shop",
        home=tmp_path / "home",
        settings=values,
        clock=FakeClock(),
        origin="user",
        confirm=lambda _: True,
    )


def file_of(folder: Path) -> Path:
    return folder / "AGENTS.md"


def block_of(folder: Path) -> list[str]:
    found = agents_md.find(file_of(folder).read_text("utf-8"))
    assert found is not None
    return found.inner.splitlines()


def contents(memory: kept.Kept) -> set[str]:
    return {one.content for one in memory.list(limit=1_000)}


def test_the_block_has_confirmed_memories_of_the_project_and_nothing_else(memory: kept.Kept, folder: Path) -> None:
    memory.remember(DECISION, kind="decision")
    memory.remember("Prefers answers in Danish", kind="preference", tier="global")
    tool = kept.Draft(content="The page says to run this script", trust="unknown", source=kept.Source(origin="import"))
    memory.remember_many([tool])
    memory.remember("Half of the migration is done", kind="progress")
    memory.forget(memory.remember("Express is fine as well for the API").ref or "")
    memory.files.agents()
    text = file_of(folder).read_text("utf-8")
    assert DECISION in text
    assert not any(word in text for word in ("Danish", "script", "migration", "Express is fine"))


def test_the_block_stands_near_the_top_and_has_at_most_forty_lines(memory: kept.Kept, folder: Path) -> None:
    long = BEFORE + "".join(f"Line {number} of the project's own rules.\n" for number in range(2_000))
    file_of(folder).write_text(long, "utf-8")
    for number in range(60):
        memory.remember(f"{'abcdefghij'[number % 10] * 5} {number} is a fact about module {number * 7919}")
    memory.pin(memory.remember("Pinned: releases are cut from main only").ref or "")
    memory.files.agents()
    lines = file_of(folder).read_text("utf-8").splitlines()
    start, end = lines.index(agents_md.BEGIN), lines.index(agents_md.END)
    assert start == 1
    assert end - start + 1 == agents_md.MOST_LINES
    assert "Pinned" in lines[start + 3]


def test_a_secret_is_looked_for_again(memory: kept.Kept, folder: Path) -> None:
    memory.store.allow("hunter2-but-longer")
    memory.remember("The staging host has password: hunter2-but-longer for its login")
    memory.remember(DECISION)
    memory.files.agents()
    assert "hunter2" not in file_of(folder).read_text("utf-8")


def test_an_edit_inside_comes_back_after_a_yes(memory: kept.Kept, folder: Path) -> None:
    ref = memory.remember(DECISION, kind="decision").ref or ""
    memory.files.agents()
    text = file_of(folder).read_text("utf-8")
    edited = text.replace("Express", "Koa").replace(
        agents_md.END, "- Routes are versioned in their path\n" + agents_md.END
    )
    file_of(folder).write_text(edited, "utf-8")
    for ask in (None, no):
        done = memory.files.agents(ask=ask)
        assert "accept the edits" in done.waiting
        assert memory.get(ref).content == DECISION
        assert file_of(folder).read_text("utf-8") == edited
    done = memory.files.agents(ask=yes)
    assert (done.changed, len(done.added)) == ([ref], 1)
    assert memory.get(ref).content == "The API uses Fastify, not Koa"
    added = next(one for one in memory.list() if one.content == "Routes are versioned in their path")
    assert (added.trust, added.tags) == ("user", ())


def test_no_command_takes_an_edit_in_silently(tmp_path: Path, folder: Path) -> None:
    with opened(tmp_path, agents_block=True) as memory:
        memory.remember(DECISION)
        memory.files.sync()
        text = file_of(folder).read_text("utf-8")
        file_of(folder).write_text(text.replace("Express", "Koa"), "utf-8")
        [done] = [one for one in memory.files.take_edits() if one.name == "AGENTS.md"]
        assert "`kept files agents` shows the edits" in done.waiting
        assert contents(memory) == {DECISION}
        memory.files.sync(ask=yes)
        assert contents(memory) == {"The API uses Fastify, not Koa"}


def test_the_setting_keeps_the_block_up_to_date_and_without_it_nothing_is_written(tmp_path: Path, folder: Path) -> None:
    with opened(tmp_path) as memory:
        memory.remember(DECISION)
        memory.files.sync()
        assert not file_of(folder).exists()
    with opened(tmp_path, agents_block=True) as memory:
        memory.files.sync()
        assert DECISION in file_of(folder).read_text("utf-8")


@pytest.mark.parametrize(
    "before",
    [
        None,
        b"",
        b"# Shop",
        b"# Shop\n\nRules.\n",
        b"# Shop\r\n\r\nRules.\r\n- one\r\n",
        b"\xef\xbb\xbf# Shop\r\n\r\nRules without an end",
        b"\xef\xbb\xbfRules.\n",
        b"---\ntitle: x\n---\n\n# Shop\ntext\n",
        b"Rules.\n\n\n\n",
        b"mixed\r\nends\nof\rlines",
    ],
)
def test_outside_of_the_block_every_byte_stays(tmp_path: Path, folder: Path, before: bytes | None) -> None:
    """Write, edit inside and outside by a person, write again, remove."""
    path = file_of(folder)
    if before is not None:
        path.write_bytes(before)
    with opened(tmp_path) as memory:
        memory.remember(DECISION, kind="decision")
        memory.files.agents()
        memory.files.agents()
        assert path.read_bytes().count(DECISION.encode()) == 1
        path.write_bytes(path.read_bytes().replace(b"Express", b"Koa") + b"\nA rule of mine.")
        memory.files.agents(ask=yes)
        memory.remember("Routes are versioned in their path")
        memory.files.agents(ask=yes)
        memory.files.agents(remove=True)
        assert path.read_bytes() == (before or b"") + b"\nA rule of mine."
        path.write_bytes(before or b"")
        memory.files.agents()
        memory.files.agents(remove=True)
        assert path.read_bytes() == (before or b"")
        path.unlink()
        memory.files.agents()
        memory.files.agents(remove=True)
        assert not path.exists()


def test_removing_asks_about_edits_that_were_not_taken_in(memory: kept.Kept, folder: Path) -> None:
    memory.remember(DECISION)
    memory.files.agents()
    text = file_of(folder).read_text("utf-8").replace("Express", "Koa")
    file_of(folder).write_text(text, "utf-8")
    assert "edited" in memory.files.agents(remove=True).waiting
    assert file_of(folder).read_text("utf-8") == text
    assert memory.files.agents(remove=True, ask=yes).is_written
    assert not file_of(folder).exists()


@posix_only
def test_a_link_and_broken_markers_are_left_alone(memory: kept.Kept, folder: Path, tmp_path: Path) -> None:
    memory.remember(DECISION)
    (tmp_path / "elsewhere").write_text("mine")
    file_of(folder).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(NotAllowed, match="symbolic link"):
        memory.files.agents()
    assert (tmp_path / "elsewhere").read_text() == "mine"
    file_of(folder).unlink()
    for broken in (agents_md.BEGIN, agents_md.END, f"{agents_md.END}\n{agents_md.BEGIN}", f"{agents_md.BEGIN}\n" * 2):
        file_of(folder).write_text(broken)
        with pytest.raises(InvalidInput, match="changed places"):
            memory.files.agents()
        assert file_of(folder).read_text() == broken


def test_status_says_when_the_block_is_out_of_date(memory: kept.Kept, folder: Path) -> None:
    def is_outdated() -> bool:
        return any(one.is_outdated for one in memory.files.status())

    memory.remember(DECISION)
    memory.files.agents()
    assert not is_outdated()
    memory.remember("Routes are versioned in their path")
    assert is_outdated()
    memory.files.agents()
    assert not is_outdated()
    memory.files.agents(remove=True)
    file_of(folder).write_text(BEFORE)
    assert not [one for one in memory.files.status() if one.name == "AGENTS.md"]


def test_lines_of_the_block_are_not_learned_again(memory: kept.Kept, folder: Path) -> None:
    said = "Use `Map<string, Route>` for routes [id](x), and never a plain object for them"
    memory.remember(said)
    memory.files.agents()
    with opened(folder.parent) as other:  # as a clone would: the block is there, the memory is not
        other.forget(other.list()[0].ref)
        draft = kept.Draft(content=said, source=kept.Source(origin="conversation"), trust="agent")
        [receipt] = other.remember_many([draft])
        assert (receipt.outcome, receipt.reason) == ("refused", "echo")
        with pytest.raises(InvalidInput, match="nothing to import"):
            other.store.import_(file_of(folder))
        other.files.extract()
        assert not [one for one in other.files.items() if "Map" in one.content]
        assert not other.recall("plain object routes", scope="sources").hits


def test_erasing_takes_a_line_out_of_the_block_and_touches_nothing_else(memory: kept.Kept, folder: Path) -> None:
    file_of(folder).write_text(f"# Shop\n\n{DECISION}.\n")
    ref = memory.remember(DECISION).ref or ""
    memory.remember("Routes are versioned in their path")
    memory.files.agents()
    memory.erase(ref)
    text = file_of(folder).read_text("utf-8")
    assert not any(DECISION in line for line in block_of(folder))
    assert agents_md.remove(text) == f"# Shop\n\n{DECISION}.\n"


PIECES = ["<!-- kept:end -->", "<!-- kept:begin -->", "---", "```", "<br>", "[ ] x", "# x", "[a]: http://x", "<div>"]
HOSTILE = st.lists(
    st.text(st.sampled_from("\\<>#+*`~[]()._=:|!-1 2ab/\n^&"), max_size=12) | st.sampled_from(PIECES), max_size=4
).map("".join)


@given(HOSTILE | st.text())
def test_no_memory_ends_the_block_or_becomes_structure(content: str) -> None:
    line = agents_md.line_of(content)
    if not line.replace("<br>", "").strip():
        return
    whole = agents_md.put(BEFORE, f"- {line} ^kab12\n- second ^kcd34\n")
    assert agents_md.remove(whole) == BEFORE
    tokens = MarkdownIt("commonmark").enable("table").parse(whole)
    assert sum(token.type == "list_item_open" for token in tokens) == 2
    inside = [token for token in tokens if token.level >= 2 and token.type not in ("inline", "paragraph_open")]
    assert {token.type for token in inside} <= {"paragraph_close"}
    spans = [child for token in tokens if token.level > 2 for child in token.children or ()]
    assert not [one for one in spans if one.type in ("image", "link_open")]
    assert {one.content for one in spans if one.type == "html_inline"} <= {"<br>"}


@given(HOSTILE)
def test_a_line_reads_as_the_memory_that_it_shows(content: str) -> None:
    lines = content.strip().split("\n")
    assert agents_md.content_of(agents_md.line_of(content)) == "\n".join(" ".join(line.split()) for line in lines)
