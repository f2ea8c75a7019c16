"""Documents: values that a program keeps under keys of its own, as the stores of agent frameworks do.

A document is a memory whose `data` has the value, and whose text has its words, so that recall, undo, export and erase
treat it like any other. Rule: nothing is judged. A document is stored as it is given, without its secrets, and takes
the place of the one with its key; the program decides what is worth keeping.
"""

import hashlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from msgspec import Struct

from kept.errors import InvalidInput
from kept.memory import read, trust
from kept.memory.context import Context
from kept.memory.write import place
from kept.model import Draft, Event, Memory, Scope, Source, Trust, replace
from kept.ports import Reader, Transaction, Where
from kept.recall import Request
from kept.writing import pipeline
from kept.writing.redact import redact

VALUE, LASTS, EXPIRES = "value", "lasts_minutes", "expires_at"  # in the data of the memory
BATCH = 500
MOST_FOUND = 1_000
_DIGEST = re.compile(r"id-[0-9a-f]{32}")


class Document(Struct, frozen=True, kw_only=True):
    """A value under a key. `content` has the words by which it is found, `score` how well they fit a question.

    `trust`: whose words the content is made of, when it is stored; None: as its source says. `lasts_minutes`: it is
    gone so long after it was stored, or last touched. One of scope "sources" is not recalled among memories.
    """

    key: str
    value: dict[str, Any]
    content: str = ""
    tags: tuple[str, ...] = ()
    kind: str = "fact"
    scope: Scope = "memory"
    trust: Trust | None = None
    lasts_minutes: float | None = None
    created_at: datetime | None = None
    updated_at: datetime | None = None
    score: float | None = None


Get = Callable[[str], Document | None]


def storable_id(id: str) -> str:
    """Return an id of a person or a program; one that redaction would take out of a document, as its digest.

    An e-mail address or `auth0|5f7c…` could not be found again, or would be the same for all users. An id that is
    written like a digest has one as well, so that no user reads the memories of another by that name.
    """
    forms = (id, f"user_id:{id}", f'{{"user_id":"{id}"}}')
    if not _DIGEST.fullmatch(id) and not any(redact(form).found for form in forms):
        return id
    return f"id-{hashlib.sha256(id.encode('utf-8', 'surrogatepass')).hexdigest()[:32]}"


def _with_rest(first: Sequence[Document], rest: Sequence[Document]) -> Sequence[Document]:
    """Return the first documents and then the others, whose scores are brought below those of the first."""
    known, least = {one.key for one in first}, min((one.score or 0.0 for one in first), default=1.0)
    best = max((one.score or 0.0 for one in rest), default=0.0) or 1.0
    others = [replace(one, score=least * (one.score or 0.0) / best) for one in rest if one.key not in known]
    return [*first, *others]


def hidden_ids(given: Mapping[str, Any]) -> dict[str, str]:
    """Return the ids that are stored as a digest, by their names, as the program wrote them."""
    ids = {name: str(id).strip() for name, id in given.items() if id is not None}
    return {name: id for name, id in ids.items() if storable_id(id) != id}


