"""`kept install` and `kept uninstall`: Kept in the agents of this machine."""

import difflib
import os
import shutil
import sys
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import nullcontext, suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import click

import kept.entrypoints.install as install
from kept.distribution import VERSION, install_line
from kept.entrypoints.cli.frame import command
from kept.entrypoints.cli.invocation import Dim, Invocation, Line, Strong
from kept.entrypoints.cli.sessions import import_past, past_sessions, unread_sessions
from kept.entrypoints.cli.setup import not_set, set_for_user, user_file
from kept.entrypoints.cli.wording import checkout_note, counted
from kept.entrypoints.install import codex
from kept.entrypoints.install.agents import AGENTS, NAMES, MachineFacts, Scope
from kept.entrypoints.install.data import check_home, delete_home
from kept.errors import InvalidInput, KeptError, NotAllowed, NotFound, SettingsError
from kept.memory.host_notes import READ_BY
from kept.memory.opening import open_projects
from kept.memory.view import AGENTS_MD

IMPORTABLE = ("claude-code", "codex", "gemini", "qwen", "copilot", "opencode")  # `kept import` reads their transcripts
JUDGE_TOKENS = 850  # of a long list with its question; most have 400
YES, NO, SHOW = "yes", "no", "show the changes"
SHOWN_LINES = 40  # of the difference of one file
TAB_COLUMNS = 4

_agents = click.argument("agents", nargs=-1, metavar="[AGENT]...")
_yes = click.option("--yes", "-y", is_flag=True, help="Do not ask.")


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
@click.option(
    "--import/--no-import",
    "past",
    default=None,
    help="Import this project's past sessions. [default: after your yes in a terminal]",
)
@_yes
def install_command(
    invocation: Invocation, *, agents: tuple[str, ...], scope: Scope, dry_run: bool, past: bool | None, yes: bool
) -> None:
    """Without a name: every agent that is found on this machine. In a terminal you see a summary first, the lines that
    would change if you ask for them, and one question. Files are merged, never replaced; `kept uninstall` gives each
    back as it was. Doing it again changes nothing.

    \b
      kept install
      kept install claude-code codex
      kept install gemini --dry-run
    """
    where, home = surroundings(invocation), open_projects(invocation.home).home
    chosen = _chosen(agents, where)
    invocation.tell(*checkout_note(invocation))
    if not dry_run:
        home.prepare_root()
    with nullcontext() if dry_run else install.one_at_a_time(home.root):
        target = Target(scope, where, ledger(invocation))
        plans = {name: install.plan(name, scope, where, target.book) for name in chosen}
        offer = _offer(invocation, chosen, with_past=past is None and not dry_run and not yes)
        is_agreed = yes or (not dry_run and _agree(invocation, plans, target, offer, is_named=bool(agents)))
        missing = set(chosen) - set(found_here(where))  # before their folders are made
        done = _apply(plans, target, dry_run=dry_run)
        trust = [] if dry_run else [*_trust_codex(invocation, target, offer, yes=is_agreed)]
        told = _done_lines(done, target, dry_run=dry_run, in_full=dry_run, without_step=["codex"] * bool(trust))
        lines = [*told, *trust, *_missing_lines(missing, where), *_next_lines(target, offer, dry_run=dry_run)]
    document: dict[str, Any] = {
        "dry_run": dry_run,
        "agents": _agent_documents(done, target, missing),
        "tools": where.with_tools,
    }
    _answer(invocation, document, lines, lambda: _import_past(invocation, chosen, offer, bool(past) and not dry_run))


def _answer(
    invocation: Invocation, document: dict[str, Any], lines: Sequence[Line], bring: Callable[[], dict[str, int]]
) -> None:
    """Report the installation, then import: a person reads the lines in the meantime, a program gets one document."""
    if not invocation.as_json:
        invocation.answer(document, lines)
    imported = bring()
    if invocation.as_json:
        invocation.answer(document | {"imported": imported}, ())


class Target(NamedTuple):
    """The settings that an installation changes: of whom, on which machine, and the record of changes made before."""

    scope: Scope
    where: MachineFacts
    book: install.Ledger

    def name_for(self, agent: str) -> str:
        """Return the name of Kept in the settings of an agent."""
        return install.name_for(agent, self.scope, self.where, self.book)


