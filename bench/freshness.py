"""Measure freshness on histories: this repository's own, and generated ones, replayed with real git.

Memories about files and functions are written at one commit; then a later commit is checked out, and the state that
Kept tells is compared with the truth. For Python the truth is the syntax tree of the function (comments and layout do
not count), for renames and moves it is the script that made the history.

    python -m bench.freshness            # 3 generated repositories with 200 commits, and the history of this clone
    python -m bench.freshness --tiny     # the same with 20 commits, without the history of this clone
"""

import argparse
import ast
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import kept
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


def function(name: str, number: int) -> str:
    return f"def {name}(value):\n    total = value + {number}\n    return total * {number % 7 + 2}\n"


class Generated:
    """A repository whose files are changed, renamed and deleted at random, and its functions moved."""

    def __init__(self, root: Path, seed: int) -> None:
        self.root, self.random = root, random.Random(seed)
        self.files: dict[str, dict[str, str]] = {}  # path → function → its text
        self.fates: dict[str, str] = {}  # function → what happened to it last
        root.mkdir()
        git(root, "init", "-q", "-b", "main")
        for number in range(12):
            names = [f"work_{number}_{place}" for place in range(4)]
            self.files[f"src/part_{number}/file_{number}.py"] = {name: function(name, number) for name in names}
        self.save("begin")

    def save(self, message: str) -> None:
        for path, functions in self.files.items():
            target = self.root / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text("import os\n\n\n" + "\n\n".join(functions.values()))
        git(self.root, "add", "-A")
        git(self.root, "commit", "-q", "--allow-empty", "-m", message)

    def step(self, number: int) -> None:
        """Make one commit."""
        path = self.random.choice(sorted(self.files))
        name = self.random.choice(sorted(self.files[path])) if self.files[path] else ""
        kinds = ("edit",) * 8 + ("layout",) * 4 + ("add",) * 3 + ("rename", "move", "delete", "drop")
        kind = self.random.choice(kinds)
        if kind == "rename":
            self.files[f"src/other_{number}/moved_{number}.py"] = self.files.pop(path)
            (self.root / path).unlink()
            self.fates |= dict.fromkeys(self.files[f"src/other_{number}/moved_{number}.py"], "renamed")
        elif kind == "delete" and len(self.files) > 4:
            self.fates |= dict.fromkeys(self.files.pop(path), "deleted")
            (self.root / path).unlink()
        elif kind == "move" and name:
            other = self.random.choice([one for one in sorted(self.files) if one != path])
            self.files[other][name] = self.files[path].pop(name)
            self.fates[name] = "moved"
        elif kind == "drop" and name and len(self.files[path]) > 1:
            del self.files[path][name]
            self.fates[name] = "deleted"
        elif kind == "layout" and name:
            self.files[path][name] = f"# {number}\n" + self.files[path][name].replace("value + ", "value  +  ")
        elif kind == "add":
            self.files[path][f"new_{number}"] = function(f"new_{number}", number)
        elif name:
            self.files[path][name] = function(name, number + 100)
        self.save(kind)


def parsed(source: str) -> dict[str, str]:
    """Return the functions and classes of the top level, each with its syntax tree as a text."""
    try:
        body = ast.parse(source).body
    except SyntaxError:
        return {}
    named = [one for one in body if isinstance(one, ast.FunctionDef | ast.ClassDef)]
    counts = Counter(one.name for one in named)
    return {one.name: ast.dump(one) for one in named if counts[one.name] == 1 and not one.decorator_list}


def functions_of(root: Path) -> dict[tuple[str, str], str]:
    listed = git(root, "ls-files", "*.py").splitlines()
    return {
        (path, name): tree
        for path in listed
        if (root / path).is_file()
        for name, tree in parsed((root / path).read_text("utf-8", "replace")).items()
    }


def remember_all(memory: Kept, names: list[tuple[str, str]]) -> dict[tuple[str, str], str]:
    """Store a memory about each function, and return the refs."""
    drafts = [
        kept.Draft(content=f"The rule about {name}() in {path} is number {n}.") for n, (path, name) in enumerate(names)
    ]
    receipts = memory.remember_many(drafts)
    return {name: str(receipt.ref) for name, receipt in zip(names, receipts, strict=True) if receipt.ref}


