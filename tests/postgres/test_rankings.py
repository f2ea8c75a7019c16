"""PostgreSQL answers the golden questions exactly as SQLite does."""

from pathlib import Path

import kept
from kept.model import Draft
from tests.builders import FakeClock
from tests.golden.project_memories import PROJECT_MEMORIES
from tests.golden.queries import QUERIES
from tests.postgres.server import emptied, shared_database
from tests.recall.test_golden import RANKINGS

UNHURRIED = kept.Settings(recall_deadline_ms=60_000)  # on a busy machine as well


def test_the_golden_rankings_are_those_of_sqlite(tmp_path: Path) -> None:
    url = emptied(shared_database())
    with kept.open(url, project="harbor", home=tmp_path, clock=FakeClock(), settings=UNHURRIED) as memory:
        drafts = [
            Draft(content=m["content"], kind=m["kind"], tags=tuple(m["tags"]), files=tuple(m["files"]))
            for m in PROJECT_MEMORIES
        ]
        assert all(receipt.outcome == "stored" for receipt in memory.remember_many(drafts))
        now = "".join(f"{query}: {' '.join(hit.ref for hit in memory.recall(query))}\n" for query, _ in QUERIES)
    assert now == RANKINGS.read_text("utf-8")
