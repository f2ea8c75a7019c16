"""`kept tour`: a walk through Kept, in a scratch home that is removed afterwards.

Every step really runs. The walk is data: five steps for everybody (`FIRST`), and `MORE`, where a new command adds its
step.
"""

import io
import shlex
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import click
from msgspec.structs import replace

from kept.entrypoints.cli.frame import command, root
from kept.entrypoints.cli.install import found_here, surroundings, titles
from kept.entrypoints.cli.invocation import CommandLine, Dim, Invocation, Line, Strong
from kept.errors import KeptError
from kept.settings import Settings

SCRATCH = "SCRATCH"  # stands in a command for the scratch directory


class Step(NamedTuple):
    """A sentence about the step, its command, and in which of the two projects it is typed."""

    say: str
    command: str
    project: str = "web-app"


FIRST = (
    Step(
        "A memory is one statement worth keeping. It belongs to the current project.",
        'remember "Never edit the auth middleware directly" --kind warning --tag auth --file src/auth.py',
    ),
    Step("You find it again by any word of it.", "find middleware"),
    Step("An agent is told before it starts. Nothing else is sent anywhere.", 'briefing "fix the login in auth"'),
    Step("Forgetting hides a memory everywhere.", "forget 1"),
    Step("Every change can be undone.", "undo"),
)
MORE = (
    Step(
        "A memory has a kind: decision, convention, error, preference …",
        'remember "Always use Fastify for the public API server" --kind decision',
    ),
    Step("A third memory.", 'remember "The API listens on port 8080"'),
    Step("A few key words find it again.", "recall auth middleware login --explain"),
    Step("Every answer can be explained later: what was found, what just missed, and why.", "why"),
    Step("All memories, newest first. The number in brackets is the ref of a memory.", "list"),
    Step(
        "The same statement is not stored twice: the memory becomes more important.",
        'remember "always use  FASTIFY for the public API server"',
    ),
    Step("Reinforce a memory that helped: it ranks higher from now on.", "rate 1 +"),
    Step("Revise a memory that is not quite right. It keeps its ref.", 'edit 3 "The API listens on port 3000"'),
    Step("Pin a memory that should always be included.", "pin 1"),
    Step(
        "Contradictions are noticed.",
        'remember "Never use Fastify for the public API server" --kind decision',
    ),
    Step("Both memories stay until you decide.", "review conflicts"),
    Step("The review lists memories that need a decision, each with a reason and a proposal.", "review"),
    Step("One of them stays.", "review resolve c1 --keep 2"),
    Step("You can teach recall your own words.", "alias add gateway api"),
    Step("Now one word finds the other.", "recall gateway"),
    Step("The journal lists all changes, and is never trimmed.", "history"),
    Step(
        "A backup is a verified copy of the store. Other programs may write while it is made.",
        f"store backup {SCRATCH}/web-app.db",
    ),
    Step("Only erasing cannot be undone: no byte of the memory stays.", "erase 3 --yes"),
    Step("Restoring the backup does not bring it back.", f"store restore {SCRATCH}/web-app.db --yes"),
    Step(
        "A secret never reaches the disk.",
        'remember "The password of the test database is hunter2-Xk9mQ4vL"',
    ),
    Step("A scan finds secrets that older rules did not know.", "secrets scan"),
    Step("Another project does not see any of this.", "list", "phone-app"),
    Step(
        "Global memory is for all projects. A person has to agree before anything is stored there.",
        'remember "Prefers short answers" --kind preference --global --yes',
    ),
    Step("Now every project has it.", "list", "phone-app"),
    Step(
        "A task has notes, until it ends.",
        'task add "Move the login to the new API" --milestone M1 --priority 1',
        "phone-app",
    ),
    Step(
        "A note belongs to a stage of the work.",
        'task note TASK-001 "The old login has three callers left" --stage plan',
        "phone-app",
    ),
    Step(
        "The output of a tool can be a note as well.",
        'task note TASK-001 "2 failed" --tool pytest --stage test',
        "phone-app",
    ),
    Step("Promote a note that should outlive the task.", "promote 1", "phone-app"),
    Step("When the task ends, the other notes are archived.", "task state TASK-001 done", "phone-app"),
    Step("One command imports a conversation of another program.", f"import brain {SCRATCH}/monday.jsonl"),
    Step("A conversation that is over is finished at once, so nothing new is found here.", "session finish monday"),
    Step("The decision in it is a candidate until it is used.", "recall postgres billing"),
    Step("An agent gets this briefing when it starts.", 'briefing "fix the login of the API"'),
    Step(
        "A skill has no access to memory. It gets a message with everything it needs to know.",
        "share auth login --to agent_skill_review --action review",
    ),
    Step(
        "An export has everything, with its history. It is read again on any machine.",
        f"export {SCRATCH}/web-app.jsonl",
    ),
    Step(
        "Merging it with what is here adds what is new: nothing, this time.",
        f"store merge {SCRATCH}/web-app.jsonl --yes",
    ),
    Step("In a chat, the same commands are typed as slash commands.", "slash /memory search billing"),
    Step("Upkeep archives memories that are old or unused. Today it would do this.", "upkeep --dry-run"),
    Step("Recall can also compare meanings. This is off by default.", "vectors status"),
    Step("Kept can be paused: then nothing is captured or injected automatically.", "pause"),
    Step("This ends the pause.", "resume"),
    Step("The doctor checks every byte that an answer could come from.", "doctor"),
    Step("The status shows where the store is, and how much is in it.", "status"),
)
WALK = (*FIRST, *MORE)

