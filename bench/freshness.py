"""Measure freshness on histories: this repository's own, and generated ones, replayed with real git.

Memories about files and functions are written at several commits; then the state that Kept tells at the last commit is
compared with the truth. In a generated history (Python, TypeScript, Go, Rust, Java) the truth is kept by the script
that makes it. In the history of this clone it is the syntax tree of the function: comments and layout do not count.

    python -m bench.freshness            # 3 generated repositories with 200 commits, and the history of this clone
    python -m bench.freshness --tiny     # one with 20 commits, without the history of this clone
"""

import argparse
import ast
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

import kept
from bench.measure import Bar, options, report, table
from kept import Kept
from kept.freshness import code_of

ROOT = Path(__file__).parent.parent
IDENTITY = {"GIT_CONFIG_GLOBAL": os.devnull} | {
    f"GIT_{who}_{what}": "a@example.org" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")
}
MOST_FUNCTIONS = 150  # of this clone
STEPS = (25, 100, 250)  # commits between the writing and the telling


def git(root: Path, *arguments: str) -> str:
    command = ["git", "-C", str(root), *arguments]
    done = subprocess.run(command, capture_output=True, check=True, env=os.environ | IDENTITY)
    return done.stdout.decode("utf-8", "replace").strip()


TEMPLATES = {
    "py": "def {name}(value):\n    total = value + {number}\n    return total * 2\n",
    "ts": "function {name}(value: number): number {{\n  const total = value + {number};\n  return total * 2;\n}}\n",
    "go": "func {name}(value int) int {{\n\ttotal := value + {number}\n\treturn total * 2\n}}\n",
    "rs": "pub fn {name}(value: i64) -> i64 {{\n    let total = value + {number};\n    total * 2\n}}\n",
    "java": "  static int {name}(int value) {{\n    int total = value + {number};\n    return total * 2;\n  }}\n",
}
HEADS = {"py": "import os\n", "ts": "import fs from 'fs';\n", "go": "package work\n", "rs": "use std::fs;\n"}
HEADS["java"] = "class Work {\n"
KINDS = ("edit",) * 6 + ("layout",) * 6 + ("add",) * 4 + ("rename", "rename and edit", "move", "move and edit")
KINDS += ("delete", "drop")
WRITTEN = (0, 0.25, 0.5, 0.75, 0.9)  # parts of a history after which memories are written


class Function(NamedTuple):
    """A function of a generated file: its version, and the comments above it."""

    version: int
    comments: str = ""


class Claim(NamedTuple):
    """A memory about a function, or about a file (name is ""), and the truth when it was written."""

    ref: str
    name: str
    path: str
    versions: dict[str, int]
    text: str


