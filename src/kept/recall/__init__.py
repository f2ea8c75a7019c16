"""The read path: query → candidates → score → rerank → select."""
