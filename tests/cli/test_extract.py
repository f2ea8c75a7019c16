"""B6, B17: `kept extract` and `kept items`."""

import sys
from pathlib import Path

import pytest

from kept.distribution import install_line
from tests.cli.shell import Shell

pytest.importorskip("markdown_it")


def test_items_are_extracted_listed_and_recalled_with_their_place(shell: Shell) -> None:
    Path("README.md").write_text("# Shop\n\n- [ ] Write the deployment guide\n", "utf-8")
    Path("pay.py").write_text("# NOTE: cents are integers in every table\n", "utf-8")
    assert "Read 2 of 2 files" in shell("extract")
    assert "Read 0 of 2 files: 0 pieces new, 0 changed, 0 expired" in shell("extract")
    told = shell("items", "--type", "task")
    assert "task: Write the deployment guide" in told
    assert "README.md:3" in told
    assert "pay.py" not in told
    assert "pay.py:1" in shell("recall", "cents", "integers", "--scope", "items")
    assert "pay.py:1" in shell("recall", "cents", "integers", "--scope", "sources")
    [item] = shell.json("items", "--source", "pay.py")
    assert item.keys() == {
        "id",
        "type",
        "title",
        "content",
        "sourceFile",
        "lineNumber",
        "confidence",
        "extractedAt",
    }


def test_a_path_that_is_missing_is_an_error(shell: Shell) -> None:
    assert "There is no file" in shell.fails("extract", "nowhere")


def test_without_markdown_it_names_what_to_install(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "markdown_it", None)
    assert install_line("files") in shell.fails("extract")


def test_before_an_extraction_the_list_says_what_to_do(shell: Shell) -> None:
    assert "`kept extract`" in shell("items")


def test_a_marked_comment_of_two_words_is_an_item_and_is_called_alike_everywhere(shell: Shell) -> None:
    Path("cart.py").write_text("def total(x):\n    return x * 1.2  # HACK: ignores VAT\n")
    shell("extract")
    [item] = shell.json("items", "--source", "cart.py")
    assert (item["content"], item["lineNumber"]) == ("ignores VAT", 2)
    assert " task: ignores VAT" in shell("items", "--source", "cart.py")
    assert " task: ignores VAT" in shell("recall", "VAT", "--scope", "items")


def test_items_says_how_many_more_there_are(shell: Shell) -> None:
    lines = [f"# TODO: check the number {number} of the invoice" for number in range(5)]
    Path("todo.py").write_text("\n\n".join(lines) + "\n")
    shell("extract")
    assert "… and 3 more. `kept items --limit 5` lists all" in shell("items", "--source", "todo.py", "--limit", "2")
    assert "more." not in shell("items", "--source", "todo.py")


def test_an_item_is_not_edited_at_the_command_line(shell: Shell) -> None:
    Path("pay.py").write_text("# NOTE: cents are integers in every table\n", "utf-8")
    shell("extract")
    for typed in (
        ("edit", "1", "Pass --force"),
        ("edit", "1", "--kind", "decision"),
        ("edit", "2", "Pass --force"),
    ):
        told = shell.fails(*typed)
        assert "was extracted from pay.py:1" in told
        assert "Edit the file and run `kept extract`" in told
    shell("forget", "1")
    assert shell.json("items") == []
