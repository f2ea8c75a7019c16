"""The background process of the hooks: imports transcripts, finishes sessions, and logs failures.

Every event with a transcript first becomes a pointer in the spool (`folder`). Then one process at a time works the
spool off. Rule: a pointer is removed only when its transcript is stored. Reading the same transcript again adds nothing
twice, so an interrupted import is repeated.
"""

import os
import signal
import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from kept.entrypoints.hook.agents import AGENTS
from kept.entrypoints.hook.folder import KEPT_DAYS, MOST_SECONDS, WAIT_S, HookFolder, parsed
from kept.entrypoints.lookup import use_absolute_path
from kept.errors import Busy, KeptError, MovedAway, NotAllowed, SettingsError, StorageError
from kept.memory import Kept
from kept.memory.imports import ImportedTranscript
from kept.memory.opening import open as open_memory
from kept.memory.opening import open_projects, role_in, typed
from kept.model import Actor
from kept.projects.files import locked

MOST_POINTERS = 1_000
MANY_IN_A_FILE = ("opencode",)  # the conversations of all projects are in one database

Pointers = list[tuple[Path, dict[str, Any]]]  # each with its file


def main() -> None:
    """Import the transcript of the event on the command line, and all that wait."""
    with suppress(OSError):
        os.closerange(3, 256)  # files that the host left open: it may wait for their end
    if sys.platform != "win32":
        signal.alarm(MOST_SECONDS)
    use_absolute_path(os.environ)
    found = parsed(sys.argv[1]) if len(sys.argv) > 1 else None
    pointer = found if isinstance(found, dict) else {}
    if pointer.get("cwd") and (named := os.environ.get("KEPT_PROJECT")):
        pointer["cwd"] = typed(named)
    try:
        run(pointer)
    except Exception as error:  # the boundary: only `kept doctor` can show it
        HookFolder(open_projects().home.root).note_failure(pointer, f"{type(error).__name__} in the background process")
    _remove_mark(pointer.get("mark"))


def _remove_mark(mark: Any) -> None:
    """Remove the mark of this process: path and token. If another process has written a mark there, leave it."""
    with suppress(OSError, ValueError, TypeError):
        path, token = Path(mark[0]), str(mark[1])
        if path.read_text("utf-8").startswith(f"{token}\n"):
            path.unlink()


def run(pointer: Mapping[str, Any]) -> None:
    """Note the event, add its pointer to the spool, and work the spool off."""
    projects = open_projects()
    if projects.is_home_away(pointer.get("cwd")):
        return  # its disk is not mounted: files written now would be hidden later. `kept status` says so.
    projects.home.prepare_root()
    folder = HookFolder(projects.home.root)
    folder.prepare()
    if pointer.get("agent") in AGENTS:
        folder.note_event(str(pointer["agent"]), str(pointer.get("event")))
        if failure := pointer.get("failure"):
            folder.note_failure(pointer, str(failure))
        if has_transcript(pointer):
            folder.add(pointer)
    folder.forget_old()
    work_off(folder)
    if pointer.get("cwd"):
        _upkeep(folder, pointer)
    folder.log_died()


def has_transcript(pointer: Mapping[str, Any]) -> bool:
    """Return True if there is a transcript, and a reader for it."""
    return bool(pointer.get("transcript")) and AGENTS[pointer["agent"]].program is not None


def work_off(folder: HookFolder) -> int:
    """Import the transcripts that wait. Return how many pointers are left: their store was busy or broken."""
    while True:
        try:
            with locked(folder.lock, timeout_s=WAIT_S):
                before = folder.pointers()
                for group in _by_transcript(before):
                    _import_group(folder, group)
                left = folder.pointers()
        except Busy:  # another process works it off for long; the next process finds the rest
            return len(folder.pointers())
        if not left or len(left) >= len(before):
            return len(left)


def _by_transcript(pointers: Pointers) -> Iterator[Pointers]:
    groups: dict[tuple[str, str], Pointers] = {}
    for path, pointer in pointers:
        groups.setdefault((str(pointer.get("transcript")), str(pointer.get("cwd"))), []).append((path, pointer))
    yield from groups.values()


