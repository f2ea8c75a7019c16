"""The knowledge graph of the MCP reference server memory, over a project: `kept mcp --graph`.

Nine tools with its names, arguments and answers, so that its users can switch. What they store are memories that every
other agent recalls (`exchange.graph` says how); what they delete is forgotten and can be undone. Rule: an answer shows
what was stored, which is what was sent without its secrets and the spaces around it.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from kept.entrypoints.mcp.graph_arguments import Argument, checked, schema_of
from kept.entrypoints.mcp.surroundings import Surroundings
from kept.entrypoints.mcp.tools import Call, MemoryTool, ToolAnswer
from kept.entrypoints.mcp.views import MemoryView
from kept.errors import InvalidInput
from kept.exchange import graph
from kept.memory import Kept, trust
from kept.memory.documents import Document, Documents
from kept.model import LOW_TRUST, Draft, Source, Trust
from kept.recall.briefing.render import trust_mark
from kept.writing.redact import is_only_redacted, redact_draft

MOST_FOUND = 10
Nodes = dict[str, list[dict[str, Any]]]
Changes = Iterator[Document | str]


def _create_entities(call: Call) -> ToolAnswer:
    own = _Graph(call)
    made: list[dict[str, Any]] = []

    def changes() -> Changes:
        made.clear()
        for given in call.given["entities"]:
            record = own.document(graph.entity(given["name"].strip(), given["entityType"].strip()))
            name, kind = record.value["name"], record.value["type"]
            if own.type_of(name) is not None or name in [one["name"] for one in made]:
                continue
            observed = own.observations(name, kind, given["observations"])
            made.append({"name": name, "entityType": kind, "observations": list(observed)})
            yield record
            yield from observed.values()

    own.apply(changes)
    return _listed("entities", made)


def _create_relations(call: Call) -> ToolAnswer:
    own = _Graph(call)
    made: list[dict[str, Any]] = []

    def changes() -> Changes:
        made.clear()
        for document in own.relations(call.given["relations"]):
            if own.get(document.key) is None:
                made.append(graph.graph_of([(document.value, document.content)])["relations"][0])
                yield document

    own.apply(changes)
    return _listed("relations", made)


def _add_observations(call: Call) -> ToolAnswer:
    own = _Graph(call)
    made: list[dict[str, Any]] = []

    def changes() -> Changes:
        made.clear()
        for given in call.given["observations"]:
            name = given["entityName"].strip()
            if (kind := own.type_of(name)) is None:
                raise InvalidInput(f"Entity with name {name} not found")
            known = own.texts(name)
            # One whose key is taken was corrected by a person since; the old words do not come back.
            added = {
                text: document
                for text, document in own.observations(name, kind, given["contents"]).items()
                if text not in known and own.get(document.key) is None
            }
            made.append({"entityName": name, "addedObservations": list(added)})
            yield from added.values()

    own.apply(changes)
    return _listed("results", made)


def _delete_entities(call: Call) -> ToolAnswer:
    own = _Graph(call)
    names = [name.strip() for name in call.given["entityNames"]]
    own.apply(lambda: (one.key for name in names for one in own.about(name)))
    return _done("Entities deleted successfully")


def _delete_observations(call: Call) -> ToolAnswer:
    own = _Graph(call)

    def changes() -> Changes:
        for given in call.given["deletions"]:
            name, gone = given["entityName"].strip(), {_unmarked(one) for one in given["observations"]}
            keys = [key for text, key in own.texts(name).items() if text in gone]
            if keys:
                yield own.document(graph.entity(name, own.type_of(name) or ""))  # which an import does not store
                yield from keys

    own.apply(changes)
    return _done("Observations deleted successfully")


def _delete_relations(call: Call) -> ToolAnswer:
    own = _Graph(call)
    own.apply(lambda: (one.key for one in own.relations(call.given["relations"])))
    return _done("Relations deleted successfully")


def _read_graph(call: Call) -> ToolAnswer:
    return _nodes(_Graph(call).whole())


def _search_nodes(call: Call) -> ToolAnswer:
    own, wanted = _Graph(call), call.given["query"].lower()
    found = own.part(
        lambda one: any(wanted in text.lower() for text in (one["name"], one["entityType"], *one["observations"]))
    )
    if not found["entities"]:
        names = own.recalled(call.given["query"])
        found = own.part(lambda one: one["name"] in names)
    return _nodes(found)


def _open_nodes(call: Call) -> ToolAnswer:
    names = {name.strip() for name in call.given["names"]}
    return _nodes(_Graph(call).part(lambda one: one["name"] in names))


class _Graph:
    """The graph of the opened project, as one call sees and changes it."""

    def __init__(self, call: Call) -> None:
        around = call.surroundings
        source = Source(origin="agent", agent=around.agent, session=around.session)
        self._memory, self._session = call.memory, around.session
        self._documents = Documents(call.memory.context, graph.COLLECTION, source=source)
        self._rules = call.memory.context.rules()

    def apply(self, changes: Callable[[], Iterable[Document | str]]) -> None:
        """Make all these changes, or none."""
        self._documents.edit(lambda get: list(changes()))

    def get(self, key: str) -> Document | None:
        return self._documents.get(key)

    def whole(self) -> Nodes:
        return _whole(self._documents)

    def part(self, is_wanted: Callable[[dict[str, Any]], bool]) -> Nodes:
        """The entities that are wanted, and the relations that begin or end at one of them."""
        whole = self.whole()
        entities = [one for one in whole["entities"] if is_wanted(one)]
        names = {one["name"] for one in entities}
        relations = [one for one in whole["relations"] if one["from"] in names or one["to"] in names]
        return {"entities": entities, "relations": relations}

    def recalled(self, query: str) -> set[str]:
        """The names of the entities that the memories are about that fit a question."""
        hits = self._memory.recall(query, limit=MOST_FOUND).hits if query.strip() else ()
        values = [(hit.memory.data or {}).get(graph.VALUE, {}) for hit in hits if hit.memory.topic == graph.COLLECTION]
        return {value[field] for value in values for field in ("entity", "from", "to") if field in value}

    def about(self, name: str) -> list[Document]:
        """Everything that is stored about an entity, its relations included."""
        found = self._documents.list(tag=graph.tag_of(name))
        return [one for one in found if name in [one.value.get(field) for field in ("name", "entity", "from", "to")]]

    def type_of(self, name: str) -> str | None:
        """The type of an entity; None if there is none of that name."""
        return next((one.value["type"] for one in self.about(name) if "from" not in one.value), None)

    def texts(self, name: str) -> dict[str, str]:
        """What is observed of an entity, with the key of each."""
        found = [one for one in self.about(name) if "entity" in one.value]
        return {graph.text_of(one.value, one.content): one.key for one in found}

    def observations(self, name: str, kind: str, texts: Sequence[str]) -> dict[str, Document]:
        """What to store for these observations, by the text as it will be read."""
        given = [text.strip() for text in texts if text.strip()]
        trusts = trust.of_texts(self._memory.context, given, "agent", self._session)
        found = [
            self.document(graph.observation(name, kind, text), trusted)
            for text, trusted in zip(given, trusts, strict=True)
        ]
        return {graph.text_of(one.value, one.content): one for one in found}

    def relations(self, given: Sequence[Mapping[str, str]]) -> list[Document]:
        """What to store for these relations, each once."""
        drafts = [graph.relation(*(one[end].strip() for end in ("from", "relationType", "to"))) for one in given]
        trusts = trust.of_texts(self._memory.context, [draft.content for draft in drafts], "agent", self._session)
        return list({one.key: one for one in map(self.document, drafts, trusts)}.values())

    def document(self, draft: Draft, trusted: Trust = "agent") -> Document:
        """The draft as it is stored. Raises InvalidInput where a name is empty, or is without its secrets."""
        ready = graph.keyed(redact_draft(draft, email=self._rules.redact_email, allow=self._rules.allow).draft)
        value = (ready.data or {}).get(graph.VALUE, {})
        names = [value.get(field, "") for field in ("name", "entity", "from", "to") if field in value]
        if ready.key is None or not all(names) or any("[redacted:" in one and is_only_redacted(one) for one in names):
            raise InvalidInput(
                f"{ready.content!r} has no name that can be stored: it is empty, or a secret or an address.",
                hint="Give every entity a name without one.",
            )
        key = ready.key.removeprefix(f"{graph.COLLECTION}:")
        return Document(key=key, value=value, content=ready.content, tags=ready.tags, scope=ready.scope, trust=trusted)


def _whole(documents: Documents) -> Nodes:
    found = sorted(documents.list(), key=lambda one: str(one.created_at))  # what was stored again is at the end
    whole = graph.graph_of((one.value, one.content) for one in found)
    marks = {
        (one.value["entity"], graph.text_of(one.value, one.content)): trust_mark(one.trust)
        for one in found
        if one.trust in LOW_TRUST and "entity" in one.value
    }
    for entity in whole["entities"] if marks else ():
        entity["observations"] = [marks.get((entity["name"], one), "") + one for one in entity["observations"]]
    return whole


def _unmarked(observation: str) -> str:
    """Return an observation as it is stored: an agent that read it with a label may name it with that."""
    text = observation.strip()
    return next((text.removeprefix(mark) for mark in map(trust_mark, LOW_TRUST) if text.startswith(mark)), text)


def _show(memory: Kept, _around: Surroundings) -> str:
    return _json(_whole(Documents(memory.context, graph.COLLECTION)))


def _json(values: Any) -> str:
    return json.dumps(values, ensure_ascii=False, indent=2)


def _listed(name: str, made: list[dict[str, Any]]) -> ToolAnswer:
    return ToolAnswer(_json(made), {name: made})


def _nodes(found: Nodes) -> ToolAnswer:
    return ToolAnswer(_json(found), dict(found))


def _done(message: str) -> ToolAnswer:
    return ToolAnswer(message, {"success": True, "message": message})


def _text(name: str, help: str = "") -> Argument:
    return Argument(name, "string", help, is_required=True)


def _texts(name: str, help: str = "") -> Argument:
    return Argument(name, "strings", help, is_required=True)


def _objects(name: str, *fields: Argument, help: str = "") -> Argument:
    return Argument(name, "objects", help, is_required=True, fields=fields)


_ENTITIES = _objects(
    "entities",
    _text("name", "What the entity is called."),
    _text("entityType", "What it is: person, service, concept …"),
    _texts("observations", "What is known about it, one fact each."),
)
_RELATIONS = _objects(
    "relations",
    _text("from", "The entity that the relation begins at."),
    _text("to", "The entity that it leads to."),
    _text("relationType", "What the first does to the second, in active voice: uses, works_at …"),
)
_OBSERVATIONS = _objects(
    "observations", _text("entityName", "The entity they are about."), _texts("contents", "One fact each.")
)
_DELETIONS = _objects(
    "deletions", _text("entityName", "The entity they are about."), _texts("observations", "The facts, word for word.")
)
_RESULTS = _objects("results", _text("entityName"), _texts("addedObservations"))
_GRAPH = (_ENTITIES, _RELATIONS)
_DONE = (Argument("success", "boolean", "", is_required=True), _text("message"))


def _tool(
    name: str,
    title: str,
    run: Callable[[Call], ToolAnswer],
    arguments: tuple[Argument, ...],
    *,
    answers: tuple[Argument, ...],
    **about: bool,
) -> MemoryTool:
    """Declare a tool of the graph. Like its model, it ignores arguments that it does not know."""

    def checked_first(call: Call) -> ToolAnswer:
        return run(call._replace(given=checked(name, arguments, call.given, is_open=True)))

    schema, output = schema_of(arguments, is_open=True), schema_of(answers)
    return MemoryTool(name, title, checked_first, schema, output=output, **about)


_ALL: Sequence[MemoryTool] = (
    _tool("create_entities", "Create Entities", _create_entities, (_ENTITIES,), answers=(_ENTITIES,)),
    _tool("create_relations", "Create Relations", _create_relations, (_RELATIONS,), answers=(_RELATIONS,)),
    _tool("add_observations", "Add Observations", _add_observations, (_OBSERVATIONS,), answers=(_RESULTS,)),
    _tool(
        "delete_entities",
        "Delete Entities",
        _delete_entities,
        (_texts("entityNames", "Names of the entities."),),
        destroys=True,
        repeats=True,
        answers=_DONE,
    ),
    _tool(
        "delete_observations",
        "Delete Observations",
        _delete_observations,
        (_DELETIONS,),
        destroys=True,
        repeats=True,
        answers=_DONE,
    ),
    _tool(
        "delete_relations",
        "Delete Relations",
        _delete_relations,
        (_RELATIONS,),
        destroys=True,
        repeats=True,
        answers=_DONE,
    ),
    _tool("read_graph", "Read Graph", _read_graph, (), reads=True, answers=_GRAPH),
    _tool(
        "search_nodes",
        "Search Nodes",
        _search_nodes,
        (_text("query", "A text to look for, or 2-6 key words."),),
        reads=True,
        answers=_GRAPH,
    ),
    _tool(
        "open_nodes",
        "Open Nodes",
        _open_nodes,
        (_texts("names", "Names of the entities."),),
        reads=True,
        answers=_GRAPH,
    ),
)
TOOLS: Mapping[str, MemoryTool] = {tool.name: tool for tool in _ALL}
RESOURCES: Mapping[str, MemoryView] = {
    "memory://knowledge-graph": MemoryView(
        "knowledge-graph", "The whole knowledge graph.", _show, mime_type="application/json"
    )
}
