"""Install and uninstall beside hostile repositories, broken files, other programs' hooks and edits in between."""

import errno
import json
import os
import random
import shutil
import tomllib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from kept import errors
from kept.entrypoints import install
from kept.entrypoints.hook.agents import AGENTS as HOOK_FORMATS
from kept.entrypoints.install import codex, jsonc
from kept.entrypoints.install.agents import AGENTS, MachineFacts
from kept.entrypoints.install.edits import Table
from kept.entrypoints.install.ours import is_ours
from tests.install.test_install import FOREIGN, book, edited, put, shared_files, take, tree, where

__all__ = ["book", "where"]

IN_PROJECT = [name for name, agent in AGENTS.items() if "project" in agent.scopes]
WITH_GROUPS = ("codex", "gemini", "qwen", "openhands")


# ---- Codex ----


def test_codex_trusts_only_the_lines_that_we_wrote_in_the_file_that_we_wrote(
    where: MachineFacts, tmp_path: Path
) -> None:
    ours = where.user_home / ".codex" / "hooks.json"
    theirs = where.project / ".codex" / "hooks.json"
    lines = [where.command("codex", event) for event in HOOK_FORMATS["codex"].events]
    alike = [
        "sh -c 'my-program' -m kept.entrypoints.hook",
        "./tools/lint.sh",
        f"{where.hook} codex Stop",
        f"{lines[0]}; my-program",
        f"{lines[0]} x",
        "/gone/kept-hook codex Stop",
        where.command("gemini", "SessionStart"),
    ]
    listed = [
        {"key": f"{file}:stop:{number}:0", "currentHash": f"{number}", "command": line}
        for file in (ours, theirs, f"{ours}:x", "x")
        for number, line in enumerate((*lines, *alike))
    ]
    program = tmp_path / "codex"
    answer = shutil.which("cat") or "/bin/cat"
    (tmp_path / "answer").write_text(json.dumps({"id": 2, "result": {"data": [{"hooks": listed}]}}) + "\n")
    program.write_text(f"#!/bin/sh\n{answer} '{tmp_path / 'answer'}'\nexec sleep 60\n")
    program.chmod(0o755)
    machine = replace(where, environ={"PATH": "/usr/bin:/bin"})
    files = AGENTS["codex"].files(machine, "user")
    found = codex.our_hooks(str(program), machine, files) or []
    assert [hook.key for hook in found] == [f"{ours}:stop:{number}:0" for number in range(len(lines))]


# ---- scope project: files of a stranger ----


