"""Access: may this actor read or write this space?

The only place that decides; every verb of the facade (get, list, recall, history, undo, export …) asks here first.
Rule: an admin reads and writes everything; a project agent reads its own space and global, and writes its own; a skill
gets its context from its caller and has no access.
"""

from kept.errors import NotAllowed
from kept.model import GLOBAL, Actor


def may_read(actor: Actor, space: str) -> bool:
    """Whether the actor may see what is in the space."""
    return actor.role == "admin" or (actor.role == "project" and space in (actor.project, GLOBAL))


def may_write(actor: Actor, space: str, *, consent: bool = False) -> bool:
    """Whether the actor may change the space. `consent`: a person agreed to this change."""
    if actor.role == "admin":
        return True
    return actor.role == "project" and (space == actor.project or (space == GLOBAL and consent))


def check_read(actor: Actor, space: str) -> None:
    """Raise NotAllowed unless the actor may read the space."""
    if not may_read(actor, space):
        raise NotAllowed(f"{_who(actor)} may not read {space}.", hint=_hint(actor))


def check_write(actor: Actor, space: str, *, consent: bool = False) -> None:
    """Raise NotAllowed unless the actor may write the space."""
    if not may_write(actor, space, consent=consent):
        hint = _hint(actor)
        if actor.role == "project" and space == GLOBAL:
            hint = "All projects share it, so a person must agree (`confirm=` or `--yes`), or act `--as admin`."
        raise NotAllowed(f"{_who(actor)} may not write {space}.", hint=hint)


def _who(actor: Actor) -> str:
    return {"project": "A project agent", "admin": "An admin"}.get(actor.role, f"A {actor.role}")


def _hint(actor: Actor) -> str:
    if actor.role == "skill":
        return "A skill has no access to memory; its caller must read or write for it."
    return "An agent has access to its own project and global. Open that project, or act `--as admin`."
