"""Whether the code that a memory names is still as it was, in real git repositories."""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

import kept
from kept import Kept
from kept.freshness import CODE, code_of, digest_of, names_in
from kept.memory.deliver import Listener

GREETING = "def greet(name):\n    return f'Hello {name}'\n\n\ndef part():\n    return 'Bye'\n"
IDENTITY = {"GIT_AUTHOR_NAME": "A", "GIT_AUTHOR_EMAIL": "a@example.org"}
IDENTITY |= {"GIT_COMMITTER_NAME": "A", "GIT_COMMITTER_EMAIL": "a@example.org", "GIT_CONFIG_GLOBAL": os.devnull}


class Repository:
    """A real repository, and the memory of its project."""

    def __init__(self, root: Path, home: Path) -> None:
        self.root, self.home = root, home
        root.mkdir(exist_ok=True)

    def git(self, *arguments: str) -> str:
        command = ["git", "-C", str(self.root), *arguments]
        done = subprocess.run(command, capture_output=True, text=True, check=True, env=os.environ | IDENTITY)
        return done.stdout.strip()

    def commit(self, **files: str | None) -> str:
        """Write files (`a__b_py` is a/b.py), or delete those that are None, and commit."""
        for name, content in files.items():
            path = self.root / name.replace("__", "/").replace("_py", ".py")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.unlink() if content is None else path.write_text(content)
        self.git("add", "-A")
        self.git("commit", "-q", "--allow-empty", "-m", "work")
        return self.git("rev-parse", "HEAD")

    def open(self, root: Path | None = None) -> Kept:
        return kept.open(project=root or self.root, home=self.home, origin="user")


@pytest.fixture
def repository(tmp_path: Path) -> Iterator[Repository]:
    made = Repository(tmp_path / "shop", tmp_path / "home")
    made.git("init", "-q", "-b", "main")
    made.commit(src__hello_py=GREETING)
    return made


def told(memory: Kept, prompt: str) -> str:
    return memory.deliveries.for_prompt(prompt, Listener(session=os.urandom(4).hex(), event="prompt"))


SAID = "The greeting in src/hello.py is translated by greet() before it is shown."
PROMPT = "Where is the greeting translated and shown?"


def test_a_memory_of_an_unchanged_file_is_told_as_it_is(repository: Repository) -> None:
    with repository.open() as memory:
        memory.remember(SAID)
        assert SAID in told(memory, PROMPT)
        assert "changed since" not in told(memory, PROMPT)


def test_a_memory_is_told_with_the_file_that_has_changed_since(repository: Repository) -> None:
    with repository.open() as memory:
        memory.remember("The greeting in src/hello.py is translated before it is shown.", check="make greeting")
        repository.commit(src__hello_py=GREETING.replace("Bye", "Good bye"))
        assert "is shown. (src/hello.py has changed since; check: make greeting)" in told(memory, PROMPT)
        assert memory.recall("greeting translated")[0].note.startswith("src/hello.py has changed since")


def test_another_function_of_the_file_may_change(repository: Repository) -> None:
    with repository.open() as memory:
        memory.remember(SAID)
        repository.commit(src__hello_py="# a comment\n\n" + GREETING.replace("Bye", "Good bye").replace("'", '"'))
        assert "changed since" not in told(memory, PROMPT)
        repository.commit(src__hello_py=GREETING.replace("Hello", "Hi"))
        assert "(greet in src/hello.py has changed since)" in told(memory, PROMPT)


@pytest.mark.parametrize(
    "said", ["The function greet in src/hello.py is never translated", "greet in src/hello.py is slow"]
)
def test_a_function_is_known_by_its_bare_name_beside_its_file(repository: Repository, said: str) -> None:
    with repository.open() as memory:
        stored = memory.remember(said).memory
        assert stored is not None
        repository.commit(src__hello_py=GREETING.replace("Bye", "Good bye"))
        assert memory.look().standing(stored).state == "fresh"
        repository.commit(src__hello_py=GREETING.replace("Hello", "Hi"))
        assert memory.look().standing(stored).note == "greet in src/hello.py has changed since"


def test_a_memory_of_a_deleted_file_is_not_told_at_a_prompt_and_waits_in_the_review(repository: Repository) -> None:
    with repository.open() as memory:
        stored = memory.remember(SAID).memory
        repository.commit(src__hello_py=None)
        assert told(memory, PROMPT) == ""
        assert memory.recall("greeting translated")[0].note == "greet in src/hello.py is gone"
        finding = memory.reviews.list(reasons=("stale",)).findings[0]
        assert stored is not None
        assert (finding.ref, finding.detail, str(finding.proposed)) == (
            stored.ref,
            "greet in src/hello.py is gone",
            f"archive:{stored.ref}",
        )


