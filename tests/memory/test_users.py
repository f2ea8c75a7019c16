"""`kept.open(user=…)`: each user of a program has a memory apart from all others, by a name that is exact."""

import os
import random
import subprocess
import sys
import unicodedata
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import kept
from kept.projects.spaces import digest_of
from tests.folders import make_repository
from tests.projects.test_projects import ALIKE

CANARY = "The canary sings in the auth module on Tuesdays."
IDS = (
    "ada@example.com",
    "auth0|5f7c8ec7c33c6c004bbafe82",
    "google-oauth2|103547991597142817347",
    "3f9a0c12",
    "project/3f9a0c12",
    "global",
    "..",
    ".",
    "~",
    "~root",
    "/etc",
    "a/../b",
    "C:\\users",
    " ",
    "a\x00b",
    "a\ud800",
    "x" * 5_000,
)
VARIANTS: tuple[Callable[[str], str], ...] = (
    str.upper,
    str.lower,
    str.title,
    str.swapcase,
    str.casefold,
    str.strip,
    lambda name: f" {name}",
    lambda name: f"{name} ",
    lambda name: name.replace(" ", "\u00a0"),
    lambda name: f"{name}\u200b",
    lambda name: "".join(chr(ord(char) + 0xFEE0) if "!" <= char <= "~" else char for char in name),
    lambda name: unicodedata.normalize("NFC", name),
    lambda name: unicodedata.normalize("NFD", name),
    lambda name: unicodedata.normalize("NFKC", name),
    lambda name: "".join(char for char in unicodedata.normalize("NFD", name) if not unicodedata.combining(char)),
)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("KEPT_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


def contents(user: str) -> list[str]:
    with kept.open(user=user) as memory:
        return [found.content for found in memory.list()]


@pytest.mark.parametrize("name", IDS, ids=ascii)
def test_any_string_names_a_user(home: Path, name: str) -> None:
    with kept.open(user=name) as memory:
        assert memory.list() == []
        memory.remember(CANARY)
    assert contents(name) == [CANARY]
    assert [folder.name for folder in home.iterdir() if folder.is_dir()] == ["users"]


@pytest.mark.parametrize("names", ALIKE)
def test_users_whose_names_read_alike_have_different_memories(home: Path, names: tuple[str, ...]) -> None:
    for name in names:
        with kept.open(user=name) as memory:
            assert memory.list() == []
            memory.remember(f"{CANARY} {name.encode('unicode_escape')!r}")
    for name in names:
        [content] = contents(name)
        assert content.endswith(repr(name.encode("unicode_escape")))


def pairs(many: int) -> Iterator[tuple[str, str]]:
    """Draw pairs of names that differ only in case, spaces, width or accents."""
    draw = random.Random(35)
    letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789 @.|-_éÅßıİÀñÖÿﬁΣσςЖж한가がガ"
    while many:
        name = "".join(draw.choices(letters, k=draw.randint(1, 24)))
        other = draw.choice(VARIANTS)(name)
        if other not in ("", name):
            many -= 1
            yield name, other


def test_no_two_of_ten_thousand_pairs_of_names_share_a_folder() -> None:
    for name, other in pairs(10_000):
        assert digest_of(name).casefold() != digest_of(other).casefold(), (name, other)


def test_nothing_leaks_between_pairs_of_names(home: Path) -> None:
    drawn = list(pairs(60))
    for number, (name, other) in enumerate(drawn):
        with kept.open(user=name) as memory, kept.open(user=other) as beside:
            before = [found.content for found in beside.list()]
            memory.remember(f"{CANARY} Number {number}.")
            assert [found.content for found in beside.list()] == before
            assert not [hit for hit in beside.recall(f"canary number {number}") if f"{number}." in hit.memory.content]


@given(st.text(min_size=1), st.text(min_size=1))
@example("a", "a ")
def test_two_users_share_a_folder_only_if_their_names_are_equal(name: str, other: str) -> None:
    assert (digest_of(name) == digest_of(other)) == (name == other)


def test_a_folder_of_the_same_name_breaks_nothing(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with kept.open(user="shop") as memory:
        memory.remember(CANARY)
        repository = make_repository(tmp_path / "shop")
        with kept.open(project=repository) as project:
            project.remember("The shop is a repository")
        with kept.open(project="shop") as project:
            assert [found.content for found in project.list()] == ["The shop is a repository"]
        memory.remember("The canary sings on Fridays too")
    assert len(contents("shop")) == 2


def test_neither_the_name_nor_another_memory_is_found_beside_a_users(home: Path) -> None:
    with kept.open(user="ada@example.com") as memory:
        memory.remember(CANARY)
    for file in home.rglob("*"):
        assert "ada" not in file.name
        assert not file.is_file() or b"ada@example" not in file.read_bytes()


def test_a_user_has_no_global_memory(home: Path) -> None:
    with kept.open(project="web", actor=kept.Actor(role="admin")) as project:
        project.remember("Answer in English", tier="global")
    with kept.open(user="ada", actor=kept.Actor(role="admin")) as memory:
        assert memory.list() == []
        assert not memory.recall("answer English").hits
        with pytest.raises(kept.NotAllowed, match="no global space"):
            memory.remember("Answer in French", tier="global")


def test_an_admin_of_a_user_reaches_no_other_memory(home: Path) -> None:
    with kept.open(user="grace") as memory:
        memory.remember(CANARY)
    with kept.open(project="web") as memory:
        memory.remember(CANARY)
    with kept.open(user="ada", actor=kept.Actor(role="admin")) as memory:
        assert not memory.recall("canary sings", all_projects=True).hits
        memory.remember("The parrot sings")
    with kept.open(project="web", actor=kept.Actor(role="admin")) as memory:
        found = memory.recall("canary parrot sings", all_projects=True).hits
        assert [hit.memory.space.split("/")[0] for hit in found] == ["project"]


def test_what_a_user_forgets_and_erases_is_gone_from_the_disk(home: Path) -> None:
    with kept.open(user="ada") as memory:
        ref = memory.remember(CANARY).ref
        assert ref is not None
        session = memory.session("s1")
        session.append("user", CANARY)
        memory.erase(ref)
        memory.erase(session.info)
    assert not [file for file in home.rglob("*") if file.is_file() and b"canary" in file.read_bytes()]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"user": ""}, "user must not be empty"),
        ({"user": 42}, "user must be a string, not int"),
        ({"user": "ada", "project": "web"}, "cannot be combined"),
        ({"location": ":memory:", "user": "ada"}, "cannot be combined"),
        ({"project": Path(), "exact": True}, "must be a string, not"),
        ({"exact": True}, "must be a string, not NoneType"),
        ({"project": "", "exact": True}, "must not be empty"),
        ({"project": "ghp_" + "a1B2" * 9, "exact": True}, "must not contain a secret"),
    ],
)
def test_a_wrong_name_is_refused_in_words(home: Path, given: dict[str, object], said: str) -> None:
    with pytest.raises(kept.InvalidInput, match=said):
        kept.open(**given)  # type: ignore[arg-type]


