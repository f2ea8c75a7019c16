"""Which commands there are, under which heading, what each is for, and which module has its code.

To add a command `NAME`: add a line here; write a function `NAME_command` marked with `@command` in that module (its
docstring is the rest of the help); show it in `tour.WALK`, or name it in NOT_IN_THE_TOUR of tests/cli/test_catalog.py;
test it in tests/cli; and run `make docs`. tests/cli/test_catalog.py says what is missing. `kept --help` shows
FIRST_PAGE, `kept help --all` everything by topic; both and shell completion are answered from these tables alone, so
that none of them imports a command.
"""

from collections.abc import Mapping
from typing import NamedTuple


class CatalogEntry(NamedTuple):
    """One command: its heading, its one line of help, and the module that has the function `NAME_command`."""

    topic: str
    line: str
    module: str


_TOPICS: Mapping[str, Mapping[str, Mapping[str, str]]] = {
    "Writing": {"write": {"remember": "Store one statement."}},
    "Reading": {
        "find": {"find": "Find all memories that contain words, as people search."},
        "recall": {"recall": "Find the memories that best match a few key words."},
        "why": {"why": "Explain the last recall: why these, and what just missed."},
        "brief": {
            "briefing": "Write what an agent should know before it starts.",
            "share": "Write a message with everything a skill needs to know.",
        },
        "whole": {
            "replay": "Ask the question of a receipt again, as of its moment, and note nothing.",
            "failure": "Keep errors with their lessons: add, list.",
        },
        "show": {"show": "Show one memory in full."},
        "read": {
            "list": "List memories, newest first.",
            "history": "Show the changes of one memory, or of the project.",
        },
        "overview": {"status": "Show which project this is, and how much is stored."},
    },
    "Changing": {
        "edit": {"edit": "Change a memory: its text, kind, tags, files or importance."},
        "change": {
            "rate": "Mark memories as helpful (+), or as wrong or irrelevant (-).",
            "pin": "Always include these memories.",
            "unpin": "Stop always including these memories.",
            "forget": "Hide memories everywhere; they can be restored.",
            "restore": "Bring back memories that were forgotten or archived.",
            "erase": "Remove memories, a message or a session for good. This cannot be undone.",
            "undo": "Undo the last change, or a given one.",
        },
    },
    "Tasks": {
        "tasks": {
            "task": "Keep track of work: add, list, show, edit, state, note, notes, output, clear.",
            "promote": "Move a memory to a tier that lives longer.",
        },
        "narratives": {"narrative": "Keep memories of one running story together: begin, end, list, show."},
    },
    "Review and pauses": {
        "open_questions": {"review": "Go through memories that need your decision."},
        "manage": {
            "alias": "Teach recall other words for a word.",
            "secrets": "Find secrets that are stored, or allow a value that only looks like one: scan, allow.",
            "pause": "Pause automatic capture and injection in this project.",
            "resume": "End a pause.",
        },
        "judge": {"judge": "Decide which findings of a session later sessions are told."},
        "whole": {
            "guard": "Refuse tool calls that a memory concerns, once each, or only tell it again.",
            "propose": "Store a statement in the project, and ask in the next review whether all projects get it.",
            "clear-global": "Forget all of global memory, for every project. This can be undone.",
        },
    },
    "Files": {
        "files": {
            "files": "Keep MEMORY.md, AGENTS.md and tasks.json in step with your edits.",
            "extract": "Take decisions, tasks, notes and definitions out of the files of this project.",
            "items": "List what was extracted, by file and line.",
        }
    },
    "Conversations": {
        "sessions": {
            "session": "Read, search, finish and export conversations.",
        },
        "slash": {"slash": "Run a slash command, as typed into a chat."},
    },
    "Import and export": {
        "exchange": {
            "import": "Bring in memories and conversations from elsewhere.",
            "export": "Write all memories to a file, for Kept elsewhere or for other programs.",
        },
        "team": {"team": "Share memories with teammates through the repository's remote."},
    },
    "Maintenance": {
        "manage": {
            "upkeep": "Confirm or archive memories that are due, and make room where a limit is exceeded.",
        },
        "stores": {"store": "Back up, restore, merge or move the whole store."},
        "doctor": {"doctor": "Check the stores, and every agent that Kept is installed in."},
    },
    "Agents": {
        "agents": {
            "mcp": "Serve memory to an agent over MCP, on standard input and output.",
            "protocol": "Print how an agent should use its memory, for a system prompt.",
        },
        "install": {
            "install": "Put Kept into the agents on this machine.",
            "uninstall": "Take Kept out of agents again, without a trace.",
        },
    },
    "Browser": {
        "serve": {
            "serve": "Show the memory in the browser, and over HTTP.",
            "token": "Give people of a team access to `kept serve`: create, list, revoke.",
        }
    },
    "Set-up": {
        "setup": {
            "vectors": 'Find memories by meaning as well: "car" finds the automobile.',
            "projects": "List, link, rename and merge projects.",
            "config": "Show and change settings.",
        },
        "tour": {"tour": "See Kept at work in five steps, in a scratch home."},
        "help": {"help": "Show the help of a command, or of all of them with --all."},
    },
}

COMMANDS: Mapping[str, CatalogEntry] = {
    name: CatalogEntry(topic, line, module)
    for topic, modules in _TOPICS.items()
    for module, lines in modules.items()
    for name, line in lines.items()
}

FIRST_PAGE: Mapping[str, tuple[str, ...]] = {
    "Everyday": ("remember", "find", "list", "show", "edit", "rate", "pin", "forget", "undo", "review"),
    "What agents get": ("recall", "briefing", "why", "session"),
    "Keep it in order": ("status", "pause", "resume", "doctor", "store"),
    "Begin": ("tour", "install", "import", "serve"),
}
