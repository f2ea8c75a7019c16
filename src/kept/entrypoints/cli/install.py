"""`kept install` and `kept uninstall`: Kept in the agents of this machine."""

import difflib
import os
import shutil
import sys
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import click

import kept.entrypoints.install as install
from kept.distribution import VERSION, install_line
from kept.entrypoints.cli.frame import command
from kept.entrypoints.cli.invocation import Dim, Invocation, Line, Strong
from kept.entrypoints.cli.wording import counted
from kept.entrypoints.install.agents import AGENTS, NAMES, MachineFacts, Scope
from kept.errors import InvalidInput, KeptError, NotFound, SettingsError
from kept.memory.opening import open_projects

IMPORTABLE = ("claude-code", "codex", "gemini", "qwen", "copilot", "opencode")  # `kept import` reads their transcripts
SHOWN_LINES = 40  # of the difference of one file

_agents = click.argument("agents", nargs=-1, metavar="[AGENT]...")
_yes = click.option("--yes", is_flag=True, help="Do not ask.")


def surroundings(invocation: Invocation, *, with_tools: bool | None = None) -> MachineFacts:
    """This machine, as the installers see it."""
    home = open_projects(invocation.home).home.root
    named = invocation.home or os.environ.get("KEPT_HOME")
    return MachineFacts(
        user_home=Path.home(),
        project=Path(invocation.project or Path.cwd()).absolute(),
        plugin=home / "agents" / "claude-code",
        environ=os.environ,
        platform=sys.platform,
        kept=_program("kept"),
        hook=_program("kept-hook"),
        variables={"KEPT_HOME": str(Path(named).expanduser().absolute())} if named else {},
        with_tools=find_spec("mcp") is not None if with_tools is None else with_tools,
        version=VERSION,
    )


def _program(name: str) -> str:
    """The absolute path of one of our programs: beside this Python, else on the PATH."""
    beside = Path(sys.executable).parent / (f"{name}.exe" if sys.platform == "win32" else name)
    found = str(beside) if beside.exists() else shutil.which(name)
    if not found:
        raise SettingsError(
            f"The program {name} was not found.", hint=f"Install Kept again: {install_line('', '--force-reinstall')}"
        )
    return str(Path(found).absolute())


def ledger(invocation: Invocation) -> install.Ledger:
    return install.Ledger(open_projects(invocation.home).home.root)


def found_here(where: MachineFacts) -> list[str]:
    """The agents that are on this machine."""
    programs = {program: shutil.which(program) for agent in AGENTS.values() for program in agent.programs}
    return install.found(where, programs)


def _chosen(names: Sequence[str], where: MachineFacts) -> list[str]:
    if names:
        return [install.known(name) for name in dict.fromkeys(names)]
    found = found_here(where)
    if not found:
        raise NotFound(
            "No agent was found on this machine.", hint=f"Name one: kept install AGENT. Known: {', '.join(AGENTS)}."
        )
    return found


@command
@_agents
@click.option(
    "--scope", type=click.Choice(["user", "project"]), default="user", show_default=True, help="Whose settings."
)
@click.option("--dry-run", is_flag=True, help="Show what would change, and change nothing.")
@click.option("--import/--no-import", "past", default=None, help="Import this project's past sessions. [default: ask]")
@_yes
def install_command(
    invocation: Invocation, *, agents: tuple[str, ...], scope: Scope, dry_run: bool, past: bool | None, yes: bool
) -> None:
    """Without a name: every agent that is found on this machine, after you saw the changes and said yes. Files are
    merged, never replaced; `kept uninstall` gives each back as it was. Doing it again changes nothing. In a terminal
    it offers to import the past sessions of this project.

    \b
      kept install
      kept install claude-code codex
      kept install gemini --dry-run
    """
    where, home = surroundings(invocation), open_projects(invocation.home).home
    chosen = _chosen(agents, where)
    missing = [name for name in chosen if name not in found_here(where)]
    if not dry_run:
        home.prepare_root()
    with nullcontext() if dry_run else install.one_at_a_time(home.root):
        book = ledger(invocation)
        plans = {name: install.plan(name, scope, where, book) for name in chosen}
        is_shown = not agents and not dry_run and not yes
        if is_shown:
            for name, changes in plans.items():
                invocation.tell(
                    *_told(name, scope, [one for one in changes if not one.is_nothing], where, book, dry_run=True)
                )
            if any(not one.is_nothing for changes in plans.values() for one in changes):
                invocation.agree(f"Put Kept into {titles(chosen)}?")
        lines: list[Line] = []
        documents = []
        for name, changes in plans.items():
            needed = [one for one in changes if not one.is_nothing]
            done = needed if dry_run else install.apply(name, scope, changes, book)
            documents.append(
                {
                    "agent": name,
                    "called": install.name_for(name, scope, where, book),
                    "is_found": name not in missing,
                    "changes": [_document(one) for one in done],
                    "next": AGENTS[name].next_step,
                }
            )
            lines += _told(name, scope, done, where, book, dry_run=dry_run, in_full=not is_shown)
        lines += [_not_here(name, where) for name in missing]
        if "codex" in plans and not dry_run:
            lines += _trust_codex(invocation, where, scope, book, yes=yes)
    if not where.with_tools:
        lines.append(f"The hooks are set up. One line adds the tools: {install_line('agents')} && kept install")
    document: dict[str, Any] = {"dry_run": dry_run, "agents": documents, "tools": where.with_tools}
    if invocation.as_json:
        document["imported"] = {} if dry_run else _import_past(invocation, chosen, past)
        invocation.answer(document, ())
        return
    invocation.answer(document, lines)
    if not dry_run:
        _import_past(invocation, chosen, past)


