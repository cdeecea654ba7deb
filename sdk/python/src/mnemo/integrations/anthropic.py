"""The memory tool of the Anthropic API (memory_20250818), with the files as memories."""

from __future__ import annotations

import posixpath

from anthropic.lib.tools import BetaAbstractMemoryTool, ToolError
from anthropic.types.beta import (
    BetaMemoryTool20250818CreateCommand,
    BetaMemoryTool20250818DeleteCommand,
    BetaMemoryTool20250818InsertCommand,
    BetaMemoryTool20250818RenameCommand,
    BetaMemoryTool20250818StrReplaceCommand,
    BetaMemoryTool20250818ViewCommand,
)

from .. import BadRequestError, Mnemo
from ._records import Record, Records

_ROOT = "/memories"


class MnemoMemoryTool(BetaAbstractMemoryTool):
    """Stores each file of the tool as a memory in one bucket. A file has at most 32 KiB."""

    def __init__(self, client: Mnemo, *, bucket: str = "Claude memory") -> None:
        super().__init__()
        self._records = Records(client, bucket)

    def view(self, command: BetaMemoryTool20250818ViewCommand) -> str:
        path = _path(command.path)
        found = self._records.find(path)
        if found is not None:
            return _numbered_file(command, found.content)
        below = self._below(path)
        if not below and path != _ROOT:
            raise ToolError(f"The path {command.path} does not exist. Please provide a valid path.")
        return _listing(path, below)

    def create(self, command: BetaMemoryTool20250818CreateCommand) -> str:
        path = _path(command.path)
        if path == _ROOT or self._below(path):
            raise ToolError(f"The path {command.path} is a directory.")
        if self._records.find(path) is not None:
            raise ToolError(f"File {command.path} already exists")
        self._write(path, command.file_text)
        return f"File created successfully at: {command.path}"

    def str_replace(self, command: BetaMemoryTool20250818StrReplaceCommand) -> str:
        record = self._file(command.path)
        count = record.content.count(command.old_str)
        if count != 1:
            reason = "did not appear verbatim" if count == 0 else f"appeared {count} times, and must be unique,"
            raise ToolError(f"No replacement was performed, old_str `{command.old_str}` {reason} in {command.path}.")
        changed = record.content.replace(command.old_str, command.new_str)
        self._write(record.key, changed)
        line = record.content[: record.content.find(command.old_str)].count("\n")
        return "The memory file has been edited. Here is the snippet showing the change (with line numbers):\n" + (
            _numbered(changed.split("\n"), max(0, line - 2), line + 3)
        )

    def insert(self, command: BetaMemoryTool20250818InsertCommand) -> str:
        record = self._file(command.path)
        lines = record.content.removesuffix("\n").split("\n") if record.content else []
        if not 0 <= command.insert_line <= len(lines):
            raise ToolError(
                f"Invalid `insert_line` parameter: {command.insert_line}. "
                f"It should be within the range [0, {len(lines)}]."
            )
        lines.insert(command.insert_line, command.insert_text.removesuffix("\n"))
        self._write(record.key, "\n".join(lines) + "\n")
        return f"The file {command.path} has been edited."

    def delete(self, command: BetaMemoryTool20250818DeleteCommand) -> str:
        path = _path(command.path)
        if path == _ROOT:
            raise ToolError("Cannot delete the /memories directory itself")
        self._records.delete(*(record.key for record in self._tree(path, command.path)))
        return f"Successfully deleted {command.path}"

    def rename(self, command: BetaMemoryTool20250818RenameCommand) -> str:
        old, new = _path(command.old_path), _path(command.new_path)
        if old == _ROOT or new == old or new.startswith(old + "/"):
            raise ToolError(f"Cannot rename {command.old_path} to {command.new_path}")
        if self._records.find(new) is not None or self._below(new):
            raise ToolError(f"The destination {command.new_path} already exists")
        for record in self._tree(old, command.old_path):
            self._write(new + record.key.removeprefix(old), record.content)
            self._records.delete(record.key)
        return f"Successfully renamed {command.old_path} to {command.new_path}"

    def clear_all_memory(self) -> str:
        self._records.delete(*(record.key for record in self._records.all()))
        return "All memory cleared"

    def _file(self, path: str) -> Record:
        found = self._records.find(_path(path))
        if found is None:
            raise ToolError(f"The path {path} does not exist. Please provide a valid path.")
        return found

    def _below(self, path: str) -> list[Record]:
        return [r for r in self._records.all() if r.key.startswith(path + "/")]

    def _tree(self, path: str, shown: str) -> list[Record]:
        """Returns a file, or all files of a directory."""
        found = self._records.find(path)
        records = [found] if found is not None else self._below(path)
        if not records:
            raise ToolError(f"The path {shown} does not exist")
        return records

    def _write(self, path: str, content: str) -> None:
        try:
            self._records.put(path, content)
        except BadRequestError as e:
            raise ToolError(f"The file was not written: {e.message}") from e


def _path(path: str) -> str:
    """Returns the normal form of a path, which must be below the root."""
    normal = posixpath.normpath(path)
    if normal != _ROOT and not normal.startswith(_ROOT + "/") or "\n" in path:
        raise ToolError(f"Path must start with /memories, got: {path}")
    return normal


def _numbered(lines: list[str], start: int, end: int) -> str:
    return "\n".join(f"{number:6}\t{line}" for number, line in enumerate(lines[start:end], start + 1))


def _numbered_file(command: BetaMemoryTool20250818ViewCommand, content: str) -> str:
    lines = content.split("\n")
    start, end = command.view_range if command.view_range else (1, -1)
    numbered = _numbered(lines, max(start, 1) - 1, len(lines) if end == -1 else end)
    return f"Here's the content of {command.path} with line numbers:\n{numbered}"


def _listing(path: str, records: list[Record]) -> str:
    """Lists files and directories up to 2 levels deep."""
    sizes: dict[str, int] = {path: 0}
    for record in records:
        size = len(record.content.encode())
        sizes[path] += size
        names = record.key.removeprefix(path + "/").split("/")
        for depth in range(1, min(len(names), 2) + 1):
            shown = "/".join([path, *names[:depth]]) + ("/" if depth < len(names) else "")
            sizes[shown] = sizes.get(shown, 0) + size
    entries = [path, *sorted(entry for entry in sizes if entry != path)]
    header = f"Here're the files and directories up to 2 levels deep in {path}, excluding hidden items:"
    return "\n".join([header, *(f"{sizes[entry]}\t{entry}" for entry in entries)])
