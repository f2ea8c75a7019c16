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

from kept.briefing import Briefings
from kept.changing import Changing
from kept.deciding import Deciding
from kept.exporting import Exporting
from kept.importing import Importing
from kept.narratives import Narratives
from kept.reviewing import Reviewing
from kept.sharing import Sharing
from kept.tasks import Tasks
from kept.tending import Tending
from kept.undoing import Undoing
from kept.upkeeping import Upkeeping


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
