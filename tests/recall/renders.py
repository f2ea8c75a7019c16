"""Does any content get out of its place? Contents made of every style's own delimiters, rendered and read back.

    python -m tests.recall.renders [--renders 100000] [--seed 1]

Each briefing is composed within a random budget, rendered, and read by a parser that shares nothing with the renderer.
Counted are breakouts (it does not read back exactly), briefings over a limit, and briefings that are not the same bytes
when composed again. The exit code is 1 if there is any.
"""

import argparse
import random
import re
import sys
from collections import Counter
from datetime import timedelta
from typing import Any

from kept import tokens
from kept.model import Briefing, Entry, Memory, Source, replace
from kept.recall.briefing import Material, Order, compose
from kept.tables import BRIEFING_SHARES
from kept.worth import is_vouched_for
from tests.builders import START, memory
from tests.recall.parsers import PARSERS, Forged

STYLES = tuple(PARSERS)
PIECES = (
    # XML
    *"""< > </memory> </project_memory> <memory> <memory/> & &lt; &#91; <![CDATA[ ]]> <!-- --> <?x?> </relevant>
    <pinned> <conflict> " ' =""".split(),
    # Markdown and text
    *"``` ~~~ --- === | │ PINNED: CONFLICTS: : , ` ** #".split(),
    *("# ", "## Project memory", "### Pinned", "- ", "* ", "1. ", "> ", "| a | b |", "  │ ", "    ", "  files: ", "\t"),
    *("RELEVANT NOW:", "PROJECT MEMORY", "unconfirmed candidate", "by x", ": ", ", "),
    # JSON, and our own escapes
    *r"""{ } [ ] "} "content":" \ \" \n \u005b \u{5b} \u{ \u{5c}u{5b} u{5b}""".split(),
    # what only we may write
    *"[id:1] [id:g7] [ID:12] id:4] ［id:5] [[id:6]] ⚠".split(),
    *("[ id : 3]", "[⚠ CONFLICT]", "[⚠️ CONFLICT]", 'Entry #9 says "'),
    '[⚠ CONFLICT] Entry #1 says "x" but Entry #2 says "y". Verify which is current.',
    # line breaks, and what is not seen
    *("\n", "\n\n", "\r\n", *"\n\r\x0b\x0c\x1c\x1e\x85\u2028\u2029\x01\x1b\x7f\x9b"),
    *"\u200b\u200d\u202e\u2066\ufeff\ufe0f\U000e0041\ufffe\uffff\u00ad",
    # ordinary text
    *"auth login 登录 Größe 👩‍💻 ⚠️ List<int> /users/[id]/page".split(),
    *(" ", "middleware ", "if a < b && c > d:", "[id: string]"),
)


def a_text(chance: random.Random, most: int = 12) -> str:
    """What a storage could hold: not blank, no NUL, no half of a surrogate pair."""
    while not (made := "".join(chance.choices(PIECES, k=chance.randint(1, most)))).strip():
        pass
    return made


def a_memory(chance: random.Random, id: int) -> Memory:
    name = a_text(chance, 3).strip()
    fields: dict[str, Any] = {
        "id": id,
        "kind": chance.choice(("fact", "warning", "decision", "summary", name)),
        "status": chance.choice(("candidate", "confirmed", "pinned")),
        "tier": chance.choice(("session", "project", "task")),
        "files": tuple(a_text(chance, 3).strip() for _ in range(chance.choice((0, 0, 1, 2, 5)))),
        "source": Source(agent=chance.choice((None, "reviewer", name))),
    }
    return memory(a_text(chance), at=START + timedelta(days=id), **fields)


def a_case(chance: random.Random) -> tuple[Material, Order]:
    memories = [a_memory(chance, id) for id in range(1, chance.randint(2, 6))]
    entries = [Entry(memory=one, reason="a test") for one in memories]
    places = chance.choices(("always", "bridge", "retrieval", "summary"), k=len(entries))
    sections: dict[str, Any] = {
        name: tuple(entry for entry, place in zip(entries, places, strict=True) if place == name) for name in places
    }
    conflicts = [(memories[0], memories[1])] if len(memories) > 1 and chance.random() < 0.3 else []
    order = Order(
        total=chance.choice((5_000, 5_000, 1_600, 640, chance.randint(0, 400))),
        style=chance.choice(STYLES),
        shares=BRIEFING_SHARES,
        max_chars=chance.choice((None, None, 9_500, chance.randint(0, 1_000))),
    )
    return Material(**sections, conflicts=conflicts), order


