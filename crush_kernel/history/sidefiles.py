"""What is too large for a notebook: it is kept beside it, and a preview stands in its place.

`spilled` takes large parts out of messages that are to be stored, `restored` puts them
back into messages that were loaded. The part itself carries the hash of what was taken
out, in `blob`. Pure but for the two callables that keep and fetch bytes by their hash.

Files go out as files, so that whoever looks into the folder can open them. The preview of
an image is a small JPEG or PNG; while it stands in, `media_type` still names the whole.
What providers want back byte for byte, and what the model has written, never goes out.

Source: design §5 "Records above a size cap".
"""

import base64
import binascii
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

from pydantic import JsonValue

from crush_kernel.messages import Media, Message, Part, ShellCommand, Text, ToolResult

Keep = Callable[[bytes], str]
"""Keeps bytes and returns their hash; empty if they cannot be kept."""

Fetch = Callable[[str], bytes | None]
"""Returns the bytes that have a hash; `None` if they are not there."""

NOTICE_BYTES: Final = 1_500_000
"""Where the user is told. Source: front ends become slow above 2 MB of metadata."""

PREVIEW_EDGE: Final = 512
"""Pixels of the longer side of an image's preview, at most."""

_TEXT_PREVIEW_BYTES: Final = 3_000
"""What stays of a text, half of it from either end."""

_DIFF, _DIFF_BLOB = "diff", "diff_blob"
"""Where the metadata of a result holds the changes to a file, and their hash if taken out."""

_PREVIEW_TYPES: Final = {"iVBORw0KGgo": "image/png", "/9j/": "image/jpeg"}
"""The types that previews have, by what they begin with in Base64."""

_ONLY_ENDS: Final = "[The whole of this is not in this folder: only its two ends are left.]"


@dataclass(frozen=True, slots=True)
class Caps:
    """What one part may take in a notebook; more than that goes out."""

    text_bytes: int
    media_characters: int
    """Of Base64."""
    preview_bytes: int
    """Of an image that stands for a larger one, before Base64."""


_STEPS: Final = (
    (2_000_000, Caps(text_bytes=4_000, media_characters=8_000, preview_bytes=3_000)),
    (1_500_000, Caps(text_bytes=12_000, media_characters=32_000, preview_bytes=6_000)),
    (1_000_000, Caps(text_bytes=32_000, media_characters=96_000, preview_bytes=12_000)),
    (0, Caps(text_bytes=96_000, media_characters=256_000, preview_bytes=24_000)),
)
"""The caps from a total on, the largest total first."""


def caps_for(total_bytes: int) -> Caps:
    """Return the caps for a notebook whose records take `total_bytes` already."""
    return next(caps for least, caps in _STEPS if total_bytes >= least or least == 0)


def budget_notice(total_before: int, total_after: int) -> str:
    """Return what the user should know if the notebook has just become large, else nothing.

    Args:
        total_before: bytes of all records before the last turn.
        total_after: the same with it.
    """
    if not total_before < NOTICE_BYTES <= total_after:
        return ""
    return (
        f"This notebook now holds {total_after / 1_000_000:.1f} MB of conversation. From here on "
        "only previews of large results and images go into it; the wholes are kept in the "
        "project's data folder."
    )


def spilled(messages: tuple[Message, ...], *, caps: Caps, keep: Keep) -> tuple[Message, ...]:
    """Return `messages` as they are stored: what is larger than `caps` allows is kept apart.

    What cannot be kept apart stays. Idempotent, and undone by `restored`.
    """
    return tuple(_mapped(message, partial(_spill, caps=caps, keep=keep)) for message in messages)


def restored(messages: tuple[Message, ...], *, fetch: Fetch) -> tuple[Message, ...]:
    """Return stored `messages` as the model reads them, with what was kept apart put back.

    Where it is not there, the preview stays, and a note says so.
    """
    return tuple(_mapped(message, partial(_restore, fetch=fetch)) for message in messages)


def _mapped(message: Message, change: Callable[[Part, Message], tuple[Part, ...]]) -> Message:
    parts = tuple(new for part in message.parts for new in change(part, message))
    return message if parts == message.parts else replace(message, parts=parts)


# Out


def _spill(part: Part, message: Message, *, caps: Caps, keep: Keep) -> tuple[Part, ...]:
    match part:
        case Text(text=text, blob="") if message.role == "user":
            shown, blob = _spill_text(text, caps, keep)
            return (replace(part, text=shown, blob=blob) if blob else part,)
        case ShellCommand(output=output, blob=""):
            shown, blob = _spill_text(output, caps, keep)
            return (replace(part, output=shown, blob=blob) if blob else part,)
        case Media():
            return (_spill_media(part, caps, keep),)
        case ToolResult():
            return (_spill_result(part, caps, keep),)
        case _:
            return (part,)


