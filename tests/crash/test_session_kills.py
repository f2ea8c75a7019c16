"""Sessions survive kill -9: the short version of session_kills.py."""

from tests.crash.session_kills import run


def test_what_was_said_survives_kill_9() -> None:
    """B3, B22, C31: acknowledged messages are rows, and after reopening lines; findings are recovered."""
    acknowledged, faults = run(6)
    assert acknowledged > 6
    assert faults == []
