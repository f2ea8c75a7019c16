"""The generated pages, the plugin and the manifests say what the program does."""

import importlib.util
import json
import shutil
from pathlib import Path
from types import ModuleType

import click
import pytest

import kept
from kept.entrypoints.cli.catalog import COMMANDS
from kept.entrypoints.cli.frame import root
from kept.settings import fields

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"


@pytest.fixture
def generate() -> ModuleType:
    spec = importlib.util.spec_from_file_location("generate", DOCS / "generate.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_generated_files_are_up_to_date(generate: ModuleType) -> None:
    assert generate.stale_files() == [], "run: make docs"


def test_a_stale_or_missing_file_is_noticed_and_written_again(
    generate: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(generate, "ROOT", tmp_path)
    (tmp_path / "docs").mkdir()
    shutil.copy(DOCS / "cli.md", tmp_path / "docs")
    assert generate.main(["--check"]) == 1
    assert "docs/settings.md is out of date" in capsys.readouterr().err
    assert generate.main([]) == 0
    assert generate.main(["--check"]) == 0
    (tmp_path / "docs" / "cli.md").write_text("old")
    assert generate.stale_files() == ["docs/cli.md"]


def test_the_plugin_of_the_repository_runs_the_programs_that_the_path_has(generate: ModuleType) -> None:
    files = generate.plugin()
    (entry,) = json.loads(files[".claude-plugin/marketplace.json"])["plugins"]
    assert (ROOT / entry["source"] / ".claude-plugin" / "plugin.json").is_file()
    hooks = json.loads(files["plugin/hooks/hooks.json"])["hooks"]
    commands = {hook["command"] for groups in hooks.values() for group in groups for hook in group["hooks"]}
    assert commands == {f"/usr/bin/env PYTHONPATH= kept-hook claude-code {event}" for event in hooks}
    assert json.loads(files["plugin/.mcp.json"])["mcpServers"]["kept"]["command"] == "kept"


def test_the_registry_of_servers_is_told_this_version_and_finds_the_owner_in_readme(generate: ModuleType) -> None:
    manifest = json.loads(generate.server_manifest())
    assert manifest["version"] == manifest["packages"][0]["version"] == kept.__version__
    assert f"mcp-name: {manifest['name']}" in (ROOT / "README.md").read_text("utf-8")


def test_every_command_and_option_is_documented() -> None:
    page = (DOCS / "cli.md").read_text("utf-8")
    ctx = click.Context(root)
    for name, entry in COMMANDS.items():
        assert f"### kept {name}\n" in page
        assert entry.line in page
        command = root.get_command(ctx, name)
        assert command is not None
        children = command.commands if isinstance(command, click.Group) else {}
        for child in children:
            assert f"### kept {name} {child}\n" in page
        for one in (command, *children.values()):
            for param in one.params:
                if isinstance(param, click.Option):
                    assert param.opts[0] in page
                    assert param.help
                    assert param.help in page
                else:
                    assert param.human_readable_name.upper().rstrip(".") in page.upper()


def test_help_texts_are_not_indented() -> None:
    """An indented line would be shown as code, and an example as running text."""
    page = (DOCS / "cli.md").read_text("utf-8")
    assert [line for line in page.splitlines() if line.startswith(" ")] == []


def test_every_setting_is_documented() -> None:
    page = (DOCS / "settings.md").read_text("utf-8")
    for field in fields():
        assert f"| `{field.name}` |" in page
        assert field.help in page
