"""Every example in the README and the docs runs, links lead somewhere, and named tests exist."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGES = ["README.md", *sorted(str(p.relative_to(ROOT)) for p in (ROOT / "docs").glob("*.md"))]
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def blocks(page: str, language: str) -> list[str]:
    return [code for name, code in BLOCK.findall((ROOT / page).read_text("utf-8")) if name == language]


@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page, "python")])
def test_the_python_of_a_page_runs(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("KEPT_HOME", str(tmp_path / "home"))
    names: dict[str, object] = {}
    for code in blocks(page, "python"):
        exec(compile(code, page, "exec"), names)


WITH_COMMANDS = [
    "README.md",
    *(
        f"docs/{name}.md"
        for name in ("tutorial", "sessions", "recall", "projects", "upkeep", "freshness", "hosts", "agents")
    ),
]
TOPICS = ("agents", "storage", "writing", "recall", "sessions", "upkeep", "projects", "briefing")


@pytest.mark.parametrize("page", WITH_COMMANDS)
def test_the_commands_of_a_page_run(page: str, tmp_path: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()
    (tmp_path / "person" / ".gemini").mkdir(parents=True)  # an agent for `kept install`, in nobody's real home
    environment = os.environ | {
        "HOME": str(tmp_path / "person"),
        "XDG_CONFIG_HOME": str(tmp_path / "person" / ".config"),
        "KEPT_HOME": str(tmp_path / "home"),
        "NO_COLOR": "1",
    }
    for code in blocks(page, "sh"):
        for line in code.splitlines():
            words = shlex.split(line, comments=True)
            if not words or words[0] != "kept":  # installing and make are tried by CI itself
                continue
            yes = ["--yes"] if words == ["kept", "install"] else []  # nobody is there to be asked
            done = subprocess.run(
                [sys.executable, "-m", "kept", *words[1:], *yes],
                cwd=project,
                env=environment,
                capture_output=True,
                text=True,
                check=False,
            )
            assert done.returncode == 0, f"{line}\n{done.stdout}{done.stderr}"


def test_links_between_pages_lead_somewhere() -> None:
    for page in [*PAGES, "CONTRIBUTING.md", "CHANGELOG.md"]:
        path = ROOT / page
        for target in re.findall(r"\]\((?!https?:|#)([^)#]+)", path.read_text("utf-8")):
            assert (path.parent / target).exists(), f"{page} links to {target}"


def test_every_decision_has_its_parts_and_is_short() -> None:
    pages = sorted((ROOT / "docs" / "decisions").glob("*.md"))
    assert 1 <= len(pages) <= 15
    assert [int(page.name[:4]) for page in pages] == list(range(1, len(pages) + 1))
    for page in pages:
        text = page.read_text("utf-8")
        assert all(part in text for part in ("Status: ", "## Context", "## Choice", "## What we gave up")), page.name
        assert len(text.splitlines()) <= 40, page.name


def test_every_topic_page_says_why_not() -> None:
    """C32: the fifteen decisions of that design, and our own reasons, stand where the topic is explained."""
    pages = [(ROOT / "docs" / f"{name}.md").read_text("utf-8") for name in TOPICS]
    assert all("## Why not …" in page for page in pages)
    assert all("".join(pages).count(f"(C-D{number})") == 1 for number in range(1, 16))


def test_the_spine_is_there() -> None:
    """No limit of lines: it only moved code to modules beside the spine."""
    page = (ROOT / "docs" / "reading.md").read_text("utf-8")
    files = re.findall(r"^\| `(src/kept/[\w/.]+)` \| \S.*\. \|$", page, re.MULTILINE)
    assert len(files) == page.count("| `src/") == len(set(files)) > 20
    for name in ("model", "ports", "writing/pipeline", "recall/pipeline", "memory/context"):
        assert f"src/kept/{name}.py" in files
    assert all((ROOT / file).is_file() for file in files)


def test_files_that_the_pages_name_exist() -> None:
    """Paths in backquotes, as written from the root or from the package, and folders with a slash at the end."""
    pages = ["CONTRIBUTING.md", "docs/reading.md", "docs/architecture.md", *(f"docs/{name}.md" for name in TOPICS)]
    for page in pages:
        for path in re.findall(r"`((?:\w+/)+(?:\w+\.py)?)`", (ROOT / page).read_text("utf-8")):
            roots = (ROOT, ROOT / "src", ROOT / "src" / "kept")
            assert any((root / path).exists() for root in roots), f"{page} names {path}"


def test_guarantees_name_tests_that_exist() -> None:
    text = (ROOT / "docs" / "guarantees.md").read_text("utf-8")
    named = re.findall(r"`(tests/[\w/]+\.py)(?:::(\w+))?`", text)
    assert len(named) >= 10
    for path, function in named:
        source = (ROOT / path).read_text("utf-8")
        assert not function or f"def {function}" in source, f"{path} has no {function}"


def test_make_run_sets_up_kept_without_the_tools_of_developers() -> None:
    steps = subprocess.run(
        ["make", "--no-print-directory", "-n", "-B", "run"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout
    [install] = [line for line in steps.splitlines() if "pip install" in line]
    assert install.endswith(" --editable .")
    assert steps.splitlines()[-1].endswith("kept tour")