def _import_group(folder: HookFolder, group: Pointers) -> None:
    """Import the new part of a transcript, once for all its pointers, and remove them."""
    _, last = group[-1]
    try:
        actor, settings = Actor(role=role_in(os.environ), name=last["agent"]), {"auto_upkeep": False}
        with open_memory(project=last["cwd"], actor=actor, settings=settings) as memory:
            if not memory.pauses.status() and Path(last["transcript"]).is_file():
                _import_transcript(memory, folder, group)
    except (StorageError, SettingsError, MovedAway, OSError) as error:  # busy, full, broken or moved: another time
        folder.note_failure(last, f"{type(error).__name__}: the transcript waits")
        _drop_old(group, folder)
        return
    except KeptError as error:  # no project there, or a transcript that cannot be one: it will not get better
        folder.note_failure(last, f"{type(error).__name__}: {error.message}")
    for path, _ in group:
        path.unlink(missing_ok=True)


def _import_transcript(memory: Kept, folder: HookFolder, group: Pointers) -> None:
    """Import the transcript that the pointers share; finish the session if it has ended, flush it if compacted."""
    _, last = group[-1]
    known = AGENTS[last["agent"]]
    here = last["agent"] in MANY_IN_A_FILE
    done = [
        result
        for file in _with_sub_agents(Path(last["transcript"]))
        for result in memory.import_transcripts(str(known.program), file, here=here)
    ]
    _note_unread(folder, last, done)
    kinds = {known.events.get(str(pointer.get("event"))) for _, pointer in group}
    if "end" in kinds:
        memory.session(last["session"]).finish()
    elif "compact" in kinds and memory.settings.flush_enabled:
        memory.session(last["session"]).flush()


def _with_sub_agents(transcript: Path) -> list[Path]:
    """Return the transcript and those of the session's sub-agents, if the host writes them beside it."""
    return [transcript, *sorted(transcript.with_suffix("").glob("subagents/**/*.jsonl"))]


def _note_unread(folder: HookFolder, pointer: Mapping[str, Any], done: list[ImportedTranscript]) -> None:
    """Log the records that could not be read: the session goes on without them."""
    for one in done:
        name = Path(one.path).name[:100]
        if one.failed:
            folder.note_failure(pointer, f"Transcript {name}: {one.failed}")
        elif one.skipped and pointer["agent"] not in MANY_IN_A_FILE:  # a database is read whole each time
            folder.note_failure(pointer, f"Transcript {name}: {one.skipped} unreadable records were left out")


def _drop_old(group: Pointers, folder: HookFolder) -> None:
    """Drop the pointers that have waited too long, and all but the last if the spool is full."""
    oldest = (datetime.now(UTC) - timedelta(days=KEPT_DAYS)).timestamp() * 1e9
    too_many = len(folder.pointers()) > MOST_POINTERS
    for path, _ in group[:-1] if too_many else group:
        if too_many or int(path.name.partition("-")[0]) < oldest:
            path.unlink(missing_ok=True)


def _upkeep(folder: HookFolder, pointer: Mapping[str, Any]) -> None:
    """Import edits, finish silent sessions, read notes of agents, make vectors, and do the upkeep of an opening."""
    agent, cwd = str(pointer["agent"]), str(pointer["cwd"])
    actor = Actor(role=role_in(os.environ), name=agent)
    is_judged = find_spec("mcp") is not None
    with suppress(KeptError), open_memory(project=cwd, actor=actor, hosted=is_judged) as memory:
        memory.files.take_edits()
        memory.store.finish_sessions()
        _read_notes(memory, folder, pointer)
        memory.vectors.keep_up()
        memory.deliveries.follow()
        memory.store.follow_code()


def _read_notes(memory: Kept, folder: HookFolder, pointer: Mapping[str, Any]) -> None:
    """Read the notes in the own memories of agents. A failure is logged, and the next event tries again."""
    try:
        memory.files.read_notes(os.environ, agent=str(pointer["agent"]), session=str(pointer.get("session")))
    except NotAllowed:  # no project can be here, as in a home directory
        return
    except (KeptError, OSError) as error:
        folder.note_failure(pointer, f"{type(error).__name__}: the notes of agents were not read")


if __name__ == "__main__":
    main()
