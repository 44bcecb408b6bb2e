"""What Shift-Tab shows: a preview of `@file`, the help of a `/command`, a tool's contract."""

import re
from itertools import islice
from pathlib import Path
from typing import Any

from crush_kernel.errors import ToolError
from crush_kernel.files.textfile import decode, detect
from crush_kernel.kernel.commands.table import COMMANDS
from crush_kernel.kernel.markdown import code_span, escape, fenced
from crush_kernel.tools.base import AnyTool
from crush_kernel.tools.paths import PathPolicy

PREVIEW_LINES = 20
PREVIEW_BYTES = 4_000

_WORD = re.compile(r'@"[^"\n]+"|[@/]?[^\s"`,;()<>]+')


def word_at(code: str, cursor: int) -> str:
    """Return the word that `cursor`, a position in code points, touches; empty if none."""
    for match in _WORD.finditer(code):
        if match.start() <= cursor <= match.end():
            return match.group()
    return ""


def describe(word: str, *, paths: PathPolicy, tools: tuple[AnyTool, ...]) -> str:
    """Return Markdown about `word`, empty if there is nothing to say. Reads one file's head."""
    if word.startswith("/"):
        command = COMMANDS.get(word[1:])
        return f"`{command.usage}` {command.summary}" if command else ""
    if word.startswith("@"):
        return _file(word[1:].strip('"'), paths)
    tool = next((tool for tool in tools if tool.name == word), None)
    return _tool(tool) if tool else ""


def reply(markdown: str) -> dict[str, Any]:
    """Return the content of an `inspect_reply`."""
    data = {"text/markdown": markdown, "text/plain": markdown} if markdown else {}
    return {"status": "ok", "found": bool(markdown), "data": data, "metadata": {}}


def _tool(tool: AnyTool) -> str:
    properties: dict[str, dict[str, object]] = tool.arguments.model_json_schema()["properties"]
    rows = "\n".join(
        f"- {code_span(name)} {escape(str(schema.get('description', '')))}"
        for name, schema in properties.items()
    )
    return f"**{tool.name}**, a tool of the agent\n\n{tool.description}\n\n{rows}"


def _file(name: str, paths: PathPolicy) -> str:
    """Return the head of a file inside the project; others are only named."""
    try:
        target = paths.resolve(name)
        if target.is_outside:
            return f"{code_span(target.shown)} is outside the project"
        if target.path.is_dir():
            return f"{code_span(target.shown)} is a folder"
        if not target.path.is_file():
            return ""
        head = _head(target.path)
    except (ToolError, OSError):
        return ""
    size = f"{target.path.stat().st_size:,} bytes"
    return f"**{escape(target.shown)}** · {size}\n\n{head}"


def _head(path: Path) -> str:
    with path.open("rb") as file:
        data = file.read(PREVIEW_BYTES)
    text_format = detect(data, is_head=True)
    if text_format is None:
        return "a binary file"
    lines = islice(decode(data, text_format).splitlines(), PREVIEW_LINES)
    return fenced("\n".join(lines), path.suffix.lstrip("."))
