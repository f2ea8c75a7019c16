"""What a directory is: a repository, a plain directory, or no place for a project."""

import os
import shutil
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from kept.errors import InvalidInput, NotFound
from kept.projects.registry import Place, identify, no_project_directories, path_text, read_id, text_path, write_id
from tests.folders import directory, git, make_repository, make_worktree, needs_git, posix_only


def place(path: Path) -> Place:
    return identify(path, {})


@pytest.fixture
def here(tmp_path: Path) -> Path:
    return tmp_path.resolve()


# Repositories


def test_a_repository_is_one_place_from_every_directory_in_it(here: Path) -> None:
    repository = make_repository(here / "web")
    (repository / "src/deep").mkdir(parents=True)
    expected = Place(repository, repository / ".git")
    for inside in (".", "src", "src/deep", "src/../src", ".git", ".git/objects"):
        assert place(repository / inside) == expected


def test_a_worktree_is_the_place_of_its_repository(here: Path) -> None:
    main = make_repository(here / "web")
    tree = make_worktree(main / ".git", here / "trees/fix")
    (tree / "src").mkdir()
    assert place(tree) == place(tree / "src") == place(main)
    assert place(main / ".git/worktrees/fix") == place(main)


def test_a_worktree_whose_repository_is_out_of_reach_is_a_plain_place(here: Path) -> None:
    """Only the repository can say that a worktree is its own; a `.git` file alone may come with an archive."""
    main = make_repository(here / "web")
    tree = make_worktree(main / ".git", here / "fix")
    main.rename(here / "unmounted")
    assert place(tree) == Place(tree)
    (here / "unmounted").rename(main)
    assert place(tree) == place(main)


def test_a_nested_repository_is_a_place_of_its_own(here: Path) -> None:
    outer = make_repository(here / "web")
    inner = make_repository(outer / "vendor/lib")
    assert place(inner) == Place(inner, inner / ".git")
    assert place(outer / "vendor") == place(outer)


@pytest.mark.parametrize("pointer", ["gitdir: ../.git/modules/lib\n", "gitdir: ../.git/modules/lib", "absolute"])
def test_a_submodule_is_a_place_of_its_own(here: Path, pointer: str) -> None:
    outer = make_repository(here / "web")
    module = outer / ".git/modules/lib"
    module.parent.mkdir()
    make_repository(here / "scratch").joinpath(".git").rename(module)
    (outer / "lib").mkdir()
    (outer / "lib/.git").write_text(f"gitdir: {module}\n" if pointer == "absolute" else pointer)
    (module / "config").write_text("[core]\n\tbare = false\n\tworktree = ../../../lib\n")
    assert place(outer / "lib") == Place(outer / "lib", module)


def test_a_bare_repository_is_a_place_and_gives_its_name(here: Path) -> None:
    bare = here / "web.git"
    make_repository(here / "scratch").joinpath(".git").rename(bare)
    assert place(bare) == place(bare / "refs") == Place(bare, bare)
    assert place(bare).name == "web"


def test_worktrees_beside_a_hidden_bare_repository_carry_the_name_of_their_folder(here: Path) -> None:
    make_repository(here / "web").joinpath(".git").rename(here / "web/.bare")
    (here / "web/.git").write_text("gitdir: ./.bare\n")
    make_worktree(here / "web/.bare", here / "web/main")
    assert place(here / "web") == place(here / "web/main") == Place(here / "web", here / "web/.bare")
    assert place(here / "web/main").name == "web"


@posix_only
def test_a_symbolic_link_to_a_checkout_is_the_same_place(here: Path) -> None:
    repository = make_repository(here / "web")
    (repository / "src").mkdir()
    (here / "link").symlink_to(repository)
    (here / "deep").symlink_to(repository / "src")
    assert place(here / "link") == place(here / "deep") == place(repository)


@posix_only
def test_a_repository_whose_git_directory_is_linked_from_elsewhere_is_found(here: Path) -> None:
    repository = make_repository(here / "web")
    (repository / ".git").rename(here / "store")
    (repository / ".git").symlink_to(here / "store")
    (here / "store/config").write_text(f"[core]\n\tworktree = {repository}\n")
    assert place(repository) == Place(repository, here / "store")


def _pointing_file(stranger: Path, victim: Path) -> None:
    (stranger / ".git").write_text(f"gitdir: {victim}\n")


def _pointing_at_no_worktree(stranger: Path, victim: Path) -> None:
    (stranger / ".git").write_text(f"gitdir: {victim}/worktrees/none\n")


def _pointing_at_anothers_worktree(stranger: Path, victim: Path) -> None:
    make_worktree(victim, stranger.parent / "fix")
    (stranger / ".git").write_text(f"gitdir: {victim}/worktrees/fix\n")


