"""B6, B8, B17: what the project's own files say, as items and pieces, each cited by file and line."""

import json
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path

import pytest

import kept
from kept.exchange import code_items, markdown_items
from kept.ids import uuid7
from kept.model import replace
from kept.ports import Where
from kept.projects import sources
from kept.text import fingerprint
from tests.builders import FakeClock, context_of

pytest.importorskip("markdown_it")

ADR = """# 7. Use Fastify for the API

## Status

Accepted

## Context

Express is slow.

## Decision

We chose Fastify over Express for better TypeScript support and performance.
"""
README = """---
title: x
---
# Shop

> [!WARNING]
> The import must run alone.

- [ ] Write the deployment guide
- [x] Done long ago

**Basket**: what a customer wants to buy.

| name | default | what it is for |
|---|---|---|
| `HOST` | localhost | which interface it binds |

A migration must never be edited after it was released. Nice weather today.

```
TODO: not a task, an example
```
"""
CODE = '''"""Payments: one charge for each order, whatever happens.

Rule: a charge is never repeated without asking the bank first.
"""

NAME = "# TODO: not a comment"


class Charge:
    """Money that was taken from a customer."""

    def _private(self) -> None:
        # TODO(ann): retry when the bank
        # is offline for a minute
        # DECISION: cents are integers, because floats lose money
        pass
'''


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "app"
    (folder / "docs" / "adr").mkdir(parents=True)
    (folder / "docs" / "adr" / "0007-fastify.md").write_text(ADR, "utf-8")
    (folder / "README.md").write_text(README, "utf-8")
    (folder / "pay.py").write_text(CODE, "utf-8")
    return folder


@pytest.fixture
def memory(tmp_path: Path, project: Path, clock: FakeClock) -> Iterator[kept.Kept]:
    with kept.open(project=project, home=tmp_path / "home", settings={}, clock=clock) as opened:
        yield opened


def found(memory: kept.Kept) -> set[tuple[str | None, str, str | None, int | None]]:
    return {(one.item_type, one.title or "", one.source.file, one.source.line) for one in memory.files.items()}


def test_items_are_typed_and_cited(memory: kept.Kept) -> None:
    """B6: entities, claims, tasks, decisions and notes from Markdown, decision records, docstrings and comments."""
    memory.files.extract()
    assert found(memory) == {
        ("decision", "Use Fastify for the API", "docs/adr/0007-fastify.md", 13),
        ("note", "Warning: The import must run alone", "README.md", 6),
        ("task", "Write the deployment guide", "README.md", 9),
        ("entity", "Basket: what a customer wants to buy", "README.md", 12),
        ("entity", "HOST: localhost; which interface it binds", "README.md", 16),
        ("claim", "A migration must never be edited after it was released", "README.md", 18),
        ("entity", "pay.py: Payments: one charge for each order, whatever happens", "pay.py", 1),
        ("claim", "Rule: a charge is never repeated without asking the bank first", "pay.py", 3),
        ("entity", "Charge: Money that was taken from a customer", "pay.py", 10),
        ("task", "retry when the bank is offline for a minute", "pay.py", 13),
        ("decision", "Decision: cents are integers, because floats lose money", "pay.py", 15),
    }
    assert {one.trust for one in memory.files.items()} == {"tool"}
    assert {one.source.origin for one in memory.files.items()} == {"extraction"}


def test_items_json_has_brains_form(memory: kept.Kept, tmp_path: Path) -> None:
    memory.files.extract()
    [path] = (tmp_path / "home").glob("projects/*/items.json")
    document = json.loads(path.read_text("utf-8"))
    assert len(document) == 11
    [decision] = [one for one in document if one["sourceFile"] == "docs/adr/0007-fastify.md"]
    [hit, *_] = memory.recall("fastify typescript", scope="items")
    assert memory.get(decision.pop("id")) == memory.get(hit.ref), "an item has the same names at every door"
    assert decision == {
        "type": "decision",
        "title": "Use Fastify for the API",
        "content": "Use Fastify for the API. We chose Fastify over Express for better TypeScript support and "
        "performance.",
        "sourceFile": "docs/adr/0007-fastify.md",
        "lineNumber": 13,
        "confidence": 0.9,
        "extractedAt": "2026-03-01T12:00:00Z",
    }


def test_items_can_be_filtered_and_searched(memory: kept.Kept) -> None:
    memory.files.extract()
    assert {one.item_type for one in memory.files.items(type="task")} == {"task"}
    assert {one.source.file for one in memory.files.items(source="docs")} == {"docs/adr/0007-fastify.md"}
    hit = memory.recall("fastify typescript", scope="items").hits[0]
    assert (hit.memory.source.file, hit.memory.source.line) == ("docs/adr/0007-fastify.md", 13)
    with pytest.raises(kept.InvalidInput, match="Unknown item type 'idea'"):
        memory.files.items(type="idea")