class Generated:
    """A repository whose files are changed, renamed and deleted at random, and its functions moved."""

    def __init__(self, root: Path, seed: int) -> None:
        self.root, self.random = root, random.Random(seed)
        self.files: dict[str, dict[str, Function]] = {}
        self.now_at: dict[str, str] = {}  # path of a file → its path after renames, "" if it was deleted
        self.texts: dict[str, str] = {}
        root.mkdir()
        git(root, "init", "-q", "-b", "main")
        for number in range(20):
            names = [f"work_{number}_{place}" for place in range(5)]
            suffix = list(TEMPLATES)[number % len(TEMPLATES)]
            self.files[f"src/part_{number}/file_{number}.{suffix}"] = dict.fromkeys(names, Function(number))
        self.save("begin")

    def save(self, message: str) -> None:
        for path, functions in self.files.items():
            suffix = path.rpartition(".")[2]
            bodies = [
                one.comments + TEMPLATES[suffix].format(name=name, number=one.version)
                for name, one in functions.items()
            ]
            self.texts[path] = HEADS[suffix] + "\n\n" + "\n\n".join(bodies) + ("}\n" if suffix == "java" else "")
            (self.root / path).parent.mkdir(parents=True, exist_ok=True)
            (self.root / path).write_text(self.texts[path])
            self.now_at.setdefault(path, path)
        git(self.root, "add", "-A")
        git(self.root, "commit", "-q", "--allow-empty", "-m", message)

    def step(self, number: int) -> None:
        """Make one commit."""
        kind = self.random.choice(KINDS)
        path = self.random.choice([one for one in sorted(self.files) if len(self.files[one]) > 3])
        own = self.files[path]
        name = self.random.choice(sorted(own))
        suffix = path.rpartition(".")[2]
        edited = Function(number + 1000)
        if kind.startswith("rename"):
            if "edit" in kind:
                own[name] = edited
            self._rename(path, f"src/other_{number}/moved_{number}.{suffix}")
        elif kind == "delete" and len(self.files) > 12:
            self._rename(path, "")
        elif kind.startswith("move"):
            others = [one for one in sorted(self.files) if one != path and one.endswith(f".{suffix}")]
            home = self.files[self.random.choice(others)] if others else own
            home[name] = edited if "edit" in kind else own[name]
            if home is not own:
                del own[name]
        elif kind == "drop":
            del own[name]
        elif kind == "layout":
            sign, other = "#" if suffix == "py" else "//", self.random.choice(sorted(own))
            own[name] = own[name]._replace(comments=f"{sign} {number}: see {other}\n")
        elif kind == "add":
            own[f"new_{number}"] = edited
        else:
            own[name] = edited
        self.save(kind)

    def _rename(self, path: str, new: str) -> None:
        functions = self.files.pop(path)
        (self.root / path).unlink()
        self.now_at |= {old: new for old, now in self.now_at.items() if now == path}
        if new:
            self.files[new] = functions

    def claims(self, memory: Kept) -> list[Claim]:
        """Store a memory about every function and every file."""
        names = [(path, name) for path, own in sorted(self.files.items()) for name in ("", *sorted(own))]
        refs = remember_all(memory, names)
        return [
            Claim(refs[path, name], name, path, self._versions(path, name), self.texts[path])
            for path, name in names
            if (path, name) in refs
        ]

    def _versions(self, path: str, name: str) -> dict[str, int]:
        """Return the version of a function, or those of all functions of a file: comments do not count."""
        return {one: own.version for one, own in self.files[path].items() if name in ("", one)}

    def judged(self, claims: Sequence[Claim], memory: Kept) -> Counter[str]:
        """Count how the told states agree with the truth."""
        homes = {name: path for path, own in self.files.items() for name in own}
        told = states(memory, {(one.ref, one.name): one.ref for one in claims})
        counts: Counter[str] = Counter()
        for one in claims:
            if (one.ref, one.name) not in told:
                counts["not anchored"] += 1
                continue
            state, at = told[one.ref, one.name]
            home = homes.get(one.name, "") if one.name else self.now_at[one.path]
            is_same = bool(home) and self._versions(home, one.name) == one.versions
            _count(counts, state, is_there=not home or at == home, home=home, was=one.path, is_same=is_same)
            if one.name and is_same and self.texts[home] != one.text:
                counts["same in a changed file"] += 1
                counts["same in a changed file, and told"] += state in ("fresh", "moved")
        return counts


def _count(counts: Counter[str], state: str, *, is_there: bool, home: str, was: str, is_same: bool) -> None:
    """Count one memory: whether the state and the path that are told are true."""
    if not home:
        counts["deleted"] += 1
        counts["deleted, and told as gone"] += state == "gone"
        return
    if home != was:
        counts["elsewhere"] += 1
        counts["elsewhere, and followed"] += is_there and state in ("moved", "changed")
    counts["same" if is_same else "changed"] += 1
    counts["told as changed"] += state == "changed"
    counts["told as changed, and same"] += is_same and state == "changed"
    counts["changed, and told"] += not is_same and state == "changed"


def parsed(source: str) -> dict[str, str]:
    """Return the functions and classes of the top level, each with its syntax tree as a text."""
    try:
        body = ast.parse(source).body
    except SyntaxError:
        return {}
    named = [one for one in body if isinstance(one, ast.FunctionDef | ast.ClassDef)]
    counts = Counter(one.name for one in named)
    return {one.name: ast.dump(one) for one in named if counts[one.name] == 1}


