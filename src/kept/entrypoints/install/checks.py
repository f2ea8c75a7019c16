"""Check the whole chain between Kept and each agent, link by link, for `kept doctor`. Each fault has its fix.

    our entries are in the agent's files  →  the programs they name run  →  the agent may run them  →  events arrive
    →  their transcripts were imported

The programs are really run: the hook with a sample event in a scratch home, the server with a request for its tools.
Rule: a fault keeps an agent from its memory; anything else is a note. Nothing is changed here.
"""

import difflib
import json
import subprocess
import tempfile
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Literal, NamedTuple

from msgspec import Struct

from kept.distribution import install_line
from kept.entrypoints.hook import LIMIT_VARIABLE
from kept.entrypoints.hook.agents import AGENTS as HOOK_FORMATS
from kept.entrypoints.hook.folder import DIED, RECENT_DAYS, HookFolder, listed_misses
from kept.entrypoints.hook.places import LATE, TOLD_LAST
from kept.entrypoints.install import Change, Ledger, codex, plan, rpc
from kept.entrypoints.install.agents import AGENTS, MachineFacts
from kept.entrypoints.install.jsonc import value_at
from kept.errors import KeptError

HOOK_SECONDS = 5.0
SERVER_SECONDS = 20.0
NO_ANSWER = f"no answer within {SERVER_SECONDS:.0f} seconds"
MISSING = ("ModuleNotFoundError", "ImportError", "needs the package", "no such file")
WAITS_HOURS = 1  # until a pointer in the spool counts as stuck
SHOWN_FAILURES = 3
ENOUGH_MS = 3_000  # for a hook on a machine that is always busy
TOOLS = 6


class LinkCheck(Struct, frozen=True, kw_only=True):
    """The finding at one link of the chain of an agent."""

    agent: str
    level: Literal["ok", "note", "problem"]
    check: str
    message: str = ""
    hint: str = ""


def check_agents(
    where: MachineFacts, ledger: Ledger, hooks: HookFolder, now: datetime, codex_program: str | None
) -> list[LinkCheck]:
    """Check every link of every installed agent, and what hooks left behind, which others may have set up."""
    names = [name for name in AGENTS if ledger.of([name])]
    found = [one for name in names for one in _of_agent(name, where, ledger, hooks, codex_program)]
    if names:
        found += _programs(where)
    return [*found, *_spool_and_failures(hooks, now)]


def _of_agent(
    name: str, where: MachineFacts, ledger: Ledger, hooks: HookFolder, codex_program: str | None
) -> Iterator[LinkCheck]:
    """Check the links of one agent."""
    entries = ledger.of([name])
    scope = next(iter(entries.values())).scope
    try:
        changes = [change for change in plan(name, scope, where, ledger) if not change.is_nothing]
    except KeptError as error:
        yield LinkCheck(agent=name, level="problem", check="settings", message=error.message, hint=error.hint)
        return
    yield from _settings(name, changes)
    yield from _disabled_hooks(name, entries)
    if name == "codex" and codex_program:
        yield _codex_trust(codex.our_hooks(codex_program, where, [*map(Path, entries)]))
    if name in HOOK_FORMATS:
        yield _last_event(name, hooks)


def _settings(name: str, changes: Sequence[Change]) -> Iterator[LinkCheck]:
    """Report the files of an agent that installing again would change."""
    title, again = AGENTS[name].title, f"Run: kept install {name}"
    for change in changes:
        fault = "is gone" if change.before is None else "does not hold Kept's entries as they should be"
        message = f"{title}: {change.path} {fault}."
        yield LinkCheck(agent=name, level="problem", check="settings", message=message, hint=again)
    if not changes:
        yield LinkCheck(agent=name, level="ok", check=f"{title} settings")


def _disabled_hooks(name: str, entries: Iterable[str]) -> Iterator[LinkCheck]:
    """Report files that switch off all hooks of an agent."""
    for path in map(Path, entries):
        is_settings = path.suffix == ".json" and path.is_file()
        if is_settings and _value(path.read_text("utf-8", "replace"), ("disableAllHooks",)) is True:
            message = f"{AGENTS[name].title}: disableAllHooks is true in {path}, so no hook runs."
            yield LinkCheck(agent=name, level="problem", check="hooks", message=message, hint="Set it to false.")


def _codex_trust(hooks: Sequence[codex.CodexHook] | None) -> LinkCheck:
    """Report whether Codex trusts our hooks."""
    title = AGENTS["codex"].title
    if hooks is None:
        message = f"{title} did not say which hooks it trusts."
        return LinkCheck(agent="codex", level="note", check="trust", message=message)
    if count := sum(not hook.is_trusted for hook in hooks):
        message = f"{title} does not trust {count} of the {len(hooks)} hooks, so it skips them."
        hint = "Run: kept install codex --yes, or type /hooks in Codex."
        return LinkCheck(agent="codex", level="problem", check="trust", message=message, hint=hint)
    return LinkCheck(agent="codex", level="ok", check=f"{title} trust")