def test_only_a_word_makes_a_memory_fresh_again_and_no_reading(repository: Repository) -> None:
    with repository.open() as memory:
        memory.remember("The greeting in src/hello.py is translated before it is shown.")
        for change, act in enumerate((memory.reinforce, lambda ref: memory.reviews.apply([f"keep:{ref}"]))):
            repository.commit(src__hello_py=GREETING + f"# {change}\nNEW = {change}\n")
            hit = memory.recall("greeting translated")[0]
            memory.get(hit.ref)
            assert "changed since" in told(memory, PROMPT)
            act(hit.ref)
            assert "changed since" not in told(memory, PROMPT)
            assert not memory.reviews.list(reasons=("stale",)).findings


@pytest.mark.parametrize("way", ["committed", "staged", "by hand"])
def test_an_anchor_follows_a_renamed_file(repository: Repository, way: str) -> None:
    with repository.open() as memory:
        stored = memory.remember(SAID).memory
        if way == "by hand":
            (repository.root / "src/hello.py").rename(repository.root / "src/welcome.py")
        else:
            repository.git("mv", "src/hello.py", "src/welcome.py")
        if way == "committed":
            repository.commit()
        memory.store.follow_code()
        assert stored is not None
        assert f"{SAID} (greet is in src/welcome.py now)" in told(memory, PROMPT)
        code = code_of(memory.get(stored.ref))
        assert code is not None
        assert [one.path for one in code.anchors] == ["src/welcome.py"]
        assert memory.look().standing(memory.get(stored.ref)).state == "moved"
        assert memory.history(stored.ref)[-1].action == "follow"


def test_a_file_that_was_renamed_and_changed_is_told_with_both(repository: Repository) -> None:
    with repository.open() as memory:
        ref = memory.remember("The greeting in src/hello.py is translated before it is shown.").ref
        repository.git("mv", "src/hello.py", "src/welcome.py")
        repository.commit()
        repository.commit(src__welcome_py=GREETING.replace("Bye", "Good bye"))
        memory.store.follow_code()
        note = "(src/hello.py is src/welcome.py now; src/welcome.py has changed since)"
        assert note in told(memory, PROMPT)
        assert ref is not None
        memory.reinforce(ref)
        assert "src/welcome.py" not in told(memory, PROMPT)


def test_a_file_that_grew_too_large_to_compare_has_changed(repository: Repository) -> None:
    with repository.open() as memory:
        memory.remember("The greeting in src/hello.py is translated before it is shown.")
        repository.commit(src__hello_py=GREETING * 40_000)
        assert "src/hello.py has changed since" in told(memory, PROMPT)


LANGUAGES = {
    "py": """
class Ferry:
    @cached
    def load(self, cars):
        text = '''
not the end of it
'''
        return cars + 1

def other():
    return 2
""",
    "ts": """
export class Ferry {
  @cached()
  async load(cars: number): Promise<number> {
    const sign = '}';
    return cars + 1;
  }
}
export const other = (x: number) => {
  return 2;
};
""",
    "go": """
type Ferry struct {
	cars int
}

func (f *Ferry) load(cars int) (int, error) {
	sign := '}'
	return cars + 1, nil
}

func other() int {
	return 2
}
""",
    "rs": """
impl Ferry {
    #[inline]
    pub fn load<'a>(&'a self, cars: usize) -> usize {
        let sign = '}';
        cars + 1
    }
}
pub(crate) fn other() -> usize {
    return 2
}
""",
    "java": """
public class Harbour {
    @Override
    public int load(int cars) {
        char sign = '}';
        return cars + 1;
    }
    private static int other() {
        return 2;
    }
}
""",
}


@pytest.mark.parametrize("suffix", LANGUAGES)
def test_a_symbol_is_compared_without_its_neighbours_in_five_languages(suffix: str) -> None:
    source, path = LANGUAGES[suffix], f"src/x.{suffix}"
    known = digest_of(source, path, "load")
    assert known is not None
    assert digest_of(source.replace("return 2", "return 3"), path, "load") == known
    assert digest_of(source.replace("cars + 1", "cars   +  1"), path, "load") == known
    assert digest_of(source.replace("cars + 1", "cars + 7"), path, "load") != known
    assert digest_of(source.replace("load", "stow"), path, "load") is None
    assert digest_of(source.replace("return 2", "return 3"), path, "other") != digest_of(source, path, "other")
    assert digest_of(source.replace("cars + 1", "cars + 7"), path, "other") == digest_of(source, path, "other")
    for mark in ("@cached", "#[inline]", "@Override"):
        if mark in source:
            assert digest_of(source.replace(mark, mark.replace("e", "E")), path, "load") != known


