"""The generated modules list the built-in vocabulary by the stems that an index holds."""

import importlib.util
import shutil
from pathlib import Path
from types import ModuleType

import pytest

from kept import text
from kept.recall import stems
from kept.recall.query import forms_in, written_expansions
from kept.recall.vocabulary import as_mapping, is_same_phrase

DOCS = Path(__file__).parent.parent.parent / "docs"


@pytest.fixture
def generate() -> ModuleType:
    spec = importlib.util.spec_from_file_location("generate_stems", DOCS / "stems.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_generated_modules_are_up_to_date(generate: ModuleType) -> None:
    assert generate.stale_modules() == [], "run: python docs/stems.py"


def test_a_stale_or_missing_module_is_noticed_and_written_again(
    generate: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copy(generate.RECALL / "stems.py", tmp_path)
    (tmp_path / "messages").mkdir()
    monkeypatch.setattr(generate, "RECALL", tmp_path)
    assert generate.main(["--check"]) == 1
    assert "messages/stems.py is out of date" in capsys.readouterr().err
    assert generate.main([]) == 0
    assert generate.main(["--check"]) == 0
    (tmp_path / "stems.py").write_text("old")
    assert generate.stale_modules() == ["stems.py"]


def test_an_alias_expands_to_the_words_that_are_listed_for_it_and_its_forms() -> None:
    listed = as_mapping(())
    by_stem: dict[str, list[str]] = {}
    for word in listed:
        by_stem.setdefault(text.phrase(word), []).append(word)
    assert stems.ALIASES.keys() == by_stem.keys()
    for word, others in listed.items():
        if " " in word:
            continue
        key = text.phrase(word)
        forms = {form for form in by_stem[key] if is_same_phrase(form, word)}
        found = {*written_expansions((key,), (), forms_in(word))[key]}
        assert {*others} - forms <= found <= {other for form in forms for other in (form, *listed[form])}


def test_words_of_one_stem_and_different_meanings_have_lines_of_their_own() -> None:
    expanded = {
        word: {*written_expansions((text.phrase(word),), (), forms_in(word)).get(text.phrase(word), ())}
        for word in ("author", "authorize", "terminal", "terminate", "custom", "customer", "access", "accessibility")
    }
    assert expanded["author"] == {"write", "written"}
    assert "permission" in expanded["authorize"]
    assert "shell" in expanded["terminal"] - expanded["terminate"]
    assert "kill" in expanded["terminate"] - expanded["terminal"]
    assert not expanded["custom"]
    assert expanded["customer"] == {"buyer", "shopper"}
    assert expanded["access"].isdisjoint(expanded["accessibility"])
