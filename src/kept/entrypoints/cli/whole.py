"""Commands that are derived from a verb as a whole, because its arguments and its answer need few other words.

A verb whose row names a command that no module has gets it from here; the catalog names this module for such commands
at the top. Loads every verb: only for help pages and for these commands.
"""

from collections.abc import Callable, Iterable, Mapping
from functools import cache
from typing import Any

import click
import msgspec

from kept.entrypoints.answers import answer_lines
from kept.entrypoints.cli.derived import empty_answer, options_of, request_of
from kept.entrypoints.cli.frame import Command, Group, with_invocation, yes_option
from kept.entrypoints.cli.invocation import Invocation, Line, Strong
from kept.entrypoints.cli.wording import as_document, counted, local, memories, memory_lines
from kept.memory.receipts import RecallReceipt
from kept.memory.verbs import all_verbs
from kept.memory.verbs.declare import AnyVerb
from kept.model import Memory, Recalled, Receipt

# The answer to a person where a list is empty, by the verb: the noun of its members, and the sentence.
_EMPTY: Mapping[str, tuple[str, str]] = {
    "session.given": ("text", "Nothing was given in this session."),
    "session.messages": ("message", "The session has no messages."),
    "session.findings": ("finding", "The session has no findings."),
    "session.window": ("message", "The session has no messages."),
    "task.memories": ("note", "The task has no notes."),
    "knowledge.failures": ("error", "No errors are kept here yet. `kept failure add` keeps one."),
    "store.finish_sessions": ("session", "No session has been silent long enough to be finished."),
    "store.pack_sessions": ("session", "No session has been silent long enough to be packed."),
    "replay": ("memory", "Nothing was found."),
}
# Sentences about an answer that is no list, with the request `asked`.
_SENTENCES: Mapping[str, Callable[[Any, Any], Line]] = {
    "guard": lambda asked, guard: _GUARDED[guard.mode].format(ref=asked.ref),
    "session": lambda _asked, begun: (Strong(begun.name), " is open."),
    "session.append": lambda _asked, said: (
        "Nothing was added: the message is there already, or Kept is paused."
        if said is None
        else answer_lines([said])[0]
    ),
    "session.flush": lambda _asked, done: (
        f"{counted(done.findings, 'new finding')}{f', summary [id:{done.summary}]' if done.summary else ''}."
    ),
    "knowledge.clear_all": lambda _asked, number: (
        f"{memories(number)} forgotten, for every project. `kept undo` brings them back."
        if number
        else "Global memory is empty already. Nothing was changed."
    ),
}
# A sentence below the answer of a verb that changed something.
_NEXT: Mapping[str, str] = {"propose": "`kept review --reason global` asks whether all projects get it."}
# Arguments that a call from elsewhere may leave out together, and a person who types means one of.
_TEXTS: Mapping[str, Mapping[str, Any]] = {"session.append": {"content": "", "input": None, "name": None}}
_GUARDED: Mapping[str, str] = {
    "stop": "Guard set on {ref}: a matching tool call is refused once, then allowed.",
    "tell": "Guard off for {ref}: a matching tool call only gets a reminder.",
}


def command_of(verb: AnyVerb, name: str) -> Command:
    """Derive a command from a verb. One that only reads asks nothing, and has no `--yes`."""

    @options_of(verb)
    def run(invocation: Invocation, *, yes: bool = False, **given: Any) -> None:
        asked = request_of(verb, given)
        if verb.name in _TEXTS and asked == msgspec.structs.replace(asked, **_TEXTS[verb.name]):
            raise click.UsageError(f"There is no text. Give it after the other words: kept {verb.cli} …")
        with invocation.open(yes=yes) as memory:
            answer = memory.perform(verb, asked)
        invocation.answer(_document(verb, answer), _lines(verb, asked, answer, invocation))

    run.__doc__ = "\n\n".join(filter(None, (verb.help, verb.details)))
    asking = run if verb.effect == "reads" else yes_option(run)
    return click.command(name, cls=Command)(with_invocation(asking))


def _document(verb: AnyVerb, answer: Any) -> dict[str, Any]:
    """Return an answer as one JSON document; a memory has its ref in it."""
    plain = _plain(answer)
    if verb.returns.many:
        return {verb.returns.many: plain}
    return plain if isinstance(plain, dict) else {"answer": plain}


def _plain(answer: Any) -> Any:
    if isinstance(answer, Memory):
        return as_document(answer)
    if isinstance(answer, list | tuple):
        return [_plain(one) for one in answer]
    plain = msgspec.to_builtins(answer, enc_hook=str)
    if isinstance(answer, Receipt) and answer.memory is not None:
        plain["memory"] = as_document(answer.memory)
    if isinstance(answer, Recalled):
        plain["hits"] = [{**msgspec.to_builtins(hit), "memory": as_document(hit.memory)} for hit in answer.hits]
        plain["pinned"] = [as_document(one) for one in answer.pinned]
    return plain


def _lines(verb: AnyVerb, asked: Any, answer: Any, invocation: Invocation) -> list[Line]:
    if verb.name in _SENTENCES:
        return [_SENTENCES[verb.name](asked, answer)]
    found = [line for one in _members(answer) for line in _member_lines(one, invocation)]
    if not found and verb.name in _EMPTY:
        return [empty_answer(verb, asked, *_EMPTY[verb.name])]
    return found or [*answer_lines(answer), *_next_lines(verb, answer)]


def _next_lines(verb: AnyVerb, answer: Any) -> list[str]:
    """Return the sentence below an answer, if something was stored."""
    is_refused = isinstance(answer, Receipt) and answer.outcome == "refused"
    return [line for name, line in _NEXT.items() if name == verb.cli and not is_refused]


def _members(answer: Any) -> Iterable[Any]:
    """Return the memories, messages or receipts that an answer has."""
    if isinstance(answer, Recalled):
        return [hit.memory for hit in answer.hits]
    members = getattr(answer, "messages", answer)
    return members if isinstance(members, list | tuple) else ()


def _member_lines(one: Any, invocation: Invocation) -> list[Line]:
    if isinstance(one, Memory):
        return memory_lines(one, invocation.clock())
    if isinstance(one, RecallReceipt):
        moment = f"{one.event} ({one.moment})" if one.moment else one.event or one.kind
        told = [("    │ ", line) for line in (one.block or "nothing").split("\n")]
        return [(Strong(one.receipt), f"  {local(one.at, invocation.zone)}  {moment}"), *told]
    return [*answer_lines([one])]


@cache
def commands_below(group: str) -> dict[str, Command]:
    """Return the derived commands of a group by their names."""
    paths = {str(verb.cli).removeprefix(f"{group} "): verb for verb in all_verbs() if _is_below(verb.cli, group)}
    return {name: command_of(verb, name) for name, verb in paths.items()}


def _is_below(path: object, group: str) -> bool:
    return isinstance(path, str) and path.startswith(f"{group} ")


@cache
def command_at(name: str) -> click.Command:
    """Return the derived command of that name, or the group of those below it."""
    verb = next((one for one in all_verbs() if one.cli == name), None)
    return Group(name) if verb is None else command_of(verb, name)
