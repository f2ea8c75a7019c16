"""The arguments of a verb, read off its request.

A request is a frozen Struct; its annotations are the only place where an argument has its type, limits, choices,
default and line of help. Doors show them (`--help`, JSON Schema, OpenAPI, the reference page) and turn values from
outside into a request with `build`. Only doors and error messages need this module. Rule: a wrong argument is an error
that names it and says what to give instead, in the same words at every door.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from functools import cache
from typing import Any, Literal, TypeVar

import msgspec
from msgspec import Struct, inspect
from msgspec.structs import replace

from kept.errors import InvalidInput
from kept.settings import shown

Form = Literal["string", "integer", "number", "boolean", "moment", "strings", "integers", "object", "objects", "python"]

WORDS: Mapping[Form, str] = {
    "string": "a string",
    "integer": "a whole number",
    "number": "a number",
    "boolean": "true or false",
    "moment": "a datetime with a time zone",
    "strings": "a list of strings",
    "integers": "a list of whole numbers",
    "object": "a dictionary",
    "objects": "a list of objects",
    "python": "a Python object",
}
_SCHEMAS: Mapping[Form, Mapping[str, Any]] = {
    "moment": {"type": "string", "format": "date-time"},
    "strings": {"type": "array", "items": {"type": "string"}},
    "integers": {"type": "array", "items": {"type": "integer"}},
    "objects": {"type": "array", "items": {"type": "object"}},
}

R = TypeVar("R", bound=Struct)


class Argument(Struct, frozen=True, kw_only=True):
    """One argument of a verb."""

    name: str
    form: Form
    help: str = ""
    is_required: bool = False
    default: Any = None
    choices: tuple[str, ...] = ()
    least: float | None = None
    most: float | None = None
    longest: int | None = None
    one: str = ""  # the name of one of several values: `--kind` on the command line, `kind=` in an address
    noun: str = ""  # what a value is, where the name of the argument does not say it: the tier of `to`
    metavar: str = ""
    is_text: bool = False  # typed as several words on the command line and in a chat
    is_positional: bool = False  # typed without its name there

    @property
    def singular(self) -> str:
        """Return the name for one value of the argument."""
        return self.one or self.name

    @property
    def label(self) -> str:
        """Describe the allowed values in a sentence."""
        return self.noun or self.singular.replace("_", " ")

    @property
    def is_several(self) -> bool:
        """Return True if the argument takes several values."""
        return self.form in ("strings", "integers", "objects")

    def schema(self) -> dict[str, Any]:
        """Return the argument as a JSON Schema."""
        schema: dict[str, Any] = dict(_SCHEMAS.get(self.form, {"type": self.form}))
        if self.help:
            schema["description"] = self.help
        if self.choices:
            among = {"enum": list(self.choices)}
            schema |= {"items": {"type": "string"} | among} if self.form == "strings" else among
        default = self.default or None  # nothing, zero and false go without saying
        limits = {"minimum": self.least, "maximum": self.most, "maxLength": self.longest, "default": default}
        return schema | {name: value for name, value in limits.items() if value is not None}

    def says(self, value: Any) -> str:
        """Return the sentence for a value that does not fit."""
        if self.form == "strings" and isinstance(value, list | tuple):
            return self._list_sentence(value)
        if self.choices and isinstance(value, str):
            return f"Unknown {self.label} {shown(value)}."
        if self.form == "number" and (isinstance(value, bool) or not isinstance(value, int | float)):
            return f"{self.name} must be a number, not {type(value).__name__}."
        if self.form in ("integer", "number") and isinstance(value, int | float):
            return self._number_sentence(value)
        if self.form != "string":
            return f"{self.name} must be {WORDS[self.form]}, got {shown(value)}."
        if isinstance(value, str) and self.longest is not None:
            return f"{self.name} has {len(value):,} characters; the limit is {self.longest:,}."
        return f"{self.name} must be a string, not {type(value).__name__}."

    def _list_sentence(self, values: Sequence[Any]) -> str:
        """Return the sentence about the first member of a list that does not fit."""
        for one in values:
            if not isinstance(one, str):
                return f"Each of {self.name} must be a string, not {type(one).__name__}."
            if self.choices and one not in self.choices:
                return f"Unknown {self.label} {shown(one)}."
        return f"{self.name} must be {WORDS[self.form]}."

    def hint(self) -> str:
        """Return the hint for a value that does not fit."""
        if self.choices:
            return f"Choose one of {', '.join(self.choices)}."
        return ""

    def fitted(self, value: Any, name: str) -> Any:
        """Return a value from outside in the form of the argument. Raises InvalidInput beyond the door's limits."""
        value = _eased(self, value)
        if not self._is_within(value):
            raise InvalidInput(replace(self, name=name).says(value))
        if self.choices and isinstance(value, str) and value not in self.choices:
            raise InvalidInput(replace(self, name=name).says(value), hint=self.hint())
        return value

    def _is_within(self, value: Any) -> bool:
        if isinstance(value, str):
            return self.longest is None or len(value) <= self.longest
        if isinstance(value, bool) or not isinstance(value, int | float):
            return True
        return (self.least is None or value >= self.least) and (self.most is None or value <= self.most)

    def _number_sentence(self, value: float) -> str:
        limits = ""
        if self.least is not None:
            limits = f" of {self.least:,} or more" if self.most is None else f" from {self.least:,} to {self.most:,}"
        return f"{self.name} must be {WORDS[self.form]}{limits}, got {value}."


