"""What was forgotten or rejected stays away: by every way in, until a person says it again."""

from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

import kept
from kept.errors import NotAllowed
from kept.model import Draft, Memory, Origin, Rejection, Source
from kept.writing.rejections import says_again, skeleton
from tests.builders import FakeClock, context_of

SETTINGS = kept.Settings(auto_upkeep=False, recall_deadline_ms=60_000)
SAID = "Deploys of the shop go out on Fridays at noon."
NEIGHBOUR = "Deploys of the warehouse go out on Mondays."
PARAPHRASES = (
    "deploys of the  shop go out on Fridays, at noon",
    "Our deploys of the shop always go out on Fridays at noon",
    "On Fridays at noon, deploys of the shop go out.",
    "The shop deploys go out on Fridays at noon.",
    "Here deploys of the shop go out on Fridays at noon",
    "_Deploys of the shop go out on Fridays at noon._",
    "[Deploys of the shop](deploys.md) go out on Fridays at noon",
    "We decided that deploys of the shop go out on Fridays at noon because traffic is low.",
    "Please note that deploys of the shop go out on Fridays at noon, as agreed.",
)


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


class House:
    """One project, opened by a person and by an agent."""

    def __init__(self, folder: Path, clock: FakeClock) -> None:
        (folder / "p").mkdir(exist_ok=True)
        self.folder, self.clock = folder, clock
        self.agent = self._open("agent", "codex")
        self.agent.remember(NEIGHBOUR)
        self.person = self._open("user", "Ana")

    def _open(self, origin: Origin, name: str) -> kept.Kept:
        return kept.open(
            project=self.folder / "p",
            home=self.folder / "home",
            clock=self.clock,
            settings=SETTINGS,
            actor=kept.Actor(name=name),
            origin=origin,
        )

    def close(self) -> None:
        self.person.close()
        self.agent.close()

    def told(self) -> str:
        """All that a new session is given, at its start and for a prompt."""
        asked = "When do deploys of the shop go out?"
        return str(self.agent.briefing()) + str(self.agent.briefing(asked))

    def live(self) -> list[str]:
        """What is confirmed here."""
        return [one.content for one in self.agent.list(limit=1_000) if one.status != "candidate"]

    def rejections(self) -> list[Rejection]:
        return context_of(self.person).of_project(Rejection)


@pytest.fixture
def house(tmp_path: Path, clock: FakeClock) -> Iterator[House]:
    made = House(tmp_path, clock)
    yield made
    made.close()


def forgotten(house: House) -> Memory:
    """A statement that the person has forgotten."""
    one = house.agent.remember(SAID).memory
    assert one is not None
    house.clock.advance(days=1)
    house.person.forget(one.ref)
    house.clock.advance(days=1)
    return one


def test_what_was_forgotten_does_not_come_back_from_another_file(house: House) -> None:
    forgotten(house)
    file = Source(origin="import", agent="claude", file="notes/other.md")
    [receipt] = house.person.remember_many([Draft(content=SAID, source=file)])
    assert (receipt.outcome, receipt.reason) == ("refused", "rejected")
    assert receipt.message == "It was forgotten on 2026-03-02 by Ana."
    assert house.live() == [NEIGHBOUR]


def test_the_other_sentences_of_a_paragraph_in_a_file_are_kept(house: House) -> None:
    forgotten(house)
    file = Source(origin="import", agent="claude", file="notes/other.md")
    other = "The installer needs the certificate of Karla in Oslo."
    [receipt] = house.person.remember_many([Draft(content=f"{SAID} {other}", source=file)])
    assert receipt.memory is not None
    assert receipt.memory.content == other


def test_extraction_brings_back_neither_a_forgotten_statement_nor_a_forgotten_item(house: House) -> None:
    forgotten(house)
    notes = house.folder / "p" / "DESIGN.md"
    kept_item = "Repair the ferry of the harbour."
    notes.write_text(f"# Plans\n\n- [ ] {SAID}\n- [ ] {kept_item}\n- [ ] Give the pilot of the harbour his keys.\n")
    house.person.files.extract()
    items = {one.content: one.ref for one in house.person.files.items()}
    assert not [said for said in items if "Fridays" in said]
    assert len(items) == 2
    house.person.forget(next(ref for said, ref in items.items() if "pilot" in said))
    notes.write_text(notes.read_text() + "- [ ] Close the crane of the harbour in winter.\n")
    house.person.files.extract()
    said = " ".join(one.content for one in house.person.files.items())
    assert "crane" in said
    assert "pilot" not in said


