"""The verbs over HTTP, derived from their rows.

A row names a method and a path below the project. Arguments in the path come from there, the others from the query of a
GET or DELETE (one name for each value: `kind=decision&kind=error`), or from the JSON body of the rest. This module adds
what HTTP has besides: pages with a cursor, ETag and If-Match, Idempotency-Key and a stream; `rights` decides what a
key may do. Rule: an argument that a verb does not know is refused by name.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Annotated, Any, NamedTuple, cast

import msgspec
from fastapi import APIRouter, Depends, Request
from fastapi.responses import Response, StreamingResponse

from kept.entrypoints import slash
from kept.entrypoints.http.doors import Asking, Opened
from kept.entrypoints.http.problems import MEDIA_TYPE, problem
from kept.entrypoints.http.rights import KeyedMemory
from kept.entrypoints.http.shapes import answer, document, etag_of, page, returns
from kept.errors import InvalidInput, NotFound
from kept.memory import Kept, verbs
from kept.memory.files import item_document
from kept.memory.verbs.arguments import Argument, build, schema_of, wire_arguments
from kept.memory.verbs.declare import AnyVerb
from kept.model import Conflict, Memory, replace

MOST = 500  # of a page
MAX_CHARS = {"path": 500, "query": 10_000, "body": 1_000_000}  # of a text, where its verb has no limit
MOST_LINE_CHARS = 10_000  # of a slash command, as of a question
LINES = "application/jsonl"
CREATED = 201
IN_PATH = re.compile(r"{(\w+)}")

CREATES = frozenset({"remember", "task", "session", "session.append", "session.fork", "reviews.propose"})
DEFAULTS: Mapping[str, Mapping[str, Any]] = {"sessions": {"limit": 50, "newest_first": True}}
HELP: Mapping[str, str] = {"sessions": "List conversations, newest first."}  # where such a default makes it another
HEADERS: Mapping[str, Mapping[str, str]] = {"remember": {"Idempotency-Key": "key"}, "revise": {"If-Match": ""}}
# Second addresses of a verb, which name one thing in the path, each with the id of its operation.
ALSO: Mapping[str, Mapping[str, str]] = {
    "erase": {"erase.memory": "DELETE /memories/{ref}"},
    "history": {"history.memory": "GET /memories/{ref}/history"},
}


class HttpCall(NamedTuple):
    """One request: what was asked of which memory, and the answer."""

    memory: Kept
    asked: Any
    answer: Any


class Route(NamedTuple):
    """A method and a path, and the arguments of the verb by where they come from."""

    method: str
    path: str
    in_path: Mapping[str, Argument]
    in_query: Mapping[str, Argument]
    in_body: Mapping[str, Argument]


def place_of(verb: AnyVerb, http: str) -> Route:
    """Return where a verb is, and where each of its arguments comes from."""
    method, path = http.split()
    named = IN_PATH.findall(path)
    arguments = wire_arguments(verb.request)
    in_path = {name: _limited(verb, _called(name, arguments), "path") for name in named}
    rest = [one for one in arguments if one.name not in named and one.singular not in named]
    if method in ("GET", "DELETE"):
        return Route(method, path, in_path, {one.singular: _limited(verb, one, "query") for one in rest}, {})
    return Route(method, path, in_path, {}, {one.name: _limited(verb, one, "body") for one in rest})


def _called(name: str, arguments: Sequence[Argument]) -> Argument:
    """Return the argument of that name, or the one that takes several of it."""
    return next(one for one in arguments if name in (one.name, one.singular))


def _limited(verb: AnyVerb, argument: Argument, where: str) -> Argument:
    """Return the argument with the limits and defaults that a server needs."""
    default = DEFAULTS.get(verb.name, {}).get(argument.name, argument.default)
    if argument.name == "limit":
        usual = MOST if default is None else default
        most = min(argument.most or MOST, max(MOST, usual))
        return replace(argument, least=1, most=most, default=default)
    if argument.form == "string" and not argument.choices:
        return replace(argument, default=default, longest=argument.longest or MAX_CHARS[where])
    return replace(argument, default=default)


# Answers


def _plain(call: HttpCall) -> Response:
    return answer(call.answer)


def _one(call: HttpCall) -> Response:
    return answer(call.answer, headers={"ETag": etag_of(call.answer)})


def _page(call: HttpCall) -> Response:
    return answer(page("memories", call.answer, limit=call.asked.limit))


def _sessions(call: HttpCall) -> Response:
    is_full = len(call.answer) >= call.asked.limit
    return answer({"sessions": call.answer, "next": call.answer[-1].name if is_full and call.answer else None})


def _messages(call: HttpCall) -> Response:
    is_full = len(call.answer) >= call.asked.limit
    return answer({"messages": call.answer, "next": str(call.answer[-1].n) if is_full and call.answer else None})


def _side(call: HttpCall, uid: str) -> Memory | None:
    """Return one side of a contradiction; None if it was forgotten or erased since it was settled."""
    with suppress(NotFound):
        return call.memory.get(uid)
    return None


def _conflicts(call: HttpCall) -> Response:
    def with_both(conflict: Conflict) -> dict[str, Any]:
        both = {side: _side(call, getattr(conflict, side)) for side in ("left", "right")}
        return {**document(conflict), **both}

    return answer({"conflicts": [with_both(one) for one in call.answer], "next": None})


def _review(call: HttpCall) -> Response:
    return answer({"findings": list(call.answer), "next": None})


def _items(call: HttpCall) -> Response:
    return answer({"items": list(map(item_document, call.answer)), "next": None})


def _lines(call: HttpCall) -> Response:
    def lines() -> Iterator[bytes]:
        for one in call.answer:
            yield msgspec.json.encode(document(one)) + b"\n"

    return StreamingResponse(lines(), media_type=LINES)


ANSWERS: Mapping[str, Callable[[HttpCall], Response]] = {
    **dict.fromkeys(("get", "revise", "reinforce", "demote", "pin", "unpin", "forget", "restore", "resolve"), _one),
    "list": _page,
    "sessions": _sessions,
    "session.messages": _messages,
    "status": _plain,
    "conflicts": _conflicts,
    "reviews.list": _review,
    "files.items": _items,
    "store.export": _lines,
}


def _answered(verb: AnyVerb, call: HttpCall) -> Response:
    drawn = ANSWERS.get(verb.name)
    if drawn is not None:
        response = drawn(call)
    elif verb.returns.many:
        response = answer({verb.returns.many: list(call.answer), "next": None})
    elif verb.returns.noun is None:
        response = answer({"answer": call.answer})
    else:
        response = _plain(call)
    if verb.name in CREATES and call.answer is not None:
        response.status_code = CREATED
    return response


# From rows to routes


async def _body(request: Request) -> dict[str, Any]:
    """Return the JSON object that a request carries; without a body, an empty one. Raises InvalidInput."""
    text = await request.body()
    if not text:
        return {}
    try:
        given = msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise InvalidInput(f"The body is not JSON: {error}.") from None
    if not isinstance(given, dict):
        raise InvalidInput("The body must be a JSON object with the arguments of the verb.")
    return given


def _given(place: Route, request: Request, body: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of a request by their names there. Raises InvalidInput for one in the wrong place."""
    in_query: dict[str, Any] = {}
    for name, value in request.query_params.multi_items():
        in_query[name] = _from_query(place.in_query.get(name), value, in_query.get(name, ()))
    places = ("the address", in_query, place.in_body, "the body"), ("the body", body, place.in_query, "the address")
    for where, given, elsewhere, other in places:
        for name in place.in_path.keys() & given.keys():
            raise InvalidInput(f"{name} is part of the address.", hint="Give it there only.")
        for name in elsewhere.keys() & given.keys():
            raise InvalidInput(f"{name} was given in {where}.", hint=f"Give it in {other}.")
    return {**in_query, **body, **{name: request.path_params[name] for name in place.in_path}}