def _needed(changes: Sequence[install.Change]) -> list[install.Change]:
    return [one for one in changes if not one.is_nothing]


class Offer(NamedTuple):
    """More that an installation offers: to read the notes of agents, and to import past sessions of this project."""

    is_made: bool  # there is a person who can be asked
    readers: Sequence[str] = ()  # agents whose notes could be read, and about which no one has decided
    past: Mapping[str, int] = {}  # the number of sessions by agent
    codex: str | None = None  # the program, if it has to trust the hooks

    def lines(self) -> Iterator[Line]:
        """Yield the lines for a summary."""
        if self.codex:
            yield "Codex is told to trust the hooks of Kept; it skips others without a word."
        if self.readers:
            yield f"Kept also reads the notes that {titles(self.readers)} may keep of a project, and never writes them."
        if self.past:
            sessions = ", ".join(f"{number:,} of {AGENTS[name].title}" for name, number in self.past.items())
            past = "Past sessions of this project that were not read yet are imported"
            yield f"{past}: {sessions}. --no-import leaves them."


def _offer(invocation: Invocation, names: Sequence[str], *, with_past: bool) -> Offer:
    """Find further offers of an installation; `with_past`: also past sessions of this project."""
    keepers = [name for name in names if name in READ_BY]
    readers = keepers if not_set(invocation, [READ_BY[name] for name in keepers]) else []
    program = shutil.which("codex") if "codex" in names else None
    if not invocation.can_pick():
        return Offer(False, readers, codex=program)
    return Offer(True, readers, _past_sessions(invocation, names) if with_past else {}, program)


def _past_sessions(invocation: Invocation, names: Sequence[str]) -> Mapping[str, int]:
    """Count the past sessions of this project that can be imported and were not, by agent."""
    with suppress(KeptError):  # no project here, say
        if not checkout_note(invocation):
            with invocation.open() as memory:
                return unread_sessions(memory, [name for name in names if name in IMPORTABLE])
    return {}


def _agree(
    invocation: Invocation,
    plans: Mapping[str, Sequence[install.Change]],
    target: Target,
    offer: Offer,
    *,
    is_named: bool,
) -> bool:
    """Show a summary, and ask a person once; False: there was nothing to ask. Raises NotAllowed after a no."""
    needed = {name: _needed(changes) for name, changes in plans.items()}
    is_settled = not any(needed.values()) and not offer.past
    if is_settled or (is_named and not offer.is_made):
        return False
    invocation.tell(*_done_lines(needed, target, dry_run=True, in_full=not offer.is_made), *offer.lines())
    question = f"Put Kept into {titles(list(plans))}?" if any(needed.values()) else "Import them?"
    if offer.is_made:
        _ask_once(invocation, question, needed, target)
        set_for_user(invocation, dict.fromkeys((READ_BY[name] for name in offer.readers), "true"))
    else:
        invocation.agree(question)
    return True


def _ask_once(
    invocation: Invocation, question: str, needed: Mapping[str, Sequence[install.Change]], target: Target
) -> None:
    """Ask a person, who may look at the changes first. Raises NotAllowed when the answer is no."""
    options = (YES, NO, SHOW) if any(needed.values()) else (YES, NO)
    while (picked := invocation.pick(question, options)) == SHOW:
        invocation.tell(*_done_lines(needed, target, dry_run=True, in_full=True))
    if picked != YES:
        raise NotAllowed("The answer was no. Nothing was changed.")


def _apply(
    plans: Mapping[str, Sequence[install.Change]], target: Target, *, dry_run: bool
) -> dict[str, Sequence[install.Change]]:
    """Make the changes, and return those of each agent that were needed."""
    if dry_run:
        return {name: _needed(changes) for name, changes in plans.items()}
    return {name: install.apply(name, target.scope, changes, target.book) for name, changes in plans.items()}


def _agent_documents(
    done: Mapping[str, Sequence[install.Change]], target: Target, missing: Collection[str]
) -> list[dict[str, Any]]:
    return [
        {
            "agent": name,
            "called": target.name_for(name),
            "is_found": name not in missing,
            "changes": [_document(one) for one in changes],
            "next": AGENTS[name].next_step,
        }
        for name, changes in done.items()
    ]


