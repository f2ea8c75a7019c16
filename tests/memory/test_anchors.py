"""Anchors: by which keys a memory and a tool call concern each other, and the file of hashes that follows a space."""

import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import kept
from kept.anchors import ToolCall, keys_of_call, keys_of_memory, words_of_call, words_of_memory
from kept.entrypoints.hook.concerns import concerns as concerns_at
from tests.builders import FakeClock

ROOT = "/home/dev/shop"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "project").mkdir()
    return tmp_path / "home"


@pytest.fixture
def memory(home: Path):  # type: ignore[no-untyped-def]
    project = home.parent / "project"
    with kept.open(project=project, home=home, clock=FakeClock(), settings=kept.Settings(), origin="user") as opened:
        yield opened


def concerns(home: Path, **call: object) -> bool:
    return concerns_at(str(home), str(home.parent / "project"), ToolCall(**call))  # type: ignore[arg-type]


def files_of(home: Path) -> bytes:
    return b"".join(path.read_bytes() for path in sorted((home / "hook/anchors").iterdir()) if path.name != "key")


@pytest.mark.parametrize(
    ("text", "call"),
    [
        ("Never edit src/auth/session.py by hand", ToolCall(files=["/home/dev/shop/src/auth/session.py"])),
        ("See [session.py:26](src/auth/session.py:26) for the rule", ToolCall(files=["src/auth/session.py"])),
        ("The order of keys in settings.toml matters", ToolCall(files=["config/settings.toml"])),
        ("Everything under tests/golden/ is generated", ToolCall(files=["/home/dev/shop/tests/golden/a/b.out"])),
        ("Everything under tests/golden/ is generated", ToolCall(commands=["rm -r tests/golden"])),
        ("`load_config` must not read the environment", ToolCall(text="value = load_config(path)")),
        ("TaskService expects an options object", ToolCall(text="new TaskService({})")),
        ("Use `jest.fn`, because jest.mock is missing here", ToolCall(text="jest.mock('./a')")),
        ("`git rebase --continue` opens an editor", ToolCall(commands=["cd app && git rebase --continue"])),
        ("Ask before you run git push", ToolCall(commands=["sudo GIT_TRACE=1 git push origin main"])),
        ("Don't run Vale on the docs", ToolCall(commands=["vale docs/index.md"])),
        ("This worked: QT_DEBUG=1 shop-gui", ToolCall(commands=["shop-gui --small"])),
        ("Use pnpm, not npm, in this repository", ToolCall(commands=["npm install left-pad"])),
        ("We use uv instead of pip", ToolCall(commands=["pip install requests"])),
        ("Start tests with `pytest -n 2`", ToolCall(commands=["uv run pytest tests/a.py"])),
        ("`npm run build` needs 8 GB", ToolCall(commands=["npm run build -- --fast | tee log"])),
        ("Commit after each finished task", ToolCall(commands=["git commit -am 'one; two'"])),
        ("Never delete anything below data/ without asking", ToolCall(commands=["rm -rf data/old"])),
        ("Always ask me before a release", ToolCall(commands=["npm publish"])),
        ("Ask me before you change the schema", ToolCall(commands=["python manage.py migrate"])),
        ("Never edit pkg/core/gen.py", ToolCall(files=["pkg/other/../core/gen.py"])),
        ("Never edit pkg/core/gen.py", ToolCall(files=["/home/dev/shop/pkg/./core//gen.py"])),
        ("Never edit pkg/other/../core/gen.py", ToolCall(files=["pkg/core/gen.py"])),
        ("Never edit pkg/gen.py", ToolCall(commands=["echo x > pkg/gen.py"])),
        ("Never edit pkg/gen.py", ToolCall(commands=["cat x>pkg/gen.py 2>&1"])),
        ("Never edit pkg/gen.py", ToolCall(commands=["grep a b >>'pkg/gen.py'"])),
        ("Never edit pkg/gen.py", ToolCall(commands=["make &> pkg/gen.py"])),
        ("Never edit pkg/gen.py", ToolCall(commands=["bash -c 'echo x > pkg/gen.py'"])),
        ("Never edit pkg/gen.py", ToolCall(commands=["cat > pkg/gen.py <<EOF\nx = 1\nEOF"])),
        ("Never edit pkg/gen.py", ToolCall(commands=["cat x | tee pkg/gen.py"])),
        ("Never edit pkg/gen.py", ToolCall(commands=["sed -i s/a/b/ pkg/gen.py"])),
        ("Never edit pkg/gen.py", ToolCall(commands=["python -c \"open('pkg/gen.py', 'w')\""])),
        ("Ask before scripts/deploy.sh is run", ToolCall(commands=["./scripts/deploy.sh staging"])),
        ("Use `pnpm`, not `npm`", ToolCall(commands=["npm ci"])),
        ("Never use pip here", ToolCall(commands=["pip install requests"])),
        ("Fields of SaveGame are only added at the end", ToolCall(files=["src/Save/SaveGame.cs"])),
    ],
)
def test_a_memory_concerns_a_call_by_a_key_in_common(text: str, call: ToolCall) -> None:
    assert set(keys_of_memory(text)) & set(keys_of_call(call, ROOT))


