"""No line on a terminal is wider than the terminal, whatever is stored; except for one thing to copy."""

import re

from hypothesis import given
from hypothesis import strategies as st

from kept.entrypoints.cli.invocation import Dim, Label, Strong, columns, wrapped
from kept.text import visible

DIFFICULT = st.text("ab \t\x1b漢字😀é\u0301\u200d❤\ufe0f\u202e│[id:", max_size=30)
WORDS = st.lists(DIFFICULT | st.text(max_size=30), max_size=4)


@given(WORDS, st.integers(2, 40), st.sampled_from([str, Strong, Label, Dim]))
def test_no_line_is_wider_than_the_terminal(words: list[str], width: int, kind: type[str]) -> None:
    parts = (kind("[id:1] "), *words)
    lines = ["".join(line) for line in wrapped(parts, width)]
    wide = [line.strip(" │") for line in lines if columns(line.rstrip()) > width]
    assert all("`" in line or ("/" in line and not re.search(r"\s", line)) for line in wide)
    told = "".join(visible(part.replace("\t", " "), keep_newlines=False) for part in parts)  # each is shown alone
    without = [re.sub(r"[\s│]", "", one) for one in ("".join(lines), told)]
    assert without[0] == without[1], "nothing is lost"


def test_wide_characters_take_two_columns_and_combining_ones_none() -> None:
    assert columns("漢字") == 4
    assert columns("e\u0301") == 1
    assert columns("😀") == 2
    assert columns("\x1b".encode("unicode_escape").decode()) == 4
    assert ["".join(line) for line in wrapped(("漢字漢字",), 5)] == ["漢字", "漢字"]
    assert ["".join(line) for line in wrapped(("a\x1b[31mb",), 6)] == ["a\\x1b[", "31mb"]
