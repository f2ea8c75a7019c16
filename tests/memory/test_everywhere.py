"""An admin asks over all projects; nobody else does, and nothing of it is left behind (B14)."""

from collections.abc import Iterator
from pathlib import Path

import pytest

import kept
from kept.errors import NotAllowed
from kept.model import Actor
from tests.builders import FakeClock

ADMIN = Actor(role="admin", name="person")


@pytest.fixture
def home(tmp_path: Path) -> Path:
    for name in ("web", "api", "shop"):
        with kept.open(home=tmp_path, project=name, clock=FakeClock()) as memory:
            memory.remember(f"The harbor of {name} uses port 8080", pin=name == "web")
            memory.session("s1").append("user", f"Which harbor does {name} use?")
    with kept.open(home=tmp_path, project="web", actor=ADMIN, clock=FakeClock()) as memory:
        memory.remember("Every harbor has a gate", kind="pattern", tier="global")
    return tmp_path


@pytest.fixture
def admin(home: Path) -> Iterator[kept.Kept]:
    with kept.open(home=home, project="web", actor=ADMIN, clock=FakeClock()) as memory:
        yield memory


def test_an_admin_asks_every_project_and_each_hit_says_which(admin: kept.Kept) -> None:
    recalled = admin.recall("harbor", limit=10, all_projects=True)
    assert {hit.memory.content for hit in recalled} == {
        *(f"The harbor of {name} uses port 8080" for name in ("web", "api", "shop")),
        "Every harbor has a gate",
    }
    assert len({hit.memory.space for hit in recalled}) == 4
    assert recalled.pinned == ()
    messages = admin.recall("harbor", limit=10, scope="sessions", all_projects=True)
    assert len(messages) == len({hit.memory.space for hit in messages}) == 3
    assert len({hit.memory.space for hit in admin.recall("harbor", limit=10)}) == 2


def test_nothing_is_noted_of_it(admin: kept.Kept, home: Path) -> None:
    """The receipt of a project would tell its agents what another project knows."""
    assert admin.recall("harbor", all_projects=True).receipt is None
    with pytest.raises(kept.NotFound):
        admin.why()
    with kept.open(home=home, project="api") as memory:
        assert memory.get(1).use_count == 0


@pytest.mark.parametrize("role", ["project", "skill"])
def test_nobody_else_may(role: str, home: Path) -> None:
    actor = Actor(role=role)  # type: ignore[arg-type]
    sentence = "A skill may not read" if role == "skill" else "may not read other projects"
    refused = pytest.raises(NotAllowed, match=sentence)
    with kept.open(home=home, project="web", actor=actor) as memory, refused:
        memory.recall("harbor", all_projects=True)


def test_a_project_that_cannot_be_read_is_named(admin: kept.Kept, home: Path) -> None:
    (damaged,) = home.glob("projects/api-*/kept.db")
    damaged.write_bytes(b"\0" * 5_000)
    recalled = admin.recall("harbor", limit=10, all_projects=True)
    assert len(recalled) == 3
    assert "could not be read" in (recalled.degraded or "")


def test_a_portable_file_has_only_itself() -> None:
    with kept.open(":memory:", actor=ADMIN) as memory:
        memory.remember("The harbor has a gate")
        assert [hit.ref for hit in memory.recall("harbor", all_projects=True)] == ["1"]


def test_what_a_project_could_not_compare_is_said_once_for_conversations_too(
    admin: kept.Kept, monkeypatch: pytest.MonkeyPatch
) -> None:
    note = "The embedder failed (OSError), so only words were compared."
    monkeypatch.setattr("kept.memory.everywhere.answer", lambda *_: kept.Recalled(degraded=note))
    assert admin.recall("harbor", scope="sessions", all_projects=True).degraded == note
