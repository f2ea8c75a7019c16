"""Briefings: what an agent should know before it starts, in one text that fits a budget and a style.

Facade layer. Gathers what is pinned, what other agents of the session found, what fits the prompt and what earlier
sessions came to; `recall.compose` makes the text. Rule: memory never stops an agent. Whatever fails here ends in an
empty briefing whose `error` says why.
"""

import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from datetime import datetime
from math import prod
from pathlib import PurePosixPath

from msgspec import Struct, to_builtins

from kept import recalling, text, worth
from kept.asking import Asking
from kept.errors import InvalidInput, KeptError
from kept.model import Briefing, Conflict, Entry, Hit, LeftOut, Memory, Recalled, Session, replace
from kept.opened import Storages
from kept.ports import Reader, Where
from kept.recall import compose
from kept.recall.budget import total_tokens
from kept.recall.compose import Composed, Found, Order
from kept.recall.pipeline import MOST_PINNED
from kept.recall.render import STYLES, Pair
from kept.recalling import Question
from kept.settings import BRIEFING_SHARES, PROFILES, by_kind

MOST_RECALLED = 20  # the budget lets fewer through; a third of the best score is the least
MOST_FROM_OTHERS = 50
MOST_OF_TASK = 20
MOST_ABOUT_FILES = 5
MOST_SUMMARIES = 3
NEWEST = 100  # of which, when nothing was asked, the worthiest are told

log = logging.getLogger("kept")


class Situation(Struct, frozen=True, kw_only=True):
    """Who asks for a briefing, about what, and in the middle of what."""

    prompt: str = ""
    files: tuple[str, ...] = ()
    session: str | None = None
    task: str | None = None
    agent: str = ""
    head_tail: int = 0


class Briefings(Asking):
    """What puts memories before an agent, unasked."""

    def briefing(
        self,
        prompt: str = "",
        *,
        budget_tokens: int | None = None,
        remaining_tokens: int | None = None,
        style: str = "xml",
        files: Sequence[str] = (),
        session: str | None = None,
        task: str | None = None,
        shares: Mapping[str, int] | None = None,
        head_tail: int = 0,
        max_chars: int | None = None,
    ) -> Briefing:
        """What to put before an agent: `str(briefing)` is the text, empty when there is nothing to tell. Never raises.

        At most `budget_tokens`, and 8 % of `remaining_tokens`, markup included. `style` is xml, markdown, text or json.
        `files` are the files at hand. `session` brings what its other agents found, `task` what belongs to that task.
        `shares` says how the tiers task, project and global share what is recalled; `head_tail` prefers so many of the
        newest and of the oldest of it.
        """
        try:
            order = Order(
                total=self._total(budget_tokens, remaining_tokens),
                style=_check_style(style),
                shares=_check_shares(shares, self._settings.briefing_shares),
                max_chars=None if max_chars is None else max(0, max_chars),
            )
            situation = Situation(
                prompt=_well_formed(prompt),
                files=tuple(map(_well_formed, files)),
                session=None if session is None else _well_formed(session),
                task=None if task is None else _well_formed(task),
                agent=self._actor.name,
                head_tail=head_tail,
            )
            return self._brief(situation, order)
        except KeptError as error:
            return Briefing(style=style, error=str(error))
        except Exception as error:  # the agent works on without its memory, whatever is wrong with that
            log.warning("a briefing failed: %s", type(error).__name__, exc_info=True)
            return Briefing(style=style, error=f"The briefing failed ({type(error).__name__}). `kept doctor` looks for the cause.")

    def _total(self, budget_tokens: int | None, remaining_tokens: int | None) -> int:
        settings = self._settings
        return total_tokens(
            budget_tokens,
            remaining_tokens,
            most_tokens=settings.briefing_max_tokens,
            most_percent=settings.briefing_max_percent,
        )

    def _brief(self, situation: Situation, order: Order) -> Briefing:
        storages, now = self._readable(), self._now()
        if self._is_off(situation.session):
            return Briefing(
                style=order.style,
                budget=order.total,
                error="Kept is paused here, so nothing is brought in. `kept on` ends the pause.",
            )
        question = Question(query=situation.prompt, limit=MOST_RECALLED, files=situation.files)
        recalled = self._answer(question, storages, now) if situation.prompt.strip() else Recalled()
        with ExitStack() as stack:
            readers = [stack.enter_context(storage.reading()) for storage in storages]
            found = self._found(situation, recalled, readers, now)
            since = _began(situation.session, readers)
        composed = compose.compose(found, order)
        self._signals.emit("memory:search", query=situation.prompt, results=sum(1 for _ in _shown(composed)))
        return Briefing(
            text=composed.text,
            style=order.style,
            budget=order.total,
            tokens=composed.tokens,
            sections=composed.sections,
            left_out=composed.left_out,
            receipt=self._note(question, recalled, composed, order, storages),
        )
