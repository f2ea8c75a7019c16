"""Set-up that all tests share."""

import os
import signal

import pytest

pytest.register_assert_rewrite("tests.contract.promises")

IS_LONG = bool(os.environ.get("KEPT_TEST_LONG"))


def pytest_configure() -> None:
    """Let Ctrl-C reach the programs under test.

    A shell starts background jobs with SIGINT ignored, and children inherit that.
    """
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leave the long versions to `make test-long`."""
    if not IS_LONG:
        for item in items:
            if item.get_closest_marker("slow") is not None:
                item.add_marker(pytest.mark.skip(reason="a long version; `make test-long` runs it"))
