"""In a person's hands: names that are mistyped, the environment, several memories at once."""

import sys
from pathlib import Path

import click
import pytest

import kept
from kept.distribution import install_line
from kept.entrypoints.cli.invocation import CommandLine, Dim, Marked, Strong, _pick_at_terminal, keys_of, wrapped
from kept.entrypoints.cli.wording import marked_parts
from tests.cli.shell import Shell


def test_a_mistyped_kind_is_asked_about(shell: Shell) -> None:
    assert "There is no kind 'decison'. Did you mean decision?" in shell.fails("remember", "One", "--kind", "decison")
    assert "(decison)" in shell("remember", "One", "--kind", "decison", "--yes")
    assert "(decison)" in shell("remember", "Two", "--kind", "decison"), "it is in use now"
    assert "(runbook)" in shell("remember", "Three", "--kind", "runbook"), "a kind of one's own is nothing unusual"
    assert "(error)" in shell("remember", "Four", "--kind", "failure")
    assert "No memory matches. Did you mean --kind warning?" in shell("list", "--kind", "waning")
    assert "Did you mean --kind warning?" in shell("recall", "four", "--kind", "waning")
    shell.answers = [False]
    assert shell.type("remember", "Five", "--kind", "waning").exit_code == 1
    assert shell.questions == ["There is no kind 'waning'. Did you mean warning? Use 'waning' anyway?"]


def test_a_mistyped_project_is_asked_about(shell: Shell) -> None:
    shell("remember", "One", "--project", "web-app")
    assert "Did you mean web-app?" in shell.fails("remember", "Two", "--project", "web-ap")
    assert "Did you mean web-app?" in shell.fails("list", "--project", "wep-app")
    assert "Kept" in shell("remember", "Two", "--project", "billing")
    assert {project["name"] for project in shell.json("projects", "list")["projects"]} == {"web-app", "billing"}


def test_the_environment_names_project_role_agent_and_session(shell: Shell) -> None:
    def run(*words: str, **environment: str) -> str:
        done = shell.run(*words, **environment)
        assert done.returncode == 0, done.stderr
        return done.stdout.decode()

    run("remember", "The cache is cold", KEPT_PROJECT="web", KEPT_AGENT="codex", KEPT_SESSION="s-1")
    shown = run("show", "1", "--json", KEPT_PROJECT="web")
    assert '"agent": "codex"' in shown
    assert '"session": "s-1"' in shown
    assert '"origin": "agent"' in shown
    assert "acting as admin" in run("status", KEPT_ROLE="admin")
    assert "acting as project" in run("status", "--as", "project", KEPT_ROLE="admin")
    refused = shell.run("status", KEPT_ROLE="king")
    assert refused.returncode == 1
    assert b"KEPT_ROLE must be one of" in refused.stderr


@pytest.mark.parametrize("command", [["status"], ["status", "--json"], ["list"], ["doctor"], ["config", "show"]])
def test_an_unknown_variable_is_ignored_without_a_word(shell: Shell, command: list[str]) -> None:
    """Other programs have variables with that prefix, and a hook must print nothing about them."""
    plain = shell.run(*command)
    told = shell.run(*command, KEPT_PROFIL="koshi", KEPT_API_KEY="hunter2", KEPT_NONSENSE="1")
    assert told.returncode == plain.returncode
    for said in (told.stdout, told.stderr):
        assert not [name for name in (b"KEPT_PROFIL", b"KEPT_API_KEY", b"KEPT_NONSENSE", b"hunter2") if name in said]


def test_settings_are_written_without_an_extra() -> None:
    lines = (Path(__file__).parents[2] / "pyproject.toml").read_text().split("[project.optional-dependencies]")[0]
    assert '"tomlkit' in lines


def test_the_library_offers_what_people_try(tmp_path: Path) -> None:
    assert isinstance(kept.__version__, str)
    with kept.open(tmp_path / "m.db") as memory:
        memory.remember("Never edit the auth middleware directly")
        (hit,) = memory.recall("auth middleware")
        assert hit.content == "Never edit the auth middleware directly"
        session = memory.session("s1")
        said = session.extend([{"role": "system", "content": "You are terse"}, {"role": "user", "content": "Hello"}])
        assert [(one.role, one.trust) for one in said] == [("system", "agent"), ("user", "user")]
        for wrong in ({"role": "king", "content": "x"}, {"content": "x"}, {"role": "user", "text": "x"}):
            with pytest.raises(kept.InvalidInput):
                session.extend([wrong])
        with pytest.raises(kept.InvalidInput, match="must be a string"):
            session.extend([{"role": "user", "content": ["a"]}])


