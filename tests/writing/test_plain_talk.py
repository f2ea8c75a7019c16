"""Plain talk: rules are told, facts are proposed, the last word counts, answers carry their question, requests pass."""

from kept.model import Message
from kept.proposals import TOLD
from kept.writing.extraction import ExtractedDraft, extract
from tests.writing.plain_talk import ANSWERED, CHANGED, CHATTER, OPENED, OPENERS, PERSONAL, REQUESTS, STANDING, STATED

SHARE = 0.8


def said(*texts: str, is_chat: bool = False) -> list[ExtractedDraft]:
    """Play a conversation in which the user says these texts, each after a short answer."""
    messages: list[Message] = []
    for number, text in enumerate(texts):
        call = Message(id=f"c{number}", role="tool_call", name="Read", input={"file_path": "src/app.py"})
        messages += [] if is_chat else [call]
        messages += [
            Message(id=f"a{number}", role="assistant", content="Done."),
            Message(id=f"u{number}", role="user", content=text),
        ]
    return extract(messages)


def proposed(found: list[ExtractedDraft], part: str) -> bool:
    return any(part in each.draft.content.lower() for each in found)


def told(found: list[ExtractedDraft], part: str) -> bool:
    return proposed([each for each in found if each.sort in TOLD], part)


def missed(share: float, results: dict[str, bool]) -> list[str]:
    """Return the texts that failed, or nothing if enough passed."""
    failed = [text for text, is_fine in results.items() if not is_fine]
    return failed if len(failed) > (1 - share) * len(results) else []


def test_standing_orders_are_told() -> None:
    assert missed(SHARE, {text: told(said(text), part) for text, part in STANDING}) == []


def test_an_opener_changes_nothing() -> None:
    results = {}
    for opener in OPENERS:
        for statement in OPENED:
            results[f"{opener} {statement}"] = told(said(f"{opener} {statement}"), statement.lower())
    assert missed(0.95, results) == []


def test_facts_are_proposed() -> None:
    assert missed(SHARE, {text: proposed(said(text), part) for text, part in STATED}) == []


def test_the_last_word_counts() -> None:
    results = {}
    for first, later, gone, stays in CHANGED:
        found = said(first, later)
        results[later] = proposed(found, stays) and not told(found, gone)
    assert missed(SHARE, results) == []


def test_an_answer_carries_its_question() -> None:
    results = {}
    for question, answer, part in ANSWERED:
        asked = Message(id="a", role="assistant", content=question)
        call = Message(id="c", role="tool_call", name="Read", input={"file_path": "src/app.py"})
        results[question] = proposed(extract([call, asked, Message(id="u", role="user", content=answer)]), part)
    assert missed(SHARE, results) == []


def test_requests_are_not_told() -> None:
    assert [text for text in REQUESTS if any(each.sort in TOLD for each in said(text))] == []


def test_people_are_heard_when_they_talk_about_themselves() -> None:
    assert missed(SHARE, {text: told(said(text, is_chat=True), part) for text, part in PERSONAL}) == []


def test_chatter_is_not_kept() -> None:
    assert [text for text in CHATTER if said(text, is_chat=True)] == []