def _link(stranger: Path, victim: Path) -> None:
    (stranger / ".git").symlink_to(victim)


def _foreign_commondir(stranger: Path, victim: Path) -> None:
    (directory(stranger / ".git") / "HEAD").write_text("ref: refs/heads/main\n")
    (stranger / ".git/commondir").write_text(f"{victim}\n")


@posix_only
@pytest.mark.parametrize(
    "claim",
    [_pointing_file, _pointing_at_no_worktree, _pointing_at_anothers_worktree, _link, _foreign_commondir],
)
def test_a_folder_does_not_become_a_repository_that_does_not_link_back(
    here: Path, claim: Callable[[Path, Path], None]
) -> None:
    """An archive may hold any `.git`; the memory of another project is not for whoever unpacks it."""
    victim = make_repository(here / "web")
    stranger = directory(here / "stranger")
    claim(stranger, victim / ".git")
    found = place(stranger)
    assert found.directory == stranger
    assert found.git_common_dir in (None, stranger / ".git")


def _gone(victim: Path) -> None:
    shutil.rmtree(victim)


def _plain(victim: Path) -> None:
    shutil.rmtree(victim / ".git")


def _damaged(victim: Path) -> None:
    shutil.rmtree(victim / ".git/objects")


@posix_only
@pytest.mark.parametrize("left", [_gone, _plain, _damaged])
@pytest.mark.parametrize("path", [".git/worktrees/x", "worktrees/x", ".bare/worktrees/x", ".git", ".git/modules/x"])
@pytest.mark.parametrize("is_link", [False, True])
def test_a_git_file_never_names_a_place_that_is_not_a_repository(
    here: Path, left: Callable[[Path], None], path: str, is_link: bool
) -> None:
    """A plain directory, or a repository that is deleted or not mounted: its memory is not for an archive."""
    victim, stranger = make_repository(here / "web"), directory(here / "stranger")
    make_worktree(victim / ".git", here / "fix")
    left(victim)
    if is_link:
        (stranger / ".git").symlink_to(victim / path)
    else:
        (stranger / ".git").write_text(f"gitdir: ../web/{path}\n")
    assert place(stranger) == Place(stranger)


def test_a_worktree_inside_a_folder_does_not_make_that_folder_a_repository(here: Path) -> None:
    """Else Kept would write its id into it."""
    inside = directory(here / "app/worktrees/x")
    (inside / "HEAD").write_text("ref: refs/heads/main\n")
    (inside / "commondir").write_text("../..\n")
    (inside / "gitdir").write_text(f"{here / 'stranger/.git'}\n")
    (directory(here / "stranger") / ".git").write_text(f"gitdir: {inside}\n")
    for path in (inside, here / "stranger"):
        assert here / "app" not in (place(path).git_common_dir, place(path).directory)


@pytest.mark.parametrize(
    "line",
    [
        b"worktree=" + b" " * 60_000 + b"\0",
        b" " * 60_000 + b"worktree",
        b"worktree" + b"\t" * 30_000 + b"=" + b" " * 30_000 + b"\0",
        b"worktree=" + b'"' * 60_000 + b"\0",
        b'worktree="' + b' "' * 30_000,
        b"worktree=" * 7_000,
        b"\n worktree \0=" * 5_000,
        b"worktree=\n" * 6_000,
        b"worktree=" + b"../" * 20_000,
    ],
    ids=range(9),
)
def test_a_git_configuration_never_takes_long_to_read(here: Path, line: bytes) -> None:
    make_repository(here / "store")
    (here / "store/.git/config").write_bytes(b"[core]\n" + line + b"\n")
    (directory(here / "stranger") / ".git").write_text("gitdir: ../store/.git\n")
    start = time.perf_counter()
    assert place(here / "stranger") == Place(here / "stranger")
    assert time.perf_counter() - start < 1


@pytest.mark.parametrize("line", ["worktree = {}", "\tworkTree={}", ' worktree = "{}" ', "worktree\t=\t{}\r"])
def test_a_git_directory_elsewhere_may_name_its_work_tree_as_git_allows(here: Path, line: str) -> None:
    make_repository(here / "scratch").joinpath(".git").rename(here / "store")
    tree = directory(here / "split")
    (tree / ".git").write_text("gitdir: ../store\n")
    (here / "store/config").write_text(f"[core]\n\tbare = false\n{line.format(tree)}\n")
    assert place(tree) == Place(tree, here / "store")


