"""Texts that an agent is given without asking: at the start of a session, for a prompt, after an error.

Facade layer, for hooks. Each is marked, so that it is recognised and never captured when it comes back in a transcript;
has at most MAX_CHARS characters, which is less than any host cuts; and leaves a receipt with the text byte for byte.
Rule: nothing to say is an empty text. What fails is raised: a hook reports it, and says nothing to the agent.
"""

from contextlib import suppress

from msgspec import Struct

from kept import text
from kept.errors import KeptError
from kept.memory import Kept, brief
from kept.memory.brief import Delivery, memory_line
from kept.memory.receipts import Explained, body, explain_session, save_notes
from kept.model import Memory, Recalled
from kept.recall import Request

MAX_CHARS = 9_500  # Claude Code puts more than 10,000 characters into a file, and Codex cuts at about 10 KB
START_TOKENS = 2_000
PROMPT_TOKENS = 1_000
MARK_TOKENS = 20  # of the mark around the text
MOST_ERRORS = 3
MOST_RECEIPTS = 1_000  # in which a session is looked for by the beginning of its id
ERROR_CHARS = 4_000  # of an output: its beginning and its end name the error
KNOWN = "This error is known in this project. Check whether the fix still applies:"


class Listener(Struct, frozen=True, kw_only=True):
    """Who is given a text: the session of an agent, at one of its events, in the style that it reads best."""

    session: str
    event: str
    style: str = "text"
    is_compacted: bool = False

    @property
    def delivery(self) -> Delivery:
        return Delivery(session=self.session, event=self.event, is_compacted=self.is_compacted)


def at_start(memory: Kept, listener: Listener) -> str:
    """What an agent should know when a session begins, or after its context was compacted."""
    from kept.memory import views  # not for a prompt, which has less time

    views.take_edits(memory.context)
    return _briefed(memory, "", START_TOKENS, listener)


def for_prompt(memory: Kept, prompt: str, listener: Listener) -> str:
    """What fits a prompt; nothing when nothing does."""
    said = text.without_delivered(prompt).strip()
    return _briefed(memory, said, PROMPT_TOKENS, listener) if said else ""


def _briefed(memory: Kept, prompt: str, budget_tokens: int, listener: Listener) -> str:
    request = brief.BriefingRequest(
        prompt=prompt,
        budget_tokens=min(budget_tokens, memory.settings.briefing_max_tokens) - MARK_TOKENS,
        remaining_tokens=None,
        style=listener.style,
        files=(),
        session=listener.session,
        task=None,
        shares=None,
        head_tail=0,
        max_chars=MAX_CHARS - len(text.delivered("x")),
        delivery=listener.delivery,
    )
    if memory.context.is_off(listener.session):
        return ""
    return str(brief.write_briefing(memory.context, request))


def for_error(memory: Kept, output: str, listener: Listener) -> str:
    """The known fix of an error, by its signature; nothing when the error is new."""
    context = memory.context
    if not output.strip() or context.is_off(listener.session):
        return ""
    shortened = output if len(output) <= ERROR_CHARS else f"{output[: ERROR_CHARS // 2]}\n{output[-ERROR_CHARS // 2 :]}"
    known = memory.knowledge.failures(like=shortened, limit=MOST_ERRORS)
    known = [one for one in known if one.source.session != listener.session or one.status != "candidate"]
    if not known:
        return ""
    block = text.delivered(_cut([KNOWN, *map(memory_line, known)], MAX_CHARS - len(text.delivered("x"))))
    _note(memory, shortened, known, block, listener)
    return block


def _cut(lines: list[str], most: int) -> str:
    """As many whole lines as fit."""
    shown: list[str] = []
    for line in "\n".join(lines).split("\n"):
        most -= len(line) + 1
        if most < 0:
            break
        shown.append(line)
    return "\n".join(shown)


def _note(memory: Kept, output: str, told: list[Memory], block: str, listener: Listener) -> None:
    context = memory.context
    content = body(Request(query=output, limit=MOST_ERRORS), Recalled()) | {
        "kind": "known_error",
        "sections": [
            {"name": "known errors", "entries": [{"ref": one.ref, "uid": one.uid, "why": "same error"} for one in told]}
        ],
        **brief.delivery_note(context, listener.delivery, block, told),
    }
    with suppress(KeptError):  # a full disk, say: the text is given all the same
        save_notes(context.readable(), context.now(), body=content, named=told, session=listener.session)


def receipts(memory: Kept, session: str, *, limit: int = 20) -> list[Explained]:
    """What a session was given, newest first: each text byte for byte, with its reasons and near misses."""
    return explain_session(session, memory.context.readable(), limit=limit)


def sessions_given(memory: Kept, *, beginning: str) -> list[str]:
    """The ids of sessions that were given a text and that begin like this, the last one first."""
    given = explain_session(None, memory.context.readable(), limit=MOST_RECEIPTS)
    named = dict.fromkeys(one.session for one in given if one.session)
    return [session for session in named if beginning and session.startswith(beginning)]
