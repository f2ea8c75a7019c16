"""Codex's memory: summaries of its threads, and notes that the user asked for, in one store for all projects.

A summary begins with the id and the directory of its thread. A note has neither, so a person is asked about it.
MEMORY.md, memory_summary.md and raw_memories.md are made of the summaries and are not read.
"""

import re
from collections.abc import Iterator
from pathlib import Path

from kept.exchange.importers.foreign import moment_in
from kept.exchange.importers.hosts.notes_text import Host, HostFacts, HostFolder, HostNote, note_of

_STORES = ("memories", "memories_v2")
SUMMARIES, NOTES = "rollout_summaries", "extensions/ad_hoc/notes"
_MADE = ("MEMORY.md", "memory_summary.md", "raw_memories.md", "phase2_workspace_diff.md")
# The parts of a summary that hold later, with the kind of their statements. Steps, outcomes and references do not.
_LASTING = (("preference", "preference"), ("reusable knowledge", "fact"), ("failure", "warning"))
_HEADER = re.compile(r"(thread_id|updated_at|rollout_path|cwd|git_branch): (.*)")
_TITLE = re.compile(r"#{1,6}\s+(?:Task \d+:\s*)?(.*)")
_LABEL = re.compile(r"[*_\s]*([A-Z][\w ,'/-]{2,60}):[*_]*\s*(.*)")
_BULLET = re.compile(r"\s*[-*+]\s+")
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d-?")
_HASH = re.compile(r"[0-9A-Za-z]{4}(?:-|$)")
_REQUEST = re.compile(r"(?i)\s*(?:please )?remember(?: that\b|:)\s*")


def _folders(facts: HostFacts) -> list[HostFolder]:
    """Return the folders of the store that Codex reads: the older one, where it exists."""
    home = facts.home_of("CODEX_HOME", ".codex")
    older, newer = (home / name for name in _STORES)
    store = older if older.is_dir() else newer
    return [HostFolder(path=store / folder, belongs="cwd") for folder in (SUMMARIES, NOTES)]


def _read(name: str, text: str) -> list[HostNote]:
    if name in _MADE:
        return []
    header, body = _header(text)
    stem = _stem(Path(name).stem, is_summary="thread_id" in header)
    titles = (_TITLE.match(line) for line in body.splitlines())
    subject = next((title[1] for title in titles if title), stem.replace("_", " "))
    about = {
        "at": moment_in(header.get("updated_at", "")),
        "session": header.get("thread_id"),
        "cwd": header.get("cwd", "").removeprefix("\\\\?\\") or None,
    }
    if not _has_parts(body):
        whole = note_of(stem, _REQUEST.sub("", body, count=1), subject=subject, also=(subject,), **about)
        return [] if whole is None else [whole]
    found = (
        note_of(stem, said, subject=task, kind=kind, also=(task,), is_line=True, **about)
        for task, kind, said in _lasting(body, subject)
    )
    return [note for note in found if note is not None]


def _header(text: str) -> tuple[dict[str, str], str]:
    """Return the `name: value` lines at the beginning of a summary, and the text below them."""
    lines = text.removeprefix("\ufeff").splitlines()
    found: dict[str, str] = {}
    while lines and (field := _HEADER.fullmatch(lines[0].rstrip())):
        found[field[1]] = field[2].strip()
        lines.pop(0)
    return found, "\n".join(lines)


def _stem(name: str, *, is_summary: bool) -> str:
    """Return the name of a file without its time, and without the hash in the name of a summary."""
    bare = _TIME.sub("", name)
    return (_HASH.sub("", bare, count=1) if is_summary else bare) or name


def _has_parts(body: str) -> bool:
    """Return True for a summary by tasks, with their outcomes and lessons."""
    return any(line.startswith(("Outcome:", "Reusable knowledge:")) for line in body.splitlines())


def _lasting(body: str, subject: str) -> Iterator[tuple[str, str, str]]:
    """Yield the statements of the parts that hold later: the task, the kind, and the text."""
    kind = ""
    for line in body.splitlines():
        title, label = _TITLE.match(line), _LABEL.fullmatch(line)
        if named := title or label:
            kind = next((kind for word, kind in _LASTING if word in named[1].lower()), "")
            subject = title[1] if title and not kind else subject
        elif kind and (bullet := _BULLET.match(line)):
            yield subject, kind, line[bullet.end() :]


def _fits(path: Path) -> bool:
    """Return True for a summary, a note, or a file beside their folders."""
    folder = path.parent
    is_store = folder.name in _STORES and (folder / SUMMARIES).is_dir()
    is_part = folder.name == SUMMARIES or folder.as_posix().endswith(NOTES)
    return is_store or (is_part and not set(_STORES).isdisjoint(path.parts))


CODEX = Host(
    name="codex",
    title="Codex",
    setting="read_codex_notes",
    format="codex-memory",
    folders=_folders,
    read=_read,
    fits=_fits,
    patterns=("*.md", f"{SUMMARIES}/*.md", f"{NOTES}/*.md"),
)
