"""`kept recall`, `why`, `briefing` and `share`: answers for people and agents, and the numbers behind them."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

import click
import msgspec

from kept import text
from kept.entrypoints.cli.frame import command, date_option, kind_and_tag_options, limit_option, session_named
from kept.entrypoints.cli.invocation import Dim, Invocation, Line, Strong, json_text
from kept.entrypoints.cli.wording import as_document, bracketed, local, meant_kinds, memory_lines, name_of, nothing_yet
from kept.errors import InvalidInput, KeptError
from kept.memory import Kept
from kept.memory.read import SCOPES, RecallScope
from kept.memory.receipts import Explained
from kept.model import Briefing, Hit, Miss, Recalled
from kept.tables import PROFILES

SHOWN_OF_A_MISS = 100  # characters
SHOWN_WORDS = 6
SHOWN_PINS = 5  # as many as come with every answer
MOST_SAID = 3  # messages that are shown where no memory fits
ASKED_FOR = "asked for"  # the reason of a word that is part of the query
STYLES = ("xml", "markdown", "text", "json")
SHARE_TOKENS = 1500
_NUMBER = click.IntRange(0, 1_000_000_000)


@command
@click.argument("words", nargs=-1, required=True)
@limit_option(5, "hits at most")
@kind_and_tag_options
@click.option(
    "--file", "files", multiple=True, metavar="PATH", help="A file you are working on: memories about it rank higher."
)
@date_option("--since", "Only memories written on this day or later.")
@date_option("--until", "Only memories written on this day or before.", is_end=True)
@click.option("--agent", metavar="NAME", help="Only what this agent wrote.")
@click.option("--scope", type=click.Choice(SCOPES), default="memory", show_default=True, help="Where to search.")
@click.option("--profile", type=click.Choice(tuple(PROFILES)), help="How to score; overrides the settings.")
@click.option("--follow", is_flag=True, help="Also include memories that were recalled together with the hits before.")
@click.option("--all-projects", is_flag=True, help="Ask every project of the home. Needs `--as admin`.")
@click.option("--explain", is_flag=True, help="Show the factors of every score, and the memories that just missed.")
def recall_command(
    invocation: Invocation,
    *,
    words: tuple[str, ...],
    since: datetime | None,
    until: datetime | None,
    scope: RecallScope,
    explain: bool,
    **asked: Any,
) -> None:
    """Give two to six key words, and synonyms if you like; not a sentence."""
    if since is not None and until is not None and since >= until:
        raise InvalidInput("--since is later than --until, so nothing can match.", hint="Swap the two dates.")
    query = " ".join(words)
    names = _project_names(invocation) if asked["all_projects"] else None
    with invocation.open() as memory:
        recalled = memory.recall(query, since=since, until=until, scope=scope, **asked)
        lines = _lines(recalled, query, invocation.clock(), explain=explain, names=names)
        if len(recalled.pinned) >= SHOWN_PINS:
            hidden = len(memory.list(status="pinned", limit=10_000)) - len(recalled.pinned)
            if hidden > 0:
                lines.append(f"{hidden:,} more pinned. `kept list --status pinned` shows all.")
        if not recalled.hits:
            is_filtered = bool(asked["kinds"] or asked["tags"] or asked["agent"] or since or until or scope != "memory")
            lines += _nothing_found(memory, invocation, recalled, query, is_filtered=is_filtered)
            lines += [asking.strip()] if (asking := meant_kinds(asked["kinds"])) else []
    if recalled.degraded:
        lines.append(f"Note: {recalled.degraded}")
    if text.query_words(query) != text.query_words(query, text.MAX_QUERY_WORDS + 1):
        lines.append(f"Note: only the first {text.MAX_QUERY_WORDS} words were searched for. Two to six work best.")
    document = _recalled_document(recalled)
    if names is not None:
        for hit in document["hits"]:
            hit["project"] = names.get(hit["memory"]["space"])
    invocation.answer(document, lines)


def _project_names(invocation: Invocation) -> dict[str, str]:
    """Space → the name of its project."""
    projects = invocation.projects().list_projects()
    return {project.team.space if project.team else project.space: project.name for project in projects}


def _recalled_document(recalled: Recalled) -> dict[str, Any]:
    document: dict[str, Any] = msgspec.to_builtins(recalled)
    document["hits"] = [_hit_document(hit) for hit in recalled.hits]
    document["misses"] = [{"hit": _hit_document(miss.hit), "reason": miss.reason} for miss in recalled.misses]
    document["pinned"] = [as_document(memory) for memory in recalled.pinned]
    return document


def _hit_document(hit: Hit) -> dict[str, Any]:
    return {"ref": hit.ref, **msgspec.to_builtins(hit), "memory": as_document(hit.memory)}


def _lines(
    recalled: Recalled, query: str, now: datetime, *, explain: bool, names: Mapping[str, str] | None
) -> list[Line]:
    lines: list[Line] = []
    for hit in recalled.hits:
        lines += memory_lines(hit.memory, now)
        if names is not None:
            name = names.get(hit.memory.space)
            lines.append(Dim("    in global memory" if name is None else f"    in project {name}"))
        if reasons := _reasons(hit, query):
            lines.append(Dim(f"    {reasons}"))
        if explain:
            lines.append(Dim(f"    {_product(hit.score, hit.why, hit.parts, hit.ref)}"))
    if explain and recalled.misses:
        lines.append(Strong("Just missed:"))
        lines += [line for miss in recalled.misses for line in _miss_lines(miss)]
    found = {hit.memory.uid for hit in recalled.hits}
    if pinned := [memory for memory in recalled.pinned if memory.uid not in found]:  # a hit is shown once
        lines.append(Strong("Pinned:"))
        lines += [line for memory in pinned for line in memory_lines(memory, now)]
    if recalled.conflicts:
        lines.append(f"Some of these contradict each other: {', '.join(one.ref for one in recalled.conflicts)}.")
    return lines


def _miss_lines(miss: Miss) -> list[Line]:
    hit = miss.hit
    shown = _shortened(hit.memory.content.split("\n", 1)[0])
    return [
        (name_of(hit.memory), f" {shown}"),
        Dim(f"    {_product(hit.score, hit.why, hit.parts, hit.ref)}: {miss.reason}"),
    ]


def _reasons(hit: Hit, query: str) -> str:
    """Why the memory was found, in words as the query and the memory write them, not in their stems."""
    reasons = []
    for word, reason in hit.matched.items():
        if reason == ASKED_FOR:
            reasons.append(text.as_written(word, query))
        else:
            how, _, of = reason.rpartition(" ")
            reasons.append(f"{text.as_written(word, hit.memory.content)} ({how} {text.as_written(of, query)})")
    if not reasons:
        return "similar in meaning" if hit.parts.get("vectors") else ""
    return f"matches {', '.join(dict.fromkeys(reasons))}"


def _nothing_found(
    memory: Kept, invocation: Invocation, recalled: Recalled, query: str, *, is_filtered: bool
) -> list[Line]:
    """Advice for a person who asked and got nothing."""
    if not memory.list(limit=1):
        return [nothing_yet(invocation)]
    words = [text.as_written(word, query) for word in text.query_words(query)]
    if not words:
        return ["The query has no word to search for. Give two to six key words: `kept recall login token`."]
    named = f"{', '.join(words[:SHOWN_WORDS])}{' …' if len(words) > SHOWN_WORDS else ''}"
    named = f"the word {named}" if len(words) == 1 else f"any of the words {named}"
    said = memory.look().search(query, scope="sessions", limit=MOST_SAID).hits
    if said:
        shown: list[Line] = [
            Dim(f"    {hit.ref}: {_shortened(text.visible(hit.content, keep_newlines=False))}") for hit in said
        ]
        more = "`kept session search WORDS` shows more"
        if recalled.misses:
            return ["Nothing fits well. In conversations:", *shown, f"{more}; `kept why` shows what was held back."]
        return [f"No memory has {named}. In conversations:", *shown, f"{more}."]
    if recalled.misses:
        return ["Nothing fits well. Try other words; `kept why` shows what was held back."]
    if is_filtered:
        return [f"No memory that passes the filters has {named}. Ask again without them, or try other words."]
    return [f"No memory has {named}. Try other words for it, or `kept list`."]


def _shortened(line: str) -> str:
    return line if len(line) <= SHOWN_OF_A_MISS else f"{line[: SHOWN_OF_A_MISS - 1]}…"


def _product(score: float, why: Mapping[str, float], parts: Mapping[str, float], ref: str) -> str:
    """A score and its factors, without those that change nothing; the match with its summands. A message has a sum."""
    if "#" in ref:
        return f"{score:.3g} = {' + '.join(f'{name} {value:.3g}' for name, value in why.items() if value)}"
    factors = [f"{name} {value:.3g}" for name, value in why.items() if f"{value:.3g}" != "1"]
    if "vectors" in parts:
        summands = " + ".join(f"{name} {value:.3g}" for name, value in parts.items())
        factors = [f"{factor} ({summands})" if factor.startswith("match ") else factor for factor in factors]
    return f"{score:.3g} = {' × '.join(factors) or '1'}"


def _noted_product(line: Mapping[str, Any]) -> str:
    """The same for a hit as a receipt has noted it."""
    return _product(line["score"], line["why"], line.get("parts", {}), line["ref"])


@command
@click.argument("receipt", required=False)
@click.option("--session", metavar="ID", help="Everything that this session of an agent was given automatically.")
def why_command(invocation: Invocation, *, receipt: str | None, session: str | None) -> None:
    """RECEIPT names an earlier recall, such as r17. With --session: each text that hooks gave to the agent, as it was
    given, with what asked for it, the reasons, and what just missed; of the last 30 days.
    """
    if session is not None:
        if receipt is not None:
            raise InvalidInput("Give a receipt or --session, not both.")
        _answer_session(invocation, session)
        return
    with invocation.open() as memory:
        explained = memory.why(receipt)
    invocation.answer(explained, _explained_lines(explained, invocation))


def _answer_session(invocation: Invocation, session: str) -> None:
    with invocation.open() as memory:
        typed, session = session, session_named(invocation, memory, session, must_exist=False)
        if session == typed:  # an agent that was only listened to has receipts, and no session of its own
            meant = memory.look().sessions_given(beginning=typed)
            if len(meant) > 1 and typed not in meant:
                raise InvalidInput(
                    f"{len(meant)} sessions begin with {typed!r}: {', '.join(meant)}.", hint="Type more of the id."
                )
            session = meant[0] if len(meant) == 1 else session
        given = memory.look().receipts(session)
    lines: list[Line] = []
    for explained in reversed(given):
        lines.append((Strong(explained.receipt), Dim(f"  {explained.agent}, {explained.event}")))
        lines += [("    │ ", line) for line in (explained.block or "nothing").split("\n")]
        lines += _explained_lines(explained, invocation)
    hint = "`kept session list` shows the sessions; what they were given is kept for 30 days."
    invocation.answer({"given": given}, lines or [f"No text was given to a session {session!r}. {hint}"])


def _explained_lines(explained: Explained, invocation: Invocation) -> list[Line]:
    lines: list[Line] = [
        (Strong(explained.receipt), f"  {local(explained.at, invocation.zone)}  {explained.question.query}"),
        Dim(f"    {explained.took_ms:.1f} ms; words: {_words(explained) or 'not stored'}"),
    ]
    if explained.to is not None:
        shared = ", ".join(f"[id:{entry['ref']}]" for section in explained.sections for entry in section["entries"])
        lines.append(f"shared with {explained.to}: {shared or 'nothing'}")
    elif explained.kind in ("briefing", "known_error"):
        lines += _briefed(explained)
    lines += [(Strong(bracketed(hit["ref"])), f" {_noted_product(hit)}") for hit in explained.hits]
    if not explained.hits and explained.kind == "recall":
        lines.append("Nothing was found.")
    for miss in explained.misses:
        lines.append((f"missed {bracketed(miss['ref'])}", Dim(f" {_noted_product(miss)}: {miss['reason']}")))
    if explained.pinned:
        lines.append(f"pinned {', '.join(f'[id:{ref}]' for ref in explained.pinned)}")
    if explained.degraded:
        lines.append(f"Note: {explained.degraded}")
    return lines


def _words(explained: Explained) -> str:
    """The words of a question as they were written, and how many others were searched for them."""
    query = explained.question.query
    stems = set(text.query_words(query))
    asked = [text.as_written(word, query) for word in explained.words if word in stems]
    others = len(explained.words) - len(asked)
    return ", ".join(asked) + (f", and {others} more by alias or spelling" if asked and others else "")


def _briefed(explained: Explained) -> list[Line]:
    """The memories of a briefing and why they were in it, and those that did not fit."""
    entries = [entry for section in explained.sections for entry in section["entries"]]
    lines: list[Line] = [(Strong(f"[id:{entry['ref']}]"), f" was in the briefing: {entry['why']}") for entry in entries]
    if not entries:
        lines.append("The briefing was empty.")
    return lines + [Dim(f"left out [id:{one['ref']}]: {one['reason']}") for one in explained.left_out]


@command
@click.argument("prompt", nargs=-1)
@click.option("--budget", "budget_tokens", type=_NUMBER, metavar="TOKENS", help="At most this many tokens.")
@click.option(
    "--remaining",
    "remaining_tokens",
    type=_NUMBER,
    metavar="TOKENS",
    help="Tokens left in the context; the briefing takes at most 8 % of them.",
)
@click.option("--style", type=click.Choice(STYLES), default="xml", show_default=True, help="The format of the text.")
@click.option("--file", "files", multiple=True, metavar="PATH", help="A file at hand. May be repeated.")
@click.option("--session", metavar="ID", help="The running session: adds findings of its other agents.")
@click.option("--task", metavar="ID", help="The task at hand: adds its notes.")
@click.option("--max-chars", type=_NUMBER, metavar="NUMBER", help="At most this many characters.")
def briefing_command(invocation: Invocation, *, prompt: tuple[str, ...], **wanted: Any) -> None:
    """Pinned memories, findings of other agents since the session began, memories that fit PROMPT with the rules of the
    project, the last session and open tasks, within a budget of tokens. Without a PROMPT, memories that are important
    and recent. Prints nothing when nothing fits. A failure stops no agent: it is reported on standard error, and the
    exit code is still 0.

    \b
    kept briefing "fix the login bug" --budget 1500
    kept briefing --style markdown --remaining 50000 --file src/auth.py
    """
    try:
        with invocation.open() as memory:
            if wanted["session"]:
                wanted["session"] = session_named(invocation, memory, wanted["session"], must_exist=False)
            briefing = memory.briefing(" ".join(prompt), **wanted)
    except KeptError as error:
        briefing = Briefing(error=str(error))
    if briefing.error and not invocation.as_json:
        invocation.tell(briefing.error)
    document = msgspec.to_builtins(briefing)
    for section, its_document in zip(briefing.sections, document["sections"], strict=True):
        its_document["entries"] = [
            {"ref": entry.ref, "why": entry.why, "memory": as_document(entry.memory)} for entry in section.entries
        ]
    invocation.answer(document, str(briefing).split("\n") if str(briefing) else [])


@command
@click.argument("query", nargs=-1, required=True)
@click.option("--to", required=True, metavar="NAME", help="The skill that gets the message.")
@click.option("--action", required=True, metavar="TEXT", help="What the skill should do.")
@click.option(
    "--context", "project_context", metavar="TEXT", help="The project in your own words, instead of pinned memories."
)
@click.option("--file", "files", multiple=True, metavar="PATH", help="A file at hand. May be repeated.")
@click.option(
    "--budget",
    "budget_tokens",
    type=click.IntRange(1, 1_000_000),
    default=SHARE_TOKENS,
    show_default=True,
    metavar="TOKENS",
    help="At most this many tokens.",
)
def share_command(invocation: Invocation, *, query: tuple[str, ...], **wanted: Any) -> None:
    """It holds the memories that match QUERY, and pinned ones, within a budget of tokens. A skill has no access to
    memory: it knows only this message.

    \b
    kept share auth login --to agent_skill_review --action review
    """
    with invocation.open() as memory:
        shared = memory.share(query=" ".join(query), **wanted)
    entries = [{"ref": entry.ref, "why": entry.why} for entry in shared.entries]
    document = msgspec.to_builtins(shared) | {"entries": entries}
    invocation.answer(document, json_text(shared.as_dict()).split("\n"))
