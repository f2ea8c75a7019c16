"""The package as pip knows it: its name, its version, and the command that installs one of its extras.

Noun layer. The import name and the commands are `kept`; on the package index that name belongs to another project, so
the distribution is `kept-memory`. Rule: every hint takes its command from `install_line`, because the command depends
on how Kept was installed: from a checkout, from a file or from the index.
"""

from pathlib import Path
from typing import Any

NAME = "kept-memory"
VERSION = "0.2.0"  # the build reads it from here


def install_line(extra: str = "", *options: str) -> str:
    """Return the pip command that installs Kept with an extra, from the place where this installation came from."""
    import shlex  # and other modules below: only hints need them, and importing them takes milliseconds

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
    return shlex.join(["pip", "install", *options, target])


def _origin() -> dict[str, Any]:
    """Read where pip found this installation (direct_url.json, PEP 610). Empty if it came from the index."""
    import json
    from importlib import metadata

    try:
        noted = metadata.distribution(NAME).read_text("direct_url.json")
    except metadata.PackageNotFoundError:  # the folder `src` of a checkout is on the path, and nothing is installed
        checkout = Path(__file__).resolve().parents[2]
        is_checkout = (checkout / "pyproject.toml").is_file()
        return {"url": checkout.as_uri(), "dir_info": {"editable": True}} if is_checkout else {}
    origin: dict[str, Any] = json.loads(noted) if noted else {}
    return origin


def _folder(url: str) -> Path | None:
    """Return the local path of a file URL: the folder of a checkout, or a wheel."""
    from urllib.parse import urlsplit
    from urllib.request import url2pathname

    parts = urlsplit(url)
    return Path(url2pathname(parts.path)) if parts.scheme == "file" else None
