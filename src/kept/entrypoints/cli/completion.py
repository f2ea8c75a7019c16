"""Completion of words that a person is typing, from the store. A store that cannot be read offers nothing."""

import os
from collections.abc import Callable, Iterable, Iterator

import click
from click.shell_completion import CompletionItem

from kept.entrypoints.cli.invocation import Invocation
from kept.memory import Kept
from kept.model import KINDS

OFFERED = 200  # memories that are looked at
Completion = Callable[..., list[CompletionItem]]


def _offered(names: Callable[[Kept], Iterable[tuple[str, str]]]) -> Completion:
    """Make a function of click out of one that reads names, each with a line about it, from an opened memory."""

    def complete(ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        try:
            invocation = (ctx.find_root().obj or Invocation()).in_environment(os.environ)
            with invocation.open(auto_upkeep=False) as memory:
                found = dict(names(memory))
        except Exception:  # the person is typing: nothing to offer is better than an error in the middle of a line
            return []
        return [CompletionItem(name, help=line) for name, line in found.items() if name.startswith(incomplete)]

    return complete


def _named_kinds(memory: Kept) -> Iterator[tuple[str, str]]:
    yield from ((kind, "") for kind in KINDS)
    yield from ((one.kind, "") for one in memory.list(limit=OFFERED))


def _named_tags(memory: Kept) -> Iterator[tuple[str, str]]:
    return ((tag, "") for one in memory.list(limit=OFFERED) for tag in one.tags)


def _named_refs(memory: Kept) -> Iterator[tuple[str, str]]:
    return ((one.ref, one.content.split("\n")[0][:60]) for one in memory.list(limit=OFFERED))


def _named_sessions(memory: Kept) -> Iterator[tuple[str, str]]:
    return ((one.name, one.agent or "") for one in reversed(memory.sessions()))


def _named_agents(memory: Kept) -> Iterator[tuple[str, str]]:
    return ((one.agent, "") for one in memory.sessions() if one.agent)


complete_agent = _offered(_named_agents)
complete_kind, complete_tag = _offered(_named_kinds), _offered(_named_tags)
complete_ref, complete_session = _offered(_named_refs), _offered(_named_sessions)


def one_of(names: Iterable[str], *, or_path: bool = False) -> Completion:
    """Return a completion with fixed words; `or_path` also offers files where none of them fits."""

    def complete(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        offered = [CompletionItem(name) for name in names if name.startswith(incomplete)]
        return offered or ([CompletionItem(incomplete, type="file")] if or_path else [])

    return complete


# By the names of arguments in the requests of the verbs.
COMPLETIONS: dict[str, Completion] = {
    **dict.fromkeys(("kind", "kinds"), complete_kind),
    "tags": complete_tag,
    "agent": complete_agent,
    **dict.fromkeys(("ref", "refs", "after", "keep"), complete_ref),
    **dict.fromkeys(("session", "sessions"), complete_session),
}
