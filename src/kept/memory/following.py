"""Follow the code of memories through the history of a repository, by asking git.

`find_changes` looks: a file that was renamed and a function that stands elsewhere are found again, and branches that
were merged, renamed, rebased or deleted are noticed. `follow_code` stores it, for the background process and upkeep.
Rule: the hash of an anchor never changes here; only a person or a judge makes a memory fresh.
"""

from collections.abc import Iterator, Sequence
from contextlib import suppress

import msgspec

from kept.errors import KeptError
from kept.freshness import (
    MOST_ANCHORS,
    Code,
    CodeAnchor,
    Here,
    anchored,
    blocks_of,
    code_of,
    digest_of,
    is_comparable,
    names_in,
    state_of,
    suffix_of,
    with_code,
)
from kept.memory.context import Context
from kept.memory.standing import BranchNotes, notes_file, read_notes
from kept.model import Memory, replace
from kept.ports import Transaction, Where
from kept.projects.files import make_private_directory, replace_file
from kept.projects.git_history import GitHistory
from kept.projects.worktree import WorkTree
from kept.storage.shared import every

ACTION = "follow"  # in the journal: the code of a memory was found elsewhere
MOST_LOOKED_AT = 50  # files that may define a symbol


class Followed(msgspec.Struct, frozen=True, kw_only=True):
    """The memories whose code is found elsewhere now, by uid, and the branch that is checked out."""

    here: Here
    codes: dict[str, Code]
    notes: BranchNotes


def follow_code(context: Context) -> int:
    """Store where the code of memories stands now, and return of how many it is another place."""
    tree, storage = context.work_tree, context.spaces.project()
    found = find_changes(context)
    if found is None or tree is None or storage is None:
        return 0

    def work(tx: Transaction) -> int:
        known = {one.uid: one for one in every(tx, Where()) if one.uid in found.codes}
        for uid, memory in known.items():
            tx.put(replace(memory, data=with_code(memory.data, found.codes[uid])), ACTION)
        return len(known)

    done = context.write(storage, work) if found.codes else 0
    if path := notes_file(context, tree):
        make_private_directory(path.parent.parent)
        make_private_directory(path.parent)
        found.notes.asked_at = context.now()
        replace_file(path, msgspec.json.encode(found.notes))
    if done:
        context.tell_write(storage, 0)
    return done


def find_changes(context: Context) -> Followed | None:
    """Ask git where the code of all live memories stands now; None without git. Changes nothing."""
    tree, storage = context.work_tree, context.spaces.project()
    if tree is None or storage is None:
        return None
    with storage.reading() as reader:
        coded = [(one, code) for one in every(reader, Where()) if (code := code_of(one)) is not None]
    history = GitHistory(tree.root)
    branches = history.branches() if coded else None
    if branches is None:
        return None
    asked = _Branches(history, tree, branches, read_notes(context, tree))
    asked.look_at([code for _, code in coded])
    anchors = _Anchors(history, tree)
    now = {memory.uid: (code, _followed(memory, code, asked, anchors)) for memory, code in coded}
    changed = {uid: new for uid, (code, new) in now.items() if new != code}
    return Followed(here=asked.here, codes=changed, notes=asked.notes)


def _followed(memory: Memory, code: Code, asked: "_Branches", anchors: "_Anchors") -> Code:
    """Return the code of a memory as it is now: its branch, and its anchors if they can be compared with the files."""
    new = asked.followed(code)
    if not is_comparable(new, asked.here):
        return new
    return anchors.followed_all(memory, new, is_new=asked.is_new(memory))