def test_several_memories_are_changed_at_once_and_undone_together(shell: Shell) -> None:
    for number in range(1, 5):
        shell("remember", f"Fact number {number}", "--tag", "old" if number < 4 else "new")
    assert shell("forget", "1", "2", "1").count("is forgotten") == 2
    assert "Fact number 1" not in shell("list")
    shell("undo")
    assert shell("list").count("Fact number") == 4
    assert shell("pin", "1", "4").count("is pinned") == 2
    assert len(shell.json("unpin", "1", "4")["memories"]) == 2
    assert "There is no memory 99" in shell.fails("forget", "3", "99")
    assert "Fact number 3" in shell("list"), "all of them, or none"


def test_filters_show_what_they_choose_and_ask(shell: Shell) -> None:
    for number in range(1, 15):
        shell("remember", f"Fact number {number}", "--tag", "old", "--kind", "discovery")
    shell.clock.advance(days=3)
    shell("remember", "Fact of today", "--kind", "discovery")
    refused = shell.fails("forget", "--tag", "old")
    assert "Forget 14 memories?" in refused
    shell.answers = [True]
    result = shell.type("forget", "--kind", "discovery", "--before", "2026-03-02")
    assert "… and 4 more." in result.stderr
    assert shell.questions == ["Forget 14 memories?"]
    assert "Fact of today" in shell("list")
    shell.answers = None
    assert shell("restore", "--tag", "old", "--yes").count("is back") == 14
    assert "No memory passes the filters." in shell.fails("pin", "--tag", "nothing")
    assert "Erase 14 memories for good?" in shell.fails("erase", "--tag", "old")
    shell("erase", "--tag", "old", "--yes")
    assert shell("list").count("Fact number") == 0
    assert "refs, or filters" in shell.fails("forget", code=2)
    assert "refs, or filters" in shell.fails("forget", "15", "--kind", "fact", code=2)


