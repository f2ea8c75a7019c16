"""A server that is far away: a proxy that delays every byte, and counts the round trips that a client waits for.

A round trip is counted whenever the server answers something that the client has sent. That TCP connects costs one more
is simulated as a delay and not counted.
"""

import queue
import selectors
import shutil
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.parse import quote

import psycopg
import pytest
from psycopg import sql

from kept.storage.postgres import schema
from tests.postgres.server import FAST, Server

INSTALLED = Path("/usr/lib/postgresql")
PASSWORD = "p@ss/w:o#rd"


class Distance:
    """A proxy in front of a port of this machine."""

    def __init__(self, port: int) -> None:
        self.target, self.trips, self.connections, self.delay_s = port, 0, 0, 0.0
        self.listening = socket.create_server(("127.0.0.1", 0))
        self.port = self.listening.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self.listening.accept()
            except OSError:
                return
            threading.Thread(target=self._relay, args=(client,), daemon=True).start()

    def _relay(self, client: socket.socket) -> None:
        try:
            server = socket.create_connection(("127.0.0.1", self.target))
        except OSError:  # it was stopped
            client.close()
            return
        for end in (client, server):
            end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.connections += 1
        ways = {client: self._later(server), server: self._later(client)}
        is_first, is_waiting = True, False
        watch = selectors.DefaultSelector()
        for end in ways:
            watch.register(end, selectors.EVENT_READ)
        while True:
            for key, _ in watch.select():
                end = key.fileobj
                assert isinstance(end, socket.socket)
                try:
                    chunk = end.recv(1 << 16)
                except OSError:
                    chunk = b""
                if end is client and chunk:
                    is_waiting = True
                elif chunk:
                    self.trips += is_waiting
                    is_waiting = False
                extra = self.delay_s if is_first else 0.0  # SYN and SYN-ACK
                is_first = False
                ways[end](chunk, time.monotonic() + self.delay_s / 2 + extra)
                if not chunk:
                    watch.close()
                    ways[client if end is server else server](b"", time.monotonic() + self.delay_s)
                    return

    def _later(self, end: socket.socket) -> Callable[[bytes, float], None]:
        """Return a function that sends a chunk at a time, in order. An empty chunk closes."""
        waiting: queue.SimpleQueue[tuple[bytes, float]] = queue.SimpleQueue()

        def send() -> None:
            while True:
                chunk, at = waiting.get()
                if (left := at - time.monotonic()) > 0:
                    time.sleep(left)
                with suppress(OSError):
                    end.sendall(chunk) if chunk else end.shutdown(socket.SHUT_RDWR)
                if not chunk:
                    end.close()
                    return

        threading.Thread(target=send, daemon=True).start()
        return lambda chunk, at: waiting.put((chunk, at))

    @contextmanager
    def counting(self) -> Iterator[Callable[[], int]]:
        """Count the round trips in the block."""
        before = self.trips
        yield lambda: self.trips - before


class FarServer:
    """A server with passwords (SCRAM) behind a proxy, with TLS if it can, and a database with Kept's schema on it."""

    def __init__(self, *, has_tls: bool, is_installed: bool = False, is_empty: bool = False) -> None:
        """`is_installed`: of the programs of this machine, as with TLS; `is_empty`: without an owner and a database."""
        binaries = next(iter(sorted(INSTALLED.glob("*/bin"))), None) if has_tls or is_installed else None
        if is_installed and binaries is None:
            pytest.skip(f"There is no PostgreSQL in {INSTALLED}.")
        if has_tls and (binaries is None or shutil.which("openssl") is None):
            pytest.skip(f"TLS needs openssl and a PostgreSQL in {INSTALLED}: the wheel's was built without it.")
        for port in (_free_port() for _ in range(3)):
            if self._has_started(port, binaries, has_tls=has_tls):
                break
        self.distance = Distance(port)
        if is_empty:
            return
        root = self.server.url
        with psycopg.connect(root, autocommit=True) as connection:
            connection.execute("create role kept_owner login createrole")
            connection.execute(sql.SQL("alter role kept_owner password {}").format(sql.Literal(PASSWORD)))
            connection.execute("create database kept owner kept_owner")
        self.owner = self.url("kept_owner")
        schema.initialise(self.owner)

    def _has_started(self, port: int, binaries: Path | None, *, has_tls: bool) -> bool:
        """Start the server; False if another program of this machine has taken the port in the meantime."""
        settings = (*FAST, "listen_addresses=127.0.0.1", f"port={port}", f"ssl={'on' if has_tls else 'off'}")
        self.has_tls = has_tls
        self.server = Server(settings, binaries)
        self.server.port = port
        self.server.create()
        if has_tls:
            _make_certificate(self.server.data, self.server.owner)
        kind = "hostssl" if has_tls else "host"
        hba = self.server.data / "pg_hba.conf"
        hba.write_text(f"local all postgres trust\n{kind} all all 127.0.0.1/32 scram-sha-256\n")
        self.server.start()
        if "could not bind" not in (self.server.folder / "log").read_text():
            return True
        self.server.stop()
        return False

    def let_in(self, role: str) -> str:
        """Let a role in, with its password, and return its URL without it: PGPASSWORD or ~/.pgpass has it."""
        schema.grant(self.owner, role)
        with psycopg.connect(self.owner, autocommit=True) as connection:
            change = sql.SQL("alter role {} password {}")
            connection.execute(change.format(sql.Identifier(role), sql.Literal(PASSWORD)))
        return self.url(role, has_password=False)

    def url(self, role: str, *, has_password: bool = True) -> str:
        secret = f":{quote(PASSWORD, safe='')}" if has_password else ""
        mode = "require" if self.has_tls else "disable"
        return f"postgresql://{role}{secret}@127.0.0.1:{self.distance.port}/kept?sslmode={mode}"

    def stop(self) -> None:
        with suppress(OSError):
            self.distance.listening.shutdown(socket.SHUT_RDWR)  # which ends the thread that accepts
        self.distance.listening.close()
        self.server.stop()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _make_certificate(folder: Path, owner: str | None) -> None:
    certificate, key = folder / "server.crt", folder / "server.key"
    asked = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=localhost", "-days", "30"]
    subprocess.run([*asked, "-out", certificate, "-keyout", key], check=True, capture_output=True)
    key.chmod(0o600)
    for file in (certificate, key):
        if owner:
            shutil.chown(file, owner)
