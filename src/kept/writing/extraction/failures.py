"""Watch the commands of a conversation for errors and their fixes.

Used by extraction. Errors of interpreters, compilers, test runners and shells are recognised line by line, in the
beginning and the end of an output, so its size does not matter. Two errors that differ only in numbers, paths,
addresses and times have one signature. An error is resolved when a command that would have met it again succeeds,
after something was changed, set up or tried another way. Rule: an error without a resolution is a log line, not a
memory, and a command that merely ran in between resolved nothing.
"""

import re
from collections.abc import Sequence
from itertools import dropwhile, pairwise

from msgspec import Struct

from kept.model import Message
from kept.text import compiled

MAX_HEAD_CHARS = 4_000  # errors are at the beginning or the end of an output
MAX_TAIL_CHARS = 24_000
MAX_LINE_CHARS = 400
MAX_MESSAGE_CHARS = 160

_ANSI = r"\x1b\[[0-9;?]{0,20}[A-Za-z]|\r"
_NAME = r"(?:[A-Za-z_$][\w$]{0,60}[.:]{1,2}){0,8}[A-Z][\w$]{0,60}"
_KNOWN_NAME = rf"{_NAME}(?:Error|Exception|Warning|Interrupt|Failure|Fault|Timeout)"
_BEFORE = r"(?:E\s{1,8}|\s{0,12}|Uncaught |Unhandled \w{1,20}[:.]? |Exception in thread \"[^\"]{0,80}\" )"

# A state of the world that stops a command, as plain programs report it.
_STATE = (
    r"(?:(?:is|are) (?:locked|busy|read-only|unreachable)|already in use|connection refused|timed out|out of memory"
    r"|no space left|not responding)\b"
)
# The last of chained exceptions counts, and tells more than anything else.
_CAUSE = rf"Caused by: ({_NAME})(?:: (.*))?"
_TRACEBACK_END = rf"({_NAME})(?:: (.*))?"
# From the most telling to the least: each gives a name (or nothing) and a message.
_SHAPES = (
    r"\s{0,12}\*\* \(([\w.]{1,80})\) (.*)",  # Elixir
    r"error\[(E\d{4})\]: (.*)",  # Rust
    r"()(panic: .*?)(?: \[recovered\])?$",  # Go
    r"thread '[^']{0,60}' (panicked) at [^\n]{0,300}: ?\n(.*)",  # Rust
    r"\S{1,300}[(:]\d{1,6}[,:]\d{1,6}\)?:? (?:- )?error (TS\d{1,6}): (.*)",  # TypeScript
    r"\w{0,40}Error \[([A-Z_]{3,60})\]: (.*)",  # Node
    rf"{_BEFORE}({_KNOWN_NAME}): (.*)",  # Python, JavaScript, Java, C#
    r"\S{1,300}:\d{1,6}:in .{1,100}?: ()(.* \(\w{1,60}Error\))",  # Ruby
    r"\S{1,300}:\d{1,6}(?::\d{1,6})?: (?:fatal )?(error): (.*)",  # C compilers
    r"(?:.{0,200}: )?()(undefined reference to .*)",
    r"(?:\./)?[\w./-]{1,200}\.go:\d{1,6}:\d{1,6}: ()(.*)",  # Go compiler
    r"()(?:FAILED|ERROR) \S{1,300} - (.*)",  # pytest
    rf"{_BEFORE}({_KNOWN_NAME})()$",
    r"()(?:PHP )?(?:Fatal|Parse) error: (.*)",
    r"(?:\S{1,40}: |✘ |\s{1,8})?\[?()(?:fatal|error|ERROR|Error|npm ERR!|npm error)\]?[:!]? (?!code |0 )(.{4,})",
    r"(?:[\w./ -]{1,40}: ){0,3}()([\w./-]{1,60}: (?:command not found|No such file|Permission denied).*)",
    rf"(?:[\w./ -]{{1,40}}: ){{0,3}}()(.{{0,80}}\b{_STATE}.*)",  # no word such as "error" in it
    r"()(?:--- FAIL: )(\w\S*)",  # the name of a failed test: Go
    r"()(?:\s{0,4}\d{1,4}\) |\s{0,4}● )(\w.*)",  # ExUnit, Jest
)
# A line without any of these matches none of the shapes: outputs are long, and most of their lines harmless.
_MAY_TELL = (
    r"[Ee]rror|ERR|FAIL|[Ff]atal|panic|Exception|Warning|Interrupt|Failure|Fault|Timeout|\*\* \(|undefined|\.go:"
    rf"|not found|No such|denied|{_STATE}|^\s{{0,4}}(?:\d{{1,4}}\) |●)"
)
_TELLING = (
    rf"(?i:{_STATE})|\bE[A-Z]{{4,}}\b|"
    r"[A-Z]\w+(?:Error|Exception)\b(?!: (?:assert|expect))|\b[A-Z]{1,3}\d{3,5}\b|not found|No such|[Cc]annot|[Uu]nable"
    r"|undefined|required?|missing|unknown|invalid|denied|refused|not (?:allowed|supported|installed|exist)|must "
)
_TIME = r"\d{4}-\d\d-\d\d[T ]?(?:\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?)?(?:Z|[+-]\d\d:?\d\d)?|\b\d\d:\d\d:\d\d(?:[.,]\d+)?"
_ID = (
    r"\b[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}\b|\b0x[0-9a-fA-F]+"
    r"|\b(?=[a-f]*\d)(?=\d*[a-f])[0-9a-f]{7,64}\b"
)
_PATH = r"(?:[A-Za-z]:)?(?:[\\/][\w.@+~-]{1,100}){2,30}|(?:[\w.@+~-]{1,100}/){1,30}[\w@+~-]{1,100}\.\w{1,6}\b"
_FIGURE = r"(?<![A-Za-z_\d])\d+(?:[.,]\d+)*"

