"""Chroma, persistent, cosine. Its own embedder would be downloaded; here it gets the one of `orders`."""

from pathlib import Path
from typing import Any

import chromadb  # type: ignore[import-not-found]
from orders import embedder, serve  # type: ignore[import-not-found]


class Chroma:
    def __init__(self, folder: Path) -> None:
        settings = chromadb.config.Settings(anonymized_telemetry=False)
        client = chromadb.PersistentClient(path=str(folder), settings=settings)
        self._notes: Any = client.get_or_create_collection("notes", configuration={"hnsw": {"space": "cosine"}})
        self._embed = embedder()

    def load(self, rows: list[tuple[str, str]]) -> None:
        for start in range(0, len(rows), 1_000):
            names, texts = zip(*rows[start : start + 1_000], strict=True)
            self._notes.add(ids=list(names), documents=list(texts), embeddings=self._embed(texts))

    def add(self, name: str, text: str) -> None:
        self._notes.add(ids=[name], documents=[text], embeddings=self._embed([text]))

    def query(self, text: str) -> list[str]:
        return list(self._notes.query(query_embeddings=self._embed([text]), n_results=5)["ids"][0])


serve(Chroma)
