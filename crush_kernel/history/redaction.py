"""Takes secrets out of everything that is kept or shown.

A secret is one that a format gives away, one that stands where secrets stand, the value of
a variable of the environment whose name says so, or what a pattern of the user matches. In
its place stands `⟨secret: GitHub token⟩`: always the same for the same secret, so that two
runs differ in nothing, and never taken for a secret itself. Pure, and safe to use from any
thread; what holds no secret comes back as the very object that it was.
"""

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import zip_longest
from typing import Final, TypeVar, cast

from pydantic import JsonValue
from pydantic_core import SchemaError

from crush_kernel.history.secrecy import pem, places
from crush_kernel.history.secrecy.environ import ValueSearch, guard_of, secret_values
from crush_kernel.history.secrecy.formats import FORMATS
from crush_kernel.history.secrecy.patterns import read_patterns
from crush_kernel.history.secrecy.places import is_secret_of
from crush_kernel.history.secrecy.search import encodable, find_secrets, matcher, may_have_secrets
from crush_kernel.history.secrecy.span import Span
from crush_kernel.messages import (
    JsonObject,
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
)

P = TypeVar("P", Text, ToolCall, ToolResult, Media, ShellCommand, Opaque)

MAX_PASSES: Final = 20
"""What is found only beside a placeholder is found in the next pass; two do, as a rule."""

TOO_DEEP: Final = "nested too deeply"
"""What is said of a value that cannot be looked through, and so is left out."""

_STRING = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"', re.DOTALL)
_COLON = re.compile(r"\s*:")
_UNREAD_TYPES = re.compile(
    r"image/(?!svg)|audio/|video/|font/|application/(?:pdf|octet-stream|zip)"
    r"|application/vnd\.jupyter\.widget-view\+json"
)
"""What holds bytes, or the id of a widget: nothing that a secret could be read from."""
_UNREAD_FIELDS: Final = frozenset(("transient", "execution_count", "output_type", "name"))
"""Fields of an output that front ends compare; they are ours."""


