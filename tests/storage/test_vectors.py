"""Vectors in a file: found in two steps, gone when erased, checked and made anew by doctor."""

import random
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import kept
from kept import text, vectors
from kept.model import Memory, replace
from kept.ports import VectorState, Where
from kept.storage.jsonfile import JsonFileStorage
from kept.storage.sqlite import SqliteStorage
from kept.storage.sqlite import vectors as stored
from kept.storage.sqlite.health import examine, repair
from tests.behind import behind
from tests.builders import START, FakeClock, memory, stamp

SPACE = "project/portable"  # as kept.open calls a single file
WIDTH = 64
MODEL = "m1"


def some_vectors(count: int, seed: int = 1) -> list[bytes]:
    dice = random.Random(seed)
    return vectors.pack([[dice.gauss(0, 1) for _ in range(WIDTH)] for _ in range(count)])


def fill(storage: SqliteStorage | JsonFileStorage, made: list[bytes], **fields: Any) -> list[Memory]:
    with storage.writing(stamp()) as tx:
        added = [tx.add(memory(f"statement {n}", space=SPACE, **fields), "remember") for n in range(len(made))]
    with storage.bookkeeping() as notes:
        assert notes is not None
        notes.choose_model(MODEL)
        notes.save_vectors(MODEL, list(zip(added, made, strict=True)))
    return added


@pytest.fixture
def path(tmp_path: Path) -> Path:
    folder = tmp_path / "space"
    folder.mkdir(mode=0o700)
    return folder / "kept.db"


@pytest.fixture
def storage(path: Path) -> Iterator[SqliteStorage]:
    storage = SqliteStorage(path, SPACE)
    yield storage
    storage.close()


# The numbers


def test_a_vector_has_a_direction_and_no_length() -> None:
    short, long, none = vectors.pack([[0.1, 0.2] * 4, [10.0, 20.0] * 4, [0.0] * 8])
    assert short == long
    assert vectors.cosines(short, [long, none]) == [pytest.approx(1.0, abs=1e-3), 0.0]
    assert vectors.cosines(short, []) == []
    assert vectors.signs(short) == b"\xff"
    assert vectors.signs(none) == b"\x00"


@pytest.mark.parametrize("width", [8, 20, 64, 256])
def test_sketches_are_compared_bit_by_bit(width: int) -> None:
    """The same order as counting the bits that differ, one by one; an empty place is nobody's."""
    dice = random.Random(width)
    rows = vectors.pack([[dice.gauss(0, 1) for _ in range(width)] for _ in range(50)])
    sketches = [vectors.signs(row) for row in rows]
    sketches[7] = bytes(len(sketches[7]))
    asked = sketches[3]

    def differing(place: int) -> int:
        return (int.from_bytes(asked) ^ int.from_bytes(sketches[place])).bit_count()

    expected = sorted(
        (place for place in range(50) if any(sketches[place])), key=lambda place: (differing(place), place)
    )
    for limit in (0, 1, 10, 49, 1_000):
        assert vectors.nearest(asked, b"".join(sketches), limit) == expected[:limit]


@pytest.mark.parametrize("rows", [[[1.0], [1.0, 2.0]], [1.0, 2.0], [[]], [[float("inf")]], [["a"]], []])
def test_what_is_no_row_of_numbers_is_refused(rows: Any) -> None:
    with pytest.raises(kept.InvalidInput, match="one row of finite numbers"):
        vectors.pack(rows)


# Finding


def test_the_two_steps_find_what_comparing_all_of_them_would(storage: SqliteStorage) -> None:
    """B16: signs first, then exactly; over several chunks, and also where a filter leaves few."""
    made = some_vectors(3 * stored.CHUNK)
    added = fill(storage, made)
    with storage.writing(stamp()) as tx:
        for odd in added[::50]:
            tx.put(replace(odd, kind="warning"), "revise")
    asked = vectors.pack([[a + b for a, b in zip(_row(made[10]), _row(made[600]), strict=True)]])[0]
    cosines = dict(zip((one.id for one in added), vectors.cosines(asked, made), strict=True))
    exactly = sorted(cosines, key=lambda id: (-cosines[id], -id))
    with storage.reading() as reader:
        found = reader.nearest(asked, limit=5)
        assert {hit.memory.id for hit in found[:2]} == {added[10].id, added[600].id} == set(exactly[:2])
        assert [hit.rank for hit in found] == [cosines[hit.memory.id] for hit in found]
        filtered = reader.nearest(asked, Where(kinds=("warning",)), limit=5)
        wanted = [id for id in exactly if id in {one.id for one in added[::50]}]
        assert [hit.memory.id for hit in filtered] == wanted[:5]


