"""Values behind a cue and their harmless look-alikes, measured class by class. Run `pytest -s` to see the figures. C24.

KEPT_REDACT_SEEDS="1 2 3" measures other seeds.
"""

import os
import re
from collections import Counter

import pytest

from kept.writing.redact import redact
from tests.writing import cue_corpus as corpus
from tests.writing.cue_corpus import Sample

SEEDS = [int(seed) for seed in os.environ.get("KEPT_REDACT_SEEDS", "20241115").split()]
RECALL = 0.985
RECALL_OF_A_CLASS = 0.95
FALSE_ALARMS = 0.05


def leaks(sample: Sample) -> bool:
    """Whether the secret, or one of its longer words, is still there."""
    left = redact(sample.text).text
    around = sample.form.format(s="")
    words = [word for word in re.findall(r"\w{4,}", sample.secret) if word not in around]
    return sample.secret in left or any(re.search(rf"(?<!\w){re.escape(word)}(?!\w)", left) for word in words)


def test_the_corpus_is_as_varied_as_it_must_be() -> None:
    forms = {form for part in corpus.PARTS.values() for listed in part.forms.values() for form in listed}
    classes = [name for part in corpus.PARTS.values() for name in part.values]
    lines = [line for part in corpus.PARTS for _, line in corpus.harmless(part)]
    assert len(forms) >= 250
    assert len(classes) == len(set(classes)) >= 50
    assert len(set(lines)) >= 400
    assert sum(map(len, corpus.HARMLESS.values())) >= 40
    for part in corpus.PARTS.values():
        assert sum(map(len, part.forms.values())) >= 40


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("part", corpus.PARTS)
def test_values_behind_a_cue_are_redacted_whatever_they_look_like(part: str, seed: int) -> None:
    samples = list(corpus.cued(part, seed))
    total = Counter(sample.value_class for sample in samples)
    missed = Counter(sample.value_class for sample in samples if leaks(sample))
    figures = {name: 1 - missed[name] / count for name, count in total.items()}
    recall = 1 - missed.total() / total.total()
    print(f"\n{part}: {recall:.4f} of {total.total()}; missed {dict(missed)}")
    assert recall >= RECALL
    assert {name: figure for name, figure in figures.items() if figure < RECALL_OF_A_CLASS} == {}


@pytest.mark.parametrize("part", corpus.PARTS)
def test_few_harmless_lines_about_secrets_are_touched(part: str) -> None:
    lines = list(corpus.harmless(part))
    touched = [(name, line) for name, line in lines if redact(line).found]
    print(f"\n{part}: {len(touched)} of {len(lines)} harmless lines touched")
    assert len(touched) <= FALSE_ALARMS * len(lines), touched