_FAILED = (
    r"(?m)\b[Ee]xit (?:code|status) [1-9]|\b[1-9]\d{0,6} (?:tests? )?(?:failed|failing|failures?|errors?)\b"
    r"|^\s{0,4}(?:FAIL|FAILED|FAILURE)\b|BUILD FAILED|<tool_use_error>"
)
_PASSED = r"\b\d{1,6} (?:tests? )?pass(?:ed|ing)\b|\b0 (?:failures|failed|errors)\b|BUILD SUCCESS|\btest result: ok\b"
_UNKNOWN = (
    "Command running in background",
    "The user doesn't want to proceed",
    "<persisted-output>",
    "<retrieval_status>",
)

_PLACE = r"File \"([^\"]{1,300})\", line \d|([\w@./+~-]{1,300}\.[A-Za-z]{1,6})[:(]\d{1,6}"
_LIBRARY = (
    r"site-packages|node_modules|/usr/(?:local/)?(?:lib|go)|<frozen|/deps/|\.cargo|internal/|^java|testing\.go|/gems/"
)


def error_message(text: str) -> str | None:
    """Return the error that a text reports, in its own words: `TypeError: x is undefined`, at most a line."""
    rank, message = len(_SHAPES), None
    is_traceback = False
    for line, following in pairwise([*_lines(text), ""]):
        if last := _last_of_chain(line, is_traceback=is_traceback):
            rank, message, is_traceback = -1, _worded(last[1], last[2] or ""), False
        elif line.startswith("Traceback (most recent call last)"):
            is_traceback = True
        elif rank > 0 and compiled(_MAY_TELL).search(line):
            candidate = f"{line}\n{following}" if line.startswith("thread ") else line
            rank, message = _more_telling(candidate, rank) or (rank, message)
    return message


