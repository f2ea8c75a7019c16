"""Who is asking: the person who started the server, or the holder of a team's token.

The key of the person is made at each start and lives only in the process. Tokens are made by `kept token create`; the
file in the home has their hashes, never the tokens. Rules: secrets are compared by their digests, in constant time; a
key says everything that `access` needs (role, name and projects); and a token holds the ids of its projects and where
their memories were, because a name can be given to another project, and a project can be linked to another database.
"""

import hashlib
import hmac
import os
import secrets
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import Meta, Struct
from msgspec.structs import replace

from kept.errors import Corrupt, InvalidInput, NotAllowed, NotFound, SchemaTooNew
from kept.memory.opening import Project, Projects, open_projects
from kept.model import Actor, Origin, Role
from kept.projects.files import explained, locked, make_private_directory, shown, write_private_file

FILE, LOCK = "tokens.json", "tokens.lock"
VERSION = 2  # 1 was a bare list of tokens with the names of projects (Kept 0.2)
PREFIX = "kept_"  # so that a scanner for secrets knows one when it sees it
BYTES = 32
OWNER = "user"
RESERVED = (OWNER, "upkeep")  # the names under which the person who runs the server, and time, change things
Digest = Annotated[str, Meta(pattern="^[0-9a-f]{64}$")]


class Key(Struct, frozen=True, kw_only=True):
    """Someone who may ask. `projects` are ids of projects; none: every project of the home.

    `names` are the names that these projects had when the token was made: in a database a project is its name.
    `places` are where their memories were then, as `place_of` says.
    """

    name: str
    role: Role = "admin"
    origin: Origin = "user"
    projects: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    places: tuple[str, ...] = ()
    is_owner: bool = False  # the person who started the server, in whose home it reads

    def actor(self) -> Actor:
        """The actor for which a project is opened."""
        return Actor(role=self.role, name=self.name)

    def opens(self, project: Project) -> bool:
        """Return True if this key opens the project: the same id, with its memories where they were.

        Linked to a team's database, or to another project there, the id leads to other memories. In the database that
        KEPT_DATABASE_URL names, a project is its name. In both cases it opens nothing until a new token is made.
        """
        if not self.projects:
            return True
        if project.id not in self.projects:
            return False
        at = self.projects.index(project.id)
        name, place = (dict(enumerate(one)).get(at, "") for one in (self.names, self.places))
        by_name = project.team is None and is_in_database(project)
        return place == place_of(project) and (not by_name or name == project.name)


def is_in_database(project: Project) -> bool:
    """Return True if the memories of a project are in a database, where a change is signed by a person's name."""
    return project.team is not None or bool(os.environ.get("KEPT_DATABASE_URL"))


class Token(Struct, frozen=True, kw_only=True):
    """A token of a team, as it is stored: everything but itself. `lost` are names that led to no single project."""

    name: str
    digest: Digest
    role: Role = "project"
    projects: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    places: tuple[str, ...] = ()
    created_at: datetime
    lost: tuple[str, ...] = ()

    def key(self) -> Key:
        """The key of its holder, who is a person with a name. Raises NotAllowed for a token that lost a project."""
        if self.lost:
            raise NotAllowed(
                f"The token of {self.name!r} names {', '.join(map(repr, self.lost))}, and no single project has that "
                f"name today. The token opens nothing.",
                hint=f"Ask for a new one: `kept token revoke {self.name}`, then `kept token create {self.name}`.",
            )
        return Key(name=self.name, role=self.role, projects=self.projects, names=self.names, places=self.places)


