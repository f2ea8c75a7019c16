"""Views: files beside the store that show what is in it, and that people may edit: MEMORY.md and tasks.json.

All views share their place, the test whether it was edited, and how it is read and replaced. `view` has the
nouns; `memory_md` and `tasks_json` say what an edit means. A note in the store says how a view was last written. Rule:
an edit that Kept has not seen is never overwritten. The note and what an edit changes are one transaction, before the
file is replaced; after a crash the file is as before or as it should be, the note knows both, and the draft beside the
file says which. A database can be restored, copied, and reached by several URLs. So each note has a token, and a file
beside the view names those of its last notes: edits are told by no other note.
"""

import os
import stat
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

import msgspec

from kept.errors import Busy, Corrupt, InvalidInput, KeptError, MovedAway, NotAllowed
from kept.memory.context import Context
from kept.memory.signals import warn
from kept.memory.view import AGENTS_MD, IN_PROJECT, PERSON, FileView, Outcome, Seen, Signature, ViewPlace, Waiting
from kept.memory.view import Ask as Ask
from kept.memory.view import SyncOptions as SyncOptions
from kept.memory.view import SyncReport as SyncReport
from kept.model import GLOBAL, TaskRecord, replace
from kept.ports import Storage, Transaction
from kept.projects.files import NO_FOLLOW, explained, make_private_directory, shown, write_draft, write_private_file
from kept.projects.spaces import TEAM_FOLDER
from kept.storage.files import sync as sync_folder
from kept.storage.shared import random_hex

TASKS = "tasks.json"
MAX_VIEW_BYTES = 20_000_000
ATTEMPTS = 3  # while an editor saves the file at the same time
NEXT = "next"  # in a note: the draft that is to take the place of the file, and the note about it then

TOKEN = "token"  # in a note: by this name the file beside a view knows it

Clean = Callable[[ViewPlace, str, Mapping[str, Any]], tuple[str, Mapping[str, Any]]]  # takes erased words out of a file


class _Unknown(Exception):
    """Raised for a file that no note is about."""


def places(context: Context, *, only_there: bool = False) -> Iterator[ViewPlace]:
    """Yield the MEMORY.md of every space that this actor may change, and the project's tasks.json, if it has tasks.

    `only_there` leaves a tasks.json out that does not exist, without looking for tasks.
    """
    if context.actor.role == "skill":
        return
    for storage in context.readable():
        is_global = storage.space == GLOBAL
        folder = context.spaces.files_folder(shared=is_global)
        if folder is None:
            continue
        mark = "" if is_global else context.spaces.files_mark()
        tasks = folder / TASKS
        if not is_global and (os.path.lexists(tasks) or (not only_there and _has_tasks(storage))):
            yield ViewPlace(name=TASKS, path=tasks, root=_root(folder, mark), storage=storage, mark=mark)
        agents = agents_place(context, storage) if context.settings.agents_block and not is_global else None
        yield from filter(None, (_memory_md(context, storage, folder, mark), agents))


def _root(folder: Path, mark: str) -> Path:
    """Return the folder from which notes name a file: they tell the folders of several URLs of a database apart."""
    return folder.parent if mark else folder


def agents_place(context: Context, storage: Storage) -> ViewPlace | None:
    """Return the place of AGENTS.md; None for a project without a directory."""
    own, mark = context.spaces.folder(), context.spaces.files_mark()
    if own is None:
        return None
    return ViewPlace(name=AGENTS_MD, path=own / AGENTS_MD, root=own, storage=storage, is_shared=True, mark=mark)


def _memory_md(context: Context, storage: Storage, folder: Path, mark: str) -> ViewPlace | None:
    """Return the place of a MEMORY.md: in the folder of its space, or in that of the project by the settings."""
    wanted = context.settings.memory_path
    if not wanted.startswith(IN_PROJECT):
        root = _root(folder, mark)
        return ViewPlace(name="MEMORY.md", path=folder / wanted, root=root, storage=storage, mark=mark)
    if storage.space == GLOBAL:
        return ViewPlace(name="MEMORY.md", path=folder / "MEMORY.md", root=folder, storage=storage)
    own = context.spaces.folder()
    if own is None:
        return None
    path = own / wanted.removeprefix(IN_PROJECT)
    return ViewPlace(name="MEMORY.md", path=path, root=own, storage=storage, is_shared=True, mark=mark)