def test_a_folder_of_a_repository_that_looks_like_a_bare_one_is_part_of_the_repository(here: Path) -> None:
    """A clone can hold such a folder, with the id of another project in it."""
    clone = make_repository(here / "clone")
    shutil.copytree(clone / ".git", clone / "docs")
    (clone / "docs/kept-id").write_text("0123abcd\n")
    for inside in ("docs", "docs/refs"):
        assert place(clone / inside) == place(clone)


@needs_git
def test_real_git_agrees(here: Path) -> None:
    main = here / "web"
    main.mkdir()
    git("init", "-q", cwd=main)
    git("commit", "-q", "--allow-empty", "-m", "first", cwd=main)
    git("worktree", "add", "-q", here / "fix", cwd=main)
    git("clone", "-q", "--bare", main, here / "bare.git", cwd=here)
    git("clone", "-q", main, here / "library", cwd=here)
    git("submodule", "add", "-q", here / "library", "lib", cwd=main)
    git("init", "-q", "--separate-git-dir", here / "store", here / "split", cwd=here)
    assert place(main) == place(here / "fix") == Place(main, main / ".git")
    assert place(here / "bare.git") == Place(here / "bare.git", here / "bare.git")
    assert place(main / "lib") == Place(main / "lib", main / ".git/modules/lib")
    assert place(here / "split") == Place(here / "split")  # git writes no link back: known by its path alone
    git("config", "core.worktree", here / "split", cwd=here / "split")
    assert place(here / "split") == Place(here / "split", here / "store")
    assert place(here / "library") == Place(here / "library", here / "library/.git")


@needs_git
def test_git_works_on_with_our_file_in_its_directory_and_does_not_clone_it(here: Path) -> None:
    main = here / "web"
    main.mkdir()
    git("init", "-q", cwd=main)
    git("commit", "-q", "--allow-empty", "-m", "first", cwd=main)
    assert write_id(place(main), "0123abcd")
    git("fsck", "--strict", cwd=main)
    git("gc", "-q", "--prune=now", cwd=main)
    git("clone", "-q", main, here / "clone", cwd=here)
    assert read_id(place(main).git_common_dir) == "0123abcd"
    assert read_id(place(here / "clone").git_common_dir) is None


# What only looks like a repository


@pytest.mark.parametrize("content", [b"", b"gitdir: ", b"nonsense", b"gitdir: a\0b", b"\xff\xfe", b"x" * 100_000])
def test_a_git_file_that_says_nothing_is_no_repository(here: Path, content: bytes) -> None:
    (here / ".git").write_bytes(content)
    assert place(here).git_common_dir is None


def test_a_git_file_that_leads_nowhere_makes_its_directory_a_plain_place(here: Path) -> None:
    (here / "lib/src").mkdir(parents=True)
    (here / "lib/.git").write_text("gitdir: ../gone\n")
    assert place(here / "lib/src") == Place(here / "lib")


def test_an_empty_git_directory_is_no_repository(here: Path) -> None:
    outer = make_repository(here / "web")
    (outer / "sub/.git").mkdir(parents=True)
    assert place(outer / "sub") == place(outer)


@posix_only
def test_a_pipe_in_place_of_a_file_makes_nobody_wait(here: Path) -> None:
    os.mkfifo(here / ".git")
    assert place(here) == Place(here)
    repository = make_repository(here / "web")
    os.mkfifo(repository / ".git/kept-id")
    os.mkfifo(repository / ".git/commondir")
    assert read_id(place(repository).git_common_dir) is None


@posix_only
def test_links_in_a_circle_are_a_clear_error_or_no_repository(here: Path) -> None:
    (here / "a").symlink_to(here / "b")
    (here / "b").symlink_to(here / "a")
    with pytest.raises(InvalidInput):
        place(here / "a")
    (here / "c").mkdir()
    (here / "c/.git").symlink_to(here / "c/.git")
    assert place(here / "c") == Place(here / "c")


# Plain directories, and those that are no projects


def test_a_directory_outside_any_repository_is_its_own_place(here: Path) -> None:
    assert place(here) == Place(here)
    assert place(here).name == here.name


def test_home_root_and_temporary_directories_are_no_projects_but_what_is_below_them_is(here: Path) -> None:
    ada, scratch = here / "ada", here / "scratch"
    directory(ada / "notes")
    directory(scratch / "job")
    none = no_project_directories({"HOME": str(ada), "TMPDIR": str(scratch)})
    assert identify(ada, none).no_project == "your home directory"
    assert identify(scratch, none).no_project == "a directory for temporary files"
    assert identify(Path(here.anchor), none).no_project == "the root of the file system"
    for fine in (ada / "notes", scratch / "job", here):
        assert identify(fine, none).no_project == ""


