"""Recognise errors in the output of commands: of interpreters, compilers, test runners and shells.

Used by extraction. Rule: two errors that differ only in numbers, paths, addresses and times have one signature. Only
the beginning and the end of an output are read, line by line, so that its size does not matter.
"""

from itertools import pairwise

from kept.writing.patterns import pattern

MAX_HEAD_CHARS = 4_000  # errors stand at the beginning of an output or at its end
MAX_TAIL_CHARS = 24_000
MAX_LINE_CHARS = 400
MAX_MESSAGE_CHARS = 160

_ANSI = r"\x1b\[[0-9;?]{0,20}[A-Za-z]|\r"
_NAME = r"(?:[A-Za-z_$][\w$]{0,60}[.:]{1,2}){0,8}[A-Z][\w$]{0,60}"
_KNOWN_NAME = rf"{_NAME}(?:Error|Exception|Warning|Interrupt|Failure|Fault|Timeout)"
_BEFORE = r"(?:E\s{1,8}|\s{0,12}|Uncaught |Unhandled \w{1,20}[:.]? |Exception in thread \"[^\"]{0,80}\" )"

# Of chained exceptions the last one counts, and it tells more than anything else.
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
    r"()(?:--- FAIL: )(\w\S*)",  # the name of a failed test: Go
    r"()(?:\s{0,4}\d{1,4}\) |\s{0,4}● )(\w.*)",  # ExUnit, Jest
)
# A line without any of these is none of the above: outputs are long, and their lines mostly harmless.
_MAY_TELL = (
    r"[Ee]rror|ERR|FAIL|[Ff]atal|panic|Exception|Warning|Interrupt|Failure|Fault|Timeout|\*\* \(|undefined|\.go:"
    r"|not found|No such|denied|^\s{0,4}(?:\d{1,4}\) |●)"
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


def error_signature(text: str) -> str | None:
    """The error that a text reports, without what changes from run to run; None if it reports none."""
    message = error_message(text)
    return None if message is None else signature_of(message)


def error_message(text: str) -> str | None:
    """The error that a text reports, in its own words: `TypeError: x is undefined`, at most a line."""
    best: tuple[int, str] | None = None
    is_traceback = False
    lines = _lines(text)
    for line, following in pairwise([*lines, ""]):
        end = None
        if is_traceback and line[:1].isalpha():
            end = pattern(_TRACEBACK_END).fullmatch(line)
        elif line.startswith("Caused by: "):
            end = pattern(_CAUSE).match(line)
        if end:
            best, is_traceback = (-1, _worded(end[1], end[2] or "")), False
        elif line.startswith("Traceback (most recent call last)"):
            is_traceback = True
        elif (best is None or best[0] > 0) and pattern(_MAY_TELL).search(line):
            candidate = f"{line}\n{following}" if line.startswith("thread ") else line
            for rank, shape in enumerate(_SHAPES[: best[0] if best else len(_SHAPES)]):
                if found := pattern(shape).match(candidate):
                    best = (rank, _worded(found[1], found[2]))
                    break
    return best[1] if best else None


def has_failed(output: str) -> bool | None:
    """Whether a command failed, by what it printed; None if that cannot be told."""
    if output.startswith(_UNKNOWN):
        return None
    ends = "\n".join(_lines(output))
    if pattern(_FAILED).search(ends):
        return True
    return error_message(ends) is not None and not pattern(_PASSED).search(ends)


def _lines(text: str) -> list[str]:
    if len(text) > MAX_HEAD_CHARS + MAX_TAIL_CHARS:
        text = f"{text[:MAX_HEAD_CHARS]}\n{text[-MAX_TAIL_CHARS:]}"
    return [line[:MAX_LINE_CHARS] for line in pattern(_ANSI).sub("", text).split("\n")]


def _worded(name: str, message: str) -> str:
    words = " ".join(f"{name}: {message}".split()) if name and name != "error" else " ".join(message.split())
    return words.rstrip(": ")[:MAX_MESSAGE_CHARS]


def signature_of(message: str) -> str:
    """The message with marks for times, ids, paths and numbers."""
    for varying, mark in ((_TIME, "<time>"), (_ID, "<id>"), (_PATH, "<path>"), (_FIGURE, "<n>")):
        message = pattern(varying).sub(mark, message)
    return message


def place_of(output: str) -> str | None:
    """The file that an error points at, if it is not a library's. In Python the last one named, elsewhere the first."""
    ends = "\n".join(_lines(output))
    found = pattern(_PLACE).findall(ends)
    places = [(quoted, plain) for quoted, plain in found if not pattern(_LIBRARY).search(quoted or plain)]
    python = [quoted for quoted, _ in places if quoted]
    return python[-1] if python else places[0][1] if places else None
