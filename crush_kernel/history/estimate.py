"""How many tokens something has, where no provider has said so.

An estimate counts bytes. What a provider reports corrects it: the part of a conversation that
a request has covered counts as reported, and what was added since is estimated with the ratio
that this model's tokens had to our count so far. A request that did not fit teaches even more.

Pure: the gauge is a value of what it was told. Source: Crush, context engineering (a token is
four bytes); Anthropic and OpenAI, "Vision" (what an image comes to).
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from crush_kernel.messages import (
    Media,
    Message,
    Opaque,
    Part,
    Reasoning,
    ShellCommand,
    SummaryMark,
    Text,
    ToolCall,
    ToolResult,
    shared_length,
)

BYTES_A_TOKEN: Final = 4
MESSAGE_TOKENS: Final = 4
"""What a message costs beside what it says."""
PART_TOKENS: Final = 8
"""What the names and braces of a call or a result cost."""
IMAGE_TOKENS: Final = 1_600
"""Of an image as large as providers take it; a smaller one has fewer."""
DOCUMENT_BYTES_A_TOKEN: Final = 60
MIN_DOCUMENT_TOKENS: Final = 2_000

LOWEST_RATIO: Final = 0.35
"""A report of fewer tokens than this part of our count is not of the whole request: some
servers leave out what they had cached."""
HIGHEST_RATIO: Final = 4.0
LYING_RATIO: Final = 20.0
"""A report of more tokens than so many times our count is no report of the request, unless there
are documents: what these come to, nobody knows but the provider."""
LEAST_WINDOW: Final = 1_000
"""Tokens of the smallest window that is believed of a model."""


def tokens_of_text(text: str) -> int:
    """Return about how many tokens `text` has."""
    size = len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))
    return -(-size // BYTES_A_TOKEN)


def tokens_of(message: Message) -> int:
    """Return about how many tokens `message` has when it is sent."""
    return MESSAGE_TOKENS + sum(map(_tokens_of_part, message.parts))


def _tokens_of_part(part: Part) -> int:
    match part:
        case Text(text=text) | Reasoning(text=text):
            return tokens_of_text(text)
        case ToolCall(id=call_id, name=name, input=arguments):
            return PART_TOKENS + sum(map(tokens_of_text, (call_id, name, arguments)))
        case ToolResult(call_id=call_id, content=content, media=media):
            files = sum(map(_tokens_of_file, media))
            return PART_TOKENS + files + tokens_of_text(call_id) + tokens_of_text(content)
        case Media():
            return _tokens_of_file(part)
        case ShellCommand(command=command, output=output):
            return PART_TOKENS + tokens_of_text(command) + tokens_of_text(output)
        case SummaryMark() | Opaque():
            return 0


def _tokens_of_file(media: Media) -> int:
    if media.media_type.startswith("image/"):
        return IMAGE_TOKENS
    size = len(media.data) * 3 // 4
    return max(MIN_DOCUMENT_TOKENS, size // DOCUMENT_BYTES_A_TOKEN)


@dataclass(frozen=True, slots=True)
class Fill:
    """What a request is about to fill of the window, in tokens."""

    total: int = 0
    fixed: int = 0
    """Of that: system prompt, tools and reminder, which no summary makes smaller."""
    opening: int = 0
    """Of that: the summary that the conversation begins with."""
    new: int = 0
    """Of that: what was said since, and a further summary would stand for."""
    unseen: int = 0
    """Of that: what the user has said since the last reply, which stays as it is."""
    is_estimated: bool = True
    """Whether no report of the provider is in it."""


class Gauge:
    """Estimates the requests of a conversation that grows; learns of each model by its label."""

    def __init__(self) -> None:
        self._messages: tuple[Message, ...] = ()
        self._sums: list[int] = [0]
        """Tokens of the first messages, by how many."""
        self._ratios: dict[str, float] = {}
        self._windows: dict[str, int] = {}
        self._guessed: set[str] = set()
        """The models whose window nobody has named."""

    def window(self, label: str, known: int) -> int:
        """Return the window of a model: what is known of it, or less if it has taught us so."""
        learned = self._windows.get(label, 0)
        return min(learned, known) if learned and known else learned or known

    def ratio(self, label: str) -> float:
        """Return how many tokens of a model one of our estimate is."""
        return self._ratios.get(label, 1.0)

    def scaled(self, label: str, tokens: int) -> int:
        """Return an estimate in the tokens of a model."""
        return round(tokens * self.ratio(label))

    def count(self, messages: tuple[Message, ...]) -> int:
        """Return about how many tokens `messages` have; only new ones are looked at."""
        same = shared_length(messages, self._messages)
        del self._sums[same + 1 :]
        for message in messages[same:]:
            self._sums.append(self._sums[-1] + tokens_of(message))
        self._messages = messages
        return self._sums[-1]

    def used(self, label: str, messages: tuple[Message, ...], *, fixed: int) -> tuple[int, bool]:
        """Return what a request fills of the window, and whether that is a mere estimate.

        Args:
            label: of the model, `provider/model`.
            messages: as they will be sent.
            fixed: estimated tokens of what goes with them.
        """
        whole = self.count(messages)
        index = _last_report(label, messages)
        if index is None:
            return self.scaled(label, fixed + whole), True
        usage = messages[index].usage
        reported = 0 if usage is None else usage.context_tokens
        counted = self._sums[index + 1]
        sent = fixed + counted
        if reported > sent * LYING_RATIO and not _has_document(messages[: index + 1]):
            return self.scaled(label, fixed + whole), True
        reported = max(reported, round(sent * LOWEST_RATIO))
        return reported + self.scaled(label, whole - counted), False

    def reported(self, label: str, *, counted: int, prompt: int) -> None:
        """Learn from what a provider says of a request that was counted by us."""
        if counted * LOWEST_RATIO <= prompt <= counted * LYING_RATIO and counted > 0:
            self._ratios[label] = min(HIGHEST_RATIO, prompt / counted)

    def overflowed(self, label: str, *, asked: int, limit: int, counted: int, known: int) -> None:
        """Learn from a request that did not fit.

        Args:
            label: of the model.
            asked: the tokens that the provider has counted; zero if it did not say.
            limit: the window that it has named; zero if it did not.
            counted: our own count of the request, before any correction.
            known: the window that the model was thought to have; zero if nobody knew.
        """
        if asked:
            self.reported(label, counted=counted, prompt=asked)
        sent = asked or self.scaled(label, counted)
        window = self.window(label, known)
        if limit >= LEAST_WINDOW:
            self._windows[label] = limit
            self._guessed.discard(label)
        elif not window or sent <= window:
            # By how much it was too long is not known: at first by little, then by more.
            self._windows[label] = sent * (6 if label in self._guessed else 9) // 10
            self._guessed.add(label)

    def accepted(self, label: str, tokens: int) -> None:
        """Learn from a request of so many tokens that did fit, beyond what was guessed."""
        if label in self._guessed and tokens > self._windows[label]:
            self._windows[label] = tokens


def _has_document(messages: Iterable[Message]) -> bool:
    return any(
        not media.media_type.startswith("image/")
        for message in messages
        for part in message.parts
        for media in _files_of(part)
    )


def _files_of(part: Part) -> tuple[Media, ...]:
    match part:
        case Media():
            return (part,)
        case ToolResult(media=media):
            return media
        case _:
            return ()


def _last_report(label: str, messages: Sequence[Message]) -> int | None:
    """Return the last reply of a model that says what its request has filled."""
    for index in range(len(messages) - 1, -1, -1):
        message = messages[index]
        usage = message.usage
        if message.role != "assistant" or usage is None or usage.is_estimated:
            continue
        is_same = f"{message.provider}/{message.model}" == label
        return index if is_same and usage.context_tokens else None
    return None