def _has_tasks(storage: Storage) -> bool:
    with storage.reading() as reader:
        return bool(reader.all(TaskRecord))


def take_edits(context: Context) -> list[SyncReport]:
    """Take in what people changed in the views since they were written. Unchanged, that is one `stat` for each.

    Never raises: the caller asked for something else.
    """
    done = []
    with suppress(KeptError):
        for place in places(context, only_there=True):
            if is_edited(context, place):
                with suppress(MovedAway):  # where the project was; the command says so once
                    done.append(sync_safely(context, place))
    return done


def write(context: Context) -> None:
    """Bring the views up to date, if that is possible now; what fails is logged, and done the next time."""
    with suppress(KeptError):
        for place in places(context):
            with suppress(MovedAway):
                sync_safely(context, place)


def accompany(context: Context) -> list[SyncReport]:
    """For one command: take people's edits in now, and bring the views up to date at its end, if it wrote anything."""
    done = take_edits(context)
    context.at_close.append(lambda: write(context) if context.signals.has_written else None)
    return done


def is_edited(context: Context, place: ViewPlace) -> bool:
    """Whether the file is not as it was left. False if there is none."""
    try:
        found = signature_of(os.lstat(place.path))
    except OSError:
        return False
    known = context.seen_views.get(str(place.path))
    if known is None:
        with place.storage.reading() as reader:
            known = reader.file_notes(f"stat/{place.key}").get(f"stat/{place.key}", "")
        context.seen_views[str(place.path)] = known
    return _as_text(found) != known


def sync_safely(context: Context, place: ViewPlace) -> SyncReport:
    """As `sync`, with nobody there to ask. A failure is logged. Raises MovedAway where the project was."""
    try:
        return sync(context, place, SyncOptions())
    except MovedAway:
        raise
    except Busy:
        return SyncReport(name=place.name, path=shown(place.path), waiting="Another process is writing.")
    except KeptError as error:
        warn("%s could not be brought up to date: %s", place.name, error.message)
        return SyncReport(name=place.name, path=shown(place.path), waiting=error.message)


def sync(context: Context, place: ViewPlace, terms: SyncOptions) -> SyncReport:
    """Take the edits of a view in, and write it as it should be."""
    done = SyncReport(name=place.name, path=shown(place.path))
    wait_s = context.settings.write_wait_s if terms.is_asked_for else 0.0
    with place.storage.lease(f"view-{place.mark}{place.name}", wait_s=wait_s) as is_ours:
        if not is_ours:
            raise Busy(f"Another process is bringing {place.name} up to date.", hint="Try again.")
        for _ in range(ATTEMPTS):
            done = SyncReport(name=place.name, path=shown(place.path))
            try:
                try:
                    is_done = _sync_once(context, _view(context, place, terms), done)
                except _Unknown:
                    _ask_about_unknown(place, terms)
                    done = SyncReport(name=place.name, path=shown(place.path))
                    is_done = _sync_once(context, _view(context, place, terms), done, is_accepted=True)
                if is_done:
                    break
            except Waiting as reason:
                done.waiting = str(reason)
                return done
        else:
            done.waiting = "Somebody kept saving the file in the meantime."
    if done.has_edits:
        is_of_memories = place.name != TASKS  # tasks are not counted as memories
        context.tell_write(place.storage, len(done.added) - len(done.removed) if is_of_memories else 0)
    return done