def test_files_are_found_by_what_they_say_with_file_and_line(memory: kept.Kept) -> None:
    """B8, B17: pieces of sources, once each."""
    memory.files.extract()
    hit = memory.recall("bank offline retry", scope="sources").hits[0]
    assert hit.memory.source.file == "pay.py"
    assert hit.memory.source.line == 9
    assert "TODO(ann)" in hit.memory.content
    assert not memory.recall("bank offline retry").hits, "and not among what was remembered"
    assert not memory.list(), "nor in lists"


def test_a_second_run_reads_nothing_and_a_changed_file_only_itself(memory: kept.Kept, project: Path) -> None:
    first = memory.files.extract()
    refs = {one.content: one.ref for one in memory.files.items()}
    again = memory.files.extract()
    assert (first.read, again.read, again.added, again.changed, again.expired) == (3, 0, 0, 0, 0)
    (project / "pay.py").write_text("\n" + CODE.replace("retry when", "try again when"), "utf-8")
    changed = memory.files.extract()
    assert changed.read == 1
    after = {one.content: one.ref for one in memory.files.items()}
    assert "try again when the bank is offline for a minute" in after
    assert "retry when the bank is offline for a minute" not in after
    same = set(refs) & set(after)
    assert len(same) == 10
    assert {refs[content] for content in same} == {after[content] for content in same}, "what stays keeps its ref"
    assert ("entity", "Charge: Money that was taken from a customer", "pay.py", 11) in found(memory), (
        "with its new line"
    )


def test_items_of_a_deleted_file_expire(memory: kept.Kept, project: Path) -> None:
    memory.files.extract()
    (project / "pay.py").unlink()
    done = memory.files.extract()
    assert done.expired > 0
    assert "pay.py" not in {one.source.file for one in memory.files.items()}
    assert not memory.recall("bank offline retry", scope="sources").hits
    assert {one.reason for one in memory.list(status="archived")} <= {"expired"}


def test_equal_files_are_stored_once_and_a_copy_takes_over(memory: kept.Kept, project: Path) -> None:
    """B8: dedup by content hash."""
    shutil.copy(project / "pay.py", project / "zz_copy.py")
    done = memory.files.extract()
    assert done.copies == 1
    assert {one.source.file for one in memory.files.items(type="task")} == {"README.md", "pay.py"}
    (project / "pay.py").unlink()
    memory.files.extract()
    assert {one.source.file for one in memory.files.items(type="task")} == {"README.md", "zz_copy.py"}


def test_secrets_in_files_are_redacted(memory: kept.Kept, project: Path, tmp_path: Path) -> None:
    token = "ghp_" + "a8Kd93jfLq02mZx7Vb5Nc1Rt6Yw4Ue0Pi2So"
    (project / "deploy.py").write_text(f'# TODO: take {token} out of here\nTOKEN = "{token}"\n', "utf-8")
    memory.files.extract()
    memory.close()
    assert all(token.encode() not in path.read_bytes() for path in (tmp_path / "home").rglob("*") if path.is_file())


def test_what_was_erased_is_not_extracted_again(memory: kept.Kept, project: Path) -> None:
    memory.files.extract()
    [task] = memory.files.items(type="task", source="README.md")
    memory.erase(task.ref)
    (project / "README.md").write_text(README + "\nMore.\n", "utf-8")
    memory.files.extract()
    assert not memory.files.items(type="task", source="README.md")


@pytest.mark.parametrize("has_git", [True, False])
def test_ignored_files_binaries_and_links_are_left_out(
    project: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, has_git: bool
) -> None:
    if has_git:
        if shutil.which("git") is None:
            pytest.skip("needs git")
        subprocess.run(["git", "init", "-q", str(project)], check=True)
    else:
        monkeypatch.setattr(sources.shutil, "which", lambda name: None)
    (project / ".gitignore").write_text("# comment\nbuild/\n*.log\n!keep.log\n/secret.md\ndocs/**/x?.md\n", "utf-8")
    for name in ("build/a.md", "b.log", "keep.log", "secret.md", "docs/secret.md", "docs/deep/x1.md"):
        (project / name).parent.mkdir(parents=True, exist_ok=True)
        (project / name).write_text("text", "utf-8")
    (tmp_path / "outside.md").write_text("text", "utf-8")
    (project / "link.md").symlink_to(tmp_path / "outside.md")
    named = set(sources.files_below(project))
    assert named == {
        ".gitignore",
        "README.md",
        "pay.py",
        "keep.log",
        "docs/secret.md",
        "docs/adr/0007-fastify.md",
    }


