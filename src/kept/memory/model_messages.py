"""Messages in the form of a model's API: `session.messages_for("openai")`, ready to send.

The answer has the arguments of the provider's SDK: `client.chat.completions.create(model=…, **messages)`. Rule: every
API takes it. Each tool call stands with its results directly after it, ids and names have the signs that are allowed,
turns alternate where they must, and no text is empty.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from hashlib import sha256
from typing import Any, Literal, NamedTuple, get_args

import msgspec

from kept.errors import InvalidInput
from kept.model import CONTEXT, Message

Provider = Literal["openai", "anthropic", "gemini"]
NO_RESULT = "[no result was recorded]"
SUMMARY = "Summary of the conversation so far:"
BEGINS = "[the conversation continues]"  # some APIs want the user to begin
_ID, _NO_NAME = re.compile(r"[A-Za-z0-9_-]{1,40}"), re.compile(r"[^A-Za-z0-9_-]+")  # OpenAI takes 40 characters
MOST_NAME_CHARS = 64


class CalledTool(NamedTuple):
    """A tool call and its result."""

    id: str
    name: str
    input: Mapping[str, Any]
    result: str
    is_error: bool


class ModelTurn(NamedTuple):
    """A text of one side; of the assistant, also the calls that it made after it."""

    role: Literal["user", "assistant"]
    text: str
    calls: tuple[CalledTool, ...] = ()


def messages_for(provider: Provider, messages: Sequence[Message], system: str = "") -> dict[str, Any]:
    """Return the arguments for a request to a model. Raises InvalidInput for an unknown provider."""
    if provider not in get_args(Provider):
        raise InvalidInput(
            f"Unknown provider {str(provider)[:40]!r}.", hint=f"Choose one of {', '.join(get_args(Provider))}."
        )
    return _FORMS[provider](system.strip(), [*_turns(messages)])


def _turns(messages: Sequence[Message]) -> Iterator[ModelTurn]:
    """Yield the conversation with each call beside its result, whichever order they were stored in."""
    calls, results = _first(messages, "tool_call"), _first(messages, "tool_result")
    for message in messages:
        if calls.get(message.id) is message:
            yield ModelTurn("assistant", message.content.strip(), (_call(message, results.get(message.id)),))
        elif message.role in ("tool_call", "tool_result") and message.id in calls:
            continue  # it is told with the call
        elif text := _text_of(message):
            yield ModelTurn("assistant" if message.role == "assistant" else "user", text)


def _first(messages: Sequence[Message], role: str) -> dict[str, Message]:
    """Return the first message of a role for each id."""
    return {one.id: one for one in reversed(messages) if one.role == role and one.name != CONTEXT}


def _call(message: Message, result: Message | None) -> CalledTool:
    text = result.content if result is not None and result.content.strip() else NO_RESULT
    id = message.id if _ID.fullmatch(message.id) else f"call_{sha256(message.id.encode()).hexdigest()[:32]}"
    name = _NO_NAME.sub("_", message.name or "").strip("_")[:MOST_NAME_CHARS] or "tool"
    return CalledTool(id, name, message.input or {}, text, result is not None and result.is_error)


def _text_of(message: Message) -> str:
    """Return the text of a message; one that neither the user nor the model said is named."""
    text = message.content.strip()
    heads = {"summary": SUMMARY, "tool_result": "[tool result]", "system": "[note of the program]"}
    return f"{heads[message.role]}\n{text}" if text and message.role in heads else text


def _joined(turns: Sequence[ModelTurn]) -> Iterator[list[ModelTurn]]:
    """Yield runs of turns of one side, for APIs where the sides alternate. A call ends the run of the assistant."""
    run: list[ModelTurn] = []
    for turn in turns:
        if run and (run[-1].role != turn.role or (run[-1].calls and not turn.calls)):
            yield run
            run = []
        run.append(turn)
    if run:
        yield run


def _openai(system: str, turns: Sequence[ModelTurn]) -> dict[str, Any]:
    said: list[dict[str, Any]] = [{"role": "system", "content": system}] if system else []
    for run in _joined(turns):
        calls = [call for turn in run for call in turn.calls]
        text = "\n\n".join(filter(None, (turn.text for turn in run)))
        asked = {"tool_calls": [_openai_call(call) for call in calls]} if calls else {}
        said.append({"role": run[0].role, "content": text or None, **asked})
        said += [{"role": "tool", "tool_call_id": call.id, "content": call.result} for call in calls]
    return {"messages": said}


def _openai_call(call: CalledTool) -> dict[str, Any]:
    function = {"name": call.name, "arguments": msgspec.json.encode(call.input).decode()}
    return {"id": call.id, "type": "function", "function": function}


def _anthropic(system: str, turns: Sequence[ModelTurn]) -> dict[str, Any]:
    def text(words: str) -> dict[str, Any]:
        return {"type": "text", "text": words}

    def use(call: CalledTool) -> dict[str, Any]:
        return {"type": "tool_use", "id": call.id, "name": call.name, "input": dict(call.input)}

    def result(call: CalledTool) -> dict[str, Any]:
        about = {"is_error": True} if call.is_error else {}
        return {"type": "tool_result", "tool_use_id": call.id, "content": call.result, **about}

    said = _alternating(turns, "assistant", "content", text, use, result)
    return {**({"system": system} if system else {}), "messages": said}


def _gemini(system: str, turns: Sequence[ModelTurn]) -> dict[str, Any]:
    def text(words: str) -> dict[str, Any]:
        return {"text": words}

    def use(call: CalledTool) -> dict[str, Any]:
        return {"function_call": {"name": call.name, "args": dict(call.input)}}

    def result(call: CalledTool) -> dict[str, Any]:
        response = {"error" if call.is_error else "output": call.result}
        return {"function_response": {"name": call.name, "response": response}}

    said = _alternating(turns, "model", "parts", text, use, result)
    return {"contents": said, **({"config": {"system_instruction": system}} if system else {})}


def _alternating(
    turns: Sequence[ModelTurn],
    assistant: str,
    parts_name: str,
    text: Callable[[str], dict[str, Any]],
    use: Callable[[CalledTool], dict[str, Any]],
    result: Callable[[CalledTool], dict[str, Any]],
) -> list[dict[str, Any]]:
    """Return messages whose sides alternate, beginning with the user; results are the user's, before other words."""
    said: list[dict[str, Any]] = []

    def add(role: str, parts: Sequence[dict[str, Any]]) -> None:
        if not said and role != "user":
            add("user", [text(BEGINS)])
        if said and said[-1]["role"] == role:
            said[-1][parts_name] += parts
        elif parts:
            said.append({"role": role, parts_name: [*parts]})

    for run in _joined(turns):
        calls = [call for turn in run for call in turn.calls]
        words = [text(turn.text) for turn in run if turn.text]
        add("user" if run[0].role == "user" else assistant, [*words, *map(use, calls)])
        if calls:
            add("user", [*map(result, calls)])
    return said


_FORMS: Mapping[str, Callable[[str, Sequence[ModelTurn]], dict[str, Any]]] = {
    "openai": _openai,
    "anthropic": _anthropic,
    "gemini": _gemini,
}
