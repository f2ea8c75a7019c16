"""Give a statement of a conversation the files that its turn was about.

Used after extraction. A statement that names files has them already. Of any other one, the files count that were edited
or read in its turn, from the user's message to the next one; if nothing was touched there, those of the turn before.
Rule: few files. A turn that reads through many of them is about none of these in particular.
"""

from collections.abc import Iterator, Sequence
from itertools import takewhile

from msgspec.structs import replace

from kept.model import Message
from kept.writing.extraction.conversation import ExtractedDraft
from kept.writing.extraction.edits import MAX_FILES, Edits, edits_in, is_code, path_in

MOST_READ = 5  # files: who reads more is looking for something
PLACELESS = ("summary", "progress", "error")  # kinds that have other files, or none


class TurnFiles:
    """The files of each turn of a conversation, with paths relative to its folder."""

    def __init__(self, messages: Sequence[Message], folder: str | None) -> None:
        self._messages = messages
        self._edits = Edits(messages, folder)
        self._places = {message.id: place for place, message in enumerate(messages)}

    def given_to(self, found: ExtractedDraft) -> ExtractedDraft:
        """Return the draft with the files of its turn, if it names none."""
        if found.draft.files or found.draft.kind in PLACELESS or found.is_minor:
            return found
        return replace(found, draft=replace(found.draft, files=self._around(self._places[found.message_id])))

    def _around(self, place: int) -> tuple[str, ...]:
        start = self._start_of_turn(place)
        turn = [self._messages[start], *takewhile(_is_of_turn, self._messages[start + 1 :])]
        return self._touched(turn) or self._touched(self._messages[self._start_of_turn(start - 1) : start])

    def _start_of_turn(self, place: int) -> int:
        """Return where the turn begins: at the last message of the user up to this place."""
        return next((at for at in range(place, 0, -1) if self._messages[at].role == "user"), 0)

    def _touched(self, turn: Sequence[Message]) -> tuple[str, ...]:
        """Return the files that were edited in a turn, the last ones first; or those that were read, if few."""
        edited = list(dict.fromkeys(reversed([*self._edited(turn)])))
        if edited:
            return tuple(edited[:MAX_FILES])
        read = list(dict.fromkeys(self._read(turn)))
        return tuple(read) if len(read) <= MOST_READ else ()

    def _edited(self, turn: Sequence[Message]) -> Iterator[str]:
        for call in turn:
            if call.role == "tool_call":
                yield from (self._edits.relative(edit.path) for edit in edits_in(call) if is_code(edit.path))

    def _read(self, turn: Sequence[Message]) -> Iterator[str]:
        for call in turn:
            if call.role == "tool_call" and (path := path_in(call)) is not None and is_code(path):
                yield self._edits.relative(path)


def _is_of_turn(message: Message) -> bool:
    return message.role != "user"
