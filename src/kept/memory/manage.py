"""What only a person or an agent can decide: contradictions, other words for a word, pauses, false alarms."""

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager

from msgspec import Struct

from kept import ids, text
from kept.errors import InvalidInput, NotFound
from kept.memory.context import Memories, Opened, Ref
from kept.model import Alias, Allowance, Conflict, Draft, Memory, Pause, Redaction, replace
from kept.ports import ANYWHERE, R, Reader, Storage, Transaction
from kept.projects.config import parse_text, set_value
from kept.recall.query import as_mapping as alias_mapping
from kept.settings import Settings, as_mapping, resolve
from kept.writing.check import MAX_NAME_CHARS, check_text
from kept.writing.duplicates import supersede
from kept.writing.redact import redact, redact_draft

Conflicts = list[Conflict]
PAGE = 500


class Leak(Struct, frozen=True, kw_only=True):
    """A stored memory in which a scan found what should not be there. Kinds and counts, never the secret."""

    ref: str
    found: tuple[Redaction, ...]
    is_fixed: bool = False


Leaks = list[Leak]


class Deciding(Opened):
    """What settles things."""

    def conflicts(self, *, resolved: bool = False) -> Conflicts:
        """The contradictions that nobody has settled yet; with `resolved`, all of them."""
        found: Conflicts = []
        for storage in self._readable():
            with storage.reading() as reader:
                found += [one for one in reader.all(Conflict) if resolved or one.resolved_at is None]
        return found

    def resolve(self, conflict: Ref, keep: Ref) -> Memory:
        """Settle a contradiction: `keep` stays and counts as verified, the other one is archived as superseded."""
        number = ids.parse_conflict_ref(conflict)
        storage, kept = self._find(keep)
        self._check_change(storage.space, kept.kind, f"Resolve conflict c{number} in global memory?")
        with storage.writing(self._stamp()) as tx:
            found = tx.get(Conflict, number)
            if found is None:
                raise NotFound(f"There is no conflict c{number}.", hint="`kept conflicts` shows them.")
            if kept.uid not in (found.left, found.right):
                raise InvalidInput(
                    f"Memory {kept.ref} is not part of conflict c{number}.", hint="`kept conflicts` shows both sides."
                )
            at = tx.stamp.at
            other = _by_uid(tx, found.right if kept.uid == found.left else found.left)
            current = _by_uid(tx, kept.uid)
            if current is None:
                raise NotFound(f"Memory {kept.ref} was erased meanwhile.")
            if other is not None and not other.is_archived:
                supersede(tx, other, current, at)
            tx.put(replace(found, resolved_at=at), "resolve")
            settled = tx.put(replace(current, verified_at=at, updated_at=at), "resolve")
        self._tell_write(storage, -1 if other is not None and not other.is_archived else 0)
        return settled

    def aliases(self) -> dict[str, tuple[str, ...]]:
        """Every word that stands for others in a recall: the defaults, and what was added here."""
        own = [alias for storage in self._readable() for alias in _all(storage, Alias)]
        return dict(alias_mapping(own))

    def add_alias(self, word: str, *expands_to: str) -> Alias:
        """From now on, whoever asks for `word` is also given what holds one of the others."""
        word = redact(word.strip()).text.lower()
        others = tuple(dict.fromkeys(redact(other.strip()).text.lower() for other in expands_to))
        for part in (word, *others):
            check_text(part, "An alias", MAX_NAME_CHARS)
        if not word or not others or not all(others) or word in others:
            raise InvalidInput(
                "An alias is a word and at least one other word for it.", hint="kept alias add auth login sso"
            )
        with self._switching() as tx:
            known = next((alias for alias in tx.all(Alias) if alias.word == word), None)
            if known is None:
                return tx.add(Alias(word=word, expands_to=others), "alias")
            return tx.put(replace(known, expands_to=tuple(dict.fromkeys((*known.expands_to, *others)))), "alias")

    def remove_alias(self, word: str) -> None:
        """Take back what was added here for a word; the defaults stay."""
        with self._switching() as tx:
            known = next((alias for alias in tx.all(Alias) if alias.word == word.strip().lower()), None)
            if known is None:
                raise NotFound(
                    f"There is no alias of your own for {word[:60]!r}.", hint="`kept alias list` shows them."
                )
            tx.remove(known, "alias")

    def pause(self, session: str | None = None) -> Pause:
        """Capture and inject nothing by itself, in the project or in one session. Explicit commands go on working."""
        if session is not None:
            check_text(session, "The session", MAX_NAME_CHARS)
            session = redact(session).text
        with self._switching() as tx:
            known = next((pause for pause in tx.all(Pause) if pause.session == session), None)
            return known or tx.add(Pause(session=session, since=tx.stamp.at), "pause")

    def resume(self, session: str | None = None) -> bool:
        """End a pause. False: there was none."""
        with self._switching() as tx:
            known = next((pause for pause in tx.all(Pause) if pause.session == session), None)
            if known is not None:
                tx.remove(known, "resume")
            return known is not None

    def is_paused(self, session: str | None = None) -> bool:
        """Whether nothing is captured or injected by itself, here or in that session."""
        self._readable()
        return self._is_off(session)

    def configure(self, name: str, value: str) -> Settings:
        """Change one setting for this project: at once, and in its settings file, if it has one.

        Raises SettingsError, and changes nothing, when the value would be refused.
        """
        storage = self._owned()
        layers = [("settings", as_mapping(self._settings)), ("argument", {name: parse_text(name, value)})]
        changed = resolve(layers).settings
        if (file := self._spaces.settings_file()) is not None:
            set_value(file, name, value)
        self._settings = changed
        self._tell_write(storage, 0)
        return changed

    def allow(self, value: str, note: str = "") -> Allowance:
        """This value looks like a secret and is none: from now on it is stored as it is. Only its digest is kept."""
        if len(value) < 4:
            raise InvalidInput("A value of less than four characters is never taken for a secret.")
        check_text(note, "The note", MAX_NAME_CHARS)
        digest = hashlib.sha256(value.encode("utf-8", "surrogatepass")).hexdigest()
        with self._switching() as tx:
            known = next((one for one in tx.all(Allowance) if one.digest == digest), None)
            return known or tx.add(Allowance(digest=digest, note=redact(note).text), "allow")

    def scan(self, *, fix: bool = False) -> Leaks:
        """Look for secrets in everything that is stored, as a check on what older rules let through.

        `fix` takes them out: the memory keeps its ref, and what it held before is erased from its history, too.
        """
        rules = self._rules()
        leaks: Leaks = []
        for storage in self._readable():
            for memory in list(_everything(storage)):
                redacted = redact_draft(memory.as_draft(), email=rules.redact_email, allow=rules.allow)
                if redacted.redactions:
                    if fix:
                        self._replace_redacted(storage, memory, redacted.draft)
                    leaks.append(Leak(ref=memory.ref, found=redacted.redactions, is_fixed=fix))
            if fix and leaks:
                storage.scrub()
        return leaks

    def _replace_redacted(self, storage: Storage, memory: Memory, draft: Draft) -> None:
        self._check_change(storage.space, memory.kind, f"Redact global memory {memory.ref}?")
        with storage.writing(self._stamp(), urgent=True) as tx:
            current = tx.get(Memory, memory.id)
            if current is None:
                return
            tx.erase(current)
            clean = replace(
                current,
                content=draft.content,
                fingerprint=text.fingerprint(draft.content),
                tags=draft.tags,
                files=draft.files,
                topic=draft.topic,
                key=draft.key,
                title=draft.title,
                source=draft.source or current.source,
                data=draft.data,
                updated_at=tx.stamp.at,
            )
            tx.add(clean, "redact")
        self._tell_write(storage, 0)

    @contextmanager
    def _switching(self) -> Iterator[Transaction]:
        """A turn to write in the opened project's storage, to change a switch there."""
        storage = self._owned()
        with storage.writing(self._stamp()) as tx:
            yield tx
        self._tell_write(storage, 0)

    def _owned(self) -> Storage:
        """The opened project's storage, which this actor may change."""
        if self._actor.role == "skill":
            self._readable()
        storage = self._spaces.ensure_project()
        self._check_change(storage.space, "", "")
        return storage


def _all(storage: Storage, noun: type[R]) -> list[R]:
    with storage.reading() as reader:
        return reader.all(noun)


def _by_uid(reader: Reader, uid: str) -> Memory | None:
    return next(iter(reader.select(replace(ANYWHERE, uid=uid), limit=1)), None)


def _everything(storage: Storage) -> Iterator[Memory]:
    """Every memory, on every shelf, page by page."""
    after = None
    while True:
        with storage.reading() as reader:
            page: Memories = reader.select(ANYWHERE, limit=PAGE, after=after, oldest_first=True)
        if not page:
            return
        yield from page
        after = page[-1].id
