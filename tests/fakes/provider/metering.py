"""How the fake provider counts: what fits into its window, what its cache holds, what it reports.

All of it is off until a test turns it on. A token is so many bytes of what a block says; an
attached file is always as many tokens, however many bytes it has.

The prompt is a row of units: the tools, the system prompt, then what the messages say, in the
order in which the real APIs cache them. Their bytes count as they came, less the marks: two
prompts share what both begin with byte by byte.

* Anthropic caches up to each mark, and finds again what an earlier request marked, at most
  twenty units before a mark of its own. Another `tool_choice` loses the messages.
* OpenAI and servers like it cache whatever an earlier request began with, message by message,
  in steps of 128 tokens.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final, cast

from pydantic import JsonValue

from crush_kernel.messages import JsonObject, Usage
from tests.fakes.provider.overflows import OVERFLOWS, Asked
from tests.fakes.provider.replies import (
    Block,
    Call,
    Hold,
    HttpReply,
    Reply,
    ThinkRedacted,
    input_text,
    pieces_of,
)

FILE_TOKENS: Final = 1_500
"""Of an image or a document."""

_FILES: Final = frozenset(("image", "document", "image_url", "file"))
_LOOKS_BACK: Final = 20
"""Units before a mark in which Anthropic finds what it has cached."""
_STEP_TOKENS: Final = 128
"""What OpenAI's cache counts in."""


@dataclass(frozen=True, slots=True)
class _Unit:
    """A piece of the prompt that is cached whole or not at all."""

    content: bytes
    tokens: int
    is_marked: bool = False


