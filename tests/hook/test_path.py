"""The path of a prompt, as docs/architecture.md lists it: each function is in the file that the table names."""

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_each_step_from_a_prompt_to_a_briefing_is_where_the_page_says() -> None:
    page = (ROOT / "docs" / "architecture.md").read_text("utf-8")
    section = page.partition("## From a prompt to a briefing")[2].partition("\n## ")[0]
    steps = re.findall(r"^\| `([\w/]+\.py)` \| `([\w.]+)` \|", section, re.MULTILINE)
    assert len(steps) == 11
    for file, function in steps:
        tree = ast.parse((ROOT / "src" / "kept" / file).read_text("utf-8"))
        classes = [node for node in tree.body if isinstance(node, ast.ClassDef)]
        methods = [
            f"{one.name}.{node.name}" for one in classes for node in one.body if isinstance(node, ast.FunctionDef)
        ]
        functions = [node.name for node in tree.body if isinstance(node, ast.FunctionDef)]
        assert function in [*functions, *methods], f"{file} has no {function}"
