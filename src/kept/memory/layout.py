"""Brain's layout (B20) of a project's memory, written to a folder: for each agent its MEMORY.md and its sessions, and
the items and tasks of the project. `kept import brain` reads it again. An AGENT.md is its owner's, and never written.
"""

import re
from collections.abc import Sequence
from pathlib import Path

import msgspec
from msgspec import Struct

from kept.errors import InvalidInput, NotFound
from kept.exchange import memory_md as page
from kept.memory import library, tasks
from kept.memory.context import Context
from kept.model import Memory, SessionRecord, TaskRecord
from kept.ports import Reader, Where
from kept.projects.files import index_entry, make_private_directory, shown, write_private_file
from kept.projects.files import to_line as to_line
from kept.storage.shared import every

TASKS = Path("40_Brain", ".agent", "tasks", "tasks.json")
NOBODY = "agent"  # whose memory it is where no agent is named
DECISIONS = page.section_of("decision")  # with their dates


class Layout(Struct, frozen=True, kw_only=True):
    """The folder that was written, with counts."""

    folder: str
    agents: list[str]
    memories: int
    sessions: int
    items: int
    tasks: int


def write_layout(context: Context, folder: Path) -> Layout:
    """Write the layout into a new or empty folder. Raises InvalidInput if there is something in it."""
    storage = context.readable_tier("project")
    if storage is None:
        raise NotFound("There is nothing to write: nothing is kept here yet.")
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise InvalidInput(f"{shown(folder)} is not an empty folder.", hint="Name a new one.")
    with storage.reading() as reader:
        memories = [memory for memory in every(reader, Where()) if memory.tier != "task"]
        sessions = reader.all(SessionRecord)
        names = _write_agents(folder, reader, memories, sessions)
        items = [library.as_document(memory) for memory in every(reader, Where(scope="items"))]
        planned = [tasks.as_document(task) for task in tasks.open_milestones(reader.all(TaskRecord))]
    make_private_directory(folder / TASKS.parent)
    write_private_file(folder / "items.json", _json(items))
    write_private_file(folder / TASKS, _json({"tasks": planned}))
    context.tell_read(memories)
    return Layout(
        folder=shown(folder),
        agents=names,
        memories=len(memories),
        sessions=len(sessions),
        items=len(items),
        tasks=len(planned),
    )


def _write_agents(
    folder: Path, reader: Reader, memories: Sequence[Memory], sessions: Sequence[SessionRecord]
) -> list[str]:
    """Write a folder for each agent, with its memories and its sessions. Returns the names of the folders."""
    said: dict[str, list[Memory]] = {}
    for memory in memories:
        said.setdefault(_folder_name(memory.source.agent), []).append(memory)
    talked: dict[str, list[SessionRecord]] = {}
    for session in sessions:
        talked.setdefault(_folder_name(session.agent), []).append(session)
    names = sorted({*said, *talked})
    for name in names:
        make_private_directory(folder / name)
        write_private_file(folder / name / "MEMORY.md", _memory_md(said.get(name, [])).encode())
        if name in talked:
            _write_sessions(folder / name / "sessions", reader, talked[name])
    return names


def _memory_md(memories: Sequence[Memory]) -> str:
    """The file in Brain's form, which has no marks."""
    lines = ["# Agent Memory"]
    for section in page.SECTIONS:
        own = [memory for memory in memories if page.section_of(memory.kind) == section]
        if own:
            lines += ["", f"## {section}"]
        day = ""
        for memory in own:
            if section == page.DATED and day != (day := f"{memory.created_at:%Y-%m-%d}"):
                lines.append(f"### {day}")
            dated = f"{memory.created_at:%Y-%m-%d}: " if section == DECISIONS else ""
            lines.append(f"- {dated}{page.line_of(memory)}")
    return "\n".join(lines) + "\n"


def _write_sessions(folder: Path, reader: Reader, sessions: Sequence[SessionRecord]) -> None:
    make_private_directory(folder)
    for session in sessions:
        said = b"".join(msgspec.json.encode(to_line(one)) + b"\n" for one in reader.messages(session.name))
        write_private_file(folder / f"{session.name}.jsonl", said)
    write_private_file(folder / "sessions.json", _json({"sessions": [index_entry(one) for one in sessions]}))


def _json(document: object) -> bytes:
    return msgspec.json.format(msgspec.json.encode(document), indent=2) + b"\n"


def _folder_name(agent: str | None) -> str:
    return re.sub(r"[^A-Za-z0-9._-]+", "-", agent or NOBODY).strip(".-") or NOBODY