def _ask_about_unknown(place: ViewPlace, terms: SyncOptions) -> None:
    """Raise Waiting unless a person takes the lines of a file for their edits that the store did not write last."""
    why = f"{place.name} is not as this database wrote it last: it was restored, or is another copy."
    if terms.ask is None:
        raise Waiting(f"{why} `kept files sync` asks what to do with its lines.")
    if not terms.ask(f"{why} Take its lines for your edits? Nothing is forgotten.", ()):
        raise Waiting(f"Nothing was changed. Delete {shown(place.path)}, and it is written as the database has it.")


def _view(context: Context, place: ViewPlace, terms: SyncOptions) -> FileView:
    from kept.memory import agents_file, tasks_json  # only for a file that was edited, or is out of date

    return (tasks_json.TasksFile if place.name == TASKS else agents_file.view_of)(context, place, terms)


def _sync_once(context: Context, view: FileView, done: SyncReport, *, is_accepted: bool = False) -> bool:
    """Make one attempt. Returns False if the file was saved by another program in the meantime.

    Raises _Unknown if the note is not about this file, and they differ. `is_accepted`: then its lines are edits, and
    nothing counts as deleted.

    One transaction notes both states of the file, the one seen and the one to come, and where its draft lies; then the
    draft takes the place of the file. While the draft is there, the file has not been replaced (`_settled`).
    """
    place = view.place
    seen = read(place)
    stamp = replace(context.stamp(), actor=context.person or PERSON)
    draft: Path | None = None
    token = ""
    try:
        with place.storage.writing(stamp) as tx:
            notes = tx.file_notes()
            known = _known_note(place, notes, seen)
            outcome = _merged(tx, view, seen, known, done, is_accepted=is_accepted)
            if outcome.text != seen.text:
                draft = _draft(place, seen, outcome.text)
                signature = signature_of(os.lstat(draft))
                coming = {**outcome.note_before, NEXT: {"draft": draft.name, "note": outcome.note}}
                token = _new_token(place, known.note)
                _save(tx, place, coming, signature, token=token)
            elif not known.is_as_left or outcome.note != _without_token(known.note):
                token = _new_token(place, known.note)
                _save(tx, place, outcome.note, seen.signature, token=token)
            _drop_older(tx, place, known)
    except BaseException:
        if draft is not None:
            draft.unlink(missing_ok=True)
        raise
    _remove_draft(place, known.note)  # of an attempt before: the note names another one now
    if draft is not None and not _put(place, seen, draft):
        return False
    _note_tokens(place, token)
    if draft is None:
        context.seen_views[str(place.path)] = _as_text(seen.signature)
        return True
    done.is_written = True
    context.seen_views[str(place.path)] = _as_text(signature)
    delta = len(outcome.text) - len(seen.text or "")
    context.signals.emit("memory:write", type="view", path=str(place.path), delta=delta)
    return True


class _KnownNote(NamedTuple):
    """The note about a file. `is_about`: it is about the very file that was found, and not another copy of it."""

    note: Mapping[str, Any]
    is_about: bool
    is_as_left: bool = False  # the file was not edited since
    is_older: bool = False  # Kept 0.3.0 or older wrote it


def _known_note(place: ViewPlace, notes: Mapping[str, str], seen: Seen) -> _KnownNote:
    now = _as_text(seen.signature)
    if (stored := notes.get(f"view/{place.key}")) is None and notes.get(f"stat/{place.older_key}") == now:
        return _KnownNote(_decoded(notes.get(f"view/{place.older_key}")), is_about=True, is_older=True)
    note, is_as_left = _decoded(stored), notes.get(f"stat/{place.key}") == now
    return _KnownNote(note, seen.text is None or is_as_left or _is_about(place, note), is_as_left)


def _merged(
    tx: Transaction, view: FileView, seen: Seen, known: _KnownNote, done: SyncReport, *, is_accepted: bool
) -> Outcome:
    """Take the edits of the file in. Raises _Unknown, after which nothing may be stored."""
    if known.is_about or is_accepted:
        return view.merge(tx, seen, _settled(view.place, known.note) if known.is_about else {}, done)
    outcome = view.merge(tx, seen, view.note_as_written(seen.text or ""), done)
    if done.has_edits or outcome.text != seen.text:
        raise _Unknown
    return outcome


