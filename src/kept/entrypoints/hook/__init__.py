"""The hook program: `kept-hook AGENT EVENT`, which agents run at their events. Input and answer are JSON.

    agents      the events, fields and answers of each agent, as data
    tool_calls  the tool call in an input: its files, commands and new text; its error
    concerns    whether a memory may concern a tool call, told by a small file
    places      the home of Kept and the homes of agents, found without imports
    wire        JSON without the json module
    work        the files of a session's last tool calls, and the tasks of its sub-agents
    events      one event: read the input, answer, start the background process
    startup     the modules of the memory, imported only when an event needs them; opens the memory
    stop        the request to judge findings before the agent stops, if the setting `judge` is `stop`
    background  the detached process: imports transcripts, finishes sessions, logs failures
    folder      the files that the hooks share, in the home

An agent waits for this program at every prompt. Three rules. It imports little (`startup` lists the stages), and slow
work happens in the background process. It ends within its limit: the work runs in a thread, and when the time is over
the process ends without it. And it never disturbs: on any failure it prints nothing and exits with 0.
"""

import gc
import os
import sys
import time
from _thread import allocate_lock, start_new_thread

from kept.entrypoints.hook.agents import AGENTS, SILENT_VARIABLE
from kept.entrypoints.hook.events import Occasion, note_misnamed
from kept.entrypoints.hook.places import LATE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from _thread import LockType

LIMIT_MS = 1_000  # at a prompt or a failure, with the start of the interpreter, on a machine that is busy
START_LIMIT_MS = 2_000  # at the start of a session, which happens once and has more to say; for a request at the
# stop, which the user wants; and for a project in a database, because loading the driver of PostgreSQL takes long
ACTION_LIMIT_MS = 300  # before and after a tool call; a turn has many of them
LIMITS_MS = {"start": START_LIMIT_MS, "action": ACTION_LIMIT_MS, "result": ACTION_LIMIT_MS}
INTERPRETER_MS = 50  # until the first line of `main` runs
LIMIT_VARIABLE = "KEPT_HOOK_LIMIT_MS"
USAGE = """Usage: kept-hook AGENT EVENT

Agents run this program at their events: it reads the event as JSON from standard input, and answers with what the agent
should know. `kept install` sets it up, `kept doctor` checks it. On a failure it prints nothing and exits with 0.
"""


def main() -> None:
    """Answer one event of an agent, and end the process with 0."""
    begun = time.monotonic()
    gc.disable()  # the process ends before there is garbage worth collecting
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # of numpy: on a busy machine its threads wait for each other
    said = ""
    try:
        agent, event = [*sys.argv[1:], "", ""][:2]
        said = USAGE if agent in ("-h", "--help") else _in_time(agent, event, begun)
    except Exception:  # the boundary: no failure may disturb the agent
        said = ""
    finally:
        try:
            if said:
                sys.stdout.write(said)
                sys.stdout.flush()
        finally:
            # Without waiting for the thread, which may hang, and without taking the interpreter apart.
            os._exit(0)


def _in_time(agent: str, event: str, begun: float) -> str:
    """Work out the answer in a thread. Return "" if it fails or is not done within the limit."""
    if os.environ.get(SILENT_VARIABLE):
        return ""
    if agent not in AGENTS or event not in AGENTS[agent].events:
        note_misnamed(agent, event)
        return ""
    occasion = Occasion(agent, event)
    limit_ms = LIMITS_MS.get(occasion.kind, LIMIT_MS)
    if (given := os.environ.get(LIMIT_VARIABLE, "")).isdigit():
        limit_ms = int(given)
    done = allocate_lock()  # released by the thread when it ends
    done.acquire()
    start_new_thread(_run, (occasion, done))
    in_time = done.acquire(timeout=max(0.0, (limit_ms - INTERPRETER_MS) / 1000 - (time.monotonic() - begun)))
    if not in_time and occasion.takes_longer:
        in_time = done.acquire(timeout=max(0.0, START_LIMIT_MS / 1000 - (time.monotonic() - begun)))
    if not in_time:
        return occasion.run_out_of_time(f"{LATE} {limit_ms} ms")
    return occasion.said


def _run(occasion: Occasion, done: "LockType") -> None:
    try:
        occasion.run(sys.stdin.buffer)
    finally:
        done.release()
