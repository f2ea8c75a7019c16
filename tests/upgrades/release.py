"""Make the stored database of a release: `python -m tests.upgrades.release`, once, when a version is made.

The wheel is built and installed in an environment of its own, and its own program writes a small home: what people of
that version will have on their disks. Every later version has to open it and find in it what EXPECTED says. The file is
never made again: a change of the schema after a release is a migration.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[2]
FOLDER = Path(__file__).parent
EXPECTED = {
    "live": {
        "We chose Fastify over Express for the API",
        "Never edit the auth middleware directly",
        "Run the tests with make test",
    },
    "forgotten": {"Deploys run on Fridays"},
    "task": "Rotate the signing keys",
    "alias": "auth",
    "session": "talk-1",
    "said": "We decided to use Postgres 17 for billing, because MySQL lacks row level security.",
}
COMMANDS: tuple[tuple[str, ...], ...] = (
    ("remember", "We chose Fastify over Express for the API", "--kind", "decision", "--tag", "api"),
    ("remember", "Never edit the auth middleware directly", "--kind", "warning"),
    ("remember", "Run the tests with make test", "--kind", "convention"),
    ("remember", "Deploys run on Fridays"),
    ("pin", "2"),
    ("rate", "1", "+"),
    ("forget", "4"),
    ("alias", "add", "auth", "login", "session"),
    ("task", "add", "Rotate the signing keys"),
    ("recall", "auth", "middleware"),
)
TALK = f"""
import kept, sys
with kept.open(project=sys.argv[1]) as memory:
    session = memory.session({EXPECTED["session"]!r}, agent="claude")
    session.append("user", {EXPECTED["said"]!r})
    session.append("assistant", "Noted.")
    session.finish()
print(kept.__version__)
"""


def make() -> Path:
    """Build, install, use, and store the database under the version's name."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        _run([sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "-w", str(folder / "dist"), str(ROOT)])
        _run([sys.executable, "-m", "venv", str(folder / "venv")])
        python = str(folder / "venv" / "bin" / "python")
        (wheel,) = (folder / "dist").glob("kept_memory-*.whl")
        _run([python, "-m", "pip", "install", "--quiet", "-c", str(ROOT / "constraints.txt"), str(wheel)])
        project = folder / "web-app"
        (project / ".git").mkdir(parents=True)
        environment = {"KEPT_HOME": str(folder / "home"), "HOME": str(folder), "PATH": os.environ["PATH"]}
        for command in COMMANDS:
            _run([python, "-m", "kept", *command], cwd=project, env=environment)
        version = _run([python, "-c", TALK, str(project)], cwd=project, env=environment).strip()
        (made,) = (folder / "home" / "projects").glob("*/kept.db")
        target = FOLDER / f"{version}.db"
        shutil.copyfile(made, target)
    return target


def _run(command: list[str], **about: object) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False, **about)  # type: ignore[call-overload]
    if done.returncode != 0:
        raise SystemExit(f"{command}\n{done.stdout}{done.stderr}")
    return str(done.stdout)


if __name__ == "__main__":
    print(make())
