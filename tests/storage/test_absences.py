"""A "no" of a damaged file is an error: what one place has lost, another one knows.

Each test takes something away in the file itself, as a changed byte does, and asks for it.
"""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import apsw
import pytest

from kept.errors import Corrupt
from kept.model import Conflict, Memory, Message, Session, replace
from kept.ports import ANYWHERE, LIVE, Where
from kept.storage.sqlite import SqliteStorage, doctor
from kept.storage.sqlite.reader import SqliteReader
from tests.builders import START, memory, stamp

PAGE = 4096
UID = "019ca945-0a00-7000-9000-0000000000a{}".format
N_MEMORIES = 60


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A file with memories on many pages, a conflict, a conversation; one memory was erased, with its conflict."""
    path = tmp_path / "kept.db"
    storage = SqliteStorage(path, "project/p1")
    with storage.writing(stamp("first")) as tx:
        for n in range(N_MEMORIES):
            uid = {"uid": UID(n)} if n < 10 else {}
            tx.add(memory(f"Number {n}: " + "so it is " * 60, **uid), "remember")
    with storage.writing(stamp("second")) as tx:
        first, second, third = (tx.get(Memory, id) for id in (1, 2, 3))
        assert first is not None
        assert second is not None
        assert third is not None
        tx.put(replace(first, feedback=3), "reinforce")
        tx.put(replace(second, feedback=3), "reinforce")
        tx.add(Conflict(left=first.uid, right=second.uid, type="ambiguous", detected_at=START), "conflict")
        tx.add(Conflict(left=second.uid, right=third.uid, type="ambiguous", detected_at=START), "conflict")
        tx.erase(third)
        tx.add(Session(name="talk", agent="codex", started_at=START), "session")
        tx.append([Message(id=f"m{n}", role="user", session="talk", content="so", at=START) for n in range(5)])
    storage.close()
    return path


@pytest.fixture
def reader(path: Path) -> Iterator[SqliteReader]:
    storage = SqliteStorage(path)
    with storage.reading() as reader:
        yield reader
    storage.close()


def tamper(path: Path, sql: str) -> None:
    connection = apsw.Connection(str(path))
    connection.execute(sql)
    connection.close()


def overwrite(path: Path, btree: str, old: bytes, new: bytes, *, times: int = -1) -> None:
    """Change bytes in the leaves of one table or index, and nowhere else; at most so often on each page."""
    assert len(old) == len(new)
    content = bytearray(path.read_bytes())
    changed = 0
    for number in _pages(path, btree):
        start = (number - 1) * PAGE
        page = bytes(content[start : start + PAGE])
        changed += page.count(old)
        content[start : start + PAGE] = page.replace(old, new, times)
    assert changed
    path.write_bytes(content)


def _pages(path: Path, btree: str, kind: str = "leaf") -> list[int]:
    connection = apsw.Connection(str(path))
    found: Any = connection.execute(
        "select pageno from dbstat where name = ? and pagetype = ?", (btree, kind)
    ).fetchall()
    connection.close()
    return [number for (number,) in found]


def hide_from_its_tree(path: Path) -> int:
    """Let the way to a memory lead past its page: the key of a branch is one too small. Which memory."""
    (root,) = _pages(path, "memories", "internal")
    content = bytearray(path.read_bytes())
    start = (root - 1) * PAGE
    cell = start + int.from_bytes(content[start + 16 : start + 18], "big")  # the third one
    last_on_its_page = content[cell + 4]
    assert 3 < last_on_its_page < 0x80  # a number of one byte
    content[cell + 4] -= 1
    path.write_bytes(content)
    return last_on_its_page


def swap_leaf_entry(path: Path, index: str, at: int, other: int) -> None:
    """Let one entry of an index of a single page stand in the place of another, too."""
    (number,) = _pages(path, index)
    content = bytearray(path.read_bytes())
    pointers = (number - 1) * PAGE + 8
    content[pointers + 2 * other : pointers + 2 * other + 2] = content[pointers + 2 * at : pointers + 2 * at + 2]
    path.write_bytes(content)


def ask(path: Path, question: Callable[[SqliteReader], Any]) -> Any:
    storage = SqliteStorage(path)
    try:
        with storage.reading() as reader:
            return question(reader)
    finally:
        storage.close()


def test_what_was_never_there_or_erased_is_simply_not_there(reader: SqliteReader) -> None:
    assert reader.get(Memory, 3) is None
    assert reader.get(Memory, N_MEMORIES + 1) is None
    assert reader.get(Conflict, 2) is None
    assert reader.select(replace(ANYWHERE, uid=UID(2))) == []
    assert reader.select(replace(ANYWHERE, uid="nobody")) == []
    assert reader.select(Where(uid=UID(1), shelf="archive")) == []
    assert reader.events(subject="nobody") == []
    assert reader.events(group="nobody") == []
    assert [event.changed is None for event in reader.events(subject=UID(2))] == [True, False]
    assert [event.changed for event in reader.events(subject="c2")] == [None]
    assert reader.messages("nobody") == []
    assert len(reader.messages("talk")) == 5
    assert reader.count() == reader.count(Where(scope=None)) == N_MEMORIES - 1


def test_a_memory_that_its_number_no_longer_leads_to(path: Path) -> None:
    id = hide_from_its_tree(path)
    with pytest.raises(Corrupt, match=f"memory {id} is damaged"):
        ask(path, lambda reader: reader.get(Memory, id))


def test_a_memory_that_its_uid_no_longer_leads_to(path: Path) -> None:
    overwrite(path, "sqlite_autoindex_memories_1", UID(1).encode(), UID("x").encode())
    with pytest.raises(Corrupt, match="what it is about"):
        ask(path, lambda reader: reader.select(replace(ANYWHERE, uid=UID(1))))


@pytest.mark.parametrize(
    "question",
    [
        lambda reader: reader.events(),
        lambda reader: reader.events(newest_first=True, limit=70),
        lambda reader: reader.events(subject=UID(1)),
        lambda reader: reader.events(subject=UID(1), newest_first=True),
    ],
    ids=["the journal", "its end", "a history", "a history backwards"],
)
@pytest.mark.parametrize(
    "loss",
    [
        f"delete from events where subject = '{UID(1)}' and action = 'reinforce'",
        f"delete from event_payloads where seq = (select max(seq) from events where subject = '{UID(1)}')",
    ],
    ids=["an event", "what it changed"],
)
def test_something_that_is_missing_in_the_journal(
    path: Path, loss: str, question: Callable[[SqliteReader], object]
) -> None:
    tamper(path, loss)
    with pytest.raises(Corrupt):
        ask(path, question)


def test_an_erasure_does_not_explain_that_it_says_nothing_itself(path: Path) -> None:
    tamper(path, "delete from event_payloads where seq = (select seq from events where action = 'erase')")
    with pytest.raises(Corrupt, match="What event 65 changed"):
        ask(path, lambda reader: reader.events(subject=UID(2)))


@pytest.mark.parametrize("subject", [UID(1), "c1", "session:talk"])
def test_a_history_that_the_index_has_lost(path: Path, subject: str) -> None:
    overwrite(path, "events_by_subject", subject.encode(), b"?" * len(subject))
    with pytest.raises(Corrupt):
        ask(path, lambda reader: reader.events(subject=subject))


def test_a_call_of_which_the_index_has_lost_an_event(path: Path) -> None:
    n_events = len(ask(path, lambda reader: reader.events(group="second")))
    overwrite(path, "events_by_group", b"second", b"zecond", times=1)
    with pytest.raises(Corrupt, match="The journal around event"):
        ask(path, lambda reader: reader.events(group="second"))
    assert n_events == 6


def test_a_session_that_its_name_no_longer_leads_to(path: Path) -> None:
    overwrite(path, "sqlite_autoindex_sessions_1", b"talk", b"walk")
    with pytest.raises(Corrupt, match="lacks talk"):
        ask(path, lambda reader: reader.session("talk"))
    assert ask(path, lambda reader: reader.session("another")) is None


@pytest.mark.parametrize("index", ["sqlite_autoindex_messages_1", "sqlite_autoindex_messages_2"])
def test_messages_that_an_index_has_lost(path: Path, index: str) -> None:
    overwrite(path, index, b"talk", b"walk")
    with pytest.raises(Corrupt):
        ask(path, lambda reader: reader.messages("talk"))


def test_a_message_that_its_place_no_longer_leads_to(path: Path) -> None:
    swap_leaf_entry(path, "sqlite_autoindex_messages_1", 1, 2)
    with pytest.raises(Corrupt, match="Message 3 of session talk"):
        ask(path, lambda reader: reader.messages_at([("talk", 1), ("talk", 3), ("talk", 9)]))
    with pytest.raises(Corrupt, match="of which some belong to session talk"):
        ask(path, lambda reader: reader.messages("talk"))


def test_a_packed_session_that_its_name_no_longer_leads_to(path: Path) -> None:
    storage = SqliteStorage(path)
    with storage.writing(stamp()) as tx:
        session = tx.session("talk")
        assert session is not None
        tx.pack("talk")
        tx.put(replace(session, packed_at=START), "pack")
        tx.add(Session(name="empty", started_at=START, packed_at=START), "session")
    storage.close()
    assert ask(path, lambda reader: (len(reader.messages("talk")), reader.messages("empty"))) == (5, [])
    tamper(path, "update packed_sessions set session = 'walk'")
    with pytest.raises(Corrupt, match="The packed session talk"):
        ask(path, lambda reader: reader.messages("talk"))


def test_a_message_that_only_the_index_of_words_knows(path: Path) -> None:
    tamper(path, "drop trigger messages_removed")
    tamper(path, "delete from messages where n = 3")
    with pytest.raises(Corrupt, match="knows one that is not there"):
        ask(path, lambda reader: reader.search_messages(["so"], limit=10))


def test_a_memory_whose_scope_is_no_scope_is_not_passed_over(path: Path) -> None:
    tamper(path, "drop trigger memories_changed")
    tamper(path, "update memories set scope = 'mamory' where id = 5")
    with pytest.raises(Corrupt, match="memory 5 is damaged"):
        ask(path, lambda reader: reader.select(LIVE, limit=100))


def test_a_row_that_its_table_has_twice(path: Path) -> None:
    storage = SqliteStorage(path)
    with storage.writing(stamp()) as tx:
        tx.add(Session(name="another", started_at=START), "session")
    storage.close()
    swap_leaf_entry(path, "sessions", 0, 1)
    with pytest.raises(Corrupt, match="The table of sessions"):
        ask(path, lambda reader: reader.all(Session))


def test_rows_of_which_there_are_fewer_than_were_counted(path: Path) -> None:
    tamper(path, "drop trigger memories_removed")
    tamper(path, "delete from memories where id = 5")
    with pytest.raises(Corrupt, match="how many there are"):
        ask(path, lambda reader: reader.count())


def test_what_a_repair_could_not_save_is_accounted_for(path: Path) -> None:
    """From then on it is told, and no question about the rest fails."""
    tamper(path, f"delete from events where subject = '{UID(4)}'")
    doctor.repair(path, now=START)
    storage = SqliteStorage(path)
    with storage.reading() as reader:
        assert [event.seq for event in reader.events(limit=6)] == [1, 2, 3, 4, 6, 7]
        assert len(reader.events(subject=UID(1))) == 2
        found = reader.get(Memory, 5)
        assert found is not None
        assert reader.events(subject=found.uid) == []
    storage.close()
