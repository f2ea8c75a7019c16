"""Each adapter against the real framework, in an environment of its own: `make test-adapters`."""
