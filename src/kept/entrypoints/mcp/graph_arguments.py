"""The arguments of the graph's tools: declared once, shown to the client as a JSON schema, and checked in each call.

All are required, as in the server that the graph stands in for; others are ignored. Rule: a wrong argument is an error
that says what to send instead, because a model reads it and tries again.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, NamedTuple

from kept.errors import InvalidInput
from kept.settings import shown

Type = Literal["string", "boolean", "strings", "objects"]

_FITS: Mapping[Type, tuple[str, Callable[[Any], bool]]] = {
    "string": ("a string", lambda value: isinstance(value, str)),
    "boolean": ("true or false", lambda value: isinstance(value, bool)),
    "strings": ("a list of strings", lambda value: _is_list_of(value, str)),
    "objects": ("a list of objects", lambda value: _is_list_of(value, Mapping)),
}


class GraphArgument(NamedTuple):
    """One argument. `fields`: those of each of its objects."""

    name: str
    type: Type
    help: str = ""
    fields: tuple["GraphArgument", ...] = ()

    def schema(self, *, is_open: bool = False) -> dict[str, Any]:
        """Return this argument as a JSON schema."""
        schema: dict[str, Any] = {"type": self.type} | ({"description": self.help} if self.help else {})
        if self.type == "strings":
            schema |= {"type": "array", "items": {"type": "string"}}
        elif self.type == "objects":
            schema |= {"type": "array", "items": schema_of(self.fields, is_open=is_open)}
        return schema


def schema_of(arguments: Sequence[GraphArgument], *, is_open: bool = False) -> dict[str, Any]:
    """Return arguments as a JSON schema; always the same for the same arguments. `is_open`: others may come."""
    return {
        "type": "object",
        "properties": {argument.name: argument.schema(is_open=is_open) for argument in arguments},
        "required": [argument.name for argument in arguments],
    } | ({} if is_open else {"additionalProperties": False})


def checked(tool: str, arguments: Sequence[GraphArgument], given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the value of every argument. Raises InvalidInput, for a model to read, when one is missing or wrong."""
    return {argument.name: _value(tool, argument, given.get(argument.name)) for argument in arguments}


def _value(tool: str, argument: GraphArgument, given: Any) -> Any:
    if given is None:
        raise InvalidInput(f"{tool} needs the argument {argument.name}.", hint=f"{argument.help}")
    value = _as_meant(argument.type, given)
    wanted, fits = _FITS[argument.type]
    if not fits(value):
        raise InvalidInput(f"{argument.name} must be {wanted}, not {shown(value)}.")
    if argument.type == "objects":
        return [checked(f"Each object in {argument.name}", argument.fields, one) for one in value]
    return value


def _as_meant(type: Type, value: Any) -> Any:
    """Return a value as a model meant it: one string for a list of one, a number for the string of its digits."""
    if type == "strings" and isinstance(value, str):
        return [value]
    is_number = isinstance(value, int) and not isinstance(value, bool)
    return str(value) if type == "string" and is_number else value


def _is_list_of(value: Any, type: type) -> bool:
    return isinstance(value, list) and all(isinstance(one, type) for one in value)
