"""Read, check and write configuration files of agents.

A file of an agent may be a link, a pipe, too large or read-only, and may change while the user is asked. Files of a
project may come from a stranger. Rule: check first, raise InvalidInput with the path and a hint, and write in one step.
"""

import errno
import os
from hashlib import sha256
from pathlib import Path

from kept.errors import InvalidInput
from kept.projects.files import replace_file

MOST_BYTES = 8_000_000  # of a configuration file


def text_of(path: Path, title: str) -> str | None:
    """Return the text of an agent's file; None if there is no file."""
    text = read(path)
    if text is not None and "\x00" in text:
        raise InvalidInput(f"{path} of {title} is not a text file. Nothing was changed.")
    return text


def read(path: Path) -> str | None:
    """Return the text of a file; None if there is no file."""
    try:
        if path.exists() and not path.is_file():  # a pipe would be waited for
            raise InvalidInput(f"{path} is not a regular file. Nothing was changed.")
        with path.open("rb") as file:
            raw = file.read(MOST_BYTES + 1)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise InvalidInput(f"{path} cannot be read: {error.strerror}. Nothing was changed.") from None
    if len(raw) > MOST_BYTES:
        raise InvalidInput(f"{path} has more than {MOST_BYTES:,} bytes. Nothing was changed.")
    return raw.decode("utf-8", "surrogateescape")


def write(path: Path, text: str) -> None:
    """Replace a file in one step; a link stays a link, and the permissions stay as they are."""
    target = path.resolve()
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        mode = target.stat().st_mode & 0o777 if target.exists() else 0o600
        replace_file(target, text.encode("utf-8", "surrogateescape"))
        target.chmod(mode)
    except OSError as error:
        is_full = error.errno in (errno.ENOSPC, errno.EDQUOT)
        cure = "Free some space" if is_full else "Change its permissions"
        raise InvalidInput(
            f"{path} cannot be written: {error.strerror}.", hint=f"{cure}, then run the command again."
        ) from None


def check_inside(path: Path, project: Path | None) -> None:
    """Raise InvalidInput if a link leads a file of a project out of it."""
    if project is None:
        return
    target = os.path.realpath(path)
    if not Path(target).is_relative_to(os.path.realpath(project)):
        raise InvalidInput(
            f"{path} leads out of the project, to {target}. It was not changed.",
            hint="Replace the link by a file or a folder of the project, then run the command again.",
        )


def check_link(path: Path, title: str) -> None:
    """Raise InvalidInput for a link that leads to nothing. If only the file is missing there, it can be written."""
    for link in (path, *path.parents):
        if link.is_symlink() and not link.exists():
            target = Path(os.path.realpath(link))
            if link == path and target.parent.is_dir():
                continue
            raise InvalidInput(
                f"{link} of {title} is a link to {target}, which does not exist. Nothing was changed.",
                hint="Restore what it leads to, or delete the link; then run the command again.",
            )


def check_writable(path: Path) -> None:
    """Raise InvalidInput if the file, or the folder that it will be made in, cannot be written."""
    target = path.resolve()
    folder = next(parent for parent in target.parents if parent.exists())
    if target.exists() and not target.is_file():
        raise InvalidInput(f"{path} is not a regular file. Nothing was changed.")
    for place in (target, folder) if target.exists() else (folder,):
        if not place.stat().st_mode & 0o222 or not os.access(place, os.W_OK):
            raise InvalidInput(
                f"{place} is read-only. Nothing was changed.",
                hint="Change its permissions, then run the command again.",
            )


def missing_folders(path: Path) -> list[Path]:
    """Return the folders that will be made for a file, innermost first."""
    return [folder for folder in path.parents if not folder.exists()]


def remove_if_empty(folder: Path) -> None:
    """Remove a folder, unless another program uses it now."""
    try:
        folder.rmdir()
    except OSError:
        return


def digest(text: str | None) -> str:
    """Return the SHA-256 of a file's text; "" for no file."""
    return "" if text is None else sha256(text.encode("utf-8", "surrogateescape")).hexdigest()