def _trust_codex(
    invocation: Invocation, where: MachineFacts, scope: Scope, book: install.Ledger, *, yes: bool
) -> Iterator[Line]:
    """Offer to trust our hooks in Codex, which otherwise skips them without a word."""
    from kept.entrypoints.install import codex

    program = shutil.which("codex")
    hooks = codex.our_hooks(program, where, AGENTS["codex"].files(where, scope)) if program else None
    tables = codex.trusted(hooks or [])
    if hooks and not tables:
        yield "  Codex trusts the hooks already."
    elif tables and (yes or invocation.can_pick()):
        question = f"Codex runs hooks only once they are trusted. Trust the {len(tables)} hooks of Kept now?"
        if not yes and invocation.pick(question, ("yes", "no")) != "yes":
            yield f"  {AGENTS['codex'].next_step}"
            return
        folder = AGENTS["codex"].folder(where)
        install.add_tables("codex", scope, folder / "config.toml", tables, book)
        yield f"  Codex trusts the {len(tables)} hooks now (in {_short(folder / 'config.toml', where)})."


def titles(names: Sequence[str]) -> str:
    titles = [AGENTS[name].title for name in names]
    return titles[0] if len(titles) == 1 else f"{', '.join(titles[:-1])} and {titles[-1]}"


def _told(
    name: str,
    scope: Scope,
    done: Sequence[install.Change],
    where: MachineFacts,
    book: install.Ledger,
    *,
    dry_run: bool,
    in_full: bool = True,
) -> Iterator[Line]:
    agent = AGENTS[name]
    for path in dict.fromkeys(install.taken_in(NAMES[0], name, scope, where, book)):
        called = install.name_for(name, scope, where, book)
        yield (
            f"{agent.title}: the entry {NAMES[0]} in {_short(path, where)} belongs to another program and stays. "
            f"Kept is called {called} there."
        )
    if not done:
        yield f"{agent.title}: installed already, nothing to change."
        return
    yield Strong(f"{agent.title}{': this would change' if dry_run else ''}")
    ours = [change for change in done if change.path.is_relative_to(where.plugin)]
    if ours:  # a folder of our own: its files are nobody's settings
        parts = sorted({change.path.relative_to(where.plugin).parts[0].lstrip(".") for change in ours})
        yield f"  write {_short(where.plugin, where)} ({counted(len(ours), 'file')}: {', '.join(parts)})"
    for change in (change for change in done if change not in ours):
        verb = "write" if change.before is None else "delete" if change.after is None else "change"
        yield f"  {verb} {_short(change.path, where)}"
        if in_full and change.before is not None and change.after is not None:
            yield from (Dim(f"    {line}") for line in _difference(change))
    if not dry_run:
        yield f"  {agent.next_step}"


def _not_here(name: str, where: MachineFacts) -> str:
    agent = AGENTS[name]
    programs = "".join(f"no program {program}, " for program in agent.programs)
    sentence = (
        f"{agent.title} was not found on this machine ({programs}no folder {_short(agent.folder(where), where)})."
    )
    return f"{sentence} The settings take effect once it is installed."


