"""Projects: which project this is, where its files are, and what people have set."""