def test_what_was_forgotten_is_not_confirmed_when_an_agent_stores_it(house: House) -> None:
    forgotten(house)
    receipt = house.agent.remember(SAID)
    assert (receipt.outcome, receipt.reason) == ("candidate", "rejected")
    assert "forgotten on 2026-03-02 by Ana" in receipt.message
    again = house.agent.remember(SAID)  # nor when it insists
    assert again.memory is not None
    assert again.memory.status == "candidate"
    assert SAID not in house.told()
    assert NEIGHBOUR in house.told()


@pytest.mark.parametrize("said", PARAPHRASES)
def test_a_paraphrase_of_what_was_forgotten_is_neither_confirmed_nor_told(house: House, said: str) -> None:
    forgotten(house)
    tool = Source(origin="extraction", agent="claude")
    [receipt] = house.agent.remember_many([Draft(content=said, source=tool, importance=0.9)])
    assert (receipt.outcome, receipt.reason) == ("refused", "rejected")
    assert house.agent.remember(said).outcome == "candidate"
    assert said not in house.told()


def test_an_agent_cannot_pin_promote_keep_or_restore_what_a_person_has_forgotten(house: House) -> None:
    one = forgotten(house)
    ref = house.agent.remember(SAID).ref
    assert ref is not None
    acts: list[Callable[[], object]] = [
        lambda: house.agent.pin(ref),
        lambda: house.agent.promote(ref, "global"),
        lambda: house.agent.reviews.apply([f"keep:{ref}"]),
        lambda: house.agent.undo(house.agent.history(one.ref)[-1].seq),
    ]
    for act in acts:
        with pytest.raises(NotAllowed):
            act()
    assert house.agent.restore(one.ref).status == "candidate"
    assert SAID not in house.told()


def test_an_agent_cannot_revise_another_memory_into_what_was_forgotten(house: House) -> None:
    forgotten(house)
    other = house.agent.remember("The shop is closed on Sundays.").ref
    assert other is not None
    assert house.agent.revise(other, content=SAID).status == "candidate"
    assert SAID not in house.told()


def test_use_does_not_confirm_what_was_forgotten(house: House) -> None:
    forgotten(house)
    receipt = house.agent.remember(SAID)
    assert receipt.ref is not None
    house.agent.reinforce(receipt.ref)
    house.clock.advance(days=3)
    house.person.upkeep()
    assert house.person.get(receipt.ref).status == "candidate"


def test_a_session_does_not_bring_back_what_was_forgotten(house: House) -> None:
    forgotten(house)
    session = house.agent.session("s1")
    session.append("user", "What did we say about deploys?")
    session.append("assistant", f"The root cause is the calendar: {SAID}")
    session.append("user", f"Right. {SAID}")
    session.finish()
    assert house.live() == [NEIGHBOUR]
    house.clock.advance(days=1)
    assert "Fridays" not in house.told()
    assert "Fridays" not in "".join(one.content for one in house.agent.list(limit=100) if one.kind == "summary")


def test_forgetting_hides_a_statement_in_the_summary_of_every_session(house: House) -> None:
    """Also in those of sessions that the memory did not come from."""
    said = "Deploys of the shop go out on Fridays, and the label printer needs firmware 4.2."
    for name in ("s1", "s2"):
        session = house.agent.session(name)
        session.append("user", f"Remember: {said}")
        session.append("assistant", "Noted.")
        session.finish()
        house.clock.advance(days=1)
    known = [one for one in house.person.list(limit=100) if "Fridays" in one.content and one.kind != "summary"]
    for one in known:
        house.person.forget(one.ref)
    assert not [one for one in house.person.list(limit=100) if "Fridays" in one.content]
    assert "Fridays" not in house.told()


def test_forgetting_takes_a_line_out_of_the_mirrors(house: House) -> None:
    one = house.person.remember(SAID).memory
    assert one is not None
    house.person.files.sync()
    texts = list(house.folder.rglob("MEMORY.md"))
    assert any(SAID in path.read_text() for path in texts)
    house.person.forget(one.ref)
    house.person.files.sync()
    left = [path for path in house.folder.rglob("*") if path.suffix in (".md", ".json") and SAID in path.read_text()]
    assert left == []


