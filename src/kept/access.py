"""Access: may this actor read or write this space, and what must a person agree to first?

The only place that decides; every verb of the facade (get, list, recall, history, undo, export …) asks here first.
Rule: an admin reads and writes everything; a project agent reads its own space and global, and writes its own; a skill
gets its context from its caller and has no access. All projects share global memory, so a project agent changes it
only when a person agrees, to each effect on each record (`memory.consent` asks).
"""

from kept.errors import NotAllowed
from kept.model import GLOBAL, Actor, Conflict, Memory, Record, Rejection, least, replace


def may_read(actor: Actor, space: str) -> bool:
    """Whether the actor may see what is in the space."""
    return actor.role == "admin" or (actor.role == "project" and space in (actor.project, GLOBAL))


def may_write(actor: Actor, space: str) -> bool:
    """Whether the actor may change the space without asking anybody."""
    return actor.role == "admin" or (actor.role == "project" and space == actor.project and space != GLOBAL)


def needs_consent(actor: Actor, space: str) -> bool:
    """Whether a person has to agree to what the actor changes there."""
    return actor.role == "project" and space == GLOBAL


def check_read(actor: Actor, space: str) -> None:
    """Raise NotAllowed unless the actor may read the space."""
    if not may_read(actor, space):
        raise NotAllowed(f"{who(actor)} may not read {space}.", hint=_hint(actor))


def check_verb(actor: Actor, *, reads: bool) -> None:
    """Raise NotAllowed for an actor that may call no verb at all, before anything else is looked at."""
    if actor.role == "skill":
        (check_read if reads else check_own)(actor, GLOBAL)


def check_home(actor: Actor) -> None:
    """Raise NotAllowed unless the actor may see the projects, settings and tokens of a home."""
    if actor.role == "skill":
        raise NotAllowed(f"{who(actor)} may not read or write anything in Kept's home.", hint=_hint(actor))


def check_everywhere(actor: Actor) -> None:
    """Raise NotAllowed unless the actor may read every space."""
    if actor.role != "admin":
        raise NotAllowed(f"{who(actor)} may not read other projects.", hint=_hint(actor))


def check_write(actor: Actor, space: str) -> None:
    """Raise NotAllowed unless the actor may write the space, on its own or with a person's consent."""
    if not needs_consent(actor, space):
        check_own(actor, space)


def check_own(actor: Actor, space: str) -> None:
    """Raise NotAllowed unless the actor may write the space on its own."""
    if not may_write(actor, space):
        raise NotAllowed(f"{who(actor)} may not write {space}.", hint=_hint(actor))


def goes_unasked(before: Record | None, after: Record | None, action: str, *, is_heard: bool = True) -> bool:
    """Whether a project agent may do this to a record of global memory without asking a person.

    Only a new pattern that is not pinned, the conflict that a new memory brings, the loss of trust, and a rejection,
    which comes and goes with a memory that is asked about. A promotion
    tells all projects what one of them knew, so it is asked about, whatever the kind; and so is a text of low trust, or
    one that may turn out to be: without `is_heard`, its agent was told things that are not known here yet.
    """
    if isinstance(before, Memory) and isinstance(after, Memory):
        return after.is_low_trust and least(before.trust, after.trust) != before.trust and _says_the_same(before, after)
    if before is not None or action == "promote":
        return isinstance(before, Rejection)
    if isinstance(after, Memory):
        return is_heard and _is_plain_pattern(after)
    return isinstance(after, Conflict | Rejection)


def _is_plain_pattern(memory: Memory) -> bool:
    """Return True for a pattern that is not pinned or archived, and not of low trust."""
    return memory.kind == "pattern" and memory.status in ("candidate", "confirmed") and not memory.is_low_trust


def _says_the_same(before: Memory, after: Memory) -> bool:
    """Return True if nothing is different but the trust, and what follows from it."""
    follows = {name: getattr(before, name) for name in ("status", "tags", "confidence", "updated_at")}
    return replace(after, trust=before.trust, **follows) == before and after.status in ("candidate", before.status)


def who(actor: Actor) -> str:
    """The actor in a sentence."""
    return {"project": "A project agent", "admin": "An admin"}.get(actor.role, f"A {actor.role}")


def _hint(actor: Actor) -> str:
    if actor.role == "skill":
        return "A skill has no access to memory; its caller must read or write for it."
    return "An agent has access to its own project and global. Open that project, or act `--as admin`."