def _drop_older(tx: Transaction, place: ViewPlace, known: _KnownNote) -> None:
    for kind in ("view", "stat") if known.is_older else ():
        tx.note_file(f"{kind}/{place.older_key}", None)


def _is_about(place: ViewPlace, note: Mapping[str, Any]) -> bool:
    """Return True if the file beside the view names this note; a restored database has an older one, a copy another."""
    if place.tokens_file is None:
        return True
    try:
        return note.get(TOKEN) in place.tokens_file.read_text("ascii", "replace").split()
    except OSError:
        return False


def _new_token(place: ViewPlace, noted: Mapping[str, Any]) -> str:
    """Return the token of a new note; "" where none is needed.

    Until the new note is stored and the file as it says, both tokens are beside the view.
    """
    if place.tokens_file is None:
        return ""
    token = random_hex(8)
    _note_tokens(place, *([noted[TOKEN]] if _is_about(place, noted) else []), token)
    return token


def _note_tokens(place: ViewPlace, *tokens: str) -> None:
    if place.tokens_file is not None and any(tokens):
        make_private_directory(place.tokens_file.parent)
        write_private_file(place.tokens_file, "\n".join(tokens).encode())


def _without_token(note: Mapping[str, Any]) -> Mapping[str, Any]:
    return {name: value for name, value in note.items() if name != TOKEN}


