"""JSON for a hook: input and answer, without importing `json`, which takes half as long as the start of Python.

That module loads regular expressions, which the inputs of hooks do not need. Rule: anything unusual is left to `json`.
"""

import _json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class _Options:
    """Options for the scanner of `json`, with the names that `json.JSONDecoder` uses."""

    strict = True
    object_hook = None
    object_pairs_hook = None
    parse_float = float
    parse_int = int
    parse_constant = float


def decoded(text: str) -> "Any":
    """Read a value. Raises ValueError if the text is not JSON."""
    stripped = text.strip(" \t\n\r")
    try:
        value, end = _json.make_scanner(_Options)(stripped, 0)  # type: ignore[arg-type]
        if end == len(stripped):
            return value
    except (StopIteration, ValueError, AttributeError, TypeError):  # not JSON, or a Python that is made otherwise
        pass
    import json  # says where the fault is

    return json.loads(stripped)


def encoded(value: "Any") -> str:
    """Write texts, lists and dictionaries of texts, in the spelling of `json.dumps`."""
    if isinstance(value, str):
        return _json.encode_basestring_ascii(value)
    if isinstance(value, dict):
        return f"{{{', '.join(f'{encoded(key)}: {encoded(one)}' for key, one in value.items())}}}"
    if isinstance(value, list):
        return f"[{', '.join(map(encoded, value))}]"
    raise TypeError(f"{type(value).__name__} is not written by hooks.")
