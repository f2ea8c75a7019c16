"""Which memories a session was told, and since when: the promises that the moments of delivery rely on."""

import pytest

import kept
from kept.memory.deliver import Listener
from kept.memory.told import Told, told_in
from kept.model import Source

PROMPT = "How do we deploy the Fastify server to the staging cluster?"
FACT = "The Fastify server is deployed to the staging cluster with make ship"


@pytest.fixture
def memory(tmp_path):
    with kept.open(tmp_path / "kept.db", settings={"auto_upkeep": False}) as memory:
        yield memory


def listener(session="s1", **more):
    return Listener(session=session, event="an event", **more)


def told(memory, session="s1") -> Told:
    return told_in(memory._context, session)


def test_a_session_that_was_told_nothing_has_nothing(memory):
    assert told(memory) == Told()


def test_a_memory_is_told_at_its_moment_in_its_turn_and_only_in_its_session(memory):
    fact = memory.remember(FACT).memory
    assert memory.deliveries.for_prompt(PROMPT, listener())
    assert told(memory).turn == told(memory).context == {fact.uid: frozenset({"prompt"})}
    assert told(memory, "s2") == Told()


def test_a_prompt_that_was_told_nothing_begins_a_turn(memory):
    fact = memory.remember(FACT).memory
    memory.deliveries.for_prompt(PROMPT, listener())
    assert memory.deliveries.for_prompt("go on", listener()) == ""
    assert told(memory).turn == {}
    assert told(memory).early == {fact.uid}


@pytest.mark.parametrize(("is_resumed", "is_still_in_view"), [(True, True), (False, False)])
def test_a_start_begins_a_context_unless_the_agent_resumes_a_session(memory, is_resumed, is_still_in_view):
    fact = memory.remember(FACT).memory
    memory.deliveries.for_prompt(PROMPT, listener())
    memory.forget(fact.ref)  # so that the start itself has nothing to tell
    memory.deliveries.at_start(listener(is_resumed=is_resumed))
    assert (fact.uid in told(memory).early) is is_still_in_view
    assert fact.uid in told(memory).at("prompt", since="session")


def test_a_compaction_ends_the_context_and_the_turn(memory):
    fact = memory.remember(FACT).memory
    memory.deliveries.for_prompt(PROMPT, listener())
    memory.deliveries.on_compaction(listener())
    assert told(memory).turn == told(memory).context == {}
    assert told(memory).session == {fact.uid: frozenset({"prompt"})}


def test_a_subagent_is_told_under_its_own_moment(memory):
    fact = memory.remember(FACT).memory
    assert memory.deliveries.for_subagent(PROMPT, listener())
    assert told(memory).at("subagent") == {fact.uid}
    assert told(memory).early == frozenset()


def summary_of_last_session(memory):
    source = Source(origin="narrative", session="s0")
    memory.remember(f"- Asked: ship it\n- {FACT}", kind="summary", tier="session", source=source)


def test_a_prompt_does_not_tell_a_memory_that_the_summary_told_at_the_start(memory):
    summary_of_last_session(memory)
    memory.remember(FACT)
    assert FACT in memory.deliveries.at_start(listener())
    assert FACT not in memory.deliveries.for_prompt(PROMPT, listener())
    assert FACT in memory.deliveries.for_prompt(PROMPT, listener("s2")), "another context"


def test_a_summary_does_not_tell_a_memory_that_the_context_was_told(memory):
    memory.remember(FACT)
    assert FACT in memory.deliveries.for_prompt(PROMPT, listener())
    summary_of_last_session(memory)
    memory.remember("The nodes of the staging cluster have names of rivers")
    prompt = "What did we do last time with the nodes of the staging cluster?"
    assert "rivers" in (said := memory.deliveries.for_prompt(prompt, listener()))
    assert FACT not in said
    assert f"- {FACT}" in memory.deliveries.for_prompt(prompt, listener("s2")), "another context"
