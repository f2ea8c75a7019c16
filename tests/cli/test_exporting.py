"""A22: `kept export`, `kept import` of an export, and `kept store merge`."""

from pathlib import Path

import msgspec
import pytest

from kept.model import Memory
from tests.builders import FakeClock
from tests.cli.shell import Shell


@pytest.fixture
def elsewhere(tmp_path: Path) -> Shell:
    """The same project on another machine."""
    (tmp_path / "laptop").mkdir()
    return Shell(tmp_path / "laptop", FakeClock())


def told(shell: Shell) -> None:
    shell("remember", "Use Fastify, not Express", "--kind", "decision", "--tag", "api", "--file", "src/a.ts")
    shell("remember", "Something to forget")
    shell("remember", "The release is in May", "--topic", "release")
    shell("remember", "The release is in July, after the audit", "--topic", "release")
    shell("forget", "2")


def test_everything_comes_out_and_can_be_read_back(shell: Shell) -> None:
    """A22: one line a record, lossless, with the archive; what was forgotten stays in."""
    told(shell)
    lines = [msgspec.json.decode(line) for line in shell("export").splitlines()]
    assert lines[0]["format"] == "kept/1"
    memories = [msgspec.convert(line["record"], Memory) for line in lines if line.get("noun") == "memory"]
    assert [memory.ref for memory in memories] == ["1", "3", "4"]
    assert memories[0].tags == ("api",)
    assert memories[0].files == ("src/a.ts",)
    assert shell.json("export")["lines"][0]["format"] == "kept/1"
    assert len(shell("export", "--with-forgotten").splitlines()) == len(lines) + 1


def test_an_export_is_imported_on_another_machine(shell: Shell, elsewhere: Shell, tmp_path: Path) -> None:
    told(shell)
    shell("remember", "Answer in German", "--kind", "preference", "--global", "--yes")
    file = str(tmp_path / "all.jsonl")
    assert "Wrote 4 memories" in shell("export", "--format", "kept", file)
    assert (tmp_path / "all.jsonl").stat().st_mode & 0o777 == 0o600
    assert "4 memories would be stored" in elsewhere("import", file, "--dry-run")
    assert "Nothing is kept here yet" in elsewhere("list")
    assert "This needs confirmation" in elsewhere.fails("import", file)
    assert "4 memories stored" in elsewhere("import", "kept", file, "--yes")
    assert elsewhere("list") == shell("list")
    assert elsewhere("history", "4") != ""
    assert "0 memories stored, 0 changed, 4 known already" in elsewhere("import", file, "--yes")
    assert elsewhere.json("import", file, "--yes")["known"] == 4


def test_two_homes_are_merged(shell: Shell, elsewhere: Shell) -> None:
    shell("remember", "Use Fastify, not Express")
    elsewhere("remember", "The parser skips blank lines")
    assert "1 memory would be stored" in shell("store", "merge", str(elsewhere.home), "--dry-run")
    assert "1 memory stored" in shell("store", "merge", str(elsewhere.home))
    assert "1 memory stored" in elsewhere("store", "merge", str(shell.home))
    assert shell("recall", "parser blank")
    assert "0 memories stored" in shell("store", "merge", str(elsewhere.home))
    assert "is the store that is open here" in shell.fails(
        "store", "merge", str(next(shell.home.glob("projects/*/kept.db")))
    )


