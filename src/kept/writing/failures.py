"""Watch the commands of a conversation: which error appeared, and what made it go away.

Used by extraction. An error is resolved when a command that would have met it again succeeds, after something was
changed or run. Rule: an error without a resolution is a log line, not a memory.
"""

from collections.abc import Sequence

from msgspec import Struct

from kept.model import Message
from kept.writing.patterns import pattern
from kept.writing.signatures import error_message, has_failed, place_of, signature_of

MAX_OPEN = 20  # unresolved errors that are watched at a time
MAX_SAID = 8  # sentences that may explain one of them: the latest

_WRAPPERS = frozenset("sudo time env npx bunx exec uv poetry run -m".split())
_LOOKING = frozenset(
    "ls cat grep rg find head tail sed awk echo wc pwd which cd tree stat file diff less curl wget sleep ps kill "
    "journalctl jq xxd printf test true export source".split()
)
_LOOKING_WORDS = frozenset("logs log status show diff describe get list ready".split())


class Failure(Struct, frozen=True):
    """An error as a command reported it."""

    signature: str
    message: str
    place: str | None
    command: str


class Resolution(Struct, frozen=True):
    """What was done and said between an error and the run without it."""

    failure: Failure
    changed: tuple[str, ...]
    ran: tuple[str, ...]
    said: tuple[str, ...]


def command_in(call: Message) -> str | None:
    """The shell command of a tool call, however its tool takes it; None if it runs none."""
    input = call.input or {}
    command = input.get("command", input.get("cmd"))
    if isinstance(command, list) and all(isinstance(word, str) for word in command):
        command = command[-1] if command[1:2] in (["-c"], ["-lc"]) else " ".join(command)
    is_shell = isinstance(command, str) and "path" not in input and "file_path" not in input
    return command if is_shell else None


def command_words(command: str) -> tuple[str, ...]:
    """The words that say which command it is: no change of folder, no options, no redirection.

    Empty for a command that only looks at something or is written for one use: its errors teach nothing.
    """
    if "<<" in command or len(command) > 1_000:
        return ()
    last = pattern(r"&&|;").split(command)[-1].split("|")[0]
    words = [word for word in last.split() if not word.startswith("-") and "=" not in word and ">" not in word]
    while words and words[0] in _WRAPPERS:
        words = words[1:]
    is_one_off = any(option in (" -c", " -e") for option in (last[at : at + 3] for at in range(len(last))))
    if not words or is_one_off or words[0] in _LOOKING or not _LOOKING_WORDS.isdisjoint(words[1:3]):
        return ()
    return tuple(map(_last_part, words))


def shown(command: str) -> str:
    """The command as a person would type it again."""
    return " ".join(pattern(r"\s*2>&1|\s*\|\s*(?:tail|head)\b.*$").sub("", command.strip()).split())[:120]


class _Open(Struct):
    failure: Failure
    words: tuple[str, ...]
    changed: list[str] = []
    ran: list[str] = []
    said: list[str] = []
    is_gone: bool = False


def _covers(words: tuple[str, ...], earlier: _Open) -> bool:
    """Whether a command would have met the earlier error: the same one, a wider one, or one for the very file."""
    if words[0] != earlier.words[0]:
        return False
    is_for_the_file = _last_part(earlier.failure.place or "") in words and set(earlier.words) < set(words)
    return set(words) <= set(earlier.words) or is_for_the_file


def _last_part(path: str) -> str:
    return path.rsplit("/", 1)[-1]


class Failures:
    """The errors of one conversation, from their first appearance to the run without them."""

    def __init__(self) -> None:
        self._open: dict[str, _Open] = {}

    @property
    def are_open(self) -> bool:
        """Whether there is an error that something could still resolve."""
        return bool(self._open)

    def changed(self, path: str) -> None:
        """A file was changed."""
        for each in self._open.values():
            if not each.is_gone and path not in each.changed:
                each.changed.append(path)

    def said(self, sentences: Sequence[str]) -> None:
        """Somebody explained something."""
        for each in self._open.values():
            if not each.is_gone:
                each.said = [*each.said, *sentences][-MAX_SAID:]

    def ran(self, command: str, output: str) -> list[Resolution]:
        """A command has ended: what it resolved."""
        words = command_words(command)
        failed = has_failed(output) if words else None
        if failed is None:
            return []
        if failed:
            self._fail(command, words, output)
            return []
        resolved = []
        for signature, each in list(self._open.items()):
            is_another_try = words[:2] == each.words[:2] and len(words) > 1 and not each.changed
            if not _covers(words, each) and not is_another_try:
                if not each.is_gone:
                    each.ran.append(shown(command))
                continue
            del self._open[signature]
            if not each.changed and shown(command) != each.failure.command:
                each.ran.append(shown(command))
            if each.changed or each.ran:
                resolved.append(Resolution(each.failure, tuple(each.changed), tuple(each.ran), tuple(each.said)))
        return resolved

    def _fail(self, command: str, words: tuple[str, ...], output: str) -> None:
        message = error_message(output)
        if message is None:
            return
        signature = signature_of(message)
        for each in self._open.values():
            if each.failure.signature != signature and _covers(words, each):
                each.is_gone = True  # another error now: what was done has helped, if the command passes in the end
        known = self._open.pop(signature, None)
        while len(self._open) >= MAX_OPEN:
            del self._open[next(iter(self._open))]
        failure = Failure(signature, message, place_of(output), shown(command))
        # What was done before the error came back did not help; what was said may still explain it.
        self._open[signature] = _Open(failure, words, said=list(known.said) if known else [])