def _short(path: Path, where: MachineFacts) -> str:
    """The path as a person would write it."""
    inside = path.is_relative_to(where.user_home)
    return f"~/{path.relative_to(where.user_home).as_posix()}" if inside else str(path)


def _difference(change: install.Change) -> list[str]:
    before, after = (change.before or "").splitlines(), (change.after or "").splitlines()
    lines = list(difflib.unified_diff(before, after, lineterm="", n=1))[2:]
    more = len(lines) - SHOWN_LINES
    return lines[:SHOWN_LINES] + ([f"… and {counted(more, 'line')} more"] if more > 0 else [])


def _document(change: install.Change) -> dict[str, Any]:
    return {"path": str(change.path), "before": change.before, "after": change.after}


def _import_past(invocation: Invocation, names: Sequence[str], wanted: bool | None) -> dict[str, int]:
    """Import the past sessions of this project, if somebody wants that: they are worth having from the first day."""
    from kept.entrypoints.cli.sessions import import_past, past_sessions

    programs = [name for name in names if name in IMPORTABLE]
    if wanted is False or not programs or (wanted is None and not invocation.can_pick()):
        return {}
    try:
        found = past_sessions(invocation, programs)
        if not found:
            return {}
        sessions = ", ".join(f"{AGENTS[name].title} {number:,}" for name, number in found.items())
        question = f"Import the past sessions of this project ({sessions})?"
        if wanted is None and invocation.pick(question, ("yes", "no")) != "yes":
            invocation.tell(Dim(f"Later: {', '.join(f'kept import {name}' for name in found)}"))
            return {}
        done = import_past(invocation, list(found))
    except KeptError as error:  # no project here, say: the installation is done all the same
        if wanted:
            raise
        invocation.tell(Dim(f"Past sessions were not imported: {error.message}"))
        return {}
    for name, number in done.items():
        invocation.tell(
            f"{AGENTS[name].title}: {counted(number, 'message')} imported. `kept status` shows what was kept."
        )
    return done


@command
@_agents
@click.option("--data", is_flag=True, help="Also delete all memories, of every project, after a yes.")
@_yes
def uninstall_command(invocation: Invocation, *, agents: tuple[str, ...], data: bool, yes: bool) -> None:
    """Gives back every file as it was before `kept install`; from a file that changed since, only Kept's own entries
    are removed. A file that cannot be changed is named, and the others are cleaned. Memories stay, unless --data is
    given.
    """
    from kept.entrypoints.install.data import check_home, delete_home

    where = surroundings(invocation, with_tools=True)
    place = open_projects(invocation.home).home
    home = place.root
    chosen = [install.known(name) for name in agents]
    if data:
        check_home(place)
        invocation.agree(f"Delete all memories of all projects in {home}? This cannot be undone.", yes=yes)
    with install.one_at_a_time(home):
        book = ledger(invocation)
        entries = book.of(chosen) if agents else dict(book.entries)
        removal = install.remove(entries, where, book)
    done = removal.done
    lines: list[Line] = [f"{'deleted' if change.after is None else 'restored'} {change.path}" for change in done]
    if removal.refused:
        invocation.tell(*lines)
        raise _refused(removal.refused, data=data)
    if not entries:
        lines.append(
            "Kept is not installed in any agent." if not agents else f"Kept is not installed in {titles(agents)}."
        )
    if data:
        left = delete_home(place)
        lines.append(f"Deleted the memories in {home}. Not Kept's: {', '.join(left)}." if left else f"Deleted {home}.")
    else:
        lines.append(f"Memories stay in {home}. `kept uninstall --data` deletes them.")
    document = {"changes": [_document(change) for change in done], "home": str(home), "data_deleted": data}
    invocation.answer(document, lines)


def _refused(errors: Sequence[KeptError], *, data: bool) -> InvalidInput:
    """One error about all files that Kept could not be taken out of."""
    rest = "Kept was taken out of all other files."
    stays = " The memories stay until it is taken out of these." if data else ""
    hints = " ".join(dict.fromkeys(error.hint for error in errors if error.hint))
    return InvalidInput(f"{' '.join(error.message for error in errors)} {rest}{stays}", hint=hints)