def _settled(place: ViewPlace, note: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the note about the file as it is now: about both states if its replacement was cut off, else the last."""
    note = _without_token(note)
    coming = note.get(NEXT)
    if coming is None:
        return note
    if os.path.lexists(place.path.with_name(coming["draft"])):
        return {name: value for name, value in note.items() if name != NEXT}
    settled: Mapping[str, Any] = coming["note"]
    return settled


def _remove_draft(place: ViewPlace, note: Mapping[str, Any]) -> None:
    if (coming := note.get(NEXT)) is not None:
        place.path.with_name(coming["draft"]).unlink(missing_ok=True)


def erase_from(context: Context, storage: Storage, clean: Clean) -> list[str]:
    """Take erased memories out of the views of a space, and quotations of them. Returns why a file still has them.

    Nothing else is taken in or written: edits that wait go on waiting.
    """
    failed = []
    mine = [place for place in places(context) if place.storage is storage and place.name != TASKS]
    for place in (*mine, *_earlier_places(context, storage, mine)):
        try:
            if not _erase_from(context, place, clean):
                failed.append(f"{shown(place.path)} was saved by another program in the meantime.")
        except KeptError as error:
            failed.append(error.message)
    return failed


def _earlier_places(context: Context, storage: Storage, now: Sequence[ViewPlace]) -> Iterator[ViewPlace]:
    """Where MEMORY.md was before `memory_path` or the URL was changed: the notes about those files are still there."""
    mark = "" if storage.space == GLOBAL else context.spaces.files_mark()
    with storage.reading() as reader:
        keys = [name.removeprefix("view/") for name in reader.file_notes("view/")]
    known = {place.key for place in now}
    for key in (key for key in keys if key.startswith(mark) and key not in known):
        if (place := _earlier_place(context, storage, key.removeprefix(mark), mark)) is not None:
            yield place


def _earlier_place(context: Context, storage: Storage, below: str, mark: str) -> ViewPlace | None:
    is_global, is_shared = storage.space == GLOBAL, below.startswith(IN_PROJECT)
    folder = context.spaces.files_folder(shared=is_global)
    if is_shared:
        root = None if is_global else context.spaces.folder()
    else:
        root = None if folder is None else _root(folder, mark)
    below = below.removeprefix(IN_PROJECT)
    if root is None or _is_left_out(below, is_of_team=bool(mark) and not is_shared):
        return None
    name = AGENTS_MD if is_shared and below == AGENTS_MD else "MEMORY.md"
    return ViewPlace(name=name, path=root / below, root=root, storage=storage, is_shared=is_shared, mark=mark)


def _is_left_out(below: str, *, is_of_team: bool) -> bool:
    """Return True for a list of tasks, and for a note of Kept 0.3.0, which does not name the folder of its file."""
    return PurePosixPath(below).name == TASKS or (is_of_team and not below.startswith(TEAM_FOLDER))


def _erase_from(context: Context, place: ViewPlace, clean: Clean) -> bool:
    """Clean one view. False: another program kept saving it."""
    with place.storage.reading() as reader:
        is_noted = f"view/{place.key}" in reader.file_notes()
    if not is_noted and read(place).text is None:
        return True
    was_edited = is_edited(context, place)
    for _ in range(ATTEMPTS):
        seen = read(place)
        with place.storage.reading() as reader:
            noted = _decoded(reader.file_notes().get(f"view/{place.key}"))
        text, note = clean(place, seen.text or "", _settled(place, noted))
        if seen.text is None or text == seen.text or _replace(place, seen, text):
            break
    else:
        return False
    with place.storage.writing(replace(context.stamp(), passes_fence=True)) as tx:  # as the erasure does
        _save(tx, place, note, None if was_edited else read(place).signature, token=noted.get(TOKEN, ""))
    _remove_draft(place, noted)
    context.seen_views.pop(str(place.path), None)
    return True


def write_tasks(context: Context) -> list[str]:
    """Bring tasks.json up to date after an erasure. Returns why it is not."""
    with suppress(MovedAway):  # the old copy of a moved project, whose tasks.json is written no more
        done = [sync_safely(context, place) for place in places(context) if place.name == TASKS]
        return [f"{one.path}: {one.waiting}" for one in done if one.waiting]
    return [f"{shown(place.path)} is of the old copy. Delete it." for place in places(context) if place.name == TASKS]


def before_restore(context: Context, storage: Storage) -> None:
    """Take edits in that would be lost with the restore; of an empty new store, there are none."""
    with suppress(Corrupt):  # a damaged store can take in nothing, and is to be replaced
        with storage.reading() as reader:
            known = reader.file_notes("view/")
        if known:
            take_edits(context)


def after_restore(context: Context, storage: Storage) -> None:
    """Take the files as they are for what was written: what they show beyond the restored state does not come back."""
    context.seen_views.clear()
    for place in places(context):
        if place.storage is storage:
            seen = read(place)
            with storage.writing(context.stamp()) as tx:
                _save(tx, place, _view(context, place, SyncOptions()).note_as_written(seen.text or ""), None)


def cut(context: Context, place: ViewPlace, rest_of: Callable[[str, Mapping[str, Any]], str]) -> SyncReport:
    """Take our part out of a file that belongs to people, and its notes out of the store.

    `rest_of(text, note)` returns the rest, and raises Waiting if it is not to be taken out. The file is deleted if
    nothing is left of it and Kept made it.
    """
    done = SyncReport(name=place.name, path=shown(place.path))
    for _ in range(ATTEMPTS):
        seen = read(place)
        with place.storage.reading() as reader:
            note = _settled(place, _decoded(reader.file_notes().get(f"view/{place.key}")))
        try:
            rest = rest_of(seen.text or "", note)
        except Waiting as reason:
            done.waiting = str(reason)
            return done
        if rest != (seen.text or ""):
            if not (_delete(place, seen) if not rest and note.get("created") else _replace(place, seen, rest)):
                continue
            done.is_written = True
        with place.storage.writing(context.stamp()) as tx:
            tx.note_file(f"view/{place.key}", None)
            tx.note_file(f"stat/{place.key}", None)
        context.seen_views.pop(str(place.path), None)
        return done
    done.waiting = "Another program kept saving the file in the meantime."
    return done


# Files


def read(place: ViewPlace) -> Seen:
    """The file as it is. Raises NotAllowed for a link or a device, InvalidInput if it is not text."""
    _refuse_links(place)
    flags = os.O_RDONLY | NO_FOLLOW | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0)
    with explained("read", place.path, "Check its permissions."):
        try:
            fd = os.open(place.path, flags)
        except FileNotFoundError:
            return Seen(None, None)
        with os.fdopen(fd, "rb") as file:
            status = os.fstat(fd)
            if not stat.S_ISREG(status.st_mode):
                raise NotAllowed(f"{shown(place.path)} is not a regular file.", hint="Put a file of text there.")
            data = file.read(MAX_VIEW_BYTES + 1)
            signature = signature_of(os.fstat(fd))
    if len(data) > MAX_VIEW_BYTES:
        raise InvalidInput(
            f"{shown(place.path)} has more than {MAX_VIEW_BYTES // 1_000_000} MB.", hint="Move the text elsewhere."
        )
    try:
        return Seen(data.decode(), signature)
    except UnicodeDecodeError as error:
        raise InvalidInput(
            f"{shown(place.path)} is not UTF-8 at byte {error.start}.", hint="Save it as UTF-8; nothing was changed."
        ) from error


def _replace(place: ViewPlace, seen: Seen, text: str) -> bool:
    """Replace the file that was seen. Returns False if it is no longer as it was seen."""
    draft = _draft(place, seen, text)
    try:
        return _put(place, seen, draft)
    finally:
        draft.unlink(missing_ok=True)


def _delete(place: ViewPlace, seen: Seen) -> bool:
    """Delete the file that was seen. Returns False if it is no longer as it was seen."""
    _refuse_links(place)
    with explained("delete", place.path):
        if signature_of(os.lstat(place.path)) != seen.signature:
            return False
        place.path.unlink()
        sync_folder(place.path.parent)
    return True


def _draft(place: ViewPlace, seen: Seen, text: str) -> Path:
    """Write the new text of a file beside it."""
    if place.is_shared:
        with explained("write", place.path, "Check its permissions."):
            place.path.parent.mkdir(parents=True, exist_ok=True)
    else:
        make_private_directory(place.path.parent)
    _refuse_links(place)
    mode = 0o644 if place.is_shared else 0o600
    if place.is_shared and seen.signature is not None:
        with suppress(FileNotFoundError):
            mode = stat.S_IMODE(os.lstat(place.path).st_mode)
    with explained("write", place.path):
        return write_draft(place.path, text.encode(), mode=mode)


def _put(place: ViewPlace, seen: Seen, draft: Path) -> bool:
    """Let the draft take the place of the file. Returns False, and leaves it, if the file is not as it was seen."""
    _refuse_links(place)
    try:
        if signature_of(os.lstat(place.path)) != seen.signature:
            return False
    except FileNotFoundError:
        if seen.signature is not None:
            return False
    with explained("write", place.path):
        draft.replace(place.path)
        sync_folder(place.path.parent)
    return True


def _refuse_links(place: ViewPlace) -> None:
    """Raise NotAllowed if the file, or a folder between it and the root, is a symbolic link: it could lead anywhere."""
    below = place.path.relative_to(place.root).parts
    for depth in range(1, len(below) + 1):
        step = place.root.joinpath(*below[:depth])
        with explained("look at", step):
            if step.is_symlink():
                raise NotAllowed(
                    f"{shown(step)} is a symbolic link, which Kept does not follow.", hint="Put the file itself there."
                )


def signature_of(status: os.stat_result) -> Signature:
    """Return the marks of a file that change whenever it is saved."""
    return status.st_ino, status.st_mtime_ns, status.st_size


def _as_text(signature: Signature | None) -> str:
    return "" if signature is None else " ".join(map(str, signature))


def _save(
    tx: Transaction, place: ViewPlace, note: Mapping[str, Any], signature: Signature | None, *, token: str = ""
) -> None:
    note = {**note, TOKEN: token} if token else note
    tx.note_file(f"view/{place.key}", msgspec.json.encode(note).decode())
    tx.note_file(f"stat/{place.key}", _as_text(signature) or None)


def _decoded(note: str | None) -> Mapping[str, Any]:
    try:
        found = msgspec.json.decode(note or "{}")
    except msgspec.MsgspecError:
        return {}
    return found if isinstance(found, dict) else {}
