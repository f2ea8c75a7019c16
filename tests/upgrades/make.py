"""Make the stored database of the present schema: `python -m tests.upgrades.make`.

Run once for each released schema, and again only as long as that schema is not released. Every later version of Kept
has to open the file and find in it what `EXPECTED` says.
"""

from datetime import timedelta
from pathlib import Path

from kept.model import Alias, Conflict, Memory, Message, Source, replace
from kept.storage.sqlite import SqliteStorage, schema
from tests.behind import behind
from tests.builders import START, memory, stamp

FOLDER = Path(__file__).parent
SPACE = "project/upgrades"
EXPECTED = {
    "live": {"Use Fastify, not Express", "Never edit the auth middleware directly", "名前は太郎です"},
    "archive": {"The build takes nine minutes"},
    "forgotten": {"Deploys run on Fridays"},
    "erased": "the launch code is swordfish",
    "actions": ["remember"] * 6 + ["conflict", "alias", "revise", "expire", "forget", "erase"],
    "messages": ["What does the build need?", "Nine minutes."],
}


def make(path: Path) -> None:
    """Write a small store with one of everything."""
    storage = SqliteStorage(path, SPACE, now=lambda: START)
    texts = ("Use Express", "Never edit the auth middleware directly", "名前は太郎です")
    texts += ("The build takes nine minutes", "Deploys run on Fridays", "the launch code is swordfish")
    with storage.writing(stamp("g1")) as tx:
        added = [tx.add(_memory(number, content), "remember") for number, content in enumerate(texts)]
        tx.add(Conflict(left=added[0].uid, right=added[1].uid, type="ambiguous", detected_at=START), "conflict")
        tx.add(Alias(word="auth", expands_to=("login", "session")), "alias")
        tx.append(
            [
                Message(session="s1", id="m1", role="user", content=str(EXPECTED["messages"][0]), at=START),  # type: ignore[index]
                Message(session="s1", id="m2", role="assistant", content="Nine minutes.", at=START),
            ]
        )
    later = START + timedelta(days=1)
    with storage.writing(stamp("g2", at=later)) as tx:
        revised = memory("Use Fastify, not Express")
        tx.put(replace(added[0], content=revised.content, fingerprint=revised.fingerprint, feedback=3), "revise")
        tx.put(replace(added[3], status="archived", reason="expired", archived_at=later), "expire")
        tx.put(replace(added[4], status="archived", reason="forgotten", archived_at=later), "forget")
        tx.erase(added[5])
    with storage.bookkeeping() as notes:
        assert notes is not None
        notes.link([1, 2], later)
    storage.scrub()
    storage.close()
    connection = behind(path)
    connection.execute("vacuum")
    connection.close()
    for suffix in (".lock", ".reserve"):
        path.with_name(path.name + suffix).unlink(missing_ok=True)


def _memory(number: int, content: str) -> Memory:
    source = Source(origin="tool", agent="codex", session="s1", file="docs/x.md", line=number)
    return memory(content, tags=("upgrade", f"t{number}"), files=(f"src/{number}.py",), source=source, key=f"k{number}")


if __name__ == "__main__":
    target = FOLDER / f"schema-{schema.LATEST}.db"
    target.unlink(missing_ok=True)
    make(target)
    print(f"{target.name}: {target.stat().st_size:,} bytes")
