"""Other programs' files: read theirs, write ours. Pure: text in, values out."""