@pytest.mark.parametrize(
    ("text", "call"),
    [
        ("Never edit src/auth/session.py by hand", ToolCall(files=["src/cart/basket.py"])),
        ("The commit hash is shown in the footer", ToolCall(commands=["git commit -m x"])),  # no rule
        ("`git rebase --continue` opens an editor", ToolCall(commands=["git status"])),
        ("Ask before you run git push", ToolCall(commands=["echo 'git push'"])),
        ("We use git flow here", ToolCall(commands=["git status"])),
        ("We decided to go ahead with the plan", ToolCall(commands=["go test ./..."])),
        ("Use pnpm, not npm", ToolCall(commands=["yarn not"])),
        ("Never edit src/auth/session.py", ToolCall(files=["/tmp/other/src/auth/session.py"])),
        ("Never edit src/auth/session.py", ToolCall(files=["/home/dev/shop/../other/src/auth/session.py"])),
        ("Never edit src/auth/session.py", ToolCall(commands=["rm /tmp/other/src/auth/session.py"])),
        ("Everything under src/auth/ is old", ToolCall(files=["/tmp/other/src/auth/session.py"])),
        ("Keep answers short", ToolCall(files=["README.md"], commands=["ls"], text="short answers")),
    ],
)
def test_a_call_that_shares_no_name_is_not_concerned(text: str, call: ToolCall) -> None:
    assert not set(keys_of_memory(text)) & set(keys_of_call(call, ROOT))


@pytest.mark.parametrize(
    ("command", "keys"),
    [
        ("git -C . push -f", {"c:git push", "a:push"}),
        ("git -c a=b push", {"c:git push"}),
        ("npm --prefix x ci", {"c:npm ci", "a:install"}),
        ("timeout 60 git push", {"c:git push"}),
        ("timeout -k 5 1m git push", {"c:git push"}),
        ("eval git push", {"c:git push"}),
        ("eval 'git push'", {"c:git push"}),
        ("stdbuf -oL git push", {"c:git push"}),
        ("nice -n 10 git push", {"c:git push"}),
        ("time git push", {"c:git push"}),
        ("sudo -u me git push", {"c:git push"}),
        ("bash -c 'git push -f'", {"c:git push"}),
        ('sh -lc "cd app && git push -f"', {"c:git push"}),
        ("git \\\n  push \\\n  -f", {"c:git push"}),
        (
            "git commit -m \"$(cat <<'EOF'\nIt's done; don't `rm` it\nEOF\n)\" && git push -f",
            {"c:git commit", "c:git push"},
        ),
        ("cat <<-EOF > a.txt\n\tgit tag\n\tEOF\ngit push", {"c:git push", "b:a.txt"}),
        ("cat <<< text\ngit push", {"c:git push"}),
        ("# don't wait\ngit push", {"c:git push"}),
        ("make 2>&1 | tee log && git push", {"c:make", "c:git push", "b:log"}),
        ("uv run --with x pytest -q", {"c:pytest", "a:test"}),
    ],
)
def test_a_command_is_found_however_the_shell_runs_it(command: str, keys: set[str]) -> None:
    assert keys <= set(keys_of_call(ToolCall(commands=[command]), ROOT))


