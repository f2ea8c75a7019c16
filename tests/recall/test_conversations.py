"""B17: recall over conversations, by message and by session, with every number explained."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kept.model import Hit, Message, Recalled
from kept.ports import Storage
from kept.recall import Circumstances, Request
from kept.recall.messages import CANDIDATES, recall_messages
from kept.recall.messages.features import SHORT_WORDS, candidate, describe
from kept.recall.messages.question import moments, read_question
from kept.recall.messages.weights import ASSISTANT, PEOPLE, MessageWeights, SessionWeights, WeightTable, table_for
from kept.settings import Settings
from kept.storage.inmemory import InMemoryStorage
from kept.storage.sqlite import SqliteStorage
from tests.builders import START, stamp

ONLY_MATCH = WeightTable(
    message=MessageWeights(**dict.fromkeys(MessageWeights.__struct_fields__, 0.0) | {"match": 1.0})
)


@pytest.fixture(params=["memory", "sqlite"])
def storage(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Storage]:
    opened: Storage = (
        InMemoryStorage("project/p1")
        if request.param == "memory"
        else SqliteStorage(tmp_path / "kept.db", "project/p1")
    )
    yield opened
    opened.close()


def say(storage: Storage, *lines: str | tuple[str, str], session: str = "s1", **fields: Any) -> None:
    """Add messages; a pair is (speaker or role, text)."""
    with storage.writing(stamp()) as tx:
        before = tx.last_number(session)
        tx.append([_message(line, session, number, fields) for number, line in enumerate(lines, start=before + 1)])


def _message(line: str | tuple[str, str], session: str, number: int, fields: dict[str, Any]) -> Message:
    who, content = line if isinstance(line, tuple) else ("user", line)
    id = f"{session}:{number}"
    if who in ("user", "assistant"):
        return Message(id=id, session=session, role=who, content=content, **fields)  # type: ignore[arg-type]
    return Message(id=id, session=session, role="user", speaker=who, content=content, **fields)


def ask(storage: Storage, query: str, *, now: datetime = START, is_late: bool = False, **fields: Any) -> Recalled:
    options = {name: fields.pop(name) for name in ("session", "table") if name in fields}
    timer = count().__next__ if is_late else lambda: 0.0  # a second passes with every look at the stopwatch
    with storage.reading() as reader:
        given = Circumstances(readers=[reader], settings=Settings(), now=now, timer=timer)
        return recall_messages(Request(query=query, limit=fields.pop("limit", 10), **fields), given, **options)


def said(recalled: Recalled) -> list[str]:
    return [hit.memory.content for hit in recalled.hits]


def speakers(recalled: Recalled) -> list[str | None]:
    return [hit.memory.source.agent for hit in recalled.hits]


def sessions(recalled: Recalled) -> list[str | None]:
    return [hit.memory.source.session for hit in recalled.hits]


def hit(recalled: Recalled, content: str) -> Hit:
    return next(hit for hit in recalled.hits if hit.memory.content == content)


def test_what_holds_the_words_of_the_question_comes_first(storage: Storage) -> None:
    say(storage, "The harbor was empty today.", "I like tea.", "We painted the harbor wall in spring.")
    assert said(ask(storage, "Who painted the wall of the harbor?"))[0] == "We painted the harbor wall in spring."


def test_the_parts_of_a_score_add_up_to_it(storage: Storage) -> None:
    say(storage, ("Ann", "Did you see the harbor?"), ("Ben", "Yes, in May."), ("Ann", "The harbor of Genoa is large."))
    recalled = ask(storage, "When did Ben see the harbor?")
    assert len(recalled.hits) == 3
    for one in recalled.hits:
        assert sum(one.why.values()) == pytest.approx(one.score)
        assert set(one.why) <= set(MessageWeights.__struct_fields__)


def test_every_feature_has_a_weight_and_every_weight_a_feature(storage: Storage) -> None:
    say(storage, "The harbor is full.")
    with storage.reading() as reader:
        question = read_question("harbor", START)
        statistics = reader.message_statistics(question.words.all)
        [found] = reader.search_messages(question.words.all, limit=1)
        [features] = describe([candidate(found, 1.0)], question, statistics, set())
    added = {"meaning", "window"}  # where vectors are on
    assert {*features, *added} == set(MessageWeights.__struct_fields__)


def test_weights_are_data(storage: Storage) -> None:
    say(storage, ("Ann", "the harbor the harbor"), ("Ben", "a harbor, and much else that nobody asked about"))
    recalled = ask(storage, "What does Ben say of the harbor?", table=ONLY_MATCH)
    assert speakers(recalled) == ["Ann", "Ben"]
    assert [set(one.why) for one in recalled.hits] == [{"match"}, {"match"}]
    assert speakers(ask(storage, "What does Ben say of the harbor?")) == ["Ben", "Ann"]


def test_a_reply_is_found_by_the_question_before_it(storage: Storage) -> None:
    say(
        storage,
        ("Ann", "Which instrument did you buy, Ben?"),
        ("Ben", "A cello."),
        ("Ann", "Nice!"),
        ("Ben", "Thanks!"),
    )
    recalled = ask(storage, "What instrument did Ben buy?")
    assert hit(recalled, "A cello.").why["reply"] > 0
    assert said(recalled).index("A cello.") < said(recalled).index("Nice!")


def test_a_long_message_stands_for_itself(storage: Storage) -> None:
    long = "and so on " * SHORT_WORDS
    say(storage, "Where is the harbor?", long, session="s1")
    say(storage, f"Where is the harbor? {long}", "South.", session="s2")
    assert long not in said(ask(storage, "harbor"))
    assert "South." not in said(ask(storage, "harbor"))


def test_who_is_named_is_who_should_have_said_it(storage: Storage) -> None:
    say(storage, ("Ann", "I adopted a dog."), ("Ben", "I adopted a dog."))
    assert ask(storage, "Did Ann adopt a dog?").hits[0].memory.source.agent == "Ann"
    assert ask(storage, "Did Ben adopt a dog?").hits[0].memory.source.agent == "Ben"
    assert "speaker" not in ask(storage, "Did Ann and Ben adopt a dog?").hits[0].why


def test_the_user_counts_more_unless_the_assistant_is_asked_about(storage: Storage) -> None:
    say(storage, ("assistant", "Try the bakery in Rome."), ("user", "I know a bakery in Rome."))
    assert ask(storage, "Which bakery in Rome do I know?").hits[0].memory.kind == "user"
    assert ask(storage, "Can you remind me of the bakery in Rome?").hits[0].memory.kind == "assistant"
    assert ask(storage, "Which bakery did you recommend in Rome?").hits[0].memory.kind == "assistant"


def test_an_answer_to_when_says_when(storage: Storage) -> None:
    say(storage, "We saw the harbor and liked it a lot.", "We saw the harbor last Saturday, it was nice.")
    assert "Saturday" in said(ask(storage, "When did you see the harbor?"))[0]


def test_an_answer_to_how_many_has_a_number(storage: Storage) -> None:
    say(storage, "My boats are in the harbor as ever.", "My three boats are in the harbor.")
    assert "three" in said(ask(storage, "How many boats have I in the harbor?"))[0]


def test_what_was_said_at_the_named_time_comes_first(storage: Storage) -> None:
    for month in (4, 5, 6):
        say(storage, "We went sailing.", session=f"m{month}", at=datetime(2023, month, 7, tzinfo=UTC))
    assert ask(storage, "Where did they go sailing in May 2023?").hits[0].memory.source.session == "m5"
    assert ask(storage, "Where did they go sailing in June?").hits[0].memory.source.session == "m6"
    now = datetime(2023, 4, 22, tzinfo=UTC)
    assert ask(storage, "Where did I go sailing two weeks ago?", now=now).hits[0].memory.source.session == "m4"


def test_other_forms_of_a_word_are_found_and_named(storage: Storage) -> None:
    say(storage, "I bought it in Genoa.", "Nothing to see here.")
    recalled = ask(storage, "What did she buy?")
    assert said(recalled)[0] == "I bought it in Genoa."
    assert recalled.hits[0].matched == {"bought": "form of buy"}


def test_things_are_found_by_their_kind_but_not_kinds_by_their_things(storage: Storage) -> None:
    say(storage, "I play the piano at night.")
    assert ask(storage, "Which instruments are there?").hits[0].matched == {"piano": "a kind of instrument"}
    say(storage, "Instruments everywhere!", session="s2")
    assert "Instruments everywhere!" not in said(ask(storage, "piano"))


def test_words_brought_in_count_less_than_words_asked_for(storage: Storage) -> None:
    say(storage, "I play piano.", session="s1")
    say(storage, "I play instruments.", session="s2")
    found = ask(storage, "Which instruments?", table=ONLY_MATCH)
    assert said(found) == ["I play instruments.", "I play piano."]


def test_by_session_each_session_comes_once_with_its_best_message(storage: Storage) -> None:
    say(storage, "The harbor is full.", "The harbor has a wall, and a light.", session="s1")
    say(storage, "The wall of the harbor has a light.", "The light of the harbor is on the wall.", session="s2")
    say(storage, "No word of it.", session="s3")
    recalled = ask(storage, "Is there a light on the wall of the harbor?", by="session")
    assert sessions(recalled) == ["s2", "s1"]
    session_scores = [sum(one.parts.values()) for one in recalled.hits]
    assert session_scores == sorted(session_scores, reverse=True)
    assert all(one.parts["best"] == pytest.approx(one.score) for one in recalled.hits)


def test_a_session_in_which_the_user_says_more_of_it_comes_first(storage: Storage) -> None:
    reply = ("assistant", "Of course.")
    say(storage, ("user", "Is the harbor open?"), reply, ("user", "And its lighthouse?"), reply, session="s1")
    say(storage, ("user", "Is the harbor open?"), ("assistant", "The lighthouse is."), reply, session="s2")
    recalled = ask(storage, "harbor lighthouse", by="session")
    words = {one.memory.source.session: one.parts["words"] for one in recalled.hits}
    assert words["s1"] > words["s2"]
    assert set(recalled.hits[0].parts) == set(SessionWeights.__struct_fields__)


def test_talk_with_an_assistant_has_weights_of_its_own() -> None:
    assert table_for(["user", "user", "assistant"]) is ASSISTANT
    assert table_for(["user", "tool_call", "tool_result"]) is ASSISTANT, "only an assistant calls tools"
    assert table_for(["user"] * 9 + ["assistant"]) is PEOPLE
    assert table_for([]) is PEOPLE


def test_messages_of_the_named_time_are_candidates_however_many_others_match_better(storage: Storage) -> None:
    say(storage, *["Sailing, sailing."] * (CANDIDATES + 20), session="now", at=datetime(2026, 2, 20, tzinfo=UTC))
    long_ago = "On a day with much wind and little sun there was some sailing after a late breakfast."
    say(storage, long_ago, session="then", at=datetime(2023, 5, 9, tzinfo=UTC))
    assert long_ago not in said(ask(storage, "Where did we go sailing?", limit=500))
    assert hit(ask(storage, "Where did we go sailing in May 2023?", limit=500), long_ago).why["date"] == 1.0
    later = ask(storage, "Where did we go sailing in May 2023?", since=datetime(2024, 1, 1, tzinfo=UTC), limit=500)
    assert long_ago not in said(later)


def test_one_session_can_be_searched_alone(storage: Storage) -> None:
    say(storage, "The harbor is full.", session="s1")
    say(storage, "The harbor is empty.", session="s2")
    assert said(ask(storage, "harbor", session="s2")) == ["The harbor is empty."]


def test_what_is_packed_is_not_found(storage: Storage) -> None:
    say(storage, "The harbor is full.")
    with storage.writing(stamp()) as tx:
        tx.pack("s1")
    assert ask(storage, "harbor").hits == ()


def test_nothing_in_common_is_no_answer(storage: Storage) -> None:
    say(storage, "The harbor is full.")
    recalled = ask(storage, "volcano")
    assert recalled.hits == ()
    assert recalled.degraded is None
    assert ask(storage, "").hits == ()
    assert ask(storage, "harbor", limit=0).hits == ()


def test_time_that_runs_out_at_once_leaves_what_is_quickly_found_and_a_note(storage: Storage) -> None:
    say(storage, *["The harbor is full."] * 1_000, "A lighthouse by the harbor.")
    recalled = ask(storage, "lighthouse harbor", is_late=True)
    assert said(recalled)[0] == "A lighthouse by the harbor."
    assert recalled.degraded is not None
    assert recalled.degraded.startswith("Time ran out")


def test_time_that_runs_out_after_the_search_leaves_out_the_neighbours(storage: Storage) -> None:
    say(storage, "Where is the harbor?", "South.")
    assert said(ask(storage, "harbor")) == ["Where is the harbor?", "South."]
    recalled = ask(storage, "harbor", is_late=True)
    assert said(recalled) == ["Where is the harbor?"]
    assert recalled.degraded is not None
    assert "Time ran out" in recalled.degraded


@given(st.text(max_size=60) | st.from_regex(r"(when|how many|may|\d+ (days|years) ago|in may|last week| ){1,6}"))
def test_any_text_is_a_question(query: str) -> None:
    storage = InMemoryStorage("project/p1")
    say(storage, ("Ann", "When did it happen? Two years ago, in May."), ("Ben", "how many"))
    recalled = ask(storage, query)
    assert len(recalled.hits) <= 2


def test_storages_agree(tmp_path: Path) -> None:
    """All storages rank alike, ties included."""
    talk = [("Ann", f"We saw {place} and the harbor {time}.") for place in "abcdef" for time in ("today", "once", "")]
    talk += [("Ben", "Did you see the harbor?"), ("Ann", "Twice, in May.")] * 4
    answers = []
    for storage in (InMemoryStorage("project/p1"), SqliteStorage(tmp_path / "kept.db", "project/p1")):
        say(storage, *talk, at=START)
        answers.append([(one.memory.id, one.score) for one in ask(storage, "How often did Ann see the harbor?").hits])
        storage.close()
    assert answers[0] == answers[1]


# What a question asks for -------------------------------------------------------------------------


def test_fillers_are_not_searched_unless_nothing_else_is_asked() -> None:
    question = read_question("What is the name of the boat that you have?", START)
    assert set(question.words.literal) == {"name", "boat"}
    assert question.words.weights["name"] < question.words.weights["boat"]
    assert read_question("who is it", START).words.literal == ("who", "is", "it")


@pytest.mark.parametrize(
    ("query", "asks"),
    [
        ("When did it begin?", {"when"}),
        ("How long did it take?", {"when"}),
        ("How many boats are there?", {"how_many"}),
        ("How many weeks did it take?", {"when", "how_many"}),
        ("Can you remind me of it?", {"reply"}),
        ("Can you recommend a boat?", set()),
        ("Whenever it rains", set()),
    ],
)
def test_a_question_says_what_an_answer_looks_like(query: str, asks: set[str]) -> None:
    question = read_question(query, START)
    flags = {"when": question.asks_when, "how_many": question.asks_how_many, "reply": question.asks_reply}
    assert {name for name, is_asked in flags.items() if is_asked} == asks


@pytest.mark.parametrize(
    ("query", "at", "fits"),
    [
        ("in May 2023", "2023-05-09", 1.0),
        ("in May 2023", "2022-05-09", 0.0),
        ("in May 2023", "2023-06-07", 2 / 3),
        ("in May 2023", "2023-04-29", 5 / 7),
        ("in 2022", "2022-06-09", 1.0),
        ("on 7 May, 2023", "2023-05-07", 1.0),
        ("on May 7th", "2020-05-07", 1.0),
        ("on 2023-05-07", "2023-05-07", 1.0),
        ("may I ask", "2023-05-07", 0.0),
        ("Mark my words", "2023-03-07", 0.0),
        ("yesterday", "2026-02-28", 1.0),
        ("yesterday", "2026-02-20", 0.0),
        ("two weeks ago", "2026-02-15", 1.0),
        ("two weeks ago", "2026-02-26", 2 / 3),
        ("two weeks ago", "2026-01-01", 0.0),
        ("on 2023-13-45", "2023-05-07", 1.0),
        ("on 30 February", "2023-02-28", 0.0),
        ("a month ago", "2026-01-30", 1.0),
        ("last week", "2026-02-20", 1.0),
        ("last week", "2026-01-20", 0.0),
        ("last Saturday", "2026-02-28", 1.0),
        ("last Saturday", "2026-02-18", 0.0),
        ("999 years ago", "2026-02-18", 0.0),
        ("no time at all", "2026-02-18", 0.0),
    ],
)
def test_a_question_may_name_a_time(query: str, at: str, fits: float) -> None:
    assert moments(query, START).fit(datetime.fromisoformat(at).replace(tzinfo=UTC)) == pytest.approx(fits)


def test_a_message_without_a_time_fits_no_time() -> None:
    assert moments("in May 2023", START).fit(None) == 0.0
    assert moments("yesterday", START).fit(START - timedelta(days=1)) == 1.0