class Meter:
    """What a provider knows of tokens; a test sets the attributes."""

    def __init__(self) -> None:
        self.window = 0
        """Tokens of the simulated context window; zero lets anything pass."""
        self.vendor = ""
        """In whose words it says that a request is too long: a key of `OVERFLOWS`. Empty is
        Anthropic's or OpenAI's, by the API that is spoken."""
        self.counts_output_limit = False
        """Whether the output that a request allows must fit into the window too."""
        self.reports_usage = True
        """Whether replies tell a usage at all, measured or scripted."""
        self.measures_usage = False
        """Whether replies tell what was really asked and said, and not what is scripted."""
        self.min_cached_tokens = 0
        """The shortest prompt that is cached; 1024 for most real models."""
        self.bytes_per_token = 4
        self._cached: set[bytes] = set()

    def expire(self) -> None:
        """Forget what is cached, as after five minutes."""
        self._cached.clear()

    def tokens_of(self, body: JsonObject) -> int:
        """Return how many tokens the prompt of a request has."""
        return sum(unit.tokens for unit in self._units(body))

    def overflow(self, body: JsonObject, *, dialect: str) -> HttpReply | None:
        """Return the refusal of a request that does not fit into the window."""
        asked = Asked(
            prompt=self.tokens_of(body),
            output=_output_limit(body) if self.counts_output_limit else 0,
            window=self.window,
        )
        if not self.window or asked.total <= self.window:
            return None
        return OVERFLOWS[self.vendor or dialect](asked)

    def metered(self, reply: Reply, body: JsonObject, *, dialect: str) -> Reply:
        """Return `reply` with the usage that is to be reported."""
        if not self.reports_usage:
            return replace(reply, usage=None)
        if not self.measures_usage:
            return reply
        units = list(self._units(body))
        read, written = self._use_cache(units, body, dialect)
        usage = Usage(
            input_tokens=sum(unit.tokens for unit in units) - read - written,
            cache_read_tokens=read,
            cache_write_tokens=written,
            output_tokens=max(1, sum(map(_said_bytes, reply.blocks)) // self.bytes_per_token),
        )
        return replace(reply, usage=usage)

    def _use_cache(self, units: list[_Unit], body: JsonObject, dialect: str) -> tuple[int, int]:
        """Return the tokens that are read from and written to the cache, and remember."""
        prefixes = list(_prefixes(units, body))
        if dialect == "openai":
            read = self._read(prefixes, len(units), 0)
            self._cached.update(digest for digest, _ in prefixes)
            return read // _STEP_TOKENS * _STEP_TOKENS, 0
        marks = [number for number, unit in enumerate(units, 1) if unit.is_marked]
        read = max((self._read(prefixes, mark, mark - _LOOKS_BACK) for mark in marks), default=0)
        written = 0
        for digest, tokens in (prefixes[mark - 1] for mark in marks):
            if tokens >= self.min_cached_tokens:
                self._cached.add(digest)
                written = max(written, tokens - read)
        return read, written

    def _read(self, prefixes: list[tuple[bytes, int]], end: int, start: int) -> int:
        """Return the tokens of the longest cached prefix of more than `start` units."""
        for digest, tokens in reversed(prefixes[max(0, start) : end]):
            if digest in self._cached:
                return tokens if tokens >= self.min_cached_tokens else 0
        return 0

    def _units(self, body: JsonObject) -> Iterator[_Unit]:
        for _, role, block in _blocks(body):
            content = _without_mark(block)
            text = role + json.dumps(content, ensure_ascii=False)
            yield _Unit(
                content=text.encode("utf-8", "replace"),
                tokens=-(-_bytes(content) // self.bytes_per_token) + _files(content) * FILE_TOKENS,
                is_marked=_is_marked(block),
            )


def _blocks(body: JsonObject) -> Iterator[tuple[str, str, JsonValue]]:
    """Yield what the prompt is made of, in the order in which it is cached.

    With each goes the field that it is from, and who begins to speak with it.
    """
    for field in ("tools", "system"):
        value = body.get(field)
        blocks = value if isinstance(value, list) else [value] if value else []
        yield from ((field, "", block) for block in blocks)
    messages = body.get("messages")
    for message in messages if isinstance(messages, list) else []:
        said = cast("dict[str, JsonValue]", message)
        content = said.get("content")
        if set(said) == {"role", "content"} and isinstance(content, list):
            speakers = [str(said["role"]), *[""] * len(content)]
            yield from (
                ("messages", role, block) for role, block in zip(speakers, content, strict=False)
            )
        else:
            yield "messages", "", said


def _prefixes(units: list[_Unit], body: JsonObject) -> Iterator[tuple[bytes, int]]:
    """Yield of each beginning of the prompt a digest and its tokens."""
    digest = hashlib.sha256(str(body.get("model")).encode())
    stable = sum(field != "messages" for field, _, _ in _blocks(body))
    total = 0
    for number, unit in enumerate(units):
        if number == stable:
            digest.update(json.dumps(body.get("tool_choice")).encode())
        digest.update(b"%d:" % len(unit.content))
        digest.update(unit.content)
        total += unit.tokens
        yield digest.digest(), total


def _is_marked(block: JsonValue) -> bool:
    if not isinstance(block, dict):
        return False
    content = block.get("content")
    inner = content if block.get("type") == "tool_result" and isinstance(content, list) else []
    return "cache_control" in block or any(map(_is_marked, inner))


def _without_mark(value: JsonValue) -> JsonValue:
    if isinstance(value, list):
        return [_without_mark(item) for item in value]
    if isinstance(value, dict):
        return {
            key: item if key in ("input", "input_schema") else _without_mark(item)
            for key, item in value.items()
            if key != "cache_control"
        }
    return value


def _bytes(value: JsonValue) -> int:
    """Return the bytes of what is said, without the files and most of the syntax."""
    match value:
        case {"type": str(kind)} if kind in _FILES:
            return 0
        case dict():
            return sum(len(key) + _bytes(item) for key, item in value.items())
        case list():
            return sum(map(_bytes, value))
        case str():
            return len(value.encode("utf-8", "replace"))
        case None:
            return 0
        case _:
            return len(str(value))


def _files(value: JsonValue) -> int:
    match value:
        case {"type": str(kind)} if kind in _FILES:
            return 1
        case dict():
            return sum(map(_files, value.values()))
        case list():
            return sum(map(_files, value))
        case _:
            return 0


def _output_limit(body: Mapping[str, JsonValue]) -> int:
    limit = body.get("max_tokens") or body.get("max_completion_tokens")
    return limit if isinstance(limit, int) else 0


def _said_bytes(block: Block) -> int:
    match block:
        case Hold():
            return 0
        case Call():
            text = input_text(block)
            extra = len(block.name)
        case ThinkRedacted(data=data):
            return len(data)
        case _:
            text, extra = block.text, 0
    pieces = (piece for piece in pieces_of(text, 0) if isinstance(piece, str))
    return extra + sum(len(piece.encode("utf-8", "replace")) for piece in pieces)
