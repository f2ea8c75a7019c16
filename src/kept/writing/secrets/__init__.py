"""What a secret looks like: rules, shapes, cue words, and the verdict on a value."""
