"""The effects of time: quarantine, shelf life, room; and reviews. Decisions only; the facade carries them out."""
