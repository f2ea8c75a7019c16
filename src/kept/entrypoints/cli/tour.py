"""`kept tour`: every command in it is really run, in a scratch home that is gone afterwards.

The walk is data (`WALK`): whoever adds a feature adds its step here.
"""

import io
import shlex
import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import click

from kept.entrypoints.cli.frame import Command, pass_invocation, root
from kept.entrypoints.cli.invocation import Dim, Invocation, Line, Strong
from kept.settings import Settings

SCRATCH = "SCRATCH"  # stands in a command for the scratch directory


class Step(NamedTuple):
    """What is to be seen, the command that shows it, and in which of the two projects it is typed."""

    say: str
    command: str
    project: str = "web-app"


WALK = (
    Step(
        "A memory is one statement worth keeping. It belongs to the project that you are in.",
        'remember "Never edit the auth middleware directly" --kind warning --tag auth --file src/auth.py',
    ),
    Step(
        "Decisions, conventions, errors, preferences: any kind.",
        'remember "Always use Fastify for the public API server" --kind decision',
    ),
    Step("And a third one.", 'remember "The API listens on port 8080"'),
    Step("A few key words find it again.", "recall auth middleware login --explain"),
    Step("Every answer can be looked into later: what was found, what just missed, and why.", "why"),
    Step("This is all that is kept, newest first. The number in brackets is the ref of a memory.", "list"),
    Step(
        "Saying the same again does not store it twice: it counts for more.",
        'remember "always use  FASTIFY for the public API server"',
    ),
    Step("A memory that helped is reinforced, and ranks higher from now on.", "reinforce 1"),
    Step("One that is not quite right is revised. It keeps its ref.", 'revise 3 "The API listens on port 3000"'),
    Step("What should always be at hand is pinned.", "pin 1"),
    Step(
        "A contradiction does not go unnoticed.",
        'remember "Never use Fastify for the public API server" --kind decision',
    ),
    Step("Both stay until somebody decides.", "conflicts"),
    Step("What somebody should look at again, with a reason and a proposal each.", "review"),
    Step("One of them holds from now on.", "resolve c1 --keep 2"),
    Step("Your own words for things can be taught.", "alias add gateway api"),
    Step("Now the one word finds the other.", "recall gateway"),
    Step("Forgetting hides a memory from everything.", "forget 2"),
    Step("That was too quick. Every change can be taken back, as a whole.", "undo"),
    Step("The journal has it all, and nothing is ever cut from it.", "history"),
    Step("A backup is a verified copy of the store, made while others go on writing.", f"backup {SCRATCH}/web-app.db"),
    Step("Only erasing is for good: no byte of it stays.", "erase 3 --yes"),
    Step("Going back to the backup does not bring it back.", f"restore {SCRATCH}/web-app.db --yes"),
    Step(
        "A secret never reaches the disk.",
        'remember "The password of the test database is hunter2-Xk9mQ4vL"',
    ),
    Step("This looks for what older rules may have let through.", "scan"),
    Step("Another project sees nothing of this one.", "list", "phone-app"),
    Step(
        "What holds for all projects is global memory. A person has to agree to what goes there.",
        'remember "Prefers short answers" --kind preference --global --yes',
    ),
    Step("Now it is there in every project.", "list", "phone-app"),
    Step(
        "A task keeps what is noted for it until it has ended.",
        'task add "Move the login to the new API" --milestone M1 --priority 1',
        "phone-app",
    ),
    Step(
        "A note belongs to a stage of the work.",
        'task note TASK-001 "The old login has three callers left" --stage plan',
        "phone-app",
    ),
    Step("So does what a tool gave back.", 'task note TASK-001 "2 failed" --tool pytest --stage test', "phone-app"),
    Step("What should outlive the task is promoted.", "promote 1", "phone-app"),
    Step("An end clears the rest into the archive.", "task state TASK-001 done", "phone-app"),
    Step("A conversation of another program is brought in with one command.", f"import brain {SCRATCH}/monday.jsonl"),
    Step("When it ends, what was worth keeping is kept.", "session finish monday"),
    Step("The decision in it is a candidate now, until somebody uses it.", "recall postgres billing"),
    Step("This is what an agent would be given at the start of its work.", 'briefing "fix the login of the API"'),
    Step(
        "A skill reaches no memory. It is handed what it needs to know, and that is all it holds.",
        "share auth login --to agent_skill_review --action review",
    ),
    Step("In a chat, the same things are typed as slash commands.", "slash /memory search billing"),
    Step("What time would do to all this, today.", "upkeep --dry-run"),
    Step("Who wants to find things by their meaning as well as by their words can switch that on.", "vectors status"),
    Step("Kept can be paused: then nothing is captured or injected by itself.", "off"),
    Step("And goes on.", "on"),
    Step("The doctor looks at every byte that an answer could come from.", "doctor"),
    Step("This is where it is, and how much.", "status"),
)

TRANSCRIPT = """\
{"id":"msg_001","role":"user","content":"Which database do we take for billing?","timestamp":"2026-02-02T09:00:00Z"}
{"id":"msg_002","role":"assistant","content":"Let me look at what is there.","timestamp":"2026-02-02T09:00:05Z"}
{"id":"msg_003","role":"user","content":"We decided to use Postgres for billing, because of its exclusion constraints."}
"""


@click.command("tour", cls=Command)
@pass_invocation
def tour_command(invocation: Invocation) -> None:
    """See Kept at work, in a scratch home that is removed at the end.

    Nothing of yours is read or changed. In a terminal it waits for a key after each step.
    """
    is_paced = invocation.out is None and not invocation.as_json and sys.stdin is not None and sys.stdin.isatty()
    with tempfile.TemporaryDirectory(prefix="kept-tour-") as folder:
        (Path(folder) / "monday.jsonl").write_text(TRANSCRIPT, "utf-8")
        seen = []
        _say(invocation, f"A walk through Kept in {len(WALK)} steps, in a scratch home that is removed at the end.", "")
        for step in WALK:
            command = step.command.replace(SCRATCH, folder)
            code, output = _run(command, step.project, Path(folder), invocation)
            seen.append({"say": step.say, "command": f"kept {command}", "exit_code": code, "output": output})
            _say(invocation, step.say, (Dim(f"{step.project} "), Strong(f"$ kept {command}")), *output.splitlines(), "")
            if is_paced:
                click.echo("Press a key to go on, Ctrl-C to stop …", err=True)
                click.getchar()  # click.pause would take a Ctrl-C for a key
    if invocation.as_json:
        invocation.answer({"steps": seen}, ())
    _say(invocation, 'That was all. Now in a project of yours: kept remember "…", or kept --help.')


def _say(invocation: Invocation, *lines: Line) -> None:
    if not invocation.as_json:
        invocation.answer(None, lines)


def _run(command: str, name: str, folder: Path, invocation: Invocation) -> tuple[int, str]:
    """Run one command as if it had been typed in that project; its exit code and all that it printed."""
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