@posix_only
@pytest.mark.parametrize("root", ["/tmp", "/var/tmp", "/"])
def test_temporary_roots_are_no_projects_whatever_the_environment_says(root: str) -> None:
    assert identify(Path(root), no_project_directories({})).no_project


@posix_only
def test_home_is_no_project_by_another_name_either(here: Path) -> None:
    (here / "ada").mkdir()
    (here / "link").symlink_to(here / "ada")
    assert identify(here / "ada", no_project_directories({"HOME": str(here / "link")})).no_project


def test_a_repository_of_dot_files_does_not_own_all_of_home(here: Path) -> None:
    ada = make_repository(here / "ada")
    (ada / "notes").mkdir()
    none = no_project_directories({"HOME": str(ada)})
    assert identify(ada, none).no_project
    assert identify(ada / "notes", none) == Place(ada / "notes")


def test_a_bare_repository_in_home_does_not_own_all_of_home(here: Path) -> None:
    make_repository(here / "scratch").joinpath(".git").rename(directory(here / "ada") / ".bare")
    tree = make_worktree(here / "ada/.bare", here / "tree")
    none = no_project_directories({"HOME": str(here / "ada")})
    assert identify(tree, none) == Place(here / "ada/.bare", here / "ada/.bare")


# Bad paths and odd names


@pytest.mark.parametrize("name", ["a\0b", "a\ud800", "x" * 300, "y/" * 3000])
def test_an_impossible_path_is_a_clear_error(here: Path, name: str) -> None:
    with pytest.raises((InvalidInput, NotFound)) as caught:
        place(here / name)
    str(caught.value).encode()


def test_a_missing_directory_and_a_file_are_clear_errors(here: Path) -> None:
    with pytest.raises(NotFound, match="There is no directory"):
        place(here / "missing")
    (here / "file").touch()
    with pytest.raises(InvalidInput, match="is a file"):
        place(here / "file")
    with pytest.raises(InvalidInput):
        place(here / "file/below")


@posix_only
@pytest.mark.skipif(sys.platform == "darwin", reason="macOS allows only Unicode file names")
def test_a_directory_whose_name_is_not_unicode_has_a_name_and_can_be_written_down(here: Path) -> None:
    odd = Path(os.fsdecode(os.fsencode(here) + b"/caf\xe9"))
    odd.mkdir()
    assert place(odd).name == "caf\N{REPLACEMENT CHARACTER}"
    place(odd).key.encode()
    assert text_path(place(odd).key) == odd


@pytest.mark.parametrize("name", ["web", "Größe 東京 🚀", "100%", "file:", "a b"])
def test_a_path_that_is_unicode_is_written_down_as_it_is(here: Path, name: str) -> None:
    assert path_text(here / name) == str(here / name)
    assert text_path(path_text(here / name)) == here / name


@posix_only
def test_a_name_taken_from_a_directory_can_be_printed(here: Path) -> None:
    (here / "two\nlines\x1b[31m").mkdir()
    assert place(here / "two\nlines\x1b[31m").name == "two lines [31m"
    assert Place(Path("/")).name == "project"


# The id in the repository


@pytest.mark.parametrize("content", [b"", b"0123ABCD", b"../../etc", b"0123abcd9", b"\xff" * 8, b"0123abcd\nmore"])
def test_what_is_not_an_id_is_not_taken_for_one(here: Path, content: bytes) -> None:
    repository = make_repository(here / "web")
    (repository / ".git/kept-id").write_bytes(content)
    assert read_id(place(repository).git_common_dir) is None


def test_an_id_is_written_once_for_all_worktrees(here: Path) -> None:
    main = make_repository(here / "web")
    tree = make_worktree(main / ".git", here / "fix")
    assert write_id(place(tree), "0123abcd")
    assert read_id(place(main).git_common_dir) == "0123abcd"


def test_a_plain_directory_holds_no_id_and_nothing_is_written_into_it(here: Path) -> None:
    (here / "notes").mkdir()
    assert not write_id(place(here / "notes"), "0123abcd")
    assert read_id(place(here / "notes").git_common_dir) is None
    assert list((here / "notes").iterdir()) == []


def test_identifying_a_place_is_cheap(here: Path) -> None:
    """Well under a millisecond, so that a hook can do it at every prompt; no git is started."""
    deep = make_repository(here / "web") / "a/b/c/d/e/f"
    deep.mkdir(parents=True)
    none = no_project_directories({})
    took_ms = []
    for _ in range(50):
        start = time.perf_counter()
        identify(deep, none)
        took_ms.append((time.perf_counter() - start) * 1000)
    assert min(took_ms) < 1
