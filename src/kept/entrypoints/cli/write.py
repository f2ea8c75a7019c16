"""`kept remember`.

`kept slash`: the commands of a chat, typed in a shell.
"""

import os
import sys
from collections.abc import Iterable, Sequence

import click
import msgspec

from kept.entrypoints.cli.boundary import FAILED
from kept.entrypoints.cli.frame import Command, pass_invocation, yes_option
from kept.entrypoints.cli.invocation import Dim, Invocation, Line
from kept.entrypoints.cli.wording import as_document, memory_lines, name_of
from kept.errors import InvalidInput
from kept.memory import slash
from kept.model import KINDS, Memory, Receipt, Tier
from kept.writing.check import MAX_TEXT_BYTES, TIERS


def given_text(words: tuple[str, ...]) -> str:
    """The text from the arguments, or from standard input when that is `-`.

    The newline that ends the last line of the input is the shell's and is left out; everything else is kept.
    """
    if words == ("-",):
        return _from_standard_input()
    text = " ".join(words)
    for position, character in enumerate(text):
        if "\udc80" <= character <= "\udcff":  # how Python hands over a byte that is not UTF-8
            raise InvalidInput(
                f"The text is not UTF-8: character {position + 1} is the byte 0x{ord(character) - 0xDC00:02x}.",
                hint="Switch the terminal to UTF-8, or convert the text with iconv.",
            )
    return text


def _from_standard_input() -> str:
    if sys.stdin is None:
        raise InvalidInput("There is no standard input to read from.", hint='Give the text itself: kept remember "…".')
    stream = sys.stdin.buffer
    data = stream.read(MAX_TEXT_BYTES + 2)
    if len(data) > MAX_TEXT_BYTES + 1:
        raise InvalidInput(
            f"The text on standard input is longer than {MAX_TEXT_BYTES:,} bytes.",
            hint="Remember one statement at a time; keep whole files as files.",
        )
    try:
        return data.decode("utf-8").removesuffix(os.linesep)
    except UnicodeDecodeError as error:
        raise InvalidInput(
            f"The text on standard input is not UTF-8: byte {error.start + 1} is 0x{data[error.start]:02x}.",
            hint="Convert it first, for example with iconv.",
        ) from None


def _number(ctx: click.Context, param: click.Parameter, value: str | None) -> float | None:
    try:
        return None if value is None else float(value)
    except ValueError:
        raise click.BadParameter(f"{value!r:.60} is not a number.", ctx, param) from None


@click.command("remember", cls=Command)
@click.argument("text", nargs=-1)
@click.option("--kind", default="fact", metavar="KIND", help=f"What it is: {', '.join(KINDS)}, or a word of your own.")
@click.option("--tag", "tags", multiple=True, metavar="TAG", help="A tag. May be repeated.")
@click.option("--file", "files", multiple=True, metavar="PATH", help="A file it is about. May be repeated.")
@click.option("--importance", callback=_number, metavar="NUMBER", help="From 0 to 1; by default as its kind suggests.")
@click.option("--pin", is_flag=True, help="Always bring it along.")
@click.option("--tier", type=click.Choice(TIERS), help="How long it lives; by default as long as the project.")
@click.option("--global", "is_global", is_flag=True, help="For all projects; the same as --tier global.")
@click.option("--topic", metavar="NAME", help="What it is the latest word on.")
@click.option("--key", metavar="KEY", help="A second call with the same key stores nothing.")
@yes_option
@pass_invocation
def remember_command(
    invocation: Invocation,
    *,
    text: tuple[str, ...],
    kind: str,
    tags: tuple[str, ...],
    files: tuple[str, ...],
    importance: float | None,
    pin: bool,
    tier: Tier | None,
    is_global: bool,
    topic: str | None,
    key: str | None,
    yes: bool,
) -> None:
    """Keep one statement.

    TEXT has at most 500 characters (a summary: 4,000). It may be several words; a single dash reads it from standard
    input. What is the same but for case and spacing is not stored twice: it makes the memory that is there more
    important.

    \b
      kept remember "Never edit the auth middleware directly" --kind warning --tag auth
      git log -1 --format=%s | kept remember - --kind progress
    """
    if not text:
        raise click.UsageError("There is no text to remember.", ctx=click.get_current_context())
    if is_global and tier not in (None, "global"):
        raise click.UsageError(f"--global and --tier {tier} contradict each other.", ctx=click.get_current_context())
    content = given_text(text)
    with invocation.open(yes=yes) as memory:
        receipt = memory.remember(
            content,
            kind=kind,
            tags=tags,
            files=files,
            importance=importance,
            pin=pin,
            tier="global" if is_global else tier or "project",
            topic=topic,
            key=key,
        )
    answer_receipt(invocation, receipt)


