"""The home: its layout, its permissions, and names that become paths."""

import logging
import os
import stat
import sys
from pathlib import Path

import platformdirs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kept.errors import InvalidInput, NotAllowed, SettingsError, StorageError
from kept.projects.files import locked, write_private_file
from kept.projects.home import WINDOWS_DEVICES, Home, default_home, expanded, platform_folder, slug, user_home
from tests.folders import common_user, posix_only, umask

FOLDER = "web-app-0123abcd"


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "home")


def mode(path: Path) -> int:
    return stat.S_IMODE(path.lstat().st_mode)


def everything_below(path: Path) -> list[Path]:
    return sorted(path.rglob("*"))


# The layout


def test_b20_a_space_is_one_folder_with_its_database_and_its_readable_files(home: Home) -> None:
    """B20: the file layout; MEMORY.md, items.json, tasks.json and sessions/ lie beside each database."""
    for files, folder in ((home.files(), "global"), (home.files(FOLDER), f"projects/{FOLDER}")):
        names = [files.database, files.memory_md, files.items, files.tasks, files.sessions, files.project_card]
        assert [path.relative_to(home.root).as_posix() for path in names] == [
            f"{folder}/{name}"
            for name in ("kept.db", "MEMORY.md", "items.json", "tasks.json", "sessions", "project.json")
        ]


def test_asking_for_paths_creates_nothing(home: Home) -> None:
    home.files()
    home.files(FOLDER)
    assert not home.root.exists()


def test_prepare_makes_the_folder_and_may_be_called_again(home: Home) -> None:
    first = home.prepare(FOLDER)
    assert first.directory.is_dir()
    assert home.prepare(FOLDER).directory == first.directory
    assert home.prepare().directory == home.global_dir


@pytest.mark.parametrize(
    "folder",
    [
        *("..", "../../etc", "web", "", "/etc", "web-0123abcd/..", "Web-0123abcd", "web-0123ABCD", "-0123abcd"),
        *("a\0b-0123abcd", "web-0123abcd\n", "x" * 41 + "-0123abcd", "web--0123abcd", "web\udc80-0123abcd"),
    ],
)
def test_a_hostile_folder_name_never_becomes_a_path(home: Home, folder: str) -> None:
    with pytest.raises(InvalidInput, match="Invalid project folder"):
        home.project_dir(folder)
    with pytest.raises(InvalidInput):
        home.prepare(folder)
    assert not home.root.exists()


# Permissions


@posix_only
def test_directories_are_0700_and_files_0600_whatever_the_umask(tmp_path: Path) -> None:
    home = Home(tmp_path / "data/home")
    with umask(0):
        files = home.prepare(FOLDER)
        write_private_file(files.database, b"")
        write_private_file(files.memory_md, b"# Memory\n")
        with locked(home.registry_lock):
            pass
    found = {path: mode(path) for path in everything_below(tmp_path)}
    assert len(found) == 7
    assert all(is_mode == (0o700 if path.is_dir() else 0o600) for path, is_mode in found.items())


@posix_only
def test_looser_permissions_are_tightened(home: Home) -> None:
    files = home.prepare(FOLDER)
    files.sessions.mkdir()
    files.database.touch()
    home.registry.touch()
    loose = (home.root, home.projects_dir, files.directory, files.sessions, files.database, home.registry)
    for path in loose:
        path.chmod(0o777)
    home.prepare(FOLDER)
    assert [mode(path) for path in loose] == [0o700] * 6, "the execute bit of the owner is not ours to judge"


@posix_only
def test_permissions_that_are_tight_enough_stay_as_they_are(home: Home) -> None:
    files = home.prepare(FOLDER)
    files.memory_md.touch(0o400)
    home.prepare(FOLDER)
    assert mode(files.memory_md) == 0o400