def test_layout_does_not_count_and_nesting_does() -> None:
    source = "def load(cars):\n    if cars:\n        start(cars, 1)\n        go()\n    return cars\n"
    known = digest_of(source, "x.py", "load")
    wide = source.replace("    ", "  ").replace("(cars, 1)", "(\n            cars,\n            1,\n        )")
    assert digest_of(wide, "x.py", "load") == known
    method = "class Ferry:\n" + "".join(f"    {line}\n" for line in source.splitlines())
    assert digest_of(method, "x.py", "load") == known
    assert digest_of(source.replace("        go()", "    go()"), "x.py", "load") != known


def test_the_name_of_a_file_is_no_symbol_and_a_method_is_no_file() -> None:
    assert names_in("Call load_all() of Ferry.load in `src/ferry/__init__.py`, not my_tool.py", ()) == (
        ["Ferry.load", "src/ferry/__init__.py", "my_tool.py"],
        ["load_all"],
    )
    assert names_in("Call `Ferry.load`", ())[1] == ["Ferry.load"]


def test_a_symbol_of_an_imported_memory_is_not_a_pattern() -> None:
    """One that is would take hours to match."""
    for suffix in ("py", "rs"):
        assert digest_of("a" * 40 + "!", f"x.{suffix}", "(a+)+$") is None


def test_a_check_is_shown_and_never_run(repository: Repository) -> None:
    trap = repository.root / "trap"
    with repository.open() as memory:
        ref = memory.remember(
            "The greeting in src/hello.py is translated before it is shown.", check=f"touch {trap}"
        ).ref
        repository.commit(src__hello_py=GREETING + "NEW = 1\n")
        assert f"check: touch {trap}" in told(memory, PROMPT)
        assert f"check: touch {trap}" in memory.reviews.list(reasons=("stale",)).findings[0].detail
        memory.upkeep()
        assert ref is not None
        memory.reinforce(ref)
    assert not trap.exists()


def test_an_anchor_follows_a_function_into_another_file(repository: Repository) -> None:
    with repository.open() as memory:
        stored = memory.remember(SAID).memory
        first, _, rest = GREETING.partition("\n\n\n")
        repository.commit(src__hello_py=rest, lib__words_py="import os\n\n\n" + first + "\n")
        assert not memory.reviews.list(reasons=("stale",)).findings  # git was asked
        memory.store.follow_code()
        assert stored is not None
        code = code_of(memory.get(stored.ref))
        assert code is not None
        assert [one.name for one in code.anchors] == ["greet in lib/words.py"]
        assert SAID in told(memory, PROMPT)
        assert "gone" not in told(memory, PROMPT)


def test_a_name_without_its_folder_is_anchored_where_only_one_is_meant(repository: Repository) -> None:
    with repository.open() as memory:
        stored = memory.remember("`greet` must never be called for guests without a name.").memory
        memory.store.follow_code()
        assert stored is not None
        code = code_of(memory.get(stored.ref))
        assert code is not None
        assert [one.name for one in code.anchors] == ["greet in src/hello.py"]


def test_no_anchor_leads_out_of_the_work_tree(repository: Repository, tmp_path: Path) -> None:
    (tmp_path / "secret.py").write_text("x = 1\n")
    (repository.root / "link.py").symlink_to(tmp_path / "secret.py")
    with repository.open() as memory:
        stored = memory.remember(
            "See ../secret.py, link.py, .git/config and /etc/passwd.", files=["../secret.py"]
        ).memory
        assert stored is not None
        code = code_of(memory.get(stored.ref))
        assert code is not None
        assert code.anchors == ()


def test_a_folder_without_git_and_global_memory_have_no_code(tmp_path: Path, repository: Repository) -> None:
    plain = tmp_path / "plain"
    plain.mkdir()
    (plain / "a.py").write_text("x = 1\n")
    with kept.open(project=plain, home=tmp_path / "home") as memory:
        stored = memory.remember("The number is in a.py.").memory
        assert stored is not None
        assert CODE not in (stored.data or {})
    with kept.open(project=repository.root, home=tmp_path / "home", actor=kept.Actor(role="admin")) as memory:
        stored = memory.remember("Greet in src/hello.py style.", tier="global").memory
        assert stored is not None
        assert CODE not in (stored.data or {})
