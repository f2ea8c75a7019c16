"""Small promises of the lists and their details: who, when, which state, and a row for each address."""

import re
from datetime import timedelta

import pytest

from kept.entrypoints.web import health, words
from tests.builders import START
from tests.http.test_saw import Pages
from tests.http.test_saw import pages as pages

MOST = 60  # more than a page of a list


def rows_of(html: str) -> list[str]:
    return re.findall(r'<a class="row".*?</a>', html.partition('data-swap="list"')[2], re.DOTALL)


def test_a_memory_that_is_opened_by_its_address_has_the_ring_although_the_list_does_not_show_it(pages: Pages) -> None:
    with pages.memory() as memory:
        for number in range(MOST):
            memory.remember(f"The worker number {number} mirrors region {number}.")
        memory.forget("3")
    html = pages.shown("memories?ref=1")
    assert "Opened by its address" in html
    (current,) = [row for row in rows_of(html) if 'aria-current="true"' in row]
    assert "The build runs on Node 22." in current
    assert html.index("data-opened") < html.index("Opened by its address")
    for view in ("memories", f"memories?ref={MOST}", "memories?ref=3"):
        assert "Opened by its address" not in pages.shown(view)


def test_a_view_that_is_drawn_again_does_not_bring_back_the_row_that_has_left_its_list(pages: Pages) -> None:
    path = "memories?kind=decision&ref=1"
    assert "data-opened" in pages.shown(path)
    assert "data-opened" not in pages.shown(path, **{"X-Kept-Part": "again"})


def test_a_person_is_you_and_an_unconfirmed_memory_has_one_name(pages: Pages) -> None:
    with pages.memory("user") as memory:
        own = memory.remember("Invoices are numbered without gaps.").ref
    with pages.memory() as memory:
        session = memory.session("talk", agent="claude-code")
        session.append("assistant", "The root cause was a missing index on the table of invoices.")
        session.append("user", "Retries are limited to 3 attempts, the carrier bans us otherwise.")
        session.finish()
        found = next(one for one in memory.list(limit=20) if one.status == "candidate" and one.kind != "summary")
    html = pages.shown(f"memories?ref={own}")
    assert "by you" in html
    assert "<dt>Author</dt><dd>you</dd>" in html
    assert "<dt>Agent</dt>" not in html
    html = pages.shown(f"memories?ref={found.ref}&status=candidate")
    assert '<span class="badge candidate">unconfirmed</span>' in html
    assert "<dt>Status</dt><dd>unconfirmed" in html
    assert re.search(r'<option value="candidate" selected>unconfirmed \(', html)
    assert ">candidate<" not in html


def test_a_contradiction_is_dated_by_when_it_was_noticed_and_marked_in_the_list(pages: Pages) -> None:
    with pages.memory() as memory:
        memory.remember("We use Express for the gateway service.", kind="decision")
        memory.remember("We do not use Express for the gateway service.", kind="decision")
    assert "noticed just now" in pages.shown("inbox?tab=conflict")
    marked = [row for row in rows_of(pages.shown("memories")) if "contradicted" in row]
    assert len(marked) == 2


@pytest.mark.parametrize(
    ("before", "said"),
    [
        (timedelta(seconds=3), "just now"),
        (timedelta(minutes=50), "50 minutes ago"),
        (timedelta(days=14), "14 days ago"),
        (timedelta(days=40), "1 month ago"),
    ],
)
def test_how_long_ago_something_was_is_said_in_one_unit(before: timedelta, said: str) -> None:
    assert words.ago(START - before, START) == said


def test_a_search_without_a_hit_has_no_empty_header(pages: Pages) -> None:
    html = pages.shown("memories?q=zzzqqq").partition('data-swap="list"')[2].partition("</section>")[0]
    assert "<header>" not in html
    assert "Nothing contains these words" in html


def test_a_past_day_is_named_as_everywhere_else(pages: Pages) -> None:
    html = pages.shown("memories?as_of=2025-10-01")
    assert "This is what was known on 1 Oct 2025" in html
    assert '<output for="as-of-day">' in pages.shown("memories") or "data-days" not in pages.shown("memories")
    assert "as of: 1 Oct 2025" in html


def test_few_recalls_are_points_and_many_are_lines() -> None:
    few, many = (_recalls(number) for number in (26, 600))
    assert few["is_single"]
    assert not many["is_single"]


def _recalls(number: int) -> dict[str, object]:
    found = [(START, 5.0 + place % 7) for place in range(number)]
    return health.drawn_recalls(found[-health.RECALLS :], START)
