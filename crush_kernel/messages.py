"""What is said: the parts of a message, and messages made of parts.

Values only: nothing here reads a file, a clock or a socket, and nothing is mutated; a
longer conversation is a longer tuple. `MESSAGES` is the one codec, used by the notebook,
the journal and the tests alike. A part of a kind that this version does not know decodes
to `Opaque` and is written back untouched.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from operator import not_
from typing import Annotated, Literal, TypeAlias, cast

from pydantic import (
    Discriminator,
    Field,
    JsonValue,
    PlainSerializer,
    PlainValidator,
    Tag,
    TypeAdapter,
)

JsonObject: TypeAlias = Mapping[str, JsonValue]

BlobHash = Annotated[str, Field(exclude_if=not_)]
"""The hash of a file beside the notebook, not stored where it is empty: for most parts."""

Role = Literal["user", "assistant", "tool"]

StopReason = Literal["end_turn", "tool_use", "max_tokens", "refused", "error", "interrupted"]
"""Why a reply ended. The first four come from the provider, the last two from us."""


@dataclass(frozen=True, slots=True)
class Text:
    """Plain text, Markdown by convention."""

    text: str
    blob: BlobHash = ""
    """The hash of the whole text, if `text` is only a preview; see `history.sidefiles`."""
    kind: Literal["text"] = "text"


@dataclass(frozen=True, slots=True)
class Reasoning:
    """Thinking, with whatever the provider wants back verbatim on the next request."""

    text: str
    provider_data: JsonObject = field(default_factory=dict[str, JsonValue])
    """The provider's own block, byte for byte; opaque to all but its adapter."""
    kind: Literal["reasoning"] = "reasoning"


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A request by the model to run a tool; `input` is the raw JSON it wrote."""

    id: str
    name: str
    input: str
    kind: Literal["tool_call"] = "tool_call"


@dataclass(frozen=True, slots=True)
class Media:
    """A file that a model can look at: an image or a PDF."""

    media_type: str
    """The MIME type, from the bytes and not from the name."""
    data: str
    """The bytes, in Base64."""
    name: str = ""
    """What to call it in text: a path as the user wrote it, or empty."""
    blob: BlobHash = ""
    """The hash of the whole file, if `data` is only a small picture of it, or empty."""
    kind: Literal["media"] = "media"


@dataclass(frozen=True, slots=True)
class ToolResult:
    """What a tool answered; every `ToolCall` is followed by exactly one."""

    call_id: str
    content: str
    is_error: bool = False
    media: tuple[Media, ...] = ()
    metadata: JsonObject = field(default_factory=dict[str, JsonValue])
    """For people, never sent to the model: `summary`, `diff`, `duration_s`, `permission`."""
    blob: BlobHash = ""
    """The hash of the whole content, if `content` is only a preview."""
    kind: Literal["tool_result"] = "tool_result"


@dataclass(frozen=True, slots=True)
class ShellCommand:
    """A command that the user ran in a `!cmd` cell, with what it printed."""

    command: str
    output: str
    exit_code: int
    blob: BlobHash = ""
    """The hash of the whole output, if `output` is only a preview."""
    kind: Literal["shell_command"] = "shell_command"


@dataclass(frozen=True, slots=True)
class SummaryMark:
    """Says that its message summarises everything before it."""

    covers: str
    """The fingerprint of the messages that the summary stands for."""
    kind: Literal["summary_mark"] = "summary_mark"


@dataclass(frozen=True, slots=True)
class Opaque:
    """A part of a kind that this version does not know, kept as it came."""

    data: JsonObject
    kind: Literal["opaque"] = "opaque"


_KINDS = frozenset(
    ("text", "reasoning", "tool_call", "tool_result", "media", "shell_command", "summary_mark")
)


def _kind(value: object) -> str:
    kind = (
        cast("Mapping[str, object]", value).get("kind")
        if isinstance(value, Mapping)
        else getattr(value, "kind", None)
    )
    return kind if isinstance(kind, str) and kind in _KINDS else "opaque"


def _opaque(value: object) -> Opaque:
    if isinstance(value, Opaque):
        return value
    if not isinstance(value, Mapping):
        raise ValueError("a part is a JSON object")  # noqa: TRY004 - pydantic wants ValueError
    return Opaque(dict(cast("JsonObject", value)))


def _opaque_json(value: Opaque) -> JsonObject:
    return value.data


Part = Annotated[
    Annotated[Text, Tag("text")]
    | Annotated[Reasoning, Tag("reasoning")]
    | Annotated[ToolCall, Tag("tool_call")]
    | Annotated[ToolResult, Tag("tool_result")]
    | Annotated[Media, Tag("media")]
    | Annotated[ShellCommand, Tag("shell_command")]
    | Annotated[SummaryMark, Tag("summary_mark")]
    | Annotated[Opaque, PlainValidator(_opaque), PlainSerializer(_opaque_json), Tag("opaque")],
    Discriminator(_kind),
]


@dataclass(frozen=True, slots=True)
class Usage:
    """What one or more requests used, in tokens. The four counts never overlap."""

    input_tokens: int = 0
    """Read at full price."""
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    output_tokens: int = 0
    """Written, reasoning included."""
    is_estimated: bool = False
    """Whether the numbers are our guess, since the provider gave none."""

    def __add__(self, other: "Usage") -> "Usage":
        return Usage(
            input_tokens=self.input_tokens + other.input_tokens,
            cache_read_tokens=self.cache_read_tokens + other.cache_read_tokens,
            cache_write_tokens=self.cache_write_tokens + other.cache_write_tokens,
            output_tokens=self.output_tokens + other.output_tokens,
            is_estimated=self.is_estimated or other.is_estimated,
        )

    @property
    def context_tokens(self) -> int:
        """Return how much of the context window the request and its reply filled."""
        return (
            self.input_tokens
            + self.cache_read_tokens
            + self.cache_write_tokens
            + self.output_tokens
        )


@dataclass(frozen=True, slots=True)
class Message:
    """One contribution by one role: a prompt, a reply, or the results of a reply's calls."""

    role: Role
    parts: tuple[Part, ...]
    provider: str = ""
    """The provider that wrote it; empty unless `role` is `assistant`."""
    model: str = ""
    stop: StopReason | None = None
    """Why the reply ended; `None` unless `role` is `assistant`."""
    usage: Usage | None = None


MESSAGES: TypeAdapter[tuple[Message, ...]] = TypeAdapter(tuple[Message, ...])


def calls_of(message: Message) -> tuple[ToolCall, ...]:
    """Return the tool calls of `message`, in its order."""
    return tuple(part for part in message.parts if isinstance(part, ToolCall))


def text_of(message: Message) -> str:
    """Return what `message` says in text, its parts joined without a separator."""
    return "".join(part.text for part in message.parts if isinstance(part, Text))
