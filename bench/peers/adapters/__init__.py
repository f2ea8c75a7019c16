"""One program for each peer. It runs in the peer's own environment and knows nothing of this project."""
