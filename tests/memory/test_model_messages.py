"""`messages_for`: a session in the form of each API, with each call beside its result."""

import json
import re
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

import kept
from kept.memory.model_messages import NO_RESULT, Provider, messages_for
from kept.memory.sessions import Session
from kept.model import Message
from tests.adapters.model_requests import SAID, request_for

PROVIDERS: tuple[Provider, ...] = get_args(Provider)
ROLES = ("user", "assistant", "tool_call", "tool_result", "summary", "system")


def test_openai_gets_calls_with_json_arguments_and_their_results_directly_after_them() -> None:
    said = messages_for("openai", SAID, "Be careful.")["messages"]
    assert said[0] == {"role": "system", "content": "Be careful."}
    asked = next(one for one in said if "tool_calls" in one)
    assert asked["content"] is None or asked["content"] == "I look at both."
    first = asked["tool_calls"][0]["function"]
    assert (first["name"], json.loads(first["arguments"])) == ("run_tests", {"path": "tests", "deep": {"x": [1, None]}})
    after = said[said.index(asked) + 1 :][: len(asked["tool_calls"])]
    assert [one["content"] for one in after] == ["2 failed", "nothing", NO_RESULT]


def test_ids_of_other_providers_are_as_long_as_openai_takes_and_stay_apart() -> None:
    ids = ["t1", "x" * 41, "x" * 42, "toolu vrtx/01", "call_0", "é" * 9]
    calls = [Message(id=id, role="tool_call", name="look", content="", input={"id": id}) for id in ids]
    results = [Message(id=id, role="tool_result", content=f"found {id}") for id in ids]
    said = messages_for("openai", [*calls, *results])["messages"]
    sent = {one["tool_call_id"]: one["content"] for one in said if one["role"] == "tool"}
    assert list(sent.values()) == [f"found {id}" for id in ids]
    assert {"t1", "call_0"} <= sent.keys()
    assert all(re.fullmatch(r"[A-Za-z0-9_-]{1,40}", id) for id in sent)


def test_anthropic_gets_blocks_and_the_system_text_apart() -> None:
    request = request_for("anthropic")
    assert request["system"].startswith("You are careful.")
    blocks = [block for one in request["messages"] for block in one["content"]]
    errors = [block for block in blocks if block.get("is_error")]
    assert [block["tool_use_id"] for block in errors] == ["t2"]


def test_a_session_gives_its_window_in_every_form() -> None:
    with kept.open(":memory:", settings=kept.Settings()) as memory:
        session = memory.session("s1")
        session.append("user", "Which tests fail?")
        assert session.messages_for("openai") == {"messages": [{"role": "user", "content": "Which tests fail?"}]}
        assert session.messages_for("gemini", system="Be kind.") == {
            "contents": [{"role": "user", "parts": [{"text": "Which tests fail?"}]}],
            "config": {"system_instruction": "Be kind."},
        }
        with pytest.raises(kept.InvalidInput, match="Unknown provider 'mistral'"):
            session.messages_for("mistral")  # type: ignore[arg-type]


def test_a_result_without_an_id_belongs_to_the_call_of_its_name_in_the_newest_round() -> None:
    def results(session: Session) -> list[tuple[str, str]]:
        said = session.messages_for("openai")["messages"]
        calls = {one["id"]: one["function"]["arguments"] for each in said for one in each.get("tool_calls", ())}
        return [(calls[one["tool_call_id"]], one["content"]) for one in said if one["role"] == "tool"]

    with kept.open(":memory:", settings=kept.Settings()) as memory:
        session = memory.session("s1")
        session.append("user", "How is the weather?")
        session.append("tool_call", name="w", input={"at": "Ulm"})
        session.append("assistant", "That failed, once more.")
        session.append("tool_call", name="w", input={"at": "Bonn"})
        session.append("tool_call", name="w", input={"at": "Kiel"})
        session.append("tool_call", name="clock", input={})
        for said, name in (("rain", "w"), ("sun", "w"), ("noon", "clock")):
            session.append("tool_result", said, name=name)
        told = [('{"at":"Ulm"}', NO_RESULT), ('{"at":"Bonn"}', "rain"), ('{"at":"Kiel"}', "sun"), ("{}", "noon")]
        assert results(session) == told
        session.append("tool_result", "late", name=None)
        assert results(session)[0] == ('{"at":"Ulm"}', "late"), "the only call without a result"
        other = memory.session("s2")
        other.extend(
            [
                {"role": "tool_call", "name": "w", "input": {}, "content": ""},
                {"role": "tool_result", "name": "other", "content": "x"},
                {"role": "tool_result", "name": "w", "content": "rain"},
            ]
        )
        assert results(other) == [("{}", "rain")]