class Documents:
    """The documents of one collection in the opened project. Keys and tags are the collection's own.

    `source`: of what is stored from now on, where more is known than who acts.
    """

    def __init__(self, context: Context, collection: str, *, source: Source | None = None) -> None:
        self._context = context
        self._collection = collection
        self._source = source

    def apply(self, changes: Iterable[Document | str]) -> None:
        """Store these documents, and forget those whose keys are given: all in one transaction, one call to undo."""
        changes = list(changes)
        if changes:
            self.edit(lambda get: changes)

    def edit(self, change: Callable[[Get], Iterable[Document | str]]) -> None:
        """As `apply`, with the changes that `change` makes of the documents as they are in the transaction.

        It may be called again, and raise an error: then nothing is changed.
        """
        rules, storage = self._context.rules(), self._context.owned()

        def work(tx: Transaction) -> int:
            wanted = change(lambda key: self._document_at(tx, key))
            ready = [self._ready(one, rules) if isinstance(one, Document) else self._key(one) for one in wanted]
            to = place(storage, tx.stamp.at)
            return sum(
                _forget(tx, one) if isinstance(one, str) else _put(tx, pipeline.to_memory(one, to)) for one in ready
            )

        self._context.tell_write(storage, self._context.write(storage, work))

    def touch(self, keys: Sequence[str]) -> None:
        """Begin the time of these documents again, of those that end at all."""

        def work(tx: Transaction) -> None:
            for memory in (_by_key(tx, self._key(key)) for key in keys):
                if memory is not None and not self._is_gone(memory) and LASTS in (memory.data or {}):
                    tx.put(replace(memory, data=_lasting(memory.data or {}, tx.stamp.at)), "touch")

        if keys:
            self._context.write(self._context.owned(), work)

    def get(self, key: str) -> Document | None:
        """The document with that key, or None."""
        storage = self._context.spaces.project()
        self._context.readable()
        if storage is None:
            return None
        with storage.reading() as reader:
            return self._document_at(reader, key)

    def list(self, *, tag: str | None = None) -> Iterator[Document]:
        """Every document, or those with that tag, in the order in which they were first stored."""
        self._context.readable()
        storage = self._context.spaces.project()
        last = 0
        while storage is not None:
            with storage.reading() as reader:
                where = Where(shelf="any", scope=None, topic=self._collection, tags=() if tag is None else (tag,))
                page = reader.select(where, limit=BATCH, after=last, oldest_first=True)
            yield from (self._to_document(memory) for memory in page if not self._is_gone(memory))
            if len(page) < BATCH:
                return
            last = page[-1].id

    def search(
        self, query: str, *, tag: str | None = None, limit: int = 10, has_floor: bool = False
    ) -> Sequence[Document]:
        """Return the documents that share words with the query, best first: all that do, without a floor.

        Where vectors are on, also those with a near meaning. `has_floor`: those that `recall` would give, each scored
        by how likely it answers, from 0 to 1, whether by words or by vectors.
        """
        wanted, most = self._collection if tag is None else tag, min(limit, MOST_FOUND)
        by_words = Request(query=query, limit=most, profile="praxis", tags=(wanted,), has_exact_tags=True)
        if has_floor:
            return self._found(replace(by_words, profile=None), is_confidence=True)
        found = self._found(by_words)
        if self._context.settings.search_provider == "hybrid":
            found = _with_rest(self._found(replace(by_words, profile=None)), found)[:most]
        return found

    def _found(self, request: Request, *, is_confidence: bool = False) -> Sequence[Document]:
        return [
            replace(self._to_document(hit.memory), score=hit.confidence if is_confidence else hit.score)
            for hit in read.recall(self._context, request).hits
            if hit.memory.topic == self._collection and not self._is_gone(hit.memory)
        ]

    def history(self, key: str) -> Sequence[Event]:
        """The events of a document, oldest first, also of a deleted one."""
        self._context.readable()
        storage = self._context.spaces.project()
        if storage is None:
            return []
        with storage.reading() as reader:
            memory = _by_key(reader, self._key(key))
            return [] if memory is None else reader.events(subject=memory.uid)

    def trusts(self, texts: Sequence[str], session: str | None) -> Sequence[Trust]:
        """Return the trust of each text that an agent writes in this session: less where it repeats a tool's words."""
        return trust.of_texts(self._context, texts, "agent", session)

    def redactor(self) -> Callable[[Draft], Draft]:
        """Return a function that takes the secrets out of a draft, by the rules as they are now."""
        rules = self._context.rules()
        return lambda draft: rules.redacted(draft).draft

    def _document_at(self, reader: Reader, key: str) -> Document | None:
        memory = _by_key(reader, self._key(key))
        return None if memory is None or self._is_gone(memory) else self._to_document(memory)

    def _ready(self, document: Document, rules: pipeline.WriteRules) -> pipeline.Ready:
        data: dict[str, Any] = {VALUE: document.value}
        if document.lasts_minutes is not None:
            data = _lasting(data | {LASTS: document.lasts_minutes}, self._context.now())
        draft = Draft(
            content=document.content.strip() or document.key,
            kind=document.kind,
            scope=document.scope,
            trust=document.trust,
            source=self._source,
            tags=(self._collection, *document.tags),
            topic=self._collection,
            key=self._key(document.key),
            data=data,
        )
        ready = pipeline.take(draft, rules)
        if ready.draft.key != draft.key or ready.draft.data is None or VALUE not in ready.draft.data:
            raise InvalidInput(
                f"The key {ready.draft.key} looks like a secret, so nothing can be stored under it.",
                hint="Use another key; for an e-mail address or an id such as auth0|5f7c…, a digest of it.",
            )
        return ready

    def _key(self, key: str) -> str:
        return f"{self._collection}:{key}"

    def _is_gone(self, memory: Memory) -> bool:
        """Whether it was deleted or has expired. What upkeep archived, the program still has."""
        ends = (memory.data or {}).get(EXPIRES)
        return memory.is_forgotten or (ends is not None and datetime.fromisoformat(ends) <= self._context.now())

    def _to_document(self, memory: Memory) -> Document:
        data = memory.data or {}
        return Document(
            key=(memory.key or "").removeprefix(f"{self._collection}:"),
            value=data.get(VALUE, {}),
            content=memory.content,
            tags=memory.tags,
            kind=memory.kind,
            scope=memory.scope,
            trust=memory.trust if memory.is_low_trust else None,  # which it keeps when it is stored again
            lasts_minutes=data.get(LASTS),
            created_at=memory.created_at,
            updated_at=memory.updated_at,
        )


def _lasting(data: dict[str, Any], now: datetime) -> dict[str, Any]:
    return data | {EXPIRES: (now + timedelta(minutes=data[LASTS])).isoformat()}


def _put(tx: Transaction, memory: Memory) -> int:
    known = _by_key(tx, memory.key or "")
    if known is None:
        tx.add(memory, "remember")
        return 1
    began = memory.created_at if known.is_forgotten else known.created_at
    tx.put(replace(memory, id=known.id, uid=known.uid, created_at=began), "revise")
    return int(known.is_archived)


def _forget(tx: Transaction, key: str) -> int:
    known = _by_key(tx, key)
    if known is None or known.is_forgotten:
        return 0
    tx.put(known.archived("forgotten", tx.stamp.at), "forget")
    return -int(not known.is_archived)


def _by_key(reader: Reader, key: str) -> Memory | None:
    return next(iter(reader.select(Where(shelf="any", scope=None, key=key), limit=1)), None)
