"""What ends within a conversation: problems that are mended, options not chosen, ideas given up, what is taken back."""

import pytest

from kept.model import Message
from kept.writing.extraction import extract


def left_of(*said: tuple[str, str], is_chat: bool = False) -> str:
    """Play a conversation, each message with its role; "edit" is a change of src/app.py. Return what is proposed."""
    messages: list[Message] = [] if is_chat else [_call("Read", {"file_path": "src/other.py"})]
    for number, (role, content) in enumerate(said):
        if role == "edit":
            change = {"file_path": "src/app.py", "old_string": "x = 1", "new_string": content}
            messages += [_call("Edit", change), Message(id="r", role="tool_result", content="ok")]
        else:
            messages.append(Message(id=f"m{number}", role=role, content=content))  # type: ignore[arg-type]
    return "\n".join(each.draft.content for each in extract(messages)).lower()


def _call(name: str, given: dict[str, str]) -> Message:
    return Message(id="c", role="tool_call", name=name, input=given)


PROBLEMS = [
    "The export page is blank since Monday for all customers.",
    "Every second invoice goes out two hours late.",
    "the ticket list shows closed tickets on top, can you look?",
    "Die Rechnungsliste ist leer, schau bitte mal nach.",
    "El listado de facturas falla desde el lunes.",
    "La liste des factures plante depuis lundi.",
    "請求書の一覧がまた失敗しています。",
]


@pytest.mark.parametrize("said", PROBLEMS)
def test_a_problem_is_over_when_the_code_is_changed_for_it(said: str) -> None:
    found = left_of(("user", said), ("assistant", "I look."), ("edit", "x = 2"), ("assistant", "It is mended."))
    assert found == ""


@pytest.mark.parametrize(
    ("said", "part"),
    [
        ("Never deploy when the smoke test fails, call Rosa first.", "smoke test"),
        ("Failed jobs are retried three times at most.", "failed jobs"),
        ("Mails don't go out. The relay is mail.example.com on port 587, user stage.", "port 587"),
    ],
)
def test_a_rule_about_failures_and_a_fact_beside_a_problem_stay(said: str, part: str) -> None:
    assert part in left_of(("user", said), ("edit", "x = 2"))


def test_an_older_problem_waits_for_its_own_change() -> None:
    talk = (("user", "Every night the import crashes at the umlauts in names."), ("assistant", "Noted."))
    later = (("user", "Now the export page is blank, fix that first."), ("edit", "x = 2"))
    assert "night the import" in left_of(*talk, *later, ("user", "Understood."))


OFFER = "Two ways:\n{0} signed cookies without a server\n{1} a table of sessions in Postgres\nI would take the first."


@pytest.mark.parametrize(
    ("signs", "answer"),
    [(("A)", "B)"), "B"), (("1.", "2."), "2"), (("a)", "b)"), "b, please"), (("1.", "2."), "the second")],
)
def test_an_option_is_chosen_by_its_sign_alone(signs: tuple[str, str], answer: str) -> None:
    offer = OFFER.format(*signs)
    found = left_of(("user", "How do we keep people logged in?"), ("assistant", offer), ("user", answer))
    assert "table of sessions" in found
    assert "signed cookies" not in found


@pytest.mark.parametrize("answer", ["A second table is too much for that.", "3 tables are enough for the start."])
def test_an_article_or_a_number_before_a_noun_chooses_nothing(answer: str) -> None:
    offer = OFFER.format("A)", "B)") if answer[0] == "A" else "1. cookies\n2. tokens\n3. certificates of clients"
    found = left_of(("assistant", offer), ("user", answer))
    assert "signed cookies" not in found
    assert "certificates" not in found


def test_digits_in_prose_are_no_options() -> None:
    asked = "Still open: comments on chapter 3. And figures in chapter 4. Which is most urgent?"
    assert "figures in chapter 4. which" in left_of(("assistant", asked), ("user", "the ethics form"), is_chat=True)


@pytest.mark.parametrize(
    ("idea", "decided"),
    [
        (
            "I was thinking of Redis Streams for the exports.",
            "No wait, a second Redis is silly. Let's use a jobs table.",
        ),
        ("Ich dachte an Selbermachen mit Transporter und Freunden.", "Nee, dann doch eine Umzugsfirma."),
        ("Pensavo all'acquario di Genova per la gita.", "Anzi no, andiamo al museo delle miniere."),
        ("Je pensais à un buffet froid pour la fête.", "Finalement on prend le traiteur du village."),
    ],
)
def test_an_idea_is_given_up_when_something_else_is_decided(idea: str, decided: str) -> None:
    found = left_of(("user", idea), ("assistant", "Good."), ("user", decided), is_chat=True)
    assert idea.lower().rstrip(".") not in found
    assert found != ""


@pytest.mark.parametrize("taken_back", ["Scratch that.", "No wait, forget that.", "Vergiss das.", "Olvídalo."])
def test_what_is_taken_back_is_not_kept(taken_back: str) -> None:
    assert left_of(("user", "The banner is green on all pages."), ("assistant", "OK."), ("user", taken_back)) == ""


@pytest.mark.parametrize(
    ("before", "back"),
    [
        ("two weeks of babysitting postgres and im done", "we go back to the sqlite file, wal mode"),
        ("The new router loses requests", "we go back to the old one"),
    ],
)
def test_a_way_back_is_kept_with_what_it_ends_in_the_same_message(before: str, back: str) -> None:
    assert back in left_of(("user", f"{before}. {back}.")).lower()


def test_contractions_are_read_without_their_sign() -> None:
    said = ("user", "we dont support the old gateway any more, so its adapters can go")
    assert "gateway" in left_of(said)
    assert left_of(("user", "whats the difference between soft and mixed again")) == ""
