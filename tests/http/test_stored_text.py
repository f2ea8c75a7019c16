"""Stored text is text: no place of any view lets it become an element or an attribute."""

from collections.abc import Iterator
from html.parser import HTMLParser

import pytest

import kept
from kept.entrypoints.http.keys import Keys
from kept.memory import deliver
from kept.memory.opening import open_projects
from kept.model import Actor
from kept.projects.files import check_session_name
from tests.http.conftest import Server, serving
from tests.http.test_keys import VIEWS

EVIL = "<x-evil onevil=1>\"'`><x-evil x='onevil=1' y=\"onevil=1\"></script></textarea></title>--><x-evil>{{7*7}}"
SHORT = "\"'><x-evil onevil=1>"


class Seen(HTMLParser):
    """The names of the elements and attributes of a page."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.elements: set[str] = set()
        self.attributes: set[str] = set()
        self.links: set[str] = set()
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.add(tag)
        self.attributes |= {name for name, _ in attrs}
        self.links |= {value or "" for name, value in attrs if name in ("href", "src", "action", "formaction")}


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Server, str]]:
    """A server whose project has hostile text in every field that a program can fill, and a token with such a name."""
    with serving(tmp_path_factory.mktemp("hostile")) as server:
        actor = Actor(role="admin", name=SHORT)
        with kept.open(project=server.project, home=server.home, actor=actor) as memory:
            source = kept.Source(agent=SHORT, file=SHORT)
            first = memory.remember(
                f"We use Express {EVIL}", kind="decision", tags=[SHORT], files=[SHORT], source=source
            )
            memory.remember(f"We use Fastify {EVIL}", kind="decision", topic=SHORT)
            memory.remember("javascript:alert(1)", files=["javascript:alert(1)"], tags=["javascript:alert(1)"])
            memory.remember(EVIL, tier="global", kind="preference")
            memory.revise(first.ref, f"We use Koa {EVIL}")
            session = memory.session(check_session_name("talk-1"), agent=SHORT)
            session.append("user", f"We decided to keep tokens for 30 days, because of {EVIL}")
            session.append("assistant", EVIL)
            session.append("tool_call", "", name=SHORT, input={SHORT: EVIL})
            session.append("tool_result", EVIL, name=SHORT)
            for event in ("UserPromptSubmit", SHORT):
                memory.deliveries.for_prompt(
                    f"which server do we use {EVIL}", deliver.Listener(session="talk-1", event=event)
                )
            memory.recall(f"Express {EVIL}")
            session.finish()
            memory.task(description=EVIL, milestone=SHORT, acceptance_criteria=[EVIL])
            (server.project / "plan.md").write_text(f"# Plan {EVIL}\n\nTODO: rotate {EVIL}\n", "utf-8")
            memory.files.extract([server.project / "plan.md"])
        secret = Keys(server.home).create(SHORT, role="project", projects=["web-app"])
        server.ask("POST", "/api/v1/projects/here/memories", {"content": f"A teammate says {EVIL}"}, key=secret)
        open_projects(server.home).rename("web-app", f"app {SHORT}"[:60])
        yield server, secret


def test_no_stored_text_becomes_a_part_of_a_page(hostile: tuple[Server, str]) -> None:
    server, secret = hostile
    evil = "%3Cx-evil%20onevil%3D1%3E%22%27"
    more = [f"memories?ref={number}" for number in range(1, 12)]
    more += [f"memories?q=Express+{evil}&tag={evil}&file={evil}&agent={evil}", f"memories?kind={evil}", "inbox?item=1"]
    more += ["saw?session=talk-1", "saw?session=talk-1&replay=1", "saw?receipt=r1", "sessions?session=talk-1"]
    more += [f"sessions?q=tokens+{evil}", f"knowledge?q=rotate+{evil}", f"nowhere{evil}", f"saw?receipt={evil}"]
    marked = 0
    for key in ({}, {"key": secret}):
        for view in (*VIEWS, *more):
            answer = server.ask("GET", f"/p/{project_id(server)}/{view}", headers={"Accept": "text/html"}, **key)  # type: ignore[arg-type]
            html = answer.body.decode()
            seen = Seen(html)
            assert "x-evil" not in seen.elements, view
            assert not [name for name in seen.attributes if "evil" in name or name.startswith("on")], view
            assert all(link.startswith(("/", "#")) and not link.startswith("//") for link in seen.links), view
            assert "x-evil" not in html or "{{7*7}}" in html or "x-evil&gt;49" not in html
            marked += "&lt;x-evil" in html
    assert marked > 20, "the hostile text is there"


def project_id(server: Server) -> str:
    return str(server.ask("GET", "/api/v1/projects").json["projects"][0]["id"])