def _row(vector: bytes) -> list[float]:
    import numpy as np

    return [float(number) for number in np.frombuffer(vector, dtype="<f2")]


# Erasing


@pytest.mark.parametrize("suffix", [".db", ".json"])
def test_no_byte_of_an_erased_vector_is_left(suffix: str, tmp_path: Path) -> None:
    """A vector tells what a text is about: rows, sketches, the WAL and the backups beside the store are cleaned."""
    home = tmp_path / "home"
    home.mkdir()
    place, clock = home / f"memory{suffix}", FakeClock()
    made = some_vectors(15)
    storage = JsonFileStorage(place, SPACE) if suffix == ".json" else SqliteStorage(place, SPACE)
    added = fill(storage, made)
    storage.close()
    if suffix == ".db":
        backups = home / f"{place.name}.backups"
        backups.mkdir(mode=0o700)
        storage = SqliteStorage(place, SPACE)
        storage.back_up(backups / "2026-03-01.db")
        storage.close()
    doomed = range(0, 15, 3)
    assert traces(home, [made[n] for n in doomed]), "they were there in the first place"
    with kept.open(place, clock=clock, settings=kept.Settings()) as opened:
        for n in doomed:
            assert opened.erase(added[n].uid).reason == "erased"
    assert traces(home, [made[n] for n in doomed]) == []
    assert traces(home, [made[n] for n in range(15) if n not in doomed])
    storage = JsonFileStorage(place, SPACE) if suffix == ".json" else SqliteStorage(place, SPACE)
    with storage.reading() as reader:
        assert reader.vector_state() == VectorState(MODEL, done=10, pending=0)
    storage.close()


def traces(folder: Path, gone: list[bytes]) -> list[str]:
    """The files that hold eight bytes in a row of one of the vectors, or its whole sketch."""
    import base64

    runs = {one[start : start + 8] for one in gone for start in range(0, len(one) - 8, 2)}
    runs |= {vectors.signs(one) for one in gone}
    runs |= {base64.b64encode(one)[start : start + 12] for one in gone for start in range(0, 160, 4)}
    files = [path for path in sorted(folder.rglob("*")) if path.is_file()]
    held = {path.name: path.read_bytes() for path in files}
    return [name for name, content in held.items() if any(run in content for run in runs)]


def test_the_search_for_traces_would_notice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stored, "drop", lambda *_: None)
    storage = SqliteStorage(tmp_path / "memory.db", SPACE)
    made = some_vectors(3)
    [first, *_] = fill(storage, made)
    with storage.writing(stamp()) as tx:
        tx.erase(first)
    storage.scrub()
    storage.close()
    assert traces(tmp_path, made[:1]) == ["memory.db"]


def test_going_back_to_a_backup_brings_vectors_back_but_none_of_the_erased(tmp_path: Path) -> None:
    storage = SqliteStorage(tmp_path / "memory.db", SPACE)
    made = some_vectors(3)
    added = fill(storage, made)
    storage.back_up(tmp_path / "backup.db")
    with storage.writing(stamp()) as tx:
        tx.erase(added[0])
    storage.scrub()
    with storage.bookkeeping() as notes:
        assert notes is not None
        notes.choose_model(None)
    storage.restore_from(tmp_path / "backup.db", overwrite_newer=True)
    with storage.reading() as reader:
        assert reader.vectors([one.id for one in added]) == {added[1].id: made[1], added[2].id: made[2]}
        assert [hit.memory.id for hit in reader.nearest(made[0], limit=9)] != []
    storage.close()


# Doctor


def findings(path: Path) -> list[tuple[str, str]]:
    return [(one.level, one.message) for one in examine(path, now=START, deep=True) if one.check == "vectors"]


def harm(path: Path, sql: str, *values: object) -> None:
    connection = behind(path)
    connection.execute("pragma foreign_keys = off")
    connection.execute(sql, values)
    connection.close()