def test_the_words_of_a_person_lift_a_rejection_and_undo_brings_it_back(house: House) -> None:
    forgotten(house)
    receipt = house.person.remember(SAID)
    assert (receipt.outcome, receipt.reason) == ("stored", None)
    assert house.rejections() == []
    assert [event.action for event in house.person.history()[-2:]] == ["lift", "remember"]
    assert SAID in house.told()
    house.person.undo()
    assert len(house.rejections()) == 1
    assert house.agent.remember(SAID).outcome == "candidate"


def test_a_person_who_says_it_again_confirms_the_candidate_of_an_agent(house: House) -> None:
    forgotten(house)
    house.agent.remember(SAID)
    receipt = house.person.remember(SAID)
    assert receipt.memory is not None
    assert (receipt.memory.status, receipt.memory.tags) == ("confirmed", ())
    assert SAID in house.told()


def test_undoing_a_forget_and_restoring_lift_the_rejection(house: House) -> None:
    one = forgotten(house)
    house.person.undo()
    assert (house.rejections(), house.person.get(one.ref).status) == ([], "confirmed")
    house.person.forget(one.ref)
    assert len(house.rejections()) == 1
    house.person.restore(one.ref)
    assert (house.rejections(), house.person.get(one.ref).status) == ([], "confirmed")


def test_an_order_to_remember_in_a_later_session_lifts_a_rejection(house: House) -> None:
    forgotten(house)
    session = house.agent.session("s1")
    session.append("user", f"From now on, always remember this: {SAID}")
    session.append("assistant", "I will.")
    session.finish()
    assert [one.content for one in house.agent.list(limit=100) if "Fridays" in one.content and one.kind != "summary"]


def test_a_live_statement_outranks_a_rejection(house: House) -> None:
    first = house.agent.remember(SAID).memory
    second = house.person.remember("Deploys of the shop go out on Fridays at noon").memory
    assert first is not None
    assert second is not None
    assert first.uid != second.uid
    house.person.forget(first.ref)
    assert house.agent.remember(SAID).outcome == "stored"


@pytest.mark.parametrize(
    ("rejected", "said"),
    [
        ("The session token lives for 15 minutes.", "The session token lives for 5 minutes."),
        ("Deploys go out on Fridays.", "Deploys go out on Thursdays."),
        ("Deploys never go out on Fridays.", "Deploys go out on Fridays."),
        ("The label printer needs a firmware update before the shop opens in the morning, says the vendor of it.",
         "The label printer needs no firmware update before the shop opens in the morning, says the vendor of it."),
        ("Ask Marta about every change of the tax tables in the shop and in the warehouse before a release.",
         "Ask Jonas about every change of the tax tables in the shop and in the warehouse before a release."),
        ("Telemetry is on by default.", "Telemetry is off by default."),
        ("Migrations run before the seeds.", "The seeds run before migrations."),
        ("The api calls the web service.", "The web service calls the api."),
        ("The health check uses http.", "The health check uses https."),
        ("Install packages with npm.", "Install packages with pnpm."),
        ("Retries < 5 are fine.", "Retries > 5 are fine."),
    ],
)  # fmt: skip
def test_another_value_is_no_paraphrase(house: House, rejected: str, said: str) -> None:
    one = house.agent.remember(rejected).memory
    assert one is not None
    house.person.forget(one.ref)
    assert house.agent.remember(said).reason is None
    assert not says_again(skeleton(rejected), skeleton(said))


def test_one_word_more_in_a_long_statement_is_a_paraphrase_unless_it_matters() -> None:
    said = "Nightly imports of the price list read the replica and skip rows without a currency code because they fail"
    more = said.replace("read", "read quietly")
    assert says_again(skeleton(said), skeleton(more))
    assert says_again(skeleton(more), skeleton(said))
    for word in ("not", "Marta", "7", "off", "after"):
        assert not says_again(skeleton(said), skeleton(said.replace("read", f"{word} read")))


def test_the_loser_of_a_conflict_does_not_come_back(house: House) -> None:
    house.agent.remember("Attachments are stored in S3.", kind="decision")
    house.agent.remember("Attachments are stored in R2.", kind="decision")
    [conflict] = house.person.conflicts()
    house.person.resolve(conflict.ref, keep=3)
    [rejection] = house.rejections()
    assert rejection.reason == "overruled"
    tool = Source(origin="import", agent="claude")
    [receipt] = house.person.remember_many([Draft(content="Attachments are stored in S3.", source=tool)])
    assert receipt.reason == "rejected"


