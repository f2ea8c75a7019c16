"""The index of a SQLite space: postings, weights, handles, hot words."""