def functions_of(root: Path) -> dict[tuple[str, str], str]:
    listed = git(root, "ls-files", "*.py").splitlines()
    return {
        (path, name): tree
        for path in listed
        if (root / path).is_file()
        for name, tree in parsed((root / path).read_text("utf-8", "replace")).items()
    }


def remember_all(memory: Kept, names: Sequence[tuple[str, str]]) -> dict[tuple[str, str], str]:
    """Store a memory about each function or file, and return the refs."""
    drafts = [
        kept.Draft(content=f"The rule about {f'{name}() in ' if name else ''}{path} is number {os.urandom(4).hex()}.")
        for path, name in names
    ]
    receipts = memory.remember_many(drafts)
    return {name: str(receipt.ref) for name, receipt in zip(names, receipts, strict=True) if receipt.ref}


def states(memory: Kept, refs: Mapping[tuple[str, str], str]) -> dict[tuple[str, str], tuple[str, str]]:
    """Return state and path of each memory, as Kept tells them after its background has run."""
    memory.store.follow_code()
    found = {}
    for name, ref in refs.items():
        one = memory.get(ref)
        code = code_of(one)
        if code is not None and code.anchors:
            found[name] = (memory.look().standing(one).state, code.anchors[0].path)
    return found


Trees = dict[tuple[str, str], str]


def compare(
    before: Trees, after: Trees, told: dict[tuple[str, str], tuple[str, str]], changed: set[str]
) -> Counter[str]:
    """Count how the told states agree with the syntax trees. `changed`: the files that have changed."""
    counts: Counter[str] = Counter()
    homes: dict[str, list[str]] = {}
    for path, name in after:
        homes.setdefault(name, []).append(path)
    for (path, name), (state, at) in told.items():
        if (path, name) in after:
            [home] = [path]
        elif not homes.get(name):
            home = ""
        elif len(homes[name]) == 1 and (homes[name][0], name) not in before:
            [home] = homes[name]
        else:  # several functions with this name: the script cannot say which of them it is
            continue
        is_same = bool(home) and before[path, name] == after[home, name]
        _count(counts, state, is_there=at == home, home=home, was=path, is_same=is_same)
        if is_same and home == path and path in changed:
            counts["same in a changed file"] += 1
            counts["same in a changed file, and told"] += state == "fresh"
    return counts


