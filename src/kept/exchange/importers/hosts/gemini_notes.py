"""Gemini CLI's memory: short facts as lines of MEMORY.md, longer notes in files beside it.

Its list of projects says which folder belongs to which directory. A line of MEMORY.md that only points at a file
beside it is not read: the file is.
"""

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from kept.exchange.importers.hosts.notes_text import INDEX, Host, HostFacts, HostFolder, HostNote, note_of
from kept.exchange.importers.notes import notes

_POINTER = re.compile(r"(?<![\w/])[\w.-]+\.md\b")


def _projects(data: bytes) -> dict[str, Any]:
    """Return the list of projects: the name of each directory."""
    try:
        listed: Any = json.loads(data or b"{}")
    except (ValueError, RecursionError):
        return {}
    projects = listed.get("projects") if isinstance(listed, dict) else None
    return projects if isinstance(projects, dict) else {}


def _folders(facts: HostFacts) -> list[HostFolder]:
    """Return the folders of this project: Gemini CLI has one for each directory that it was started in."""
    home, root = facts.home_of("", ".gemini"), f"{facts.root}{os.sep}"
    listed = _projects(facts.read(home / "projects.json")).items()
    inside = [name for directory, name in listed if f"{directory}{os.sep}".startswith(root) and facts.holds(directory)]
    return [HostFolder(path=home / "tmp" / name / "memory") for name in inside if _is_name(name)]


def _is_name(name: object) -> bool:
    return isinstance(name, str) and name not in ("", ".", "..") and Path(name).name == name


def _read(name: str, text: str) -> list[HostNote]:
    if name != INDEX:
        stem = Path(name).stem
        note = note_of(stem, text, subject=stem.replace("-", " ").replace("_", " "))
        return [] if note is None else [note]
    return [*_facts(text)]


def _facts(text: str) -> Iterator[HostNote]:
    for line in notes(text):
        note = None if _POINTER.search(line.content) else note_of("", line.content, is_line=True)
        if note is not None:
            yield note


def _fits(path: Path) -> bool:
    return path.parent.name == "memory" and path.parts[-4:-3] == ("tmp",) and ".gemini" in path.parts


def _directory(path: Path) -> str:
    """Return the directory that a folder of notes belongs to, by the list of projects; "" if that is not known."""
    try:
        listed = _projects((path.parents[3] / "projects.json").read_bytes()) if _fits(path) else {}
    except OSError:
        return ""
    return next((directory for directory, name in listed.items() if name == path.parts[-3]), "")


GEMINI = Host(
    name="gemini",
    title="Gemini CLI",
    setting="read_gemini_notes",
    format="gemini-memory",
    folders=_folders,
    read=_read,
    fits=_fits,
    belongs_to=_directory,
)