def _from_query(argument: Argument | None, value: str, before: Sequence[str]) -> Any:
    """Return a value of the query: text, the list of what was given so far, or an object written as JSON."""
    if argument is not None and argument.is_several:
        return [*before, value]
    if argument is not None and argument.form == "object":
        try:
            return msgspec.json.decode(value)
        except msgspec.DecodeError:
            return value  # which is refused in the words of the verb
    return value


def _keyed(request: Request, memory: Opened, key: Asking) -> Kept:
    return cast(Kept, KeyedMemory(memory, key, request.app.state.doors))


Keyed = Annotated[Kept, Depends(_keyed)]
Body = Annotated[dict[str, Any], Depends(_body)]


def _endpoint(verb: AnyVerb, place: Route) -> Callable[..., Response]:
    known = {**place.in_path, **place.in_query, **place.in_body}

    def endpoint(request: Request, memory: Keyed, body: Body) -> Response:
        given = _given(place, request, body)
        for header, argument in HEADERS.get(verb.name, {}).items():
            if argument and header in request.headers:
                given.setdefault(argument, request.headers[header])
        asked = build(verb.request, given, verb=verb.name, known=known)
        if verb.name == "revise" and (refusal := _changed_since(memory, asked.ref, request)) is not None:
            return refusal
        return _answered(verb, HttpCall(memory, asked, memory.perform(verb, asked)))

    endpoint.__doc__ = " ".join(filter(None, (HELP.get(verb.name, verb.help), verb.details)))
    return endpoint


