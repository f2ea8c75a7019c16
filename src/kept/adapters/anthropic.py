"""Anthropic: `KeptMemoryTool` is the memory tool of Claude (`memory_20250818`) over a project.

    from kept.adapters.anthropic import KeptMemoryTool
    client.beta.messages.tool_runner(model=…, messages=…, tools=[KeptMemoryTool(project="web-app")])

Claude sees files below `/memories`; each is a document of the project, and each line that states something is a memory
of its own, so that other agents recall it. Rule: the answers are those of the SDK's own file system tool, word for
word, because the model was trained with them.
"""

import posixpath
import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path, PurePosixPath
from typing import Any

from kept import text
from kept.adapters.shared import as_tag, framework, in_thread, opened, statements
from kept.memory import Kept
from kept.memory.documents import Document, Get

with framework("anthropic"):
    from anthropic.lib.tools import BetaAbstractMemoryTool, BetaAsyncAbstractMemoryTool, ToolError

COLLECTION, ROOT = "claude-memory", "/memories"
COMMANDS = ("view", "create", "str_replace", "insert", "delete", "rename")
DEEPEST = 2  # levels of a listing
_FILE, _LINE = "file:", "line:"  # what a document is, before the path in its key


class Files:
    """The files of the memory tool, and what each command does to them."""

    def __init__(self, memory: Kept) -> None:
        self._documents = memory.documents(COLLECTION)

    def view(self, command: Any) -> str:
        path = _checked(command.path)
        file = self._documents.get(_FILE + path)
        if file is not None:
            return _numbered(command.path, _text(file), command.view_range)
        inside = {one.removeprefix(path + "/"): size for one, size in self._sizes() if one.startswith(path + "/")}
        if not inside and path != ROOT:
            raise ToolError(f"The path {command.path} does not exist. Please provide a valid path.")
        sizes: dict[str, int] = {}
        for name, size in inside.items():
            parts = name.split("/")
            if any(part.startswith(".") for part in parts):
                continue
            for depth in range(1, min(len(parts), DEEPEST) + 1):
                entry = "/".join(parts[:depth]) + ("/" if depth < len(parts) else "")
                sizes[entry] = sizes.get(entry, 0) + size
        header = f"Here're the files and directories up to 2 levels deep in {command.path}, excluding hidden items:"
        rows = [f"{_size(size)}\t{command.path}/{entry}" for entry, size in sorted(sizes.items())]
        return "\n".join([header, f"{_size(sum(inside.values()))}\t{command.path}", *rows])

    def create(self, command: Any) -> str:
        path = _checked(command.path)

        def change(get: Get) -> Iterable[Document | str]:
            if path == ROOT or self._below(path):
                raise ToolError(f"File {command.path} already exists")
            return self._written(path, command.file_text)

        self._documents.edit(change)
        return f"File created successfully at: {command.path}"

    def str_replace(self, command: Any) -> str:
        def change(before: str) -> str:
            old, failed = command.old_str, "No replacement was performed"
            places = [before[: at.start()].count("\n") for at in re.finditer(f"(?={re.escape(old)})", before)]
            if not places:
                raise ToolError(f"{failed}, old_str `{old}` did not appear verbatim in {command.path}.")
            if len(places) > 1:
                lines = ", ".join(str(place + 1) for place in places)
                raise ToolError(
                    f"{failed}. Multiple occurrences of old_str `{old}` in lines: {lines}. Please ensure it is unique"
                )
            changed.append(places[0])
            return before.replace(old, command.new_str)

        changed: list[int] = []
        lines = self._edit(command.path, change).split("\n")
        first = max(0, changed[-1] - 2)
        header = "The memory file has been edited. Here is the snippet showing the change (with line numbers):\n"
        return header + _with_numbers(lines[first : changed[-1] + 3], first + 1)

    def insert(self, command: Any) -> str:
        def change(before: str) -> str:
            lines = before.removesuffix("\n").split("\n") if before else []
            if not 0 <= command.insert_line <= len(lines):
                raise ToolError(
                    f"Invalid `insert_line` parameter: {command.insert_line}. "
                    f"It should be within the range [0, {len(lines)}]."
                )
            lines.insert(command.insert_line, command.insert_text.rstrip("\n"))
            return "\n".join(lines).removesuffix("\n") + "\n"

        self._edit(command.path, change)
        return f"The file {command.path} has been edited."

    def delete(self, command: Any) -> str:
        path = _checked(command.path)
        if path == ROOT:
            raise ToolError("Cannot delete the /memories directory itself")
        gone = self._below(path)
        if not gone:
            raise ToolError(f"The path {command.path} does not exist")
        self._documents.apply(key for file in gone for key in self._keys_of(file))
        return f"Successfully deleted {command.path}"

    def rename(self, command: Any) -> str:
        old, new = _checked(command.old_path), _checked(command.new_path)
        if old == ROOT:
            raise ToolError("Cannot rename the /memories directory itself")
        if self._below(new) or new == ROOT:
            raise ToolError(f"The destination {command.new_path} already exists")
        files = self._below(old)
        if not files:
            raise ToolError(f"The path {command.old_path} does not exist")

        def change(get: Get) -> Iterator[Document | str]:
            for path in files:
                if (file := get(_FILE + path)) is not None:
                    yield from self._keys_of(path)
                    yield from self._written(new + path.removeprefix(old), _text(file))

        self._documents.edit(change)
        return f"Successfully renamed {command.old_path} to {command.new_path}"

    def clear(self) -> str:
        self._documents.apply(document.key for document in self._documents.list())
        return "All memory cleared"

    def _edit(self, path: str, change: Callable[[str], str]) -> str:
        """Change the text of a file, as it is in the transaction, and return the new text."""
        checked = _checked(path)

        def edit(get: Get) -> Iterable[Document | str]:
            file = get(_FILE + checked)
            if file is None:
                is_folder = checked == ROOT or self._below(checked)
                reason = "is not a file." if is_folder else "does not exist. Please provide a valid path."
                raise ToolError(f"The path {path} {reason}")
            made.append(change(_text(file)))
            return self._written(checked, made[-1])

        made: list[str] = []
        self._documents.edit(edit)
        return made[-1]

    def _written(self, path: str, content: str) -> Iterator[Document | str]:
        """The changes that give a file this text: the file itself, and a memory for each line that states something."""
        if any(self._documents.get(f"{_FILE}{folder}") is not None for folder in PurePosixPath(path).parents):
            raise ToolError(f"File {posixpath.dirname(path)} already exists")
        yield Document(key=_FILE + path, value={"text": content}, content=path, tags=("file",), scope="sources")
        lines = {f"{_LINE}{path}#{text.fingerprint(line)}": line for line in statements(content)}
        known = {one.key for one in self._documents.list(tag=as_tag(path)) if one.key.startswith(_LINE)}
        yield from known - lines.keys()
        for key in lines.keys() - known:
            yield Document(key=key, value={"path": path}, content=lines[key], tags=(as_tag(path),))

    def _keys_of(self, path: str) -> list[str]:
        lines = self._documents.list(tag=as_tag(path))
        return [_FILE + path, *(one.key for one in lines if one.key.startswith(_LINE))]

    def _sizes(self) -> Iterator[tuple[str, int]]:
        for file in self._documents.list(tag="file"):
            yield file.key.removeprefix(_FILE), len(_text(file).encode())

    def _below(self, path: str) -> list[str]:
        """The file of that path, or all files in the folder of that path."""
        return [one for one, _ in self._sizes() if one == path or one.startswith(path + "/")]