def facts_of(memory: Memory, section: str) -> tuple[str, ...]:
    status = [] if is_vouched_for(memory) else ["unconfirmed candidate"]
    agent = [memory.source.agent or "unknown"] if section == "bridge" else []
    return (memory.kind, *status, *agent, memory.created_at.date().isoformat())


def check(found: Material, order: Order, composed: Briefing) -> None:
    """Raise Forged unless the text reads back as exactly what was put in."""
    if not composed.text:
        if any(section.entries for section in composed.sections):
            raise Forged("memories without a text")
        return
    parsed = PARSERS[order.style](composed.text)
    for section in composed.sections:
        read = parsed.sections.pop(section.name, [])
        if [(one.ref, one.content) for one in read] != [(e.ref, e.memory.content) for e in section.entries]:
            raise Forged("another content")
        for one, entry in zip(read, section.entries, strict=True):
            if one.facts != facts_of(entry.memory, section.name) or one.files[:3] != entry.memory.files[:3]:
                raise Forged("another fact or file")
    if parsed.sections:
        raise Forged("a section more")
    for left, says, right, says_other in parsed.conflicts:
        sides = {one.ref: " ".join(one.content.split()).replace('"', "'") for pair in found.conflicts for one in pair}
        if not (sides[left].startswith(says.rstrip("…")) and sides[right].startswith(says_other.rstrip("…"))):
            raise Forged("another conflict")
    # A model does not parse: what only we may write must not stand anywhere else, in no spacing and no line.
    marks = len(re.findall(r"[\[［]\s*id\s*:\s*g?\d+\s*\]", composed.text, re.IGNORECASE))
    if marks != sum(len(section.entries) for section in composed.sections):
        raise Forged("an id that is none")
    if len(re.findall(r"\[\s*⚠", composed.text)) != len(parsed.conflicts):
        raise Forged("a conflict that is none")
    if len(composed.text.splitlines()) != composed.text.count("\n") + 1:
        raise Forged("a line break that is none of ours")


def again(found: Material, order: Order) -> Briefing:
    """The same briefing from equal values that are not the same objects."""
    copies = {
        name: tuple(replace(entry, memory=replace(entry.memory)) for entry in getattr(found, name))
        for name in ("summary", "retrieval", "bridge", "always")
    }
    return compose(replace(found, **copies), order)


def run(renders: int, seed: int, *, stop_at_breakout: bool = False) -> Counter[str]:
    """How many briefings there were, how many of them with a text, and how many of each defect."""
    chance = random.Random(seed)
    counts: Counter[str] = Counter()
    for number in range(renders):
        found, order = a_case(chance)
        composed = compose(found, order)
        counts["renders"] += 1
        counts["with text"] += bool(composed.text)
        try:
            check(found, order, composed)
        except (Forged, LookupError) as error:
            counts["breakouts"] += 1
            if stop_at_breakout:
                break
            print(f"seed {seed}, render {number}, {order.style}: {error}\n{composed.text!r}", file=sys.stderr)
        limit = order.max_chars if order.max_chars is not None else len(composed.text)
        counts["over"] += tokens.estimate(composed.text) > order.total or len(composed.text) > limit
        counts["unstable"] += again(found, order).text != composed.text
    return counts


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--renders", type=int, default=100_000)
    options.add_argument("--seed", type=int, default=1)
    given = options.parse_args()
    counts = run(given.renders, given.seed)
    names = ("renders", "with text", "breakouts", "over", "unstable")
    print(", ".join(f"{counts[name]:,} {name}" for name in names))
    return 1 if counts["breakouts"] or counts["over"] or counts["unstable"] else 0


if __name__ == "__main__":
    sys.exit(main())