def _last_of_chain(line: str, *, is_traceback: bool) -> re.Match[str] | None:
    """Match the line that ends a traceback, and a cause."""
    if is_traceback and line[:1].isalpha():
        return compiled(_TRACEBACK_END).fullmatch(line)
    return compiled(_CAUSE).match(line) if line.startswith("Caused by: ") else None


def _more_telling(candidate: str, rank: int) -> tuple[int, str] | None:
    """Return the rank and the message of an error, if its shape is more telling than this rank."""
    for place, shape in enumerate(_SHAPES[:rank]):
        if found := compiled(shape).match(candidate):
            return place, _worded(found[1], found[2])
    return None


def is_telling(message: str) -> bool:
    """Match an error message that names the problem, not only a test or a line of its output."""
    return compiled(_TELLING).search(message) is not None


def has_failed(output: str) -> bool | None:
    """Return True if a command failed, judged by its output; None if that is unknown."""
    if output.startswith(_UNKNOWN):
        return None
    ends = "\n".join(_lines(output))
    if compiled(_FAILED).search(ends):
        return True
    return error_message(ends) is not None and not compiled(_PASSED).search(ends)


def _lines(text: str) -> list[str]:
    if len(text) > MAX_HEAD_CHARS + MAX_TAIL_CHARS:
        text = f"{text[:MAX_HEAD_CHARS]}\n{text[-MAX_TAIL_CHARS:]}"
    return [line[:MAX_LINE_CHARS] for line in compiled(_ANSI).sub("", text).split("\n")]


def _last_line(output: str) -> str | None:
    lines = (line.strip() for line in reversed(_lines(output)))
    return next((line[:MAX_MESSAGE_CHARS] for line in lines if line), None)


def _worded(name: str, message: str) -> str:
    words = " ".join(f"{name}: {message}".split()) if name and name != "error" else " ".join(message.split())
    return words.rstrip(": ")[:MAX_MESSAGE_CHARS]


def signature_of(message: str) -> str:
    """Replace times, ids, paths and numbers in the message by marks."""
    for varying, mark in ((_TIME, "<time>"), (_ID, "<id>"), (_PATH, "<path>"), (_FIGURE, "<n>")):
        message = compiled(varying).sub(mark, message)
    return message


def place_of(output: str) -> str | None:
    """Return the file that an error points at, unless it is a library's: in Python the last named, else the first."""
    ends = "\n".join(_lines(output))
    found = compiled(_PLACE).findall(ends)
    places = [(quoted, plain) for quoted, plain in found if not compiled(_LIBRARY).search(quoted or plain)]
    python = [quoted for quoted, _ in places if quoted]
    return python[-1] if python else places[0][1] if places else None


MAX_OTHER_WORDS = 3  # by which another way to call a program differs
MAX_COMMAND_CHARS = 300  # a longer one is a script for one use
MAX_OPEN = 20  # unresolved errors that are watched at a time
MAX_NEW_LINES = 6  # of one file: a fix that is longer is not told by its lines
MAX_SAID = 8  # sentences that may explain one of them: the latest

_WRAPPERS = frozenset("sudo time env npx bunx exec uv poetry run -m".split())
LOOKING = frozenset(
    "ls cat grep rg find head tail sed awk echo wc pwd which cd tree stat file diff less curl wget sleep ps "
    "journalctl jq xxd printf test true export source".split()
)
_SETTING_UP = frozenset(
    "install add i ci build init migrate generate sync get mkdir chmod up restore setup create link upgrade start "
    "enable seed bootstrap reset kill pkill killall stop restart down".split()
)
_CHECKS = frozenset(
    "test tests pytest vitest jest mocha rspec lint eslint ruff mypy tsc typecheck check format prettier bench make "
    "python node bash".split()
)
# Commands that set something for the rest of the shell session.
_SETTING = r"(?:export|unset|source|\.|nvm|pyenv|conda|direnv|ulimit|set) [\w./~-][^&;|\n]{0,200}"
_LOOKING_WORDS = frozenset("logs log status show diff describe get list ready".split())


