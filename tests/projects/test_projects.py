"""Projects: whose memory a directory's is, through moves, copies, renames, merges, damage and races."""

import contextlib
import itertools
import json
import os
import random
import shutil
import subprocess
import sys
import unicodedata
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kept.errors import InvalidInput, KeptError, NotAllowed, NotFound, SchemaTooNew, StorageError
from kept.projects import Projects, typed
from kept.projects.home import Home
from kept.projects.registry import Project, identify
from tests.folders import common_user, directory, git, make_repository, make_worktree, needs_git, posix_only, umask

START = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)


def ids() -> Iterator[str]:
    return (f"{n:08x}" for n in itertools.count(0xA0000001))


@pytest.fixture
def here(tmp_path: Path) -> Path:
    return tmp_path.resolve()


@pytest.fixture
def projects(here: Path) -> Projects:
    return open_projects(here / "home", here)


def open_projects(home: Path, user_home: Path) -> Projects:
    return Projects(Home(home), environ={"HOME": str(user_home / "ada")}, now=lambda: START)


def full_disk(descriptor: int) -> None:
    raise OSError(28, "No space left on device")


def kept_id(repository: Path) -> str:
    return (repository / ".git/kept-id").read_text().strip()


def tree(path: Path) -> dict[str, bytes | None]:
    """Everything below a directory, with its bytes."""
    return {str(p.relative_to(path)): p.read_bytes() if p.is_file() else None for p in sorted(path.rglob("*"))}


# Finding and registering


def test_reading_creates_nothing_and_writing_registers(projects: Projects, here: Path) -> None:
    repository = make_repository(here / "web")
    before = tree(here)
    assert projects.find(repository) is None
    assert projects.find("a-new-name") is None
    assert projects.list_projects() == []
    assert tree(here) == before
    made = projects.ensure(repository)
    assert projects.find(repository) == made
    assert projects.ensure(repository) == made
    assert projects.list_projects() == [made]


def test_a_project_has_a_random_id_a_space_a_folder_and_a_name(here: Path) -> None:
    new_id = ids()
    projects = Projects(Home(here / "home"), environ={}, new_id=lambda: next(new_id), now=lambda: START)
    made = projects.ensure(make_repository(here / "Web App"))
    assert made == Project(
        id="a0000001",
        name="Web App",
        slug="web-app",
        created_at=START,
        root=str(here / "Web App"),
        git_common_dir=str(here / "Web App/.git"),
    )
    assert made.space == "project/a0000001"
    assert made.folder == "web-app-a0000001"
    assert projects.home.files(made.folder).directory.is_dir()
    assert kept_id(here / "Web App") == "a0000001"


def test_two_projects_never_get_one_id(here: Path) -> None:
    drawn = iter(["0000000a", "0000000a", "0000000a", "0000000b"])
    projects = Projects(Home(here / "home"), environ={}, new_id=lambda: next(drawn))
    assert projects.ensure("one").id == "0000000a"
    assert projects.ensure("two").id == "0000000b"


