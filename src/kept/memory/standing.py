"""The code of memories: anchored at a write, compared with the work tree at a delivery (`kept.freshness`).

`memory.following` asks git, in the background, which commits are part of HEAD; its answer is a file of the home for
each repository, read here. Rule: no process is started here, and a project without git costs nothing.
"""

from _blake2 import blake2b  # as hashlib does, which also loads OpenSSL
from collections.abc import Iterable
from datetime import datetime, timedelta
from functools import cache
from pathlib import Path

import msgspec
from msgspec import Struct

from kept.freshness import (
    CODE,
    UNKNOWN,
    Code,
    Here,
    Standing,
    anchors_for,
    renewed,
    standing,
    with_code,
)
from kept.memory.context import Context
from kept.model import GLOBAL, Draft, Hit, Memory, replace
from kept.projects.files import read_regular
from kept.projects.worktree import WorkTree

FOLDER = "hook/branches"  # in the home
MOST_BYTES = 4 * 1024 * 1024
STILL_NOW = timedelta(days=1)  # a statement that is older was made beside other files


class BranchNotes(Struct, kw_only=True):
    """Answers of git about a repository: the commits of memories that are part of each branch, and when it was asked.

    `tips` are the last commits of branches, for those that are deleted later; `unmerged` are tips with the commit of
    the main branch that they were compared with.
    """

    ancestors: dict[str, list[str]] = {}
    tips: dict[str, str] = {}
    unmerged: dict[str, str] = {}
    asked_at: datetime | None = None


class _ReadOnce:
    """A work tree that reads each file once: many memories may be about one file."""

    def __init__(self, tree: WorkTree) -> None:
        self.inside, self.stat, self.read = tree.inside, cache(tree.stat), cache(tree.read)


class CodeView:
    """How the memories of one call stand to the work tree. Each is compared once."""

    def __init__(self, context: Context, here: Here | None = None) -> None:
        self._context = context
        self._here = here
        self._known: dict[str, Standing] = {}
        self._tree: _ReadOnce | None = None

    def __call__(self, memory: Memory) -> Standing:
        """Return the standing of a memory; unknown for one without code, which is looked at no further."""
        tree = self._context.work_tree if CODE in (memory.data or {}) else None
        if tree is None:
            return UNKNOWN
        if memory.uid not in self._known:
            self._here = self._here or here_in(self._context, tree)
            self._tree = self._tree or _ReadOnce(tree)
            self._known[memory.uid] = standing(memory, self._here, self._tree)
        return self._known[memory.uid]

    def labelled(self, hits: Iterable[Hit]) -> tuple[Hit, ...]:
        """Return hits with notes on their code, those of unmerged branches last."""
        found = [(hit, self(hit.memory)) for hit in hits]
        noted = [replace(hit, note=own.note, branch=own.branch) if own != UNKNOWN else hit for hit, own in found]
        return tuple(sorted(noted, key=lambda hit: bool(hit.branch)))


def here_in(context: Context, tree: WorkTree) -> Here:
    """Return the branch and commit that are checked out, and the known part of their history."""
    branch, commit = tree.head()
    known = read_notes(context, tree).ancestors.get(branch or commit, ())
    return Here(branch=branch, commit=commit, main=tree.main_branch(), ancestors=frozenset(known))


def notes_file(context: Context, tree: WorkTree) -> Path | None:
    home = context.spaces.home()
    name = blake2b(bytes(tree.common), digest_size=12).hexdigest()
    return None if home is None else home / FOLDER / f"{name}.json"


def read_notes(context: Context, tree: WorkTree) -> BranchNotes:
    path = notes_file(context, tree)
    data = b"" if path is None else read_regular(path, MOST_BYTES)
    try:
        return msgspec.json.decode(data, type=BranchNotes) if data else BranchNotes()
    except msgspec.DecodeError:
        return BranchNotes()


def anchored(context: Context, draft: Draft) -> Draft:
    """Return a draft with the branch, the commit and the anchors of its code. One that was said earlier has none."""
    is_known = CODE in (draft.data or {})
    if draft.tier == GLOBAL:  # holds in every project, so it is about the code of none
        return replace(draft, data=with_code(draft.data, None)) if is_known else draft
    tree = context.work_tree
    is_old = draft.created_at is not None and context.now() - draft.created_at > STILL_NOW
    if tree is None or is_known or is_old or draft.scope != "memory":
        return draft
    code = _now(tree)
    if code is None:
        return draft
    code = replace(code, anchors=anchors_for(draft.content, draft.files, tree))
    return replace(draft, data=with_code(draft.data, code))


def _now(tree: WorkTree) -> Code | None:
    """Return the branch and the commit that are checked out, as code without anchors; None before the first commit."""
    branch, commit = tree.head()
    return Code(branch=branch, commit=commit, is_early=tree.has_begun_at(branch, commit)) if commit else None


def held_again(context: Context, memory: Memory) -> Memory:
    """Return a memory that was confirmed, with its code as it is now."""
    tree = context.work_tree
    if tree is None or memory.space == GLOBAL:
        return memory
    now = _now(tree)
    return memory if now is None else replace(memory, data=with_code(memory.data, renewed(memory, tree, now)))