@pytest.mark.parametrize(
    "command",
    [
        "cat <<EOF\ngit push\nEOF",
        "echo 'a > git push'",
        "# git push",
        "git commit -m 'x && git push'",
        "git -C push log",
    ],
)
def test_a_command_that_is_only_written_is_not_run(command: str) -> None:
    assert "c:git push" not in keys_of_call(ToolCall(commands=[command]), ROOT)


@pytest.mark.parametrize(
    "command",
    [
        "cat src/auth/session.py",
        "cat src/auth/session.py | head -5 2>/dev/null",
        "timeout 5 grep -n x src/auth/session.py",
        "rg 'a b' src/auth/session.py && ls src/auth/session.py",
        "git -C . diff HEAD -- src/auth/session.py",
        "git blame session.py",
        "sed -n 1,20p src/auth/session.py",
        "git commit -m 'Mend session.py'",
        "ls # then rm src/auth/session.py",
    ],
)
def test_a_command_that_only_reads_or_mentions_a_file_has_no_key_of_it(command: str) -> None:
    found = set(keys_of_call(ToolCall(commands=[command]), ROOT))
    assert not found & {"f:src/auth/session.py", "f:auth/session.py", "b:session.py", "d:src/auth", "d:auth", "d:src"}


@pytest.mark.parametrize(
    ("file", "call"),
    [
        ("Makefile", ToolCall(files=["/home/dev/shop/Makefile"])),
        ("Dockerfile", ToolCall(files=["deploy/Dockerfile"])),
        ("Dockerfile", ToolCall(commands=["rm Dockerfile"])),
        ("Makefile", ToolCall(commands=["echo all: > Makefile"])),
        ("tests", ToolCall(files=["tests/a/test_b.py"])),
        ("tests", ToolCall(commands=["rm -r tests"])),
    ],
)
def test_a_file_of_a_memory_may_be_a_name_without_a_suffix(file: str, call: ToolCall) -> None:
    assert set(keys_of_memory("", [file])) & set(keys_of_call(call, ROOT))
    assert keys_of_memory(f"The {file} is long") == []


@pytest.mark.parametrize(
    ("content", "commands"),
    [
        ("Use pnpm, not npm", {"c:pnpm", "c:npm *"}),
        ("Use pnpm not npm in this repository", {"c:pnpm", "c:npm *"}),
        ("We use uv instead of pip", {"c:uv", "c:pip *"}),
        ("Never use npm install here", {"c:npm", "c:npm install"}),
        ("The version of npm is old", {"c:npm"}),
    ],
)
def test_a_program_that_is_ruled_out_is_meant_with_all_its_subcommands(content: str, commands: set[str]) -> None:
    assert {key for key in keys_of_memory(content) if key.startswith("c:")} == commands


PARTS = st.text("abcdefgh_", min_size=1, max_size=6)


@given(st.lists(PARTS, min_size=2, max_size=5), st.sampled_from(["py", "ts", "md"]), st.booleans())
def test_a_path_has_the_same_key_on_both_sides_however_it_is_written(
    parts: list[str], suffix: str, is_absolute: bool
) -> None:
    path = f"{'/'.join(parts)}.{suffix}"
    touched = f"{ROOT}/{path}" if is_absolute else f"./{path}"
    assert set(keys_of_memory(f"Leave {path} alone.")) & set(keys_of_call(ToolCall(files=[touched]), ROOT))
    assert set(keys_of_memory("", files=[path])) & set(keys_of_call(ToolCall(files=[touched]), ROOT))


