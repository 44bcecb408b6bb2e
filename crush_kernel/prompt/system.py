"""The system prompt: facts that were gathered elsewhere, put into our own words.

Every part depends on its facts alone and the parts have a fixed order, so that the text is
the same to the byte while nothing changed: providers cache it by its beginning. What changes
by itself, the date and git's status, is the reminder instead, which is said behind the
conversation. What servers say comes last, since it comes and goes with them.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from importlib import resources
from typing import Literal
from xml.sax.saxutils import escape

from jinja2 import Environment, StrictUndefined, Template

from crush_kernel.files.names import printable
from crush_kernel.prompt.delimited import delimited

MAX_LEFT_OUT = 10
"""How many memory files without room are named."""

_MODEL_ID = re.compile(r"[\w./:@+-]{1,100}", re.ASCII)

MAX_INSTRUCTIONS_CHARACTERS = 10_000
"""What one MCP server may say of itself; the rest is left out."""


@dataclass(frozen=True, slots=True)
class PromptPart:
    """One part of the system prompt, as the user can look at it."""

    name: str
    """What it is about: `instructions`, `memory: AGENTS.md`."""
    text: str


@dataclass(frozen=True, slots=True)
class SystemPrompt:
    """What the model reads before the conversation."""

    parts: tuple[PromptPart, ...]
    """In the order in which they are sent; none is empty."""
    reminder: str = ""
    """What changes by itself, such as the date; said behind the conversation, never kept."""
    notices: tuple[str, ...] = ()
    """What the user should hear of now: each is given once, not with every prompt."""

    @property
    def text(self) -> str:
        """Return the parts as the model reads them: the same bytes while nothing changed."""
        return "\n\n".join(part.text for part in self.parts)


@dataclass(frozen=True, slots=True)
class Place:
    """Where the agent works; gathered by `prompt.place`."""

    cwd: str
    project_root: str
    is_git: bool
    platform: str


@dataclass(frozen=True, slots=True)
class ListedSkill:
    """A skill as the model sees it before it has read it."""

    name: str
    description: str
    location: str
    """What to give to `view`."""


@dataclass(frozen=True, slots=True)
class ListedAgent:
    """A custom agent as the model sees it."""

    name: str
    """What to give to the tool `agent`."""
    description: str
    location: str


@dataclass(frozen=True, slots=True)
class MemoryText:
    """A memory file as it goes into the prompt."""

    path: str
    """How tools and people name it: from the folder if it is inside the project."""
    text: str
    is_global: bool = False
    """Whether it is the user's own rather than the project's."""
    is_cut: bool = False
    """Whether `text` is only its beginning."""
    hidden: int = 0
    """How many hidden characters were taken out of it."""


@dataclass(frozen=True, slots=True)
class Instructions:
    """What an MCP server wants the model to know of it."""

    server: str
    text: str


@dataclass(frozen=True, slots=True)
class GitWays:
    """How commits are made here."""

    model: str = ""
    """Who is named in them as having assisted, by id."""
    has_gh: bool = False
    """Whether the program `gh` is there, which makes pull requests."""


@dataclass(frozen=True, slots=True)
class Facts:
    """All that the system prompt is made of."""

    place: Place
    skills: tuple[ListedSkill, ...] = ()
    memory: tuple[MemoryText, ...] = ()
    """The project's files, then the user's own."""
    left_out: tuple[str, ...] = ()
    """The paths of memory files for which there was no room."""
    language_servers: tuple[str, ...] = ()
    mcp: tuple[Instructions, ...] = ()
    agents: tuple[ListedAgent, ...] = ()
    git: GitWays = GitWays()
    """Said only where there is a repository."""


def render(facts: Facts) -> tuple[PromptPart, ...]:
    """Return the parts of the system prompt; an unknown name in a template is an error."""
    return tuple(_parts(facts))


SubagentKind = Literal["task", "reader"]
"""The sub-agents that come with the program: one looks into the project, one into the web."""


def render_subagent(
    facts: Facts, *, kind: SubagentKind = "task", instructions: str = ""
) -> tuple[PromptPart, ...]:
    """Return the parts of the system prompt of a sub-agent.

    Args:
        facts: where it is, and the memory that it is to know; the rest is not for it.
        kind: what it does, where it has no instructions of its own.
        instructions: of a custom one.
    """
    own = instructions.strip() or _source(f"{kind}.md").strip()
    place = _filled("environment.md.j2", place=facts.place)
    parts = [
        PromptPart("instructions", f"{own}\n\n{_source('subagent.md').strip()}"),
        PromptPart("environment", place),
    ]
    if facts.memory:
        parts.append(PromptPart("memory", _source("submemory.md").strip()))
        parts += map(_memory_part, facts.memory)
    return tuple(parts)


def _parts(facts: Facts) -> Iterator[PromptPart]:
    yield PromptPart("instructions", _source("instructions.md").strip())
    yield PromptPart("environment", _filled("environment.md.j2", place=facts.place))
    if facts.place.is_git:
        yield PromptPart("git", _filled("git.md.j2", git=_fit_for_a_trailer(facts.git)))
    if facts.language_servers:
        text = _filled("servers.md.j2", servers=facts.language_servers)
        yield PromptPart("language servers", text)
    if facts.skills:
        yield PromptPart("skills", _filled("skills.xml.j2", skills=facts.skills))
    if facts.agents:
        yield PromptPart("agents", _filled("agents.xml.j2", agents=facts.agents))
    for file in facts.memory:
        yield _memory_part(file)
    if facts.left_out:
        yield _left_out_part(facts.left_out)
    for server in sorted(facts.mcp, key=lambda server: server.server):
        text = server.text[:MAX_INSTRUCTIONS_CHARACTERS]
        text = delimited("mcp-instructions", text, {"server": server.server})
        yield PromptPart(f"MCP: {printable(server.server)}", text)


def _fit_for_a_trailer(git: GitWays) -> GitWays:
    """Return `git` without a model whose id could be anything else than a word."""
    return git if _MODEL_ID.fullmatch(git.model) else replace(git, model="")


def _memory_part(file: MemoryText) -> PromptPart:
    text = delimited("memory", file.text, {"path": file.path})
    if file.is_cut:
        text += "\n(Only the beginning of the file. View it for the rest.)"
    kind = "global memory" if file.is_global else "memory"
    return PromptPart(f"{kind}: {printable(file.path)}", text)


def _left_out_part(paths: tuple[str, ...]) -> PromptPart:
    names = [printable(path) for path in paths[:MAX_LEFT_OUT]]
    if len(paths) > MAX_LEFT_OUT:
        names.append(f"{len(paths) - MAX_LEFT_OUT} more")
    text = f"Memory files without room here: {', '.join(names)}. View those that matter."
    return PromptPart("memory: left out", text)


@cache
def _source(name: str) -> str:
    source = resources.files("crush_kernel.prompt").joinpath("templates", name)
    return source.read_text(encoding="utf-8")


@cache
def _environment() -> Environment:
    # The output is a prompt, not HTML: escaping would change what the model reads.
    environment = Environment(undefined=StrictUndefined, autoescape=False, trim_blocks=True)  # noqa: S701
    environment.filters["xml"] = escape
    return environment


@cache
def _template(name: str) -> Template:
    return _environment().from_string(_source(name))


def _filled(name: str, **values: object) -> str:
    return _template(name).render(**values).strip()
