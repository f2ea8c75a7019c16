"""The knowledge graph of the MCP reference server memory, over a project: `kept mcp --graph`.

Nine tools with its names, arguments and answers, so that its users can switch. `kept.memory.knowledge_graph` stores
what they send and says how.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from kept.entrypoints.mcp.calls import Call, MemoryTool, ToolAnswer
from kept.entrypoints.mcp.graph_arguments import GraphArgument, checked, schema_of
from kept.entrypoints.mcp.surroundings import Surroundings
from kept.entrypoints.mcp.views import MemoryView
from kept.memory import Kept
from kept.memory.knowledge_graph import KnowledgeGraph, Nodes


def _create_entities(call: Call) -> ToolAnswer:
    return _listed("entities", _graph(call).create_entities(call.given["entities"]))


def _create_relations(call: Call) -> ToolAnswer:
    return _listed("relations", _graph(call).create_relations(call.given["relations"]))


def _add_observations(call: Call) -> ToolAnswer:
    return _listed("results", _graph(call).add_observations(call.given["observations"]))


def _delete_entities(call: Call) -> ToolAnswer:
    _graph(call).delete_entities(call.given["entityNames"])
    return _done("Entities deleted successfully")


def _delete_observations(call: Call) -> ToolAnswer:
    _graph(call).delete_observations(call.given["deletions"])
    return _done("Observations deleted successfully")


def _delete_relations(call: Call) -> ToolAnswer:
    _graph(call).delete_relations(call.given["relations"])
    return _done("Relations deleted successfully")


def _read_graph(call: Call) -> ToolAnswer:
    return _nodes(_graph(call).whole())


def _search_nodes(call: Call) -> ToolAnswer:
    return _nodes(_graph(call).search(call.given["query"]))


def _open_nodes(call: Call) -> ToolAnswer:
    return _nodes(_graph(call).named(call.given["names"]))


def _graph(call: Call) -> KnowledgeGraph:
    return KnowledgeGraph(call.memory, agent=call.surroundings.agent, session=call.surroundings.session)


def _show(memory: Kept, around: Surroundings) -> str:
    return _json(KnowledgeGraph(memory, agent=around.agent, session=around.session).whole())


def _json(values: Any) -> str:
    return json.dumps(values, ensure_ascii=False, indent=2)


def _listed(name: str, made: list[dict[str, Any]]) -> ToolAnswer:
    return ToolAnswer(_json(made), {name: made})


def _nodes(found: Nodes) -> ToolAnswer:
    return ToolAnswer(_json(found), dict(found))


def _done(message: str) -> ToolAnswer:
    return ToolAnswer(message, {"success": True, "message": message})


def _text(name: str, help: str = "") -> GraphArgument:
    return GraphArgument(name, "string", help)


def _texts(name: str, help: str = "") -> GraphArgument:
    return GraphArgument(name, "strings", help)


def _objects(name: str, *fields: GraphArgument) -> GraphArgument:
    return GraphArgument(name, "objects", fields=fields)


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
_DONE = (GraphArgument("success", "boolean"), _text("message"))


def _tool(
    name: str,
    title: str,
    run: Callable[[Call], ToolAnswer],
    arguments: tuple[GraphArgument, ...],
    *,
    answers: tuple[GraphArgument, ...],
    **about: bool,
) -> MemoryTool:
    """Declare a tool of the graph. Like its model, it ignores arguments that it does not know."""

    def checked_first(call: Call) -> ToolAnswer:
        return run(call._replace(given=checked(name, arguments, call.given)))

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
