"""A server that is away: it is said at once where that is known, and waited for where it may come back."""

from collections.abc import Iterator
from contextlib import closing
from datetime import timedelta
from pathlib import Path

import pytest

from kept.entrypoints.hook.folder import HookFolder
from kept.entrypoints.hook.places import LATE, TOLD_LAST
from kept.entrypoints.http.problems import status_of
from kept.entrypoints.install.checks import _failures
from kept.errors import StorageError
from kept.storage.postgres import PostgresStorage, connection
from tests.builders import START
from tests.postgres.server import Server, initialised

FOR_EVER_S = 10_000.0


@pytest.fixture
def server() -> Iterator[Server]:
    server = Server(("fsync=off", "autovacuum=off"))  # which loses nothing that was committed
    server.create()
    server.start()
    yield server
    server.stop()


def test_where_nothing_listens_a_first_question_fails_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "FIRST_S", FOR_EVER_S)
    for url in ("postgresql://ann@127.0.0.1:1/kept", f"postgresql://ann@/kept?host={tmp_path}"):
        with pytest.raises(StorageError, match=r"cannot be reached: .*\.$") as told:
            PostgresStorage(url, "project/p1")
        assert told.value.is_away
        assert status_of(told.value) == 503


def test_after_one_has_waited_in_vain_others_do_not_wait_until_the_server_is_back(
    server: Server, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    with closing(PostgresStorage(initialised(server.url), "project/p1")) as storage:
        server.kill()
        monkeypatch.setattr(connection, "RECONNECT_S", 1.5 * connection.RETRY_S)
        for _ in range(2):
            with pytest.raises(StorageError) as told, storage.reading() as reader:
                reader.count()
            assert told.value.is_away
            monkeypatch.setattr(connection, "RECONNECT_S", FOR_EVER_S)
        assert caplog.text.count("does not answer yet. Waiting for it.") == 1
        server.start()
        with storage.reading() as reader:
            assert reader.count() == 0


def test_a_hook_that_told_the_last_briefing_is_not_counted_as_out_of_time(tmp_path: Path) -> None:
    hooks = HookFolder(tmp_path)
    hooks.prepare()
    about = {"agent": "claude-code", "event": "UserPromptSubmit", "at": f"{START:%Y-%m-%dT%H:%M:%SZ}"}
    for number in range(6):
        hooks.note_failure(about, f"{LATE} 1000 ms" + (f"; {TOLD_LAST} 2026-11-19" if number == 0 else ""))
    [found] = [one for one in _failures(hooks, START + timedelta(hours=1)) if one.level == "problem"]
    assert "5 hooks ran out of time" in found.message
    assert "5 at a prompt" in found.message
