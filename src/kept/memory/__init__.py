"""Kept: the facade. Every public verb, each a short method in the module of its topic.

    remembering   remember, remember_many
    asking        recall, why, replay, get, list
    briefing      briefing
    sharing       share
    changing      reinforce, demote, revise, pin, unpin, forget, restore, erase
    undoing       history, undo
    deciding      conflicts, resolve, aliases, pause, resume, configure, allow, scan
    reviewing     review, apply_review
    sessions      session, sessions
    knowledge     promote, add_decision, add_convention, add_failure, decisions, failures,
                  add_preference, add_pattern, preferences, clear_all
    tasks         task, tasks
    importing     import_transcripts
    narratives    narrative, narrative_of
    upkeeping     upkeep, pack_sessions
    exporting     export
    tending       status, backup, restore_backup, make_vectors, drop_vectors

They all stand on `opened.Opened`: who may, in which order, one transaction each.
"""

from kept.memory.brief import Briefings
from kept.memory.imports import Importing
from kept.memory.manage import Deciding
from kept.memory.reviews import Reviewing
from kept.memory.share import Sharing
from kept.memory.store import Exporting, Tending
from kept.memory.tasks import Tasks
from kept.memory.undo import Undoing
from kept.memory.upkeep import Upkeeping
from kept.memory.write import Changing, Narratives


class Kept(
    Importing,
    Narratives,
    Tasks,
    Briefings,
    Sharing,
    Changing,
    Undoing,
    Deciding,
    Reviewing,
    Exporting,
    Tending,
    Upkeeping,
):
    """A memory that was opened for one project, on behalf of one actor. Made by `kept.open`."""
