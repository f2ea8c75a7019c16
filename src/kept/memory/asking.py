"""Give an agent a list of findings to judge, apart from its briefing, with a receipt that counts its tokens.

`deliver` says when. `next_list` gives the oldest list that waits, `own_list` that of the session itself while its
context is still there. Rule: a session is given a list once, which its receipts say.
"""

import time
from collections import Counter
from contextlib import suppress

from kept import text
from kept.errors import KeptError
from kept.memory import brief, counts, judging
from kept.memory.brief import Delivery
from kept.memory.context import Context
from kept.memory.judge_lists import JudgeList
from kept.memory.receipts import given_in, save_notes
from kept.model import replace

WAIT_S = 1.2  # at a stop, for the background process that takes in the turn
PAUSE_S = 0.1


def next_list(context: Context, delivery: Delivery, *, is_quiet: bool, most_chars: int) -> str:
    """Return the oldest list that waits; after a quiet time that of the session itself, if no other waits."""
    storage = context.spaces.project()
    if storage is None:
        return ""
    asked = judging.next_list(context, besides=delivery.session)
    if not asked.statements and is_quiet:
        asked = judging.list_of(context, storage, delivery.session)
    return _give(context, delivery, asked, most_chars)


def own_list(context: Context, delivery: Delivery, *, most_chars: int) -> str:
    """Return the list of the session itself. Its first findings may still be on their way."""
    storage = context.spaces.project()
    if storage is None:
        return ""
    end = time.monotonic() + WAIT_S
    asked = judging.list_of(context, storage, delivery.session)
    while not asked.statements and time.monotonic() < end:
        time.sleep(PAUSE_S)
        asked = judging.list_of(context, storage, delivery.session)
    return _give(context, delivery, replace(asked, is_own=True), most_chars)


def _give(context: Context, delivery: Delivery, asked: JudgeList, most_chars: int) -> str:
    """Note a list as given and return its text; "" for a list that is empty, too long, or was given before."""
    block = text.delivered(asked.text)
    given = {body.get("list", {}).get("code") for body in given_in(context, delivery.session)}
    if not block or len(block) > most_chars or asked.code in given:
        return ""
    told = [context.find(one.ref)[1] for one in asked.statements]
    content = {"kind": "judge", "question": {"query": ""}, "tokens": asked.tokens, "list": asked.note}
    content |= brief.delivery_note(context, delivery, block, told)
    with suppress(KeptError):  # a full disk, say: the list is given all the same
        counts.count(context, Counter({"judge_tokens": asked.tokens}))
        save_notes(context.readable(), context.now(), body=content, named=told, session=delivery.session)
    return block