def _last_event(name: str, hooks: HookFolder) -> LinkCheck:
    """Report the last event that an agent has sent."""
    title, seen = AGENTS[name].title, hooks.last_events().get(name)
    if seen is None:
        hint = "Start a new session in it, then look again."
        message = f"{title}: no event has arrived yet."
        return LinkCheck(agent=name, level="note", check=f"{title} events", message=message, hint=hint)
    message = f"{title}: last event {seen[0]}, {seen[1]:%Y-%m-%d}."
    return LinkCheck(agent=name, level="ok", check=f"{title} events", message=message)


def _value(text: str, path: tuple[str, ...]) -> object:
    try:
        return value_at(text, path)
    except KeptError:
        return None


# ---- the programs ----


def _programs(where: MachineFacts) -> Iterator[LinkCheck]:
    reason = run_hook(where)
    if reason:
        hint = "Install Kept again where the agents can run it, then: kept install"
        yield LinkCheck(agent="", level="problem", check="hook", message=f"The hook does not run: {reason}.", hint=hint)
    else:
        yield LinkCheck(agent="", level="ok", check="hook")
    if not where.with_tools:
        hint = f"Run: {install_line('agents')} && kept install"
        message = "The tools for agents are not installed; hooks work without them."
        yield LinkCheck(agent="", level="note", check="tools", message=message, hint=hint)
        return
    reason = ask_server(where)
    if reason:
        message = f"The MCP server does not answer: {reason}."
        yield LinkCheck(agent="", level="problem", check="server", message=message, hint=_server_hint(reason))
    else:
        yield LinkCheck(agent="", level="ok", check="server")


def _server_hint(reason: str) -> str:
    """Return the next step after a fault of the server; installing is named only where something is missing."""
    if reason == NO_ANSWER:
        return "The machine may be busy: run `kept doctor` again later. If it stays so, run `kept mcp` by hand."
    if any(sign in reason for sign in MISSING):
        return f"Run: {install_line('agents')} && kept install"
    return "Run `kept mcp` by hand to see why."


def run_hook(where: MachineFacts) -> str:
    """Run the hook with the start of a session, in a scratch home. Return the fault, or "" if there is none."""
    event = next(iter(HOOK_FORMATS["claude-code"].events))
    with tempfile.TemporaryDirectory(prefix="kept-doctor-") as scratch:
        given = {"session_id": "doctor", "cwd": scratch, "hook_event_name": event, "source": "startup"}
        environ = {
            **where.environ,
            **where.environment,
            "KEPT_HOME": str(Path(scratch) / "home"),
            "KEPT_PROJECT": "doctor",
        }
        try:
            ran = subprocess.run(
                [where.hook, "claude-code", event],
                input=json.dumps(given).encode(),
                capture_output=True,
                timeout=HOOK_SECONDS,
                env=environ,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return f"{where.hook} took more than {HOOK_SECONDS:.0f} seconds"
        except OSError as error:
            return f"{where.hook}: {(error.strerror or str(error)).lower()}"
        failures = HookFolder(Path(scratch) / "home").failures()
    if ran.returncode:
        return f"{where.hook} ended with {ran.returncode}: {rpc.last_line(ran.stderr)}"
    return str(failures[-1].get("failure")) if failures else ""


def ask_server(where: MachineFacts) -> str:
    """Start the server as agents do and ask for its tools. Return the fault, or "" if there is none."""
    hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "kept-doctor", "version": "1"}}
    requests: list[dict[str, object]] = [
        {"id": 1, "method": "initialize", "params": hello},
        {"method": "notifications/initialized"},
        {"id": 2, "method": "tools/list", "params": {}},
    ]
    try:
        reply = rpc.ask(
            [where.kept, "mcp"], requests, seconds=SERVER_SECONDS, environ={**where.environ, **where.environment}
        )
    except OSError as error:
        return f"{where.kept}: {(error.strerror or str(error)).lower()}"
    if reply.result is None:
        return NO_ANSWER if reply.is_late else reply.complaint or "it ended without an answer"
    tools = reply.result.get("tools", ())
    return "" if len(tools) >= TOOLS else f"it offers {len(tools)} tools instead of {TOOLS}"


# ---- spool and failures ----


