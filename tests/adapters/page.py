"""Runs the examples of an adapter's page."""

from pathlib import Path
from typing import Any

import pytest

from tests.test_docs import blocks


def run_page(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("KEPT_HOME", str(tmp_path / "home"))
    names: dict[str, Any] = {"__name__": "page"}
    found = blocks(f"docs/adapters/{name}.md", "python")
    assert found
    for code in found:
        exec(compile(code, name, "exec"), names)
