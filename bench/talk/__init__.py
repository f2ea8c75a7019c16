"""Talk: the state of a memory after conversations, and the text that the next session gets of it."""
