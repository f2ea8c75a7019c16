"""The short version of the fuzz: `python -m tests.http.fuzz` is the long one."""

import importlib.util

import pytest

from tests.conftest import IS_LONG
from tests.http.conftest import Server
from tests.http.fuzz import fuzz


@pytest.mark.skipif(importlib.util.find_spec("schemathesis") is None, reason="needs schemathesis (pip install)")
def test_no_made_up_request_breaks_the_server(server: Server) -> None:
    examples = 5 if IS_LONG else 2
    number, found = fuzz(server, examples, phases="fuzzing", timeout_s=300)
    assert found == ""
    assert number > 60 * examples


@pytest.mark.slow
@pytest.mark.skipif(importlib.util.find_spec("schemathesis") is None, reason="needs schemathesis (pip install)")
def test_no_request_at_the_edges_of_the_document_breaks_the_server(server: Server) -> None:
    number, found = fuzz(server, 3, timeout_s=900)
    assert found == ""
    assert number > 1_500
