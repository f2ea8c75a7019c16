"""The public names are exactly `kept.__all__`, and the face of DESIGN's §16 is there."""

import inspect
import re
import types
from collections.abc import Iterator

import pytest

import kept
from kept.memory import namespaces

NAMESPACES = {
    "aliases": {"add", "remove", "list"},
    "deliveries": {
        "at_start",
        "at_stop",
        "follow",
        "for_action",
        "for_error",
        "for_prompt",
        "for_subagent",
        "is_attended",
        "last_told",
        "on_compaction",
    },
    "files": {
        *("accompany", "agents", "extract", "items", "note_readers", "read_notes", "status", "sync", "take_edits"),
        "write_brain",
    },
    "knowledge": {
        "add_convention",
        "add_decision",
        "add_failure",
        "add_pattern",
        "add_preference",
        "clear_all",
        "decisions",
        "failures",
        "preferences",
    },
    "pauses": {"pause", "resume", "status"},
    "team": {"pull", "push", "share", "status", "trust", "unshare"},
    "reviews": {"list", "apply", "propose"},
    "store": {
        "allow",
        "backup",
        "configure",
        "doctor",
        "export",
        "export_lines",
        "export_to",
        "finish_sessions",
        "follow_code",
        "import_",
        "matching",
        "merge",
        "move",
        "moved_away",
        "pack_sessions",
        "replay",
        "restore",
        "scan",
    },
    "vectors": {"check", "off", "on", "status", "limits", "keep_up"},
}
HANDLES = {
    "session": {
        *("append", "checkpoint", "compact", "extend", "findings", "finish", "flush", "fork", "given", "has_ended"),
        *("id", "info", "judge", "messages", "messages_for", "propose", "record", "remember", "turn", "window"),
    },
    "task": {
        *("add_reasoning", "add_tool_output", "clear", "id", "info", "memories", "remember", "remembered"),
        *("set_state", "stage_outputs", "state"),
    },
    "narrative": {"begin", "end", "id", "memories", "remember"},
}


def test_the_visible_names_are_the_promised_ones() -> None:
    assert [name for name in dir(kept) if not name.startswith("_")] == list(kept.__all__)
    assert list(kept.__all__) == sorted(kept.__all__)
    for name in kept.__all__:
        getattr(kept, name)
    loaded = {
        name
        for name, value in vars(kept).items()
        if not name.startswith("_") and not isinstance(value, types.ModuleType)
    }
    assert loaded == set(kept.__all__)


def test_a_name_that_kept_does_not_have_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'remember'"):
        kept.remember  # type: ignore[attr-defined]  # noqa: B018


@pytest.mark.parametrize("name", kept.__all__)
def test_every_public_name_is_documented(name: str) -> None:
    assert inspect.getdoc(getattr(kept, name))


@pytest.fixture
def memory() -> Iterator[kept.Kept]:
    with kept.open(":memory:", settings=kept.Settings()) as opened:
        yield opened


def public_names(holder: object) -> list[str]:
    return [name for name in dir(holder) if not name.startswith("_")]


def test_every_public_method_is_documented(memory: kept.Kept) -> None:
    for name in public_names(memory):
        assert inspect.getdoc(inspect.getattr_static(kept.Kept, name)), name
    for namespace in NAMESPACES:
        for name in public_names(getattr(memory, namespace)):
            assert inspect.getdoc(inspect.getattr_static(getattr(memory, namespace), name)), f"{namespace}.{name}"


def test_kept_is_one_class_that_inherits_nothing() -> None:
    assert kept.Kept.__mro__ == (kept.Kept, object)


@pytest.mark.parametrize(("namespace", "names"), NAMESPACES.items())
def test_a_namespace_has_the_promised_names(memory: kept.Kept, namespace: str, names: set[str]) -> None:
    assert set(public_names(getattr(memory, namespace))) == names


@pytest.mark.parametrize(("verb", "names"), HANDLES.items())
def test_a_handle_has_the_promised_names_and_no_internals(memory: kept.Kept, verb: str, names: set[str]) -> None:
    handle = getattr(memory, verb)("deploys")
    verbs = {name for name in public_names(handle) if name[0] != "a" or name[1:] not in names}
    assert verbs == names
    assert type(handle) is getattr(kept, verb.capitalize()), "the type of the handle is exported under its name"
    for name in public_names(handle):
        assert name == "id" or inspect.getdoc(inspect.getattr_static(type(handle), name)), name


def answers(holder: type) -> Iterator[str]:
    """Return the names in the types of the answers of all public methods."""
    for name, member in vars(holder).items():
        method = member.fget if isinstance(member, property) else member
        if not name.startswith("_") and inspect.isfunction(method):
            yield from re.findall(r"[A-Z]\w+", str(method.__annotations__.get("return", "")))


def test_no_type_of_an_answer_is_named_by_a_participle() -> None:
    """`Recalled` and `Redacted` are in the design; a result is a report, a record or a thing."""
    holders = [kept.Kept, kept.Pool, kept.Session, kept.Task, kept.Narrative]
    holders += [
        one for one in vars(namespaces).values() if inspect.isclass(one) and one.__module__ == namespaces.__name__
    ]
    named = {name for holder in holders for name in answers(holder)}
    assert {"ImportReport", "RecallReceipt", "SyncReport"} <= named
    assert {name for name in named if re.search(r"(ed|In|Up|Out|Done|Said|Told)$", name)} == {"Recalled"}


@pytest.mark.parametrize(
    ("method", "parameters"),
    [
        ("remember", ["content", "kind", "tags", "files", "importance", "pin", "tier", "topic", "source", "key"]),
        ("remember_many", ["drafts"]),
        (
            "recall",
            ["query", "limit", "profile", "kinds", "tags", "files", "since", "until", "as_of", "scope", "follow"],
        ),
        ("get", ["ref"]),
        ("list", ["kinds", "tags", "status", "limit", "after"]),
        ("history", ["ref"]),
        ("why", ["receipt"]),
        ("reinforce", ["ref"]),
        ("demote", ["ref"]),
        ("revise", ["ref", "content", "tags"]),
        ("pin", ["ref"]),
        ("unpin", ["ref"]),
        ("forget", ["ref"]),
        ("restore", ["ref"]),
        ("erase", ["ref"]),
        ("undo", ["event"]),
        ("promote", ["ref", "to"]),
        ("task", ["id"]),
        ("subscribe", ["subscriber"]),
        ("status", []),
    ],
)
def test_the_face_others_rely_on(method: str, parameters: list[str]) -> None:
    found = list(inspect.signature(getattr(kept.Kept, method)).parameters)[1:]
    assert found[: len(parameters)] == parameters


def test_open_takes_what_it_promises() -> None:
    wanted = ["location", "project", "home", "actor", "confirm", "settings", "clock"]
    assert [name for name in inspect.signature(kept.open).parameters if name in wanted] == wanted


def test_redact_is_for_everybodys_text() -> None:
    redacted = kept.redact("the password is Xk9-mQ4vL-22")
    assert "Xk9" not in redacted.text + repr(redacted.found)
    assert [found.kind for found in redacted.found] == ["password"]


def test_every_error_has_one_root() -> None:
    errors = [getattr(kept, name) for name in kept.__all__ if isinstance(getattr(kept, name), type)]
    ours = [error for error in errors if issubclass(error, Exception)]
    assert len(ours) == 10
    assert all(issubclass(error, kept.KeptError) for error in ours)
