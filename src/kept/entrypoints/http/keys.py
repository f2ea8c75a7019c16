"""Who is asking: the person who started the server, or the holder of a team's token.

The key of the person is made at each start and lives only in the process. Tokens are made by `kept token create`; the
file in the home has their hashes, never the tokens. Rule: one comparison, in constant time, and a key says everything
that `access` needs: role, name and projects.
"""

import hashlib
import hmac
import secrets
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import msgspec
from msgspec import Struct

from kept.errors import InvalidInput, NotFound
from kept.model import Actor, Origin, Role
from kept.projects.files import replace_file
from kept.projects.registry import Project

FILE = "tokens.json"
PREFIX = "kept_"  # so that a scanner for secrets knows one when it sees it
BYTES = 32
OWNER = "user"
RESERVED = (OWNER, "upkeep")  # the names under which the person who runs the server, and time, change things


class Key(Struct, frozen=True, kw_only=True):
    """Someone who may ask. `projects` are ids of projects, or names in older files; none: every project of the home."""

    name: str
    role: Role = "admin"
    origin: Origin = "user"
    projects: tuple[str, ...] = ()
    is_owner: bool = False  # the person who started the server, in whose home it reads

    def actor(self) -> Actor:
        """The actor for which a project is opened."""
        return Actor(role=self.role, name=self.name)

    def may_open(self, project: Project) -> bool:
        """Whether this key opens that project at all. No name of a project looks like an id."""
        return not self.projects or project.id in self.projects or project.name in self.projects


class Token(Struct, frozen=True, kw_only=True):
    """A token of a team, as it is stored: everything but itself."""

    name: str
    digest: str
    role: Role = "project"
    projects: tuple[str, ...] = ()
    created_at: datetime

    def key(self) -> Key:
        """The key of its holder, who is a person with a name."""
        return Key(name=self.name, role=self.role, projects=self.projects)


class Keys:
    """The keys of one server: that of the person who started it, and the tokens in the home."""

    def __init__(self, home: Path, own: str | None = None, *, role: Role = "admin") -> None:
        """`role`: that of the person who started the server."""
        self.own = own or secrets.token_urlsafe(BYTES)
        self._role: Role = role
        self._file = home / FILE
        self._seen: tuple[float, tuple[Token, ...]] = (-1.0, ())

    def find(self, secret: str) -> Key | None:
        """The key that this secret is, or None."""
        if hmac.compare_digest(secret.encode(), self.own.encode()):
            return Key(name=OWNER, role=self._role, is_owner=True)
        digest = _digest(secret)
        found = [token for token in self.tokens() if hmac.compare_digest(token.digest, digest)]
        return found[0].key() if found else None

    def tokens(self) -> Sequence[Token]:
        """The tokens of the team; read again when the file has changed."""
        try:
            changed = self._file.stat().st_mtime_ns
        except FileNotFoundError:
            return ()
        if self._seen[0] != changed:
            self._seen = (changed, msgspec.json.decode(self._file.read_bytes(), type=tuple[Token, ...]))
        return self._seen[1]

    def create(self, name: str, *, role: Role, projects: Sequence[str]) -> str:
        """Make a token and return it: this is the only time that anybody sees it."""
        if not name.strip() or len(name) > 100 or name != name.encode("utf-8", "replace").decode():
            raise InvalidInput(
                "A token needs a name of at most 100 characters, in UTF-8.", hint="Use the name of its holder."
            )
        if name in RESERVED:
            raise InvalidInput(f"A token cannot be named {name!r}.", hint="Use the name of its holder.")
        if any(token.name == name for token in self.tokens()):
            raise InvalidInput(f"There is a token {name!r} already.", hint=f"`kept token revoke {name}` ends it.")
        secret = PREFIX + secrets.token_urlsafe(BYTES)
        made = Token(
            name=name, digest=_digest(secret), role=role, projects=tuple(projects), created_at=datetime.now(UTC)
        )
        self._write((*self.tokens(), made))
        return secret

    def revoke(self, name: str) -> None:
        """End a token: from the next request on it opens nothing."""
        left = tuple(token for token in self.tokens() if token.name != name)
        if len(left) == len(self.tokens()):
            raise NotFound(f"There is no token {name!r}.", hint="`kept token list` shows all.")
        self._write(left)

    def _write(self, tokens: tuple[Token, ...]) -> None:
        self._file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        replace_file(self._file, msgspec.json.encode(tokens))


def _digest(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()