class _File(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    version: int
    tokens: tuple[Token, ...]


class _Version(Struct, frozen=True):
    version: int


class Keys:
    """The keys of one server: that of the person who started it, and the tokens in the home."""

    def __init__(self, home: Path, own: str | None = None, *, role: Role = "admin") -> None:
        """`role`: that of the person who started the server."""
        self.own = own or secrets.token_urlsafe(BYTES)
        self.own_digest = digest_of(self.own)
        self.home = home
        self._role: Role = role
        self._file = home / FILE
        self._seen: tuple[object, tuple[Token, ...]] = (None, ())

    def find(self, secret: str) -> Key | None:
        """The key that this secret is, or None. Raises as `tokens` and `Token.key` do."""
        return self.of_digest(digest_of(secret))

    def of_digest(self, digest: str) -> Key | None:
        """The key whose secret has this digest, or None."""
        if hmac.compare_digest(digest, self.own_digest):
            return Key(name=OWNER, role=self._role, is_owner=True)
        found = [token for token in self.tokens() if hmac.compare_digest(token.digest, digest)]
        return found[0].key() if found else None

    def tokens(self) -> Sequence[Token]:
        """The tokens of the team; read again when the file has changed.

        A file of Kept 0.2 is upgraded first. Raises Corrupt for a damaged file, SchemaTooNew for one of a newer Kept.
        """
        with explained("read", self._file):
            try:
                found = self._file.stat()
            except FileNotFoundError:
                return ()
            state = (found.st_mtime_ns, found.st_ino, found.st_size)
            if self._seen[0] == state:
                return self._seen[1]
            raw = self._file.read_bytes()
        tokens = self._decoded(raw)
        if tokens is None:
            return self._upgraded()
        self._seen = (state, tokens)
        return tokens

    def create(self, name: str, *, role: Role, projects: Sequence[str]) -> str:
        """Make a token and return it: this is the only time that it is shown. `projects` are names or ids.

        Raises NotFound for a project that does not exist.
        """
        if not name.strip() or len(name) > 100 or name != name.encode("utf-8", "replace").decode():
            raise InvalidInput(
                "A token needs a name of at most 100 characters, in UTF-8.", hint="Use the name of its holder."
            )
        if name in RESERVED:
            raise InvalidInput(f"A token cannot be named {name!r}.", hint="Use the name of its holder.")
        chosen = {(found := self._projects().get(project)).id: found for project in projects}
        secret = PREFIX + secrets.token_urlsafe(BYTES)
        now = datetime.now(UTC)
        made = Token(name=name, digest=digest_of(secret), role=role, created_at=now)
        made = _for_projects(made, chosen.values())
        with self._changing() as known:
            if any(token.name == name for token in known):
                raise InvalidInput(f"There is a token {name!r} already.", hint=f"`kept token revoke {name}` ends it.")
            self._write((*known, made))
        return secret

    def revoke(self, name: str) -> None:
        """End a token: from the next request on it opens nothing, and its open streams end."""
        with self._changing() as known:
            left = tuple(token for token in known if token.name != name)
            if len(left) == len(known):
                raise NotFound(f"There is no token {name!r}.", hint="`kept token list` shows all.")
            self._write(left)

    @contextmanager
    def _changing(self) -> Iterator[Sequence[Token]]:
        """The tokens for one change, while no other process can change them."""
        self.tokens()  # upgrades an old file first: that takes the same lock
        make_private_directory(self.home)
        with locked(self.home / LOCK):
            yield self.tokens()

    def _upgraded(self) -> Sequence[Token]:
        """Put ids for the names in a file of Kept 0.2, once: a name read at each start would follow every rename.

        A name that no single project has today, in exactly this spelling, ends its token: another project could get it.
        """
        with locked(self.home / LOCK):
            old = self._decoded_old(self._file.read_bytes())
            if old is not None:  # None: another process was here first
                by_name: dict[str, list[Project]] = {}
                for project in self._projects().list_projects():
                    by_name.setdefault(project.name, []).append(project)
                self._write(tuple(_with_ids(token, by_name) for token in old))
        return self.tokens()

    def _decoded(self, raw: bytes) -> tuple[Token, ...] | None:
        """The tokens, or None for a file of Kept 0.2."""
        if self._decoded_old(raw) is not None:
            return None
        with self._explained():
            if (version := msgspec.json.decode(raw, type=_Version).version) > VERSION:
                raise SchemaTooNew(
                    f"{shown(self._file)} was written by a newer Kept (version {version}, this program knows "
                    f"{VERSION}).",
                    hint="Upgrade Kept, or use another home.",
                )
            return msgspec.json.decode(raw, type=_File).tokens

    def _decoded_old(self, raw: bytes) -> tuple[Token, ...] | None:
        with self._explained():
            is_old = raw.lstrip()[:1] == b"["
            return msgspec.json.decode(raw, type=tuple[Token, ...]) if is_old else None

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise Corrupt(
                f"{shown(self._file)} is damaged ({error}). No token is accepted while it is.",
                hint="Put a backup of the file back, or move it away and make the tokens again (`kept token create`).",
            ) from error

    def _projects(self) -> Projects:
        return open_projects(self.home)

    def _write(self, tokens: tuple[Token, ...]) -> None:
        write_private_file(self._file, msgspec.json.encode(_File(version=VERSION, tokens=tokens)))


def change_private_file(home: Path, file: str, lock: str, change: Callable[[], bytes]) -> None:
    """Replace a file of the home that only its owner may read, while no other process can."""
    make_private_directory(home)
    with locked(home / lock):
        write_private_file(home / file, change())


def digest_of(secret: str) -> str:
    """The digest by which secrets are stored and compared."""
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()


def place_of(project: Project) -> str:
    """Return where the memories of a project are: the database of its team and its name there; "" for the home."""
    return "" if project.team is None else f"{project.team.database} {project.team.name}"


def _for_projects(token: Token, projects: "Iterable[Project]") -> Token:
    named = [(one.id, one.name, place_of(one)) for one in projects]
    ids, names, places = (tuple(part) for part in zip(*named, strict=True)) if named else ((), (), ())
    return replace(token, projects=ids, names=names, places=places)


def _with_ids(token: Token, by_name: "Mapping[str, Sequence[Project]]") -> Token:
    found = {name: by_name.get(name, ()) for name in token.projects}
    lost = tuple(name for name, same in found.items() if len(same) != 1)
    return replace(_for_projects(token, [same[0] for same in found.values() if len(same) == 1]), lost=lost)