messages = st.builds(
    Message,
    id=st.sampled_from(["a", "b", "c d", "", "ü"]),
    role=st.sampled_from(ROLES),
    n=st.integers(1, 50),
    content=st.sampled_from(["", " ", "words", "more words "]),
    name=st.sampled_from([None, "read", "run/it now", "(context)", "x" * 90]),
    input=st.sampled_from([None, {}, {"path": "a"}]),
    is_error=st.booleans(),
)


@given(st.lists(messages, max_size=12))
def test_every_order_of_messages_makes_a_request_that_is_accepted(said: list[Message]) -> None:
    numbered = [kept.model.replace(one, n=place) for place, one in enumerate(said, 1)]
    check_openai(messages_for("openai", numbered)["messages"])
    check_anthropic(messages_for("anthropic", numbered)["messages"])
    check_gemini(messages_for("gemini", numbered)["contents"])


def check_openai(said: list[dict[str, Any]]) -> None:
    """Each `tool` message answers a call of the assistant message right before the run of answers, and all are."""
    waiting: list[str] = []
    for one in said:
        if one["role"] == "tool":
            assert one["tool_call_id"] == waiting.pop(0)
            assert one["content"].strip()
            continue
        assert waiting == []
        waiting = [call["id"] for call in one.get("tool_calls", ())]
        assert (one["content"] or "").strip() or waiting
        for call in one.get("tool_calls", ()):
            assert re.fullmatch(r"[A-Za-z0-9_-]{1,64}", call["function"]["name"])
            assert isinstance(json.loads(call["function"]["arguments"]), dict)
    assert waiting == []


def check_anthropic(said: list[dict[str, Any]]) -> None:
    """Sides alternate and the user begins; results come first in the message after their calls; no text is empty."""
    assert [one["role"] for one in said] == [("user", "assistant")[place % 2] for place in range(len(said))]
    waiting: list[str] = []
    ids: list[str] = []
    for one in said:
        kinds = [block["type"] for block in one["content"]]
        results = [block["tool_use_id"] for block in one["content"] if block["type"] == "tool_result"]
        assert results == waiting
        assert kinds[: len(results)] == ["tool_result"] * len(results)
        waiting = [block["id"] for block in one["content"] if block["type"] == "tool_use"]
        ids += waiting
        assert all(block["text"].strip() == block["text"] != "" for block in one["content"] if block["type"] == "text")
    assert waiting == []
    assert len(ids) == len(set(ids))
    assert all(re.fullmatch(r"[A-Za-z0-9_-]+", id) for id in ids)


def check_gemini(said: list[dict[str, Any]]) -> None:
    """Sides alternate and the user begins; as many answers as calls, in their order."""
    assert [one["role"] for one in said] == [("user", "model")[place % 2] for place in range(len(said))]
    waiting: list[str] = []
    for one in said:
        assert one["parts"]
        answers = [part["function_response"]["name"] for part in one["parts"] if "function_response" in part]
        assert answers == waiting
        waiting = [part["function_call"]["name"] for part in one["parts"] if "function_call" in part]
    assert waiting == []
