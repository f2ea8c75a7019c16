"""The package as pip knows it: its name, its version, and the command that installs one of its extras.

Noun layer. The import name and the commands are `kept`; on the package index that name belongs to another project, so
the distribution is `kept-memory`. Rule: every hint takes its command from `install_line`, because the command depends
on how Kept was installed: from a checkout, from a file or from the index.
"""

import re
import sys
from pathlib import Path
from typing import Any

import msgspec

NAME = "kept-memory"
VERSION = "0.3.0"  # the build reads it from here


def install_line(extra: str = "", *options: str) -> str:
    """Return the pip command that installs Kept with an extra, from the place where this installation came from."""
    wanted = f"[{extra}]" if extra else ""
    origin = _origin()
    url: str = origin.get("url", "")
    folder = _folder(url)
    if folder is not None and folder.exists():
        if origin.get("dir_info", {}).get("editable"):
            options = (*options, "-e")
        target = f"{folder}{wanted}"
    elif "vcs_info" in origin:
        vcs = origin["vcs_info"]
        target = f"{NAME}{wanted} @ {vcs['vcs']}+{url}@{vcs['commit_id']}"
    else:
        target = f"{NAME}{wanted}"
    return " ".join(["pip", "install", *options, _quoted(target)])


def is_own_checkout(folder: Path) -> bool:
    """Return True if a folder is in a checkout of Kept, however the program that runs was installed."""
    place = folder.resolve()
    roots = (one for one in (place, *place.parents) if (one / "pyproject.toml").is_file() or (one / ".git").exists())
    root = next(roots, None)
    return root is not None and _names_kept(root / "pyproject.toml")


def _names_kept(pyproject: Path) -> bool:
    """Return True if a file is the pyproject.toml of Kept, by the name of its project."""
    try:
        lines = pyproject.read_text(encoding="utf-8").splitlines() if pyproject.is_file() else []
    except (OSError, UnicodeDecodeError):
        return False
    # Not by tomllib, which takes longer to load than the file to read.
    return f'name = "{NAME}"' in lines


def _quoted(word: str) -> str:
    """Return a word as a shell takes it."""
    if re.fullmatch(r"[\w@%+=:,./-]+", word, re.ASCII):
        return word
    return "'" + word.replace("'", "'\"'\"'") + "'"


def _origin() -> dict[str, Any]:
    """Read where pip found this installation (direct_url.json, PEP 610). Empty if it came from the index."""
    # Not by importlib.metadata, which takes longer to import than many a command takes.
    pattern = f"{NAME.replace('-', '_')}-*.dist-info"
    installed = next((found for place in sys.path for found in sorted(Path(place).glob(pattern))), None)
    if installed is None:  # the folder `src` of a checkout is on the path, and nothing is installed
        checkout = Path(__file__).resolve().parents[2]
        is_checkout = (checkout / "pyproject.toml").is_file()
        return {"url": checkout.as_uri(), "dir_info": {"editable": True}} if is_checkout else {}
    noted = installed / "direct_url.json"
    origin: dict[str, Any] = msgspec.json.decode(noted.read_bytes()) if noted.is_file() else {}
    return origin


def _folder(url: str) -> Path | None:
    """Return the local path of a file URL: the folder of a checkout, or a wheel."""
    from urllib.parse import unquote, urlsplit  # only a hint needs it, and every command loads this module

    parts = urlsplit(url)
    if parts.scheme != "file":
        return None
    path = unquote(parts.path)
    return Path(path[1:] if re.match("/[A-Za-z]:", path) else path)  # file:///C:/kept is C:/kept
