"""Half of a surrogate pair, in any string of a request, gets an answer: the server neither hangs nor ends."""

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.mcp.raw import RawClient, talking

HALVES = st.characters(min_codepoint=0xD800, max_codepoint=0xDFFF, categories=("Cs",))
BROKEN = st.tuples(st.text(max_size=10), HALVES, st.text(max_size=10)).map("".join)


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RawClient]:
    with talking(tmp_path_factory.mktemp("surrogates")) as client:
        client.call("memory_store", content="The deploy runs on Tuesdays.")
        yield client


def test_a_text_with_half_a_character_is_stored_without_it(client: RawClient) -> None:
    failed, said = client.call("memory_store", content="The release \ud83d is on Friday.")
    assert not failed, said
    assert "The release ? is on Friday." in client.call("memory_query", query="release Friday")[1]


def test_an_emoji_stays_whole_beside_half_a_character(client: RawClient) -> None:
    client.call("memory_store", content="We celebrate \U0001f680 \udc00 on Mondays.")
    assert "We celebrate \U0001f680 ? on Mondays." in client.call("memory_query", query="celebrate Mondays")[1]


@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_every_tool_answers_a_request_with_half_a_character(client: RawClient, data: st.DataObject) -> None:
    schemas = client.tools()
    tool = data.draw(st.sampled_from(sorted(schemas)))
    arguments = {name: data.draw(_value(schema)) for name, schema in schemas[tool]["properties"].items()}
    extra = data.draw(st.dictionaries(BROKEN, BROKEN, max_size=1))
    _, said = client.call(tool, **arguments, **extra)
    assert said
    assert "because of a bug" not in said, (tool, arguments, said)
    assert client.call("memory_query", query="deploy")[0] is False, "it goes on"


def test_half_a_character_outside_of_arguments_gets_an_answer(client: RawClient) -> None:
    assert "There is no tool" in client.send("tools/call", {"name": "\ud800"})["error"]["message"]
    assert "error" in client.send("prompts/get", {"name": "\udfff", "arguments": {"text": "\ud800"}})
    assert "error" in client.send("resources/read", {"uri": "kept://\ud800"})
    assert "error" in client.send("\ud800", {})


def _value(schema: dict[str, Any]) -> st.SearchStrategy[Any]:
    """Any value of the right type, with broken strings."""
    kind = schema["type"]
    if "enum" in schema:
        return st.sampled_from(schema["enum"]) | BROKEN
    if kind == "array":
        items = schema["items"]
        if items["type"] == "object":
            return st.lists(
                st.fixed_dictionaries({n: _value(s) for n, s in items.get("properties", {}).items()}), max_size=2
            )
        return st.lists(BROKEN, max_size=2)
    by_type: dict[str, st.SearchStrategy[Any]] = {
        "string": BROKEN,
        "integer": st.integers(1, 5),
        "number": st.floats(0, 1),
        "boolean": st.booleans(),
        "object": st.dictionaries(BROKEN, BROKEN | st.integers(1, 5), max_size=2),
    }
    return by_type[kind]