def _spill_result(result: ToolResult, caps: Caps, keep: Keep) -> ToolResult:
    media = tuple(_spill_media(item, caps, keep) for item in result.media)
    if media != result.media:
        result = replace(result, media=media)
    if not result.blob:
        shown, blob = _spill_text(result.content, caps, keep)
        result = replace(result, content=shown, blob=blob) if blob else result
    diff = result.metadata.get(_DIFF)
    if isinstance(diff, str) and _DIFF_BLOB not in result.metadata:
        shown, blob = _spill_text(diff, caps, keep)
        facts: dict[str, JsonValue] = {**result.metadata, _DIFF: shown, _DIFF_BLOB: blob}
        result = replace(result, metadata=facts) if blob else result
    return result


def _spill_text(text: str, caps: Caps, keep: Keep) -> tuple[str, str]:
    """Return a preview and the hash of `text` if it is to go out, else two empty texts."""
    if len(text) <= caps.text_bytes // 4:
        return "", ""
    data = text.encode("utf-8", "surrogatepass")
    blob = keep(data) if len(data) > caps.text_bytes else ""
    if not blob:
        return "", ""
    half = _TEXT_PREVIEW_BYTES // 2
    head, tail = (piece.decode("utf-8", "ignore") for piece in (data[:half], data[-half:]))
    count = len(data) - 2 * half
    return f"{head}\n[… {count:,} bytes are kept beside this notebook: {blob} …]\n{tail}", blob


def _spill_media(media: Media, caps: Caps, keep: Keep) -> Media:
    if media.blob or len(media.data) <= caps.media_characters:
        return media
    try:
        data = base64.b64decode(media.data, validate=True)
    except (binascii.Error, ValueError):
        return media
    # The same bytes can be spelled in several ways, of which only one would come back.
    blob = keep(data) if _base64(data) == media.data else ""
    return replace(media, data=_base64(_preview(data, media, caps)), blob=blob) if blob else media


def _preview(data: bytes, media: Media, caps: Caps) -> bytes:
    """Return a small picture of an image, nothing for what is none."""
    from crush_kernel.pictures import BadPicture, fitted  # noqa: PLC0415 - loads Pillow

    try:
        picture = fitted(
            data,
            media_type=media.media_type,
            max_edge=PREVIEW_EDGE,
            max_bytes=caps.preview_bytes,
        )
    except BadPicture:
        return b""
    return picture.data


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")


# Back


def _restore(part: Part, _: Message, *, fetch: Fetch) -> tuple[Part, ...]:
    match part:
        case Text(text=text, blob=blob) if blob:
            return (Text(_restored_text(text, blob, fetch)),)
        case ShellCommand(output=output, blob=blob) if blob:
            return (replace(part, output=_restored_text(output, blob, fetch), blob=""),)
        case Media():
            media, note = _restored_media(part, fetch)
            return (*((media,) if media else ()), *((Text(note),) if note else ()))
        case ToolResult():
            return (_restored_result(part, fetch),)
        case _:
            return (part,)


def _restored_result(result: ToolResult, fetch: Fetch) -> ToolResult:
    content = result.content
    if result.blob:
        content = _restored_text(content, result.blob, fetch)
    found = [_restored_media(item, fetch) for item in result.media]
    notes = [note for _, note in found if note]
    whole = replace(
        result,
        content="\n".join((content, *notes)) if notes else content,
        media=tuple(media for media, _ in found if media),
        metadata=_restored_facts(result, fetch),
        blob="",
    )
    return result if whole == result else whole


def _restored_facts(result: ToolResult, fetch: Fetch) -> dict[str, JsonValue]:
    facts = dict(result.metadata)
    blob = facts.pop(_DIFF_BLOB, None)
    if isinstance(blob, str) and isinstance(diff := facts.get(_DIFF), str):
        facts[_DIFF] = _whole_text(blob, fetch) or diff
    return facts


def _restored_text(preview: str, blob: str, fetch: Fetch) -> str:
    whole = _whole_text(blob, fetch)
    return f"{preview}\n{_ONLY_ENDS}" if whole is None else whole


def _whole_text(blob: str, fetch: Fetch) -> str | None:
    data = fetch(blob)
    try:
        return None if data is None else data.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        return None


def _restored_media(media: Media, fetch: Fetch) -> tuple[Media | None, str]:
    """Return the whole of `media`, else what is left of it with a note that says so."""
    if not media.blob:
        return media, ""
    data = fetch(media.blob)
    if data is not None:
        return replace(media, data=_base64(data), blob=""), ""
    name = media.name or "a file"
    types = (kind for head, kind in _PREVIEW_TYPES.items() if media.data.startswith(head))
    preview_type = next(types, "")
    if not preview_type:
        note = f"[{name} ({media.media_type}) is left out: it is not in this folder.]"
        return None, note
    note = f"[Of {name} only this small preview is left: the whole is not in this folder.]"
    return replace(media, media_type=preview_type, blob=""), note