@posix_only
def test_a_file_that_cannot_be_tightened_is_reported_and_no_failure(
    home: Home, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    database = home.prepare(FOLDER).database
    database.touch()
    database.chmod(0o644)

    def refuse(path: Path, mode: int) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(Path, "chmod", refuse)
    with caplog.at_level(logging.WARNING, "kept"):
        home.prepare(FOLDER)
    assert "open to other users" in caplog.text


@posix_only
@pytest.mark.parametrize("shared", [Path("/"), Path("/shared")])
def test_a_directory_of_many_users_is_no_home_and_keeps_its_permissions(tmp_path: Path, shared: Path) -> None:
    if shared != Path("/"):
        shared = tmp_path / "shared"
        shared.mkdir()
        shared.chmod(0o1777)
    before = mode(shared)
    with pytest.raises(InvalidInput, match="shared with other programs") as caught:
        Home(shared).prepare(FOLDER)
    assert str(shared / "kept") in caught.value.hint
    assert mode(shared) == before


# Symbolic links


@posix_only
@pytest.mark.parametrize(
    "link",
    ["global", "global/kept.db", "global/MEMORY.md", "projects", f"projects/{FOLDER}", f"projects/{FOLDER}/kept.db"],
)
def test_d1_a_link_inside_the_home_is_refused_for_reading_and_for_writing(
    home: Home, tmp_path: Path, link: str
) -> None:
    """D1: spaces are isolated; a link could lead out of the home, or from one space into another."""
    victim = tmp_path / "victim"
    victim.mkdir()
    (home.root / link).parent.mkdir(parents=True)
    (home.root / link).symlink_to(victim)
    folder = None if link.startswith("global") else FOLDER
    for door in (home.files, home.prepare):
        with pytest.raises(NotAllowed, match="is a symbolic link") as caught:
            door(folder)
        assert "set KEPT_HOME" in caught.value.hint
    assert list(victim.iterdir()) == []


@posix_only
@pytest.mark.parametrize("name", ["projects.json", "projects.lock"])
def test_a_registry_or_lock_that_is_a_link_is_refused(home: Home, tmp_path: Path, name: str) -> None:
    home.root.mkdir()
    (home.root / name).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(NotAllowed):
        home.prepare(FOLDER)
    with pytest.raises(NotAllowed), locked(home.root / name):
        pass
    assert not (tmp_path / "elsewhere").exists()


@posix_only
def test_the_home_itself_may_be_a_link(tmp_path: Path) -> None:
    (tmp_path / "disk").mkdir()
    (tmp_path / "home").symlink_to(tmp_path / "disk")
    assert Home(tmp_path / "home").prepare(FOLDER).directory == (tmp_path / "disk/projects" / FOLDER).resolve()


# Homes that cannot be


def test_a_file_in_place_of_the_home_is_refused(tmp_path: Path) -> None:
    (tmp_path / "home").write_text("mine")
    with pytest.raises(InvalidInput, match="is a file, not a directory") as caught:
        Home(tmp_path / "home")
    assert "KEPT_HOME" in caught.value.hint
    assert (tmp_path / "home").read_text() == "mine"


def test_a_home_below_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "notes").write_text("mine")
    with pytest.raises(InvalidInput, match="not a directory"):
        Home(tmp_path / "notes/home").prepare(FOLDER)


def test_a_file_in_place_of_a_folder_of_the_home_is_refused(home: Home) -> None:
    home.root.mkdir()
    home.projects_dir.write_text("mine")
    with pytest.raises(InvalidInput):
        home.prepare(FOLDER)
    assert home.projects_dir.read_text() == "mine"


@posix_only
@pytest.mark.parametrize("name", [".", "home"])
def test_a_home_that_cannot_be_written_says_so(name: str) -> None:
    with common_user() as own:
        own.chmod(0o500)
        with pytest.raises(StorageError, match="permission denied") as caught:
            Home(own / name).prepare(FOLDER)
    assert "KEPT_HOME" in caught.value.hint


@posix_only
def test_a_home_that_cannot_be_entered_says_so() -> None:
    with common_user() as own:
        home = Home(own / "home")
        home.prepare(FOLDER)
        home.projects_dir.chmod(0)
        with pytest.raises(StorageError, match="permission denied"):
            home.files(FOLDER)
        own.chmod(0)
        with pytest.raises(StorageError, match="permission denied"):
            Home(own / "home")