class Redactor:
    """Replaces secrets by placeholders.

    Args:
        environ: the environment whose secrets are to be known; it is not kept.
        patterns: the user's regular expressions, in the syntax of Rust's `regex` crate.
    """

    def __init__(self, environ: Mapping[str, str], patterns: Sequence[str] = ()) -> None:
        self._secret_values = secret_values(environ)
        self._patterns, self.problems = read_patterns(patterns)
        """`problems`: a sentence for each pattern that cannot be used."""
        self._ranks = _ranks(
            [value.label for value in self._secret_values],
            [pattern.label for pattern in self._patterns],
        )
        labels = "|".join(map(re.escape, self._ranks))
        self._placeholder = re.compile(f"⟨secret: (?:{labels})⟩")

    def redact(self, text: str) -> str:
        """Return `text` with placeholders for its secrets. Idempotent; costs linear time."""
        for _ in range(MAX_PASSES):
            cleaned = self._pass(text)
            if cleaned is text:
                break
            text = cleaned
        return text

    def redact_json(self, value: JsonValue) -> JsonValue:
        """Return `value` with placeholders for the secrets in its strings and keys."""
        try:
            return self._json(value, "")
        except RecursionError:
            return {"withheld": TOO_DEEP} if isinstance(value, dict) else TOO_DEEP

    def redact_json_text(self, text: str) -> str:
        """Return JSON in text without secrets; valid if it was, and else the same otherwise."""
        if not self._is_suspicious(encodable(text)):
            return text
        try:
            json.loads(text, strict=False)
        except (ValueError, RecursionError):
            return self.redact(text)
        parts: list[str] = []
        position, name = 0, ""
        for found in _STRING.finditer(text):
            value = cast("str", json.loads(found[0], strict=False))
            is_key = _COLON.match(text, found.end()) is not None
            cleaned = self.redact(value) if is_key else self._string(value, name)
            name = value if is_key else name
            if cleaned is not value:
                parts += text[position : found.start()], _json_string(cleaned)
                position = found.end()
        return "".join((*parts, text[position:])) if parts else text

    def redact_messages(self, messages: tuple[Message, ...]) -> tuple[Message, ...]:
        """Return `messages` without secrets.

        Reasoning belongs to its signature, byte for byte: with a secret in it, it is left out.
        """
        cleaned = tuple(map(self._message, messages))
        return messages if _are_same(cleaned, messages) else cleaned

    def redact_output(self, content: JsonObject) -> dict[str, JsonValue]:
        """Return the content of an IOPub message, or an output of nbformat, without secrets.

        Bytes such as an image's, and ids by which front ends find an output, stay as they are.
        """
        original = cast("dict[str, JsonValue]", content)
        cleaned = {
            field: value if field in _UNREAD_FIELDS else self._output_field(field, value)
            for field, value in original.items()
        }
        return original if _are_same(cleaned.values(), original.values()) else cleaned

    @property
    def has_patterns(self) -> bool:
        """Whether there are patterns of the user, which may match anything within a line."""
        return bool(self._patterns)

    def open_value(self, text: str) -> int:
        """Return where in `text` a value of the environment begins that may go on after it.

        Its length if there is none.
        """
        return self._values.open_at(text)

    @cached_property
    def _values(self) -> ValueSearch:
        return ValueSearch(self._secret_values)

    @cached_property
    def _may_have_values(self) -> Callable[[str], bool]:
        if not self._secret_values:
            return lambda _: False
        try:
            return matcher(guard_of(self._secret_values))
        except SchemaError:  # more than the engine takes: look closely each time
            return lambda _: True

    def _is_suspicious(self, text: str) -> bool:
        return (
            may_have_secrets(text)
            or self._may_have_values(text)
            or any(pattern.is_in(text) for pattern in self._patterns)
        )

    def _pass(self, text: str) -> str:
        plain = encodable(text)
        if not self._is_suspicious(plain):
            return text
        spans = find_secrets(plain)
        if self._may_have_values(plain):
            spans += self._values.spans(plain)
        for pattern in self._patterns:
            spans += pattern.spans(plain)
        kept = [found.span() for found in self._placeholder.finditer(text)] if spans else []
        return _replaced(text, _apart(_merged(spans, self._ranks), kept))

    def _string(self, value: str, name: str) -> str:
        """Return the string that stands under `name` in some JSON without secrets."""
        cleaned = self.redact(value)
        is_told_by_name = cleaned is value and name and is_secret_of(name, value)
        return placeholder(places.LABEL) if is_told_by_name else cleaned

    def _json(self, value: JsonValue, name: str) -> JsonValue:
        match value:
            case str():
                return self._string(value, name)
            case list():
                items: list[JsonValue] = []
                for item in value:
                    items.append(self._json(item, name))  # noqa: PERF401 - one frame a level
                return value if _are_same(items, value) else items
            case dict():
                return self._object(value)
            case _:
                return value

    def _object(self, value: dict[str, JsonValue]) -> dict[str, JsonValue]:
        cleaned: dict[str, JsonValue] = {}
        is_same = True
        for key, item in value.items():
            shown, content = self.redact(key), self._json(item, key)
            is_same = is_same and shown is key and content is item
            cleaned[_free(shown, cleaned) if shown is not key else key] = content
        return value if is_same else cleaned

    def _message(self, message: Message) -> Message:
        parts = tuple(
            cleaned for part in message.parts if (cleaned := self._part(part)) is not None
        )
        return message if _are_same(parts, message.parts) else replace(message, parts=parts)

    def _part(self, part: Part) -> Part | None:
        match part:
            case Text(text=text):
                return _changed(part, text=self.redact(text))
            case Reasoning(text=text, provider_data=data):
                is_clean = self.redact(text) is text and self._mapping(data) is data
                return part if is_clean else None
            case ToolCall(name=name, input=arguments):
                return _changed(
                    part, name=self.redact(name), input=self.redact_json_text(arguments)
                )
            case ToolResult():
                return self._result(part)
            case Media():
                return self._media(part)
            case ShellCommand(command=command, output=output):
                return _changed(part, command=self.redact(command), output=self.redact(output))
            case Opaque(data=data):
                return _changed(part, data=self._mapping(data))
            case SummaryMark():
                return part

    def _result(self, part: ToolResult) -> ToolResult:
        media = tuple(map(self._media, part.media))
        return _changed(
            part,
            content=self.redact(part.content),
            media=part.media if _are_same(media, part.media) else media,
            metadata=self._mapping(part.metadata),
        )

    def _media(self, part: Media) -> Media:
        return _changed(part, name=self.redact(part.name))

    def _mapping(self, data: JsonObject) -> JsonObject:
        plain = data if isinstance(data, dict) else dict(data)
        cleaned = self.redact_json(plain)
        return data if cleaned is plain else cast("JsonObject", cleaned)

    def _output_field(self, field: str, value: JsonValue) -> JsonValue:
        if field == "data" and isinstance(value, dict):
            bundle = {kind: self._by_type(kind, item) for kind, item in value.items()}
            return value if _are_same(bundle.values(), value.values()) else bundle
        return self._lines(value)

    def _by_type(self, kind: str, value: JsonValue) -> JsonValue:
        return value if _UNREAD_TYPES.match(kind) else self._lines(value)

    def _lines(self, value: JsonValue) -> JsonValue:
        """Redact a field; files have texts as lists of lines, over which secrets may go."""
        if isinstance(value, list) and all(map(_is_line, value[:-1])):
            text = "".join(line for line in value if isinstance(line, str))
            cleaned = self.redact(text)
            if cleaned is not text:
                return cast("list[JsonValue]", cleaned.splitlines(keepends=True))
        return self.redact_json(value)