@cache
def arguments_of(request: type[Struct]) -> tuple[Argument, ...]:
    """Return the arguments of a request in the order in which its fields stand."""
    info = inspect.type_info(request)
    assert isinstance(info, inspect.StructType)
    return tuple(map(_argument, info.fields))


def wire_arguments(request: type[Struct]) -> tuple[Argument, ...]:
    """Return the arguments that can come from outside of Python."""
    return tuple(argument for argument in arguments_of(request) if argument.form != "python")


def _argument(field: inspect.Field) -> Argument:
    found: dict[str, Any] = {"extra": {}, "help": ""}
    kind = _plain(field.type, found)
    extra = found["extra"]
    default = None if field.required else field.default
    if field.default_factory is not msgspec.NODEFAULT:
        default = field.default_factory()
    choices = kind.item_type if isinstance(kind, inspect.VarTupleType | inspect.ListType) else kind
    return Argument(
        name=field.name,
        form="python" if extra.get("python") else _form(kind),
        help=found["help"],
        is_required=field.required,
        default=default,
        choices=tuple(map(str, choices.values)) if isinstance(choices, inspect.LiteralType) else (),
        least=getattr(kind, "ge", None),
        most=getattr(kind, "le", None),
        longest=getattr(kind, "max_length", None) if isinstance(kind, inspect.StrType) else None,
        one=extra.get("one", ""),
        noun=extra.get("noun", ""),
        metavar=extra.get("metavar", ""),
        is_text=extra.get("is_text", False),
        is_positional=_is_positional(field, extra),
    )


def _is_positional(field: inspect.Field, extra: Mapping[str, Any]) -> bool:
    if extra.get("is_named"):
        return False
    return field.required or extra.get("is_positional", False) or extra.get("is_text", False)


def _plain(kind: inspect.Type, found: dict[str, Any]) -> inspect.Type:
    """Return the type without annotations and without None; put what the annotations say into `found`."""
    if isinstance(kind, inspect.Metadata):
        found["extra"] = found["extra"] | (kind.extra or {})
        found["help"] = (kind.extra_json_schema or {}).get("description", found["help"])
        return _plain(kind.type, found)
    if isinstance(kind, inspect.UnionType):
        members = [_plain(one, found) for one in kind.types if not isinstance(one, inspect.NoneType)]
        return next((one for one in members if isinstance(one, inspect.StrType)), members[0])  # a ref may be a number
    return kind


def _form(kind: inspect.Type) -> Form:
    forms: tuple[tuple[type[inspect.Type] | tuple[type[inspect.Type], ...], Form], ...] = (
        (inspect.BoolType, "boolean"),
        (inspect.IntType, "integer"),
        (inspect.FloatType, "number"),
        (inspect.DateTimeType, "moment"),
        ((inspect.StrType, inspect.LiteralType), "string"),
        ((inspect.DictType, inspect.StructType), "object"),
    )
    if isinstance(kind, inspect.VarTupleType | inspect.ListType):
        if isinstance(kind.item_type, inspect.IntType):
            return "integers"
        return "objects" if isinstance(kind.item_type, inspect.DictType | inspect.StructType) else "strings"
    return next((form for types, form in forms if isinstance(kind, types)), "python")