class _Branches:
    """The branches of a repository: which commits of memories belong to which."""

    def __init__(self, history: GitHistory, tree: WorkTree, branches: dict[str, str], notes: BranchNotes) -> None:
        self._history, self._branches, self.notes = history, branches, notes
        branch, commit = tree.head()
        self._main = tree.main_branch()
        self._main_commit = branches.get(self._main, "")
        self.here = Here(branch=branch, commit=commit, main=self._main)
        self._existing: set[str] = set()
        self._in_main: set[str] = set()
        self._known: dict[tuple[str, str, bool], Code] = {}

    def look_at(self, codes: Sequence[Code]) -> None:
        """Ask about all commits at once, and note which are part of HEAD."""
        self._existing = self._history.existing({code.commit for code in codes})
        of_head = self._history.ancestors(self._existing, self.here.commit) if self.here.commit else set()
        self._in_main = self._history.ancestors(self._existing, self._main_commit) if self._main_commit else set()
        self.here = msgspec.structs.replace(self.here, ancestors=frozenset(of_head))
        self.notes.ancestors[self.here.branch or self.here.commit] = sorted(of_head)
        self.notes.ancestors = {
            name: own for name, own in self.notes.ancestors.items() if name in self._branches or own
        }
        self.notes.tips |= self._branches

    def is_new(self, memory: Memory) -> bool:
        """Return True if a memory was written since git was last asked."""
        return self.notes.asked_at is None or memory.created_at >= self.notes.asked_at

    def followed(self, code: Code) -> Code:
        """Return the code with the branch that it belongs to now."""
        key = (code.branch, code.commit, code.is_early)
        if code.commit not in self._existing or (code.branch == self._main and self._main):
            return code
        if key not in self._known:
            self._known[key] = self._asked(code)
        found = self._known[key]
        return msgspec.structs.replace(found, anchors=code.anchors)

    def _asked(self, code: Code) -> Code:
        changed = msgspec.structs.replace
        if code.is_early:
            first = self._first_commit(code)
            if not first:
                return changed(code, is_deleted=code.branch not in self._branches)
            code = changed(code, commit=first, is_early=False)
            self._in_main |= {first} if self._is_part(first, self._main_commit) else set()
        if code.commit in self._in_main:
            return changed(code, branch=self._main, is_deleted=False)
        own_tip = self._branches.get(code.branch, "")
        is_part = self._is_part(code.commit, own_tip)
        if self._is_merged(own_tip if is_part else self._last_tip(code), code.commit):
            return changed(code, branch=self._main, commit=self._main_commit, is_deleted=False)
        if is_part:
            return changed(code, is_deleted=False)
        if own_tip and self._history.was_tip(code.branch, code.commit):
            return changed(code, commit=own_tip, is_deleted=False)
        return self._elsewhere(code)

    def _first_commit(self, code: Code) -> str:
        """Return the first commit of a branch that had none when the memory was written; "" if it has none yet."""
        tip = self._branches.get(code.branch, "")
        if not tip:
            last = self._last_tip(code)
            return last if last != code.commit else ""
        if made := self._history.made_since(code.branch, code.commit):
            return made[0]
        return "" if tip == code.commit or self._is_part(tip, self._main_commit) else tip

    def _elsewhere(self, code: Code) -> Code:
        """Return the code of a branch that is gone: of the one that has its commit, or marked as deleted."""
        holding = self._history.containing(code.commit)
        if len(holding) == 1:
            return msgspec.structs.replace(code, branch=holding[0], is_deleted=False)
        return code if holding else msgspec.structs.replace(code, is_deleted=bool(code.branch))

    def _is_part(self, commit: str, tip: str) -> bool:
        return bool(tip) and commit in self._history.ancestors([commit], tip)

    def _last_tip(self, code: Code) -> str:
        """Return the last known commit of a branch that is no longer there, if the commit was part of it."""
        for last in (self._history.left_at(code.branch), self.notes.tips.get(code.branch, "")):
            if last and self._history.existing([last]) and self._is_part(code.commit, last):
                return last
        return code.commit

    def _is_merged(self, tip: str, commit: str) -> bool:
        """Ask once for each tip and main branch whether a rebase or a squash has merged it."""
        key = f"{tip}.{commit}"
        if not self._main_commit or self.notes.unmerged.get(key) == self._main_commit:
            return False
        if self._history.is_merged_otherwise(tip, commit, self._main_commit):
            self.notes.unmerged.pop(key, None)
            return True
        self.notes.unmerged[key] = self._main_commit
        return False