def test_a_user_with_one_memory_takes_at_most_300_kb(home: Path) -> None:
    with kept.open(user="ada") as memory:
        memory.remember(CANARY)
        memory.recall("canary")
    assert sum(file.stat().st_size for file in home.rglob("*") if file.is_file()) <= 300_000


# Projects by an exact name


@pytest.mark.parametrize("name", ["..", "ada/lovelace", "3f9a0c12", "~", "ada@example.com", IDS[1], "global", "web "])
def test_an_exact_name_is_neither_a_path_nor_an_id_nor_a_directory(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.chdir(make_repository(tmp_path / "web"))
    with kept.open() as memory:
        memory.remember("This is the repository's own")
    with kept.open(project=name, exact=True) as memory:
        assert memory.list() == []
        memory.remember(CANARY)
    with kept.open(project=name, exact=True) as memory:
        assert [found.content for found in memory.list()] == [CANARY]


def test_an_exact_name_never_opens_a_directorys_project(home: Path, tmp_path: Path) -> None:
    with kept.open(project=make_repository(tmp_path / "web")) as memory:
        memory.remember("This is the repository's own")
    with kept.open(project="web", exact=True) as memory:
        assert memory.list() == []
        memory.remember(CANARY)
    with kept.open(project=tmp_path / "web") as memory:
        assert [found.content for found in memory.list()] == ["This is the repository's own"]


def test_projects_with_any_exact_name_are_listed_and_leave_the_registry_whole(home: Path) -> None:
    for name in ("..", "global", "3f9a0c12", "ada/lovelace"):
        with kept.open(project=name, exact=True) as memory:
            memory.remember(CANARY)
    run = [sys.executable, "-m", "kept", "projects", "list", "--json"]
    done = subprocess.run(run, capture_output=True, text=True, check=True, env={**os.environ, "KEPT_HOME": str(home)})
    for name in ("..", "global", "3f9a0c12", "ada/lovelace"):
        assert f'"{name}"' in done.stdout


def test_a_setting_of_a_user_lasts_and_is_theirs_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KEPT_HOME", str(tmp_path / "home"))
    with kept.open(user="ada") as ada:
        ada.store.configure("preset", "manual")
        assert ada.settings.preset == "manual"
    with kept.open(user="ada") as ada, kept.open(user="grace") as grace:
        assert (ada.settings.preset, grace.settings.preset) == ("manual", "balanced")
    with kept.open(user="ada", settings={"preset": "aggressive"}) as ada:
        assert ada.settings.preset == "aggressive"
