"""What adapters promise together: no framework is imported unasked, and any id can name a conversation."""

import ast
import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import kept.adapters
from kept.adapters.shared import as_tag, session_name
from kept.projects.files import check_session_name
from kept.writing.check import clean_tags

HOME = Path(kept.adapters.__file__).parent
MODULES = {
    "agent_framework": "agent_framework",
    "anthropic": "anthropic",
    "google_adk": "google",
    "langchain": "langchain_core",
    "langgraph": "langgraph",
    "llama_index": "llama_index",
    "mem0": None,  # a face: it needs no framework
    "openai": "agents",
    "pydantic_ai": "pydantic_ai",
    "shared": None,
}


def outside(path: Path) -> set[str]:
    """The packages that a module imports, anywhere in it, which are neither Kept nor of Python."""
    nodes = list(ast.walk(ast.parse(path.read_text("utf-8"))))
    plain = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    named = {node.module or "" for node in nodes if isinstance(node, ast.ImportFrom)}
    return {name.partition(".")[0] for name in plain | named} - {"kept"} - sys.stdlib_module_names


def test_every_adapter_imports_its_own_framework_and_no_other() -> None:
    found = {path.stem: outside(path) for path in HOME.glob("*.py") if path.stem != "__init__"}
    assert found == {name: {module} if module else set() for name, module in MODULES.items()}


@pytest.mark.parametrize("module", ["kept.adapters", "kept.adapters.shared", "kept.adapters.mem0"])
def test_what_needs_no_framework_imports_none(module: str) -> None:
    code = f"import json, sys, {module}; print(json.dumps(sorted({{name.partition('.')[0] for name in sys.modules}})))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert not set(json.loads(done.stdout)) & {name for name in MODULES.values() if name}


def test_no_adapter_imports_another() -> None:
    for path in HOME.glob("*.py"):
        nodes = ast.walk(ast.parse(path.read_text("utf-8")))
        imported = {node.module for node in nodes if isinstance(node, ast.ImportFrom)}
        assert {name for name in imported if (name or "").startswith("kept.adapters.")} <= {"kept.adapters.shared"}


def test_asynchronous_methods_touch_the_memory_in_a_thread_only() -> None:
    """Also where they only read: no adapter calls a method of the memory itself in a coroutine."""
    found = 0
    for path in HOME.glob("*.py"):
        tree = ast.parse(path.read_text("utf-8"))
        for method in (node for node in ast.walk(tree) if isinstance(node, ast.AsyncFunctionDef)):
            calls = [ast.unparse(node.func) for node in ast.walk(method) if isinstance(node, ast.Call)]
            found += "in_thread" in calls
            assert not [one for one in calls if one.startswith(("self.memory.", "self._documents.", "self.files."))], (
                f"{path.name}: {method.name}"
            )
    assert found > 15


def test_an_adapter_has_at_most_250_lines() -> None:
    assert [path.name for path in HOME.glob("*.py") if len(path.read_text("utf-8").splitlines()) > 250] == []


def test_the_pages_name_extras_as_every_pip_knows_them() -> None:
    """Before 23.3, pip installs nothing but Kept itself for `.[google_adk]`, and only warns."""
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text("utf-8"))["project"]
    extras = {extra.replace("_", "-") for extra in project["optional-dependencies"]}
    pages = [path.read_text("utf-8") for path in (Path(__file__).parents[2] / "docs" / "adapters").glob("*.md")]
    named = [extra for page in pages for extra in re.findall(r"pip install '\.\[([^]]+)\]'", page)]
    assert len(named) >= len(pages) - 1
    assert set(named) <= extras


@pytest.mark.parametrize("id", ["user:1/2", "../../etc", "…", "", "a" * 200, "end."])
def test_any_id_can_name_a_conversation(id: str) -> None:
    assert check_session_name(session_name(id)) == session_name(id)
    assert session_name(id) != session_name(id + " ")


def test_an_id_that_can_be_a_name_stays() -> None:
    assert session_name("Conversation-1.a_b") == "Conversation-1.a_b"
    assert session_name("user 1") != session_name("User 1") != session_name("user/1")


NAMES = st.one_of(
    st.text(st.sampled_from("ab,%25C0 \t/.\0"), max_size=8),
    st.text(max_size=6),
    st.lists(st.sampled_from(["a", ",", "%", "%2C", "%25", "%20", " ", "%40", "\0", "%00"]), max_size=5).map("".join),
    st.lists(st.sampled_from(["a", "\ud800", "\udfff", "%ED%A0%80", "%ED%BF%BF", "%ED"]), max_size=4).map("".join),
)


@given(NAMES, NAMES, st.integers(0, 2))
def test_two_names_are_never_one_tag(one: str, other: str, times: int) -> None:
    """Also where one name is the tag of the other; and a tag keeps its text when it is stored."""
    for _ in range(times):
        other = as_tag(one)
        one, other = other, one
    assert (as_tag(one) == as_tag(other)) == (one == other)
    assert not as_tag(one) or clean_tags([as_tag(one)]) == (as_tag(one),)


@pytest.mark.parametrize("name", ["anna", "100%", "alice%40example.com", "a b", "a/b.c", "%", "a%2cb"])
def test_a_plain_name_is_its_own_tag(name: str) -> None:
    assert as_tag(name) == name


@given(st.lists(st.one_of(st.text(max_size=50), st.sampled_from(["alice@example.com", "a b", "a-b"])), min_size=2))
def test_two_ids_are_never_one_conversation(ids: list[str]) -> None:
    """Also an id that is the name that another one has got, or the name of that."""
    every = {name for id in ids for name in (id, session_name(id), session_name(session_name(id)))}
    assert len({session_name(id) for id in every}) == len(every)
