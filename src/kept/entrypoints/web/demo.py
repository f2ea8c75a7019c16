"""Sample data for `kept serve --demo`: a small project, in a scratch home, as an agent would have left it."""

from pathlib import Path

from kept.memory import deliver
from kept.memory.opening import open as open_memory
from kept.model import Actor, Draft

PROJECT = "ledger-api"
STATEMENTS: tuple[tuple[str, str, str], ...] = (
    ("decision", "auth", "Access tokens live for 15 minutes, refresh tokens for 30 days; both are rotated on use"),
    ("fact", "auth", "A 401 from /token means that the refresh token was used before: revoke the whole family"),
    ("warning", "auth", "Never edit src/auth/middleware.py by hand; it is generated from auth.yml"),
    ("convention", "tests", "Run the tests with `make test`; they need Docker"),
    ("architecture", "db", "The ledger is one append-only table in Postgres 17, partitioned by month"),
    ("decision", "api", "We use Express for the gateway service"),
    ("decision", "api", "We use Fastify for the gateway service"),
    ("preference", "style", "Short commit messages in the imperative"),
    ("error", "deploy", "Deploy fails with ECONNREFUSED when the migration job runs before the proxy is ready"),
    ("discovery", "mobile", "The mobile app sends the refresh token in the body, the web app in a cookie"),
)
TALK = (
    ("user", "We decided to keep refresh tokens for 30 days, because the mobile app cannot log in again by itself."),
    ("assistant", "The 401 comes from src/auth/tokens.py because two tabs rotate the same refresh token at once."),
    ("user", "Right. Use one lock for each token family instead of a retry."),
)


def fill(home: Path) -> Path:
    """Make the sample project in that home, and return its folder."""
    folder = home / PROJECT
    (folder / ".git").mkdir(parents=True, exist_ok=True)
    with open_memory(project=folder, home=home / "kept", actor=Actor(name="claude-code")) as memory:
        memory.remember_many([Draft(content=text, kind=kind, tags=(tag,)) for kind, tag, text in STATEMENTS])
        for ref in ("1", "1", "2"):
            memory.reinforce(ref)
        memory.pin("3")
        session = memory.session("4a81e6", agent="claude-code")
        for event, prompt in (("SessionStart", ""), ("UserPromptSubmit", "fix the login bug: 401 after token refresh")):
            listener = deliver.Listener(session="4a81e6", event=event)
            deliver.for_prompt(memory, prompt, listener) if prompt else deliver.at_start(memory, listener)
        for role, said in TALK:
            session.append(role, said)  # type: ignore[arg-type]
        session.finish()
        memory.task(description="Rotate refresh tokens once for each family", priority=1)
    return folder