def _done_lines(
    done: Mapping[str, Sequence[install.Change]],
    target: Target,
    *,
    dry_run: bool,
    in_full: bool,
    without_step: Collection[str] = (),
) -> Iterator[Line]:
    for name, changes in done.items():
        yield from _told(name, changes, target, dry_run=dry_run, in_full=in_full)
        if changes and not dry_run and name not in without_step:
            yield f"  {AGENTS[name].next_step}"


def _next_lines(target: Target, offer: Offer, *, dry_run: bool) -> Iterator[Line]:
    """List how Kept works from now on, with the setting that changes it."""
    if not dry_run and offer.readers:
        end = "s" if len(offer.readers) == 1 else ""
        ends = " and ".join(f"`kept config set {READ_BY[name]} false`" for name in offer.readers)
        yield f"Kept also reads the notes that {titles(offer.readers)} may keep of a project. {ends} end{end} that."
    if not target.where.with_tools:
        done = "would be" if dry_run else "are"
        yield f"The hooks {done} set up without the tools. One line adds them: {install_line('agents')} && kept install"
    elif not dry_run:
        yield (
            "A new session is asked once what is worth keeping of the last one: at most "
            f"{JUDGE_TOKENS} tokens. `kept config set judge off` ends that, `kept config set judge stop` asks when the "
            "work ends instead."
        )


def _trust_codex(invocation: Invocation, target: Target, offer: Offer, *, yes: bool) -> Iterator[Line]:
    """Offer to trust our hooks in Codex, which otherwise skips them without a word."""
    if not offer.codex:
        return
    scope, where, book = target
    hooks = codex.our_hooks(offer.codex, where, AGENTS["codex"].files(where, scope))
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
    name: str, done: Sequence[install.Change], target: Target, *, dry_run: bool, in_full: bool = True
) -> Iterator[Line]:
    """Say which files of an agent were changed, or would be; `in_full` with the difference of each."""
    agent = AGENTS[name]
    yield from _renamed_lines(name, target)
    if not done:
        yield f"{agent.title}: installed already, nothing to change."
        return
    yield Strong(f"{agent.title}{': this would change' if dry_run else ''}")
    ours = [change for change in done if change.path.is_relative_to(target.where.plugin)]
    if ours:  # a folder of our own: its files are nobody's settings
        parts = sorted({change.path.relative_to(target.where.plugin).parts[0] for change in ours})
        plugin = _short(target.where.plugin, target.where)
        yield f"  write {plugin} ({counted(len(ours), 'file')}: {', '.join(parts)})"
    for change in done:
        if change not in ours:
            yield from _change_lines(change, target.where, in_full=in_full)


def _renamed_lines(name: str, target: Target) -> Iterator[Line]:
    """Say where another program has the name of Kept, and which name Kept has there instead."""
    for path in dict.fromkeys(install.taken_in(NAMES[0], name, *target)):
        taken = f"the entry {NAMES[0]} in {_short(path, target.where)} belongs to another program and stays."
        yield f"{AGENTS[name].title}: {taken} Kept is called {target.name_for(name)} there."


def _change_lines(change: install.Change, where: MachineFacts, *, in_full: bool) -> Iterator[Line]:
    verb = "write" if change.before is None else "delete" if change.after is None else "change"
    yield f"  {verb} {_short(change.path, where)}"
    if in_full and verb != "delete":
        yield from (Dim(f"    {line}") for line in _difference(change))


def _missing_lines(names: Collection[str], where: MachineFacts) -> Iterator[Line]:
    """Say which agents are not on this machine, and which files were looked for."""
    for name, agent in AGENTS.items():
        if name in names:
            programs = "".join(f"no program {program}, " for program in agent.programs)
            folder = f"no folder {_short(agent.folder(where), where)}"
            sentence = f"{agent.title} was not found on this machine ({programs}{folder})."
            yield f"{sentence} The settings take effect once it is installed."


def _short(path: Path, where: MachineFacts) -> str:
    """The path as a person would write it."""
    inside = path.is_relative_to(where.user_home)
    return f"~/{path.relative_to(where.user_home).as_posix()}" if inside else str(path)