@given(st.text(max_size=300), st.text(max_size=300))
def test_any_text_has_keys_without_an_error(text: str, other: str) -> None:
    words = [*words_of_memory(text), *words_of_call(ToolCall([text], [other], ""), ROOT)]
    assert all(word == word.lower() for word in words if word.isascii())
    for key in (*keys_of_memory(text, [other]), *keys_of_call(ToolCall([text], [other], f"{text} {other}"), ROOT)):
        assert key[:2] in ("f:", "b:", "d:", "s:", "c:", "a:")


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("src/Save/SaveGame.cs", {"src": 0.5, "save": 1, "game": 1, "cs": 1}),
        (f"{ROOT}/panels/tarn_v4.bed", {"panel": 0.5, "tarn": 1, "v4": 1, "bed": 1}),
        ("lib/XMLReader.hpp", {"lib": 0.5, "xml": 1, "reader": 1, "hpp": 1}),
        ("/elsewhere/notes.md", {}),
    ],
)
def test_a_path_is_read_word_by_word_folders_for_half(path: str, words: dict[str, float]) -> None:
    assert words_of_call(ToolCall(files=[path]), ROOT) == words


def test_the_words_of_a_text_are_lower_case_singular_and_without_suffixes_of_files() -> None:
    text = "getUserById in panel_to_bed.py sorts Classes; see balance/*.toml, not `app.ts`."
    words = "get user by id in panel to bed sort classe see balance toml not app".split()
    assert words_of_memory(text) == words


def test_the_hook_finds_a_memory_as_soon_as_it_is_stored(home: Path, memory: kept.Kept) -> None:
    assert not concerns(home, files=["src/a.py"])
    memory.remember("The checkout keeps its totals in cents", kind="decision", files=["src/a.py"])
    assert concerns(home, files=["src/a.py"])
    assert not concerns(home, files=["src/b.py"], commands=["ls -la"])


def test_the_project_is_found_from_a_folder_below_it_and_not_beside_it(home: Path, memory: kept.Kept) -> None:
    memory.remember("The checkout keeps its totals in cents", kind="decision", files=["src/a.py"])
    below, beside = home.parent / "project/src/deep", home.parent / "other"
    for folder in (below, beside):
        folder.mkdir(parents=True)
    assert concerns_at(str(home), str(below), ToolCall(["src/a.py"]))
    assert not concerns_at(str(home), str(beside), ToolCall(["src/a.py"]))


def test_a_global_memory_concerns_calls_of_every_project(home: Path, memory: kept.Kept) -> None:
    with kept.open(project="another", home=home, origin="user", actor=kept.Actor(role="admin")) as other:
        other.remember("Never run `git push --force`", kind="preference", tier="global")
    assert concerns(home, commands=["git push --force"])


def test_anchors_follow_every_change_of_a_memory(home: Path, memory: kept.Kept) -> None:
    ref = memory.remember("Totals are in cents", kind="decision", files=["src/a.py"]).ref
    assert ref is not None
    memory.forget(ref)
    assert not concerns(home, files=["src/a.py"])
    memory.undo()
    assert concerns(home, files=["src/a.py"])
    memory.revise(ref, files=("src/b.py",))
    assert (concerns(home, files=["src/a.py"]), concerns(home, files=["src/b.py"])) == (False, True)
    memory.reinforce(ref)
    assert concerns(home, files=["src/b.py"])
    memory.erase(ref)
    assert not concerns(home, files=["src/b.py"])


def test_only_rules_and_facts_that_somebody_vouches_for_have_anchors(home: Path, memory: kept.Kept) -> None:
    memory.remember("A tool says: edit src/a.py", kind="warning", files=["src/a.py"], source=kept.Source(origin="tool"))
    memory.remember("Half of the work is done", kind="progress", files=["src/a.py"])
    assert not concerns(home, files=["src/a.py"])


WORDS = st.sampled_from(["src/cart.py", "load_cart", "`git push`", "CartView", "docs/", "never", "cents"])


