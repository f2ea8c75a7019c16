"""Write the text that stands in for a stretch of a conversation: sized to what it replaces.

Used when a session is compacted. It says what was asked last in earnest, what was decided and found, which files were
changed, which commands were run and how they ended, and what is open. Rule: it is made of what the user and the agent
said and did; of a tool's output it says only if it reports a failure.
"""

from collections.abc import Iterator, Sequence

from msgspec import Struct

from kept import tokens
from kept.model import CONTEXT, Draft, Message
from kept.writing.extraction.edits import Edits, edits_in
from kept.writing.extraction.failures import command_in, command_words, has_failed, shown
from kept.writing.extraction.requests import requests_in
from kept.writing.extraction.summaries import cut, is_open, rank

SHARE = 0.1  # of the tokens that it replaces
MIN_TOKENS = 150
MAX_TOKENS = 2_000
MOST_REQUESTS = 8
MOST_FILES = 30
MOST_COMMANDS = 15


class Digest(Struct, frozen=True):
    """The lines of a digest: in the words of the conversation, and about its tools."""

    said: tuple[str, ...]
    done: tuple[str, ...]

    def within(self, budget_tokens: int) -> str:
        """Return the lines that fit: the latest request, the tools, then the others by their order."""
        first, others = self.said[:1], self.said[1:]
        left = budget_tokens
        chosen: set[str] = set()
        for line in (*first, *self.done, *others):
            left -= tokens.estimate(line)
            if left >= 0 or not chosen:
                chosen.add(line)
        return "\n".join(f"- {line}" for line in (*self.said, *self.done) if line in chosen)


def digest(messages: Sequence[Message], drafts: Sequence[Draft], folder: str | None = None) -> Digest:
    """Return the lines about these messages; `drafts` were taken from them."""
    asked = requests_in(messages)[::-1]
    open_ends = [draft for draft in drafts if is_open(draft)]
    others = sorted((draft for draft in drafts if not is_open(draft)), key=rank)
    said = [f"Asked last: {cut(one)}" for one in asked[:1]]
    said += [f"Open: {cut(draft.content)}" for draft in open_ends]
    said += [cut(draft.content) for draft in others]
    said += [f"Asked before: {cut(one)}" for one in asked[1:MOST_REQUESTS]]
    done = [*_changed_files(messages, folder), *_commands(messages)]
    return Digest(tuple(dict.fromkeys(said)), tuple(done))


def budget_for(replaced_tokens: int, most: int) -> int:
    """Return the tokens of a text that stands in for so many; `most` is the room that there is."""
    return min(most, max(MIN_TOKENS, min(MAX_TOKENS, round(replaced_tokens * SHARE))))


def _changed_files(messages: Sequence[Message], folder: str | None) -> Iterator[str]:
    edits = Edits(messages, folder)
    paths = [edits.relative(edit.path) for message in messages for edit in edits_in(message)]
    newest = list(dict.fromkeys(reversed(paths)))
    if newest:
        rest = f" and {len(newest) - MOST_FILES} more" if len(newest) > MOST_FILES else ""
        yield f"Files changed: {', '.join(newest[:MOST_FILES])}{rest}."


def _commands(messages: Sequence[Message]) -> Iterator[str]:
    """Say how the last run of each command ended, newest first."""
    calls: dict[str, str] = {}
    ended: dict[str, str] = {}
    for message in messages:
        if message.role == "tool_call" and (command := command_in(message)) and command_words(command):
            calls[message.id] = shown(command)
        elif message.role == "tool_result" and message.name != CONTEXT and message.id in calls:
            command = calls[message.id]
            ended.pop(command, None)
            ended[command] = "failed" if message.is_error or has_failed(message.content) else "worked"
    newest = list(ended)[::-1][:MOST_COMMANDS]
    if newest:
        yield f"Commands, newest first: {'; '.join(f'`{one}` {ended[one]}' for one in newest)}."
