"""Known errors: memories that tell the fix of an error, by its signature or by the names in its message.

`Deliveries.for_error` asks for the output of a tool that failed, `errors_in` finds an error that a prompt quotes.
Signature first: the message without numbers, paths and times, as extraction has kept it. Else a warning or a decision
that names the same identifier, or shares several telling words with the message. Rule: better no fix than a wrong one.
"""

from collections.abc import Mapping, Sequence

from msgspec import Struct

from kept import text
from kept.anchors import ToolCall, keys_of_call
from kept.errors import InvalidInput
from kept.memory import knowledge
from kept.memory.anchor_files import Anchors, is_anchored, keys_of
from kept.memory.context import Context, Memories
from kept.model import Memory
from kept.ports import LIVE, Reader, Storage
from kept.recall.stems import COMMON, WORTHLESS
from kept.writing.admit import INSTRUCTION_TAG
from kept.writing.extraction.failures import error_message, signature_of

MOST_ERRORS = 3
ENOUGH_WORDS = 3
SAME = "same error"  # why: it has the signature
FEW = 3  # memories: a name that more of them have does not tell which one is meant
SHORTEST_SIGNATURE = 15  # characters: a shorter one may stand in any text by chance
MOST_CANDIDATES = 40
TELLING_SHARE = 0.05
ERROR_CHARS = 4_000  # of an output: its beginning and its end name the error

# Names that say which sort of mistake was made, in every program.
_GENERAL = frozenset(
    "typeerror valueerror keyerror indexerror nameerror attributeerror importerror modulenotfounderror oserror ioerror "
    "runtimeerror syntaxerror referenceerror rangeerror assertionerror filenotfounderror permissionerror "
    "notimplementederror stopiteration recursionerror zerodivisionerror exception nullpointerexception "
    "illegalargumentexception illegalstateexception classcastexception argumenterror nomethoderror".split()
)
_OF_ERRORS = frozenset("error fail failur except warn fatal panic traceback recent last line file".split())
_QUOTED = text.pattern(
    r"(?:[A-Za-z_$][\w$]{0,60}[.:]{1,2}){0,8}[A-Z][\w$]{0,60}(?:Error|Exception|Warning|Failure|Fault|Timeout)\b(?::[^\n]{0,300})?"
    r"|\b(?:error|fatal|panic)(?:\[\w{1,20}\])?: [^\n]{4,300}|\bnpm ERR! [^\n]{4,300}"
    r"|[^\n]{1,80}: (?:command not found|No such file|Permission denied)[^\n]{0,200}"
)


class KnownFix(Struct, frozen=True, kw_only=True):
    """A memory that knows an error, and why it is taken for the same."""

    memory: Memory
    reason: str


def errors_in(prompt: str) -> list[str]:
    """Return the errors that a prompt quotes, each in its own words."""
    return list(dict.fromkeys(found[0].strip() for found in _QUOTED.finditer(prompt[:ERROR_CHARS])))


def fixes_for(context: Context, output: str, *, session: str = "", command: str = "") -> list[KnownFix]:
    """Return the memories that know the error of an output, the surest first; none that this session just noted."""
    shown = _shortened(output)
    found = [KnownFix(memory=one, reason=SAME) for one in _by_signature(context, shown)]
    found += _by_names(context, shown, command)
    first: dict[str, KnownFix] = {}
    for one in found:
        is_news = one.memory.source.session != session or one.memory.status != "candidate"
        if is_news and INSTRUCTION_TAG not in one.memory.tags:
            first.setdefault(one.memory.uid, one)
    return list(first.values())[:MOST_ERRORS]


def _by_signature(context: Context, output: str) -> Memories:
    """Return the errors whose signature is that of the output, or stands in it."""
    try:
        same = knowledge.failures(context, output, limit=MOST_ERRORS)
    except InvalidInput:  # nothing but blanks
        return []
    said = signature_of(output)
    others = (one for one in knowledge.failures(context, limit=knowledge.MOST) if _stands_in(one, said))
    return [*same, *others]


