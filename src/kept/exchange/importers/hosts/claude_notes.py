"""Claude Code's memory: one Markdown file a fact, in a folder for each repository.

The folder is named after the root of the main repository, so worktrees and sub-folders share it. The program adds who
wrote a note and when to its header. The index, MEMORY.md, only names the files and is not read.
"""

import json
from pathlib import Path
from typing import Any

from kept.exchange.importers.hosts.notes_text import INDEX, Host, HostFacts, HostFolder, HostNote, slug_of, typed_note

LONGEST_SLUG = 200  # characters; behind them stands a hash


def _folders(facts: HostFacts) -> list[HostFolder]:
    """Return the folder of this project; none if the memory is switched off.

    A folder that the settings name holds notes of several projects.
    """
    home = facts.home_of("CLAUDE_CONFIG_DIR", ".claude")
    settings = _settings(facts, home)
    is_off = facts.variables.get("CLAUDE_CODE_DISABLE_AUTO_MEMORY", "").lower() in ("1", "true", "yes", "on")
    if is_off or settings.get("autoMemoryEnabled") is False:
        return []
    named = settings.get("autoMemoryDirectory")
    if isinstance(named, str) and named:
        folder = facts.path_of(named)
        return [HostFolder(path=folder, belongs="session")] if folder.is_absolute() else []
    slug = slug_of(facts.root)
    if len(slug) <= LONGEST_SLUG:
        return [HostFolder(path=home / "projects" / slug / "memory")]
    found = sorted((home / "projects").glob(f"{slug[:LONGEST_SLUG]}-*/memory"))
    return [HostFolder(path=path, belongs="session") for path in found]


def _settings(facts: HostFacts, home: Path) -> dict[str, Any]:
    """Return the settings of Claude Code: a person's, those of the project over them, and those for this clone."""
    local, settings = facts.root / ".claude", dict[str, Any]()
    for file in (home / "settings.json", local / "settings.json", local / "settings.local.json"):
        try:
            found = json.loads(facts.read(file) or b"{}")
        except (ValueError, RecursionError):
            continue
        settings |= found if isinstance(found, dict) else {}
    return settings


def _read(name: str, text: str) -> list[HostNote]:
    return [] if name == INDEX else typed_note(Path(name).stem, text)


def _fits(path: Path) -> bool:
    return path.parent.name == "memory" and path.parts[-4:-3] == ("projects",) and ".qwen" not in path.parts


CLAUDE = Host(
    name="claude-code",
    title="Claude Code",
    setting="read_claude_notes",
    format="claude-memory",
    folders=_folders,
    read=_read,
    fits=_fits,
    belongs_to=lambda path: path.parts[-3] if _fits(path) else "",
)