def test_a_memory_is_edited_by_options_and_in_an_editor(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    shell("remember", "The port is 3000", "--tag", "net")
    assert "is changed: text, kind." in shell("edit", "1", "The port is 4000", "--kind", "decision")
    shown = shell.json("edit", "1", "--importance", "0.2", "--file", "a.py", "--tag", "web")
    assert (shown["importance"], shown["files"], shown["tags"]) == (0.2, ["a.py"], ["web"])
    assert "Did you mean decision?" in shell.fails("edit", "1", "--kind", "decisoin")
    pages: list[str] = []

    def edit(page: str, extension: str) -> str | None:
        pages.append(page)
        return page.replace("The port is 4000", "The port is 5000\nfor the API").replace("tags: web", "tags: web, api")

    monkeypatch.setattr("click.edit", edit)
    assert "Give TEXT, or run it in a terminal." in shell.fails("edit", "1")
    shell.answers = []
    assert "is changed: text, tags." in shell("edit", "1")
    assert "kind: decision" in pages[0]
    assert shell.json("show", "1")["content"] == "The port is 5000\nfor the API"
    monkeypatch.setattr("click.edit", lambda page, extension: page)
    assert "stays as it was" in shell("edit", "1")
    monkeypatch.setattr("click.edit", lambda page, extension: None)
    assert "stays as it was" in shell("edit", "1")
    monkeypatch.setattr("click.edit", lambda page, extension: "gone")
    assert "The line ---" in shell.fails("edit", "1")
    shell("undo")
    assert shell.json("show", "1")["content"] == "The port is 4000"


def test_lines_are_broken_at_words_on_a_terminal() -> None:
    words = "The quick brown fox jumps over the lazy dog and then some more words follow until it is long"
    for width in (20, 60, 120):
        lines = wrapped((Strong("[id:1]"), " fact: ", words), width)
        plain = ["".join(line) for line in lines]
        assert all(len(line.rstrip()) <= width for line in plain)
        assert " ".join(" ".join(plain).split()) == f"[id:1] fact: {words}"
        assert isinstance(lines[0][0], Strong)
        assert all(line.startswith("    ") for line in plain[1:])
    assert wrapped(("    " + words,), 0) == [("    " + words,)], "what a program reads stays as it is"
    barred = ["".join(line) for line in wrapped(("    │ " + words,), 40)]
    assert all(line.startswith("    │ ") for line in barred), "the text that an agent was given keeps its bar"
    long = "x" * 100
    assert "".join("".join(line).strip() for line in wrapped((long,), 20)) == long


def test_a_command_between_backticks_stays_on_one_row() -> None:
    """A line break inside it would make two commands of it when it is copied."""
    line = "Memories stay in /home/ann/.local/share/kept now. (`kept uninstall --data`) deletes them."
    for width in (40, 60, 70):
        assert any("(`kept uninstall --data`)" in "".join(parts) for parts in wrapped((line,), width))
    narrow = ["".join(parts) for parts in wrapped(("Run `kept uninstall --data`",), 12)]
    assert narrow == ["Run", "`kept uninstall --data`"], "the terminal wraps it, and copies it whole"


def test_a_path_a_url_and_a_command_have_no_line_break_that_would_be_copied() -> None:
    path, url = "/home/ann/.local/share/kept/projects/shop-7626406c/kept.db", "https://example.org/" + "a" * 80
    line = ("The previous store was kept as ", Strong(path), ". See ", url, ".")
    assert ["".join(parts) for parts in wrapped(line, 40)] == [
        "The previous store was kept as",
        f"{path}.",
        "See",
        f"{url}.",
    ]
    command = CommandLine("kept review --apply keep:55 --apply keep:70 --apply keep:71")
    assert ["".join(parts) for parts in wrapped(("This does it: ", command), 40)] == ["This does it:", command]


@pytest.mark.parametrize("width", [20, 30, 60, 80])
def test_a_marked_word_changes_no_line_break(width: int) -> None:
    text = "Noted. The mailer in src/mail/send.py uses the zebrafish queue, データベースの移行は毎週火曜日です"
    for marks in (["mail"], ["ベース"], ["queue", "send"], ["e"]):
        marked = wrapped(("    ", *marked_parts(text, marks)), width)
        assert ["".join(row) for row in marked] == ["".join(row) for row in wrapped(("    ", text), width)]
        assert any(isinstance(part, Marked) for row in marked for part in row)


def test_a_review_reaches_what_was_imported_from_a_file_of_unknown_trust(shell: Shell, tmp_path: Path) -> None:
    (tmp_path / "CLAUDE.md").write_text("# Conventions\n- Use tabs in Makefiles, spaces elsewhere.\n")
    assert "`kept review` goes through candidates" in shell("import", "agents-md", str(tmp_path / "CLAUDE.md"))
    assert shell.json("show", "1")["trust"] == "unknown"
    assert "candidate: it was imported, and nobody has confirmed it yet" in shell("review", "--list")
    shell("review", "--apply", "keep:1")
    assert shell.json("show", "1")["status"] == "confirmed"


def test_every_option_of_a_review_has_a_key_of_its_own() -> None:
    options = ["supersede", "the-other", "keep", "archive", "forget", "later", "edit", "undo", "quit", "help"]
    keys = keys_of(options)
    assert list(keys.values()) == options
    assert all(len(key) == 1 for key in keys)
    assert keys["s"] == "supersede"


def test_the_key_of_a_memory_is_a_letter_that_nobody_takes_for_a_ref() -> None:
    refs = [f"id:{number}" for number in range(1, 51)]
    keys = keys_of(["none", "id:1", "id:23", "id:g3", *refs[4:]])
    assert [*keys][:4] == ["n", "a", "b", "c"]
    assert all(len(key) == 1 and key.isalpha() for key in keys)
    assert len(keys) == 50, "each has a key of its own"


def test_a_digit_at_the_question_which_memory_is_meant_picks_none(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    typed = iter(["2", "3", "b"])
    monkeypatch.setattr("click.getchar", lambda: next(typed))
    assert _pick_at_terminal("Which one do you mean?", ["none", "id:1", "id:23"]) == "id:23"
    assert "[n] none  [a] id:1  [b] id:23" in capsys.readouterr().err


def test_a_review_is_walked_through_with_single_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    typed = iter(["?", "K", "\r", "\x1b"])
    monkeypatch.setattr("click.getchar", lambda: next(typed))
    assert _pick_at_terminal("1 of 3", ["archive", "keep"]) == "keep"
    assert _pick_at_terminal("2 of 3", ["archive", "keep"]) == "archive"
    with pytest.raises(click.Abort):
        _pick_at_terminal("3 of 3", ["archive", "keep"])


def test_a_key_and_what_it_does_stand_in_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("click.getchar", lambda: "b")
    options = [
        "replace 15 by 16",
        "or 16 by 15",
        "both stay",
        "archive 15",
        "forget 15",
        "later",
        "edit",
        "quit",
        "help",
    ]
    assert _pick_at_terminal("2 of 17", options) == "both stay"
    shown = capsys.readouterr().err
    lines = [line for line in shown.split("\n") if line]
    assert len(lines) > 1
    assert all(sum(f"[{key}] {option}" in line for line in lines) == 1 for key, option in keys_of(options).items())


@pytest.mark.parametrize("width", ["40", "60", "78", "120"])
def test_the_answer_of_enter_is_not_broken_and_the_answer_has_room(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], width: str
) -> None:
    monkeypatch.setattr("click.getchar", lambda: "\r")
    monkeypatch.setattr("kept.entrypoints.cli.invocation._width", lambda stream: int(width))
    _pick_at_terminal("1 of 2", ["promote", "keep", "archive", "forget", "later", "edit", "quit", "help"])
    rows = capsys.readouterr().err.rstrip("\n").split("\n")
    assert rows[-1].endswith("(Enter: promote) promote")
    assert max(map(len, rows)) <= int(width)


def test_a_review_proposes_to_confirm_candidates(shell: Shell, tmp_path: Path) -> None:
    (tmp_path / "MEMORY.md").write_text("## Key Decisions\n- The API uses Fastify\n")
    shell("import", str(tmp_path / "MEMORY.md"))
    said = shell("review", "--list")
    assert "candidate: it was imported, and nobody has confirmed it yet" in said
    shell("edit", "1", "--tag", "api")
    assert shell.json("show", "1")["status"] == "confirmed", "who corrects a memory vouches for it"
    shell("undo")
    shell("review", "--reason", "candidate", "--apply", "proposed", "--yes")
    assert shell.json("show", "1")["status"] == "confirmed"
    assert "nothing to review" in shell("review", "--list")


def test_a_pinned_hit_is_shown_once_and_no_pin_goes_without_a_word(shell: Shell) -> None:
    for number in range(7):
        shell("remember", f"Pinned fact {number} about the auth module", "--pin")
    said = shell("recall", "auth module", "--limit", "3")
    for number in range(7):
        assert said.count(f"Pinned fact {number} ") <= 1
    assert "2 more pinned. `kept list --status pinned` shows all." in said


def test_completion_offers_kinds_tags_refs_and_sessions(shell: Shell) -> None:
    shell("remember", "Use Fastify", "--kind", "runbook", "--tag", "web")
    completions = {
        ("remember x --kind ru", 4): b"runbook",
        ("remember x --kind deci", 4): b"decision",
        ("list --tag w", 3): b"web",
        ("forget ", 2): b"1",
    }
    for (words, place), expected in completions.items():
        done = shell.run(COMP_WORDS=f"kept {words}", COMP_CWORD=str(place), _KEPT_COMPLETE="bash_complete")
        assert expected in done.stdout, (words, done.stdout, done.stderr)
    broken = shell.run(COMP_WORDS="kept forget ", COMP_CWORD="2", _KEPT_COMPLETE="bash_complete", KEPT_HOME="relative")
    assert broken.stdout.strip() == b""
    assert b"Traceback" not in broken.stderr


def test_a_long_session_is_shown_from_its_end(shell: Shell, tmp_path: Path) -> None:
    lines = [f'{{"id": "m{n}", "role": "user", "content": "word {n}"}}' for n in range(9)]
    (tmp_path / "s1.jsonl").write_text("\n".join(lines) + "\n")
    shell("import", "brain", str(tmp_path / "s1.jsonl"))
    said = shell("session", "show", "s1", "--limit", "2")
    assert "word 8" in said
    assert "word 6" not in said


@pytest.mark.parametrize("command", [["init"], ["migrate"], ["status"], ["grant", "ann"]])
def test_without_the_driver_every_command_for_a_database_names_what_to_install(
    shell: Shell, monkeypatch: pytest.MonkeyPatch, command: list[str]
) -> None:
    for name in [name for name in sys.modules if name.startswith("kept.storage.postgres")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "psycopg", None)
    assert install_line("postgres") in shell.fails("store", "database", *command, "postgresql://ann@127.0.0.1:1/kept")


def test_a_path_that_is_not_there_is_said_to_be_missing(shell: Shell) -> None:
    for arguments in (["CLAUDE.md"], ["agents-md", "CLAUDE.md"], ["praxis", "nowhere/web"]):
        assert " does not exist. Give a file or a folder to import." in shell.fails("import", *arguments)


def test_no_wrapped_line_ends_in_a_space() -> None:
    """Faint text keeps its style codes behind a space, so a line as wide as the terminal would wrap once more."""
    line = Dim("`kept review` goes through candidates; `kept undo` takes the import back.")
    lines = wrapped((line,), 60)
    assert ["".join(parts) for parts in lines] == [
        "`kept review` goes through candidates; `kept undo` takes the",
        "import back.",
    ]
    assert all(isinstance(part, Dim) for parts in lines for part in parts if part.strip())