def _difference(change: install.Change) -> list[str]:
    before, after = (change.before or "").splitlines(), (change.after or "").splitlines()
    lines = list(difflib.unified_diff(before, after, lineterm="", n=1))[2:]
    more = len(lines) - SHOWN_LINES
    lines = [line[:1] + line[1:].expandtabs(TAB_COLUMNS) for line in lines]  # the first character is + or -
    return lines[:SHOWN_LINES] + ([f"… and {counted(more, 'line')} more"] if more > 0 else [])


def _document(change: install.Change) -> dict[str, Any]:
    return {"path": str(change.path), "before": change.before, "after": change.after}


def _import_past(invocation: Invocation, names: Sequence[str], offer: Offer, is_wanted: bool) -> dict[str, int]:
    """Import the past sessions of this project, if a person wants that: they are worth having from the first day."""
    programs = list(offer.past)
    if is_wanted:
        programs = list(past_sessions(invocation, [name for name in names if name in IMPORTABLE]))
    done = import_past(invocation, programs) if programs else {}
    for name, number in done.items():
        invocation.tell(
            f"{AGENTS[name].title}: {counted(number, 'message')} imported. `kept status` shows what was kept."
        )
    return done


@command
@_agents
@click.option("--data", is_flag=True, help="Also delete all memories, of every project, after a yes.")
@click.option("--dry-run", is_flag=True, help="Show what would change, and change nothing.")
@_yes
def uninstall_command(invocation: Invocation, *, agents: tuple[str, ...], data: bool, dry_run: bool, yes: bool) -> None:
    """Gives back every file as it was before `kept install`; from a file that changed since, only Kept's own entries
    are removed. A file that cannot be changed is named, and the others are cleaned. Memories stay, unless --data is
    given.
    """
    where = surroundings(invocation, with_tools=True)
    projects = open_projects(invocation.home)
    place, settings = projects.home, user_file()
    home = place.root
    chosen = [install.known(name) for name in agents]
    if dry_run:
        planned = _planned_lines(invocation, chosen, where, data=data)
        invocation.answer({"dry_run": True, "planned": planned}, planned or [_not_installed(agents)])
        return
    _agree_to_removal(invocation, chosen, where, data=data, yes=yes)
    with install.one_at_a_time(home):
        book = ledger(invocation)
        entries = _entries_of(book, chosen)
        removal = install.remove(entries, where, book)
    done = removal.done
    lines = _removed_lines(done, entries, where)
    if removal.refused:
        invocation.tell(*lines)
        raise _refused(removal.refused, data=data)
    lines += [] if agents else _without_block(invocation, yes=yes)
    if not entries:
        lines.append(_not_installed(agents))
    if data:
        marks = projects.remove_ids()  # while the registry is there
        lines += [_deleted_line(home, delete_home(place)), *_left_lines(marks, settings)]
    else:
        lines.append(f"Memories stay in {home}. `kept uninstall --data` deletes them.")
    document = {"changes": [_document(change) for change in done], "home": str(home), "data_deleted": data}
    invocation.answer(document, lines)


def _agree_to_removal(
    invocation: Invocation, chosen: Sequence[str], where: MachineFacts, *, data: bool, yes: bool
) -> None:
    """Ask a person before memories are deleted, and at a terminal before any file is changed."""
    if data:
        place, settings = open_projects(invocation.home).home, user_file()
        check_home(place)
        is_inside = settings.parent == place.root and settings.exists()
        also = f", and the settings in its {settings.name}" if is_inside else ""
        invocation.agree(f"Delete all memories of all projects in {place.root}{also}? This cannot be undone.", yes=yes)
    elif not yes and invocation.can_ask() and (planned := _planned_lines(invocation, chosen, where, data=False)):
        invocation.tell(*planned)
        invocation.agree(f"Take Kept out of {_installed_in(_entries_of(ledger(invocation), chosen))}?")


def _entries_of(book: install.Ledger, chosen: Sequence[str]) -> dict[str, install.LedgerEntry]:
    """Return the files that were changed for these agents, or for all."""
    return dict(book.of(chosen)) if chosen else dict(book.entries)


