"""In a person's hands: names that are mistyped, the environment, several memories at once."""

from pathlib import Path

import pytest

import kept
from tests.cli.shell import Shell


def test_a_mistyped_kind_is_asked_about(shell: Shell) -> None:
    assert "There is no kind 'decison'. Did you mean decision?" in shell.fails("remember", "One", "--kind", "decison")
    assert "(decison)" in shell("remember", "One", "--kind", "decison", "--yes")
    assert "(decison)" in shell("remember", "Two", "--kind", "decison"), "it is in use now"
    assert "(runbook)" in shell("remember", "Three", "--kind", "runbook"), "a kind of one's own is nothing unusual"
    assert "(error)" in shell("remember", "Four", "--kind", "failure")
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


def test_an_unknown_variable_is_a_note_in_status(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    done = shell.run("status", KEPT_PROFIL="koshi")
    assert done.returncode == 0
    assert b"Note: KEPT_PROFIL is not a variable of Kept. Did you mean KEPT_PROFILE?" in done.stdout
    assert shell.run("list", KEPT_NONSENSE="1").returncode == 0


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
    assert "is changed: text, kind." in shell("edit", "1", "--text", "The port is 4000", "--kind", "decision")
    shown = shell.json("edit", "1", "--importance", "0.2", "--file", "a.py", "--tag", "web")
    assert (shown["importance"], shown["files"], shown["tags"]) == (0.2, ["a.py"], ["web"])
    assert "Did you mean decision?" in shell.fails("edit", "1", "--kind", "decisoin")
    pages: list[str] = []

    def edit(page: str, extension: str) -> str | None:
        pages.append(page)
        return page.replace("The port is 4000", "The port is 5000\nfor the API").replace("tags: web", "tags: web, api")

    monkeypatch.setattr("click.edit", edit)
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