def briefing_ms(source: Path, times: int) -> dict[str, float]:
    """Return the median processor time of a briefing over fifty memories of touched files: in a clone, and without git.

    Both have the same files and memories, and take turns.
    """
    took: dict[str, list[float]] = {"without git": [], "with anchors": []}
    with ExitStack() as stack:
        opened = {}
        for name in took:
            root = source.with_name(name.replace(" ", "-"))
            git(source, "clone", "-q", str(source), str(root))
            if name == "without git":
                shutil.rmtree(root / ".git")
            home = root.with_name(f"home-{root.name}")
            opened[name] = stack.enter_context(kept.open(project=root, home=home, origin="user"))
            paths = sorted(str(path.relative_to(root)) for path in (root / "src").rglob("*.*"))
            opened[name].remember_many(
                [
                    kept.Draft(content=f"The ferry rule {n} about {paths[n % len(paths)]} holds for all harbours.")
                    for n in range(50)
                ]
            )
            for path in paths:
                os.utime(root / path)
        for _ in range(times):
            for name, memory in opened.items():
                started = time.process_time()
                memory.briefing("Which ferry rule holds for all harbours?", budget_tokens=4000)
                took[name].append((time.process_time() - started) * 1000)
    return {name: round(sorted(own)[len(own) // 2], 2) for name, own in took.items()}


def measure_generated(folder: Path, commits: int, seed: int) -> Counter[str]:
    """Make a history, writing memories on the way. In all but the first the background runs now and then."""
    made = Generated(folder / f"generated-{seed}", seed)
    at = {int(part * commits) for part in WRITTEN}
    claims: list[Claim] = []
    with kept.open(project=made.root, home=folder / f"home-{seed}", origin="user") as memory:
        for number in range(commits):
            if number in at:
                claims += made.claims(memory)
            made.step(number)
            if seed and number % 20 == 0:
                memory.store.follow_code()
        return made.judged(claims, memory)


def measure_clone(folder: Path) -> Counter[str]:
    """Replay the history of this clone: memories written 25, 100 and 250 commits ago, told now."""
    if not (ROOT / ".git").exists() or git(ROOT, "rev-parse", "--is-shallow-repository") == "true":
        print("skipped: the history of this clone is not complete (git fetch --unshallow)", file=sys.stderr)
        return Counter()
    total: Counter[str] = Counter()
    commits = git(ROOT, "rev-list", "--first-parent", "HEAD").splitlines()
    for step in [step for step in STEPS if step < len(commits)]:
        root = folder / f"clone-{step}"
        git(folder, "clone", "-q", str(ROOT), str(root))
        git(root, "checkout", "-q", "-B", "main", commits[step])
        with kept.open(project=root, home=folder / f"home-clone-{step}", origin="user") as memory:
            before = functions_of(root)
            chosen = random.Random(step).sample(sorted(before), min(MOST_FUNCTIONS, len(before)))
            refs = remember_all(memory, chosen)
            git(root, "reset", "-q", "--hard", commits[0])
            changed = set(git(root, "diff", "--name-only", commits[step], commits[0]).splitlines())
            total += compare(before, functions_of(root), states(memory, refs), changed)
    return total


def shares(counts: Counter[str]) -> dict[str, float]:
    """Return the figures that are promised, in percent; one without any case is left out."""
    parts = {
        "deleted_told_as_gone": ("deleted, and told as gone", "deleted"),
        "renamed_or_moved_followed": ("elsewhere, and followed", "elsewhere"),
        "false_changed": ("told as changed, and same", "told as changed"),
        "same_in_a_changed_file_told_as_such": ("same in a changed file, and told", "same in a changed file"),
        "changed_told": ("changed, and told", "changed"),
    }
    return {
        name: round(100 * counts[part] / counts[whole], 1) for name, (part, whole) in parts.items() if counts[whole]
    }


def bars_of(found: Mapping[str, Mapping[str, float]], took: Mapping[str, float]) -> list[Bar]:
    """Return the promised figures of each history as shares of errors, and the time that anchors cost a briefing."""
    bars = [Bar("ms of processor time that anchors add to a briefing", took["with anchors"] - took["without git"], 10)]
    for name, own in found.items():
        bars += [
            Bar(f"{name}: % of deleted code not told as gone", 100 - own.get("deleted_told_as_gone", 100), 0),
            Bar(f"{name}: % of moved code not followed", 100 - own.get("renamed_or_moved_followed", 100), 0),
            Bar(f"{name}: % of false changes", own.get("false_changed", 0), 20),
            Bar(
                f"{name}: % of unchanged symbols in changed files told as changed",
                100 - own.get("same_in_a_changed_file_told_as_such", 100),
                10,
            ),
        ]
    return bars


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--commits", type=int, default=200, help="of each generated history")
    parser.add_argument("--histories", type=int, default=3, help="generated histories")
    given = options(parser, tiny={"commits": 20, "histories": 1})
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        counts = {
            f"generated {seed}": measure_generated(folder, given.commits, seed) for seed in range(given.histories)
        }
        if not given.tiny:
            counts["this clone"] = measure_clone(folder)
        took = briefing_ms(folder / "generated-0", times=5 if given.tiny else 40)
    found = {name: shares(own) for name, own in counts.items() if own}
    head = ["history", *dict.fromkeys(figure for own in found.values() for figure in own)]
    lines = [[name, *(own.get(figure, "") for figure in head[1:])] for name, own in found.items()]
    text = table("Told states and the truth, in percent", head, lines)
    figures = {name: {**own, "counts": dict(counts[name])} for name, own in found.items()}
    return report(text, bars_of(found, took), {**figures, "briefing_ms": took}, given)


if __name__ == "__main__":
    raise SystemExit(main())
