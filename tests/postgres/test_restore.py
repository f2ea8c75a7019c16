"""The backup and the restore of docs/operating.md, run as they stand there from one server to another."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

import kept
from kept.storage.postgres import number_of, schema
from tests.postgres.distance import INSTALLED
from tests.postgres.server import Server, as_member

ROOT = Path(__file__).parents[2]
BLOCK = re.compile(r"^```sh (backup|restore)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
URL = re.compile(r"postgresql://(\w+)@(db[12])\.example\.com/(\w+)")


@pytest.fixture
def binaries() -> Path:
    found = [folder for folder in sorted(INSTALLED.glob("*/bin")) if (folder / "pg_dumpall").exists()]
    if not found:
        pytest.skip(f"There is no PostgreSQL with its client programs in {INSTALLED}.")
    return found[0]


@pytest.fixture
def servers(binaries: Path) -> Iterator[dict[str, Server]]:
    made = {name: Server(binaries=binaries) for name in ("db1", "db2")}
    for server in made.values():
        server.create()
        server.start()
    yield made
    for server in made.values():
        server.stop()


def test_the_commands_for_a_backup_and_a_restore_bring_everything_back(
    servers: dict[str, Server], binaries: Path, tmp_path: Path
) -> None:
    def url(name: str, role: str, database: str) -> str:
        return as_member(servers[name].url, database, role)

    with psycopg.connect(servers["db1"].url, autocommit=True) as root:
        root.execute("create role kept_owner login createrole")
        root.execute("create database other")  # so that the numbers of the databases differ
        root.execute("create database kept owner kept_owner")
    owner = url("db1", "kept_owner", "kept")
    schema.initialise(owner)
    schema.grant(owner, "ann")
    for project in ("web-app", "billing"):
        with kept.open(url("db1", "ann", "kept"), project=project, home=tmp_path / "ann") as memory:
            memory.remember(f"Deploys of {project} run on Fridays")
    schema.grant(owner, "robot", [(number_of("project/web-app"), "project/web-app")])

    program = tmp_path / "bin" / "kept"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m kept "$@"\n')
    program.chmod(0o755)
    path = f"{program.parent}:{binaries}:{os.environ['PATH']}"
    environ = {"PATH": path, "PYTHONPATH": str(ROOT / "src"), "KEPT_HOME": str(tmp_path / "operator"), "LC_ALL": "C"}
    blocks = BLOCK.findall((ROOT / "docs" / "operating.md").read_text("utf-8"))
    assert [name for name, _ in blocks] == ["backup", "restore"]
    for _, commands in blocks:
        commands = URL.sub(lambda found: f"'{url(found[2], found[1], found[3])}'", commands)
        done = subprocess.run(
            ["bash", "-ec", commands], cwd=tmp_path, env=environ, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, f"{commands}\n{done.stdout}{done.stderr}"
    assert {(tmp_path / name).stat().st_mode & 0o777 for name in ("roles.sql", "kept.dump")} == {0o600}

    for role, project in (("ann", "web-app"), ("ann", "billing"), ("robot", "web-app")):
        with kept.open(url("db2", role, "kept"), project=project, home=tmp_path / f"new {role}") as memory:
            assert [one.content for one in memory.list()] == [f"Deploys of {project} run on Fridays"]
    with kept.open(url("db2", "robot", "kept"), project="billing", home=tmp_path / "new robot") as memory:
        assert memory.list() == []
