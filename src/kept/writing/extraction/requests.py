"""Find the requests of a conversation: the sentences in which the user asks for something in earnest.

Used for summaries. Rule: a request names something to work on. "Yes", "go on" and "can we continue where we left off?"
are talk about the conversation, and say nothing to whoever reads its summary.
"""

from collections.abc import Iterator, Sequence

from kept.model import Message
from kept.text import compiled
from kept.writing.extraction.passages import passages
from kept.writing.grammar import read
from kept.writing.speech import elided
from kept.writing.things import things_in

MIN_THINGS = 2
# Going on with a conversation, in the languages that extraction reads.
_RESUMES = (
    r"(?i)\b(?:continu\w*|resum\w*|carry on|go on|going|keep|proceed|pick(?:ed)? up|start(?:ed)? again|left|off"
    r"|stopped|before|last (?:time|session)|yesterday|session|conversation|work|please|weiter\w*|fortsetz\w*|mach\w*"
    r"|aufgehört|gestern|sitzung|gespräch|repren\w*|arrêté\w*|hier|sesión|sigu\w*|seguir|dejamos|ayer"
    r"|conversación|continú\w*|paramos|ontem|sessão|conversa)\b"
)


def requests_in(messages: Sequence[Message]) -> list[str]:
    """Return the requests of the user, in order; without any, the first thing that the user said in earnest."""
    said = [one for message in messages for one in _sentences(message) if _things(one)]
    asked = [one for one in said if _things(one) >= MIN_THINGS and read(one).act in ("asks", "orders")]
    return list(dict.fromkeys(asked or said[:1]))


def _things(sentence: str) -> int:
    """Return how many things a sentence names, besides going on with the conversation."""
    return len(things_in(compiled(_RESUMES).sub(" ", sentence)))


def _sentences(message: Message) -> Iterator[str]:
    if message.role == "user" and message.trust == "user":
        for passage in passages(message.content, is_long_pasted=True):
            yield from map(elided, passage.sentences)
