"""Foreign text never gains trust, whichever way it goes; and the walk that shows it notices every gate that is open."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import kept
from kept import model
from kept.exchange import transcripts, trees
from kept.exchange.portable import Piece
from kept.memory import merge, promotion, trust, undo
from kept.model import Memory, Record, replace
from kept.writing import duplicates, pipeline, quotes, revise
from tests.memory.foreign_text import Walk

CI_STEPS = 250
TALK = ("begin", "finish", "flush", "checkpoint")


@pytest.mark.parametrize("seed", [3, 4])
def test_planted_foreign_text_never_gains_trust(tmp_path: Path, seed: int) -> None:
    """Through every verb. The long version: `python -m tests.memory.foreign_text`."""
    walk = Walk(tmp_path, seed)
    assert walk.run(CI_STEPS) == []
    canaries = [one for one in walk.held if re.search(r"zq\d+zq", one.content)]
    assert len(canaries) > 10, "the walk must carry canaries into memory, or it shows nothing"
    assert len({one.kind for one in canaries}) > 3
    assert len({one.source.origin for one in canaries}) > 2
    assert {one.trust for one in walk.held} == {"user", "agent", "tool", "unknown"}


@pytest.mark.slow
@pytest.mark.parametrize("seed", [11, 12, 13, 14])
def test_planted_foreign_text_never_gains_trust_in_a_long_life(tmp_path: Path, seed: int) -> None:
    assert Walk(tmp_path, seed).run(2_500) == []


def test_each_verb_of_the_walk_can_be_carried_out(tmp_path: Path) -> None:
    """A verb that always fails would show nothing."""
    walk = Walk(tmp_path, 3)
    for _ in range(3):
        for name in ("plant_tool_result", "plant_wrapped", "plant_memory", "plant_task_output", "talk", "finish"):
            walk.verbs()[name]()
        for name in ("turn_read", "turn_store"):
            walk.verbs()[name]()
    failed: dict[str, str] = {}
    # What an agent does in a turn, before the turn ends and another begins.
    in_turn = [name for name in walk.verbs() if name.startswith("turn_") and name != "turn_stop"]
    for name, act in {name: walk.verbs()[name] for name in (*in_turn, *walk.verbs())}.items():
        for _ in range(6):
            try:
                act()
                failed.pop(name, None)
                break
            except kept.KeptError as error:
                failed[name] = str(error)
    assert failed.keys() <= {"pin", "unpin", "resolve"}, failed  # what an agent may not do with a tool's text


# ---- planted faults ----


def _say_nothing_is_quoted(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(quotes.Quotes, "trust_of", lambda self, text, spoken, by=None: spoken)


def _take_every_word_for_the_speakers(patch: pytest.MonkeyPatch) -> None:
    for module in (quotes, *_users_of("split")):
        patch.setattr(module, "split", lambda text, is_long_pasted=False: quotes.Split(text))


def _users_of(name: str) -> list[Any]:
    import sys

    loaded = [module for path, module in sys.modules.items() if path.startswith("kept.writing.")]
    return [module for module in loaded if getattr(module, name, None) is getattr(quotes, name)]


def _believe_tools(patch: pytest.MonkeyPatch) -> None:
    patch.setitem(model.TRUST_BY_ROLE, "tool_result", "agent")  # type: ignore[arg-type]


def _believe_sidechains_and_strangers(patch: pytest.MonkeyPatch) -> None:
    for module in (transcripts, trees):
        patch.setattr(module, "at_most", lambda most, messages: messages)


def _go_by_the_origin(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(pipeline, "_trust_of", lambda draft: model.TRUST_BY_ORIGIN[(draft.source or model.Source()).origin])


def _let_agents_raise(patch: pytest.MonkeyPatch) -> None:
    _forget_what_is_stored(patch)  # which would make the repetition a tool's before it is compared
    strengthen = duplicates.strengthen

    def raising(tx: Any, twin: Memory, again: Memory, at: Any) -> Memory:
        better = max(twin.trust, again.trust, key=model.TRUSTS.index)
        return strengthen(tx, replace(twin, trust=better), replace(again, trust=better), at)

    patch.setattr(pipeline, "strengthen", raising)


def _forget_what_was_heard(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(trust, "as_heard", lambda context, drafts, reader: iter(drafts))


def _forget_what_is_stored(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(duplicates.Known, "as_heard", lambda self, draft, alike: draft)


def _forget_what_was_written(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(trust.Overheard, "lower", lambda self, context, heard: 0)


def _forget_where_it_went(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(trust, "_heirs", lambda reader, lowered: iter(()))
    found = trust.Overheard._found

    def only_here(self: Any, reader: Any, space: str, heard: Any) -> Any:
        return {} if space == model.GLOBAL else found(self, reader, space, heard)

    patch.setattr(trust.Overheard, "_found", only_here)


def _undo_as_the_agents(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(undo, "_check_trust", lambda reader, events: None)
    patch.setattr(undo, "_as_trusted", lambda context, tx, record: record)


def _revise_as_the_agents(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(revise, "least", lambda *trusts: max(trusts, key=model.TRUSTS.index))


def _revise_unheard(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(trust, "of_revised", lambda context, revised, session: revised.trust)


def _promote_as_the_agents(patch: pytest.MonkeyPatch) -> None:
    as_draft = promotion._as_draft
    patch.setattr(promotion, "_as_draft", lambda memory, to: replace(as_draft(memory, to), trust=None))


def _merge_without_trust(patch: pytest.MonkeyPatch) -> None:
    made = merge.piece_of

    def trusted(space: str, record: Record) -> Piece:
        return made(space, replace(record, trust="agent") if isinstance(record, Memory) else record)

    patch.setattr(merge, "piece_of", trusted)


def _vouch_for_everything(patch: pytest.MonkeyPatch) -> None:
    patch.setattr("kept.memory.context.Context.is_person", property(lambda self: True))


def _confirm_low_trust(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(model, "LOW_TRUST", ())


FAULTS: dict[Callable[[pytest.MonkeyPatch], None], tuple[str, ...]] = {
    _say_nothing_is_quoted: ("plant_tool_result", "repeat", *TALK),
    _take_every_word_for_the_speakers: ("plant_wrapped", "talk", *TALK),
    _believe_tools: ("plant_error", "plant_tool_result", "repeat", *TALK),
    _believe_sidechains_and_strangers: ("plant_transcript", "plant_extension", *TALK),
    _go_by_the_origin: ("plant_error", "plant_failure", *TALK),
    _let_agents_raise: ("plant_memory", "remember_again"),
    _forget_what_was_heard: ("plant_tool_result", "remember_in_session"),
    _forget_what_is_stored: ("plant_task_output", "remember_again"),
    _forget_what_was_written: ("turn_read", "turn_store", "turn_update", "turn_stop"),
    _forget_where_it_went: ("turn_read", "turn_store", "turn_promote", "turn_stop"),
    _undo_as_the_agents: ("turn_read", "turn_store", "turn_stop", "undo_any"),
    _revise_as_the_agents: ("plant_memory", "revise"),
    _revise_unheard: ("plant_tool_result", "talk", "checkpoint", "revise_into"),
    _promote_as_the_agents: ("plant_memory", "plant_task_output", "promote"),
    _merge_without_trust: ("plant_memory", "copy_by_export", "merge"),
    _vouch_for_everything: ("plant_memory", "pin", "review", "promote"),
    _confirm_low_trust: ("plant_memory", "pin", "reinforce", "upkeep"),
}


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.__name__.strip("_"))
def test_the_walk_notices_a_gate_that_is_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault: Callable[[pytest.MonkeyPatch], None]
) -> None:
    verbs = FAULTS[fault]
    assert Walk(tmp_path / "sound", 5).run(40, verbs, every=10) == []
    fault(monkeypatch)
    assert Walk(tmp_path / "faulty", 5).run(200, verbs, every=10) != []