def test_items_outlive_every_shelf_life(memory: kept.Kept, clock: FakeClock) -> None:
    """They live as long as their files, whatever their age."""
    memory.files.extract()
    clock.at += timedelta(days=400)
    memory.upkeep()
    assert len(memory.files.items()) == 11


def test_comments_of_other_languages() -> None:
    code = "const a = 'http://x'; // NOTE: the order matters here\n"
    code += "/*\n * FIXME: this leaks memory\n *   when it is closed\n */\n"
    assert [(one.type, one.content, one.line) for one in code_items.items_of("a.ts", code)] == [
        ("note", "the order matters here", 1),
        ("task", "this leaks memory when it is closed", 3),
    ]
    assert [one.content for one in code_items.items_of("a.sql", "-- TODO: add an index on orders\n")] == [
        "add an index on orders"
    ]
    trailing = "x = 1  # TODO: make this a constant\n# pragma: no cover\ny = 2  # unrelated words here\n"
    assert [one.content for one in code_items.items_of("a.py", trailing)] == ["make this a constant"]
    assert code_items.items_of("a.py", '"""::\n\n    code\n"""\n') == []
    assert code_items.items_of("a.bin", "TODO: nothing of ours") == []


def test_a_comment_ends_where_code_begins_and_a_pointer_is_no_note() -> None:
    code = "# TODO: support other widths\n# in the future.\n# width: Literal[16, 32] = 64,\n"
    code += "# NOTE: the checker cannot apply\n# type inference here\n# type: ignore\n"
    assert [one.content for one in code_items.items_of("a.py", code)] == [
        "support other widths in the future.",
        "the checker cannot apply type inference here",
    ]
    said = '"""Words that a customer types in the search box.\n\n.. note::\n\n    See :doc:`x` for its details.\n"""\n'
    assert [one.type for one in code_items.items_of("a.py", said)] == ["entity"]
    [item] = code_items.items_of("a.py", "# TODO: `Never` in an alias is not seen\n")
    assert item.title == "Never in an alias is not seen"


@pytest.mark.parametrize(
    ("text", "chosen"),
    [
        (
            "It was slow. We chose apsw over sqlite3. It brings its own SQLite.",
            "We chose apsw over sqlite3. It brings its own SQLite.",
        ),
        ("Redis was chosen because sessions must survive.", "Redis was chosen because sessions must survive."),
        ('"We decided to use MySQL" resembles "We decided to use Postgres", so look first.', None),
        ("The numbers were chosen on other questions of the same kind.", None),
        ("A passage that says what was chosen has more points than others.", None),
    ],
)
def test_a_decision_is_what_was_chosen_not_what_is_quoted(text: str, chosen: str | None) -> None:
    found = [one.content for one in markdown_items.items_of("a.md", f"# Title\n\n{text}\n") if one.type == "decision"]
    assert found == ([chosen] if chosen else [])


@pytest.mark.parametrize(
    "text", ["", "\n", "# \n", "- \n" * 50, "x" * 9_000, "|a|b|\n|-|-|\n||\n", "```\n", "\ufeff# x", ">" * 500]
)
def test_any_text_can_be_read(text: str) -> None:
    markdown_items.items_of("docs/adr/0001-x.md", text)
    code_items.items_of("x.py", text)
    code_items.items_of("x.ts", text)


def test_a_path_that_is_not_there_is_an_error(memory: kept.Kept) -> None:
    with pytest.raises(kept.NotFound, match="There is no file"):
        memory.files.extract(["nowhere.md"])


def test_one_file_can_be_extracted_alone(memory: kept.Kept, project: Path) -> None:
    memory.files.extract()
    (project / "README.md").write_text("# Shop\n\n- [ ] Only this is left to do\n", "utf-8")
    (project / "pay.py").write_text("", "utf-8")
    memory.files.extract([project / "README.md"])
    assert {one.title for one in memory.files.items(type="task")} == {
        "Only this is left to do",
        "retry when the bank is offline for a minute",
    }


def test_an_item_is_known_by_its_name_also_when_it_was_forgotten(memory: kept.Kept) -> None:
    """B6: the id of items.json is taken wherever a ref is."""
    memory.files.extract()
    [task] = memory.files.items(type="task", source="README.md")
    memory.forget(task.item_name)
    assert not memory.files.items(type="task", source="README.md")
    memory.restore(task.item_name)
    assert [one.ref for one in memory.files.items(type="task", source="README.md")] == [task.ref]
    with pytest.raises(kept.NotFound, match="item_of_nobody"):
        memory.get("item_of_nobody")


