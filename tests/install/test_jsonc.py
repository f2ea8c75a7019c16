"""Members of a JSON file are added and removed without touching anything else in it."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kept.entrypoints.install import jsonc
from kept.errors import InvalidInput

COMMENTED = """\
// my settings
{
  "theme": "dark", // keep
  /* servers
     I use */
  "mcpServers": {
    "other": { "command": "x", "args": ["a"] } // mine
  },
  "hooks": {
    "Stop": [
      { "hooks": [ { "type": "command", "command": "mine" } ] }
    ]
  }
}
"""


def test_a_member_is_added_and_everything_else_stays() -> None:
    text = jsonc.with_member(COMMENTED, ("mcpServers", "kept"), {"command": "/bin/kept", "args": ["mcp"]})
    assert jsonc.value_at(text, ("mcpServers", "kept")) == {"command": "/bin/kept", "args": ["mcp"]}
    assert '"other": { "command": "x", "args": ["a"] }, // mine\n    "kept": {\n      "command"' in text
    assert jsonc.without_member(text, ("mcpServers", "kept")) == COMMENTED


def test_an_item_is_added_once_and_removed_by_its_mark() -> None:
    item = {"hooks": [{"type": "command", "command": "/bin/kept-hook codex Stop"}]}
    once = jsonc.with_item(COMMENTED, ("hooks", "Stop"), item)
    assert jsonc.with_item(once, ("hooks", "Stop"), item) == once
    assert jsonc.value_at(once, ("hooks", "Stop"))[-1] == item
    assert jsonc.without_items(once, ("hooks", "Stop"), lambda value: "kept-hook" in json.dumps(value)) == COMMENTED


@pytest.mark.parametrize("text", ["", "   ", "{", '{"a": }', '{"a" 1}', "{} {}", '{"a": nope}', "[" * 5000])
def test_a_broken_file_is_refused_with_the_line(text: str) -> None:
    with pytest.raises(InvalidInput, match="not valid JSON: line 1"):
        jsonc.with_member(text, ("a",), 1) and jsonc.value_at(text, ("a",))


def test_a_value_that_is_not_an_object_is_refused() -> None:
    with pytest.raises(InvalidInput, match="`mcpServers` is not an object"):
        jsonc.with_member('{"mcpServers": []}', ("mcpServers", "kept"), 1)


def test_line_ends_tabs_and_marks_of_byte_order_stay() -> None:
    text = '\ufeff{\r\n\t"a": 1\r\n}\r\n'
    added = jsonc.with_member(text, ("b", "c"), 2)
    assert added == '\ufeff{\r\n\t"a": 1,\r\n\t"b": {\r\n\t\t"c": 2\r\n\t}\r\n}\r\n'
    assert jsonc.without_member(added, ("b",)) == text


values = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(st.text(max_size=4), values, max_size=4), values, st.sampled_from([None, 1, 2, 4, "\t"]))
def test_adding_and_removing_gives_back_the_same_bytes(before: dict[str, Any], value: Any, indent: Any) -> None:
    before.pop("kept", None)
    text = json.dumps(before, indent=indent, ensure_ascii=False)
    added = jsonc.with_member(text, ("kept", "x"), value)
    assert json.loads(added) == before | {"kept": {"x": value}}
    assert jsonc.with_member(added, ("kept", "x"), value) == added
    assert jsonc.without_member(added, ("kept",)) == text


@given(st.lists(values, max_size=4), st.sampled_from([None, 2, "\t"]))
def test_the_same_holds_for_lists(items: list[Any], indent: Any) -> None:
    items = [item for item in items if item != {"kept": 1}]
    text = json.dumps({"a": items}, indent=indent)
    added = jsonc.with_item(text, ("a",), {"kept": 1})
    assert json.loads(added) == {"a": [*items, {"kept": 1}]}
    assert jsonc.without_items(added, ("a",), lambda item: item == {"kept": 1}) == text