def states(memory: Kept, refs: dict[tuple[str, str], str]) -> dict[tuple[str, str], tuple[str, str]]:
    """Return state and path of each memory, as Kept tells them after its background has run."""
    memory.store.follow_code()
    found = {}
    for name, ref in refs.items():
        one = memory.get(ref)
        code = code_of(one)
        own = memory.look().standing(one)
        if code is not None and code.anchors:
            found[name] = (own.state, code.anchors[0].path)
    return found


def compare(before: dict[tuple[str, str], str], after: dict[tuple[str, str], str], told: dict) -> Counter[str]:
    """Count how what Kept tells agrees with the syntax trees."""
    counts: Counter[str] = Counter()
    homes: dict[str, list[str]] = {}
    for path, name in after:
        homes.setdefault(name, []).append(path)
    for (path, name), (state, at) in told.items():
        if (path, name) in after:
            is_same = before[path, name] == after[path, name]
            counts["stayed and same" if is_same else "stayed and changed"] += 1
            counts["told as fresh"] += is_same and state == "fresh"
            counts["changed, and told"] += not is_same and state == "changed"
            counts["told as changed"] += state == "changed"
            counts["told as changed, and same"] += is_same and state == "changed"
        elif not homes.get(name):
            counts["deleted"] += 1
            counts["deleted, and told as gone"] += state == "gone"
        elif len(homes[name]) == 1 and (homes[name][0], name) not in before:
            counts["elsewhere"] += 1
            counts["elsewhere, and followed"] += at == homes[name][0] and state != "gone"
    return counts


def briefing_ms(source: Path, *, is_anchored: bool, times: int) -> float:
    """Return the median time of a briefing over fifty memories of changed files, with or without their code."""
    home, root = source.with_name(f"home-{is_anchored}"), source.with_name(f"clone-{is_anchored}")
    git(source, "clone", "-q", str(source), str(root))
    with kept.open(project=root, home=home, origin="user") as memory:
        paths = git(root, "ls-files", "*.py").splitlines()[:50]
        drafts = [
            kept.Draft(content=f"The ferry rule {n} about {path} holds for all harbours.")
            for n, path in enumerate(paths)
        ]
        memory.remember_many(drafts if is_anchored else [_without_path(n) for n, _ in enumerate(paths)])
        for path in paths:
            os.utime(root / path)
        took = []
        for _ in range(times):
            started = time.perf_counter()
            memory.briefing("Which ferry rule holds for all harbours?", budget_tokens=4000)
            took.append((time.perf_counter() - started) * 1000)
    return sorted(took)[len(took) // 2]


def _without_path(number: int) -> kept.Draft:
    return kept.Draft(content=f"The ferry rule {number} about part {number} holds for all harbours.")


def measure_generated(folder: Path, commits: int, seed: int) -> Counter[str]:
    made = Generated(folder / f"generated-{seed}", seed)
    with kept.open(project=made.root, home=folder / f"home-{seed}", origin="user") as memory:
        before = functions_of(made.root)
        refs = remember_all(memory, sorted(before))
        for number in range(commits):
            made.step(number)
        return compare(before, functions_of(made.root), states(memory, refs))


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
            total += compare(before, functions_of(root), states(memory, refs))
    return total


def shares(counts: Counter[str]) -> dict[str, float]:
    """Return the figures that are promised, in percent."""

    def percent(part: str, whole: str) -> float:
        return round(100 * counts[part] / counts[whole], 1) if counts[whole] else 100.0

    return {
        "deleted_told_as_gone": percent("deleted, and told as gone", "deleted"),
        "renamed_or_moved_followed": percent("elsewhere, and followed", "elsewhere"),
        "false_changed": round(100 * counts["told as changed, and same"] / max(1, counts["told as changed"]), 1),
        "same_symbol_told_as_fresh": percent("told as fresh", "stayed and same"),
        "changed_symbol_told": percent("changed, and told", "stayed and changed"),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tiny", action="store_true")
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        counts = {
            f"generated {seed}": measure_generated(folder, 20 if asked.tiny else 200, seed)
            for seed in range(1 if asked.tiny else 3)
        }
        if not asked.tiny:
            counts["this clone"] = measure_clone(folder)
        times = 5 if asked.tiny else 40
        plain = briefing_ms(folder / "generated-0", is_anchored=False, times=times)
        coded = briefing_ms(folder / "generated-0", is_anchored=True, times=times)
    found = {
        **{name: {**shares(own), "counts": dict(own)} for name, own in counts.items() if own},
        "briefing_ms": {"without anchors": round(plain, 2), "with anchors": round(coded, 2)},
    }
    print(json.dumps(found, indent=None if asked.json else 2))


if __name__ == "__main__":
    main()
