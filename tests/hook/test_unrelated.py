"""Prompts that have nothing to do with what is stored add nothing; related ones add at most their budget."""

import pytest

import kept
from kept import tokens
from kept.memory import deliver

MEMORIES = """
Deploy the billing service with make ship, because CI has no key
Use Fastify for the public API server, not Express
The orders table is partitioned by month in Postgres
Run the linter with ruff check before every commit
Sessions are stored in Redis with a TTL of one hour
The staging host is behind the VPN
Feature flags live in config/flags.yaml
Never edit generated files below src/gen
Images are resized by the worker queue, not by the web process
The importer retries three times with exponential backoff
"""
SUBJECTS = "dentist recipe guitar volcano penguin violin marathon sunscreen croissant telescope".split()
ASKS = (
    "what is the phone number of our {}",
    "tell me a joke about a {}",
    "how old is the oldest {} in the world",
    "can you please write a poem for my {}",
    "where did I put the {} yesterday",
    "is it true that a {} is good for you",
    "translate the word {} to Finnish",
    "which {} should we buy for the party",
    "why is the {} so expensive this year",
    "thanks, that {} was great, see you tomorrow",
)
RELATED = ("deploy the billing service", "which API server: Fastify or Express", "is the orders table partitioned")


@pytest.fixture(scope="module")
def memory(tmp_path_factory: pytest.TempPathFactory) -> kept.Kept:
    opened = kept.open(tmp_path_factory.mktemp("store") / "m.db", settings=kept.Settings())
    opened.remember_many(MEMORIES.strip().split("\n"))
    opened.pin(opened.remember("Never push to main", kind="warning").ref or "")
    return opened


def test_none_of_a_hundred_unrelated_prompts_adds_anything(memory: kept.Kept) -> None:
    listener = deliver.Listener(session="s", event="UserPromptSubmit")
    prompts = [ask.format(subject) for ask in ASKS for subject in SUBJECTS]
    assert len(prompts) == 100
    assert [prompt for prompt in prompts if memory.deliveries.for_prompt(prompt, listener)] == []


@pytest.mark.parametrize("style", ["xml", "markdown", "text"])
@pytest.mark.parametrize("prompt", RELATED)
def test_a_related_prompt_adds_at_most_its_budget(memory: kept.Kept, prompt: str, style: str) -> None:
    listener = deliver.Listener(session=f"{prompt} {style}", event="UserPromptSubmit", style=style)
    block = memory.deliveries.for_prompt(prompt, listener)
    assert block
    assert tokens.estimate(block) <= deliver.PROMPT_TOKENS
