"""Does the fact that governs an action reach the agent, at which moment, and with how much noise?

    python -m bench.delivery [--said] [--half tuning|reporting] [--ours] [--cache DIR] [--list] [--tiny] [--json]

48 tasks of 12 invented projects. Everything that was said in the projects is in one store: the facts, 240 statements
that no task needs, and older statements that a later one replaced. Each task is a new session: its start, its prompt,
the tool calls that it begins with, and a failing command if it has one. No language model takes part: patterns tell
whether a line says the fact. `--stored`: each statement was stored deliberately, for Kept also once with the files that
were edited when it was said. `--said`: the conversations are played instead, so that capture counts too, once by rules
alone and once with a judge that knows which proposals are needed; peers, which have no capture, store each message of
the user.
"""

import argparse
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

from msgspec import Struct, to_builtins
from msgspec.structs import replace

from bench.delivery.statements import Cases, load, messages_of_users, statements, talks
from bench.delivery.systems import MOMENTS, Given, Grep, Kept, NotesFile, Searched, System
from bench.gold import Case, add_common, chosen, said_in, says_any, share, title, tokens
from bench.host import surroundings
from bench.measure import options, report, table
from bench.peers.environments import DELIVERING, Peer, Unavailable, left_out
from bench.peers.running import Running

HEAD = (
    "",
    "kept",
    *MOMENTS,
    "any",
    "last word",
    "top 5",
    "lines",
    "needed",
    *(f"tok {one}" for one in MOMENTS[:3]),
    "session",
)
OTHER = ("", "prompts", "lines", "tokens", "calls", "lines", "tokens")
TINY = {"ours": True, "most": 2}


class Outcome(Struct, frozen=True):
    """A case in one system: the moments that delivered everything needed, and the cost of it."""

    id: str
    kept: bool
    at: dict[str, bool]
    any: bool
    found: bool
    has_error: bool
    has_old: bool
    told_old: bool
    lines: int
    needed: int
    tokens: dict[str, int]


class Noise(Struct, frozen=True):
    """The answers to prompts or calls that no memory concerns."""

    asked: int
    answered: int
    lines: int
    tokens: float


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    mode = parser.add_mutually_exclusive_group()
    mode.add_argument("--stored", action="store_const", const=False, dest="said", help="each was stored (the default)")
    mode.add_argument("--said", action="store_true", default=False, help="the conversations are played")
    add_common(parser)
    parser.add_argument("--list", action="store_true", help="also one line for each case of Kept")
    given = options(parser, tiny=TINY, arguments=arguments)
    found = load()
    cases = chosen(found.cases, "project", given.half)[: given.most]
    other = Cases(cases=[], distractors=[], prompts=found.prompts[: given.most], calls=found.calls[: given.most])
    figures: dict[str, tuple[list[Outcome], dict[str, Noise]]] = {}
    skipped = left_out(only_ours=given.ours)
    with tempfile.TemporaryDirectory() as scratch, ExitStack() as stack:
        stack.enter_context(surroundings(Path(scratch)))
        for system in systems(found, given, Path(scratch), stack, figures, skipped):
            figures[system.name] = ([outcome(system, case) for case in cases], unrelated(system, other))
    text = [shown(figures, given, len(cases), len(found.distractors))]
    text += [f"left out: {name}: {reason}" for name, reason in skipped.items()]
    if given.list:
        text += [listed(one) for one in figures["kept"][0]]
    return report("\n".join(text), [], {"figures": to_builtins(figures), "skipped": skipped}, given)


def systems(
    found: Cases,
    given: argparse.Namespace,
    scratch: Path,
    stack: ExitStack,
    figures: dict[str, tuple[list[Outcome], dict[str, Noise]]],
    skipped: dict[str, str],
) -> Iterator[System]:
    """Yield all memories one after the other; the files of notes last, because Kept's cost is their length."""
    told = messages_of_users(found) if given.said else statements(found)
    noise = {one["id"] for one in found.distractors}
    if given.said:
        distractors, played = [one for one in told if one.name in noise], talks(found)
        yield Kept("kept", scratch / "kept", distractors, played)
        yield Kept("kept, perfect judge", scratch / "judged", distractors, played, partial(is_worth, found))
    else:
        yield Kept("kept", scratch / "kept", [replace(one, files=()) for one in told])
        yield Kept("kept, with files", scratch / "files", told)
    cost = sum(sum(one.tokens.values()) for one in figures["kept"][0]) / len(figures["kept"][0])
    for peer in DELIVERING:
        if peer.is_here or not given.ours:
            try:
                yield Searched(peer, stack.enter_context(opened(peer, given.cache, scratch)), told)
            except Unavailable as reason:
                skipped[peer.name] = str(reason)
    yield Grep(scratch, told)
    yield NotesFile("CLAUDE.md, as long as Kept", told, cost)
    yield NotesFile("everything at the start", told, float("inf"))


