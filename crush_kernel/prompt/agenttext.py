"""The file of a custom agent: a YAML header that says what it is for, and its instructions.

Written for Crush or for Claude Code: the latter's names of tools and models are read as ours.
What would take more than was meant is not guessed: a tool that is not known is left out, and
that is said.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, cast

from crush_kernel.files.names import printable
from crush_kernel.prompt.header import NAME, header_text, on_one_line, split_header
from crush_kernel.prompt.hiddentext import without_hidden
from crush_kernel.toolnames import CLAUDE_NAMES, DOWNLOAD, JOBS, SHELL, TOOLS
from crush_kernel.wording import counted

MAX_NAME_BYTES = 64
MAX_DESCRIPTION_BYTES = 8_192
"""Claude Code writes whole dialogs into them."""

MAX_TOOLS = 100
MAX_NAMED = 5
"""How many names that are not known are told."""

BUILT_IN: Final = "task"
"""The agent that comes with the program; a file cannot take its place."""

HANDED_OVER: Final = (
    *("view", "ls", "glob", "grep", "edit", "multiedit", "write", "notebook_edit"),
    *(SHELL, *JOBS, "fetch", DOWNLOAD, "sourcegraph"),
)
"""What an agent has that is to have all tools."""

_CLAUDE_TOOLS: Final[Mapping[str, tuple[str, ...]]] = {
    **{theirs: (ours,) for ours, theirs in CLAUDE_NAMES.items()},
    "Agent": ("agent",),
    "AskUserQuestion": ("question",),
    "Bash": (SHELL, *JOBS),
    "BashOutput": ("job_output",),
    "KillBash": ("job_kill",),
    "KillShell": ("job_kill",),
    "NotebookRead": ("view",),
}
"""Ours by the names that Claude Code has for them, or has had."""

LARGE: Final = "large"
SMALL: Final = "small"
_MODELS: Final[Mapping[str, str]] = {
    "": LARGE,
    "inherit": LARGE,
    "large": LARGE,
    "opus": LARGE,
    "sonnet": LARGE,
    "small": SMALL,
    "haiku": SMALL,
}

_LABEL = re.compile(r"[!-.0-~]{1,60}/[!-~]{1,140}")
_SEPARATOR = re.compile(r"\s*,\s*|\s+")


@dataclass(frozen=True, slots=True)
class AgentText:
    """What the file of an agent says."""

    name: str
    description: str
    """On one line."""
    body: str
    """Its system prompt."""
    tools: tuple[str, ...] | None = None
    """The names of those it may have; `None`, for those that only look, if it names none."""
    model: str = LARGE
    """`large`, `small`, or a `provider/model`."""
    problems: tuple[str, ...] = ()
    """What of the file could not be taken as it is written."""


def parse_agent(text: str, *, stem: str) -> AgentText | tuple[str, ...]:
    r"""Return what `text` says, or all that is wrong with it.

    Args:
        text: of the file, with `\n` for line ends.
        stem: the file's name without its ending, which is the agent's unless it has another.
    """
    text, hidden = without_hidden(text)
    # Claude Code writes descriptions with colons in them, which YAML does not allow.
    parts = split_header(text, is_lenient=True)
    if isinstance(parts, str):
        return (parts,)
    faults: list[str] = []
    problems: list[str] = []
    if hidden:
        problems.append(f"it holds {counted(hidden, 'hidden character')}, which it does not get")
    name = _name(parts.header, stem, faults)
    description = header_text(
        parts.header, "description", MAX_DESCRIPTION_BYTES, faults, is_required=True
    )
    if not parts.body:
        faults.append("it says nothing below its header")
    tools = _tools(parts.header.get("tools"), problems)
    model = _model(parts.header.get("model", ""), problems)
    if faults:
        return tuple(faults)
    return AgentText(
        name=name,
        description=printable(on_one_line(description.replace("\\n", " "))),
        body=parts.body,
        tools=tools,
        model=model,
        problems=tuple(problems),
    )


def _name(header: Mapping[str, object], stem: str, faults: list[str]) -> str:
    name = header_text(header, "name", MAX_NAME_BYTES, faults)
    if not name:
        name = stem
        if len(stem.encode("utf-8", "surrogatepass")) > MAX_NAME_BYTES:
            faults.append(f"its name has more than {MAX_NAME_BYTES} bytes")
    if not NAME.fullmatch(name):
        faults.append(f"name is not made of letters, digits and single hyphens: {name[:80]!a}")
    elif name.lower() == BUILT_IN:
        faults.append(f"the name {BUILT_IN} is that of the built-in agent")
    return name


def _tools(value: object, problems: list[str]) -> tuple[str, ...] | None:
    """Return our names of the tools that `value` lists; `None` if it does not limit them."""
    if value in (None, ""):
        return None
    if value == "*":
        return HANDED_OVER
    listed = _names(value)
    if listed is None:
        problems.append("tools is no list of names, so it has none")
        return ()
    known: dict[str, None] = {}
    unknown: list[str] = []
    for name in listed[:MAX_TOOLS]:
        ours = _CLAUDE_TOOLS.get(name, (name,) if name in TOOLS else ())
        known.update(dict.fromkeys(ours))
        if not ours:
            unknown.append(f"{name[:60]!a}")
    if unknown:
        more = f" and {len(unknown) - MAX_NAMED} more" if len(unknown) > MAX_NAMED else ""
        problems.append(f"there is no tool {', '.join(unknown[:MAX_NAMED])}{more}")
    return tuple(known)


def _names(value: object) -> list[str] | None:
    match value:
        case str():
            return [name for name in _SEPARATOR.split(value.strip()) if name]
        case list():
            items = cast("list[object]", value)
            names = [item.strip() for item in items if isinstance(item, str)]
            return names if len(names) == len(items) and all(names) else None
        case _:
            return None


def _model(value: object, problems: list[str]) -> str:
    text = value.strip() if isinstance(value, str) else "?"
    model = _MODELS.get(text.lower())
    if model is None and _LABEL.fullmatch(text):
        return text
    if model is None:
        problems.append(f"there is no model {text[:80]!a}, so it has the large one")
    return model or LARGE
