"""Find statements worth keeping in a conversation: messages in, drafts out. Call `extract` and `summarize`.

First step of the write path for conversations. Rules, no model. Where it is decided that something is worth keeping:

| source | decision |
|---|---|
| a sentence of the user | `said.statements_in` (points), then `Conversation._overrule` |
| a passage of an agent, a bullet of a host's summary | `evidence.judge` (points) |
| an error that went away | `failures.Failures.ran`, then `resolutions.fix_of` |
| a command that works | `commands.Commands.worth_keeping` |

Rule: one draft is one statement that can be understood alone, in its speaker's words, with the names of the rules that
chose it. Tool output is never a statement. A miss costs little; a memory full of chatter is worth nothing.
"""

from collections.abc import Callable, Sequence

from kept import text
from kept.model import Draft, Message, replace
from kept.proposals import PROPOSAL, TOLD
from kept.writing.extraction.conversation import OPEN, Conversation, ExtractedDraft
from kept.writing.extraction.edits import Edits
from kept.writing.extraction.requests import requests_in
from kept.writing.extraction.summaries import summary_of

__all__ = ["OPEN", "ExtractedDraft", "Summarizer", "extract", "summarize"]


def extract(
    messages: Sequence[Message], folder: str | None = None, *, style: str = "auto", with_minor: bool = False
) -> list[ExtractedDraft]:
    """C31, A13: return the statements of these messages to propose, each once, with its sort (`kept.proposals`).

    `folder` is the folder of the conversation; paths below it become relative. `style` is "coding" or "chat"; "auto":
    a conversation without tools is a chat. `with_minor`: also return the user's other sentences, for a caller that
    knows which memories they change.
    """
    edits = Edits(messages, folder)
    found: dict[str, ExtractedDraft] = {}
    is_chat = style == "chat" or (style == "auto" and not any(each.role == "tool_call" for each in messages))
    for each in Conversation(messages, edits, is_chat=is_chat).read():
        content = edits.shorten(each.draft.content) if folder else each.draft.content
        draft = replace(each.draft, content=content)
        if each.sort not in TOLD:
            draft = replace(draft, tags=(*draft.tags, PROPOSAL))
        if with_minor or not each.is_minor:
            found.setdefault(text.fingerprint(content), replace(each, draft=draft))
    return list(found.values())


# ---- the summary; for prose, plug in a model ----

Summarizer = Callable[[Sequence[Message]], str]


def summarize(messages: Sequence[Message], findings: Sequence[Draft] | None = None) -> str:
    """Summarize the request, the findings and an open end in at most five lines. `findings` spares extracting again."""
    drafts = [each.draft for each in extract(messages)] if findings is None else findings
    return summary_of(next(iter(requests_in(messages)), ""), drafts)
