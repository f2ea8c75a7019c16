"""Other programs are called Kept as well. Their entries in agents' settings are neither replaced nor removed.

An entry is ours if it runs our program, whatever its name. Where another one has the name, ours are called kept-memory.
"""

import json
import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from kept import errors
from kept.entrypoints import install
from kept.entrypoints.install.agents import AGENTS, NAMES, MachineFacts
from kept.entrypoints.install.edits import Item, Member, RequiredMember, Table, Trace, WholeFile, YamlBlock
from kept.entrypoints.install.ours import is_ours
from tests.install.test_install import FOREIGN, book, edited, every_scope, put, shared_files, take, tree, where

__all__ = ["book", "where"]

OTHER_COMMANDS: list[dict[str, Any]] = [
    {"command": "npx", "args": ["-y", "kept", "mcp"]},
    {"command": "kept", "args": ["mcp"]},
    {"command": "kept", "args": ["mcp", "--agent", "codex"]},  # the other program, on the PATH
    {"command": "OTHER", "args": ["mcp", "--agent", "gemini"]},
    {"command": "/nowhere/kept", "args": ["mcp"]},
    {"command": "/nowhere/kept-server", "args": ["mcp", "--agent", "codex"]},
    {"command": "python3", "args": ["-m", "kept.server"]},
    {"url": "https://kept.example/mcp"},
    {"type": "local", "command": ["OTHER", "mcp"]},
    {"command": "bash", "args": ["-c", "/opt/kept/bin/kept mcp"]},
    {"command": "kept-hook codex Stop"},
    {"command": "sh -c 'my-program' -m kept.entrypoints.hook"},
    {"command": "python3 my-program.py -m kept.entrypoints.hook"},
    {"command": "python3", "args": ["-c", "my_program()", "-m", "kept.entrypoints.hook"]},
    {"command": "./tools/kept-hook codex Stop"},
    *(
        {"command": f"/usr/bin/env PYTHONPATH= /opt/kept/bin/kept-hook codex Stop{more}"}
        for more in ("; my-program", " && my-program", " | my-program", " > out", " `my-program`", ' "$(my-program)"')
    ),
    {"command": "my-program\n/opt/kept/bin/kept-hook codex Stop"},
    {},
]
YAML = ("goose", "continue")  # a block of lines between marks
OTHER_MARKET = {"source": {"source": "github", "repo": "somebody/kept"}}


@pytest.fixture
def machine(where: MachineFacts, tmp_path: Path) -> MachineFacts:
    return with_other(where, tmp_path)


def with_other(where: MachineFacts, folder: Path) -> MachineFacts:
    """The machine with another program on the PATH that is called kept, and one that is called kept-hook."""
    for name in ("kept", "kept-hook"):
        program = folder / "other" / name
        program.parent.mkdir(exist_ok=True)
        program.write_text("#!/bin/sh\nexec node /usr/lib/kept/server.js\n")
        program.chmod(0o755)
    return replace(where, environ={"PATH": f"{folder / 'other'}:/usr/bin:/bin"})


