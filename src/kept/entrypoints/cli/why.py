"""`kept why`: the numbers behind an earlier answer, and the texts that a session was given automatically."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import click

from kept import text
from kept.entrypoints.cli.derived import options_of, request_of
from kept.entrypoints.cli.frame import command, session_named
from kept.entrypoints.cli.invocation import Dim, Invocation, Label, Line, Strong
from kept.entrypoints.cli.recall import product, shortened
from kept.entrypoints.cli.wording import bracketed, local
from kept.entrypoints.hook.folder import KEPT_DAYS, HookFolder, told_misses
from kept.errors import InvalidInput
from kept.memory import Kept
from kept.memory.reasons import why_nothing
from kept.memory.receipts import RecallReceipt
from kept.memory.verbs.recall import WHY

MOST_GIVEN = 200  # texts of one session


@command
@options_of(WHY)
@click.option("--session", metavar="SESSION", help="Everything that this session of an agent was given automatically.")
def why_command(invocation: Invocation, *, session: str | None, **given: Any) -> None:
    """RECEIPT names an earlier recall, such as r17. With --session: each text that hooks gave to the agent, as it was
    given, with what asked for it, the reasons, and what just missed; of the last 30 days.
    """
    asked = request_of(WHY, given)
    if session is None:
        with invocation.open() as memory:
            explained = memory.perform(WHY, asked)
            lines = _explained_lines(explained, invocation, memory)
        invocation.answer(explained, lines)
    elif asked.receipt is not None:
        raise InvalidInput("Give a receipt or --session, not both.")
    else:
        _answer_session(invocation, session)


def _answer_session(invocation: Invocation, typed: str) -> None:
    with invocation.open() as memory:
        session = _given_session(invocation, memory, typed)
        given = memory.look().receipts(session, limit=MOST_GIVEN)
        lines: list[Line] = []
        for explained in reversed(given):
            moment = f" ({explained.moment})" if explained.moment else ""
            lines.append((Strong(explained.receipt), Dim(f"  {explained.agent}, {explained.event}{moment}")))
            lines += [("    │ ", line) for line in (explained.block or "nothing").split("\n")]
            lines += _explained_lines(explained, invocation, memory)
    misses = HookFolder(invocation.projects().home.root).misses(invocation.clock() - timedelta(days=KEPT_DAYS), session)
    lines += told_misses(misses, "in this session")
    hint = "`kept session list` shows the sessions; what they were given is kept for 30 days."
    document = {"given": given, "misses": [one._asdict() for one in misses]}
    invocation.answer(document, lines or [f"No text was given to a session {session!r}. {hint}"])


def _given_session(invocation: Invocation, memory: Kept, typed: str) -> str:
    """Return the id of the session that was typed. An agent that was only listened to has receipts, and no session."""
    session = session_named(invocation, memory, typed, must_exist=False)
    if session != typed:
        return session
    meant = memory.look().sessions_given(beginning=typed)
    if len(meant) > 1 and typed not in meant:
        raise InvalidInput(
            f"{len(meant)} sessions begin with {typed!r}: {', '.join(meant)}.", hint="Type more of the id."
        )
    return meant[0] if len(meant) == 1 else typed


def _explained_lines(explained: RecallReceipt, invocation: Invocation, memory: Kept) -> list[Line]:
    shown, asked = _Texts(memory), explained.question.query or explained.call
    lines: list[Line] = [
        (Strong(explained.receipt), f"  {local(explained.at, invocation.zone)}  {asked}"),
        *_search_lines(explained),
        *_sent(explained, shown),
    ]
    for hit in explained.hits:
        lines += [(Strong(bracketed(hit["ref"])), f" {_noted_product(hit)}"), *shown.of(hit)]
    if (nothing := why_nothing(explained)) is not None:
        lines.append(f"Nothing was {'found' if explained.kind == 'recall' else 'given'}: {nothing}.")
    for miss in explained.misses:
        lines.append((Label("missed "), bracketed(miss["ref"]), Dim(f" {_noted_product(miss)}: {miss['reason']}")))
        lines += shown.of(miss)
    for ref in explained.pinned:
        lines += [f"pinned {bracketed(ref)}", *shown.of({"ref": ref})]
    if explained.degraded:
        lines.append(f"Note: {explained.degraded}")
    return lines


class _Texts:
    """Texts of the memories that a receipt names, as they are today, each once."""

    def __init__(self, memory: Kept) -> None:
        self._look = memory.look()
        self._shown: set[str] = set()

    def of(self, line: Mapping[str, Any]) -> list[Line]:
        """Show the memory of a line. One that is gone, or that is not the same any more, keeps only its ref."""
        ref = str(line["ref"])
        found = None if ref in self._shown else self._look.find(ref)
        if found is None or line.get("uid", found.uid) != found.uid:
            return []
        self._shown.add(ref)
        return [f"    {shortened(text.visible(found.content, keep_newlines=False))}"]


def _noted_product(line: Mapping[str, Any]) -> str:
    """Return the product of a hit as a receipt has noted it."""
    return product(line["score"], line["why"], line.get("parts", {}), line["ref"])


def _sent(explained: RecallReceipt, shown: "_Texts") -> list[Line]:
    """Return the text that a skill or an agent was sent, where the receipt is not that of a recall."""
    if explained.to is not None:
        shared = ", ".join(f"[id:{entry['ref']}]" for section in explained.sections for entry in section["entries"])
        return [f"shared with {explained.to}: {shared or 'nothing'}"]
    return [] if explained.kind == "recall" else _briefed(explained, shown)


def _search_lines(explained: RecallReceipt) -> list[Line]:
    """Say how long the search took and for which words; nothing of a text that was written without a search."""
    if not explained.question.query and not explained.words and explained.kind != "recall":
        return []
    return [Dim(f"    {explained.took_ms:.1f} ms; words: {_words(explained) or 'not stored'}")]


def _words(explained: RecallReceipt) -> str:
    """The words of a question as they were written, and how many others were searched for them."""
    query = explained.question.query
    stems = set(text.query_words(query))
    asked = [text.as_written(word, query) for word in explained.words if word in stems]
    others = len(explained.words) - len(asked)
    return ", ".join(asked) + (f", and {others} more by alias or spelling" if asked and others else "")


def _briefed(explained: RecallReceipt, shown: _Texts) -> list[Line]:
    """List the memories of a text for an agent, each with its reason, and those that were left out."""
    lines: list[Line] = []
    was = "was in the briefing" if explained.kind == "briefing" else "was given"
    for entry in (entry for section in explained.sections for entry in section["entries"]):
        lines += [(Strong(f"[id:{entry['ref']}]"), f" {was}: {entry['reason']}"), *shown.of(entry)]
    for one in explained.left_out:
        lines += [(Label("left out "), Dim(f"[id:{one['ref']}]: {one['reason']}")), *shown.of(one)]
    return lines
