"""Installing merges, doing it again changes nothing, and uninstalling gives back every file byte for byte."""

import json
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from kept import errors
from kept.entrypoints import install
from kept.entrypoints.hook.agents import AGENTS as HOOK_FORMATS
from kept.entrypoints.install import agents as install_agents
from kept.entrypoints.install import codex
from kept.entrypoints.install.agents import AGENTS, MachineFacts, plugin_files
from kept.entrypoints.install.jsonc import value_at

FOREIGN_JSON = """\
{
  // mine
  "theme": "dark",
  "mcpServers": { "other": { "command": "other" } }, // inline
  "servers": {},
  "mcp": {"other": {"type": "local", "command": ["x"]}},
  "hooks": {
    "Stop": [ { "hooks": [ { "type": "command", "command": "mine.sh" } ] } ],
    "sessionStart": [ { "command": "mine.sh" } ],
  },
  "enabledPlugins": { "other@market": true }
}
"""
FOREIGN_TOML = """\
# my model
model = "gpt"   # keep

[mcp_servers.other]
command = "other"

[projects."/x"]
trust_level = "trusted"
"""
FOREIGN_YAML = """\
# my config
name: mine
extensions:
    developer:
        enabled: true   # keep
mcpServers:
- name: other
  command: other
models: []
"""
FOREIGN = {".json": FOREIGN_JSON, ".jsonc": FOREIGN_JSON, ".toml": FOREIGN_TOML, ".yaml": FOREIGN_YAML}


@pytest.fixture
def where(tmp_path: Path) -> MachineFacts:
    (tmp_path / "home").mkdir()
    (tmp_path / "project").mkdir()
    return MachineFacts(
        user_home=tmp_path / "home",
        project=tmp_path / "project",
        plugin=tmp_path / "kept" / "agents" / "claude-code",
        environ={},
        platform="linux",
        kept="/opt/kept/bin/kept",
        hook="/opt/kept/bin/kept-hook",
        version="0.2.0",
    )


@pytest.fixture
def book(tmp_path: Path) -> install.Ledger:
    return install.Ledger(tmp_path / "kept")


def tree(root: Path) -> dict[str, bytes | None]:
    return {
        str(path.relative_to(root)): path.read_bytes() if path.is_file() else None for path in sorted(root.rglob("*"))
    }


def put(name: str, where: MachineFacts, book: install.Ledger, scope: Any = "user") -> list[install.Change]:
    return install.apply(name, scope, install.plan(name, scope, where, book), book)


def take(name: str, where: MachineFacts, book: install.Ledger) -> None:
    install.remove(book.of([name]), where, book)


def shared_files(name: str, where: MachineFacts, scope: Any = "user") -> Iterator[Path]:
    """The files of an agent that others write to as well."""
    for path, edits in AGENTS[name].files(where, scope).items():
        if not any(type(edit).__name__ in ("WholeFile", "Trace") for edit in edits):
            yield path


def every_scope() -> list[Any]:
    return [pytest.param(name, scope, id=f"{name}-{scope}") for name, agent in AGENTS.items() for scope in agent.scopes]


@pytest.mark.parametrize(("name", "scope"), every_scope())
@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
@pytest.mark.parametrize("is_there", [True, False], ids=["foreign entries", "no files"])
def test_every_file_is_given_back_byte_for_byte(
    name: str, scope: Any, line_end: str, is_there: bool, where: MachineFacts, book: install.Ledger, tmp_path: Path
) -> None:
    if is_there:
        for path in shared_files(name, where, scope):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(FOREIGN[path.suffix].replace("\n", line_end).encode())
    before = tree(tmp_path)
    assert put(name, where, book, scope)
    installed = tree(tmp_path)
    assert installed != before
    assert not put(name, where, book, scope), "doing it again changes nothing"
    assert tree(tmp_path) == installed
    take(name, where, book)
    after = tree(tmp_path)
    after.pop("kept", None)
    assert after == before


AT_CALLS = ("action", "result", "subagent")


