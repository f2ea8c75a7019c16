"""Texts that an agent is given without asking: at a start, for a prompt, after an error, for a sub-agent's task.

`memory.deliveries`, for hooks. Each is marked, so that it is recognised and not captured when a transcript repeats it;
has at most MAX_CHARS characters, which is less than any host cuts; and leaves a receipt with the text byte for byte.
Rule: nothing to say is an empty text. What fails is raised: a hook reports it, and says nothing to the agent.
"""

import os
from collections.abc import Container
from datetime import timedelta
from functools import partial
from itertools import takewhile
from typing import TYPE_CHECKING

from msgspec import Struct

from kept import text
from kept.memory import brief, verbs
from kept.memory.brief import Delivery, memory_line
from kept.memory.context import Context
from kept.memory.receipts import given_at, save_notes
from kept.memory.told import LastTold, Moment, told_in
from kept.model import Entry, Memory
from kept.ports import Storage

if TYPE_CHECKING:
    from types import ModuleType

    from kept.anchors import ToolCall
    from kept.memory.actions import ActionText

MAX_CHARS = 9_500  # Claude Code puts more than 10,000 characters into a file, and Codex cuts at about 10 KB
PROMPT_TOKENS = 1_000
LINE_TOKENS = 300  # of one memory at a prompt: where people allow more lines, they may have more tokens
SEED_START_TOKENS = 2_000  # of the profiles koshi and praxis, which do without the limits of lines
SUBAGENT_TOKENS = 400
MARK_TOKENS = 20  # of the mark around the text
ERROR_CHARS = 4_000  # of an output, in a receipt
KNOWN = "This error is known in this project. Check whether the fix still applies:"
PERHAPS_KNOWN = "This may be about the error. Check whether it applies:"


class Listener(Struct, frozen=True, kw_only=True):
    """Who is given a text: the session of an agent, at one of its events, in the style that it reads best.

    `files` are those of the session's last tool calls. `is_resumed`: the agent brings back the context of the session,
    so that everything told in it is still in view. `is_attended`: whether a person is there, if the host says so.
    """

    session: str
    event: str
    style: str = "text"
    files: tuple[str, ...] = ()
    is_compacted: bool = False
    is_resumed: bool = False
    is_attended: bool | None = None

    def delivery(self, moment: Moment) -> Delivery:
        return Delivery(
            session=self.session,
            event=self.event,
            moment=moment,
            is_compacted=self.is_compacted,
            is_resumed=self.is_resumed,
        )