@pytest.mark.parametrize(("decision", "is_rejected"), [("wrong:2", True), ("forget:2", True), ("archive:2", False)])
def test_a_review_rejects_what_is_wrong_but_not_what_is_only_unused(
    house: House, decision: str, is_rejected: bool
) -> None:
    house.agent.remember(SAID)
    [gone] = house.person.reviews.apply([decision])
    assert gone.is_archived
    assert bool(house.rejections()) == is_rejected
    assert (house.agent.remember(SAID).outcome == "candidate") == is_rejected


def test_a_duplicate_that_is_superseded_in_a_review_is_not_rejected(house: House) -> None:
    house.agent.remember("The shop opens at nine")
    house.agent.remember("The shop opens at 9")
    house.person.reviews.apply(["supersede:2=3"])
    assert house.rejections() == []


@pytest.mark.parametrize(("answer", "is_rejected"), [("wrong", True), ("drop", False)])
def test_a_judge_rejects_what_is_wrong_and_drops_what_is_of_no_use(
    house: House, answer: str, is_rejected: bool
) -> None:
    session = house.agent.session("s1")
    session.append("user", "I think the label printer rejects PNG files above 2 MB.")
    session.append("assistant", "Noted.")
    session.finish()
    numbers = [one.n for one in session.propose()]
    session.judge({answer: numbers})
    assert bool(house.rejections()) == is_rejected


def test_an_erased_statement_leaves_no_words_in_its_rejection(house: House) -> None:
    one = forgotten(house)
    assert house.rejections()[0].words
    house.person.erase(one.ref)
    assert house.rejections() == []
    tool = Source(origin="import", agent="claude")
    [receipt] = house.person.remember_many([Draft(content=SAID, source=tool)])
    assert receipt.reason == "erased"
    assert not [path for path, stored in stores(house.folder) if b"fridays" in stored.lower()]


def stores(folder: Path) -> list[tuple[Path, bytes]]:
    """Return the files of stores and backups. A backup under way may rename one while they are read: then again."""
    while True:
        with suppress(FileNotFoundError):
            return [(path, path.read_bytes()) for path in folder.rglob("*.db*") if path.is_file()]


def test_a_merge_and_an_import_bring_rejections_and_nothing_that_is_rejected_here(
    tmp_path: Path, clock: FakeClock
) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
    with (
        kept.open(tmp_path / "a.db", clock=clock, settings=SETTINGS) as here,
        kept.open(tmp_path / "b.db", clock=clock, settings=SETTINGS) as there,
    ):
        for opened in (here, there):
            opened.remember(SAID)
            opened.remember(NEIGHBOUR)
        clock.advance(days=1)
        here.forget(1)
        clock.advance(days=1)
        there.store.export_to(tmp_path / "there.jsonl")
        done = here.store.merge(tmp_path / "there.jsonl")
        assert done.refused == {"rejected": 1}
        assert [one.content for one in here.list()] == [NEIGHBOUR]
        here.store.export_to(tmp_path / "here.jsonl")
        exported = (tmp_path / "here.jsonl").read_text()
        assert '"noun":"rejection"' in exported
        assert "Fridays" not in exported
        with kept.open(tmp_path / "c.db", clock=clock, settings=SETTINGS) as third:
            third.store.merge(tmp_path / "here.jsonl")
            assert third.remember(SAID).outcome == "candidate"


def test_a_memory_that_was_forgotten_elsewhere_is_forgotten_here_when_the_rejection_comes(
    tmp_path: Path, clock: FakeClock
) -> None:
    with (
        kept.open(tmp_path / "a.db", clock=clock, settings=SETTINGS) as here,
        kept.open(tmp_path / "b.db", clock=clock, settings=SETTINGS) as there,
    ):
        here.remember(SAID)
        here.remember(NEIGHBOUR)
        here.store.export_to(tmp_path / "first.jsonl")
        there.store.merge(tmp_path / "first.jsonl")
        clock.advance(days=1)
        here.forget(1)
        here.store.export_to(tmp_path / "second.jsonl")
        clock.advance(days=1)
        there.store.merge(tmp_path / "second.jsonl")
        assert [one.content for one in there.list()] == [NEIGHBOUR]
        there.store.merge(tmp_path / "first.jsonl")  # the older export restores nothing
        assert [one.content for one in there.list()] == [NEIGHBOUR]