@pytest.mark.parametrize("name", ["claude-code", "codex", "gemini", "qwen", "copilot"])
def test_an_installation_from_before_tool_calls_gets_their_hooks_and_gives_them_back(
    name: str, where: MachineFacts, book: install.Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for path in shared_files(name, where):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(FOREIGN[path.suffix])
    before = tree(tmp_path)
    all_events = install_agents._events
    kinds = HOOK_FORMATS[name].events
    with monkeypatch.context() as old:
        older = lambda agent: tuple(event for event in all_events(agent) if kinds[event] not in AT_CALLS)  # noqa: E731
        old.setattr(install_agents, "_events", older)
        put(name, where, book)
    changed = put(name, where, book)
    [text] = [change.after or "" for change in changed]
    for event in all_events(name):
        assert text.count(f'"{event}"') >= 1
        assert text.count(f' {name} {event}"') == 1, "each event once"
    for (agent, event), matcher in install_agents.MATCHERS.items():
        if agent == name:
            groups = value_at(text, ("hooks", event))
            assert isinstance(groups, list)
            assert [group["matcher"] for group in groups] == [matcher]
    take(name, where, book)
    after = tree(tmp_path)
    after.pop("kept", None)
    assert after == before


@pytest.mark.parametrize("name", AGENTS)
def test_what_others_wrote_since_stays(name: str, where: MachineFacts, book: install.Ledger, tmp_path: Path) -> None:
    """A person edits every file after the installation, installs again, edits again, and uninstalls."""
    for path in shared_files(name, where):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(FOREIGN[path.suffix])
    put(name, where, book)
    for path in shared_files(name, where):
        edited(path, "first")
    put(name, where, book)
    for path in shared_files(name, where):
        edited(path, "second")
    take(name, where, book)
    for path in shared_files(name, where):
        text = path.read_text()
        assert "first" in text
        assert "second" in text
        assert "kept" not in text.replace(str(tmp_path), "")
        for line in FOREIGN[path.suffix].splitlines():
            assert line.strip().strip(",{} ") in text


def test_a_file_that_its_agent_wrote_anew_is_still_as_it_should_be(where: MachineFacts, book: install.Ledger) -> None:
    """Qwen Code adds a member behind ours; writing it before ours again would be a change for nothing."""
    put("qwen", where, book)
    [path] = shared_files("qwen", where)
    path.write_text(json.dumps({**json.loads(path.read_text()), "$version": 4}, indent=2))
    assert [change for change in install.plan("qwen", "user", where, book) if not change.is_nothing] == []
    put("qwen", where, book)
    take("qwen", where, book)
    assert json.loads(path.read_text()) == {"$version": 4}


def edited(path: Path, word: str) -> None:
    text = path.read_text()
    if path.suffix in (".json", ".jsonc"):
        text = text.replace('"theme"', f'"{word}": 1,\n  "theme"')
    else:
        text = text.replace("# my", f"# {word}\n# my")
    path.write_text(text)


@pytest.mark.parametrize(
    ("name", "text"),
    [("gemini", "{ broken"), ("codex", "model = = 1"), ("opencode", '{"mcp": []}'), ("goose", "extensions: {a: 1}\n")],
)
def test_a_broken_file_is_named_and_nothing_is_changed(
    name: str, text: str, where: MachineFacts, book: install.Ledger, tmp_path: Path
) -> None:
    path = next(path for path in shared_files(name, where) if path.name != "hooks.json")
    path.parent.mkdir(parents=True)
    path.write_text(text)
    before = tree(tmp_path)
    with pytest.raises(errors.InvalidInput, match=path.name):
        put(name, where, book)
    assert tree(tmp_path) == before


def test_a_read_only_file_is_named_and_nothing_is_changed(
    where: MachineFacts, book: install.Ledger, tmp_path: Path
) -> None:
    path = where.user_home / ".codex" / "hooks.json"
    path.parent.mkdir()
    path.write_text("{}")
    path.chmod(0o400)
    before = tree(tmp_path)
    with pytest.raises(errors.InvalidInput, match=r"hooks\.json is read-only"):
        put("codex", where, book)
    assert tree(tmp_path) == before


def test_a_link_stays_a_link(where: MachineFacts, book: install.Ledger, tmp_path: Path) -> None:
    real = tmp_path / "dotfiles" / "settings.json"
    real.parent.mkdir()
    real.write_text('{"theme": "dark"}\n')
    (where.user_home / ".gemini").mkdir()
    link = where.user_home / ".gemini" / "settings.json"
    link.symlink_to(real)
    put("gemini", where, book)
    assert link.is_symlink()
    assert "kept-hook" in real.read_text()
    take("gemini", where, book)
    assert link.is_symlink()
    assert real.read_text() == '{"theme": "dark"}\n'


def test_a_link_to_a_file_that_is_missing_is_written_through_and_stays(
    where: MachineFacts, book: install.Ledger, tmp_path: Path
) -> None:
    (tmp_path / "dotfiles").mkdir()
    (tmp_path / "between").symlink_to(tmp_path / "dotfiles" / "settings.json")
    (where.user_home / ".gemini").mkdir()
    link = where.user_home / ".gemini" / "settings.json"
    link.symlink_to(tmp_path / "between")
    before = tree(tmp_path)
    put("gemini", where, book)
    assert link.is_symlink()
    assert "kept-hook" in (tmp_path / "dotfiles" / "settings.json").read_text()
    assert not put("gemini", where, book)
    take("gemini", where, book)
    assert link.is_symlink()
    assert not link.exists()
    after = tree(tmp_path)
    after.pop("kept")
    assert after == before


@pytest.mark.parametrize("name", AGENTS)
@pytest.mark.parametrize("is_folder", [False, True], ids=["file", "folder"])
def test_a_link_to_nowhere_is_named_and_nothing_is_changed(
    name: str, is_folder: bool, where: MachineFacts, book: install.Ledger, tmp_path: Path
) -> None:
    """A volume that is not mounted, a folder that was moved: nothing is written where the link would lead."""
    path = next(iter(shared_files(name, where)), None) or where.user_home / ".copilot" / "mcp-config.json"
    link = path.parent if is_folder else path
    link.parent.mkdir(parents=True, exist_ok=True)
    link.symlink_to(tmp_path / "gone" / "there" / link.name)
    before = tree(tmp_path)
    with pytest.raises(errors.InvalidInput, match=r"is a link to .*, which does not exist") as raised:
        put(name, where, book)
    assert str(link) in raised.value.message
    assert tree(tmp_path) == before


def test_traces_that_the_agent_wrote_because_of_us_are_removed(where: MachineFacts, book: install.Ledger) -> None:
    put("claude-code", where, book)
    registry = where.user_home / ".claude" / "plugins" / "known_marketplaces.json"
    registry.parent.mkdir(parents=True)
    market = {"source": {"source": "directory", "path": str(where.plugin)}}
    registry.write_text(json.dumps({"other": {"source": 1}, "kept": market}))
    take("claude-code", where, book)
    assert json.loads(registry.read_text()) == {"other": {"source": 1}}


def test_entries_have_absolute_paths_and_the_agent_in_them(where: MachineFacts, book: install.Ledger) -> None:
    put("codex", where, book)
    config = tomllib.loads((where.user_home / ".codex" / "config.toml").read_text())
    assert config["mcp_servers"]["kept"]["command"] == "/opt/kept/bin/kept"
    assert config["mcp_servers"]["kept"]["args"] == ["mcp", "--agent", "codex"]
    hooks = value_at((where.user_home / ".codex" / "hooks.json").read_text(), ("hooks",))
    assert {event: groups[0]["hooks"][0]["command"] for event, groups in hooks.items()} == {
        event: f"/usr/bin/env PYTHONPATH= /opt/kept/bin/kept-hook codex {event}"
        for event in HOOK_FORMATS["codex"].events
    }


def test_a_home_of_ones_own_is_told_to_both_programs(where: MachineFacts) -> None:
    elsewhere = replace(where, variables={"KEPT_HOME": "/data/my memory"})
    files = plugin_files(elsewhere)
    assert json.loads(files[".mcp.json"])["mcpServers"]["kept"]["env"] == {
        "PYTHONPATH": "",
        "KEPT_HOME": "/data/my memory",
    }
    assert "/usr/bin/env PYTHONPATH= 'KEPT_HOME=/data/my memory' /opt/kept/bin/kept-hook" in files["hooks/hooks.json"]


def test_without_the_server_only_hooks_are_set_up(where: MachineFacts) -> None:
    plain = replace(where, with_tools=False)
    assert ".mcp.json" not in plugin_files(plain)
    for agent in AGENTS.values():
        edits = [edit for edits in agent.files(plain, "user").values() for edit in edits]
        assert '"mcp"' not in str(edits)
        assert "mcp_servers" not in str(edits)


PLACES = [
    ("darwin", {}, "claude-desktop", "Library/Application Support/Claude/claude_desktop_config.json"),
    ("win32", {"APPDATA": "C:/Users/x/AppData/Roaming"}, "claude-desktop", "C:/Users/x/AppData/Roaming/Claude"),
    ("linux", {}, "claude-desktop", ".config/Claude/claude_desktop_config.json"),
    ("darwin", {}, "vscode", "Library/Application Support/Code/User/mcp.json"),
    ("win32", {"APPDATA": "C:/Users/x/AppData/Roaming"}, "vscode", "C:/Users/x/AppData/Roaming/Code/User/mcp.json"),
    ("linux", {"XDG_CONFIG_HOME": "/xdg"}, "vscode", "/xdg/Code/User/mcp.json"),
    ("darwin", {}, "codex", ".codex/config.toml"),
    ("linux", {"CODEX_HOME": "/codex"}, "codex", "/codex/hooks.json"),
    ("linux", {"CLAUDE_CONFIG_DIR": "/cc"}, "claude-code", "/cc/settings.json"),
    ("darwin", {}, "opencode", ".config/opencode/plugins/kept.js"),
    ("win32", {"APPDATA": "C:/Users/x/AppData/Roaming"}, "goose", "Roaming/Block/goose/config/config.yaml"),
    ("linux", {}, "goose", ".config/goose/config.yaml"),
]


@pytest.mark.parametrize(("platform", "environ", "name", "expected"), PLACES)
def test_places_by_system(
    platform: str, environ: dict[str, str], name: str, expected: str, where: MachineFacts
) -> None:
    machine = replace(where, platform=platform, environ=environ)
    assert any(expected in path.as_posix() for path in AGENTS[name].files(machine, "user"))


def test_agents_are_found_by_their_program_or_their_folder(where: MachineFacts) -> None:
    assert install.found(where, {}) == []
    (where.user_home / ".gemini").mkdir()
    assert install.found(where, {"codex": "/bin/codex"}) == ["codex", "gemini"]


def test_an_unknown_agent_is_an_error_that_lists_the_known_ones() -> None:
    with pytest.raises(errors.NotFound, match="Unknown agent 'emacs'") as raised:
        install.known("emacs")
    assert "claude-code" in raised.value.hint


def test_trust_of_codex_survives_a_second_installation_and_leaves_with_us(
    where: MachineFacts, book: install.Ledger, tmp_path: Path
) -> None:
    config = where.user_home / ".codex" / "config.toml"
    config.parent.mkdir()
    config.write_text(FOREIGN_TOML)
    before = tree(tmp_path / "home")
    put("codex", where, book)
    tables = codex.trusted([codex.CodexHook("/x/hooks.json:stop:0:0", "sha256:1", False)])
    install.add_tables("codex", "user", config, tables, book)
    put("codex", where, book)
    assert tomllib.loads(config.read_text())["hooks"]["state"]["/x/hooks.json:stop:0:0"]["trusted_hash"] == "sha256:1"
    edited(config, "first")
    take("codex", where, book)
    assert config.read_text() == FOREIGN_TOML.replace("# my", "# first\n# my", 1)
    config.write_text(FOREIGN_TOML)
    assert tree(tmp_path / "home") == before


def test_codex_is_asked_for_the_hashes_of_its_hooks(where: MachineFacts, tmp_path: Path) -> None:
    listed = [
        {"key": "/k:stop:0:0", "currentHash": "sha256:1", "command": where.command("codex", "Stop")},
        {"key": "/k:stop:1:0", "currentHash": "sha256:2", "command": "mine.sh"},
        {
            "key": "/k:end:0:0",
            "currentHash": "sha256:3",
            "command": where.command("codex", "SessionEnd"),
            "trustStatus": "trusted",
        },
    ]
    program = tmp_path / "codex"
    answers = [{"id": 1, "result": {}}, {"method": "note"}, {"id": 2, "result": {"data": [{"hooks": listed}]}}]
    said = "".join(f"echo '{json.dumps(answer)}'\n" for answer in answers)
    program.write_text(f"#!/bin/sh\n{said}exec sleep 60\n")
    program.chmod(0o755)
    machine = replace(where, environ={"PATH": "/usr/bin:/bin"})
    hooks = codex.our_hooks(str(program), machine, [Path("/k")])
    assert hooks == [codex.CodexHook("/k:stop:0:0", "sha256:1", False), codex.CodexHook("/k:end:0:0", "sha256:3", True)]
    assert [table.path[-1] for table in codex.trusted(hooks)] == ["/k:stop:0:0"]
    assert codex.our_hooks(str(tmp_path / "none"), machine, [Path("/k")]) is None
