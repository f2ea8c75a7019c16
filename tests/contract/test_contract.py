"""Every storage keeps every promise."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.contract.benches import BENCHES
from tests.contract.promises import PROMISES, Bench


@pytest.mark.parametrize("promise", PROMISES, ids=lambda promise: promise.__name__.removeprefix("promise_"))
@pytest.mark.parametrize("kind", BENCHES)
def test_storage(kind: str, promise: Callable[[Bench], None], tmp_path: Path) -> None:
    bench = BENCHES[kind](tmp_path)
    try:
        promise(bench)
    finally:
        bench.close()
