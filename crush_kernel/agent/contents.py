"""What a request holds, part by part, for a user who wants to look at it. Pure."""

from collections.abc import Iterator
from dataclasses import dataclass

from crush_kernel.agent.toolsizes import tool_text
from crush_kernel.history.estimate import tokens_of, tokens_of_text
from crush_kernel.history.summary import is_summary, reserve_of
from crush_kernel.messages import (
    Media,
    Message,
    Opaque,
    Reasoning,
    ShellCommand,
    SummaryMark,
    Text,
    ToolCall,
    ToolResult,
)
from crush_kernel.prompt.system import PromptPart
from crush_kernel.providers.base import ModelRequest


@dataclass(frozen=True, slots=True)
class Share:
    """A part of a request."""

    name: str
    text: str
    """Word for word, as far as it is text."""
    tokens: int
    """Estimated."""


@dataclass(frozen=True, slots=True)
class Contents:
    """A request, and what it fills of the window."""

    request: ModelRequest
    parts: tuple[PromptPart, ...]
    """What its system prompt is made of."""
    shares: tuple[tuple[str, tuple[Message, ...]], ...]
    """What its messages were before they were repaired, by the cells that they are from."""
    ratio: float
    """How many of the model's tokens one of our estimate is."""
    window: int
    """Zero if nobody knows."""
    summarizes: bool
    """Whether a summary is made when the window is nearly full."""

    @property
    def system(self) -> tuple[Share, ...]:
        """The parts of the system prompt."""
        return tuple(self._share(part.name, part.text) for part in self.parts)

    @property
    def tools(self) -> tuple[Share, ...]:
        """The tools, as the model reads them."""
        return tuple(self._share(tool.name, tool_text(tool)) for tool in self.request.tools)

    @property
    def turns(self) -> tuple[Share, ...]:
        """What was said in each cell above."""
        return tuple(self._turn(number) for number in range(len(self.shares)))

    @property
    def reminder(self) -> Share | None:
        """What is said behind everything else; `None` if nothing is."""
        reminder = self.request.reminder
        return self._share("reminder", reminder) if reminder else None

    @property
    def used(self) -> int:
        """Estimated tokens of all of it."""
        return sum(share.tokens for share in self._all())

    @property
    def reserve(self) -> int:
        """What is kept free of the window."""
        return reserve_of(self.window)

    def _all(self) -> Iterator[Share]:
        yield from self.system
        yield from self.tools
        yield from self.turns
        if self.reminder is not None:
            yield self.reminder

    def _share(self, name: str, text: str) -> Share:
        return Share(name, text, round(tokens_of_text(text) * self.ratio))

    def _turn(self, number: int) -> Share:
        _, messages = self.shares[number]
        has_summary = any(map(is_summary, messages))
        name = f"turn {number + 1}{', with a summary' if has_summary else ''}"
        said = "\n\n".join(part for message in messages for part in _spoken(message))
        return Share(name, said, round(sum(map(tokens_of, messages)) * self.ratio))


def _spoken(message: Message) -> Iterator[str]:
    """Yield the parts of `message` word for word, each below a line that says what it is."""
    for part in message.parts:
        match part:
            case Text(text=text):
                yield f"[{message.role}]\n{text}"
            case Reasoning(text=text):
                yield f"[thinking]\n{text}" if text else "[thinking, not readable]"
            case ToolCall(name=name, input=arguments):
                yield f"[call of {name}]\n{arguments}"
            case ToolResult(content=content, is_error=is_error, media=media):
                files = "".join(f"\n[{file.name or file.media_type}]" for file in media)
                yield f"[{'error' if is_error else 'result'}]\n{content}{files}"
            case ShellCommand(command=command, output=output, exit_code=exit_code):
                yield f"[the user's own command]\n$ {command}\n{output}\n(exit code {exit_code})"
            case Media(name=name, media_type=media_type):
                yield f"[file]\n{name or media_type}"
            case SummaryMark() | Opaque():
                pass
