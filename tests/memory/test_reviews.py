"""Reviews: what is pointed at, why, what is proposed, and the carrying out of what somebody decides."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import kept
from kept.memory.deliver import Listener
from kept.memory.reviews import parse_decision
from kept.model import Draft, Source
from kept.upkeep import review as judging
from kept.upkeep.review import Decision, ReviewFinding, Talk
from tests.builders import START, FakeClock
from tests.builders import memory as a_memory

RULES = judging.ReviewRules(shelf_life_days=kept.Settings().shelf_life_days)


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture(params=["inmemory", "sqlite"])
def memory(request: pytest.FixtureRequest, tmp_path: Path, clock: FakeClock) -> Iterator[kept.Kept]:
    place = ":memory:" if request.param == "inmemory" else tmp_path / "m.db"
    with kept.open(place, clock=clock, settings=kept.Settings()) as opened:
        yield opened


def talk_about(memory: kept.Kept, *texts: str, messages: int = 25) -> None:
    session = memory.session("talk")
    for number in range(messages):
        session.append("user" if number % 2 else "assistant", texts[number % len(texts)])


def only(memory: kept.Kept) -> ReviewFinding:
    [finding] = memory.reviews.list()
    return finding


def test_a_review_proposes_the_aliases_that_the_store_itself_suggests(memory: kept.Kept) -> None:
    """C13: short forms that it spells out, and a word that stands for a tag. A query expands what a person accepted."""
    memory.remember("We practise continuous delivery (CD) since March")
    for what in ("webhooks arrive twice", "refunds take a day", "needs a profile id"):
        memory.remember(f"Mollie {what}", tags=["money"])
    memory.remember("The shop is open on Mondays", tags=["shop"])
    proposed = {(one.word, one.other) for one in memory.reviews.list().aliases}
    assert proposed == {("cd", "continuous delivery"), ("money", "mollie")}
    assert "molli" not in memory.recall("money").words
    memory.aliases.add("money", "mollie")
    assert "molli" in memory.recall("money").words
    assert [one.word for one in memory.reviews.list().aliases] == ["cd"]
    memory.aliases.add("cd", "continuous delivery")
    memory.aliases.remove("cd")
    assert memory.reviews.list().aliases == ()


def test_nothing_is_found_where_all_is_well(memory: kept.Kept) -> None:
    memory.remember("The API listens on port 8080")
    memory.remember("Deploys happen on Tuesdays")
    assert memory.reviews.list().findings == ()
    assert memory.reviews.list().memories == 2


def test_a_contradiction_is_found_and_the_later_word_is_proposed(memory: kept.Kept, clock: FakeClock) -> None:
    """B13: what contradicts something else is for somebody to decide."""
    memory.remember("Always use Fastify for the public API server", kind="decision", tags=["api"])
    clock.advance(days=1)
    memory.remember("Never use Fastify for the public API server", kind="decision", tags=["server"])
    finding = only(memory)
    assert (finding.ref, finding.beside and finding.beside.ref, finding.conflict) == ("1", "2", "c1")
    assert finding.reasons == ("conflict",)
    assert str(finding.proposed) == "supersede:1=2"
    [gone] = memory.reviews.apply([finding.proposed])
    assert (gone.status, gone.reason, gone.superseded_by) == ("archived", "superseded", memory.get(2).uid)
    assert memory.conflicts() == []
    assert memory.get(2).tags == ("server", "api")
    assert memory.get(2).verified_at == clock()
    memory.undo()
    assert memory.get(1).status == "confirmed"
    assert memory.get(2).tags == ("server",)
    assert len(memory.conflicts()) == 1


def test_a_person_is_believed_before_an_agent_and_a_pin_before_both(memory: kept.Kept, clock: FakeClock) -> None:
    memory.remember("Always use Fastify for the public API server", kind="decision", source=Source(origin="user"))
    clock.advance(days=1)
    memory.remember("Never use Fastify for the public API server", kind="decision")
    assert str(only(memory).proposed) == "supersede:2=1"
    memory.pin(2)
    assert str(only(memory).proposed) == "supersede:1=2"


def test_a_repetition_is_found_and_consolidated(memory: kept.Kept) -> None:
    """B13: consolidate related facts; the one that helped stays and takes over how the other was filed."""
    memory.remember("The nightly import job reads from the replica, since the primary is busy", files=["a.py"])
    memory.remember("The nightly import job reads from the replica since the primary is too busy", tags=["import"])
    memory.remember("Deploys happen on Tuesdays")
    memory.reinforce(1)
    finding = only(memory)
    assert (finding.ref, finding.reasons, str(finding.proposed)) == ("2", ("duplicate",), "supersede:2=1")
    memory.reviews.apply(["supersede:2=1"])
    assert (memory.get(1).tags, memory.get(1).files) == (("import",), ("a.py",))
    assert memory.get(2).reason == "superseded"
    assert memory.reviews.list().findings == ()


def test_what_was_not_needed_for_its_shelf_life_is_stale(memory: kept.Kept, clock: FakeClock) -> None:
    """B13: staleness by the last date somebody needed it; also of what was remembered on purpose."""
    memory.remember("The release is planned for May", kind="progress")
    for _ in range(3):
        memory.reinforce(1)
    clock.advance(days=14)
    assert memory.reviews.list().findings == ()
    clock.advance(days=1)
    finding = only(memory)
    assert finding.reasons == ("stale",)
    assert finding.detail == "not used or confirmed for 15 days; the shelf life of its kind is 14 days"
    assert str(finding.proposed) == "archive:1"
    memory.reviews.apply([finding.proposed])
    assert (memory.get(1).status, memory.get(1).reason) == ("archived", "expired")
    assert [hit.ref for hit in memory.recall("release May", scope="archive")] == ["1"]


def test_what_nobody_ever_used_is_unused(memory: kept.Kept, clock: FakeClock) -> None:
    """B13: an automatic one is proposed to go; what somebody remembered on purpose is only asked about."""
    memory.remember("The staging cluster is called Harbor")
    memory.remember_many(
        [
            Draft(
                content="The nightly import job reads from the replica because the primary is too busy.",
                kind="decision",
                source=Source(origin="extraction"),
            )
        ]
    )
    clock.advance(days=31)
    found = {finding.ref: finding for finding in memory.reviews.list()}
    assert {ref: finding.reasons for ref, finding in found.items()} == {"1": ("unused",), "2": ("unused",)}
    assert (str(found["1"].proposed), str(found["2"].proposed)) == ("keep:1", "archive:2")
    assert found["1"].detail == "never used in 31 days"


def test_what_nobody_speaks_of_is_irrelevant(memory: kept.Kept, clock: FakeClock) -> None:
    """B13: relevance against recent talk."""
    memory.remember("Fastify serves the public API")
    memory.remember("The brochure is printed in Antwerp")
    for ref in (1, 2):
        memory.reinforce(ref)
    clock.advance(days=31)
    talk_about(memory, "Let us look at fastify again", "Very well")
    finding = only(memory)
    assert (finding.ref, finding.reasons) == ("2", ("irrelevant",))
    assert finding.proposed.action == "keep"
    assert memory.reviews.list().messages == 25


def test_little_talk_makes_nothing_irrelevant(memory: kept.Kept, clock: FakeClock) -> None:
    memory.remember("The brochure is printed in Antwerp")
    memory.reinforce(1)
    clock.advance(days=31)
    talk_about(memory, "Something else", messages=19)
    assert memory.reviews.list().findings == ()


def test_what_is_pinned_is_never_stale(memory: kept.Kept, clock: FakeClock) -> None:
    memory.remember("Never edit the auth middleware", kind="warning", pin=True)
    clock.advance(days=4000)
    assert memory.reviews.list().findings == ()


def test_a_guard_is_never_proposed_for_the_archive(tmp_path: Path, clock: FakeClock) -> None:
    with kept.open(tmp_path / "m.db", clock=clock, origin="user", actor=kept.Actor(role="admin")) as memory:
        said = "Never run deploy/release.sh on a Friday."
        ref = memory.remember(said, kind="warning", files=["deploy/release.sh"]).ref or ""
        memory.guard(ref, "stop")
        clock.advance(days=4000)
        assert memory.reviews.list().findings == ()
        memory.guard(ref, "tell")
        assert [one.ref for one in memory.reviews.list()] == [ref]


def test_what_agents_were_told_lately_is_not_stale_and_not_called_unused(memory: kept.Kept, clock: FakeClock) -> None:
    memory.remember("The gateway waits for the nightly backup before a deploy.")
    for days in (2_000, 1, 0):
        clock.advance(days=days)
        listener = Listener(session=f"s{days}", event="UserPromptSubmit")
        assert memory.deliveries.for_prompt("deploy the gateway after the nightly backup?", listener)
    finding = only(memory)
    assert finding.reasons == ("unused",)
    assert finding.detail == "told 3 times, last today; never marked as helpful"


def test_what_was_kept_is_not_asked_about_again_soon(memory: kept.Kept, clock: FakeClock) -> None:
    memory.remember("The staging cluster is called Harbor")
    clock.advance(days=31)
    [kept_one] = memory.reviews.apply([only(memory).proposed])
    assert kept_one.verified_at == clock()
    assert memory.reviews.list().findings == ()
    assert memory.history(1)[-1].action == "verify"
    clock.advance(days=31)
    assert len(memory.reviews.list()) == 1


def test_keeping_a_candidate_confirms_it(memory: kept.Kept) -> None:
    content = "The nightly import job reads from the replica because the primary is too busy."
    [receipt] = memory.remember_many([Draft(content=content, source=Source(origin="extraction"))])
    assert receipt.outcome == "candidate"
    assert memory.reviews.apply(["keep:1"])[0].status == "confirmed"


def test_decisions_of_one_call_are_undone_together(memory: kept.Kept, clock: FakeClock) -> None:
    for number, word in enumerate(("harbor", "anchor", "lantern", "compass"), 1):
        memory.remember(f"The {word} cluster has {number * 13} nodes in zone {word}")
    memory.remember("The harbor cluster has 13 nodes in the zone harbor")
    memory.remember("The harbor cluster has thirteen nodes in zone harbor")
    decisions = ["keep:2", "archive:3", "forget:4", "supersede:5=1", "supersede:6=1"]
    changed = memory.reviews.apply(decisions)
    assert [one.ref for one in changed] == ["2", "3", "4", "5", "6"]
    assert [one.ref for one in memory.list()] == ["2", "1"]
    groups = {event.group for event in memory.history(limit=6)}
    assert len(groups) == 1
    memory.undo()
    assert [one.ref for one in memory.list()] == ["6", "5", "4", "3", "2", "1"]
    assert memory.get(2).verified_at is None


@pytest.mark.parametrize(
    ("decisions", "says"),
    [
        (["burn:1"], "not a decision"),
        (["archive"], "not a decision"),
        (["supersede:1"], "not a decision"),
        (["archive:1=2"], "not a decision"),
        (["supersede:1=1"], "not a decision"),
        (["archive:nonsense"], "'nonsense' is not a memory ref"),
        (["archive:1", "forget:1"], "two decisions about memory 1"),
        (["archive:2", "supersede:1=2"], "cannot be superseded by 2"),
        (["archive:3"], "archived"),
    ],
)
def test_a_decision_that_makes_no_sense_changes_nothing(memory: kept.Kept, decisions: list[str], says: str) -> None:
    for content in ("One thing about harbors", "Another matter entirely", "Gone long ago"):
        memory.remember(content)
    memory.forget(3)
    before = memory.history()
    with pytest.raises(kept.InvalidInput, match=says):
        memory.reviews.apply(decisions if "2" in str(decisions) else ["keep:2", *decisions])
    assert memory.history() == before


def test_all_decisions_or_none(memory: kept.Kept) -> None:
    memory.remember("One thing about harbors")
    with pytest.raises(kept.NotFound, match="99"):
        memory.reviews.apply(["archive:1", "archive:99"])
    assert memory.get(1).status == "confirmed"


def test_reviews_are_of_what_the_actor_may_change(tmp_path: Path, clock: FakeClock) -> None:
    """B14: a project agent reviews its own; an admin reviews global memory, too."""
    admin = kept.Actor(role="admin")
    with kept.open(home=tmp_path, project="p", actor=admin, clock=clock, settings=kept.Settings()) as memory:
        memory.remember("Prefers short answers", kind="preference", tier="global")
        memory.remember("The staging cluster is called Harbor")
        clock.advance(days=400)
        assert {finding.ref for finding in memory.reviews.list()} == {"1", "g1"}
        assert [one.ref for one in memory.reviews.apply(["archive:1", "archive:g1"])] == ["1", "g1"]
        memory.undo()
        assert {finding.ref for finding in memory.reviews.list()} == {"1", "g1"}
    with kept.open(home=tmp_path, project="p", clock=clock, settings=kept.Settings()) as memory:
        assert {finding.ref for finding in memory.reviews.list()} == {"1"}
        with pytest.raises(kept.NotAllowed, match="global"):
            memory.reviews.apply(["archive:g1"])


def test_a_review_can_be_narrowed(memory: kept.Kept, clock: FakeClock) -> None:
    memory.remember("The release is planned for May", kind="progress")
    memory.remember("The staging cluster is called Harbor")
    clock.advance(days=31)
    review = memory.reviews.list(reasons=["stale"])
    assert [finding.ref for finding in review] == ["1"]
    assert (review.counts["stale"], review.counts["unused"]) == (1, 2)
    assert len(memory.reviews.list(limit=1)) == 1
    with pytest.raises(kept.InvalidInput, match="Unknown reason"):
        memory.reviews.list(reasons=["ugly"])  # type: ignore[list-item]
    with pytest.raises(kept.InvalidInput, match="limit"):
        memory.reviews.list(limit=-1)


def test_looking_changes_nothing(memory: kept.Kept, clock: FakeClock) -> None:
    memory.remember("The staging cluster is called Harbor")
    clock.advance(days=400)
    before = (memory.get(1), memory.history())
    memory.reviews.list()
    assert (memory.get(1), memory.history()) == before


def test_decisions_are_written_as_they_are_read() -> None:
    for decision in (Decision(action="keep", ref="3"), Decision(action="supersede", ref="g9", by="g3")):
        assert parse_decision(str(decision)) == decision
    assert parse_decision(" Archive : [id:3] ") == Decision(action="archive", ref="[id:3]")


WORDS = ("harbor", "anchor", "lantern", "compass", "the", "a", "uses", "never", "always", "port")


@settings(max_examples=60, deadline=None)
@given(st.lists(st.lists(st.sampled_from(WORDS), min_size=2, max_size=6).map(" ".join), min_size=2, max_size=14))
def test_all_proposals_of_a_review_can_be_carried_out_together(contents: list[str]) -> None:
    clock = FakeClock()
    with kept.open(":memory:", clock=clock, settings=kept.Settings()) as memory:
        for content in contents:
            memory.remember(content, kind="decision")
        clock.advance(days=100)
        review = memory.reviews.list(limit=100)
        memory.reviews.apply(finding.proposed for finding in review)
        gone = {finding.ref for finding in review if finding.proposed.action != "keep"}
        assert gone.isdisjoint(one.ref for one in memory.list(limit=100))
        memory.undo()
        again = memory.reviews.list(limit=100)
        assert [finding.proposed for finding in again] == [finding.proposed for finding in review]


def test_a_long_series_is_no_quadratic_work() -> None:
    memories = [
        a_memory(f"statement number {number} about the number {number * 31}", id=number) for number in range(1, 2001)
    ]
    found = judging.review(memories, [], Talk(), START, RULES)
    assert len(found) < len(memories)


def test_what_an_agent_proposes_for_all_projects_comes_first_and_is_asked_once(memory: kept.Kept) -> None:
    memory.remember("Always use tabs for indentation in this project", kind="convention")
    receipt = memory.reviews.propose(Draft(content="Prefers short answers", kind="preference", tier="global", pin=True))
    assert receipt.memory is not None
    assert (receipt.memory.tier, receipt.memory.status) == ("project", "confirmed")
    finding = only(memory)
    assert (finding.reasons, str(finding.proposed)) == (("global",), "promote:2")
    memory.reviews.apply(["keep:2"])
    assert memory.get(2).tags == ()
    assert memory.reviews.list().findings == ()


def test_a_promotion_by_review_needs_a_yes_and_changes_nothing_without_one(tmp_path: Path, clock: FakeClock) -> None:
    (tmp_path / "project").mkdir()
    where = {"project": tmp_path / "project", "home": tmp_path / "home", "clock": clock, "settings": kept.Settings()}
    with kept.open(**where, confirm=lambda _: False) as memory:
        memory.reviews.propose(Draft(content="Prefers short answers", kind="preference"))
        memory.remember("The release is planned for May", kind="progress")
        with pytest.raises(kept.NotAllowed):
            memory.reviews.apply(["archive:2", "promote:1"])
        assert [one.ref for one in memory.list()] == ["2", "1"]


def test_statements_that_differ_in_a_number_are_no_duplicates(tmp_path: Path) -> None:
    with kept.open(tmp_path / "memory.db") as memory:
        for shard in range(4):
            memory.remember(f"Shard {shard} of the ledger lives on host db-{shard}.internal, port 540{shard}")
        assert [finding for finding in memory.reviews.list() if "duplicate" in finding.reasons] == []


REPLICA = "The nightly import job reads from the replica, since the primary is busy"
NEARLY = "The nightly import job reads from the replica since the primary is too busy"


def _proposed_as_repeated(*contents: str) -> bool:
    memories = [a_memory(content, id=number) for number, content in enumerate(contents, 1)]
    found = judging.review(memories, [], Talk(), START, RULES)
    return any("duplicate" in one.reasons for one in found)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("The search index is rebuilt on Sunday night.", "The search index gets rebuilt every Sunday night."),
        ("Backups are written to the second disk.", "Backups get written to the second disk"),
    ],
)
def test_an_obvious_repetition_in_other_small_words_is_proposed(one: str, other: str) -> None:
    assert _proposed_as_repeated(one, other)


CHANGED_WORDS = st.sampled_from(
    ["not", "never", "only", "was", "off", "Monday", "9", "Kafka", "no longer", "without", "to", "from", "must"]
)


@given(st.permutations(["search", "index", "rebuilt", "Sunday", "night"]), CHANGED_WORDS, st.integers(0, 5))
def test_a_reversal_another_order_number_or_name_is_no_repetition(order: list[str], word: str, place: int) -> None:
    said = "search index is rebuilt on Sunday night"
    other = said.split()
    other.insert(place, word)
    assert not _proposed_as_repeated(said, " ".join(other))
    assert _proposed_as_repeated(said, " ".join(order)) == (order == ["search", "index", "rebuilt", "Sunday", "night"])
    assert not _proposed_as_repeated(f"{said} at {place}:00", f"{said} at {place + 1}:00")


def test_keeping_a_near_duplicate_settles_the_pair_for_good(memory: kept.Kept, clock: FakeClock) -> None:
    """B13: the person has looked at both and wants both; asking again would be nagging."""
    memory.remember(REPLICA)
    memory.remember(NEARLY)
    finding = only(memory)
    memory.reviews.apply([f"keep:{finding.ref}"])
    assert memory.reviews.list().findings == ()
    memory.reinforce(1)
    clock.advance(days=1)
    assert memory.reviews.list(reasons=["duplicate"]).findings == ()
    memory.remember(REPLICA.replace("The ", "A "))
    assert {one.ref for one in memory.reviews.list()} == {"3"}  # a third one is a new question


def test_keeping_a_near_duplicate_can_be_undone(memory: kept.Kept) -> None:
    memory.remember(REPLICA)
    memory.remember(NEARLY)
    memory.reviews.apply(["keep:1"])
    assert memory.reviews.list().findings == ()
    memory.undo()
    assert only(memory).reasons == ("duplicate",)


@pytest.mark.parametrize("kept_one", ["1", "2"])
def test_keeping_one_side_of_a_contradiction_says_that_both_hold(memory: kept.Kept, kept_one: str) -> None:
    """B13, C22: whichever of the two is kept, the contradiction is settled, and neither goes."""
    memory.remember("Always use Fastify for the public API server", kind="decision")
    memory.remember("Never use Fastify for the public API server", kind="decision")
    memory.reviews.apply([f"keep:{kept_one}"])
    assert memory.reviews.list().findings == ()
    assert memory.conflicts() == []
    assert [one.status for one in (memory.get(1), memory.get(2))] == ["confirmed", "confirmed"]
    memory.undo()
    assert len(memory.conflicts()) == 1


def test_an_agent_cannot_settle_a_contradiction_with_what_a_tool_said(tmp_path: Path, clock: FakeClock) -> None:
    with kept.open(tmp_path / "m.db", clock=clock) as memory:
        memory.remember("Always use Fastify for the public API server", kind="decision")
        memory.remember("Never use Fastify for the public API server", kind="decision", source=Source(origin="tool"))
        assert len(memory.conflicts()) == 1
        with pytest.raises(kept.NotAllowed, match="quotes a tool"):
            memory.reviews.apply(["keep:1"])
        assert len(memory.conflicts()) == 1
