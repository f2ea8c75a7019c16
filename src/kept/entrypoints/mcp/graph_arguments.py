"""The arguments of a tool: declared once, shown to the client as a JSON schema, and checked when a call comes in.

Rule: a wrong argument is an error that says what to send instead, because a model reads it and tries again.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple

from kept.errors import InvalidInput
from kept.settings import shown

Type = Literal["string", "integer", "number", "boolean", "strings", "objects"]

_PYTHON: Mapping[str, type | tuple[type, ...]] = {
    "string": str,
    "integer": int,
    "number": (int, float),
    "boolean": bool,
    "strings": list,
    "objects": list,
}
_WORDS: Mapping[str, str] = {
    "string": "a string",
    "integer": "a whole number",
    "number": "a number",
    "boolean": "true or false",
    "strings": "a list of strings",
    "objects": "a list of objects",
}


class Argument(NamedTuple):
    """One argument. `default` None: it may be left out, and the tool decides. `alias`: a name that is taken as well.

    `fields`: what each of its objects has.
    """

    name: str
    type: Type
    help: str
    is_required: bool = False
    default: Any = None
    choices: tuple[str, ...] = ()
    least: int | None = None
    most: int | None = None
    alias: str = ""
    fields: tuple["Argument", ...] = ()

    def schema(self, *, is_open: bool = False) -> dict[str, Any]:
        """This argument as a JSON schema."""
        schema: dict[str, Any] = {"type": self.type} | ({"description": self.help} if self.help else {})
        if self.type in ("strings", "objects"):
            items = schema_of(self.fields, is_open=is_open) if self.type == "objects" else {"type": "string"}
            schema |= {"type": "array", "items": items}
        if self.choices:
            schema["enum"] = list(self.choices)
        limits = {"minimum": self.least, "maximum": self.most, "default": self.default}
        return schema | {name: value for name, value in limits.items() if value is not None}


def schema_of(arguments: Sequence[Argument], *, is_open: bool = False) -> dict[str, Any]:
    """The arguments of a tool as a JSON schema; always the same for the same arguments. `is_open`: others may come."""
    return {
        "type": "object",
        "properties": {argument.name: argument.schema(is_open=is_open) for argument in arguments},
        "required": [argument.name for argument in arguments if argument.is_required],
    } | ({} if is_open else {"additionalProperties": False})


def checked(
    tool: str, arguments: Sequence[Argument], given: Mapping[str, Any], *, is_open: bool = False
) -> dict[str, Any]:
    """The value of every argument. Raises InvalidInput, for a model to read, when one is missing, unknown or wrong.

    `is_open`: an unknown one is left out.
    """
    known = {argument.name: argument for argument in arguments}
    aliases = {argument.alias for argument in arguments if argument.alias}
    for name in given:
        if name not in known and name not in aliases and not is_open:
            raise InvalidInput(f"{tool} has no argument {shown(name)}.", hint=f"It takes {', '.join(known) or 'none'}.")
    return {
        name: _value(tool, argument, given.get(name, given.get(argument.alias))) for name, argument in known.items()
    }


def _value(tool: str, argument: Argument, value: Any) -> Any:
    if value is None:  # also where a client sends null for what was left out
        if argument.is_required:
            raise InvalidInput(f"{tool} needs the argument {argument.name}.", hint=f"{argument.help}")
        return argument.default
    if argument.type == "strings" and isinstance(value, str):
        value = [value]
    if argument.type == "string" and isinstance(value, int) and not isinstance(value, bool):
        value = str(value)  # an id is a number to a model
    if argument.type == "integer" and isinstance(value, str) and value.isascii() and value.isdigit():
        value = int(value[:18])
    is_right = isinstance(value, _PYTHON[argument.type]) and (argument.type == "boolean" or not isinstance(value, bool))
    if argument.type == "strings":
        is_right = is_right and all(isinstance(one, str) for one in value)
    if argument.type == "objects":
        is_right = is_right and all(isinstance(one, Mapping) for one in value)
    if not is_right:
        raise InvalidInput(f"{argument.name} must be {_WORDS[argument.type]}, not {shown(value)}.")
    if argument.type == "objects":
        return [checked(f"Each object in {argument.name}", argument.fields, one, is_open=True) for one in value]
    if argument.choices and value not in argument.choices:
        raise InvalidInput(
            f"Unknown {argument.name} {shown(value)}.", hint=f"Choose from {', '.join(argument.choices)}."
        )
    if argument.least is not None and value < argument.least:
        raise InvalidInput(f"{argument.name} must be at least {argument.least}, got {value}.")
    if argument.most is not None and value > argument.most:
        raise InvalidInput(f"{argument.name} must be at most {argument.most}, got {value}.")
    return value
