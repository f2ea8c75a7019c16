"""`kept serve` where nothing is kept yet: a tour of sample data, marked as such, and nothing of it in the real home."""

import os
import signal
import subprocess
import sys
import urllib.request
from http.cookiejar import CookieJar
from pathlib import Path

from tests.http.conftest import free_port


def first_page(folder: Path, *more: str) -> tuple[list[str], str]:
    """The lines that `kept serve` prints in that folder, and the first page that the browser would show."""
    (folder / "proj" / ".git").mkdir(parents=True, exist_ok=True)
    (folder / "tmp").mkdir(exist_ok=True)
    environ = os.environ | {"KEPT_HOME": str(folder / "home"), "TMPDIR": str(folder / "tmp"), "PYTHONUNBUFFERED": "1"}
    command = [sys.executable, "-m", "kept", "serve", "--no-open", "--port", str(free_port()), *more]
    server = subprocess.Popen(command, cwd=folder / "proj", env=environ, stdout=subprocess.PIPE, text=True)
    assert server.stdout is not None
    lines: list[str] = []
    try:
        while not any("Stop it" in line for line in lines):
            lines.append(server.stdout.readline())
            assert lines[-1], "the server has ended"
        address = next(line.split()[-1] for line in lines if "http://" in line)
        opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(CookieJar()))
        with opener.open(address, timeout=60) as response:
            shown = response.read().decode()
    finally:
        server.send_signal(signal.SIGTERM)
        server.wait(20)
        server.stdout.close()
    return lines, shown


def test_a_fresh_home_shows_samples_and_stays_untouched(tmp_path: Path) -> None:
    lines, shown = first_page(tmp_path)
    assert lines[0].startswith("Nothing is kept yet, so the page shows sample data.")
    assert "Sample data." in shown
    assert "fix the login bug" in shown
    assert not (tmp_path / "home").exists()
    assert list((tmp_path / "tmp").glob("kept-demo-*")) == [], "the scratch home is left behind"


def test_who_wants_the_empty_page_gets_it(tmp_path: Path) -> None:
    lines, shown = first_page(tmp_path, "--no-demo")
    assert "sample" not in lines[0]
    assert "Nothing is kept on this machine yet." in shown


def test_where_something_is_kept_no_samples_are_shown(tmp_path: Path) -> None:
    import kept

    (tmp_path / "proj" / ".git").mkdir(parents=True)
    with kept.open(project=tmp_path / "proj", home=tmp_path / "home") as memory:
        memory.remember("We deploy on Tuesdays.")
    lines, shown = first_page(tmp_path)
    assert "sample" not in "".join(lines).lower()
    assert "Sample data." not in shown
    assert "fix the login bug" not in shown