def _is_line(value: JsonValue) -> bool:
    return isinstance(value, str) and value.endswith("\n")


def _json_string(text: str) -> str:
    # Half characters go as escapes: as they are, they fit into no file.
    return json.dumps(text, ensure_ascii=text != encodable(text))


def _free(key: str, taken: Mapping[str, JsonValue]) -> str:
    """Return `key`, or one like it that is not taken: two secrets may look the same now."""
    free, number = key, 2
    while free in taken:
        free, number = f"{key} {number}", number + 1
    return free


def _are_same(new: Iterable[object], old: Iterable[object]) -> bool:
    return all(one is other for one, other in zip_longest(new, old))


def _changed(part: P, **changes: object) -> P:
    """Return `part` with `changes`, itself if there are none."""
    if all(getattr(part, name) is value for name, value in changes.items()):
        return part
    return replace(part, **changes)


def placeholder(label: str) -> str:
    """Return what stands in the place of a secret."""
    return f"⟨secret: {label}⟩"


def _ranks(values: Iterable[str], patterns: Iterable[str]) -> dict[str, int]:
    """Return all labels, and which gives the name where several apply: the lowest one."""
    ranks = {places.LABEL: 3}
    ranks |= dict.fromkeys(patterns, 2)
    ranks |= dict.fromkeys((pem.LABEL, *(form.label for form in FORMATS)), 1)
    return ranks | dict.fromkeys(values, 0)


def _merged(spans: list[Span], ranks: Mapping[str, int]) -> list[Span]:
    """Return `spans` in order, those that overlap as one, under the label that tells most."""
    merged: list[Span] = []
    best: tuple[int, int] = (0, 0)
    for span in sorted(spans):
        key = (ranks[span.label], span.start - span.end)
        if merged and span.start < merged[-1].end:
            last = merged[-1]
            label = span.label if key < best else last.label
            merged[-1] = Span(last.start, max(last.end, span.end), label)
            best = min(best, key)
        else:
            merged.append(span)
            best = key
    return merged


def _apart(spans: list[Span], kept: list[tuple[int, int]]) -> list[Span]:
    """Return `spans` without what is in `kept`; both are in order."""
    pieces: list[Span] = []
    index = 0
    for span in spans:
        start = span.start
        while index < len(kept) and kept[index][1] <= start:
            index += 1
        at = index
        while at < len(kept) and kept[at][0] < span.end:
            if kept[at][0] > start:
                pieces.append(Span(start, kept[at][0], span.label))
            start = max(start, kept[at][1])
            at += 1
        if start < span.end:
            pieces.append(Span(start, span.end, span.label))
    return pieces


def _replaced(text: str, spans: list[Span]) -> str:
    if not spans:
        return text
    parts: list[str] = []
    position = 0
    for span in spans:
        parts += text[position : span.start], placeholder(span.label)
        position = span.end
    return "".join((*parts, text[position:]))
