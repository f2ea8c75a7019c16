"""Make the imports of a short process cheaper.

msgspec and pathlib load modules that a hook never uses: ids and decimals as types to be checked for, schemas, links.
They take 7 ms, a third of a bare Python. While the two are imported, empty stand-ins take the places of these modules,
and afterwards they are taken away again: whoever imports one of them later gets the real one.
Rule: a hook behaves as any other process. If the stand-ins do not fit a version of these libraries, it goes without.
"""

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_STAND_INS: "dict[str, dict[str, Any]]" = {
    # msgspec asks of every value whether it is one.
    "uuid": {"UUID": type("UUID", (), {}), "SafeUUID": type("SafeUUID", (), {"unknown": None})},
    "decimal": {"Decimal": type("Decimal", (), {})},
    "msgspec.inspect": {},
    "msgspec._json_schema": {"schema": None, "schema_components": None},
    "msgspec.toml": {},
    "msgspec.yaml": {},
    "urllib.parse": {"quote_from_bytes": lambda *given: _quote_from_bytes(*given)},  # of pathlib, for links to files
}


def import_lightly() -> None:
    """Import msgspec and pathlib at half the price, and leave it at that."""
    import gc

    gc.disable()  # what is made lives until the end
    if "msgspec" in sys.modules:
        return
    module = type(sys)
    placed = []
    if "typing_extensions" not in sys.modules:
        # msgspec takes types from here if it can, which costs 12 ms and changes nothing for a hook.
        sys.modules["typing_extensions"] = None  # type: ignore[assignment]
        placed.append("typing_extensions")
    for name, names in _STAND_INS.items():
        if name not in sys.modules:
            sys.modules[name] = stand_in = module(name)
            vars(stand_in).update(names)
            placed.append(name)
    try:
        import pathlib  # noqa: F401

        import msgspec  # noqa: F401
    except (ImportError, AttributeError):  # they are imported as usual later
        for name in [name for name in sys.modules if name.partition(".")[0] in ("msgspec", "pathlib")]:
            del sys.modules[name]
    for name in placed:
        sys.modules.pop(name, None)


def _quote_from_bytes(*given: "Any") -> str:
    from urllib.parse import quote_from_bytes

    return quote_from_bytes(*given)
