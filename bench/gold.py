"""Cases with a known outcome: reading them, choosing a half, comparing texts with their patterns.

Shared by `bench.delivery` and `bench.talk`. A pattern is a list of groups of regular expressions; a text says it if
every group has an expression that occurs in the text. Rule: the halves never change. Rules of Kept may be tuned on
the tuning half; the reporting half is run once per release, and its misses are not read.
"""

import argparse
import hashlib
import json
import re
import subprocess
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

TUNING, REPORTING, BOTH = "tuning", "reporting", "both"
CHARS_A_TOKEN = 4
MOST_CHARS = 900  # of a text that says something: a longer one says everything

Case = Mapping[str, Any]
Pattern = Sequence[Sequence[str]]


def read(path: Path) -> list[Any]:
    """Read the lines of a JSONL file."""
    return [json.loads(line) for line in path.read_text("utf-8").splitlines() if line.strip()]


def says(text: str, pattern: Pattern) -> bool:
    """Return True if every group of the pattern has an expression that occurs in the text."""
    if len(text) > MOST_CHARS:
        return False
    return all(any(re.search(one, text, re.IGNORECASE) for one in group) for group in pattern)


def says_any(text: str, patterns: Iterable[Pattern]) -> bool:
    return any(says(text, pattern) for pattern in patterns)


def said_in(texts: Iterable[str], pattern: Pattern) -> bool:
    return any(says(text, pattern) for text in texts)


def tokens(text: str) -> int:
    """Estimate the tokens of a text, for Kept and peers alike."""
    return round(len(text) / CHARS_A_TOKEN)


def half_of(name: str, names: Iterable[str]) -> str:
    """Return the half of a name. Of all names, ordered by their hash, the first half is for tuning."""
    ordered = sorted(set(names), key=lambda one: hashlib.sha256(one.encode()).hexdigest())
    return TUNING if ordered.index(name) < len(ordered) / 2 else REPORTING


def chosen(cases: Sequence[Case], key: str, half: str) -> list[Case]:
    """Return the cases of a half; `key` names the field that must not be in both halves."""
    names = [case[key] for case in cases]
    return [case for case in cases if half in (BOTH, half_of(case[key], names))]


def add_common(parser: argparse.ArgumentParser) -> None:
    """Add the options of both programs that ask these cases."""
    parser.add_argument("--cache", type=Path, default=Path(tempfile.gettempdir()) / "kept-bench")
    parser.add_argument("--ours", action="store_true", help="leave out the peers that have to be installed")
    parser.add_argument("--most", type=int, default=1_000, help="cases")
    parser.add_argument(
        "--half",
        choices=[TUNING, REPORTING],
        default=TUNING,
        help="which half of the cases is asked. The reporting half is run once per release: it prints date and "
        "commit, and neither its misses nor its figures are used to change a rule",
    )


def title(half: str, text: str) -> str:
    """Return the line above a table; over the reporting half with date and commit."""
    if half != REPORTING:
        return f"{half} half: {text}"
    return f"{half} half, {datetime.now(UTC):%Y-%m-%d}, commit {_commit()}: {text}"


def share(part: float, whole: float) -> str:
    return f"{100 * part / whole:.0f} %" if whole else "-"


def _commit() -> str:
    """Return the commit of this clone, with + if files have changed since."""
    command = ["git", "describe", "--always", "--exclude=*", "--dirty=+"]
    try:
        found = subprocess.run(command, cwd=Path(__file__).parent, capture_output=True, text=True, check=True)
    except (FileNotFoundError, subprocess.CalledProcessError):
        return "unknown"
    return found.stdout.strip()