class _Anchors:
    """The files and symbols of memories: where they stand now. Each is looked for once."""

    def __init__(self, history: GitHistory, tree: WorkTree) -> None:
        self._history, self._tree = history, tree
        self._known: dict[tuple[str, str, str], tuple[str, str]] = {}

    def followed_all(self, memory: Memory, code: Code, *, is_new: bool) -> Code:
        """Return the code of a memory with its anchors where they stand now; a new one without any is given some."""
        if code.anchors or not is_new:
            anchors = tuple(self.followed(one, code.commit) for one in code.anchors)
        else:
            anchors = self.found_for(memory)
        return msgspec.structs.replace(code, anchors=anchors)

    def followed(self, anchor: CodeAnchor, commit: str) -> CodeAnchor:
        """Return the anchor; one whose file or symbol is missing, at the place where it stands now."""
        if state_of(anchor, self._tree) != "gone":
            return anchor
        key = (anchor.path, anchor.symbol, anchor.hash)
        if key not in self._known:
            self._known[key] = self._place_of(anchor, commit)
        path, symbol = self._known[key]
        if path == anchor.path:
            return anchor
        was = anchor.was or anchor.path
        return CodeAnchor(path=path, hash=anchor.hash, symbol=symbol, was=was if was != path else "")

    def _place_of(self, anchor: CodeAnchor, commit: str) -> tuple[str, str]:
        new_name = self._history.renamed_to(anchor.path) if self._tree.stat(anchor.path) is None else None
        if new_name and self._digest(new_name, anchor.symbol) is not None:
            return new_name, anchor.symbol
        if anchor.symbol and (path := self._other_home(anchor, commit)):
            return path, anchor.symbol
        return self._same_text(anchor) or anchor.path, anchor.symbol

    def _digest(self, path: str, symbol: str) -> str | None:
        file = self._tree.read(path)
        return None if file is None else digest_of(file.text, path, symbol)

    def _same_text(self, anchor: CodeAnchor) -> str | None:
        """Return an untracked file with the same text: it was renamed, and git does not know it yet."""
        suffix = suffix_of(anchor.path)
        named = [name for name in self._history.untracked() if suffix_of(name) == suffix][:MOST_LOOKED_AT]
        return next((name for name in named if self._digest(name, anchor.symbol) == anchor.hash), None)

    def _other_home(self, anchor: CodeAnchor, commit: str) -> str | None:
        """Return the file that defines a symbol now: with the same text, or the only one that did not have it then."""
        found = {path: self._digest(path, anchor.symbol) for path in self._files_naming(anchor.symbol, anchor.path)}
        same = [path for path, digest in found.items() if digest == anchor.hash]
        if same:
            return same[0]
        new = [path for path, digest in found.items() if digest is not None and not self._had(commit, path, anchor)]
        return new[0] if len(new) == 1 else None

    def _had(self, commit: str, path: str, anchor: CodeAnchor) -> bool:
        before = self._history.text_at(commit, path) if commit else None
        return before is not None and bool(blocks_of(before, anchor.symbol, suffix_of(path)))

    def _files_naming(self, symbol: str, besides: str = "") -> list[str]:
        suffix = suffix_of(besides) if besides else ""
        named = self._history.naming(symbol.rpartition(".")[2], suffix)[:MOST_LOOKED_AT]
        return [path for path in named if path != besides]

    def found_for(self, memory: Memory) -> tuple[CodeAnchor, ...]:
        """Anchor a memory that names files or symbols without their folders, where only one can be meant."""
        paths, symbols = names_in(memory.content, memory.files)
        found = [*self._only_files(paths), *self._only_definitions(symbols)]
        return tuple(found[:MOST_ANCHORS])

    def _only_files(self, names: Sequence[str]) -> Iterator[CodeAnchor]:
        for name in names:
            fits = self._history.named(name) if "/" not in name and "*" not in name else []
            file = self._tree.read(fits[0]) if len(fits) == 1 else None
            one = None if file is None else anchored(fits[0], "", file)
            if one is not None:
                yield one

    def _only_definitions(self, symbols: Sequence[str]) -> Iterator[CodeAnchor]:
        for symbol in symbols:
            files = [(path, file) for path in self._files_naming(symbol) if (file := self._tree.read(path))]
            defined = [one for path, file in files if (one := anchored(path, symbol, file)) is not None]
            if len(defined) == 1:
                yield defined[0]


def keep_up(context: Context) -> None:
    """Follow the code of memories after the turn of an agent. A store that is busy is left for the next turn."""
    with suppress(KeptError):
        follow_code(context)
