"""Arguments that several verbs share, each with its limits and its one line of help."""

from datetime import datetime
from typing import Annotated

from msgspec import Meta

from kept.memory.verbs.arguments import about

MOST_LISTED = 2_147_483_647  # the largest whole number of every storage
MAX_NAME_CHARS = 500
MAX_TEXT_CHARS = 1_000_000

Ref = Annotated[int | str, about("The N of [id:N].", metavar="ID")]
Text = Annotated[str, about("The text.", is_text=True, longest=MAX_TEXT_CHARS)]
Query = Annotated[str, about("2-6 key words with synonyms.", metavar="WORDS", is_text=True)]
Kinds = Annotated[tuple[str, ...], about("Only these kinds.", one="kind", metavar="KIND")]
Tags = Annotated[tuple[str, ...], about("Only with one of these tags.", one="tag", metavar="TAG")]
FilesAtHand = Annotated[
    tuple[str, ...], about("Files at hand: memories about them rank higher.", one="file", metavar="PATH")
]
AboutFiles = Annotated[tuple[str, ...], about("Only memories about these files.", one="file", metavar="PATH")]
Limit = Annotated[int, about("How many at most.", metavar="NUMBER", least=0, most=MOST_LISTED)]
Agent = Annotated[str, about("Only memories that this agent wrote.", metavar="NAME")] | None
Moment = Annotated[datetime, Meta(tz=True)]
Since = Annotated[Moment, about("Only from this moment on.", metavar="DATE")] | None
Until = Annotated[Moment, about("Only before this moment.", metavar="DATE")] | None
SessionName = Annotated[str, about("The id of the session.", metavar="SESSION")]
TaskName = Annotated[str, about("The id of the task.", metavar="TASK")]
