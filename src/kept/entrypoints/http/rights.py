"""What the holder of a key may ask of an open memory, and what of an answer is not for them.

`doors` decides which projects a key opens, and closes global memory; this decides about verbs. Routes and slash
commands perform them through a `KeyedMemory`, so both have the same limits. Rules: no client makes the server read or
write a file that it names, files and settings of the server are for admins, a path of the server is for its owner, and
no token asks a project that it does not open.
"""

from pathlib import Path
from typing import Any

from kept.entrypoints.http.doors import Doors, shown_to
from kept.entrypoints.http.keys import Key
from kept.entrypoints.http.shapes import document
from kept.errors import NotAllowed, SettingsError
from kept.memory import Kept
from kept.memory.receipts import RecallReceipt
from kept.memory.verbs.declare import A, AnyVerb, NotHere, Q, Verb
from kept.model import Recalled, replace

# Verbs that read or change files and settings of the person who runs the server.
OF_THE_OWNER = frozenset(
    {"files.sync", "files.status", "store.configure", "store.doctor", "store.scan", "vectors.off", "vectors.status"}
)
# Settings that name files on the server.
SETTINGS_OF_FILES = frozenset({"vector_model", "memory_path", "sessions_path"})
WITH_PATHS = OF_THE_OWNER | {"status"}


class KeyedMemory:
    """An open memory as the holder of a key may use it: its verbs have limits, the rest is the memory's."""

    def __init__(self, memory: Kept, key: Key, doors: Doors) -> None:
        self._memory = memory
        self._key = key
        self._doors = doors

    def __getattr__(self, name: str) -> Any:
        return getattr(self._memory, name)

    def perform(self, verb: Verb[Q, A], request: Q) -> A:
        """Perform a verb, and return the part of its answer that the key may see. Raises NotAllowed."""
        check(self._key, verb, request)
        try:
            answer: Any = self._memory.perform(verb, request)
        except SettingsError as error:
            raise SettingsError(self._without_model(error.message), hint=self._without_model(error.hint)) from error
        answer = [self._seen(one) for one in answer] if verb.name == "session.given" else self._seen(answer)
        if verb.name in WITH_PATHS and not self._key.is_owner:
            answer = _named_only(self._doors.without_paths(self._key, document(answer)))
        seen: A = answer
        return seen

    def _seen(self, answer: Any) -> Any:
        """Return the answer to a question, or the receipt of one, as the key may see it; anything else as it is."""
        if isinstance(answer, RecallReceipt):
            answer = shown_to(self._key, answer)
        if isinstance(answer, RecallReceipt | Recalled) and answer.degraded is not None:
            answer = replace(answer, degraded=self._without_model(answer.degraded))
        return answer

    def _without_model(self, sentence: str) -> str:
        """Return the sentence with the name of the model instead of its path, unless the owner asks."""
        model = self._memory.settings.vector_model
        if model is None or self._key.is_owner:
            return sentence
        return sentence.replace(model, Path(model).name)


def is_admin(key: Key) -> bool:
    """Return True for the person who runs the server, and for an admin."""
    return key.is_owner or key.role == "admin"


def check(key: Key, verb: AnyVerb, request: Any) -> None:
    """Raise NotAllowed if the holder of this key may not ask that."""
    if isinstance(verb.http, NotHere):
        raise NotAllowed(f"{verb.name} is not available over HTTP.", hint=verb.http.reason)
    if verb.name in OF_THE_OWNER and not is_admin(key):
        raise NotAllowed("Only an admin of this server may do that.", hint="Ask for a token of an admin.")
    if verb.name == "store.configure" and request.setting in SETTINGS_OF_FILES and not key.is_owner:
        raise NotAllowed(
            f"The setting {request.setting} names files of the server.",
            hint=f"The person who runs the server changes it: `kept config set {request.setting} VALUE`.",
        )
    if getattr(request, "all_projects", False) and (key.projects or not is_admin(key)):
        raise NotAllowed("This key does not open all projects.", hint="Ask one project, without all_projects.")


def _named_only(value: Any) -> Any:
    """Return plain data with the last name instead of each absolute path."""
    if isinstance(value, str):
        return Path(value).name if Path(value).is_absolute() else value
    if isinstance(value, dict):
        return {name: _named_only(one) for name, one in value.items()}
    return [_named_only(one) for one in value] if isinstance(value, list) else value
