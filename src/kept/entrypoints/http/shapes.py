"""Values as JSON, and their schemas for the OpenAPI document.

The nouns of the library describe themselves: msgspec writes them and their JSON Schemas, so that no second set of
classes has to agree with the first. Rule: a ref stands in every document that has one, because verbs take refs.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from starlette.responses import Response

from kept.freshness import without_code
from kept.memory.verbs import all_verbs
from kept.model import Event, Hit, Memory, Miss

REF = "#/components/schemas/{name}"


def document(value: Any) -> Any:
    """The value as plain JSON, with the ref of everything that has one."""
    if isinstance(value, Event):
        return {name: part for name, part in msgspec.to_builtins(value).items() if name != "salt"}
    if isinstance(value, Memory):
        value = without_code(value)
    if isinstance(value, msgspec.Struct):
        fields = {name: document(getattr(value, name)) for name in value.__struct_fields__}
        ref = getattr(value, "ref", None)
        return {"ref": ref, **fields} if ref is not None else fields
    if isinstance(value, Mapping):
        return {str(name): document(part) for name, part in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [document(part) for part in value]
    return msgspec.to_builtins(value)


def answer(value: Any, *, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    """The value as the body of a response."""
    body = msgspec.json.encode(document(value))
    return Response(body, status_code=status, media_type="application/json", headers=headers)


def etag_of(memory: Memory) -> str:
    """The name of this version of a memory."""
    return f'"{memory.id}-{memory.updated_at:%Y%m%d%H%M%S%f}-{memory.feedback}"'


def page(name: str, values: Sequence[Any], *, limit: int) -> dict[str, Any]:
    """A page of a list; `next` is the cursor of the page after it, or null."""
    is_full = len(values) >= limit > 0
    return {name: values, "next": values[-1].ref if is_full else None}


def schemas() -> dict[str, Any]:
    """The JSON Schemas of the nouns, for `components`."""
    nouns = dict.fromkeys(verb.returns.noun for verb in all_verbs() if verb.returns.noun is not None)
    _, components = msgspec.json.schema_components([Hit, Miss, *nouns], ref_template=REF)
    for schema in components.values():
        schema.pop("required", None)
    return dict(components)


def returns(
    noun: type[Any] | None, about: str, *, status: int = 200, many: str = "", media_type: str = "application/json"
) -> dict[int | str, dict[str, Any]]:
    """What a verb answers, for the OpenAPI document: a noun, or a page of them under the name `many`."""
    schema: dict[str, Any] = {"type": "object"} if noun is None else {"$ref": REF.format(name=noun.__name__)}
    if many:
        listed = {many: {"type": "array", "items": schema}, "next": {"type": ["string", "null"]}}
        schema = {"type": "object", "properties": listed, "required": [many]}
    return {status: {"description": about, "content": {media_type: {"schema": schema}}}}
