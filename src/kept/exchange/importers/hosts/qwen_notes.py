"""Qwen Code's memory: as Claude Code's, in folders by type; and one folder of the user, for every project."""

from pathlib import Path

from kept.exchange.importers.hosts.notes_text import INDEX, Host, HostFacts, HostFolder, HostNote, slug_of, typed_note


def _folders(facts: HostFacts) -> list[HostFolder]:
    home = facts.home_of("", ".qwen")
    return [
        HostFolder(path=home / "projects" / slug_of(facts.root) / "memory", depth=1),
        HostFolder(path=home / "memories", belongs="person", depth=1),
    ]


def _read(name: str, text: str) -> list[HostNote]:
    return [] if Path(name).name == INDEX else typed_note(Path(name).stem, text)


def _slug(path: Path) -> str:
    """Return the slug in …/.qwen/projects/SLUG/memory/[TYPE/]FILE; "" for another path."""
    parts = path.parts
    places = (at for at, part in enumerate(parts) if part == ".qwen" and parts[at + 1 : at + 2] == ("projects",))
    at = next(places, None)
    return parts[at + 2] if at is not None and parts[at + 3 : at + 4] == ("memory",) else ""


def _fits(path: Path) -> bool:
    is_of_user = ".qwen" in path.parts and path.parts[path.parts.index(".qwen") + 1] == "memories"
    return bool(_slug(path)) or is_of_user


QWEN = Host(
    name="qwen",
    title="Qwen Code",
    setting="read_qwen_notes",
    format="qwen-memory",
    folders=_folders,
    read=_read,
    fits=_fits,
    patterns=("*.md", "*/*.md"),
    belongs_to=_slug,
)