def test_without_a_target_it_is_the_current_directory(
    projects: Projects, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(directory(here / "notes"))
    assert projects.ensure() == projects.find() == projects.find(".") == projects.find(here / "notes")


def test_d1_one_folder_name_twice_is_two_projects(projects: Projects, here: Path) -> None:
    """D1: isolation goes by id; the name is only for people."""
    one = projects.ensure(make_repository(here / "a/web"))
    two = projects.ensure(make_repository(here / "b/web"))
    assert one.name == two.name == "web"
    assert len({one.id, two.id, projects.find(here / "a/web").id, projects.find(here / "b/web").id}) == 2  # type: ignore[union-attr]
    assert one.folder != two.folder


# Where nothing belongs together


@pytest.mark.parametrize("target", ["~", "/", "/tmp", "ada"])
def test_home_root_and_tmp_are_read_as_nothing_and_refused_for_writing(
    projects: Projects, here: Path, target: str
) -> None:
    directory(here / "ada")
    asked = here / "ada" if target == "ada" else target
    assert projects.find(asked) is None
    refusal = projects.locate(asked).refusal
    assert refusal.endswith("not a project.")
    for door in (projects.ensure, lambda path: projects.add("name", path)):
        with pytest.raises(NotAllowed) as caught:
            door(asked)
        assert caught.value.message == refusal
        assert caught.value.hint == "cd into a project, or name one: --project NAME."
    named = projects.ensure("named")
    with pytest.raises(NotAllowed):
        projects.link("named", asked)
    assert projects.list_projects() == [named]


# Plain directories


def test_a_plain_directory_is_a_project_with_all_that_is_below_it(projects: Projects, here: Path) -> None:
    notes = directory(here / "notes")
    made = projects.ensure(notes)
    assert projects.find(directory(notes / "2026/march")) == made
    assert projects.ensure(notes / "2026") == made
    assert projects.find(here) is None
    assert tree(notes) == {"2026": None, "2026/march": None}, "nothing of ours lies in the user's directory"


def test_the_nearest_registered_directory_wins_and_a_repository_inside_is_its_own(
    projects: Projects, here: Path
) -> None:
    inner = projects.ensure(directory(here / "notes/work"))
    outer = projects.ensure(here / "notes")
    repository = projects.ensure(make_repository(here / "notes/work/web"))
    assert len({inner.id, outer.id, repository.id}) == 3
    assert projects.find(directory(here / "notes/work/2026")) == inner
    assert projects.find(here / "notes/work/web") == repository
    explicit = projects.add("Diary", directory(here / "notes/diary"))
    assert projects.find(here / "notes/diary") == explicit


def test_a_plain_directory_that_becomes_a_repository_keeps_its_memory(projects: Projects, here: Path) -> None:
    made = projects.ensure(directory(here / "web"))
    make_repository(here / "web")
    assert projects.find(here / "web").id == made.id  # type: ignore[union-attr]
    assert projects.ensure(here / "web") == msgspec.structs.replace(made, git_common_dir=str(here / "web/.git"))
    assert kept_id(here / "web") == made.id
    (here / "web").rename(here / "moved")
    assert projects.ensure(here / "moved").id == made.id


def test_a_repository_that_loses_its_git_keeps_its_memory(projects: Projects, here: Path) -> None:
    made = projects.ensure(make_repository(here / "web"))
    shutil.rmtree(here / "web/.git")
    assert projects.ensure(here / "web").id == made.id
    assert projects.ensure(directory(here / "web/src")).id == made.id


# Repositories: worktrees, links, moves, copies


def test_worktrees_and_linked_checkouts_share_one_project(projects: Projects, here: Path) -> None:
    main = make_repository(here / "web")
    made = projects.ensure(make_worktree(main / ".git", here / "fix"))
    assert made.name == "web"
    assert projects.find(main) == made
    if os.name == "posix":
        (here / "link").symlink_to(main)
        assert projects.find(here / "link") == made


@needs_git
def test_real_worktrees_share_one_project_and_a_copied_one_once_git_knows_it(projects: Projects, here: Path) -> None:
    main = directory(here / "web")
    git("init", "-q", cwd=main)
    git("commit", "-q", "--allow-empty", "-m", "first", cwd=main)
    git("worktree", "add", "-q", here / "fix", cwd=main)
    made = projects.ensure(here / "fix")
    shutil.copytree(here / "fix", here / "copied-fix")
    assert projects.ensure(main) == made
    assert projects.ensure(here / "copied-fix") != made  # the repository has never heard of it
    git("worktree", "move", here / "fix", here / "fix2", cwd=main)
    assert projects.ensure(here / "fix2") == made
    shutil.rmtree(here / "fix2")
    git("worktree", "repair", here / "copied-fix", cwd=main)
    assert identify(here / "copied-fix", {}).git_common_dir == main / ".git"


@pytest.mark.parametrize("new", ["renamed", "elsewhere/deep/web"])
def test_a_moved_or_renamed_repository_finds_its_memory(projects: Projects, here: Path, new: str) -> None:
    made = projects.ensure(make_repository(here / "web"))
    (here / new).parent.mkdir(parents=True, exist_ok=True)
    (here / "web").rename(here / new)
    before = tree(projects.home.root)
    assert projects.find(here / new).id == made.id  # type: ignore[union-attr]
    assert tree(projects.home.root) == before, "reading changes nothing, not even after a move"
    moved = projects.ensure(here / new)
    assert (moved.id, moved.name, moved.root) == (made.id, "web", str(here / new))
    assert projects.find(here / new / ".git") == moved
    assert projects.list_projects() == [moved]
    assert projects.ensure(make_repository(here / "web")).id != made.id, "the old path is free for another repository"


def test_a_copy_whose_original_still_exists_gets_its_own_project(projects: Projects, here: Path) -> None:
    original = projects.ensure(make_repository(here / "web"))
    shutil.copytree(here / "web", here / "copy")
    assert projects.find(here / "copy") is None, "a reader of the copy does not see the original's memory"
    copy = projects.ensure(here / "copy")
    assert copy.id != original.id
    assert (kept_id(here / "web"), kept_id(here / "copy")) == (original.id, copy.id)
    assert projects.find(here / "web") == original
    assert projects.find(here / "copy") == copy


def test_a_copy_stays_itself_when_the_original_goes_later(projects: Projects, here: Path) -> None:
    projects.ensure(make_repository(here / "web"))
    shutil.copytree(here / "web", here / "copy")
    copy = projects.ensure(here / "copy")
    shutil.rmtree(here / "web")
    assert projects.ensure(here / "copy") == copy


def test_a_copy_whose_original_is_gone_is_a_move(projects: Projects, here: Path) -> None:
    original = projects.ensure(make_repository(here / "web"))
    shutil.copytree(here / "web", here / "copy")
    shutil.rmtree(here / "web")
    assert projects.ensure(here / "copy").id == original.id


def test_a_repository_cloned_again_at_the_same_path_keeps_the_memory(projects: Projects, here: Path) -> None:
    made = projects.ensure(make_repository(here / "web"))
    shutil.rmtree(here / "web")
    assert projects.ensure(make_repository(here / "web")) == made
    assert kept_id(here / "web") == made.id


def test_a_repository_put_aside_takes_its_memory_along_if_it_is_seen_first(projects: Projects, here: Path) -> None:
    made = projects.ensure(make_repository(here / "web"))
    (here / "web").rename(here / "web-old")
    make_repository(here / "web")
    assert projects.ensure(here / "web-old").id == made.id
    assert projects.ensure(here / "web").id != made.id


def test_a_mirror_that_brings_the_originals_id_again_and_again_stays_itself(projects: Projects, here: Path) -> None:
    original = projects.ensure(make_repository(here / "web"))
    shutil.copytree(here / "web", here / "mirror")
    mirror = projects.ensure(here / "mirror")
    shutil.copyfile(here / "web/.git/kept-id", here / "mirror/.git/kept-id")
    assert projects.find(here / "mirror") == mirror
    assert projects.ensure(here / "mirror") == mirror
    assert kept_id(here / "mirror") == mirror.id
    assert projects.find(here / "web") == original


def test_a_repository_moved_onto_anothers_path_brings_its_own_memory(projects: Projects, here: Path) -> None:
    one = projects.ensure(make_repository(here / "one"))
    two = projects.ensure(make_repository(here / "two"))
    shutil.rmtree(here / "two")
    (here / "one").rename(here / "two")
    assert projects.ensure(here / "two").id == one.id
    left = projects.get(two.id)
    assert (left.root, left.git_common_dir) == (None, None), "the other one lost its directory, not its memory"


def test_a_repository_put_aside_finds_its_memory_also_after_another_took_its_path(
    projects: Projects, here: Path
) -> None:
    one, two = (projects.ensure(make_repository(here / name)) for name in ("one", "two"))
    (here / "two").rename(here / "aside")
    (here / "one").rename(here / "two")
    assert projects.ensure(here / "two").id == one.id
    assert projects.ensure(here / "aside").id == two.id


@pytest.mark.parametrize("is_older", [False, True])
@pytest.mark.parametrize("door", ["ensure", "find"])
def test_a_project_without_a_directory_is_claimed_by_no_repository(
    projects: Projects, here: Path, door: str, is_older: bool
) -> None:
    """An archive can hold a `.git/kept-id`, and ids stand in every export."""
    named, added = projects.ensure("ada-bot"), projects.add("eve-bot")
    if is_older:  # a registry without the newer fields
        stored = json.loads(projects.home.registry.read_bytes())
        for project in stored["projects"]:
            project.pop("is_lost", None)
        projects.home.registry.write_text(json.dumps(stored))
    for number, project in enumerate((named, added)):
        stranger = make_repository(here / f"stranger{number}")
        (stranger / ".git/kept-id").write_text(f"{project.id}\n")
        found = getattr(projects, door)(stranger)
        assert found is None or found.id != project.id
        assert projects.get(project.id).places == ()
    assert projects.find("ada-bot") == named


def _named_by_a_program(projects: Projects, here: Path) -> Project:
    return projects.ensure("ada-bot")


def _added_with_a_directory(projects: Projects, here: Path) -> Project:
    return projects.add("ada-bot", directory(here / "bots"))


def _linked_later(projects: Projects, here: Path) -> Project:
    return projects.link(projects.ensure("ada-bot").id, directory(here / "bots"))


def _renamed(projects: Projects, here: Path) -> Project:
    return projects.rename(projects.ensure(make_repository(here / "bots")).id, "ada-bot")


@pytest.mark.parametrize("make", [make_repository, directory])
@pytest.mark.parametrize("name", [_named_by_a_program, _added_with_a_directory, _linked_later, _renamed])
def test_a_clone_called_like_the_project_of_a_program_does_not_keep_the_program_out(
    projects: Projects,
    here: Path,
    name: Callable[[Projects, Path], Project],
    make: Callable[[Path], Path],
) -> None:
    own = name(projects, here)
    clones = [projects.ensure(make(here / parent / "ada-bot")) for parent in "bcd"]
    again = open_projects(projects.home.root, here)
    for door in (again.find, again.ensure, again.get):
        assert door("ada-bot") == own
    assert len({own.id, *(clone.id for clone in clones)}) == 4
    for clone, parent in zip(clones, "bcd", strict=True):
        assert again.find(here / parent / "ada-bot") == clone


def test_another_home_takes_over_the_id_that_it_finds(projects: Projects, here: Path) -> None:
    made = projects.ensure(make_repository(here / "web"))
    other = open_projects(here / "other-home", here)
    assert other.find(here / "web") is None
    assert other.ensure(here / "web").id == made.id
    assert kept_id(here / "web") == made.id


def test_two_homes_do_not_fight_over_the_id_in_a_repository(projects: Projects, here: Path) -> None:
    one = projects.ensure(make_repository(here / "web"))
    (here / "web/.git/kept-id").write_text("0badcafe\n")
    assert projects.ensure(here / "web") == one
    assert kept_id(here / "web") == "0badcafe"


def test_a_damaged_id_file_is_rewritten(projects: Projects, here: Path) -> None:
    made = projects.ensure(make_repository(here / "web"))
    for spoilt in (b"", b"\xff\0 nonsense", b"../../../etc"):
        (here / "web/.git/kept-id").write_bytes(spoilt)
        assert projects.ensure(here / "web") == made
        assert kept_id(here / "web") == made.id


@posix_only
def test_a_read_only_repository_is_served_by_the_registry_alone() -> None:
    with common_user() as own:
        projects = open_projects(own / "home", own)
        repository = make_repository(own / "web")
        (repository / ".git").chmod(0o500)
        made = projects.ensure(repository)
        assert not (repository / ".git/kept-id").exists()
        assert projects.ensure(repository) == projects.find(repository) == made


@posix_only
def test_a_read_only_copy_stays_itself_too() -> None:
    with common_user() as own:
        projects = open_projects(own / "home", own)
        original = projects.ensure(make_repository(own / "web"))
        shutil.copytree(own / "web", own / "copy")
        (own / "copy/.git").chmod(0o500)
        copy = projects.ensure(own / "copy")
        assert copy.id != original.id
        shutil.rmtree(own / "web")
        assert projects.ensure(own / "copy") == copy


@posix_only
@pytest.mark.parametrize("closed", ["disk", "disk/web/.git"])
def test_an_original_that_we_may_not_look_at_is_not_taken_for_gone(closed: str) -> None:
    with common_user() as own:
        projects = open_projects(own / "home", own)
        original = projects.ensure(make_repository(own / "disk/web"))
        shutil.copytree(own / "disk/web", own / "copy")
        (own / "disk/web/.git/kept-id").unlink()
        (own / closed).chmod(0o500 if closed.endswith(".git") else 0)
        assert projects.ensure(own / "copy").id != original.id


def test_one_repository_by_two_paths_is_one_project(
    projects: Projects, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A bind mount shows one directory at two paths; no link tells so, but the file system does."""
    made = projects.ensure(make_repository(here / "web"))
    shutil.copytree(here / "web", here / "mounted")
    monkeypatch.setattr(Path, "samefile", lambda *_: True)
    assert projects.ensure(here / "mounted") == projects.ensure(here / "web") == made


@posix_only
def test_an_unreadable_directory_is_a_clear_error() -> None:
    with common_user() as own:
        projects = open_projects(own / "home", own)
        closed = directory(own / "closed/inside").parent
        closed.chmod(0)
        with pytest.raises(StorageError, match="permission denied") as caught:
            projects.find(closed / "inside")
    assert "--project NAME" in caught.value.hint


def test_a_deleted_directory_is_still_found_by_its_path(projects: Projects, here: Path) -> None:
    made = projects.ensure(make_repository(here / "web"))
    shutil.rmtree(here / "web")
    assert projects.find(here / "web") == made
    with pytest.raises(NotFound, match="There is no directory"):
        projects.find(here / "wed")


def test_a_path_in_other_case_is_the_same_place_where_the_file_system_says_so(
    projects: Projects, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = projects.ensure(make_repository(here / "Web"))
    twin = make_repository(here / "web")  # on a file system that ignores case this is the same directory
    assert projects.find(twin) == (made if twin.samefile(here / "Web") else None)
    monkeypatch.setattr(Path, "samefile", lambda *_: True)
    assert projects.find(twin) == made


# Names


def test_a_new_name_registers_a_project_without_a_directory(projects: Projects) -> None:
    made = projects.ensure("Web App")
    assert (made.name, made.slug, made.root) == ("Web App", "web-app", None)
    assert projects.ensure("Web App") == projects.find("Web App") == made
    assert projects.find(made.space) == projects.get(made.id) == made


# Names that a person could take for each other: case, spaces, width, accents and how they are encoded.
ALIKE = [
    ("Ab3", "aB3", "ab3", "AB3", "\uff21b3"),
    ("stra\xdfe", "strasse", "STRASSE", "stra\u1e9ee"),
    ("a", "a ", " a", "a\u3000", "a\xa0", "\uff41"),
    ("caf\xe9", "cafe\u0301", "CAF\xc9", "cafe"),
    ("\u212b", "\xc5", "A\u030a"),
    ("\u0130", "i", "I", "\u0131", "i\u0307"),
    ("\ufb01x", "fix", "FIX"),
    ("web-app", "web_app", "web app", "web  app", "web\u2010app"),
    ("\u03c3", "\u03c2", "\u03a3"),
    ("x\u200d", "x", "x\u200b"),
]


@pytest.mark.parametrize("names", ALIKE)
def test_names_that_differ_in_one_code_point_are_different_projects(projects: Projects, names: tuple[str, ...]) -> None:
    made = [projects.ensure(name) for name in names]
    assert [project.name for project in made] == list(names)
    assert len({project.id for project in made}) == len({project.folder.casefold() for project in made}) == len(names)
    again = open_projects(projects.home.root, projects.home.root.parent)
    assert [again.find(name) for name in names] == made
    assert [again.get(name) for name in names] == made


def test_a_program_hears_of_a_project_whose_name_reads_alike(projects: Projects) -> None:
    made = projects.ensure("web-app")
    assert projects.find("Web-App") is None
    assert projects.notices == [
        f"There is no project 'Web-App' yet. 'web-app' ({made.id}) is another project: names are exact."
    ]
    with pytest.raises(NotFound, match=f"Did you mean 'web-app' .{made.id}"):
        projects.get("Web-App")


def _variant(name: str, chance: random.Random) -> str:
    """The name with one thing changed that people do not see, or hardly."""
    changes: list[Callable[[str], str]] = [
        str.swapcase,
        str.casefold,
        str.upper,
        lambda text: f"{text} ",
        lambda text: f" {text}",
        lambda text: text.replace(" ", "\u3000"),
        lambda text: text.replace(" ", "  "),
        *(lambda text, form=form: unicodedata.normalize(form, text) for form in ("NFC", "NFD", "NFKC", "NFKD")),
        lambda text: "".join(chr(ord(char) + 0xFEE0) if "!" <= char <= "~" else char for char in text),
        lambda text: "".join(char for char in unicodedata.normalize("NFD", text) if not unicodedata.combining(char)),
        lambda text: text + chance.choice("\u0301\u200d\u0308\ufe0f"),
    ]
    return chance.choice(changes)(name)


@pytest.mark.parametrize("seed", range(20))
def test_two_names_are_one_project_only_if_they_are_equal(projects: Projects, seed: int) -> None:
    """Some 1,000 pairs in each run, of names that differ only in what people do not see."""
    chance = random.Random(seed)
    letters = "aAbBkKsS\xdf\u212a\xe9e\xc5\u0130i\u0131\ufb01f\u03c3\u03c2 39-_\u6771\uac00\u1100\u1161\u2126"
    names = {"".join(chance.choices(letters, k=chance.randint(1, 6))) for _ in range(4)}
    while len(names) < 50:
        names.add(_variant(chance.choice(sorted(names)), chance))
    made = {}
    for name in sorted(names):
        with contextlib.suppress(InvalidInput):  # blanks only
            made[name] = projects.ensure(name).id
    assert len(made) > 40
    assert len(set(made.values())) == len(made)
    assert {name: project.id for name in made if (project := projects.find(name))} == made


@pytest.mark.parametrize("name", ["..", "~root", "0123abcd", " .. ", " 0123abcd"])
def test_a_name_never_opens_a_directory_or_an_id(projects: Projects, here: Path, name: str) -> None:
    above = projects.ensure(make_repository(here / "above"))
    other = Projects(Home(here / "home"), environ={"HOME": str(here)}, new_id=lambda: "0123abcd").ensure("other")
    assert other.id == "0123abcd"
    with contextlib.chdir(directory(here / "above/below")):
        for door in (projects.find, projects.ensure):
            with pytest.raises(InvalidInput, match=r"is a path, not a name|looks like the id") as caught:
                door(name)
            assert "pathlib.Path" in caught.value.hint or "project/0123abcd" in caught.value.hint
        assert projects.find(typed("..")) == projects.find(Path("..")) == above
    assert projects.find(typed("0123abcd")) == projects.find("project/0123abcd") == other


def test_a_registry_of_version_0_2_finds_its_projects(projects: Projects, here: Path) -> None:
    """As 0.2.0 wrote it: trimmed names in NFC, with and without a directory, one of them merged."""
    repository = make_repository(here / "Web App")
    old = [
        {"id": "0000000a", "name": "Web App", "slug": "web-app", "root": str(repository)},
        {"id": "0000000b", "name": "Caf\xe9", "slug": "cafe"},
        {"id": "0000000c", "name": "before", "slug": "before", "into": "0000000b"},
    ]
    old[0]["git_common_dir"] = str(repository / ".git")
    for project in old:
        project["created_at"] = "2026-01-01T00:00:00Z"
        directory(projects.home.projects_dir / f"{project['slug']}-{project['id']}")
    projects.home.registry.write_text(json.dumps({"version": 1, "projects": old}), "utf-8")
    found = {name: project.id for name in ("Web App", "Caf\xe9", "before") if (project := projects.find(name))}
    assert found == {"Web App": "0000000a", "Caf\xe9": "0000000b", "before": "0000000b"}
    assert projects.ensure(repository).id == "0000000a"
    assert projects.find("caf\xe9") is None


def test_a_name_that_fits_several_lists_their_ids(projects: Projects, here: Path) -> None:
    one, two = (projects.ensure(make_repository(here / parent / "web")) for parent in "ab")
    for door in (projects.find, projects.ensure, projects.get):
        with pytest.raises(InvalidInput) as caught:
            door("web")
        assert one.id in caught.value.message
        assert two.id in caught.value.message
        assert "kept projects rename" in caught.value.hint


def test_a_directory_is_meant_by_a_separator_a_dot_or_a_tilde_else_a_name(
    projects: Projects, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(directory(here / "ada/work"))
    directory(here / "ada/work/web")
    by_path = projects.ensure("./web")
    assert by_path.root == str(here / "ada/work/web")
    assert projects.find("~/work/web") == projects.find(str(here / "ada/work/web")) == by_path
    assert projects.find("web") == by_path, "its name is known by now"
    assert projects.ensure("other").root is None
    assert projects.ensure(".").root == str(here / "ada/work")


def test_an_unknown_id_is_not_found_and_never_made(projects: Projects) -> None:
    doors = [(projects.find, "project/0123abcd"), (projects.ensure, "project/0123abcd"), (projects.get, "0123abcd")]
    for door, unknown in doors:
        with pytest.raises(NotFound, match=unknown) as caught:
            door(unknown)
        assert "kept projects list" in caught.value.hint
    assert not projects.home.root.exists()


HOSTILE = [
    "",
    "  ",
    "a\0b",
    "a\ud800b",
    "a\nb",
    "\x1b[31m",
    "\u2028",
    "x" * 201,
    "global",
    "Global",
    "../../etc/no",
    "a/../../b",
]


@pytest.mark.parametrize("name", [*HOSTILE, "~no-such-user-here", "a\\b", "x" * 300 + "/y", "/\0", "c/\ud800"])
def test_a_hostile_name_is_a_clear_error_and_makes_nothing(projects: Projects, here: Path, name: str) -> None:
    with contextlib.chdir(here), pytest.raises(KeptError) as caught:
        projects.ensure(name)
    str(caught.value).encode()
    assert caught.value.hint
    assert list(here.iterdir()) == []


@pytest.mark.parametrize("name", [*HOSTILE, "0123abcd"])
def test_a_hostile_name_cannot_be_given_to_a_project_either(projects: Projects, name: str) -> None:
    made = projects.ensure("web")
    with pytest.raises(InvalidInput):
        projects.add(name)
    with pytest.raises(InvalidInput):
        projects.rename("web", name)
    assert projects.list_projects() == [made]


@pytest.mark.parametrize("name", ["con", "NUL", "🚀", "東京", "a..b", "--force", "…", "'; drop table", "x" * 200])
def test_an_odd_name_is_fine_and_lands_in_a_safe_folder(projects: Projects, name: str) -> None:
    made = projects.ensure(name)
    assert projects.find(name) == made
    assert made.name == name
    assert projects.home.files(made.folder).directory.parent == projects.home.projects_dir
    assert made.slug not in ("con", "nul")


@given(name=st.text(st.characters(exclude_categories=()), max_size=60))
def test_any_text_as_a_project_is_a_project_or_a_clear_error(
    name: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    here = tmp_path_factory.mktemp("any")
    projects = open_projects(here / "home", here)
    with contextlib.chdir(directory(here / "inside")):
        try:
            made = projects.ensure(name)
        except KeptError as error:
            str(error).encode()
        else:
            assert projects.find(name) == made
            assert made.root or made.name == name
    shutil.rmtree(here)


@posix_only
@pytest.mark.skipif(sys.platform == "darwin", reason="macOS allows only Unicode file names")
def test_a_directory_whose_name_is_not_unicode_is_a_project_like_any_other(projects: Projects, here: Path) -> None:
    odd = directory(Path(os.fsdecode(os.fsencode(here) + b"/caf\xe9")))
    made = projects.ensure(odd)
    assert projects.find(odd) == projects.find(directory(odd / "below")) == made
    assert made.slug == "caf"
    json.loads(projects.home.registry.read_bytes().decode("utf-8"))


def test_a_very_long_directory_name_is_a_project_like_any_other(projects: Projects, here: Path) -> None:
    made = projects.ensure(directory(here / ("long " * 50)))
    assert projects.find(here / ("long " * 50)) == made
    assert len(made.folder) <= 49


# Commands


def test_projects_are_listed_by_name(projects: Projects, here: Path) -> None:
    for name in ("zebra", "Äpfel", "apple"):
        projects.ensure(name)
    assert [project.name for project in projects.list_projects()] == ["apple", "zebra", "Äpfel"]


def test_add_refuses_a_name_or_a_directory_that_is_taken(projects: Projects, here: Path) -> None:
    repository = make_repository(here / "web")
    made = projects.add("Shop", repository)
    assert projects.find(repository) == made
    assert kept_id(repository) == made.id
    with pytest.raises(InvalidInput, match="A project named 'Shop' already exists"):
        projects.add("shop")
    with pytest.raises(InvalidInput, match=f"already belongs to project 'Shop' .{made.id}"):
        projects.add("Other", repository)
    assert projects.list_projects() == [made]


def test_link_gives_a_directory_to_a_project_from_now_on(projects: Projects, here: Path) -> None:
    shop = projects.ensure("shop")
    web = projects.ensure(make_repository(here / "web"))
    notes = directory(here / "notes/below").parent
    assert projects.link("shop", here / "web").id == shop.id
    linked = projects.link(shop.id, notes)
    assert projects.find(here / "web") == projects.find(notes / "below") == linked
    assert linked.places == (str(here / "web/.git"), str(notes))
    assert projects.link("shop", here / "web") == linked, "once more changes nothing"
    left = projects.get(web.id)
    assert left.places == (), "no directory belongs to two projects"


def test_a_linked_repository_may_move_and_a_copy_of_it_is_still_a_copy(projects: Projects, here: Path) -> None:
    shop = projects.ensure(make_repository(here / "shop"))
    projects.link("shop", make_repository(here / "web"))
    shutil.copytree(here / "web", here / "copy")
    assert projects.ensure(here / "copy").id != shop.id
    (here / "web").rename(here / "moved")
    moved = projects.ensure(here / "moved")
    assert moved.id == shop.id
    assert moved.places == (str(here / "shop/.git"), str(here / "moved/.git"))
    assert projects.ensure(here / "shop").id == shop.id


def test_rename_changes_the_name_and_keeps_id_folder_and_directory(projects: Projects, here: Path) -> None:
    made = projects.ensure(make_repository(here / "web"))
    named = projects.rename("web", "Shop")
    assert (named.name, named.id, named.folder, named.root) == ("Shop", made.id, made.folder, made.root)
    assert projects.find("Shop") == projects.find(here / "web") == named
    assert projects.find("web") is None
    assert projects.rename("Shop", "SHOP").name == "SHOP"
    projects.ensure("other")
    with pytest.raises(InvalidInput, match="already exists"):
        projects.rename("other", "shop")


def test_a_merged_project_is_answered_for_by_the_other(projects: Projects, here: Path) -> None:
    old = projects.ensure(make_repository(here / "old"))
    new = projects.ensure(make_repository(here / "new"))
    heir = projects.retire("old", "new")
    assert heir.id == new.id
    assert projects.list_projects() == [heir]
    for target in (old.space, "old", here / "old", here / "new", new.space):
        assert projects.find(target) == heir
    assert projects.get(old.id) == projects.get(new.id) == heir
    assert projects.ensure(here / "old") == heir
    assert kept_id(here / "old") == new.id
    assert projects.home.files(old.folder).directory.is_dir(), "what was in its folder is not touched"


def test_a_merged_repository_may_still_move_and_a_chain_of_merges_ends_at_the_last(
    projects: Projects, here: Path
) -> None:
    one, two, three = (projects.ensure(make_repository(here / name)) for name in ("one", "two", "three"))
    projects.retire(one.id, two.id)
    last = projects.retire(two.id, three.id)
    assert projects.find(one.space) == projects.find("one") == last
    (here / "one").rename(here / "moved")
    moved = projects.ensure(here / "moved")
    assert moved.id == three.id
    assert str(here / "moved/.git") in moved.places
    assert projects.ensure(here / "three").id == three.id


def test_a_project_cannot_be_merged_into_itself(projects: Projects) -> None:
    one, two = projects.ensure("one"), projects.ensure("two")
    projects.retire("one", "two")
    for source, into in ((two.id, "two"), ("two", "one"), (one.id, two.id)):
        with pytest.raises(InvalidInput, match="are the same project"):
            projects.retire(source, into)
    assert [project.id for project in projects.list_projects()] == [two.id]


def test_merging_into_a_project_without_a_directory_gives_it_the_directory(projects: Projects, here: Path) -> None:
    projects.ensure(directory(here / "web"))
    projects.ensure("shop")
    assert projects.retire("web", "shop").root == str(here / "web")
    assert projects.find(here / "web").name == "shop"  # type: ignore[union-attr]


def test_commands_on_an_unknown_project_are_not_found(projects: Projects, here: Path) -> None:
    projects.ensure("web")
    doors: list[Callable[[], Project]] = [
        lambda: projects.get("wed"),
        lambda: projects.rename("wed", "x"),
        lambda: projects.link("wed", here),
        lambda: projects.retire("wed", "web"),
        lambda: projects.retire("web", "wed"),
    ]
    for door in doors:
        with pytest.raises(NotFound, match="There is no project 'wed'"):
            door()


# The registry's file


@posix_only
def test_registry_cards_and_lock_are_private_under_any_umask(projects: Projects, here: Path) -> None:
    with umask(0):
        projects.ensure(make_repository(here / "web"))
    modes = {path.name: path.stat().st_mode & 0o777 for path in projects.home.root.rglob("*")}
    assert modes.pop("projects.json") == modes.pop("projects.lock") == modes.pop("project.json") == 0o600
    assert set(modes.values()) == {0o700}


def test_the_registry_can_be_read_by_people(projects: Projects, here: Path) -> None:
    made = projects.ensure(make_repository(here / "web"))
    assert json.loads(projects.home.registry.read_text())["version"] == 1
    card = json.loads(projects.home.files(made.folder).project_card.read_text())
    assert (card["id"], card["name"], card["root"]) == (made.id, "web", str(here / "web"))
    assert datetime.fromisoformat(card["created_at"]) == START


DAMAGES = [b"", b"{", b"\xff\xfe\0", b"[]", b'{"version": 1}', b'{"version": 1, "projects": [{"id": "../../etc"}]}']


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_registry_is_rebuilt_from_the_folders_kept_aside_and_spoken_of(
    projects: Projects, here: Path, damage: bytes
) -> None:
    web, shop = projects.ensure(make_repository(here / "web")), projects.ensure("shop")
    shop = projects.link("shop", directory(here / "notes"))
    projects.home.registry.write_bytes(damage)
    before = tree(here)

    reader = open_projects(here / "home", here)
    assert reader.find(here / "web") == web
    assert reader.find(here / "notes") == shop
    assert reader.list_projects() == [shop, web]
    assert tree(here) == before, "reading repairs nothing"
    assert len(reader.notices) == 1
    assert "is damaged" in reader.notices[0]
    assert "The next change to a project repairs it" in reader.notices[0]

    writer = open_projects(here / "home", here)
    made = writer.ensure(directory(here / "new"))
    aside = projects.home.root / "projects.json.damaged-1"
    assert aside.read_bytes() == damage
    assert str(aside) in writer.notices[0]
    again = open_projects(here / "home", here)
    assert {project.id for project in again.list_projects()} == {web.id, shop.id, made.id}
    assert again.notices == []


def test_each_damaged_registry_is_kept(projects: Projects, here: Path) -> None:
    made = projects.ensure("web")
    for n in (1, 2, 3):
        projects.home.registry.write_text(f"damage {n}")
        assert projects.ensure("web") == made
    kept = sorted(projects.home.root.glob("projects.json.damaged-*"))
    assert [path.read_text() for path in kept] == ["damage 1", "damage 2", "damage 3"]


def test_a_lost_registry_is_rebuilt(projects: Projects, here: Path) -> None:
    made = projects.ensure(make_repository(here / "web"))
    projects.home.registry.unlink()
    assert projects.find("web") == made
    assert "is missing" in projects.notices[0]
    assert projects.ensure(here / "web") == made


def test_a_project_that_an_older_registry_does_not_know_is_found_in_its_folder(projects: Projects, here: Path) -> None:
    projects.ensure("one")
    older = projects.home.registry.read_bytes()
    two = projects.ensure(directory(here / "two"))
    projects.home.registry.write_bytes(older)
    assert projects.find(here / "two") == two
    assert "lacks 1 of the projects' folders" in projects.notices[0]


def test_without_registry_and_card_the_memory_is_found_by_the_repositorys_id(projects: Projects, here: Path) -> None:
    made = projects.ensure(make_repository(here / "web"))
    projects.home.registry.write_bytes(b"")
    projects.home.files(made.folder).project_card.write_bytes(b"torn")
    found = projects.ensure(here / "web")
    assert (found.id, found.folder, found.root) == (made.id, made.folder, str(here / "web"))


def test_a_card_that_claims_to_be_another_project_is_not_believed(projects: Projects, here: Path) -> None:
    one, two = projects.ensure("one"), projects.ensure("two")
    shutil.copyfile(projects.home.files(one.folder).project_card, projects.home.files(two.folder).project_card)
    projects.home.registry.write_bytes(b"")
    assert {(p.id, p.folder) for p in projects.list_projects()} == {(one.id, one.folder), (two.id, two.folder)}


def test_a_registry_of_a_newer_kept_is_left_alone(projects: Projects, here: Path) -> None:
    home = directory(projects.home.root)
    newer = b'{"version": 2, "projects": {"of": "another shape"}}'
    (home / "projects.json").write_bytes(newer)
    for door in (projects.find, projects.ensure):
        with pytest.raises(SchemaTooNew, match="version 2, this program knows 1"):
            door("web")
    assert (home / "projects.json").read_bytes() == newer


def test_a_write_that_fails_leaves_the_registry_as_it_was(
    projects: Projects, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = projects.ensure("web")
    with monkeypatch.context() as broken:
        broken.setattr("os.fsync", full_disk)
        with pytest.raises(StorageError, match="no space left"):
            projects.ensure("shop")
    assert open_projects(here / "home", here).list_projects() == [made]


def test_a_registration_cut_off_before_its_folder_was_made_is_completed(projects: Projects, here: Path) -> None:
    made = projects.ensure(make_repository(here / "web"))
    shutil.rmtree(projects.home.files(made.folder).directory)
    (here / "web/.git/kept-id").unlink()
    assert projects.ensure(here / "web") == made
    assert projects.home.files(made.folder).project_card.exists()
    assert kept_id(here / "web") == made.id


@posix_only
@pytest.mark.parametrize("link", ["projects.json", "projects", "projects.lock"])
def test_d1_a_registry_that_is_a_link_out_of_the_home_is_refused(projects: Projects, here: Path, link: str) -> None:
    """D1: what is outside the home can't decide who reads which memory."""
    directory(here / "outside")
    (directory(projects.home.root) / link).symlink_to(here / "outside")
    with pytest.raises(NotAllowed, match="is a symbolic link"):
        projects.ensure("web")
    assert list((here / "outside").iterdir()) == []


def test_a_directory_in_place_of_the_registry_is_a_clear_error(projects: Projects, here: Path) -> None:
    directory(projects.home.root / "projects.json")
    for door in (projects.find, projects.ensure):
        with pytest.raises(InvalidInput, match=r"projects\.json: is a directory"):
            door("web")


@posix_only
def test_a_read_only_home_can_be_read_and_says_why_it_cannot_be_written() -> None:
    with common_user() as own:
        projects = open_projects(own / "home", own)
        made = projects.ensure("web")
        for path in (projects.home.root, *projects.home.root.rglob("*")):
            path.chmod(0o500 if path.is_dir() else 0o400)
        assert projects.find("web") == made
        with pytest.raises(StorageError, match="permission denied") as caught:
            projects.ensure("shop")
        assert "KEPT_HOME" in caught.value.hint
        assert projects.list_projects() == [made]


# Many processes


REGISTER = """
import sys
from pathlib import Path
from kept.projects.home import Home
from kept.projects import Projects
projects = Projects(Home(Path(sys.argv[1])), environ={})
print("ready", flush=True)
sys.stdin.readline()
for target in sys.argv[2:]:
    print(projects.ensure(target).id)
"""


def test_processes_that_register_the_same_things_at_once_get_the_same_ids(projects: Projects, here: Path) -> None:
    targets = [str(make_repository(here / "web")), str(directory(here / "notes")), "named", "named-too"]
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True, "env": environ}
    command = [sys.executable, "-c", REGISTER, str(here / "home")]
    running = [subprocess.Popen([*command, *targets[n:], *targets[:n]], **pipes) for n in range(4)]  # type: ignore[call-overload]
    for process in running:
        assert process.stdout.readline() == "ready\n"
    for process in running:
        process.stdin.write("go\n")
        process.stdin.flush()
    answers = [process.communicate()[0].split() for process in running]
    by_target = [dict(zip([*targets[n:], *targets[:n]], answer, strict=True)) for n, answer in enumerate(answers)]
    assert all(answer == by_target[0] for answer in by_target)
    assert len(set(by_target[0].values())) == 4
    assert {project.id for project in projects.list_projects()} == set(by_target[0].values())
    assert kept_id(here / "web") == by_target[0][targets[0]]
    assert projects.notices == []
