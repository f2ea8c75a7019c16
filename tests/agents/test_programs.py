"""Installing the agent programs never disturbs what does not need them: one line, exit code 1, within its time."""

import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).parents[2]


def install(folder: Path, npm: str | None, *options: str) -> subprocess.CompletedProcess[str]:
    """Run the installer for Claude Code with this script as npm."""
    (folder / "bin").mkdir(parents=True)
    if npm is not None:
        (folder / "bin" / "npm").write_text(f"#!/bin/sh\n{npm}\n")
        (folder / "bin" / "npm").chmod(0o755)
    (folder / "bin" / "sleep").symlink_to("/bin/sleep")
    env = {"PATH": str(folder / "bin"), "HOME": str(folder), "KEPT_AGENTS_DIR": str(folder / "cache")}
    command = [sys.executable, "-m", "tests.agents.programs", *options, "claude"]
    done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1
    assert len(done.stderr.splitlines()) == 1, done.stderr
    return done


def test_without_npm_one_line_says_so(tmp_path: Path) -> None:
    assert "npm is needed" in install(tmp_path, None).stderr


def test_without_a_network_one_line_says_so(tmp_path: Path) -> None:
    assert "npm could not install node@" in install(tmp_path, "exit 1").stderr


def test_an_installation_that_hangs_is_ended_with_all_it_started(tmp_path: Path) -> None:
    begun = time.monotonic()
    done = install(tmp_path, "sleep 600 & sleep 600", "--within", "1")  # whose stderr is read until both have ended
    assert "in the time" in done.stderr
    assert time.monotonic() - begun < 30


def test_a_folder_that_cannot_be_written_is_no_crash(tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("a file where the folder should be")
    assert str(tmp_path / "cache") in install(tmp_path, "exit 0").stderr
