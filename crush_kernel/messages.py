"""What is said: the parts of a message, and messages made of parts.

Values only: nothing here reads a file, a clock or a socket, and nothing is mutated; a
longer conversation is a longer tuple. `MESSAGES` is the one codec, used by the notebook,
the journal and the tests alike; it stops at the first message that is none. A part of a
kind that this version does not know decodes to `Opaque` and is written back untouched.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from math import isfinite
from operator import is_, not_
from typing import Annotated, Final, Literal, NoReturn, TypeAlias, cast

from pydantic import (
    FailFast,
    Field,
    JsonValue,
    PlainSerializer,
    PlainValidator,
    TypeAdapter,
)
from pydantic_core import from_json

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
    exit_code: Annotated[int, Field(ge=-(2**31), lt=2**32)]
    blob: BlobHash = ""
    """The hash of the whole output, if `output` is only a preview."""
    kind: Literal["shell_command"] = "shell_command"


@dataclass(frozen=True, slots=True)
class SummaryMark:
    """Says that its message summarizes everything before it."""

    covers: str
    """The fingerprint of the messages that the summary stands for."""
    kind: Literal["summary_mark"] = "summary_mark"


@dataclass(frozen=True, slots=True)
class Opaque:
    """A part of a kind that this version does not know, kept as it came."""

    data: JsonObject
    kind: Literal["opaque"] = "opaque"


KINDS: Final = frozenset(
    ("text", "reasoning", "tool_call", "tool_result", "media", "shell_command", "summary_mark")
)
"""The kinds of parts that this version knows."""


def _opaque(value: object) -> Opaque:
    if isinstance(value, Opaque):
        return value
    if not isinstance(value, Mapping):
        raise ValueError("a part is a JSON object")  # noqa: TRY004 - pydantic wants ValueError
    data = cast("JsonObject", value)
    kind = data.get("kind")
    if isinstance(kind, str) and kind in KINDS:
        raise ValueError(f"this is no {kind}")
    return Opaque(dict(data))


def _opaque_json(value: Opaque) -> JsonObject:
    return value.data


Part = Annotated[
    Annotated[
        Text | Reasoning | ToolCall | ToolResult | Media | ShellCommand | SummaryMark,
        Field(discriminator="kind"),
    ]
    | Annotated[Opaque, PlainValidator(_opaque), PlainSerializer(_opaque_json)],
    # Known kinds first: choosing among them needs no Python.
    Field(union_mode="left_to_right"),
]

TokenCount = Annotated[int, Field(ge=0, le=2**53, strict=True)]
"""A number that stays exact in every reader of JSON; no sum of such numbers runs away."""


@dataclass(frozen=True, slots=True)
class Usage:
    """What one or more requests used, in tokens. The four counts never overlap."""

    input_tokens: TokenCount = 0
    """Read at full price."""
    cache_read_tokens: TokenCount = 0
    cache_write_tokens: TokenCount = 0
    output_tokens: TokenCount = 0
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
    parts: Annotated[tuple[Part, ...], FailFast()]
    provider: str = ""
    """The provider that wrote it; empty unless `role` is `assistant`."""
    model: str = ""
    stop: StopReason | None = None
    """Why the reply ended; `None` unless `role` is `assistant`."""
    usage: Usage | None = None


MESSAGES: TypeAdapter[tuple[Message, ...]] = TypeAdapter(Annotated[tuple[Message, ...], FailFast()])


def calls_of(message: Message) -> tuple[ToolCall, ...]:
    """Return the tool calls of `message`, in its order."""
    return tuple([part for part in message.parts if isinstance(part, ToolCall)])


def text_of(message: Message) -> str:
    """Return what `message` says in text, its parts joined without a separator."""
    return "".join(part.text for part in message.parts if isinstance(part, Text))


def shared_length(one: tuple[Message, ...], other: tuple[Message, ...]) -> int:
    """Return how many messages both begin with: the same objects, not merely equal ones."""
    same = list(map(is_, one, other))
    return same.index(False) if False in same else len(same)


def well_formed(text: str) -> str:
    """Return `text` with lone surrogates, which no server and no file takes, replaced."""
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return _SURROGATE.sub("\ufffd", text)
    return text


def object_in(text: str) -> dict[str, JsonValue] | None:
    """Return the JSON object that `text` is, as the arguments of a call must be.

    By the letter of JSON, except that raw line breaks and tabs are let pass inside strings,
    where many models write them. `None` if it is none.
    """
    return _strict_object(text) or _careless_object(text)


def object_text(text: str) -> str | None:
    """Return `text`, which is a JSON object by the letter or becomes one; `None` if neither."""
    if _strict_object(text) is not None:
        return text
    value = _careless_object(text)
    if value is None:
        return None
    try:
        return well_formed(json.dumps(value, ensure_ascii=False))
    except RecursionError:
        return None


def _strict_object(text: str) -> dict[str, JsonValue] | None:
    try:
        value: object = from_json(text, allow_inf_nan=False)
    except (ValueError, TypeError):  # the latter for lone surrogates
        return None
    return cast("dict[str, JsonValue]", value) if isinstance(value, dict) else None


def _careless_object(text: str) -> dict[str, JsonValue] | None:
    try:
        value: object = _CARELESS.decode(text)
    except (ValueError, RecursionError):
        return None
    return cast("dict[str, JsonValue]", value) if isinstance(value, dict) else None


def _refuse_constant(name: str) -> NoReturn:
    """Refuse `NaN` and the infinities, which Python reads and JSON does not have."""
    raise ValueError(name)


def _finite(text: str) -> float:
    number = float(text)
    return number if isfinite(number) else _refuse_constant(text)


_CARELESS = json.JSONDecoder(strict=False, parse_constant=_refuse_constant, parse_float=_finite)
_SURROGATE = re.compile(r"[\ud800-\udfff]")
