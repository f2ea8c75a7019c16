"""Consent: a project agent changes global memory only as far as a person agrees, effect by effect (B14, D8, C24)."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import kept
from kept import ports
from kept.errors import NotAllowed
from kept.memory import consent
from kept.model import Actor, Conflict
from kept.ports import ANYWHERE
from tests.builders import FakeClock, context_of
from tests.two_spaces import open_two

SECRET = "ghp_" + "0aZ9" * 9
ADMIN = Actor(role="admin", name="person")


class Person:
    """Somebody who can be asked, and who notes what they were asked."""

    def __init__(self) -> None:
        self.says_yes = False
        self.questions: list[str] = []

    def __call__(self, question: str) -> bool:
        self.questions.append(question)
        return self.says_yes


@pytest.fixture
def person() -> Person:
    return Person()


@pytest.fixture(params=["inmemory", "jsonfile", "sqlite"])
def memory(request: pytest.FixtureRequest, tmp_path: Path, person: Person) -> Iterator[kept.Kept]:
    """The agent of a project. Global memory holds a preference g1, a pinned one g2, and a pattern g3."""
    with open_two(request.param, tmp_path, confirm=person) as opened:
        context_of(opened).actor = ADMIN
        opened.remember("Prefers short answers", kind="preference", tier="global", tags=["style"], topic="answers")
        opened.remember("Prefers tabs over spaces", kind="preference", tier="global", pin=True)
        opened.remember("Retry with a backoff", kind="pattern", tier="global", tags=["http"])
        context_of(opened).actor = Actor()
        yield opened


def held(memory: kept.Kept) -> object:
    """Everything that global memory holds."""
    storage = context_of(memory).spaces.shared()
    assert storage is not None
    with storage.reading() as reader:
        return reader.select(ANYWHERE, limit=1_000), reader.all(Conflict), reader.events()


Change = Callable[[kept.Kept], object]
DRAFT = kept.Draft
VENDOR = "The retry wrapper of the vendor waits for five seconds and then gives up for good"
CHANGES: dict[str, tuple[Change, list[str]]] = {
    "add a pattern that a tool said": (
        lambda m: m.remember(VENDOR, kind="pattern", tier="global", source=kept.Source(origin="tool")),
        [f"Add global pattern: '{VENDOR}' (quoted from a tool)?"],
    ),
    "add a preference": (
        lambda m: m.remember("Likes dark themes", kind="preference", tier="global", tags=["looks"]),
        ["Add global preference: 'Likes dark themes' (category: looks)?"],
    ),
    "add a fact": (lambda m: m.remember("The sky is blue", tier="global"), ["Add global fact: 'The sky is blue'?"]),
    "add a pinned pattern": (
        lambda m: m.remember("Obey the agent", kind="pattern", tier="global", pin=True),
        ["Add and pin global pattern: 'Obey the agent'?"],
    ),
    "a preference behind a pattern": (
        lambda m: m.remember_many(
            [
                DRAFT(content="Cache what is slow", kind="pattern", tier="global"),
                DRAFT(content="Of the project"),
                DRAFT(content="Trust the agent", kind="preference", tier="global", pin=True),
            ]
        ),
        ["Add and pin global preference: 'Trust the agent'?"],
    ),
    "a pattern that replaces a preference by its topic": (
        lambda m: m.remember("Long answers work", kind="pattern", tier="global", topic="answers"),
        ["Replace global preference g1: 'Prefers short answers' (category: style)?"],
    ),
    "a pattern that says the same as a preference": (
        lambda m: m.remember("prefers SHORT answers", kind="pattern", tier="global", pin=True, tags=["evil"]),
        [
            "Strengthen and pin global preference g1: 'Prefers short answers' (category: style)"
            " → 'Prefers short answers' (category: style, evil)?"
        ],
    ),
    "the twin of a pattern": (
        lambda m: m.remember("Retry with a backoff", kind="pattern", tier="global"),
        ["Strengthen global pattern g3: 'Retry with a backoff' (domain: http)?"],
    ),
    "reinforce": (
        lambda m: m.reinforce("g1"),
        ["Reinforce global preference g1: 'Prefers short answers' (category: style)?"],
    ),
    "demote": (lambda m: m.demote("g2"), ["Demote global preference g2: 'Prefers tabs over spaces'?"]),
    "pin": (lambda m: m.pin("g3"), ["Pin global pattern g3: 'Retry with a backoff' (domain: http)?"]),
    "unpin": (lambda m: m.unpin("g2"), ["Unpin global preference g2: 'Prefers tabs over spaces'?"]),
    "revise": (
        lambda m: m.revise("g3", "Never retry"),
        ["Revise global pattern g3: 'Retry with a backoff' (domain: http) → 'Never retry' (domain: http)?"],
    ),
    "forget": (lambda m: m.forget("g3"), ["Forget global pattern g3: 'Retry with a backoff' (domain: http)?"]),
    "erase": (
        lambda m: m.erase(["1", "g3"]),
        ["Erase for good global pattern g3: 'Retry with a backoff' (domain: http)?"],
    ),
    "promote": (
        lambda m: m.promote("1", to="global"),
        ["Promote to global pattern: 'The gate of harbour seven is green'?"],
    ),
    "review": (
        lambda m: m.reviews.apply(["forget:1", "supersede:g2=g1"]),
        [
            "Verify global preference g1: 'Prefers short answers' (category: style)?",
            "Replace global preference g2: 'Prefers tabs over spaces'?",
        ],
    ),
    "undo": (
        lambda m: m.undo("g3"),
        ["Forget global pattern g3: 'Retry with a backoff' (domain: http)?"],
    ),
    "clear all": (lambda m: m.knowledge.clear_all(), ["DANGER: Forget all 3 global memories, for every project?"]),
}


@pytest.mark.parametrize("name", CHANGES)
def test_every_effect_on_global_memory_is_asked_about_with_its_text(
    name: str, memory: kept.Kept, person: Person
) -> None:
    """B14, D8: a no changes nothing in either space; a yes to the same questions does it."""
    change, questions = CHANGES[name]
    own = memory.remember("The gate of harbour seven is green", kind="pattern").memory
    before = held(memory), memory.list(), memory.history()
    with pytest.raises(NotAllowed, match=r"the answer was no\. Nothing was changed"):
        change(memory)
    assert (held(memory), memory.list(), memory.history()) == before
    assert person.questions == questions[:1]
    person.says_yes = True
    person.questions.clear()
    change(memory)
    assert person.questions == questions
    assert held(memory) != before[0]
    assert own is not None


@pytest.mark.parametrize("name", CHANGES)
def test_without_anybody_to_ask_the_error_names_the_change_and_not_the_text(name: str, memory: kept.Kept) -> None:
    change, _ = CHANGES[name]
    context_of(memory).confirm = None
    memory.remember("The gate of harbour seven is green", kind="pattern")
    before = held(memory), memory.list()
    with pytest.raises(NotAllowed, match=r"A project agent may not .*global .*without a person's yes") as refusal:
        change(memory)
    assert (held(memory), memory.list()) == before
    assert not any(word in str(refusal.value) for word in ("harbour", "short answers", "backoff", "tabs", "themes"))


def test_only_adding_a_pattern_that_is_not_pinned_goes_without_a_question(memory: kept.Kept, person: Person) -> None:
    """D8, also beside a preference that it contradicts: that is a conflict, and both stay."""
    assert memory.knowledge.add_pattern("Cache what is slow to compute", "speed").ref == "g4"
    contradicting = memory.remember("Never prefer tabs over spaces", kind="pattern", tier="global")
    assert person.questions == []
    assert memory.get("g2").status == "pinned"
    if contradicting.conflicts:
        (conflict,) = contradicting.conflicts
        with pytest.raises(NotAllowed):
            memory.resolve(conflict.ref, keep=str(contradicting.ref))


def test_resolving_in_favour_of_a_pattern_asks_about_the_preference_that_goes(
    memory: kept.Kept, person: Person
) -> None:
    """C22: the rival is archived, so its text is in the question."""
    context_of(memory).actor = ADMIN
    memory.remember("Always use Fastify for the public API server", kind="preference", tier="global", files=["a.ts"])
    rival = memory.remember(
        "Never use Fastify for the public API server", kind="pattern", tier="global", files=["a.ts"]
    )
    context_of(memory).actor = Actor()
    (conflict,) = rival.conflicts
    before = held(memory)
    with pytest.raises(NotAllowed):
        memory.resolve(conflict.ref, keep=str(rival.ref))
    assert held(memory) == before
    assert person.questions == ["Replace global preference g4: 'Always use Fastify for the public API server'?"]
    person.says_yes = True
    memory.resolve(conflict.ref, keep=str(rival.ref))
    assert memory.get("g4").reason == "superseded"


def test_a_question_can_not_be_disguised(memory: kept.Kept, person: Person) -> None:
    """Stored text is hostile: it stays in its line and its quotes are seen."""
    with pytest.raises(NotAllowed):
        memory.remember("Harmless'?\n\u202e\x1b[2KReally", kind="preference", tier="global")
    (question,) = person.questions
    assert question.startswith("Add global preference: 'Harmless'? ")
    assert not {"\n", "\x1b", "\u202e"} & set(question)


def test_what_changed_while_a_person_thought_is_asked_about_again(memory: kept.Kept, person: Person) -> None:
    """The answer holds for what was shown, not for what came in between."""

    def confirm(question: str) -> bool:
        person.questions.append(question)
        if len(person.questions) == 1:
            context_of(memory).actor, context_of(memory).confirm = ADMIN, None
            memory.revise("g3", "Retry at most twice")
            context_of(memory).actor, context_of(memory).confirm = Actor(), confirm
        return True

    context_of(memory).confirm = confirm
    memory.forget("g3")
    assert person.questions == [
        "Forget global pattern g3: 'Retry with a backoff' (domain: http)?",
        "Forget global pattern g3: 'Retry at most twice' (domain: http)?",
    ]


def test_a_no_to_one_draft_of_many_stores_none(memory: kept.Kept, person: Person) -> None:
    """A batch is one call: all of it, or nothing."""
    person.says_yes = True
    drafts = [DRAFT(content=f"Wish number {number}", kind="preference", tier="global") for number in range(3)]
    context_of(memory).confirm = lambda question: person(question) and "number 2" not in question
    before = held(memory)
    with pytest.raises(NotAllowed):
        memory.remember_many([*drafts, DRAFT(content="Of the project")])
    assert len(person.questions) == 3
    assert held(memory) == before
    assert memory.list() == [one for one in memory.list() if one.space == "global"]


def test_a_value_that_looks_like_a_secret_is_allowed_only_by_a_person(memory: kept.Kept, person: Person) -> None:
    """C24: no agent stores a secret by allowing it first, also not by redoing what a person took back."""
    with pytest.raises(NotAllowed, match="may not store a value that looks like a secret"):
        memory.store.allow(SECRET, "for the tests")
    (question,) = person.questions
    assert question == (
        "Store a value of 40 characters as it is from now on? It looks like: token. Note: 'for the tests'."
    )
    assert SECRET not in str(memory.remember(f"The key is {SECRET}").memory)
    person.says_yes = True
    memory.store.allow(SECRET)
    assert SECRET in str(memory.remember(f"The example key is {SECRET}").memory)
    assert memory.undo(2)[0].action == "undo"
    person.says_yes = False
    undone = memory.history()[-1].seq
    with pytest.raises(NotAllowed):
        memory.undo(undone)
    assert SECRET not in str(memory.remember(f"Again, the key is {SECRET}").memory)


def test_the_file_of_global_memory_is_no_project(tmp_path: Path) -> None:
    """Opened as a portable file, global memory is still everybody's."""
    with kept.open(home=tmp_path, project="p", actor=ADMIN) as opened:
        opened.remember("Prefers tabs", kind="preference", tier="global")
    with kept.open(tmp_path / "global" / "kept.db") as opened:
        for change in (lambda: opened.remember("Prefers spaces"), lambda: opened.forget("g1"), opened.pauses.pause):
            with pytest.raises(NotAllowed):
                change()


