"""`kept doctor`: a check of the stores, and of every agent that Kept is installed in."""

import os
import shutil
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import click
import msgspec

from kept.entrypoints.cli.derived import options_of, request_of
from kept.entrypoints.cli.frame import command
from kept.entrypoints.cli.install import ledger, surroundings
from kept.entrypoints.cli.invocation import FAILED, FOLLOW, Bad, Caution, Dim, Good, Invocation, Line, Strong
from kept.entrypoints.cli.overview import outdated_files
from kept.entrypoints.cli.wording import reader_lines
from kept.entrypoints.hook.background import work_off
from kept.entrypoints.hook.folder import HookFolder
from kept.entrypoints.install.agents import AGENTS
from kept.entrypoints.install.checks import LinkCheck, check_agents
from kept.errors import KeptError, SettingsError
from kept.memory import Kept
from kept.memory.store import FileCheck
from kept.memory.verbs.upkeep import DOCTOR
from kept.model import GLOBAL
from kept.settings import Settings

if TYPE_CHECKING:
    from kept.memory.store import Finding

PROBLEM = "problem"
MOST_ALIKE = 3  # findings with the same advice that are named


@command
@options_of(DOCTOR)
def doctor_command(invocation: Invocation, **given: Any) -> None:
    """It reads every byte that an answer could come from, and changes nothing. The exit code is 1 if there is a
    problem. With --fix it recovers as much as possible and says what is lost.
    """
    asked = request_of(DOCTOR, given)
    memory, wrong_settings = _opened(invocation)
    with memory:
        stores = memory.perform(DOCTOR, asked)
        readers = memory.files.note_readers(os.environ)
        outdated = _outdated(memory, stores)
        moved = _moved(memory, invocation)
    links = _agent_checks(invocation, fix=asked.fix)
    is_healthy = not (wrong_settings or moved or _has_problem(stores) or any(link.level == PROBLEM for link in links))
    lines = [
        *wrong_settings,
        *_store_lines(stores),
        *moved,
        *_agent_lines(links),
        *(f"Note: the block in {path} is out of date. `kept files agents` writes it." for path in outdated),
        *reader_lines(readers, invocation.clock()),
        *_verdict(stores, links, is_healthy=is_healthy),
    ]
    document = {"healthy": is_healthy, "stores": stores, "agents": links, "notes": readers, "outdated": outdated}
    invocation.answer(msgspec.to_builtins(document), lines)
    if not is_healthy:
        click.get_current_context().exit(FAILED)


def _outdated(memory: Kept, stores: Sequence[FileCheck]) -> list[str]:
    """Return the files with an outdated block; none while a store has a problem, which keeps it from being opened."""
    with suppress(KeptError):
        return [] if _has_problem(stores) else outdated_files(memory)
    return []


def _moved(memory: Kept, invocation: Invocation) -> list[Line]:
    """Return a line that says where the project is, if it was moved and this home still looks at the old place."""
    with suppress(KeptError):
        if (moved := memory.store.moved_away()) is not None:
            waits = "Conversations wait here until then."
            return [(Bad("    problem: "), f"{invocation.named(moved)} {FOLLOW} {waits}")]
    return []


def _opened(invocation: Invocation) -> tuple[Kept, list[Line]]:
    """Open the memory, also if its settings are broken; then with a line that says so."""
    try:
        return invocation.open(auto_upkeep=False), []
    except SettingsError as error:  # a broken settings file must not keep anybody from checking the stores
        plain = msgspec.structs.replace(invocation, settings=Settings())
        return plain.open(auto_upkeep=False), [(Bad("problem: "), f"{error.message} {error.hint}")]


def _agent_checks(invocation: Invocation, *, fix: bool) -> list[LinkCheck]:
    """Check the chain of every agent; `fix` imports the transcripts that its hooks left waiting.

    If Kept is installed in no agent, only faults of hooks that were set up by hand are reported.
    """
    book = ledger(invocation)
    hooks = HookFolder(invocation.projects().home.root)
    if fix:
        work_off(hooks)
        hooks.log_died()
    found = check_agents(surroundings(invocation), book, hooks, invocation.clock(), shutil.which("codex"))
    return found if book.entries else [link for link in found if link.level != "ok"]


def _has_problem(stores: Iterable[FileCheck]) -> bool:
    return any(one.level == PROBLEM for store in stores for one in store.findings)


def _store_lines(stores: Iterable[FileCheck]) -> Iterator[Line]:
    for store in stores:
        yield (Strong("Global memory" if store.space == GLOBAL else "This project"), Dim(f"  {store.path}"))
        yield from _check_lines([*store.repaired, *store.findings])


def _agent_lines(links: Sequence[LinkCheck]) -> Iterator[Line]:
    if links:
        yield Strong("Agents")
        yield from _check_lines(links)


def _check_lines(findings: "Sequence[Finding | LinkCheck]") -> Iterator[Line]:
    """Return one line for each problem or note; all checks that passed in one line."""
    if in_order := ", ".join(dict.fromkeys(finding.check for finding in findings if finding.level == "ok")):
        yield (Good("    ok: "), Dim(in_order))
    same: dict[tuple[str, str], list[str]] = {}
    for level, message, hint in _merged(findings):
        same.setdefault((level, hint), []).append(message)
    for (level, hint), messages in same.items():
        mark = Bad("    problem: ") if level == PROBLEM else Caution("    note: ")
        shown, more = messages[:MOST_ALIKE], len(messages) - MOST_ALIKE
        yield (mark, " ".join([*shown, *([f"And {more:,} more like these."] if more > 0 else []), hint]).rstrip())


def _merged(findings: "Sequence[Finding | LinkCheck]") -> Iterator[tuple[str, str, str]]:
    """Yield level, message and hint of each finding that is not ok; the same one of several agents once."""
    titles: dict[tuple[str, str, str], list[str]] = {}
    for one in findings:
        if one.level != "ok":
            agent = AGENTS[one.agent].title if isinstance(one, LinkCheck) and one.agent else ""
            said = one.message.removeprefix(f"{agent}: ") if agent else one.message
            titles.setdefault((one.level, said, one.hint), []).append(agent if said != one.message else "")
    for (level, said, hint), agents in titles.items():
        named = ", ".join(dict.fromkeys(filter(None, agents)))
        yield level, f"{named}: {said}" if named else said, hint


def _verdict(stores: Sequence[FileCheck], links: Sequence[LinkCheck], *, is_healthy: bool) -> Iterator[Line]:
    if not stores and not links:
        yield "Nothing is kept here yet, so there is nothing to check."
    elif is_healthy:
        is_lost = any(one.level == PROBLEM for store in stores for one in store.repaired)
        yield Caution("Repaired. The items above could not be recovered.") if is_lost else Good("No problems found.")
