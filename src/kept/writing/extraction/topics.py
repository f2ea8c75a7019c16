"""Find the topics of a statement that names nothing from code: activities and proper names, for its tags.

Used by extraction for the user's statements. Rule: a topic is a word of the statement, in lower case.
"""

from kept.anchors import activities_in
from kept.text import compiled
from kept.writing.things import things_in

MAX_TOPICS = 3
_NAME = (
    r"(?<=[^\W_][ ,(])(?:[A-Z][\w+#-]{2,30}|[a-z]+[A-Z]\w{1,30})"  # within a sentence, where a capital is no accident
)
_WORD = r"[^\W\d_][\w-]{4,30}"


def topics_in(content: str) -> tuple[str, ...]:
    """Return the names and activities that a statement speaks of; else its first word that names something."""
    found = [name.lower() for name in compiled(_NAME).findall(content)] + activities_in(content)
    if not found:
        found = [word.lower() for word in compiled(_WORD).findall(content) if things_in(word)][-1:]
    return tuple(dict.fromkeys(found))[:MAX_TOPICS]