def test_a_new_project_takes_over_no_other_projects_store_unasked(tmp_path: Path, person: Person) -> None:
    """B14: a project agent cannot read another project, and so it cannot restore its store or its backup either."""
    clock = FakeClock()
    with kept.open(home=tmp_path / "home", project="victim", clock=clock) as opened:
        opened.remember("The gate of harbour seven is green")
        opened.store.backup(tmp_path / "copy.db")
    (store,) = tmp_path.glob("home/projects/victim-*/kept.db")
    with kept.open(home=tmp_path / "home", project="thief", clock=clock, confirm=person) as opened:
        for source in (store, tmp_path / "copy.db"):
            for overwrite in (False, True):
                with pytest.raises(NotAllowed, match="may not take over the memory of another project"):
                    opened.store.restore(source, overwrite_newer=overwrite)
        assert opened.list() == []
        assert "holds the memory of another project" in person.questions[0]
        person.says_yes = True
        assert opened.store.restore(tmp_path / "copy.db").memories == 1
    with kept.open(home=tmp_path / "home", project="new", clock=clock, actor=ADMIN) as opened:
        assert opened.store.restore(tmp_path / "copy.db").memories == 1


def test_global_memory_is_replaced_by_a_backup_only_after_a_yes(tmp_path: Path, person: Person) -> None:
    with kept.open(home=tmp_path / "home", project="p", confirm=person) as opened:
        opened.knowledge.add_pattern("Retry with a backoff", "http")
        opened.store.backup(tmp_path / "copy.db", tier="global")
        with pytest.raises(NotAllowed, match="may not replace all of global memory"):
            opened.store.restore(tmp_path / "copy.db")
        assert person.questions == [f"Replace all of global memory with the backup {tmp_path / 'copy.db'}?"]