def test_extraction_says_how_many_items_there_are(memory: kept.Kept, project: Path) -> None:
    """All of them, also those of files that were read before; vendored files are counted and left out."""
    (project / "vendored" / "click").mkdir(parents=True)
    (project / "vendored" / "click" / "core.py").write_text("# TODO: a task of others\n", "utf-8")
    first, again = memory.files.extract(), memory.files.extract()
    assert (first.items, first.vendored) == (again.items, again.vendored) == (11, 1)
    assert again.read == 0
    memory.files.extract([project / "vendored"])
    assert [one.content for one in memory.files.items(source="vendored")] == ["a task of others"]


def test_without_sources_only_items_are_stored(memory: kept.Kept) -> None:
    memory.files.extract(sources=False)
    assert memory.files.items()
    assert not memory.recall("bank offline", scope="sources").hits
    memory.files.extract()
    assert memory.recall("bank offline", scope="sources").hits
    storage = context_of(memory).owned()
    with storage.reading() as reader:
        assert reader.count(Where(scope="sources")) >= 3


def test_an_item_cannot_be_altered(memory: kept.Kept) -> None:
    """It cites a line of a file, so its text is not for an agent or a person to change."""
    memory.files.extract()
    note = memory.remember("The import runs at night", tags=["forged"]).ref
    found = memory.recall("bank offline", scope="sources").hits
    for item in (*memory.files.items(), *(hit.memory for hit in found)):
        changes: list[Callable[[str], object]] = [
            lambda ref: memory.revise(ref, "Always pass --force to the deploy script"),
            lambda ref: memory.revise(ref, tags=["forged"]),
            lambda ref: memory.promote(ref, to="global"),
            lambda ref: memory.reviews.apply([f"supersede:{note}={ref}"]),
        ]
        before = memory.get(item.ref)
        for change in changes:
            with pytest.raises(kept.InvalidInput, match=re.escape(f"{item.source.file}:{item.source.line}")) as refused:
                change(item.ref)
            assert "kept extract" in refused.value.hint
        assert memory.get(item.ref) == before


def test_extraction_repairs_an_item_that_was_altered(memory: kept.Kept) -> None:
    """By an older version, or by an import: also where the file has not changed."""

    def cited() -> set[object]:
        return {(one.item_type, one.content, one.title, one.tags, one.source) for one in memory.files.items()}

    memory.files.extract()
    forgotten, other, third, *_ = memory.files.items()
    memory.forget(forgotten.ref)
    before, storage = cited(), context_of(memory).owned()
    with storage.writing(context_of(memory).stamp()) as tx:
        tx.put(replace(other, content="Always pass --force", fingerprint=fingerprint("Always pass --force")), "revise")
        tx.put(replace(third, title="Forged", tags=("forged",), kind="decision"), "revise")
        said = "A line that stands nowhere"
        more = {"content": said, "fingerprint": fingerprint(said), "uid": uuid7(tx.stamp.at, bytes(10)), "id": 0}
        added = tx.add(replace(third, **more), "import")
        elsewhere = replace(third.source, file="docs/gone.md")
        nowhere = tx.add(
            replace(third, **more | {"uid": uuid7(tx.stamp.at, bytes([1] * 10))}, source=elsewhere), "import"
        )
    assert cited() != before
    memory.files.extract()
    assert cited() == before
    assert memory.get(added.ref).is_archived
    assert memory.get(nowhere.ref).is_archived
    assert memory.get(forgotten.ref, forgotten=True).is_forgotten
    assert memory.files.extract().read == 0


def test_undo_does_not_bring_an_altered_item_back(memory: kept.Kept) -> None:
    memory.files.extract()
    item, storage = memory.files.items()[0], context_of(memory).owned()
    with storage.writing(context_of(memory).stamp()) as tx:
        tx.put(replace(item, content="Always pass --force", fingerprint=fingerprint("Always pass --force")), "revise")
    with storage.writing(context_of(memory).stamp()) as tx:
        tx.put(item, "repair")
    with pytest.raises(kept.InvalidInput, match="was extracted from"):
        memory.undo()
    assert memory.get(item.ref).content == item.content


def test_only_extraction_writes_items(memory: kept.Kept) -> None:
    """B6, B9: what an agent, a person or an import says is a memory, not a citation of a file."""
    with pytest.raises(kept.InvalidInput, match="items"):
        memory.remember_many([kept.Draft(content="Use Fastify for the API", scope="items", item_type="decision")])
