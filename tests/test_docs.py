"""Every example in the README and the tutorial runs, and says what it prints."""

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


WITH_COMMANDS = ["README.md", *(f"docs/{name}.md" for name in ("tutorial", "sessions", "hybrid", "tiers", "hosts"))]


@pytest.mark.parametrize("page", WITH_COMMANDS)
def test_the_commands_of_a_page_run(page: str, tmp_path: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()
    environment = os.environ | {"KEPT_HOME": str(tmp_path / "home"), "NO_COLOR": "1"}
    for code in blocks(page, "sh"):
        for line in code.splitlines():
            words = shlex.split(line, comments=True)
            if not words or words[0] != "kept":  # installing and make are tried by CI itself
                continue
            done = subprocess.run(
                [sys.executable, "-m", "kept", *words[1:]],
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


def test_every_decision_has_its_parts() -> None:
    """C32: the decisions of the designs and our own, each with context, choice and what was given up."""
    pages = sorted((ROOT / "docs" / "decisions").glob("*.md"))
    assert len(pages) >= 24
    assert [int(page.name[:4]) for page in pages] == list(range(1, len(pages) + 1))
    praxis = "".join(page.read_text("utf-8").splitlines()[0] for page in pages)
    assert all(f"(C-D{number})" in praxis for number in range(1, 16))
    for page in pages:
        text = page.read_text("utf-8")
        assert all(part in text for part in ("Status: ", "## Context", "## Choice", "## What we gave up")), page.name


def test_guarantees_name_tests_that_exist() -> None:
    text = (ROOT / "docs" / "guarantees.md").read_text("utf-8")
    named = re.findall(r"`(tests/[\w/]+\.py)(?:::(\w+))?`", text)
    assert len(named) >= 10
    for path, function in named:
        source = (ROOT / path).read_text("utf-8")
        assert not function or f"def {function}" in source, f"{path} has no {function}"