def _changed_since(memory: Kept, ref: str, request: Request) -> Response | None:
    """Return the refusal of a change whose If-Match names another version of the memory."""
    wanted = request.headers.get("If-Match")
    if wanted is None or wanted in ("*", etag_of(memory.get(ref))):
        return None
    changed = problem(412, f"Memory {ref} has been changed since you read it.", hint="Read it again, then decide.")
    return Response(msgspec.json.encode(changed), status_code=412, media_type=MEDIA_TYPE)


def _described(verb: AnyVerb, place: Route) -> dict[str, Any]:
    """Return the arguments of a route for the OpenAPI document."""
    parameters = [_parameter(name, one, "path") for name, one in place.in_path.items()]
    parameters += [_parameter(name, one, "query") for name, one in place.in_query.items()]
    parameters += [
        {"name": header, "in": "header", "required": False, "schema": {"type": "string"}}
        for header in HEADERS.get(verb.name, {})
    ]
    described: dict[str, Any] = {"parameters": parameters} if parameters else {}
    if place.in_body:
        schema = schema_of(tuple(place.in_body.values()))
        is_required = any(one.is_required for one in place.in_body.values())
        described["requestBody"] = {"required": is_required, "content": {"application/json": {"schema": schema}}}
    return described


def _answers_of(verb: AnyVerb, status: int) -> dict[int | str, dict[str, Any]]:
    """Return the answers of a route for the OpenAPI document."""
    said = verb.returns
    media_type = LINES if verb.name == "store.export" else "application/json"
    noun = None if verb.name in ("files.items", "conflicts") else said.noun  # drawn in fields of their own
    answers = returns(noun, HELP.get(verb.name, said.about), status=status, many=said.many, media_type=media_type)
    if verb.name == "session.append":
        nothing = {"application/json": {"schema": {"type": "null"}}}
        answers[200] = {"description": "Nothing was added: it was there already, or is paused.", "content": nothing}
    return answers


def _parameter(name: str, argument: Argument, where: str) -> dict[str, Any]:
    schema = argument.schema()
    help = schema.pop("description", "")
    if where == "path" and argument.is_several:
        schema = {"type": "string"}
    is_json = where == "query" and argument.form == "object"
    return {
        "name": name,
        "in": where,
        "description": help,
        "required": argument.is_required or where == "path",
        **({"content": {"application/json": {"schema": schema}}} if is_json else {"schema": schema}),
    }


def make_router() -> APIRouter:
    """Return the routes of all verbs that have one."""
    router = APIRouter(prefix="/projects/{project}")
    declared = [
        (verb, operation, place_of(verb, http))
        for verb in verbs.all_verbs()
        if isinstance(verb.http, str)
        for operation, http in _addresses(verb).items()
    ]
    # A path that is spelled out comes before one with a name in its place: /sessions/pack before /sessions/{session}.
    for verb, operation, place in sorted(declared, key=lambda one: IN_PATH.sub("~", one[2].path)):
        status = CREATED if verb.name in CREATES else 200
        router.add_api_route(
            place.path,
            _endpoint(verb, place),
            methods=[place.method],
            name=verb.name,
            operation_id=operation,
            response_class=Response,
            summary=HELP.get(verb.name, verb.help).rstrip("."),
            status_code=status,
            responses=_answers_of(verb, status),
            openapi_extra=_described(verb, place),
        )
    router.add_api_route(
        "/slash",
        _slash,
        methods=["POST"],
        name="slash",
        operation_id="slash",
        summary="Run a slash command, as typed into a chat",
        response_class=Response,
        responses=returns(None, "The answer for the chat, and the same as data."),
        openapi_extra={"requestBody": {"required": True, "content": {"application/json": {"schema": _LINE}}}},
    )
    return router


_LINE = schema_of(
    (Argument(name="line", form="string", help="/memory search deploy", is_required=True, longest=MOST_LINE_CHARS),)
)


def _slash(memory: Keyed, body: Body) -> Response:
    """Run a slash command, as typed into a chat."""
    if set(body) != {"line"} or not isinstance(body["line"], str):
        raise InvalidInput('slash takes the argument line, such as {"line": "/memory search deploy"}.')
    if len(body["line"]) > MOST_LINE_CHARS:
        raise InvalidInput(
            f"line has {len(body['line']):,} characters; the limit is {MOST_LINE_CHARS:,}.",
            hint="Longer texts go to the route of their verb, such as POST /memories.",
        )
    return answer(slash.run(memory, body["line"]))


def _addresses(verb: AnyVerb) -> Mapping[str, str]:
    return {verb.name: str(verb.http), **ALSO.get(verb.name, {})}
