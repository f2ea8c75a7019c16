"""Tell whose an entry of a configuration is. An entry is ours if it runs our program or our module, under any name.

Other products are called Kept as well, and have a server or a hook of that name. Rule: an entry that cannot be shown to
be ours belongs to another program, and is neither replaced nor removed.
"""

import json
import re
import shlex
import shutil
from collections.abc import Iterator, Mapping, Sequence
from itertools import dropwhile
from pathlib import Path, PurePath
from typing import Any

from kept.entrypoints.hook.agents import AGENTS as HOOK_FORMATS
from kept.entrypoints.install import jsonc
from kept.entrypoints.install.agents import AGENTS, MachineFacts
from kept.errors import KeptError

MODULES = (b"kept.entrypoints.cli", b"kept.entrypoints.hook")  # a program of ours names one of them
PROGRAM_BYTES = 4_000_000  # on Windows a program is a launcher with a script behind it
COMMANDS = ("command", "cmd", "bash", "powershell")  # names that agents have for the line, or the program, of an entry
ENV = ("env", "/usr/bin/env")
PROGRAMS = ("kept", "kept-hook")
_PYTHON = re.compile(r"(?:python|pypy)[\d.]*w?|py", re.IGNORECASE)
_QUOTED = re.compile(r"""'[^']*'|"[^"`$\\]*"|\\.""")  # a shell does nothing with these
_OPERATORS = re.compile(r"[;&|<>()`$\n]")
_WINDOWS_OPERATORS = re.compile(r"[;&|<>\n]")  # a folder may have brackets in its name


def is_ours(value: Any, where: MachineFacts) -> bool:
    """Return True if an entry runs our program and no other, is our plugin's folder, or is a file with our hook."""
    if isinstance(value, str):
        return _is_our_text(value, where)
    found = [runs_kept(words, where) for words in _commands(value, where)]
    return (bool(found) and all(found)) or _is_our_market(value, where)


def runs_kept(words: Sequence[str], where: MachineFacts) -> bool:
    """Return True if a command, as a list of words, is one of ours."""
    words = _without_variables(words)
    if not words:
        return False
    program, arguments = words[0], words[1:]
    if program in (where.kept, where.hook):
        return True
    path = PurePath(program)
    if _PYTHON.fullmatch(path.stem if path.suffix == ".exe" else path.name):
        return _module_of(arguments).startswith("kept.entrypoints.")
    # A relative path is a file of the directory that we happen to run in.
    if path.stem not in PROGRAMS or not (path.is_absolute() or path.name == program):
        return False
    found = shutil.which(program, path=where.environ.get("PATH", ""))
    return _names_our_module(Path(found)) if found else _is_our_line(path, arguments)


def _without_variables(words: Sequence[str]) -> list[str]:
    """Return the words without `env` and variables at their beginning."""
    return list(dropwhile(lambda word: word in ENV or re.match(r"\w+=", word), words))


def _is_our_line(program: PurePath, arguments: Sequence[str]) -> bool:
    """Return True if `kept install` writes such a line. The program is gone, with a deleted environment, say."""
    if not program.is_absolute() or len(arguments) < 2:
        return False
    if program.stem == "kept-hook":
        return arguments[0] in HOOK_FORMATS
    return list(arguments[:2]) == ["mcp", "--agent"] and "".join(arguments[2:3]) in AGENTS


def _module_of(arguments: Sequence[str]) -> str:
    """Return the module that Python runs with these arguments, if only options without a value come before it."""
    while arguments and re.fullmatch(r"-[bBdEiIOPqsSuvx]+", arguments[0]):
        arguments = arguments[1:]
    return arguments[1] if arguments[:1] == ["-m"] and len(arguments) > 1 else ""


def _names_our_module(program: Path) -> bool:
    try:
        with program.open("rb") as file:
            content = file.read(PROGRAM_BYTES)
    except OSError:
        return False
    return any(module in content for module in MODULES)


def _commands(value: Any, where: MachineFacts) -> Iterator[list[str]]:
    """Yield every command inside an entry as a list of words."""
    if isinstance(value, Mapping):
        for name in COMMANDS:
            command, arguments = value.get(name), value.get("args")
            if isinstance(command, str):
                # With arguments beside it, it is a program and may hold spaces; alone it is a line for a shell.
                yield [command, *map(str, arguments)] if isinstance(arguments, list) else _words(command, where)
            elif isinstance(command, list):
                yield [str(word) for word in command]
        value = list(value.values())
    if isinstance(value, list):
        for inner in value:
            yield from _commands(inner, where)


def _words(line: str, where: MachineFacts) -> list[str]:
    """Return the words of a line that runs one program; [] for a line that does more, or is broken."""
    if where.platform == "win32":
        if _WINDOWS_OPERATORS.search(re.sub(r'"[^"]*"', "", line)):
            return []
        return [word.strip('"') for word in re.findall(r'"[^"]*"|\S+', line)]
    if _OPERATORS.search(_QUOTED.sub("", line)):
        return []
    try:
        return shlex.split(line)
    except ValueError:  # a quote without an end
        return []


def _is_our_market(value: Any, where: MachineFacts) -> bool:
    """Return True for a marketplace of Claude Code that is the folder of our plugin, in this home or another one."""
    source = value.get("source") if isinstance(value, Mapping) else None
    path = source.get("path") if isinstance(source, Mapping) else None
    if not isinstance(path, str):
        return False
    folder = Path(path)
    if folder == where.plugin:
        return True
    try:
        hooks = json.loads((folder / "hooks" / "hooks.json").read_bytes())
    except (OSError, ValueError):
        return folder.parts[-2:] == where.plugin.parts[-2:] and not folder.exists()
    return _has_ours(hooks, where)


def _has_ours(value: Any, where: MachineFacts) -> bool:
    return any(runs_kept(words, where) for words in _commands(value, where))


def _is_our_text(text: str, where: MachineFacts) -> bool:
    """Return True for a file of JSON or JavaScript that runs our hook."""
    if (hook := re.search(r"^const HOOK = (\".*\")$", text, re.MULTILINE)) is not None:
        try:
            return runs_kept([json.loads(hook[1]), "opencode", ""], where)
        except ValueError:
            return False
    try:
        return _has_ours(jsonc.value_at(text, ()), where)
    except KeptError:
        return False