HARMS: dict[str, tuple[str, str]] = {
    "a changed number": ("update vectors set vector = zeroblob(128) where id = 2", "memory 2"),
    "another text's": ("update vectors set fingerprint = 'other' where id = 2", "memory 2"),
    "a changed sketch": ("update vector_signs set signs = zeroblob(length(signs))", "memories 1, 2 and 3"),
    "one that is gone": ("delete from vectors where id = 3", "memory 3"),
}


@pytest.mark.parametrize("kind", HARMS)
def test_doctor_finds_harm_to_vectors_and_makes_them_anew(kind: str, path: Path) -> None:
    storage = SqliteStorage(path, SPACE)
    made = some_vectors(3)
    fill(storage, made)
    storage.close()
    assert findings(path) == [("ok", "All 3 vectors match their texts.")]
    sql, named = HARMS[kind]
    harm(path, sql)
    [(level, message)] = findings(path)
    assert (level, message) == ("problem", f"Missing or damaged vectors: {named}.")
    repair(path, now=START)
    storage = SqliteStorage(path, SPACE)
    with storage.reading() as reader:
        state, waiting = reader.vector_state(), reader.vectorless(limit=9)
        assert (state.model, state.done + state.pending) == (MODEL, 3)
    with storage.bookkeeping() as notes:
        assert notes is not None
        notes.save_vectors(MODEL, [(one, made[one.id - 1]) for one in waiting])
    storage.close()
    assert findings(path) == [("ok", "All 3 vectors match their texts.")]


def test_sketches_of_another_length_are_no_answer(path: Path) -> None:
    storage = SqliteStorage(path, SPACE)
    made = some_vectors(3)
    fill(storage, made)
    storage.close()
    harm(path, "update vector_signs set signs = x'00'")
    storage = SqliteStorage(path, SPACE)
    with storage.reading() as reader, pytest.raises(kept.Corrupt, match="The vector index is damaged"):
        reader.nearest(made[0], limit=3)
    storage.close()


def test_doctor_says_how_many_wait_and_nothing_where_there_are_none(path: Path) -> None:
    storage = SqliteStorage(path, SPACE)
    with storage.writing(stamp()) as tx:
        tx.add(memory("Before", space=SPACE), "remember")
    storage.close()
    assert findings(path) == []
    storage = SqliteStorage(path, SPACE)
    fill(storage, some_vectors(2))
    storage.close()
    assert findings(path) == [("note", "1 memory has no vector yet.")]


def test_doctor_works_without_numpy(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    storage = SqliteStorage(path, SPACE)
    [first, *_] = fill(storage, some_vectors(2))
    monkeypatch.setitem(sys.modules, "numpy", None)
    assert findings(path) == [("note", "Not checked. Vectors need numpy.")]
    with storage.writing(stamp()) as tx:
        tx.erase(first)
    with storage.reading() as reader:
        assert reader.vector_state() == VectorState(MODEL, done=1, pending=0), "erasing needs no numpy"
    storage.close()


# Others at the same time


def test_a_vector_for_a_text_that_changed_meanwhile_is_not_kept(storage: SqliteStorage) -> None:
    made = some_vectors(2)
    with storage.writing(stamp()) as tx:
        first, second = (tx.add(memory(name, space=SPACE), "remember") for name in ("first", "second"))
    with storage.bookkeeping() as notes:
        assert notes is not None
        notes.choose_model(MODEL)
    with storage.writing(stamp()) as tx:
        tx.put(replace(first, content="other", fingerprint=text.fingerprint("other")), "revise")
        tx.erase(second)
    with storage.bookkeeping() as notes:
        assert notes is not None
        notes.save_vectors(MODEL, [(first, made[0]), (second, made[1])])
    with storage.reading() as reader:
        assert [one.content for one in reader.vectorless(limit=9)] == ["other"]
        assert reader.nearest(made[0], limit=9) == []


def test_a_copy_of_the_file_has_the_vectors_too(storage: SqliteStorage, tmp_path: Path) -> None:
    """They are in the database, and nowhere else."""
    made = some_vectors(5)
    added = fill(storage, made)
    storage.close()
    shutil.copy(storage.path, tmp_path / "copy.db")
    copy = SqliteStorage(tmp_path / "copy.db")
    with copy.reading() as reader:
        assert [hit.memory.id for hit in reader.nearest(made[2], limit=1)] == [added[2].id]
    copy.close()
