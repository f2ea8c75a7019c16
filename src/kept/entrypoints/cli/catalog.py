"""Which commands there are, what each is for, and where its code is.

`kept --help` and shell completion are answered from this table alone, so that neither imports a command.
"""

from collections.abc import Mapping
from typing import NamedTuple


class Entry(NamedTuple):
    """One command: the heading it stands under, its one line of help, and `module:attribute`."""

    topic: str
    line: str
    target: str


def _topic(name: str, module: str, lines: Mapping[str, str]) -> dict[str, Entry]:
    return {command: Entry(name, line, f"{module}:{command}") for command, line in lines.items()}


COMMANDS: Mapping[str, Entry] = {
    **_topic("Writing", "write", {"remember": "Keep one statement."}),
    **_topic(
        "Reading",
        "recall",
        {
            "recall": "Find the memories that fit a few key words best.",
            "why": "Show the last recall again: what was found, what just missed, and why.",
        },
    ),
    **_topic("Reading", "briefing", {"briefing": "Write what an agent should know before it starts."}),
    **_topic("Reading", "briefing", {"share": "Write a message with what a skill needs to know."}),
    **_topic(
        "Reading",
        "read",
        {
            "list": "Show what is kept, newest first.",
            "show": "Show one memory in full.",
            "history": "Show what happened to a memory, or in the project.",
            "status": "Show which project this is, and how much is kept.",
        },
    ),
    **_topic(
        "Changing",
        "change",
        {
            "reinforce": "Say that a memory helped: it will rank higher.",
            "demote": "Say that a memory was wrong or beside the point: it will rank lower.",
            "revise": "Correct the text of a memory; its id and feedback stay.",
            "pin": "Always bring this memory along.",
            "unpin": "No longer bring it along by itself.",
            "forget": "Hide a memory everywhere; it can be restored.",
            "restore": "Bring back a memory, or the store from a backup file.",
            "erase": "Remove a memory for good. This cannot be undone.",
            "undo": "Take back the last change, or a certain one.",
        },
    ),
    **_topic(
        "Tasks",
        "tasks",
        {
            "task": "Keep track of work: list, show, add, edit, state, note, clear.",
            "promote": "Move a memory to a tier that lives longer.",
        },
    ),
    **_topic(
        "Deciding",
        "manage",
        {
            "conflicts": "Show memories that contradict each other.",
            "resolve": "Settle a contradiction: one memory stays, the other is archived.",
            "alias": "Teach recall other words for a word.",
            "scan": "Look for secrets in what is stored.",
            "allow": "Say that a value only looks like a secret.",
            "off": "Pause: capture and inject nothing by itself, in this project.",
            "on": "End a pause.",
        },
    ),
    **_topic("Deciding", "review", {"review": "Show what should be looked at again, and carry out what is decided."}),
    **_topic(
        "Conversations",
        "sessions",
        {
            "session": "Look at conversations: list, show, search, fork, finish, compact, export.",
            "import": "Bring in the transcripts of another program.",
        },
    ),
    **_topic("Conversations", "write", {"slash": "Run a slash command, as it would be typed into a chat."}),
    "export": Entry("Keeping house", "Print every memory as a line of JSON.", "store:export"),
    "upkeep": Entry(
        "Keeping house", "End quarantines and shelf lives, and make room where a limit is exceeded.", "store:upkeep"
    ),
    **_topic(
        "Keeping house",
        "store",
        {
            "backup": "Write a verified copy of the store to a file.",
            "doctor": "Examine the stores of this project and of global memory.",
        },
    ),
    "vectors": Entry("Set-up", 'Find memories by their meaning, too: "car" finds the automobile.', "config:vectors"),
    "projects": Entry("Set-up", "List, link, rename and merge projects.", "projects:projects"),
    "config": Entry("Set-up", "Show and change settings.", "config:config"),
    "tour": Entry("Set-up", "See Kept at work, in a scratch home that is removed at the end.", "tour:tour"),
}