class Failure(Struct):
    """An error as a command reported it, and the changes, commands and explanations since then.

    `changed` maps a file to the lines written into it; `ran` holds commands that set something up, `tried` any other
    that may have changed something, `instead` the other way to call the same program that worked.
    """

    signature: str
    message: str
    place: str | None
    command: str
    words: tuple[str, ...]  # of the command
    changed: dict[str, list[str]] = {}
    ran: list[str] = []
    tried: list[str] = []
    said: list[tuple[str, Message]] = []
    instead: str = ""
    is_gone: bool = False


def command_in(call: Message) -> str | None:
    """Return the shell command of a tool call, in any of its fields; None if there is none."""
    input = call.input or {}
    command = input.get("command", input.get("cmd"))
    if isinstance(command, list) and all(isinstance(word, str) for word in command):
        command = command[-1] if command[1:2] in (["-c"], ["-lc"]) else " ".join(command)
    is_shell = isinstance(command, str) and "path" not in input and "file_path" not in input
    return command if is_shell else None


def command_words(command: str) -> tuple[str, ...]:
    """Return the words that identify a command: no change of folder, no options, no redirection.

    Empty for a command that only looks at something or is written for one use: its errors teach nothing.
    """
    if "<<" in command or "\n" in command.strip() or len(command) > MAX_COMMAND_CHARS:
        return ()
    last = compiled(r"&&|;").split(command)[-1].split("|")[0]
    if " -c" in last or " -e" in last:
        return ()
    words = list(dropwhile(_WRAPPERS.__contains__, filter(_is_plain_word, last.split())))
    return () if not words or _only_looks(words) else tuple(map(_last_part, words))


def _is_plain_word(word: str) -> bool:
    return not word.startswith("-") and "=" not in word and ">" not in word


def _only_looks(words: Sequence[str]) -> bool:
    if words[0] == "git" and words[1:2] not in (["commit"], ["push"]):  # a hook may reject these two
        return True
    return words[0] in LOOKING or not _LOOKING_WORDS.isdisjoint(words[1:3])


def shown(command: str) -> str:
    """Return the command as a person would type it again."""
    return " ".join(compiled(r"\s*2>&1|\s*\|\s*(?:tail|head)\b.*$").sub("", command.strip()).split())[:120]


def _would_fail_again(words: tuple[str, ...], earlier: Failure) -> bool:
    """Match a command that covers the failed one, or another way to call it when no file was changed."""
    return _covers(words, earlier) or (not earlier.changed and _is_variant(words, earlier.words))


def _is_explained(failure: Failure, command: str) -> bool:
    """Return True if a change, another command or another way to call it resolved the error; note the latter two."""
    if failure.changed or (failure.ran and is_telling(failure.message)):
        return True
    failure.ran = [one for one in failure.tried if _is_named(one, failure)][-1:]
    if not failure.ran and _is_near(command, failure.command):
        failure.instead = command
    return bool(failure.ran or failure.instead)


def _covers(words: tuple[str, ...], earlier: Failure) -> bool:
    """Match a command that would meet the earlier error: the same, a wider one, or one for the failing file."""
    if words[0] != earlier.words[0]:
        return False
    is_for_the_file = _last_part(earlier.place or "") in words and set(earlier.words) < set(words)
    return set(words) <= set(earlier.words) or is_for_the_file


def _is_variant(words: tuple[str, ...], earlier: tuple[str, ...]) -> bool:
    """Match the same program with the same sub-command, called another way."""
    same = 3 if words[1:2] and words[1] in ("run", "exec", "x") else 2
    return len(words) >= same and words[:same] == earlier[:same]


