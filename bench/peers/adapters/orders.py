"""Shared by all adapters in Python: orders come in as lines of JSON, answers go out the same way.

Runs in the environment of a peer, so it imports nothing but the standard library. Rule: the processor time of an answer
is that of the whole process, with all threads, between reading the order and writing the answer.
"""

import json
import sys
import time
from pathlib import Path
from typing import Any, Protocol


class Peer(Protocol):
    """The calls that a memory must offer to be compared."""

    def load(self, rows: list[tuple[str, str]]) -> None:
        """Take in many texts, each with a name, in whatever way is fastest."""

    def add(self, name: str, text: str) -> None:
        """Take in one text, so that the next query finds it."""

    def query(self, text: str) -> list[str]:
        """The names of the best five."""


def serve(make: Any) -> None:
    """Open the memory in the folder that the command line names, say so, and obey until the input ends."""
    # Libraries print; what they print must not be taken for an answer.
    out, sys.stdout = sys.stdout, sys.stderr
    peer: Peer = make(Path(sys.argv[1]))
    print(json.dumps({"ready": True}), file=out, flush=True)
    for line in sys.stdin:
        order = json.loads(line)
        if order["do"] == "reopen":
            peer = make(Path(order["with"][0]))
            print(json.dumps({"answer": None}), file=out, flush=True)
            continue
        cpu, wall = time.process_time(), time.perf_counter()
        answer: Any = getattr(peer, order["do"])(*order["with"])
        cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
        spent = {"cpu_ms": cpu * 1000, "wall_ms": wall * 1000, "all_cpu_ms": time.process_time() * 1000}
        print(json.dumps({"answer": answer, **spent}), file=out, flush=True)


def embedder() -> Any:
    """Texts → vectors, by a model that comes inside its package: the quickest one that needs no network."""
    import wordllama  # type: ignore[import-not-found]

    model = wordllama.WordLlama.load(cache_dir=Path(wordllama.__file__).parent, disable_download=True)
    return lambda texts: [[float(number) for number in vector] for vector in model.embed(list(texts), norm=True)]