class Deliveries:
    """Texts for an agent that did not ask (`memory.deliveries`)."""

    def __init__(self, context: Context) -> None:
        self._context = context

    def last_told(self, role: str) -> LastTold | None:
        """Return the last text that an agent was told here as that role; None for a project in a file."""
        home, project = self._context.spaces.home(), self._context.spaces.database_project()
        if home is None or not project:
            return None
        actor = self._context.actor
        return LastTold(home, f"{project} {role} {actor.role} {actor.name}", self._context.now)

    def at_start(self, listener: Listener) -> str:
        """Write what an agent should know when a session begins, or after its context was compacted."""
        from kept.memory import views  # not for a prompt, which has less time

        views.take_edits(self._context)
        settings = self._context.settings
        most = settings.hook_start_tokens if brief.is_brief(settings) else SEED_START_TOKENS
        block = self._briefed("", most, listener, "start")
        is_new = not listener.is_resumed and not listener.is_compacted
        return self._with_list(block, listener) if is_new and listener.is_attended and self._asks("next") else block

    def for_prompt(self, prompt: str, listener: Listener) -> str:
        """Write what fits a prompt, or the known fix of an error that it quotes; nothing when nothing does."""
        said = text.without_delivered(prompt).strip()
        most = max(PROMPT_TOKENS, LINE_TOKENS * self._context.settings.prompt_lines)
        if not said:
            return ""
        storages = self._context.readable()
        block, is_quiet, is_second = self._context.in_rounds(storages, partial(self._for_words, said, most, listener))
        if not is_quiet and not is_second:
            return block
        return self._context.in_rounds(storages, partial(self._with_list, block, listener, is_quiet=is_quiet))

    def _for_words(self, said: str, most: int, listener: Listener) -> tuple[str, bool, bool]:
        """Return the text for a prompt, and whether it comes after a long silence, or is the second of its session."""
        is_quiet, is_second = self._is_quiet(listener), self._is_second_prompt(listener)  # before its own receipt
        block = self._briefed(said, most, listener, "prompt")
        quoted = [] if block or not _may_quote_an_error(said) else _known_errors().errors_in(said)
        if quoted:
            block = self._fix_of("\n".join(quoted), listener, besides=told_in(self._context, listener.session).session)
        return block, is_quiet, is_second

    def is_attended(self, listener: Listener) -> bool:
        """Return True if a person is there, by the host's word or because somebody has spoken a second time."""
        if listener.is_attended is not None or not self._asks("stop"):
            return bool(listener.is_attended)
        return self._prompts_since_start(listener) > 1

    def at_stop(self, listener: Listener) -> str:
        """Write the findings of the session that its agent should judge before it stops."""
        if not self._asks("stop") or self._context.is_injection_off(listener.session):
            return ""
        return str(_asking().own_list(self._context, listener.delivery("judge"), most_chars=MAX_CHARS))

    def for_subagent(self, task: str, listener: Listener) -> str:
        """Write a few lines for the task that a sub-agent was given; nothing when nothing fits it."""
        said = text.without_delivered(task).strip()
        return self._briefed(said, SUBAGENT_TOKENS, listener, "subagent") if said else ""

    def on_compaction(self, listener: Listener) -> None:
        """Note that the context of a session was compacted, so that lost lines are told again."""
        noted = {"kind": "compaction", "question": {"query": ""}}
        noted |= brief.delivery_note(self._context, listener.delivery("compaction"), "", ())
        save_notes(self._context.readable(), self._context.now(), body=noted, named=(), session=listener.session)

    def follow(self) -> None:
        """Bring the anchors up to date: other machines may have changed memories."""
        for storage in self._context.readable():
            self._context.follow(storage)

    def for_action(
        self, call: "ToolCall", listener: Listener, *, may_refuse: bool = True, may_tell: bool = True
    ) -> "ActionText":
        """Write the lines that concern a tool call, or the reason to refuse it; nothing if no memory concerns it."""
        from kept.memory import actions  # not for a prompt, which has less time

        delivery = listener.delivery("action")
        return actions.for_action(self._context, call, delivery, may_refuse=may_refuse, may_tell=may_tell)

    def for_error(self, output: str, listener: Listener, command: str = "") -> str:
        """Write the known fix of an error; nothing when the error is new. `command` is the one that failed."""
        return self._context.in_rounds(self._context.readable(), partial(self._fix_of, output, listener, command))

    def _fix_of(self, output: str, listener: Listener, command: str = "", besides: Container[str] = ()) -> str:
        """Write the known fix of an error, if it is no memory of `besides` (uids)."""
        if not output.strip() or self._context.is_injection_off(listener.session):
            return ""
        known_errors = _known_errors()
        found = known_errors.fixes_for(self._context, output, session=listener.session, command=command)
        known = [one for one in found if one.memory.uid not in besides]
        if not known:
            return ""
        head = KNOWN if known[0].reason == known_errors.SAME else PERHAPS_KNOWN
        lines = [memory_line(one.memory) for one in known]
        block = text.delivered(_cut([head, *lines], MAX_CHARS - len(text.delivered("x"))))
        told = tuple(Entry(memory=one.memory, reason=one.reason) for one in known)
        notice = brief.ToldText(kind="known_error", section="known errors", told=told, query=output[:ERROR_CHARS])
        brief.note_delivery(self._context, listener.delivery("failure"), block, notice)
        return block

    def _asks(self, when: str) -> bool:
        """Return True if agents are asked to judge at that time."""
        return self._context.settings.judge == when and self._context.has_judge

    def _is_second_prompt(self, listener: Listener) -> bool:
        """Return True at the second prompt of a session that may be attended: a program that runs an agent has one."""
        return listener.is_attended is None and self._asks("next") and self._prompts_since_start(listener) == 1

    def _is_quiet(self, listener: Listener) -> bool:
        """Return True at a prompt that comes when the session was silent for so long that it counts as finished."""
        if listener.is_attended is False or not self._asks("next"):
            return False
        idle = timedelta(minutes=self._context.settings.session_idle_minutes)
        heard = (at for at, moment in given_at(self._context, listener.session) if moment != "start")
        return (last := next(heard, None)) is not None and self._context.now() - last >= idle

    def _prompts_since_start(self, listener: Listener) -> int:
        """Count the prompts that this session has had since its last start."""
        moments = (moment for _, moment in given_at(self._context, listener.session))
        return sum(moment == "prompt" for moment in takewhile(lambda moment: moment != "start", moments))

    def _with_list(self, block: str, listener: Listener, *, is_quiet: bool = False) -> str:
        """Append the list that waits for a judge, if there is one."""
        if self._context.is_injection_off(listener.session):
            return block
        delivery, room = listener.delivery("judge"), MAX_CHARS - len(block) - len("\n\n")
        listed = _asking().next_list(self._context, delivery, is_quiet=is_quiet, most_chars=room)
        return "\n\n".join(filter(None, (block, listed)))

    def _briefed(self, prompt: str, budget_tokens: int, listener: Listener, moment: Moment) -> str:
        request = brief.BriefingRequest(
            prompt=prompt,
            budget_tokens=max(0, min(budget_tokens, self._context.settings.briefing_max_tokens) - MARK_TOKENS),
            remaining_tokens=None,
            style=listener.style,
            files=tuple(self._in_project(file) for file in listener.files),
            session=listener.session,
            task=None,
            shares=None,
            head_tail=0,
            max_chars=MAX_CHARS - len(text.delivered("x")),
            delivery=listener.delivery(moment),
        )
        if self._context.is_injection_off(listener.session):
            return ""
        return str(brief.write_briefing(self._context, request, _still_told))

    def _in_project(self, file: str) -> str:
        """Return a path relative to the folder of the project, as memories have it; another one as it is."""
        beginning = f"{self._context.place}{os.sep}"
        return file.removeprefix(beginning).replace(os.sep, "/") if self._context.place else file


def _may_quote_an_error(prompt: str) -> bool:
    """Return True if a prompt has a word of an error, so that looking for one is worth an import."""
    return any(word in prompt for word in ("rror", "xception", "anic", "atal", "ailed"))


def _known_errors() -> "ModuleType":
    from kept.memory import known_errors  # for an error alone: prompts have less time

    return known_errors


def _asking() -> "ModuleType":
    from kept.memory import asking  # reads sessions and findings, which most prompts do without

    return asking


def _still_told(storage: Storage, summary: Memory) -> Memory | None:
    """Return a summary without lines that no longer hold. The module is loaded when there is a summary to tell."""
    return verbs.brief.still_told(storage, summary)


def _cut(lines: list[str], most: int) -> str:
    """Return as many whole lines as fit."""
    shown: list[str] = []
    for line in "\n".join(lines).split("\n"):
        most -= len(line) + 1
        if most < 0:
            break
        shown.append(line)
    return "\n".join(shown)