def _stands_in(memory: Memory, said: str) -> bool:
    signature = str((memory.data or {}).get("signature") or "")
    return len(signature) >= SHORTEST_SIGNATURE and signature in said


def _by_names(context: Context, output: str, command: str) -> list[KnownFix]:
    """Return the memories that name the same things as the message of an error, the nearest first."""
    home, storages = context.spaces.home(), context.readable()
    if home is None:
        return []
    anchors = Anchors(home, [storage.space for storage in storages])
    named = {key: anchors.ids(key) for key in _names_in(output, command)}
    found: list[_Likeness] = []
    for storage in storages:
        found += _likenesses_in(storage, {key: ids.get(storage.space, []) for key, ids in named.items()}, output)
    found.sort(key=lambda one: (-one.worth, -one.memory.id))
    return [KnownFix(memory=one.memory, reason=one.reason) for one in found if one.worth >= ENOUGH_WORDS]


def _names_in(output: str, command: str) -> list[str]:
    """Return the keys of the identifiers in an output, and of the command that failed."""
    named = [key for key in keys_of_call(ToolCall(text=output)) if key[2:].rpartition(".")[2] not in _GENERAL]
    return named + [key for key in keys_of_call(ToolCall(commands=[command])) if key[0] == "c" and " " in key]


def _likenesses_in(storage: Storage, named: Mapping[str, list[int]], output: str) -> "list[_Likeness]":
    """Return how much of an error the memories of one space name."""
    ids = {key: own for key, own in named.items() if 0 < len(own) <= FEW}
    with storage.reading() as reader:
        words = _telling(reader, error_message(output) or output)
        candidates = {one.id: one for one in _candidates(reader, ids, words) if is_anchored(one)}
    return [_likeness(memory, frozenset(ids), words) for memory in candidates.values()]


class _Likeness(Struct, frozen=True):
    """How much of an error a memory names: identifiers, the command that failed, telling words."""

    memory: Memory
    names: tuple[str, ...]
    words: tuple[str, ...]

    @property
    def worth(self) -> int:
        """Count words; an identifier says as much as several, and a command as much as one."""
        is_named = any(key[0] == "s" for key in self.names)
        return len(self.words) + ENOUGH_WORDS * is_named + any(key[0] == "c" for key in self.names)

    @property
    def reason(self) -> str:
        return f"names {', '.join([*(key[2:] for key in self.names), *self.words])}"


def _likeness(memory: Memory, named: frozenset[str], words: frozenset[str]) -> _Likeness:
    names = tuple(key for key in keys_of(memory) if key in named)
    return _Likeness(memory, names, tuple(_maximal(words & set(text.words(memory.content)))))


def _candidates(reader: Reader, ids: dict[str, list[int]], words: frozenset[str]) -> Memories:
    """Return the memories that may tell of an error: by their anchors, and by words."""
    named = list(dict.fromkeys(id for own in ids.values() for id in own))[:MOST_CANDIDATES]
    found = [memory for id in named if (memory := reader.get(Memory, id)) is not None]
    if words:
        found += [one.memory for one in reader.search(sorted(words), LIVE, limit=MOST_CANDIDATES)]
    return found


def _telling(reader: Reader, message: str) -> frozenset[str]:
    """Return the words of a message that few memories have."""
    general = COMMON | WORTHLESS | _GENERAL | _OF_ERRORS
    words = [word for word in dict.fromkeys(text.words(message)) if word not in general and not word.isdigit()]
    if not words:
        return frozenset()
    known = reader.statistics(words)
    most = max(FEW, TELLING_SHARE * known.rows)
    return frozenset(word for word, rows in known.rows_with.items() if 0 < rows <= most)


def _maximal(words: Sequence[str] | frozenset[str]) -> list[str]:
    """Leave out words that are parts of another one: an identifier counts once."""
    return sorted(word for word in words if not any(word != other and word in other for other in words))


def _shortened(output: str) -> str:
    half = ERROR_CHARS // 2
    return output if len(output) <= ERROR_CHARS else f"{output[:half]}\n{output[-half:]}"