def schema_of(arguments: tuple[Argument, ...]) -> dict[str, Any]:
    """Return the arguments as a JSON Schema; always the same text for the same arguments."""
    required = [argument.name for argument in arguments if argument.is_required]
    return {
        "type": "object",
        "properties": {argument.name: argument.schema() for argument in arguments},
        **({"required": required} if required else {}),
        "additionalProperties": False,
    }


def build(request: type[R], given: Mapping[str, Any], *, verb: str, known: Mapping[str, Argument] | None = None) -> R:
    """Make a request of values that came from outside: JSON, or text from an address or a terminal.

    None counts as left out, one string as a list of one. `known`: the arguments of the door by their names there, where
    they differ from those of the request. Raises InvalidInput for an argument that is unknown, missing or wrong.
    """
    if known is None:
        known = {one.name: one for one in wire_arguments(request)}
    _check_names(verb, given, known)
    values: dict[str, Any] = {}
    for name, argument in known.items():
        value = given.get(name)
        if value is None and argument.is_required:
            raise InvalidInput(f"{verb} needs the argument {name}.", hint=argument.help)
        value = argument.default if value is None else argument.fitted(value, name)
        if value is not None:
            values[argument.name] = value
    return _converted(request, values, {argument.name: name for name, argument in known.items()})


def _check_names(verb: str, given: Iterable[str], known: Mapping[str, Argument]) -> None:
    """Raise InvalidInput for the first name that a verb does not know."""
    unknown = next((name for name in given if name not in known), None)
    if unknown is not None:
        hint = f"It takes {', '.join(known)}." if known else "It takes no arguments."
        raise InvalidInput(f"{verb} has no argument {shown(unknown)}.", hint=hint)


def _converted(request: type[R], values: dict[str, Any], names: Mapping[str, str] | None = None) -> R:
    try:
        return msgspec.convert(values, request)
    except msgspec.ValidationError as error:
        raise explained(error, request, values, names) from None


def explained(
    error: msgspec.ValidationError,
    request: type[Struct],
    values: Mapping[str, Any],
    names: Mapping[str, str] | None = None,
) -> InvalidInput:
    """Say in our words why values do not fit a request. `names`: of arguments that the door calls otherwise."""
    named = re.search(r"at `\$\.(\w+)", str(error))
    argument = next((one for one in arguments_of(request) if named and one.name == named[1]), None)
    if argument is None:
        return InvalidInput(f"{error}.")
    shown_as = replace(argument, name=(names or {}).get(argument.name, argument.name))
    return InvalidInput(shown_as.says(values.get(argument.name)), hint=argument.hint())


def _eased(argument: Argument, value: Any) -> Any:
    """Return the value in the form of the argument, where it can only mean that."""
    if isinstance(value, str):
        read = _FROM_TEXT.get(argument.form)
        return value if read is None else read(value)
    if argument.form == "integers" and isinstance(value, list | tuple):
        return [_whole_number(one) if isinstance(one, str) else one for one in value]
    is_id = argument.form == "string" and isinstance(value, int) and not isinstance(value, bool)
    return str(value) if is_id else value  # an id is a number to a model


def _whole_number(value: str) -> int | str:
    return int(value[:18]) if value.isascii() and value.removeprefix("-").isdigit() else value


def _number(value: str) -> float | str:
    try:
        return float(value)
    except ValueError:
        return value


def _truth(value: str) -> bool | str:
    return {"true": True, "false": False}.get(value.lower(), value)


def _moment(value: str) -> datetime | str:
    try:
        return datetime.fromisoformat(value)
    except ValueError:
        return value


# How text becomes a value; text that does not fit stays as it is, and is refused with the request.
_FROM_TEXT: Mapping[Form, Callable[[str], Any]] = {
    "integer": _whole_number,
    "number": _number,
    "boolean": _truth,
    "moment": _moment,
    "strings": lambda value: [value],
    "integers": lambda value: [_whole_number(one) for one in value.replace(",", " ").split()],
    "objects": lambda value: [value],
}
