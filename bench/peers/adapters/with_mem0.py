"""mem0 with `infer=False`, so that no language model is called; Qdrant on disk inside the process.

It knows no embedder that works without a network, so its own is replaced by the one of `orders`. The key is a
placeholder: mem0 wants one to be set, and nothing is ever sent.
"""

import os
import tempfile
from pathlib import Path
from typing import Any

_HOME = tempfile.TemporaryDirectory(prefix="kept-bench-mem0-")  # else it writes a file into the user's home on import
os.environ |= {"MEM0_TELEMETRY": "False", "OPENAI_API_KEY": "not-a-key", "MEM0_DIR": _HOME.name}

import mem0  # type: ignore[import-not-found]  # noqa: E402
from orders import embedder, serve  # type: ignore[import-not-found]  # noqa: E402

USER = "bench"


class Embedding:
    """What mem0 asks of an embedder."""

    def __init__(self) -> None:
        self._embed = embedder()

    def embed(self, text: str, memory_action: str | None = None) -> list[float]:
        return list(self._embed([text])[0])

    def embed_batch(self, texts: list[str], memory_action: str = "add") -> list[list[float]]:
        return list(self._embed(texts))


class Mem0:
    def __init__(self, folder: Path) -> None:
        qdrant = {"path": str(folder / "qdrant"), "on_disk": True, "embedding_model_dims": 256}
        self._memory: Any = mem0.Memory.from_config(
            {
                "vector_store": {"provider": "qdrant", "config": qdrant},
                "history_db_path": str(folder / "history.db"),
            }
        )
        self._memory.embedding_model = Embedding()

    def load(self, rows: list[tuple[str, str]]) -> None:
        for name, text in rows:
            self.add(name, text)

    def add(self, name: str, text: str) -> None:
        self._memory.add(text, user_id=USER, metadata={"name": name}, infer=False)

    def query(self, text: str) -> list[str]:
        found = self._memory.search(text, filters={"user_id": USER}, top_k=5, threshold=0.0)
        return [str(one["metadata"]["name"]) for one in found["results"]]


serve(Mem0)