class _OverKept:
    """What both tools begin with: the given memory, or the one that `location` and `project` name."""

    def __init__(
        self,
        memory: Kept | None = None,
        *,
        location: Path | str | None = None,
        project: Path | str | None = None,
        cache_control: Any = None,
    ) -> None:
        super().__init__(cache_control=cache_control)  # type: ignore[call-arg]  # of the SDK's tool, beside this
        self.memory = opened(memory, location, project)
        self.files = Files(self.memory)


def _command(name: str) -> Any:
    return lambda self, command: getattr(self.files, name)(command)


def _async_command(name: str) -> Any:
    async def run(self: "AsyncKeptMemoryTool", command: Any) -> str:
        return str(await in_thread(getattr(self.files, name), command))

    return run


class KeptMemoryTool(_OverKept, BetaAbstractMemoryTool):
    """The memory tool for `Anthropic()`."""

    view, create, str_replace, insert, delete, rename = map(_command, COMMANDS)

    def clear_all_memory(self) -> str:
        return self.files.clear()


class AsyncKeptMemoryTool(_OverKept, BetaAsyncAbstractMemoryTool):
    """The memory tool for `AsyncAnthropic()`: the same files, each command in a thread."""

    view, create, str_replace, insert, delete, rename = map(_async_command, COMMANDS)

    async def clear_all_memory(self) -> str:
        return await in_thread(self.files.clear)


def _checked(path: str) -> str:
    """The path without dots and double slashes. Raises ToolError when it leads out of /memories."""
    if path != ROOT and not path.startswith(ROOT + "/"):
        raise ToolError(f"Path must start with {ROOT}, got: {path}")
    clean = posixpath.normpath(path)
    if clean != ROOT and not clean.startswith(ROOT + "/"):
        raise ToolError(f"Path {path} would escape {ROOT} directory")
    return clean


def _text(file: Document) -> str:
    return str(file.value["text"])


def _numbered(path: str, content: str, view_range: Any) -> str:
    lines, first = content.split("\n"), 1
    if view_range and len(view_range) == 2:
        first = max(1, view_range[0])
        lines = lines[first - 1 : None if view_range[1] == -1 else view_range[1]]
    return f"Here's the content of {path} with line numbers:\n" + _with_numbers(lines, first)


def _with_numbers(lines: Iterable[str], first: int) -> str:
    return "\n".join(f"{number:>6}\t{line}" for number, line in enumerate(lines, first))


def _size(size: int) -> str:
    power = min((size.bit_length() - 1) // 10, 3) if size else 0
    scaled = size / 1024**power
    return f"{int(scaled) if scaled == int(scaled) else format(scaled, '.1f')}{'BKMG'[power]}"
