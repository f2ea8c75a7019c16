"""Importing Kept does nothing: it reads no file but modules, no environment variable, and starts nothing."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import kept

# Runs in an interpreter of its own, which imports the module named in argv under observation.
PROBE = """
import importlib, json, os, sys, threading
import apsw, msgspec  # theirs to answer for, not ours

seen = []
MODULES = (".py", ".pyc", ".so", ".pyd")
STARTS = ("socket.", "subprocess.", "os.fork", "os.exec", "os.spawn", "os.posix_spawn", "os.system")
CHANGES = ("os.mkdir", "os.remove", "os.rename", "os.rmdir", "os.chmod", "os.link", "os.symlink", "os.truncate")

def watch(event, args):
    if event == "open" and not str(args[0]).endswith(MODULES):
        seen.append(f"open {args[0]}")
    elif event.startswith((*STARTS, *CHANGES)) or event in ("os.putenv", "os.unsetenv", "sqlite3.connect"):
        seen.append(event)

read = os._Environ.__getitem__

def spy(environ, name):
    seen.append(f"environment {name}")
    return read(environ, name)

# By one of these every Thread starts; which one depends on the version of Python.
starter = next(name for name in ("_start_joinable_thread", "_start_new_thread") if hasattr(threading, name))
start = getattr(threading, starter)

def start_seen(*args, **options):
    seen.append("thread")
    return start(*args, **options)

setattr(threading, starter, start_seen)
os._Environ.__getitem__ = spy
sys.addaudithook(watch)
importlib.import_module(sys.argv[1])
found = list(seen)
print(json.dumps(found))
"""


def what_importing_does(module: str, folder: Path) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-B", "-c", PROBE, module],
        env=os.environ | {"PYTHONPATH": str(folder)},
        capture_output=True,
        text=True,
        check=True,
    )
    return list(json.loads(done.stdout))


def test_importing_kept_reads_nothing_and_starts_nothing() -> None:
    for module in ("kept", "kept.memory.opening", "kept.entrypoints.cli.frame"):
        assert what_importing_does(module, Path(kept.__file__).parent.parent) == []


@pytest.mark.parametrize(
    ("line", "seen"),
    [
        ("open(__file__ + '.txt', 'w').close()", "open"),
        ("os.environ.get('HOME')", "environment HOME"),
        ("os.getenv('KEPT_HOME')", "environment KEPT_HOME"),
        ("import threading; threading.Thread(target=len, args=[()]).start()", "thread"),
        ("import socket; socket.socket().close()", "socket.__new__"),
        ("import subprocess; subprocess.run(['true'])", "subprocess.Popen"),
        ("os.mkdir(__file__ + '.d')", "os.mkdir"),
    ],
)
def test_the_probe_sees_a_module_that_does_something(tmp_path: Path, line: str, seen: str) -> None:
    (tmp_path / "busybody.py").write_text(f"import os\n{line}\n", encoding="utf-8")
    assert any(event.startswith(seen) for event in what_importing_does("busybody", tmp_path))


def test_importing_kept_imports_no_other_module() -> None:
    code = "import sys; before = set(sys.modules); import kept; print(sorted(set(sys.modules) - before))"
    env = os.environ | {"PYTHONPATH": str(Path(kept.__file__).parent.parent)}
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "['kept']"


def test_importing_kept_sets_up_no_logging() -> None:
    code = "import kept.memory, logging; print(logging.root.handlers, logging.getLogger('kept').handlers)"
    env = os.environ | {"PYTHONPATH": str(Path(kept.__file__).parent.parent)}
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["[]", "[]"]
