"""One turn of an agent's loop: the window of a session with the memories, items and tasks that belong beside it.

`sessions` opens a turn and keeps its messages. Rule: looking at a turn stores nothing but the receipt of its briefing.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from msgspec import Struct

from kept import text, tokens
from kept.errors import InvalidInput
from kept.memory import brief, tasks
from kept.memory.awaited import awaited
from kept.memory.context import Context
from kept.memory.model_messages import Provider, messages_for
from kept.memory.window import Window, message_tokens
from kept.model import Briefing, Entry, Message, SessionRecord, TaskRecord
from kept.recall.briefing import render_entry, with_its_source
from kept.storage.shared import random_hex

MOST_ITEMS = 5  # cited statements of files that fit the question


class TurnContext(Struct, frozen=True, kw_only=True):
    """Everything that a model is sent in one turn. `prompt` is the text before the messages.

    `parts` are the tokens of each part: system, memory, items, tasks, history and tool_results; `tokens` is their sum.
    """

    system: str
    memory: Briefing
    items: tuple[Entry, ...]
    tasks: tuple[TaskRecord, ...]
    messages: tuple[Message, ...]
    prompt: str
    parts: Mapping[str, int]
    tokens: int

    def messages_for(self, provider: Provider) -> dict[str, Any]:
        """Return all of it as the arguments of a provider's SDK: openai, anthropic or gemini, ready to send."""
        return messages_for(provider, self.messages, self.prompt)


def turn_context(
    context: Context, session: SessionRecord, question: str, shown: Window, *, system: str, briefing: Mapping[str, Any]
) -> TurnContext:
    """B2, B9: the window with the memories, items and open tasks that belong to it."""
    request = brief.BriefingRequest(
        prompt=question, session=session.name, agent=session.agent, is_turn=True, **briefing
    )
    memory = brief.briefing(context, request)
    items = () if context.is_injection_off(session.name) else brief.fitting_items(context, question, MOST_ITEMS)
    unfinished = tuple(task for task in tasks.list_tasks(context, milestone=None, archived=False) if not task.has_ended)
    texts = {
        "system": system,
        "memory": str(memory),
        "items": _listed("Cited in files:", [render_entry(entry, "", "text") for entry in items]),
        "tasks": _listed("Open tasks:", [_task_line(task) for task in _labelled(context, unfinished)]),
    }
    parts = _measured(texts, shown)
    return TurnContext(
        system=system,
        memory=memory,
        items=items,
        tasks=unfinished,
        messages=shown.messages,
        prompt="\n\n".join(part for part in texts.values() if part),
        parts=parts,
        tokens=sum(parts.values()),
    )


def _measured(texts: Mapping[str, str], shown: Window) -> dict[str, int]:
    """Return the tokens of each part."""
    parts = {name: tokens.estimate(part) for name, part in texts.items()}
    parts["tool_results"] = sum(message_tokens(one) for one in shown.messages if one.role == "tool_result")
    parts["history"] = shown.tokens - parts["tool_results"]
    return parts


def _listed(heading: str, lines: Sequence[str]) -> str:
    return "\n".join([heading, *lines]) if lines else ""


def _labelled(context: Context, unfinished: Sequence[TaskRecord]) -> list[TaskRecord]:
    """Return the tasks; those that came with an import and were not touched since say so."""
    storage = context.spaces.project()
    if not unfinished or storage is None:
        return list(unfinished)
    with storage.reading() as reader:
        return [with_its_source(task, [reader]) for task in unfinished]


def _task_line(task: TaskRecord) -> str:
    about = f": {text.visible(task.description, keep_newlines=False)}" if task.description else ""
    waits = f" (waits for {', '.join(task.blocked_by)})" if task.state == "blocked" and task.blocked_by else ""
    return f"- {task.name} [{task.state}]{about}{waits}"


class Exchange:
    """One turn of an agent's loop: INTAKE is done; CONTEXT, EXECUTE (yours) and PERSIST are here."""

    def __init__(
        self,
        user_text: str,
        *,
        look: Callable[[str, Mapping[str, Any]], TurnContext],
        keep: Callable[[list[Message]], list[Message]],
    ) -> None:
        self.user_text = user_text
        self._look = look
        self._keep = keep

    def context(self, /, system: str = "", **briefing: Any) -> TurnContext:
        """What to send to the model: `system`, memories, items and open tasks, and the window.

        `briefing` are arguments of `memory.briefing`, such as `budget_tokens` and `style`.
        """
        return self._look(system, briefing)

    def persist(self, reply: str, tool_calls: Sequence[tuple[str, dict[str, Any], str]] = ()) -> list[Message]:
        """Keep the answer, after the tool calls (name, input, result) that led to it."""
        messages = []
        for call in tool_calls:
            if not isinstance(call, tuple | list) or len(call) != 3:
                raise InvalidInput("A tool call is (name, input, result).", hint='("ls", {"path": "."}, "a.py b.py")')
            name, input, result = call
            id = f"tool_{random_hex(8)}"  # not by number: others may persist at the same time
            messages.append(Message(id=id, role="tool_call", name=name, input=input))
            messages.append(Message(id=id, role="tool_result", name=name, content=result))
        messages.append(Message(id="", role="assistant", content=reply))
        return self._keep(messages)

    acontext = awaited(context)
    apersist = awaited(persist)