def _not_installed(agents: Sequence[str]) -> str:
    return f"Kept is not installed in {titles(agents) if agents else 'any agent'}."


def _installed_in(entries: Mapping[str, install.LedgerEntry]) -> str:
    return titles(list(dict.fromkeys(entry.agent for entry in entries.values()))) if entries else "this project"


def _planned_lines(invocation: Invocation, chosen: Sequence[str], where: MachineFacts, *, data: bool) -> list[str]:
    """List what an uninstallation would change."""
    book = ledger(invocation)
    entries = _entries_of(book, chosen)
    planned, refused = install.plan_removals(entries, where, book)
    needed = [change for _, change in planned if not change.is_nothing]
    lines = [str(line) for line in _removed_lines(needed, entries, where, dry_run=True)]
    lines += [str(error) for error in refused]
    if not chosen and _has_block(invocation):
        lines.append(f"would remove the block from {AGENTS_MD}")
    if data:
        lines.append(f"would delete the memories in {open_projects(invocation.home).home.root}")
    return lines


def _has_block(invocation: Invocation) -> bool:
    """Return True if the AGENTS.md of this project has a block of Kept."""
    with suppress(KeptError), invocation.open(auto_upkeep=False) as memory:
        return any(one.name == AGENTS_MD for one in memory.files.status())
    return False


def _without_block(invocation: Invocation, *, yes: bool) -> list[Line]:
    """Take the block of Kept out of the AGENTS.md of this project. One with edits stays, unless a person says yes."""

    def ask(question: str, _lines: Sequence[str]) -> bool:
        try:
            return invocation.agree(question, yes=yes)
        except NotAllowed:
            return False

    try:
        with invocation.open(auto_upkeep=False) as memory:
            if not any(one.name == AGENTS_MD for one in memory.files.status()):
                return []
            done = memory.files.agents(remove=True, ask=ask)
    except KeptError as error:  # the agents are clean, and the person has to be told so
        return [f"{AGENTS_MD} was not searched for a block of Kept: {error}"]
    return [f"{done.waiting} It stays in {done.path}." if done.waiting else f"removed the block from {done.path}"]


def _removed_lines(
    done: Sequence[install.Change],
    entries: Mapping[str, install.LedgerEntry],
    where: MachineFacts,
    *,
    dry_run: bool = False,
) -> list[Line]:
    """List each file that was deleted, restored or changed; the files of a folder of our own are counted."""
    ours = [one for one in done if one.after is None and one.path.is_relative_to(where.plugin)]
    deleted = "would delete" if dry_run else "deleted"
    lines: list[Line] = [f"{deleted} {_short(where.plugin, where)} ({counted(len(ours), 'file')})"] if ours else []
    return lines + [
        _removed_line(one, entries[str(one.path)], where, dry_run=dry_run) for one in done if one not in ours
    ]


def _removed_line(change: install.Change, entry: install.LedgerEntry, where: MachineFacts, *, dry_run: bool) -> str:
    path = _short(change.path, where)
    delete, restore, remove = (
        ("would delete", "would restore", "would remove") if dry_run else ("deleted", "restored", "removed")
    )
    if change.after is None:
        return f"{delete} {path}"
    return f"{restore} {path}" if change.after == entry.base else f"{remove} Kept's entries from {path}"


def _deleted_line(home: Path, left: Sequence[str]) -> str:
    return f"Deleted the memories in {home}. Not Kept's: {', '.join(left)}." if left else f"Deleted {home}."


def _left_lines(marks: Sequence[str], settings: Path) -> Iterator[str]:
    """Name the files of Kept outside of the home that stay: ids of projects, and the person's settings."""
    if marks:
        yield f"Not removed: {', '.join(marks)}. Delete it by hand, or Kept will miss this home there."
    if settings.exists():
        yield f"Your settings stay in {settings}."


def _refused(errors: Sequence[KeptError], *, data: bool) -> InvalidInput:
    """One error about all files that Kept could not be taken out of."""
    rest = "Kept was taken out of all other files."
    stays = " The memories stay until it is taken out of these." if data else ""
    hints = " ".join(dict.fromkeys(error.hint for error in errors if error.hint))
    return InvalidInput(f"{' '.join(error.message for error in errors)} {rest}{stays}", hint=hints)