def other_entry(entry: dict[str, Any], folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(json.dumps(entry).replace("OTHER", str(folder / "other" / "kept")))
    return found


def occupy(name: str, agent: str, scope: Any, where: MachineFacts, entry: dict[str, Any]) -> dict[Path, str]:
    """Put another program's entry into every place of an agent that we would use under this name."""
    written = {}
    for path, edits in AGENTS[agent].files(replace(where, name=name), scope).items():
        if path.is_relative_to(where.plugin):
            continue
        text = path.read_text() if path.exists() else ""
        for edit in edits:
            if isinstance(edit, WholeFile):
                text = json.dumps({"version": 1, "hooks": {"stop": [entry]}}) + "\n"
            elif isinstance(edit, Table):
                text = Table(edit.path, entry).apply(text)
            elif isinstance(edit, YamlBlock):
                shape = f"- name: {name}\n  command: other\n" if agent == "continue" else f"  {name}:\n    cmd: other\n"
                text = (text or f"{edit.key}:\n").replace(f"{edit.key}:\n", f"{edit.key}:\n{shape}")
            elif isinstance(edit, Member | Trace) and "Marketplace" not in str(edit.path) and edit.has_command:
                value = OTHER_MARKET if isinstance(edit, Trace) else entry
                text = Member(edit.path, value).apply(text)
            elif isinstance(edit, Member | Trace):
                text = Member(edit.path, OTHER_MARKET if "Marketplace" in str(edit.path) else True).apply(text)
            elif isinstance(edit, RequiredMember):
                text = edit.apply(text)
            elif isinstance(edit, Item):
                text = Item(edit.path, {"command": f"{where.user_home.parent}/other/kept-hook {agent} Stop"}).apply(
                    text
                )
        if text:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
            written[path] = text
    return written


def values(name: str, agent: str, scope: Any, where: MachineFacts) -> list[Any]:
    """The values in the places that our entries have under a name."""
    files = AGENTS[agent].files(replace(where, name=name), scope)
    return [
        edit.holder(path.read_text())
        for path, edits in files.items()
        if path.exists() and not path.is_relative_to(where.plugin)
        for edit in edits
    ]


@pytest.mark.parametrize(("agent", "scope"), every_scope())
@settings(max_examples=6, deadline=None, phases=[Phase.generate], suppress_health_check=list(HealthCheck))
@given(entry=st.sampled_from(OTHER_COMMANDS), changes=st.integers(0, 3), seed=st.integers(0, 9))
def test_another_programs_entry_of_our_name_is_never_touched(
    agent: str, scope: Any, entry: dict[str, Any], changes: int, seed: int, tmp_path_factory: Any
) -> None:
    folder = tmp_path_factory.mktemp("machine")
    for name in ("home", "project", "kept"):
        (folder / name).mkdir()
    machine = with_other(
        MachineFacts(
            user_home=folder / "home",
            project=folder / "project",
            plugin=folder / "kept" / "agents" / "claude-code",
            environ={},
            platform="linux",
            kept="/opt/kept/bin/kept",
            hook="/opt/kept/bin/kept-hook",
        ),
        folder,
    )
    book = install.Ledger(folder / "kept")
    occupy(NAMES[0], agent, scope, machine, other_entry(entry, folder))
    others = values(NAMES[0], agent, scope, machine)
    before = tree(folder)
    assert install.taken_in(NAMES[0], agent, scope, machine, book)
    put(agent, machine, book, scope)
    assert values(NAMES[0], agent, scope, machine) == others
    assert install.name_for(agent, scope, machine, book) == NAMES[1]
    assert any(is_ours(value, machine) for value in values(NAMES[1], agent, scope, machine)) or agent in YAML
    assert not put(agent, machine, book, scope), "doing it again changes nothing"
    dice = random.Random(seed)
    shared = [path for path in shared_files(agent, machine, scope) if path.exists()]
    for path in dice.sample(shared, min(changes, len(shared))):  # an agent or a person writes the file
        path.write_text(path.read_text() + "\n")
    assert not [change for change in install.plan(agent, scope, machine, book) if not change.is_nothing]
    take(agent, machine, book)
    assert values(NAMES[0], agent, scope, machine) == others
    after = {path: (text or b"").rstrip() for path, text in tree(folder).items()}
    assert after == {path: (text or b"").rstrip() for path, text in before.items()}


@pytest.mark.parametrize(("agent", "scope"), [one for one in every_scope() if one.values[0] not in YAML])
def test_a_name_that_another_program_took_from_us_is_its_own(
    agent: str, scope: Any, machine: MachineFacts, book: install.Ledger, tmp_path: Path
) -> None:
    """Its installer ran after ours. Installing again moves us to the other name; uninstalling leaves its entries."""
    put(agent, machine, book, scope)
    entry = other_entry(OTHER_COMMANDS[0], tmp_path)
    occupy(NAMES[0], agent, scope, machine, entry)
    others = values(NAMES[0], agent, scope, machine)
    put(agent, machine, book, scope)
    assert values(NAMES[0], agent, scope, machine) == others
    assert install.name_for(agent, scope, machine, book) == NAMES[1]
    take(agent, machine, book)
    assert values(NAMES[0], agent, scope, machine) == others
    assert "/opt/kept/bin/kept" not in str([text for path, text in tree(tmp_path).items() if path != "other"])


@pytest.mark.parametrize("agent", AGENTS)
def test_two_names_that_others_have_are_an_error_and_nothing_is_changed(
    agent: str, machine: MachineFacts, book: install.Ledger, tmp_path: Path
) -> None:
    for name in NAMES:
        occupy(name, agent, "user", machine, OTHER_COMMANDS[0])
    before = tree(tmp_path)
    with pytest.raises(errors.InvalidInput, match="kept and kept-memory belong to other programs"):
        put(agent, machine, book)
    assert tree(tmp_path) == before


@pytest.mark.parametrize("agent", [agent for agent in AGENTS if agent not in YAML])
def test_our_entry_of_an_installation_elsewhere_is_replaced_and_not_doubled(
    agent: str, machine: MachineFacts, book: install.Ledger, tmp_path: Path
) -> None:
    """Kept moved to another environment, and the ledger is lost: program and settings say whose the entries are."""
    for is_there in (True, False):
        elsewhere = tmp_path / "elsewhere"
        elsewhere.mkdir(exist_ok=True)
        for name, module in (("kept", "cli"), ("kept-hook", "hook")):
            (elsewhere / name).write_text(f"#!/usr/bin/python3\nfrom kept.entrypoints.{module} import main\nmain()\n")
            (elsewhere / name).chmod(0o755)
            if not is_there:
                (elsewhere / name).unlink()
        older = replace(machine, kept=str(elsewhere / "kept"), hook=str(elsewhere / "kept-hook"))
        put(agent, older, book)
        fresh = install.Ledger(tmp_path / "kept")
        fresh.entries.clear()
        put(agent, machine, fresh)
        assert install.name_for(agent, "user", machine, fresh) == NAMES[0]
        for path, edits in AGENTS[agent].files(machine, "user").items():
            if edits and path.exists():
                assert str(elsewhere) not in path.read_text()
        take(agent, machine, fresh)
        for path in shared_files(agent, machine):
            assert not path.exists() or "kept" not in path.read_text().replace(str(tmp_path), "")


@pytest.mark.parametrize("name", NAMES)
def test_our_entries_are_removed_from_a_changed_file_under_either_name(
    name: str, machine: MachineFacts, book: install.Ledger
) -> None:
    path = machine.user_home / ".gemini" / "settings.json"
    path.parent.mkdir()
    path.write_text(FOREIGN[".json"])
    if name != NAMES[0]:
        path.write_text(Member(("mcpServers", NAMES[0]), {"command": "npx"}).apply(FOREIGN[".json"]))
    put("gemini", machine, book)
    edited(path, "first")
    take("gemini", machine, book)
    assert "/opt/kept" not in path.read_text()
    assert '"first"' in path.read_text()
    assert ('"npx"' in path.read_text()) == (name != NAMES[0])


OURS = [
    {"command": "/opt/kept/bin/kept", "args": ["mcp"]},
    {"command": "/gone/bin/kept", "args": ["mcp", "--agent", "gemini"]},
    {"command": "/usr/bin/python3", "args": ["-m", "kept.entrypoints.hook"]},
    {"command": "python3.11 -IP -m kept.entrypoints.hook codex Stop"},
    {"command": "/usr/bin/env PYTHONPATH= 'KEPT_HOME=/a;b $(c)' /opt/kept/bin/kept-hook codex Stop"},
    {"hooks": [{"type": "command", "command": "/opt/kept/bin/kept-hook codex Stop", "timeout": 10}]},
    {"bash": "/usr/bin/env PYTHONPATH= 'KEPT_HOME=/my memory' /gone/kept-hook codex Stop"},
]


@pytest.mark.parametrize("entry", OURS, ids=str)
def test_an_entry_that_runs_our_program_is_ours(entry: dict[str, Any], machine: MachineFacts) -> None:
    assert is_ours(entry, machine)


@pytest.mark.parametrize("entry", OTHER_COMMANDS, ids=str)
def test_an_entry_that_runs_another_program_is_not(
    entry: dict[str, Any], machine: MachineFacts, tmp_path: Path
) -> None:
    assert not is_ours(other_entry(entry, tmp_path), machine)
