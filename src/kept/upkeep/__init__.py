"""What time does: quarantine, shelf life, size. Decisions only; the facade carries them out."""