def _spool_and_failures(hooks: HookFolder, now: datetime) -> Iterator[LinkCheck]:
    old = (now - timedelta(hours=WAITS_HOURS)).timestamp() * 1e9
    waiting = [path for path, _ in hooks.pointers() if _written_at(path) < old]
    if waiting:
        message = f"Transcripts that wait to be taken in for more than an hour: {len(waiting)}."
        hint = "Run: kept doctor --fix"
        yield LinkCheck(agent="", level="problem", check="spool", message=message, hint=hint)
    else:
        yield LinkCheck(agent="", level="ok", check="spool")
    yield from _died(hooks)
    yield from _misnamed(hooks)
    yield from _failures(hooks, now)


def _died(hooks: HookFolder) -> Iterator[LinkCheck]:
    """Report background processes that ended too early, if none that was started later is done."""
    died = [about for _, about in hooks.died()]
    if not died:
        yield LinkCheck(agent="", level="ok", check="background")
        return
    last = max(died, key=lambda about: str(about["at"]))
    message = (
        f"{DIED}, {len(died)} times; the last was at {last['at']}, for {last['event']} of {last['agent']}. "
        "It stores what a session said."
    )
    hint = "Run: kept doctor --fix. If it happens again, look for a crash or a lack of memory in the system's log."
    yield LinkCheck(agent=str(last["agent"]), level="problem", check="background", message=message, hint=hint)


def _misnamed(hooks: HookFolder) -> Iterator[LinkCheck]:
    """Report calls of the hook that do nothing, because of the name of the agent or of the event."""
    for agent, event, last in hooks.misnamed_calls():
        known = HOOK_FORMATS.get(agent)
        names: Collection[str] = HOOK_FORMATS if known is None else known.events
        wrong = f"agent {agent!r}" if known is None else f"event {event!r}"
        near = difflib.get_close_matches(agent if known is None else event, names, 1, 0.5)
        message = f"`kept-hook {agent} {event}` does nothing: unknown {wrong}. Last run {last:%Y-%m-%d}."
        hint = f"Did you mean {near[0]!r}? " if near else ""
        hint += f"Change the entry that runs it, or run: kept install{'' if known is None else f' {agent}'}"
        yield LinkCheck(agent="", level="problem", check="hooks", message=message, hint=hint)


class FailurePattern(NamedTuple):
    """A failure that is a problem if it happens often, and its report."""

    beginning: str  # of the failures
    many: int  # in RECENT_DAYS
    message: str
    hint: str


PATTERNS = (
    FailurePattern(
        LATE,
        5,  # fewer happen on every machine that is busy for a moment
        "In the last {days} days {count} hooks ran out of time and told the agent nothing: {moments}.",
        f"Give them more time where agents start, in milliseconds: export {LIMIT_VARIABLE}={ENOUGH_MS}",
    ),
    FailurePattern(
        DIED,
        3,  # fewer happen where a machine is switched off
        "In the last {days} days {count} background processes ended before they were done.",
        "Look for crashes or a lack of memory in the system's log.",
    ),
)


def _failures(hooks: HookFolder, now: datetime) -> Iterator[LinkCheck]:
    """Report each pattern with many recent failures as one problem, and the last of the other failures as notes."""
    found, left = [], _recent(hooks.failures(), now)
    moments = listed_misses(hooks.misses(now - timedelta(days=RECENT_DAYS)))
    for pattern in PATTERNS:
        matching = [entry for entry in left if _is_like(entry, pattern)]
        if len(matching) >= pattern.many:
            message = pattern.message.format(days=RECENT_DAYS, count=len(matching), moments=moments)
            found.append(LinkCheck(agent="", level="problem", check="failures", message=message, hint=pattern.hint))
            left = [entry for entry in left if entry not in matching]
    found += [_failure_note(entry) for entry in left[-SHOWN_FAILURES:]]
    yield from found or [LinkCheck(agent="", level="ok", check="failures")]


def _is_like(entry: Mapping[str, object], pattern: FailurePattern) -> bool:
    """Return True for a failure of this pattern, unless the last briefing stood in for a server that was away."""
    why = str(entry.get("failure"))
    return why.startswith(pattern.beginning) and TOLD_LAST not in why


def _recent(entries: Iterable[Mapping[str, object]], now: datetime) -> list[Mapping[str, object]]:
    since = f"{now - timedelta(days=RECENT_DAYS):%Y-%m-%dT%H:%M:%SZ}"
    return [entry for entry in entries if str(entry.get("at")) >= since]


def _failure_note(entry: Mapping[str, object]) -> LinkCheck:
    agent, event, at = entry.get("agent"), entry.get("event"), entry.get("at")
    message = f"A hook failed: {agent} {event} at {at}: {entry.get('failure')}."
    return LinkCheck(agent=str(agent), level="note", check="failures", message=message)


def _written_at(path: Path) -> float:
    stamp = path.name.partition("-")[0]
    return float(stamp) if stamp.isdigit() else 0.0