@pytest.mark.parametrize("name", IN_PROJECT)
def test_nothing_is_written_through_links_that_a_repository_planted(
    name: str, where: MachineFacts, book: install.Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Links with the names of drafts, for every process number and every draft that was ever made."""
    secret = tmp_path / "secret"
    secret.write_text("alias ll='ls -l'\n")
    files = [path for path in shared_files(name, where, "project") if path.is_relative_to(where.project)]
    for path in files:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(FOREIGN[path.suffix])
        (path.parent / f".{path.name}.{os.getpid()}.kept").symlink_to(secret)
        (path.parent / f".{path.name}.00000000.tmp").symlink_to(secret)
    monkeypatch.setattr(os, "urandom", bytes)  # a guessed name is still not written through
    for done in (False, True):
        if done:
            monkeypatch.undo()
            put(name, where, book, "project")
        else:
            with pytest.raises(errors.InvalidInput):
                put(name, where, book, "project")
        assert secret.read_text() == "alias ll='ls -l'\n"


@pytest.mark.parametrize("name", IN_PROJECT)
@pytest.mark.parametrize("seed", range(4))
def test_a_project_file_that_leads_out_of_the_project_is_refused(
    name: str, seed: int, where: MachineFacts, book: install.Ledger, tmp_path: Path
) -> None:
    """The file or a folder above it is a link: out, to a file or to nothing, straight or by another link."""
    walk = random.Random(seed)
    files = [path for path in shared_files(name, where, "project") if path.is_relative_to(where.project)]
    path = walk.choice(files)
    outside = tmp_path / "outside"
    outside.mkdir()
    parts = path.relative_to(where.project).parts
    depth = walk.randint(1, len(parts))
    link = where.project.joinpath(*parts[:depth])
    target = outside / "target"
    if depth < len(parts):
        target.mkdir()
    elif walk.random() < 0.5:
        target.write_text(FOREIGN[path.suffix])
    link.parent.mkdir(parents=True, exist_ok=True)
    if walk.random() < 0.5:
        (where.project / "between").symlink_to(target)
        link.symlink_to(where.project / "between")
    else:
        link.symlink_to(os.path.relpath(target, link.parent))
    before = tree(tmp_path)
    with pytest.raises(errors.InvalidInput) as raised:
        put(name, where, book, "project")
    assert "leads out of the project" in raised.value.message
    assert tree(tmp_path) == before


def test_a_link_inside_the_project_is_followed_and_one_that_leads_out_later_is_not(
    where: MachineFacts, book: install.Ledger, tmp_path: Path
) -> None:
    (where.project / "settings").mkdir()
    (where.project / ".gemini").symlink_to("settings")
    put("gemini", where, book, "project")
    assert "kept-hook" in (where.project / "settings" / "settings.json").read_text()
    outside = tmp_path / "outside"
    shutil.copytree(where.project / "settings", outside)
    before = tree(outside)
    (where.project / ".gemini").unlink()
    (where.project / ".gemini").symlink_to(outside)
    removal = install.remove(book.of(["gemini"]), where, book)
    assert [error.message for error in removal.refused]
    assert "leads out of the project" in removal.refused[0].message
    assert tree(outside) == before
    assert book.of(["gemini"]), "it is tried again next time"


def test_a_pipe_in_a_project_is_not_waited_for(where: MachineFacts, book: install.Ledger) -> None:
    (where.project / ".gemini").mkdir()
    os.mkfifo(where.project / ".gemini" / "settings.json")
    with pytest.raises(errors.InvalidInput, match="not a regular file"):
        put("gemini", where, book, "project")


# ---- edits in between ----


@pytest.mark.parametrize("name", AGENTS)
def test_an_edit_between_plan_and_write_is_never_lost(
    name: str, where: MachineFacts, book: install.Ledger, tmp_path: Path
) -> None:
    paths = [*shared_files(name, where)]
    for path in paths:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(FOREIGN[path.suffix])
    plan = install.plan(name, "user", where, book)
    for path in paths:
        edited(path, "meanwhile")
    before = tree(tmp_path)
    if paths:
        with pytest.raises(errors.InvalidInput, match="changed by another program"):
            install.apply(name, "user", plan, book)
        assert tree(tmp_path) == before
    put(name, where, book)
    take(name, where, book)
    assert {path: content for path, content in tree(tmp_path).items() if path != "kept"} == before


# ---- hooks of other programs in our groups ----

MINE = {"type": "command", "command": "/usr/local/bin/my-linter --all"}


def mixed(value: dict[str, Any], walk: random.Random) -> None:
    """Put hooks of a person before or after ours, into some groups; and some of our hooks into one line with theirs."""
    for groups in value["hooks"].values():
        for group in groups:
            for number in range(walk.randrange(3)):
                group["hooks"].insert(walk.randint(0, len(group["hooks"])), {**MINE, "timeout": number})
            if walk.random() < 0.2:
                group["matcher"] = "*"


def commands(value: Any) -> list[str]:
    return [hook["command"] for groups in value.values() for group in groups for hook in group["hooks"]]


@pytest.mark.parametrize("name", WITH_GROUPS)
@pytest.mark.parametrize("seed", range(5))
def test_hooks_that_a_person_put_into_our_groups_stay(
    name: str, seed: int, where: MachineFacts, book: install.Ledger
) -> None:
    put(name, where, book)
    path = next(path for path in shared_files(name, where) if "hooks" in json_of(path))
    value = json_of(path)
    mixed(value, random.Random(seed))
    line = next(iter(value["hooks"].values()))[0]["hooks"][0]
    line["command"] += "; my-program"
    path.write_text(json.dumps(value, indent=random.Random(seed).choice([None, 2])))
    theirs = sorted(command for command in commands(value["hooks"]) if "my-" in command)
    put(name, where, book)
    assert sorted(command for command in commands(json_of(path)["hooks"]) if "my-" in command) == theirs
    ours = [command for command in commands(json_of(path)["hooks"]) if "my-" not in command]
    assert len(ours) == len(HOOK_FORMATS[name].events), "and ours are there once"
    edited(path, "first") if "\n" in path.read_text() else path.write_text(path.read_text() + "\n")
    take(name, where, book)
    assert sorted(commands(json_of(path)["hooks"])) == theirs


def json_of(path: Path) -> Any:
    return jsonc.value_at(path.read_text(), ()) if path.suffix == ".json" else {}


def test_a_hook_that_a_person_put_into_our_file_stays(where: MachineFacts, book: install.Ledger) -> None:
    put("copilot", where, book)
    path = where.user_home / ".copilot" / "hooks" / "kept.json"
    value = json.loads(path.read_text())
    value["hooks"]["sessionStart"].append({"type": "command", "bash": "my-program"})
    path.write_text(json.dumps(value))
    take("copilot", where, book)
    left = json.loads(path.read_text())["hooks"]
    assert [one for hooks in left.values() for one in hooks] == [{"type": "command", "bash": "my-program"}]


# ---- broken files and comments ----


@pytest.mark.parametrize("broken", ["gemini", "codex", "cursor", "claude-code", "goose", "opencode"])
def test_a_broken_file_is_named_and_all_others_are_given_back(
    broken: str, where: MachineFacts, book: install.Ledger, tmp_path: Path
) -> None:
    before = {}
    for name in AGENTS:
        for path in shared_files(name, where):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(FOREIGN[path.suffix])
            before[path] = path.read_bytes()
    for name in AGENTS:
        put(name, where, book)
    path = next(iter(shared_files(broken, where)))
    path.write_bytes(b"\x00{ = broken")
    removal = install.remove(dict(book.entries), where, book)
    assert [str(path) in error.message for error in removal.refused] == [True]
    assert {one: one.read_bytes() for one in before if one != path} == {
        one: content for one, content in before.items() if one != path
    }
    assert [*book.entries] == [str(path)], "only that one is tried again"
    path.write_bytes(before[path])
    assert not install.remove(dict(book.entries), where, book).refused
    assert not book.entries


plain = st.recursive(
    st.none() | st.integers(-9, 9) | st.text("ab/*", max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("ab", max_size=2), inner, max_size=3),
    max_leaves=6,
)
gaps = st.lists(
    st.sampled_from(["", " ", "\n", "\t", "// x\n", "/* x */", "// /* x\n", "/* // x */", "\r\n"]), max_size=3
)


@st.composite
def commented(draw: st.DrawFn, value: Any) -> str:
    """A JSON text of this value with comments and line ends between all its parts."""

    def gap() -> str:
        return "".join(draw(gaps))

    def written(value: Any) -> str:
        if not isinstance(value, (dict, list)):
            return gap() + json.dumps(value) + gap()
        if isinstance(value, dict):
            parts = [f"{gap()}{json.dumps(key)}{gap()}:{written(one)}" for key, one in value.items()]
        else:
            parts = [written(one) for one in value]
        inside = ",".join(parts) + ("," if parts and draw(st.booleans()) else "") + gap()
        return gap() + ("{%s}" if isinstance(value, dict) else "[%s]") % inside + gap()

    return written(value)


@given(st.data(), st.dictionaries(st.text("ab", max_size=2), plain, max_size=3), plain)
def test_comments_anywhere_neither_hide_an_entry_nor_break_the_file(
    data: st.DataObject, before: dict[str, Any], value: Any
) -> None:
    servers = {"a": 1} if data.draw(st.booleans()) else {}
    before |= {"servers": servers, "list": [*servers]}
    text = data.draw(commented(before))
    added = jsonc.with_member(text, ("servers", "kept"), {"x": value})
    assert jsonc.value_at(added, ()) == before | {"servers": {**servers, "kept": {"x": value}}}
    assert jsonc.value_at(jsonc.without_member(added, ("servers", "kept")), ()) == before
    added = jsonc.with_item(text, ("list",), {"kept": value})
    assert jsonc.value_at(added, ()) == before | {"list": [*servers, {"kept": value}]}
    cut = jsonc.without_items(added, ("list",), lambda item: item == {"kept": value})
    assert jsonc.value_at(cut, ()) == before
    assert cut.count("x") == text.count("x"), "no comment is lost"


# ---- TOML in other forms; a full disk ----


@pytest.mark.parametrize(
    "text",
    [
        'mcp_servers = {a={command="x"}}\n',
        'mcp_servers = { a = { command = "x" }, kept = { command = "old" } } # mine\n',
        'mcp_servers.a.command = "x"\n',
        '[mcp_servers]\na = {command = "x"}\n',
        '[mcp_servers]\nkept = {command = "old"}\na.command = "x"\n',
        'hooks = {state = {x = {trusted_hash = "1"}}}\n',
        '[hooks]\nstate = {x = {trusted_hash = "1"}}\n',
        '[mcp_servers.a]\ncommand = "x"\n[b]\nc = 1\n[mcp_servers.d]\ncommand = "z"\n',
    ],
)
@pytest.mark.parametrize("path", [("mcp_servers", "kept"), ("hooks", "state", "/x:stop:0:0")], ids=lambda path: path[0])
def test_a_table_is_added_to_every_form_of_toml(text: str, path: tuple[str, ...]) -> None:
    value = {"command": "/x/kept", "args": ["mcp"], "env": {"PYTHONPATH": ""}}
    added = Table(path, value).apply(text)
    expected = tomllib.loads(text)
    inner = expected
    for key in path[:-1]:
        inner = inner.setdefault(key, {})
    inner[path[-1]] = value
    assert tomllib.loads(added) == expected
    del inner[path[-1]]
    left = tomllib.loads(Table(path, value).strip(added, text, lambda value: True))
    assert {key: one for key, one in left.items() if one} == {
        key: one for key, one in expected.items() if one not in ({}, {"state": {}})
    }


def test_a_full_disk_is_named_as_the_reason(
    where: MachineFacts, book: install.Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = where.user_home / ".gemini" / "settings.json"
    path.parent.mkdir()
    path.write_text("{}\n")
    before = tree(tmp_path)

    def full(file: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(errors.InvalidInput) as raised:
        put("gemini", where, book)
    assert "Free some space" in raised.value.hint
    assert "permissions" not in raised.value.hint
    after = tree(tmp_path)
    after.pop("kept", None)
    assert after == before


def test_an_entry_of_two_commands_is_ours_only_if_both_are(where: MachineFacts) -> None:
    line = where.command("copilot", "sessionStart")
    assert is_ours({"bash": line, "powershell": line}, where)
    assert not is_ours({"bash": line, "powershell": "my-program"}, where)