@pytest.mark.parametrize("name", ["a\0b", "a\ud800b", "x" * 300, "x" * 5000])
def test_a_home_with_an_impossible_name_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        Home(tmp_path / name).prepare(FOLDER)
    caught.value.message.encode()
    assert len(caught.value.message) < 500


# Where the home is


def test_kept_home_wins(tmp_path: Path) -> None:
    assert default_home({"KEPT_HOME": str(tmp_path)}) == tmp_path
    assert default_home({"KEPT_HOME": "~/memory", "HOME": "/home/ada"}) == Path("/home/ada/memory")


@pytest.mark.parametrize("environ", [{}, {"KEPT_HOME": ""}])
def test_without_kept_home_it_is_the_platforms_directory_for_data(environ: dict[str, str]) -> None:
    assert default_home(environ) == platform_folder("data", environ)
    assert default_home(environ).name == "kept"
    assert default_home(environ).is_absolute()


@pytest.mark.parametrize("chosen", ["memory", "./memory", "~", "/home/ada/"])
def test_a_relative_kept_home_or_home_itself_is_refused(chosen: str) -> None:
    with pytest.raises(SettingsError, match="KEPT_HOME must"):
        default_home({"KEPT_HOME": chosen, "HOME": "/home/ada"})


@posix_only
def test_the_users_home_is_found_without_an_environment() -> None:
    import pwd

    name = pwd.getpwuid(os.getuid()).pw_name
    assert user_home({}) == Path(pwd.getpwuid(os.getuid()).pw_dir)
    assert expanded(f"~{name}/x", {"HOME": "/elsewhere"}) == user_home({}) / "x"
    with pytest.raises(InvalidInput, match="Unknown user"):
        expanded("~nobody-is-called-this/x", {})


# Slugs


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("web-app", "web-app"),
        ("Web App 2", "web-app-2"),
        ("../../etc", "etc"),
        ("Müller & Söhne", "muller-sohne"),
        ("Straße", "strasse"),
        ("Łódź Ærø ısı", "lodz-aero-isi"),
        ("さくら", "sakura"),
        ("김치", "gimci"),
        ("🚀 launch", "rocket-launch"),
        ("Ａ１", "a1"),
        ("東京", "project"),
        ("", "project"),
        ("...", "project"),
        ("\0", "project"),
        ("\ud800", "project"),
        ("con", "project-con"),
        ("COM1", "project-com1"),
        ("x" * 300, "x" * 40),
        ("a" * 39 + " b", "a" * 39),
    ],
)
def test_a_slug_is_safe_and_still_readable(name: str, expected: str) -> None:
    assert slug(name) == expected


@given(st.text(st.characters(exclude_categories=())))
def test_any_name_gives_a_slug_that_is_a_safe_part_of_a_path(name: str) -> None:
    made = slug(name)
    assert 1 <= len(made) <= 40
    assert set(made) <= set("abcdefghijklmnopqrstuvwxyz0123456789-")
    assert made not in WINDOWS_DEVICES
    assert slug(made) == made
    assert Home(Path("/h")).project_dir(f"{made}-0123abcd").parent == Path("/h/projects")


@pytest.mark.skipif(sys.platform != "linux", reason="the places are written out for Linux alone")
@pytest.mark.parametrize("named", [None, "", "relative/place", "/elsewhere"])
def test_the_platforms_folders_are_those_of_platformdirs(monkeypatch, named: str | None):
    for variable in ("XDG_DATA_HOME", "XDG_CONFIG_HOME"):
        monkeypatch.delenv(variable, raising=False)
        if named is not None:
            monkeypatch.setenv(variable, named)
    assert platform_folder("data", os.environ) == platformdirs.user_data_path("kept", appauthor=False)
    assert platform_folder("config", os.environ) == platformdirs.user_config_path("kept", appauthor=False)
