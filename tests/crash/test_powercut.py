"""Power cuts: the short version of tests/crash/powercut.py, and proof that the simulated disk forgets and tears."""

import random

from tests.crash import powercut
from tests.crash.scratch import scratch_folder
from tests.crash.simulated_disk import SECTOR, Happened, Media


def test_what_was_acknowledged_survives_a_power_cut() -> None:
    """B21, C30: at a sample of all boundaries of a busy life; nothing is lost, torn, or back from the erased."""
    with scratch_folder() as folder:
        report = powercut.run(folder, seed=3, operations=30, share=0.1)
    assert report.images > 60
    assert (report.lost, report.corrupt) == ([], [])


def test_the_same_life_loses_rows_when_it_does_not_sync() -> None:
    """Otherwise the simulated disk would prove nothing."""
    with scratch_folder() as folder:
        report = powercut.run(folder, seed=3, operations=30, share=0.05, synchronous="normal")
    assert len(report.lost) > 5
    assert report.corrupt == []


def media(*happened: Happened) -> Media:
    played = Media()
    for one in happened:
        played.do(one)
    return played


def outcomes(played: Media, tries: int = 300) -> list[dict[str, bytes]]:
    return [played.cut(random.Random(seed)) for seed in range(tries)]


MADE = (Happened("create", "f-wal"), Happened("sync", "f-wal", is_journal=True))


def test_what_was_synced_is_always_there() -> None:
    played = media(*MADE, Happened("write", "f-wal", 0, b"data"), Happened("sync", "f-wal", is_journal=True))
    assert all(image == {"f-wal": b"data"} for image in outcomes(played))


def test_what_was_not_synced_may_be_lost_or_kept_or_torn_at_a_sector() -> None:
    old, new = b"o" * SECTOR * 2, b"n" * SECTOR * 2
    synced = (Happened("write", "f-wal", 0, old), Happened("sync", "f-wal", is_journal=True))
    played = media(*MADE, *synced, Happened("write", "f-wal", 0, new))
    found = {image["f-wal"] for image in outcomes(played)}
    assert found == {old, new, old[:SECTOR] + new[SECTOR:], new[:SECTOR] + old[SECTOR:]}


def test_writes_that_were_not_synced_have_no_order() -> None:
    played = media(*MADE, Happened("write", "f-wal", 0, b"a"), Happened("write", "f-wal", 1, b"b"))
    assert {image["f-wal"] for image in outcomes(played)} == {b"", b"a", b"\0b", b"ab"}


def test_a_truncation_may_be_lost_too() -> None:
    synced = (Happened("write", "f-wal", 0, b"data"), Happened("sync", "f-wal", is_journal=True))
    played = media(*MADE, *synced, Happened("truncate", "f-wal", 1))
    assert {image["f-wal"] for image in outcomes(played)} == {b"data", b"d"}


def test_names_become_durable_in_their_order() -> None:
    played = media(Happened("create", "f"), Happened("create", "f-wal"), Happened("delete", "f-wal"))
    assert {tuple(image) for image in outcomes(played)} == {(), ("f",), ("f", "f-wal")}


def test_the_first_sync_of_a_wal_makes_all_names_durable() -> None:
    played = media(Happened("create", "f"), Happened("create", "f-wal"), Happened("sync", "f-wal", is_journal=True))
    assert {tuple(image) for image in outcomes(played)} == {("f", "f-wal")}


def test_syncing_the_database_alone_makes_no_name_durable() -> None:
    played = media(Happened("create", "f"), Happened("write", "f", 0, b"data"), Happened("sync", "f"))
    assert {tuple(image.items()) for image in outcomes(played)} == {(), (("f", b"data"),)}
