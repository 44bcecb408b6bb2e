"""The system prompt: a template of our own, filled with facts that are handed in."""

from dataclasses import dataclass
from functools import cache
from importlib import resources

from jinja2 import Environment, StrictUndefined, Template


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
class Facts:
    """What the prompt says about the place; gathered by `prompt.place`."""

    cwd: str
    project_root: str
    is_git: bool
    platform: str
    date: str
    """ISO date: it changes once a day, so the prompt stays the same within a session."""


def render(facts: Facts) -> SystemPrompt:
    """Return the system prompt for `facts`; an unknown name in the template is an error."""
    return SystemPrompt((PromptPart("instructions", _template().render(facts=facts).strip()),))


@cache
def _template() -> Template:
    source = resources.files("crush_kernel.prompt").joinpath("templates", "system.md.j2")
    # The output is a prompt, not HTML: escaping would change what the model reads.
    environment = Environment(undefined=StrictUndefined, autoescape=False, trim_blocks=True)  # noqa: S701
    return environment.from_string(source.read_text(encoding="utf-8"))
