"""A knowledge graph over a project: entities, observations and relations, for `kept mcp --graph`.

Whatever is stored here is a memory that every other agent recalls (`exchange.graph` says how), and whatever is deleted
is forgotten and can be undone. Rule: an answer shows the stored form, which is the text that was sent without its
secrets and the spaces around it.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from kept.errors import InvalidInput
from kept.exchange import graph
from kept.memory import Kept
from kept.memory.brief import trust_mark
from kept.memory.documents import Document
from kept.model import LOW_TRUST, Draft, Source, Trust
from kept.writing.redact import is_only_redacted

MOST_FOUND = 10
Node = dict[str, Any]
Nodes = dict[str, list[Node]]
Changes = Iterator[Document | str]


class KnowledgeGraph:
    """The graph of the opened project, as one agent sees and changes it in one session."""

    def __init__(self, memory: Kept, *, agent: str, session: str | None) -> None:
        source = Source(origin="agent", agent=agent, session=session)
        self._memory, self._session = memory, session
        self._documents = memory.documents(graph.COLLECTION, source=source)
        self._redacted = self._documents.redactor()

    # Reading

    def whole(self) -> Nodes:
        """Return all entities with their observations, and all relations. Words of low trust have a label."""
        found = sorted(self._documents.list(), key=lambda one: str(one.created_at))  # stored again: at the end
        whole = graph.graph_of((one.value, one.content) for one in found)
        marks = {
            (one.value["entity"], graph.text_of(one.value, one.content)): trust_mark(one.trust)
            for one in found
            if one.trust in LOW_TRUST and "entity" in one.value
        }
        for entity in whole["entities"] if marks else ():
            entity["observations"] = [marks.get((entity["name"], one), "") + one for one in entity["observations"]]
        return whole

    def named(self, names: Iterable[str]) -> Nodes:
        """Return the entities of these names, and the relations that begin or end at one of them."""
        wanted = {name.strip() for name in names}
        return self._part(lambda one: one["name"] in wanted)

    def search(self, query: str) -> Nodes:
        """Return the entities that hold this text; if there are none, those that memories about the query name."""
        wanted = query.lower()
        found = self._part(
            lambda one: any(wanted in text.lower() for text in (one["name"], one["entityType"], *one["observations"]))
        )
        return found if found["entities"] else self.named(self._recalled(query))

    # Changing: all of a call, or nothing

    def create_entities(self, given: Sequence[Mapping[str, Any]]) -> list[Node]:
        """Store entities with their observations, and return those that are new."""
        made: list[Node] = []

        def changes() -> Changes:
            made.clear()
            for one in given:
                record = self._document(graph.entity(one["name"].strip(), one["entityType"].strip()))
                name, kind = record.value["name"], record.value["type"]
                if self._type_of(name) is not None or name in [other["name"] for other in made]:
                    continue
                observed = self._observations(name, kind, one["observations"])
                made.append({"name": name, "entityType": kind, "observations": list(observed)})
                yield record
                yield from observed.values()

        self._apply(changes)
        return made

    def create_relations(self, given: Sequence[Mapping[str, str]]) -> list[Node]:
        """Store relations, and return those that are new."""
        made: list[Node] = []

        def changes() -> Changes:
            made.clear()
            for document in self._relations(given):
                if self._documents.get(document.key) is None:
                    made.append(graph.graph_of([(document.value, document.content)])["relations"][0])
                    yield document

        self._apply(changes)
        return made

    def add_observations(self, given: Sequence[Mapping[str, Any]]) -> list[Node]:
        """Store observations of known entities, and return the new ones. Raises InvalidInput for an unknown entity."""
        made: list[Node] = []

        def changes() -> Changes:
            made.clear()
            for one in given:
                name = one["entityName"].strip()
                added = self._new_observations(name, one["contents"])
                made.append({"entityName": name, "addedObservations": list(added)})
                yield from added.values()

        self._apply(changes)
        return made

    def delete_entities(self, names: Sequence[str]) -> None:
        """Forget entities, with everything that is observed of them and their relations."""
        self._apply(lambda: (one.key for name in names for one in self._about(name.strip())))

    def delete_observations(self, given: Sequence[Mapping[str, Any]]) -> None:
        """Forget observations, and keep their entities."""

        def changes() -> Changes:
            for one in given:
                name, gone = one["entityName"].strip(), {_unmarked(text) for text in one["observations"]}
                keys = [key for text, key in self._texts(name).items() if text in gone]
                if keys:  # an import does not store the entity itself
                    yield self._document(graph.entity(name, self._type_of(name) or ""))
                    yield from keys

        self._apply(changes)

    def delete_relations(self, given: Sequence[Mapping[str, str]]) -> None:
        """Forget relations."""
        self._apply(lambda: (one.key for one in self._relations(given)))

    def _apply(self, changes: Callable[[], Iterable[Document | str]]) -> None:
        self._documents.edit(lambda get: list(changes()))

    def _part(self, is_wanted: Callable[[Node], bool]) -> Nodes:
        whole = self.whole()
        entities = [one for one in whole["entities"] if is_wanted(one)]
        names = {one["name"] for one in entities}
        relations = [one for one in whole["relations"] if one["from"] in names or one["to"] in names]
        return {"entities": entities, "relations": relations}

    def _recalled(self, query: str) -> set[str]:
        """Return the names of the entities in the memories that fit a question."""
        hits = self._memory.recall(query, limit=MOST_FOUND).hits if query.strip() else ()
        values = [(hit.memory.data or {}).get(graph.VALUE, {}) for hit in hits if hit.memory.topic == graph.COLLECTION]
        return {value[field] for value in values for field in ("entity", "from", "to") if field in value}

    def _about(self, name: str) -> list[Document]:
        """Return everything that is stored about an entity, its relations included."""
        found = self._documents.list(tag=graph.tag_of(name))
        return [one for one in found if name in [one.value.get(field) for field in ("name", "entity", "from", "to")]]

    def _type_of(self, name: str) -> str | None:
        """Return the type of an entity; None if there is none of that name."""
        return next((one.value["type"] for one in self._about(name) if "from" not in one.value), None)

    def _texts(self, name: str) -> dict[str, str]:
        """Return the observations of an entity, with the key of each."""
        found = [one for one in self._about(name) if "entity" in one.value]
        return {graph.text_of(one.value, one.content): one.key for one in found}

    def _new_observations(self, name: str, texts: Sequence[str]) -> dict[str, Document]:
        if (kind := self._type_of(name)) is None:
            raise InvalidInput(f"Entity with name {name} not found")
        known = self._texts(name)
        # An observation whose key is taken was corrected by a person since; the old words do not come back.
        return {
            text: document
            for text, document in self._observations(name, kind, texts).items()
            if text not in known and self._documents.get(document.key) is None
        }

    def _observations(self, name: str, kind: str, texts: Sequence[str]) -> dict[str, Document]:
        """Return the documents of these observations, by the text as it will be read."""
        given = [text.strip() for text in texts if text.strip()]
        trusts = self._documents.trusts(given, self._session)
        found = [
            self._document(graph.observation(name, kind, text), trusted)
            for text, trusted in zip(given, trusts, strict=True)
        ]
        return {graph.text_of(one.value, one.content): one for one in found}

    def _relations(self, given: Sequence[Mapping[str, str]]) -> list[Document]:
        """Return the documents of these relations, each once."""
        drafts = [graph.relation(*(one[end].strip() for end in ("from", "relationType", "to"))) for one in given]
        trusts = self._documents.trusts([draft.content for draft in drafts], self._session)
        return list({one.key: one for one in map(self._document, drafts, trusts)}.values())

    def _document(self, draft: Draft, trusted: Trust = "agent") -> Document:
        """Return the document of a draft. Raises InvalidInput where a name is empty, or nothing but a secret."""
        ready = graph.keyed(self._redacted(draft))
        value = (ready.data or {}).get(graph.VALUE, {})
        names = [value.get(field, "") for field in ("name", "entity", "from", "to") if field in value]
        if ready.key is None or not all(names) or any("[redacted:" in one and is_only_redacted(one) for one in names):
            raise InvalidInput(
                f"{ready.content!r} has no name that can be stored: it is empty, or a secret or an address.",
                hint="Give every entity a name without one.",
            )
        key = ready.key.removeprefix(f"{graph.COLLECTION}:")
        return Document(key=key, value=value, content=ready.content, tags=ready.tags, scope=ready.scope, trust=trusted)


def _unmarked(observation: str) -> str:
    """Return an observation as it is stored: an agent that read it with a label may name it with that."""
    text = observation.strip()
    return next((text.removeprefix(mark) for mark in map(trust_mark, LOW_TRUST) if text.startswith(mark)), text)
