"""The generated modules hold the built-in vocabulary as an index holds it, and nothing stems it at run time."""

import importlib.util
import shutil
from pathlib import Path
from types import ModuleType

import pytest

from kept import text
from kept.recall import stems
from kept.recall.aliases import default_expansions
from kept.recall.vocabulary import as_mapping

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


def test_an_alias_expands_to_the_stems_of_the_words_that_are_listed_for_it() -> None:
    listed: dict[str, set[str]] = {}
    for word, others in as_mapping(()).items():
        listed.setdefault(text.phrase(word), set()).update(map(text.phrase, others))
    assert stems.ALIASES.keys() == listed.keys()
    for key, others_of_all_forms in listed.items():
        assert set(default_expansions(key)) == others_of_all_forms - {key}