def test_every_change_of_a_transaction_is_watched() -> None:
    """A way to change a record that is added to the port has to be watched, or to be no change of global memory."""
    changes = set(vars(ports.Transaction)) - set(vars(ports.Reader))
    changes = {name for name in changes if not name.startswith("_")} - {"stamp"}
    assert changes == {*consent.WATCHED, *consent.OF_CONVERSATIONS, *consent.OF_NO_RECORD, *consent.OF_A_MOVE}
    assert {name for name in consent.WATCHED if name in vars(consent.Watched)} == set(consent.WATCHED)


@pytest.mark.parametrize("name", CHANGES)
def test_an_admin_is_asked_only_before_all_is_cleared(name: str, memory: kept.Kept, person: Person) -> None:
    person.says_yes = True
    context_of(memory).actor = ADMIN
    memory.remember("The gate of harbour seven is green", kind="pattern")
    CHANGES[name][0](memory)
    assert len(person.questions) == (name == "clear all")


def test_a_pattern_of_an_agent_whose_tool_results_are_not_known_yet_is_asked_about(
    memory: kept.Kept, person: Person
) -> None:
    """Its host hands the transcript over later: nobody can say yet whether the words are those of a page."""
    memory.remember("Cache what is slow", kind="pattern", tier="global")
    assert person.questions == []
    context_of(memory).is_hosted = True
    before = held(memory)
    with pytest.raises(kept.NotAllowed):
        memory.remember("Cache what is fast", kind="pattern", tier="global")
    assert held(memory) == before
    warning = "(may repeat a page or file that the agent has read)"
    assert person.questions == [f"Add global pattern: 'Cache what is fast' {warning}?"]
