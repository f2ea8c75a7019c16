"""Find the commands that work in this project: to test, lint, build and run it.

Used by extraction. A command counts when it was run twice and did not fail; one for a single file, a look at something
and git do not count. Rule: one memory for each purpose, with the folder that the command has to be run in.
"""

from collections.abc import Iterator

from msgspec import Struct

from kept.text import compiled
from kept.writing.extraction.failures import LOOKING, shown

MIN_RUNS = 2
MAX_CHARS = 100
USUAL_WORDS = 2  # `go test`, `mix compile`

# The purpose of a command, by a word in it. The first that fits.
PURPOSES = (
    ("Lint with", r"\b(?:lint|eslint|ruff|credo|clippy|golangci-lint|flake8|pylint|rubocop|vet|shellcheck)\b"),
    ("Check types with", r"\b(?:typecheck|type-check|mypy|pyright|tsc|dialyzer)\b"),
    ("Format with", r"\b(?:format|fmt|prettier|black|gofmt|rustfmt)\b"),
    ("Run the tests with", r"\b(?:tests?|pytest|vitest|jest|rspec|phpunit|ctest|tox|nox|playwright|spec)\b"),
    ("Build with", r"\b(?:build|compile|webpack|css:build|bundle|package|assemble)\b"),
    ("Deploy with", r"\b(?:deploy|release|publish)\b"),
    ("Start it with", r"\b(?:dev|start|serve|server|up|watch)\b"),
)
_SEPARATE = r"&&|;"
_MESSAGE = r"\"[^\"]*[ ;&][^\"]*\"|'[^']*[ ;&][^']*'"  # words in quotation marks are no command
_FILE = r"[\w-]\.[a-z]{1,5}\b|::|\w/|/\w|\$\(|\{"  # for one file or folder, or made up for one use


class WorkingCommand(Struct):
    """A command that worked, its folder, and the number of its runs."""

    text: str
    folder: str = ""
    runs: int = 0


class Commands:
    """The commands of one conversation that did not fail."""

    def __init__(self) -> None:
        self._works: dict[str, WorkingCommand] = {}

    def ran(self, command: str) -> None:
        """Count a command that ended without an error."""
        if "<<" in command or "\n" in command.strip() or "*** Begin" in command:
            return
        folder = ""
        for part in compiled(_SEPARATE).split(compiled(_MESSAGE).sub("", command[:2_000])):
            text = shown(part.split("|")[0])
            if text.startswith("cd "):
                folder = text[3:].strip("\"' ")
            else:
                self._count(text, folder)

    def _count(self, text: str, folder: str) -> None:
        program = next((word for word in text.split() if "=" not in word), "git")
        if program != "git" and program not in LOOKING and _is_general(text):
            known = self._works.setdefault(text, WorkingCommand(text))
            known.runs += 1
            known.folder = folder or known.folder

    def worth_keeping(self) -> Iterator[tuple[str, str, str]]:
        """Return sentences to remember, each with its command and folder."""
        told: set[str] = set()
        for each in sorted(self._works.values(), key=lambda each: -each.runs):
            purpose = _purpose(each.text)
            if each.runs >= MIN_RUNS and purpose and purpose not in told and not _is_usual(each.text):
                told.add(purpose)
                yield f"{purpose} `{each.text}`", each.text, each.folder


def _is_general(command: str) -> bool:
    """Match a short command that is not for one file or folder."""
    return len(command) <= MAX_CHARS and not compiled(_FILE).search(command)


def _is_usual(command: str) -> bool:
    """Match a command that everybody would try first: a program and its own word for the purpose, with any options."""
    words = [word for word in command.split() if word not in (".", "./...") and not word.startswith("-")]
    is_special = words[0] in ("make", "just", "task") or any(compiled(r"[=:]").search(word) for word in words)
    return len(words) <= USUAL_WORDS and not is_special


def _purpose(command: str) -> str | None:
    return next((name for name, words in PURPOSES if compiled(words).search(command)), None)