TRANSCRIPT = """\
{"id":"msg_001","role":"user","content":"Which database do we take for billing?","timestamp":"2026-02-02T09:00:00Z"}
{"id":"msg_002","role":"assistant","content":"Let me look at what is there.","timestamp":"2026-02-02T09:00:05Z"}
{"id":"msg_003","role":"user","content":"We decided to use Postgres for billing, because of its exclusion constraints."}
"""


@command
@click.option("--all", "is_all", is_flag=True, help="Show all steps, without asking.")
def tour_command(invocation: Invocation, *, is_all: bool) -> None:
    """Five short steps. Your own memories are not read or changed. In a terminal it waits for a key after each step,
    and asks whether you want to see more.
    """
    is_paced = invocation.out is None and not is_all and invocation.can_pick()
    seen: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory(prefix="kept-tour-") as folder:
        (Path(folder) / "monday.jsonl").write_text(TRANSCRIPT, "utf-8")
        _say(invocation, f"Kept in {len(FIRST)} steps, in a scratch home that is removed at the end.", "")
        is_over = _walk(FIRST, Path(folder), invocation, seen, is_paced=is_paced)
        if is_all or (is_paced and not is_over and _wants_more(invocation)):
            _walk(MORE, Path(folder), invocation, seen, is_paced=is_paced)
        else:
            _say(invocation, Dim(f"`kept tour --all` shows {len(MORE)} further steps."))
    found = _agents_here(invocation)
    if invocation.as_json:
        invocation.answer({"steps": seen, "agents": found}, ())
    _say(
        invocation,
        "That was the tour.",
        f"On this machine: {titles(found)}." if found else "No agent was found on this machine.",
        ("  ", Strong("kept install"), "  puts Kept into them, after a yes.")
        if found
        else ("  ", Strong("kept install AGENT"), "  puts Kept into one; `kept install --help` says more."),
        'Or in a project of yours: kept remember "…"',
    )


def _walk(
    steps: Sequence[Step], folder: Path, invocation: Invocation, seen: list[dict[str, Any]], *, is_paced: bool
) -> bool:
    """Run and show some steps, and note their output. Returns True if a person ended the walk."""
    for step in steps:
        command = step.command.replace(SCRATCH, str(folder))
        code, output = _run(command, step.project, folder, invocation)
        seen.append({"say": step.say, "command": f"kept {command}", "exit_code": code, "output": output})
        _say(
            invocation,
            step.say,
            (Dim(f"{step.project} "), Strong("$ "), CommandLine(f"kept {command}")),
            *output.splitlines(),
            "",
        )
        if is_paced and step is not steps[-1]:
            click.echo("Press a key to continue, q to stop …", err=True)
            if click.getchar().lower() in ("q", "\x1b"):  # click.pause would take a Ctrl-C for a key
                return True
    return False


def _wants_more(invocation: Invocation) -> bool:
    return invocation.pick(f"More? There are {len(MORE)} further steps:", ("no", "yes", "quit")) == "yes"


def _agents_here(invocation: Invocation) -> list[str]:
    try:
        return found_here(surroundings(invocation))
    except KeptError:  # run without being installed: there is nothing to put into an agent
        return []


def _say(invocation: Invocation, *lines: Line) -> None:
    if not invocation.as_json:
        invocation.answer(None, lines)


def _run(command: str, name: str, folder: Path, invocation: Invocation) -> tuple[int, str]:
    """Run one command as if it had been typed in that project; its exit code and its output."""
    project = folder / name
    project.mkdir(exist_ok=True)
    printed = io.StringIO()
    own = replace(
        invocation,
        home=str(folder / "home"),
        project=str(project),
        role="project",
        settings=Settings(),
        out=printed,
        err=printed,
    )
    code = root.main(shlex.split(command), standalone_mode=False, obj=own)
    return code, printed.getvalue()
