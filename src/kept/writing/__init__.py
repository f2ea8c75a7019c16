"""The write path: extract → redact → admit → duplicates → conflicts → store → journal."""
