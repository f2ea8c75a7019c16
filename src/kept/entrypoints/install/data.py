"""Delete all data of Kept: its home, for `kept uninstall --data`.

A home is named by an option or a variable, and a typo there may name a folder of the user's work. Rule: a folder
without a registry, a ledger or a project of Kept is not a home and stays; in a home only files and folders with the
names that Kept gives are deleted.
"""

import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

from kept.entrypoints.hook.folder import HookFolder
from kept.entrypoints.http import keys, visits
from kept.entrypoints.install import LEDGER, LOCK
from kept.errors import InvalidInput, StorageError
from kept.projects.files import shown
from kept.projects.home import FOLDER_PATTERN, Home, SpaceFiles

# Every file that Kept writes into the home itself; tests/cli/test_install.py looks at all that a real use leaves.
SERVED = (keys.FILE, keys.LOCK, visits.FILE, visits.LOCK)
FILES = ("projects.json", "projects.lock", "config.toml", *SERVED, LEDGER, LOCK)
DRAFTS = re.compile(rf"projects\.json\.damaged-\d+|\.(?:{'|'.join(map(re.escape, FILES))})\.[0-9a-f]{{8}}\.tmp")


def check_home(home: Home) -> None:
    """Raise InvalidInput if a folder is not a home of Kept, so that nothing in it may be deleted."""
    names = {path.name for path in _inside(home.root)}
    rest = {HookFolder(home.root).root.name, "projects.lock", LOCK, *SERVED}  # that hooks, commands and servers make
    if names <= rest or _lists_projects(home.registry) or (home.root / LEDGER).is_file() or [*_spaces(home)]:
        return
    raise InvalidInput(
        f"{shown(home.root)} is not a home of Kept: it has neither a registry nor a project. Nothing was deleted.",
        hint="Check --home and KEPT_HOME. `kept status` shows the home.",
    )


def delete_home(home: Home) -> list[str]:
    """Delete the data of Kept, and the home if nothing else is in it. Return the names of files that stay."""
    try:
        _delete_ours(home)
    except OSError as error:
        raise StorageError(
            f"Not all data in {shown(home.root)} could be deleted: {error.filename}: {error.strerror}.",
            hint="Change its permissions, then run the command again.",
        ) from error
    return sorted(path.name for path in _inside(home.root))


def _delete_ours(home: Home) -> None:
    for place in (*_spaces(home), HookFolder(home.root).root, home.root / "agents" / "claude-code"):
        if _is_folder(place):
            shutil.rmtree(place)
    for path in _inside(home.root):
        if path.name in FILES or DRAFTS.fullmatch(path.name):
            path.unlink()
    for folder in (home.projects_dir, *_inside(home.users_dir), home.users_dir, home.root / "agents", home.root):
        if _is_folder(folder) and not _inside(folder):
            folder.rmdir()


def _is_folder(path: Path) -> bool:
    """Return True for a folder that is not a link to one elsewhere."""
    return path.is_dir() and not path.is_symlink()


def _inside(folder: Path) -> list[Path]:
    return list(folder.iterdir()) if folder.is_dir() else []


def _lists_projects(registry: Path) -> bool:
    try:
        found = json.loads(registry.read_bytes())
    except (OSError, ValueError):
        return False
    return isinstance(found, dict) and isinstance(found.get("projects"), list) and "version" in found


def _spaces(home: Home) -> Iterator[Path]:
    """Yield the folders of the global space, all projects and all users: each has a database or a card of ours."""
    named = [folder for folder in _inside(home.projects_dir) if re.match(FOLDER_PATTERN, folder.name)]
    for part in filter(_is_folder, _inside(home.users_dir) if _is_folder(home.users_dir) else []):
        named += [folder for folder in _inside(part) if folder == home.user_dir(folder.name)]
    for folder in (home.global_dir, *named):
        files = SpaceFiles(folder)
        if files.database.is_file() or files.project_card.is_file():
            yield folder