def _is_near(command: str, earlier: str) -> bool:
    """Match two commands that differ by a few words: an option, quotation marks."""
    new, old = set(command.split()) - set(earlier.split()), set(earlier.split()) - set(command.split())
    if any(map(str.isalpha, new)) and any(map(str.isalpha, old)):
        return False  # another sub-command does something else
    if all(any(compiled(r"[\w.#]*\d[\w.]*").fullmatch(word) for word in words) for words in (new, old)):
        return False  # another number is another case: task 002 says nothing about task 001
    differing = new | old
    is_elsewhere = any(compiled(r"\w/|\.\w{1,5}$|^(?:cd|pwd|git)$").search(word) for word in differing)
    return 0 < len(differing) <= MAX_OTHER_WORDS and not is_elsewhere and not command.startswith("git ")


def _is_named(command: str, failure: Failure) -> bool:
    """Match a command whose program or sub-command is named by the error or its explanation. Checks fix nothing."""
    said = " ".join((failure.message, *(sentence for sentence, _ in failure.said))).lower()
    words = command_words(command.lower())[:2]
    parts = {part for word in words for part in compiled(r"[a-z]{4,}").findall(word)}
    return parts.isdisjoint(_CHECKS) and any(part in said for part in parts - set(failure.words))


def _last_part(path: str) -> str:
    return path.rsplit("/", 1)[-1]


class Failures:
    """The errors of one conversation, from their first appearance to the run without them."""

    def __init__(self) -> None:
        self._open: dict[str, Failure] = {}
        self.has_just_failed = False  # the last command that was run

    @property
    def are_open(self) -> bool:
        """Return True if an error is still unresolved."""
        return bool(self._open)

    def changed(self, path: str, lines: Sequence[str]) -> None:
        """Note the new lines of a changed file."""
        for each in self._open.values():
            if not each.is_gone:
                each.changed[path] = [*each.changed.get(path, ()), *lines][:MAX_NEW_LINES]

    def said(self, sentences: Sequence[tuple[str, Message]]) -> None:
        """Note sentences that may explain an error."""
        for each in self._open.values():
            if not each.is_gone:
                each.said = [*each.said, *sentences][-MAX_SAID:]

    def ran(self, command: str, output: str, *, is_error: bool = False) -> list[Failure]:
        """Return the errors that this command, which has just ended, resolved."""
        if not is_error and compiled(_SETTING).fullmatch(command):
            self._set_up(shown(command))
            return []
        words = command_words(command)
        if not words:
            self.has_just_failed = is_error or "rror" in output[:MAX_LINE_CHARS]
            return []
        failed = is_error or has_failed(output)
        self.has_just_failed = failed is not False
        if failed:
            self._fail(command, words, output, is_error=is_error)
        return self._pass(shown(command), words) if failed is False else []

    def _pass(self, command: str, words: tuple[str, ...]) -> list[Failure]:
        """Close the errors that this command would have met again, and return those with a known fix."""
        resolved = []
        for signature, each in list(self._open.items()):
            if _would_fail_again(words, each):
                del self._open[signature]
                if _is_explained(each, command):
                    resolved.append(each)
            elif not each.is_gone:
                is_setting_up = not _SETTING_UP.isdisjoint(words[:3])
                (each.ran if is_setting_up else each.tried).append(command)
        return resolved

    def _set_up(self, command: str) -> None:
        for each in self._open.values():
            if not each.is_gone:
                each.ran.append(command)

    def _fail(self, command: str, words: tuple[str, ...], output: str, *, is_error: bool) -> None:
        message = error_message(output) or (_last_line(output) if is_error else None)
        if message is None:
            return
        signature = signature_of(message)
        for each in self._open.values():
            if each.signature != signature and _covers(words, each):
                each.is_gone = True  # another error now: the work so far has helped, if the command passes in the end
        known = self._open.pop(signature, None)
        while len(self._open) >= MAX_OPEN:
            del self._open[next(iter(self._open))]
        # Changes made before the error came back did not help; explanations may still hold.
        said = known.said if known else []
        self._open[signature] = Failure(signature, message, place_of(output), shown(command), words, said=said)
