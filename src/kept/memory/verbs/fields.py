"""How an argument is described, and the arguments that several verbs share."""

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any

from msgspec import Meta

from kept.errors import InvalidInput
from kept.memory.context import Context
from kept.model import Draft

MOST_LISTED = 2_147_483_647  # the largest whole number of every storage
MAX_NAME_CHARS = 500
MAX_TEXT_CHARS = 1_000_000


def about(
    help: str = "",
    *,
    one: str = "",
    noun: str = "",
    metavar: str = "",
    is_text: bool = False,
    is_positional: bool = False,
    is_named: bool = False,
    least: float | None = None,
    most: float | None = None,
    longest: int | None = None,
) -> Meta:
    """Describe an argument: `Annotated[int, about("How many at most.", least=1, most=50)]`.

    `is_positional`: typed without its name although it may be left out; `is_named`: with it although it is required.
    """
    words = {"one": one, "noun": noun, "metavar": metavar}
    extra = {**words, "is_text": is_text, "is_positional": is_positional, "is_named": is_named}
    if longest is not None:
        return Meta(description=help or None, max_length=longest, extra=extra)
    return Meta(description=help or None, ge=least, le=most, extra=extra)


PYTHON_ONLY = Meta(extra={"python": True})  # a callback or an object of ours: no other door has such an argument

OWN_DATA = frozenset(
    "also check sort signals sessions agents rules stage judged quarantined promoted_from signature value".split()
)  # names that Kept uses in the data of a memory; others begin with `kept_`


def given_data(data: object) -> dict[str, Any] | None:
    """Return the data that a program stores with a memory. Raises InvalidInput for names that Kept uses itself."""
    if data is None:
        return None
    if not isinstance(data, Mapping) or not all(isinstance(name, str) for name in data):
        raise InvalidInput("data must be a dictionary whose names are strings.")
    if own := sorted(name for name in data if name in OWN_DATA or name.startswith("kept_")):
        raise InvalidInput(
            f"data must not have {own[0]!r}: Kept uses this name itself.", hint="Put your data under another name."
        )
    return dict(data)


def data_filter(context: Context, data: object) -> dict[str, Any] | None:
    """Return values to look for in the data of memories. Raises InvalidInput unless it is a flat dictionary of values
    that can be stored.
    """
    wanted = given_data(data)
    for name, value in (wanted or {}).items():
        if not isinstance(value, str | int | float | bool):
            raise InvalidInput(
                f"data can be searched for a string, a number or a truth value; {name!r} is {type(value).__name__}.",
                hint="Store the value under a name of its own.",
            )
    if wanted and context.rules().redacted(Draft(content="", data=wanted)).draft.data != wanted:
        raise InvalidInput(
            "data has a secret or an e-mail address, which is redacted, so no memory can be found by it.",
            hint="Give a digest of it. For one memory for each user, see kept.open(user=…).",
        )
    return wanted


Ref = Annotated[int | str, about("The N of [id:N].", metavar="REF")]
Text = Annotated[str, about("The text.", metavar="TEXT", is_text=True, longest=MAX_TEXT_CHARS)]
Query = Annotated[str, about("2-6 key words with synonyms.", metavar="WORDS", is_text=True)]
Kinds = Annotated[tuple[str, ...], about("Only these kinds.", one="kind", metavar="KIND")]
Tags = Annotated[tuple[str, ...], about("Only with one of these tags.", one="tag", metavar="TAG")]
FilesAtHand = Annotated[
    tuple[str, ...], about("Files at hand: memories about them rank higher.", one="file", metavar="PATH")
]
FloorName = Annotated[
    str, about("How sure an answer must be: strict, normal or open. By default as in the settings.", metavar="FLOOR")
]
AboutFiles = Annotated[tuple[str, ...], about("Only memories about these files.", one="file", metavar="PATH")]
Limit = Annotated[int, about("How many at most.", metavar="NUMBER", least=0, most=MOST_LISTED)]
Data = Annotated[dict[Any, Any], about("Values of your program to keep with it.", metavar="NAME=VALUE")] | None
WithData = Annotated[dict[Any, Any], about("Only memories with these values in `data`.", metavar="NAME=VALUE")] | None
Agent = Annotated[str, about("Only memories that this agent wrote.", metavar="NAME")] | None
Moment = Annotated[datetime, Meta(tz=True)]
Since = Annotated[Moment, about("Only from this moment on.", metavar="DATE")] | None
Until = Annotated[Moment, about("Only before this moment.", metavar="DATE")] | None
AsOf = Annotated[Moment, about("Answer with what was known at this moment.", metavar="DATE")] | None
SessionName = Annotated[str, about("The id of the session.", metavar="SESSION")]
TaskName = Annotated[str, about("The id of the task.", metavar="TASK")]