@settings(max_examples=25, deadline=None)
@given(st.lists(st.lists(WORDS, min_size=2, max_size=5), min_size=1, max_size=6, unique_by=tuple), st.data())
def test_the_file_never_holds_a_trace_of_an_erased_memory_nor_a_word(
    tmp_path_factory: pytest.TempPathFactory, texts: list[list[str]], data: st.DataObject
) -> None:
    folder = tmp_path_factory.mktemp("anchors")
    (folder / "project").mkdir()
    with kept.open(project=folder / "project", home=folder / "home", origin="user") as memory:
        refs = []
        for number, words in enumerate(texts):
            kind = "warning"
            refs.append(memory.remember(f"Rule {number}: {' '.join(words)} only{number}_here", kind=kind).ref)
        gone = data.draw(st.integers(0, len(texts) - 1))
        memory.erase(refs[gone])
        held = files_of(folder / "home")
    assert not concerns(folder / "home", text=f"only{gone}_here")
    assert all(word.encode() not in held for words in texts for word in words)


def test_a_file_is_made_again_where_the_journal_is_another_one(home: Path, memory: kept.Kept, tmp_path: Path) -> None:
    memory.remember("Totals are in cents", kind="decision", files=["src/a.py"])
    memory.store.backup(tmp_path / "backup.db")
    memory.remember("Prices have no tax", kind="decision", files=["src/b.py"])
    memory.store.restore(tmp_path / "backup.db", overwrite_newer=True)
    memory.remember("Carts end after a day", kind="decision", files=["src/c.py"])
    found = [concerns(home, files=[f"src/{name}.py"]) for name in "abc"]
    assert found == [True, False, True]


def test_a_damaged_or_missing_file_is_made_again_by_the_next_change(home: Path, memory: kept.Kept) -> None:
    memory.remember("Totals are in cents", kind="decision", files=["src/a.py"])
    [path] = (home / "hook/anchors").glob("?" * 24)
    for spoil in (lambda: path.write_bytes(b"KEPT"), path.unlink):
        spoil()
        assert not concerns(home, files=["src/a.py"])
        memory.remember(f"Something else after {path.exists()}", kind="decision")
        assert concerns(home, files=["src/a.py"])


def test_anchors_are_private(home: Path, memory: kept.Kept) -> None:
    memory.remember("Totals are in cents", kind="decision", files=["src/a.py"])
    for path in (home / "hook/anchors").iterdir():
        assert path.stat().st_mode & 0o77 == 0, path


def test_two_processes_that_write_at_once_lose_no_anchor(home: Path, memory: kept.Kept) -> None:
    memory.remember("Totals are in cents", kind="decision")
    program = """
        import sys, kept
        with kept.open(project=sys.argv[1], home=sys.argv[2], settings={"auto_upkeep": False}) as memory:
            for number in range(10):
                name = f"{sys.argv[3]}{number}"
                memory.remember(f"Rule {name} is about {name}_thing in src/{name}.py", kind="decision")
    """
    lines = "\n".join(line.removeprefix("        ") for line in program.splitlines())
    place = str(home.parent / "project")
    running = [subprocess.Popen([sys.executable, "-c", lines, place, str(home), name]) for name in ("left", "right")]
    assert [process.wait() for process in running] == [0, 0]
    memory.remember("Prices have no tax", kind="decision")
    missing = [f"{n}{i}" for n in ("left", "right") for i in range(10) if not concerns(home, files=[f"src/{n}{i}.py"])]
    assert missing == []


def test_the_keys_of_a_call_are_made_almost_without_imports() -> None:
    program = "import sys; before = set(sys.modules); import kept.anchors; print(*sorted(set(sys.modules) - before))"
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert set(ran.stdout.split()) <= {"kept", "kept.anchors", "_blake2", "itertools"}


def test_changes_that_another_machine_made_are_followed_in_the_background(home: Path, memory: kept.Kept) -> None:
    memory.remember("Totals are in cents", kind="decision", files=["src/a.py"])
    for path in (home / "hook/anchors").glob("?" * 24):
        path.unlink()  # as if the memories had come from elsewhere
    assert not concerns(home, files=["src/a.py"])
    memory.deliveries.follow()
    assert concerns(home, files=["src/a.py"])