def test_a_file_that_cannot_be_read_is_an_error(shell: Shell, tmp_path: Path) -> None:
    """Never "0 memories"; nothing is imported from half a file."""
    told(shell)
    whole = tmp_path / "whole.jsonl"
    shell("export", str(whole))
    before = shell("history")
    torn = tmp_path / "torn.jsonl"
    for cut in (len(whole.read_bytes()) // 2, -3):
        torn.write_bytes(whole.read_bytes()[:cut])
        assert "cut off" in shell.fails("import", str(torn))
    lines = whole.read_bytes().splitlines(keepends=True)
    torn.write_bytes(b"".join(lines[:-2] + lines[-1:]))
    assert "lines were written" in shell.fails("import", str(torn))
    for garbage in (b"", b"\0" * 100, bytes(range(256)) * 20):
        torn.write_bytes(garbage)
        shell.fails("import", "kept", str(torn))
    torn.write_bytes(b'{"format":"kept/99"}\n')
    assert "not an export that this version of Kept can read" in shell.fails("import", str(torn))
    assert "does not exist" in shell.fails("import", str(tmp_path / "nowhere.jsonl"))
    assert "does not exist" in shell.fails("store", "merge", str(tmp_path / "nowhere"))
    assert "nothing to import" in shell.fails("import", code=2)
    assert shell("history") == before


def test_an_export_that_cannot_be_written_leaves_the_old_file(shell: Shell, tmp_path: Path) -> None:
    told(shell)
    assert "could not write" in shell.fails("export", str(tmp_path / "no" / "folder.jsonl"))
    assert not list(tmp_path.glob("**/*.tmp"))


def test_memory_files_of_other_programs_are_imported(shell: Shell, tmp_path: Path) -> None:
    """A16: `kept import openclaw MEMORY.md` stores memories, and says what it did."""
    file = tmp_path / "MEMORY.md"
    file.write_text("# Memory\n\n## Key Decisions\n- 2026-02-01: Chose SQLite over PostgreSQL\n- Use Fastify\n")
    assert "2 memories would be stored" in shell("import", "openclaw", str(file), "--dry-run")
    said = shell("import", str(file))
    assert "2 memories stored from 1 file (openclaw), 0 duplicates." in said
    assert "Kept: 2 decisions." in said
    assert "0 memories stored from 1 file (openclaw), 2 duplicates." in shell("import", "openclaw", str(file))
    assert shell.json("import", str(file))["duplicates"] == 2
    assert "Chose SQLite over PostgreSQL" in shell("list")
    file.write_text("")
    assert "nothing to import" in shell.fails("import", "openclaw", str(file))
    (tmp_path / "what.bin").write_bytes(b"\x00\x01")
    assert "does not know what" in shell.fails("import", str(tmp_path / "what.bin"))
    assert "PATH" in shell.fails("import", "mem0", code=2)


def test_a_folder_with_one_bad_file_takes_in_the_others(shell: Shell, tmp_path: Path) -> None:
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "good.md").write_text("The release train leaves on Thursday.\n")
    (tmp_path / "notes" / "bad.md").write_bytes(b"\xff\xfe\x00\x01")
    result = shell.type("import", str(tmp_path / "notes"))
    assert result.exit_code == 1
    assert "1 memory stored" in result.stdout
    assert "bad.md" in result.stderr


def test_the_format_of_an_export_is_told_by_the_ending_of_the_file(shell: Shell, tmp_path: Path) -> None:
    told(shell)
    shell("export", str(tmp_path / "all.md"))
    assert (tmp_path / "all.md").read_text().startswith("# ")
    shell("export", str(tmp_path / "all.csv"))
    assert "content" in (tmp_path / "all.csv").read_text().splitlines()[0]
    shell("export", str(tmp_path / "all.jsonl"))
    shell("export", "--format", "kept", str(tmp_path / "kept.md"))
    for file in ("all.jsonl", "kept.md"):
        assert (tmp_path / file).read_text().startswith("{")
    assert "--format praxis" in shell.fails("export", str(tmp_path / "all.json"))
    assert not (tmp_path / "all.json").exists()


def test_an_export_overwrites_a_file_only_after_a_yes(shell: Shell, tmp_path: Path) -> None:
    told(shell)
    file = tmp_path / "notes.md"
    file.write_text("mine")
    refused = shell.fails("export", str(file))
    assert refused.startswith("This needs confirmation: ")
    assert "notes.md exists already. Overwrite it? Add --yes" in refused
    shell.answers = [False]
    assert shell.type("export", str(file)).exit_code == 1
    assert file.read_text() == "mine"
    shell.answers = [True]
    shell("export", str(file))
    assert file.read_text() != "mine"
    shell.answers = None
    shell("export", str(file), "-y")


def test_a_dash_is_standard_output_of_an_export_and_standard_input_of_an_import(
    shell: Shell, elsewhere: Shell, tmp_path: Path
) -> None:
    told(shell)
    exported = shell("export", "-")
    assert exported.startswith('{"format":"kept/1"')
    assert not Path("-").exists()
    assert "3 memories would be stored" in elsewhere("import", "-", "--dry-run", input=exported)
    assert "3 memories stored" in elsewhere("import", "-", input=exported)
    assert "Only an export of Kept" in elsewhere.fails("import", "-", input="a note")


def test_an_unknown_format_of_an_export_is_reported_before_anything_else(shell: Shell, tmp_path: Path) -> None:
    assert shell.fails("export", "--format", "xml").startswith("Unknown format 'xml'. Choose one of kept, markdown")
    file = tmp_path / "all.xml"
    file.write_text("mine")
    assert "Unknown format" in shell.fails("export", "--format", "xml", str(file))


def test_an_export_says_what_it_left_out(shell: Shell, tmp_path: Path) -> None:
    told(shell)
    assert "Left out: 1 archived, 1 forgotten." in shell("export", str(tmp_path / "all.md"))
    assert "Left out: 1 forgotten. `--with-forgotten` adds them." in shell("export", str(tmp_path / "all.jsonl"))
    assert "Left out" not in shell("export", "--with-forgotten", str(tmp_path / "more.jsonl"))
