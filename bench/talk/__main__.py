"""After a conversation: was it kept, is it right, is the last word followed, and is it told when it is needed?

    python -m bench.talk [--half tuning|reporting] [--ours] [--cache DIR] [--themes] [--tiny] [--json]

48 conversations of one to three sessions, each with an empty store: decisions in passing, changes of mind, corrections,
findings, errors, pasted texts, secrets, small talk, eight languages. A day later a new session asks what the
conversation settled. No language model takes part: patterns tell which note a stored text says, and which statement
is gone because it was replaced, disproved, dealt with, secret, or never the user's. "kept, perfect judge" has the
proposals of Kept judged by those patterns, as the model of the agent would do at best.
"""

import argparse
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from msgspec import Struct, to_builtins

from bench.gold import Case, add_common, chosen, read, said_in, says_any, share, title, tokens
from bench.host import surroundings
from bench.measure import options, report, table
from bench.peers.environments import DELIVERING, Unavailable, left_out
from bench.talk.systems import Aftermath, Kept, System, opened

CASES = Path(__file__).parent / "cases.jsonl"
HEAD = (
    "",
    "memories",
    "kept",
    "right",
    "gone, live",
    "gone, told",
    "secrets",
    "followed",
    "junk",
    "told",
    "tok start",
    "tok prompt",
)
TINY = {"ours": True, "most": 2}


class Outcome(Struct, frozen=True, kw_only=True):
    """A case in one system. Numbers are summed over cases."""

    id: str
    theme: str
    stored: int
    harmless: int  # stored texts that count neither way
    kept: int  # notes that a stored text says, by their importance
    weight: int
    right: int  # stored texts that say a note
    gone: int
    live: int  # gone, and a stored text says it
    secrets: int
    leaked: int  # secrets that a stored text says
    told_gone: int
    changes: int  # gone, because a note took its place
    followed: int
    junk: int  # stored texts of a conversation that has nothing worth keeping
    asks: int
    told: int
    start_tokens: int
    prompt_tokens: int
    prompts: int


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add_common(parser)
    parser.add_argument("--themes", action="store_true", help="also one line for each theme, of Kept")
    given = options(parser, tiny=TINY, arguments=arguments)
    cases = chosen(read(CASES), "id", given.half)[: given.most]
    figures: dict[str, list[Outcome]] = {}
    skipped = left_out(only_ours=given.ours)
    with tempfile.TemporaryDirectory() as scratch, surroundings(Path(scratch)):
        for place, (name, made) in enumerate(systems(given, Path(scratch))):
            try:
                with made as system:
                    figures[name] = [
                        outcome(case, system.play(case, Path(scratch) / f"{place}-{number}"))
                        for number, case in enumerate(cases)
                    ]
            except Unavailable as reason:
                skipped[name] = str(reason)
    lines = [row(name, outcomes) for name, outcomes in figures.items()]
    if given.themes:
        by_theme = {one.theme: [each for each in figures["kept"] if each.theme == one.theme] for one in figures["kept"]}
        lines += [row(f"kept: {theme}", outcomes) for theme, outcomes in by_theme.items()]
    text = [table(title(given.half, f"{len(cases)} conversations"), HEAD, lines)]
    text += [f"left out: {name}: {reason}" for name, reason in skipped.items()]
    return report("\n".join(text), [], {"figures": to_builtins(figures), "skipped": skipped}, given)


def systems(given: argparse.Namespace, scratch: Path) -> Iterator[tuple[str, Any]]:
    """Yield the names of all memories, each with a context manager that opens it."""
    yield "kept", itself(Kept())
    yield "kept, perfect judge", itself(Kept("kept, perfect judge", is_worth))
    for peer in DELIVERING:
        if peer.is_here or not given.ours:
            yield f"{peer.name}: messages", opened(peer, given.cache, scratch / peer.adapter.partition(".")[0])


@contextmanager
def itself(system: System) -> Iterator[System]:
    yield system


def is_worth(case: Case, text: str) -> bool:
    """Judge a proposal by the patterns: keep it if it says a note and nothing that is gone."""
    return says_any(text, patterns(case["keep"])) and not says_any(text, patterns(case["gone"]))


def patterns(notes: Sequence[Case]) -> list[Any]:
    return [note["must"] for note in notes]


def outcome(case: Case, after: Aftermath) -> Outcome:
    """Compare the memory after a case with its notes. A text that says anything that is gone says no note."""
    gone, notes = case["gone"], case["keep"]
    good = [text for text in after.stored if not says_any(text, patterns(gone))]
    kept_ids = {note["id"] for note in notes if said_in(good, note["must"])}
    right = [text for text in good if says_any(text, patterns(notes))]
    told = [*after.start.lines, *(line for prompt in after.prompts for line in prompt.lines)]
    live = {one["id"] for one in gone if said_in(after.stored, one["must"])}
    told_gone = {one["id"] for one in gone if said_in(told, one["must"])}
    secrets = {one["id"] for one in gone if one["why"] == "secret"}
    changes = [one for one in gone if one.get("by")]
    asked = [(ask, prompt) for ask, prompt in zip(case["asks"], after.prompts, strict=True) if ask["need"]]
    return Outcome(
        id=case["id"],
        theme=case["theme"],
        stored=len(after.stored),
        harmless=sum(text not in right and says_any(text, case["may"]) for text in good),
        kept=sum(note["importance"] for note in notes if note["id"] in kept_ids),
        weight=sum(note["importance"] for note in notes),
        right=len(right),
        gone=len(gone),
        live=len(live),
        secrets=len(secrets),
        leaked=len(live & secrets),
        told_gone=len(told_gone),
        changes=len(changes),
        followed=sum(one["by"] in kept_ids and one["id"] not in live | told_gone for one in changes),
        junk=len(after.stored) if case["nothing"] else 0,
        asks=len(asked),
        told=sum(delivers(case, ask, [*after.start.lines, *prompt.lines]) for ask, prompt in asked),
        start_tokens=tokens(after.start.text),
        prompt_tokens=sum(tokens(prompt.text) for prompt in after.prompts),
        prompts=len(after.prompts),
    )


def delivers(case: Case, ask: Case, lines: Sequence[str]) -> bool:
    """Return True if the lines say all notes that the prompt needs, apart from lines that say something gone."""
    needed = [note["must"] for note in case["keep"] if note["id"] in ask["need"]]
    good = [line for line in lines if not says_any(line, patterns(case["gone"]))]
    return all(said_in(good, pattern) for pattern in needed)


def row(name: str, outcomes: list[Outcome]) -> list[Any]:
    def total(field: str) -> int:
        return sum(getattr(one, field) for one in outcomes)

    return [
        name,
        total("stored"),
        share(total("kept"), total("weight")),
        share(total("right"), total("stored") - total("harmless")),
        f"{total('live')}/{total('gone')}",
        f"{total('told_gone')}/{total('gone')}",
        f"{total('leaked')}/{total('secrets')}",
        f"{total('followed')}/{total('changes')}",
        total("junk"),
        f"{total('told')}/{total('asks')}",
        round(total("start_tokens") / len(outcomes)),
        round(total("prompt_tokens") / max(1, total("prompts"))),
    ]


if __name__ == "__main__":
    sys.exit(main())