def answer_receipt(invocation: Invocation, receipt: Receipt, first: Line | None = None) -> None:
    """Say what became of a draft, with `first` as the sentence for one that got in; a refusal ends the command."""
    document = msgspec.to_builtins(receipt)
    if receipt.memory is not None:
        document["memory"] = as_document(receipt.memory)
    if receipt.outcome != "refused":
        usual, *more = _outcome(receipt)
        invocation.answer(document, [first or usual, *more])
        return
    if invocation.as_json:
        invocation.answer(document, ())
    else:
        invocation.tell(f"Not kept: {receipt.message}")
    click.get_current_context().exit(FAILED)


def _outcome(receipt: Receipt) -> list[Line]:
    memory = receipt.memory
    assert memory is not None
    if receipt.reason == "already_stored":
        first: Line = ("Already kept under that key: ", name_of(memory), ".")
    elif receipt.outcome == "strengthened":
        first = ("Known already: ", name_of(memory), f" is more important now ({memory.importance:.2g}).")
    elif receipt.outcome == "candidate":
        first = ("Kept as a candidate: ", name_of(memory), f" ({memory.kind}).")
    else:
        first = ("Kept: ", name_of(memory), f" ({memory.kind}{', pinned' if memory.status == 'pinned' else ''}).")
    lines = [first]
    if receipt.redactions:
        found = ", ".join(f"{redaction.count} × {redaction.kind}" for redaction in receipt.redactions)
        lines.append(f"Taken out before it was stored: {found}.")
    if receipt.superseded:
        lines.append(f"It takes the place of {_refs(receipt.superseded)}.")
    if receipt.near:
        lines.append(f"Nearly the same is kept already: {_refs(receipt.near)}.")
    if receipt.conflicts:
        refs = _refs(conflict.ref for conflict in receipt.conflicts)
        lines.append(f"It disagrees with what is kept already: {refs}. `kept conflicts` shows both sides.")
    return lines


def _refs(refs: Iterable[str]) -> str:
    return ", ".join(ref if ref.startswith("c") else f"[id:{ref}]" for ref in refs)


NONE_OF_THEM = "none"


@click.command("slash", cls=Command)
@click.argument("line", nargs=-1)
@yes_option
@pass_invocation
def slash_command(invocation: Invocation, *, line: tuple[str, ...], yes: bool) -> None:
    """Run a slash command, as it would be typed into a chat.

    Without a LINE, all of them are listed. By keyword, a command acts on the one memory that holds all the words; if
    several do, they are listed, or you are asked.

    \b
    kept slash /remember Never edit the auth middleware directly
    kept slash /pin auth middleware
    kept slash /memory search auth
    """

    def choose(question: str, memories: Sequence[Memory]) -> str | None:
        for memory in memories:
            invocation.tell(*memory_lines(memory, invocation.clock()))
        picked = invocation.pick(question, [NONE_OF_THEM, *(memory.ref for memory in memories)])
        return None if picked == NONE_OF_THEM else picked

    with invocation.open(yes=yes) as memory:
        answer = slash.run(memory, " ".join(line) or "/memory", choose=choose if invocation.can_pick() else None)
    lines: list[Line] = list(answer.text.split("\n"))
    if answer.done and answer.command in ("/forget", "/pin"):
        lines.append(Dim("`kept undo` takes it back."))
    invocation.answer(msgspec.to_builtins(answer), lines)
