"""Bringing in what other programs keep: their transcripts, as sessions.

Facade layer. Reads from where the last import of a file stopped; messages have ids of their own, so that reading one
twice adds it once. Rule: a torn last line is left for next time, and a file that cannot be read is said, not skipped.
"""

import hashlib
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path

from msgspec import Struct

from kept.errors import InvalidInput
from kept.exchange.transcripts import PARSERS, Transcript
from kept.memory.sessions import Sessions
from kept.model import Message
from kept.projects.files import explained

BATCH = 200
Progress = Callable[[int, int], None]  # files done, files in all


class ImportedTranscript(Struct, frozen=True, kw_only=True):
    """What came of one file."""

    path: str
    session: str | None = None
    added: int = 0
    known: int = 0
    skipped: int = 0  # lines that were torn or unknown


class Importing(Sessions):
    """What takes in other programs' files."""

    def import_transcripts(
        self, program: str, path: Path | str, *, since: datetime | None = None, progress: Progress | None = None
    ) -> list[ImportedTranscript]:
        """Take in the transcripts below a folder, or one file. `since`: only files changed after that.

        Doing it again adds only what is new. Secrets are redacted before anything is stored.
        """
        if program not in PARSERS:
            raise InvalidInput(f"{program!r} is not a known program.", hint=f"Choose one of {', '.join(PARSERS)}.")
        files = list(_files(Path(path), since))
        done = []
        for number, file in enumerate(files, 1):
            done.append(self._import_file(program, file))
            if progress is not None:
                progress(number, len(files))
        return done

    def _import_file(self, program: str, file: Path) -> ImportedTranscript:
        storage = self._spaces.ensure_project()
        mark = f"offset:{hashlib.blake2b(str(file.resolve()).encode('utf-8', 'replace'), digest_size=8).hexdigest()}"
        with storage.reading() as reader:
            offset = reader.counters().get(mark, 0)
        with explained("read the transcript", file), file.open("rb") as source:
            size = file.stat().st_size
            source.seek(offset if offset <= size else 0)  # a shorter file is another one: read it from the start
            start = source.tell()
            data = source.read()
        whole = data[: data.rfind(b"\n") + 1]
        parsed = PARSERS[program](whole.splitlines())
        if not parsed.messages:
            return ImportedTranscript(path=str(file), session=parsed.session, skipped=parsed.skipped)
        name, parent = _names(file, parsed)
        session = self.session(name, agent=program, parent=parent)
        added = 0
        for batch in _batches(parsed.messages):
            added += len(session.extend(batch))
        session.checkpoint()
        with storage.bookkeeping() as notes:
            if notes is not None:  # otherwise the next import reads it again, and adds nothing twice
                notes.count({mark: start + len(whole) - offset})
        return ImportedTranscript(
            path=str(file), session=name, added=added, known=len(parsed.messages) - added, skipped=parsed.skipped
        )


def _files(path: Path, since: datetime | None) -> Iterator[Path]:
    if path.is_file():
        yield path
        return
    if not path.is_dir():
        raise InvalidInput(f"There is nothing at {path}.", hint="Give a transcript file, or a folder of them.")
    for file in sorted(path.rglob("*.jsonl")):
        if file.is_file() and (since is None or file.stat().st_mtime >= since.timestamp()):
            yield file


def _names(file: Path, parsed: Transcript) -> tuple[str, str | None]:
    """The session a file belongs to. A sub-agent's file has its parent's session id inside, and a name of its own."""
    own = "".join(character if character.isalnum() or character in "._-" else "-" for character in file.stem)
    own = own.strip(".-_")[:100] or "session"
    if parsed.session is None:
        return own, parsed.parent
    if file.parent.name == "subagents":
        return f"{parsed.session}.{own}"[:128], parsed.session
    return parsed.session, parsed.parent


def _batches(messages: tuple[Message, ...]) -> Iterator[list[Message]]:
    for start in range(0, len(messages), BATCH):
        yield list(messages[start : start + BATCH])
