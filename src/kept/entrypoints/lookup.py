"""The folders where a process of Kept looks for programs: git, zstd, an editor, a browser, agents.

Rule: never in the current directory, which may be a stranger's repository. Every entry point that may start a program
calls this once, at its start; the variables then hold for the programs that it starts.
"""

import os
from collections.abc import MutableMapping


def use_absolute_path(environ: MutableMapping[str, str]) -> None:
    """Remove relative and empty entries from PATH: both mean the current directory or a place below it."""
    if "PATH" in environ:
        entries = environ["PATH"].split(os.pathsep)
        environ["PATH"] = os.pathsep.join(entry for entry in entries if os.path.isabs(entry))  # noqa: PTH117
    environ["NoDefaultCurrentDirectoryInExePath"] = "1"  # Windows looks there first, unless this is set
