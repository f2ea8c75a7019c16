"""`kept serve` by a real server on loopback."""
