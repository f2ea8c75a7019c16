"""Ten changes of mind over several sessions of a real Claude Code: the next session is told the last word only.

`minds.json` has the messages of the user by session, a prompt for which the last word matters, patterns of the last
word (all of them have to be told) and patterns that only the overruled statement matches.
"""

import json
import re
from pathlib import Path

import pytest

from tests.agents.boxes import Box
from tests.agents.scripted_model import Json
from tests.agents.test_real_agents import box as box
from tests.agents.test_real_agents import each

MINDS = json.loads(Path(__file__).with_name("minds.json").read_text("utf-8"))


@pytest.mark.parametrize("mind", MINDS, ids=[mind["id"] for mind in MINDS])
@pytest.mark.parametrize("name", each(("claude",)))
def test_the_next_session_is_told_the_last_word_only(name: str, mind: Json, box: Box) -> None:
    agent = box.install(name)
    for messages in mind["sessions"]:
        for number, said in enumerate(messages):
            agent.turn(said, resume=number > 0, say="Done.")
        last = messages[-1]
        assert box.wait_for(lambda last=last: last in _stored(box)), "the session was taken in"
    told = _told(agent.turn(mind["ask"])[0])
    missing = [words for words in mind["last"]["words"] if not re.search(words, told, re.IGNORECASE)]
    assert not missing, told
    assert not [words for words in mind["overruled"] if re.search(words, told, re.IGNORECASE)], told


def _stored(box: Box) -> str:
    """Return every message of the user that Kept has of this project."""
    files = (box.home / ".local/share/kept/projects").glob("*/sessions/*.jsonl")
    return "\n".join(json.loads(line).get("content", "") for file in files for line in file.read_text().splitlines())


def _told(body: Json) -> str:
    """Return the texts that Kept has added to a request."""
    return "\n".join(re.findall(r"<kept-memory>.*?</kept-memory>", _texts(body), re.DOTALL))


def _texts(value: object) -> str:
    if isinstance(value, dict):
        return "\n".join(_texts(one) for key, one in value.items() if key != "tools")
    if isinstance(value, list):
        return "\n".join(map(_texts, value))
    return value if isinstance(value, str) else ""