def is_worth(found: Cases, text: str) -> bool:
    """Judge a proposal by the patterns: keep it if a task needs it, and it was not replaced."""
    needed = any(says_any(text, case["need"]) for case in found.cases)
    return needed and not any(says_any(text, case["must_not"]) for case in found.cases)


def opened(peer: Peer, cache: Path, scratch: Path) -> Running:
    folder = scratch / peer.adapter.partition(".")[0]
    folder.mkdir()
    return Running(peer, cache, folder)


def outcome(system: System, case: Case) -> Outcome:
    """Run the session of a case."""
    given = system.session(case)
    every = [line for moment in MOMENTS for line in given[moment].lines]

    def delivers(lines: Sequence[str]) -> bool:
        return all(said_in(lines, pattern) for pattern in case["need"])

    return Outcome(
        id=case["id"],
        kept=delivers(system.stored),
        at={moment: delivers(given[moment].lines) for moment in MOMENTS},
        any=delivers(every),
        found=delivers(system.search(case["prompt"])),
        has_error=bool(case["error"]),
        has_old=bool(case["must_not"]),
        told_old=any(says_any(line, case["must_not"]) for line in every),
        lines=len(every),
        needed=sum(says_any(line, case["need"]) for line in every),
        tokens={moment: tokens(given[moment].text) for moment in MOMENTS},
    )


def unrelated(system: System, other: Cases) -> dict[str, Noise]:
    return {
        "prompts": noise_of([system.prompt(text) for text in other.prompts]),
        "calls": noise_of([system.call(call["tool"], call["input"]) for call in other.calls]),
    }


def noise_of(given: list[Given]) -> Noise:
    return Noise(
        asked=len(given),
        answered=sum(bool(one.text) for one in given),
        lines=sum(len(one.lines) for one in given),
        tokens=sum(tokens(one.text) for one in given) / len(given),
    )


def shown(
    figures: dict[str, tuple[list[Outcome], dict[str, Noise]]], given: argparse.Namespace, cases: int, noise: int
) -> str:
    """Return both tables."""
    how = "said" if given.said else "stored"
    first = table(
        title(given.half, f"{how}, {cases} cases among {noise} distractors"),
        HEAD,
        [row(name, outcomes) for name, (outcomes, _) in figures.items()],
    )
    others = [[name, *cells(got["prompts"]), *cells(got["calls"])] for name, (_, got) in figures.items()]
    return f"{first}\n\n{table('prompts and calls that no memory concerns', OTHER, others)}"


def row(name: str, outcomes: list[Outcome]) -> list[Any]:
    count = len(outcomes)
    at = {moment: sum(one.at[moment] for one in outcomes) for moment in MOMENTS}
    errors, old = sum(one.has_error for one in outcomes), [one for one in outcomes if one.has_old]
    spent = {moment: round(sum(one.tokens[moment] for one in outcomes) / count) for moment in MOMENTS}
    return [
        name,
        sum(one.kept for one in outcomes),
        *(at[moment] for moment in MOMENTS[:3]),
        f"{at['failure']}/{errors}",
        f"{sum(one.any for one in outcomes)}/{count}",
        f"{sum(one.any and not one.told_old for one in old)}/{len(old)}",
        sum(one.found for one in outcomes),
        f"{sum(one.lines for one in outcomes) / count:.1f}",
        share(sum(one.needed for one in outcomes), sum(one.lines for one in outcomes)),
        *(spent[moment] for moment in MOMENTS[:3]),
        sum(spent.values()),
    ]


def cells(noise: Noise) -> list[Any]:
    return [f"{noise.answered}/{noise.asked}", noise.lines, round(noise.tokens)]


def listed(one: Outcome) -> str:
    moments = " ".join(moment for moment in MOMENTS if one.at[moment]) or ("in parts" if one.any else "-")
    return f"{one.id:<14} {moments:<28} {'old one told' if one.told_old else ''}".rstrip()


if __name__ == "__main__":
    sys.exit(main())
