"""What `@path` in a prompt brings along: text inlined, images and PDFs as media.

`mentions` is pure and finds candidates; what is no file stays plain text, so that
`@decorator` and addresses mean nothing. A file outside the project is read only with
permission, since a prompt may come from a notebook that somebody else wrote.
"""

import os
import re
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import anyio.to_thread

from crush_kernel.errors import ToolError
from crush_kernel.files.opening import open_real
from crush_kernel.files.textfile import decode, detect
from crush_kernel.messages import Part, Text
from crush_kernel.tools.base import Permit
from crush_kernel.tools.media.admission import MAX_FILE_BYTES, admit
from crush_kernel.tools.media.mediatype import MEDIA_TYPES, media_type_of
from crush_kernel.tools.paths import PathPolicy, Target
from crush_kernel.tools.text.encoded import without_base64
from crush_kernel.tools.text.lineset import EVERY_LINE, LineSet
from crush_kernel.tools.tracker import ReadTracker

MAX_TEXT_BYTES = 200_000
"""Text of one attachment; what is longer is cut with a note."""

_HEAD_BYTES = 4_000_000
"""What is read of a file at first, and of a text at all. A multiple of four, for `detect`."""

_MENTION = re.compile(r"""(?<![\w@/\\.])@(?:"(?P<quoted>[^"\n]+)"|(?P<plain>[^\s"'`,;()<>|]+))""")
_LINES = re.compile(r"^(?P<path>.+?):(?P<first>\d+)(?:-(?P<last>\d+))?$")


@dataclass(frozen=True, slots=True)
class Mention:
    """A candidate for a file, as written after `@`."""

    path: str
    first: int | None = None
    """The first line that is wanted, from 1; `None` for the whole file."""
    last: int | None = None


def mentions(text: str) -> tuple[Mention, ...]:
    """Return the distinct `@` mentions of `text`, in order: `@a.py`, `@"my file"`, `@a.py:3-9`."""
    found = (_mention(match["quoted"] or match["plain"]) for match in _MENTION.finditer(text))
    return tuple(dict.fromkeys(found))


class Attachments:
    """Reads what a prompt mentions."""

    def __init__(self, paths: PathPolicy, tracker: ReadTracker | None = None) -> None:
        """Prepare; `tracker` notes what the model gets to see."""
        self._paths = paths
        self._tracker = tracker or ReadTracker()

    async def load(self, text: str, *, permit: Permit) -> tuple[Part, ...]:
        """Return the prompt `text` as a part, followed by one part for each file it mentions.

        A file that cannot be attached is answered with a note in its place, so that the
        model and the reader know.
        """
        found = await anyio.to_thread.run_sync(self._find_all, text, abandon_on_cancel=True)
        return (Text(text), *[await self._attach(*hit, permit) for hit in found])

    def _find_all(self, text: str) -> list[tuple[Target, Mention]]:
        return [hit for mention in mentions(text) if (hit := self._find(mention)) is not None]

    def _find(self, mention: Mention) -> tuple[Target, Mention] | None:
        """Return the file that `mention` names, without trailing punctuation if need be."""
        for wanted in _readings(mention):
            try:
                target = self._paths.resolve(wanted.path)
                is_file = target.path.is_file()
            except (ToolError, OSError):
                continue
            if is_file:
                return target, wanted
        return None

    async def _attach(self, target: Target, mention: Mention, permit: Permit) -> Part:
        try:
            request = self._paths.read_request(target, call_id="", tool="attach", action="read")
            await permit(request)
            data = await anyio.to_thread.run_sync(_read, target.path, abandon_on_cancel=True)
            if media_type_of(data) in MEDIA_TYPES:
                return (await admit(data, name=target.shown)).media
            return self._noted(_text_part(data, target.shown, mention), target.path, data, mention)
        except (ToolError, OSError) as error:
            return Text(f"[@{target.shown} could not be attached: {error}]")

    def _noted(self, part: Text, path: Path, data: bytes, mention: Mention) -> Text:
        """Return `part`, once it is noted which lines of the file at `path` it shows."""
        text = data.decode(errors="replace")
        # Of a text that is cut it is not known where: it has to be viewed before it is changed.
        if len(data) <= MAX_TEXT_BYTES and without_base64(text) == text:
            lines = EVERY_LINE
            if mention.first is not None and mention.last is not None:
                lines = LineSet.of([(mention.first - 1, mention.last)])
            self._tracker.record(path, data, lines)
        return part


def _mention(text: str) -> Mention:
    lines = _LINES.match(text)
    if lines is None:
        return Mention(text)
    first = int(lines["first"])
    return Mention(lines["path"], first, int(lines["last"] or first))


def _readings(mention: Mention) -> Iterator[Mention]:
    """Yield `mention` as written, then without the punctuation of the sentence it ends."""
    yield mention
    stripped = mention.path.rstrip(".:!?*_]}")
    if stripped != mention.path and mention.first is None:
        yield _mention(stripped)


def _read(path: Path) -> bytes:
    descriptor = open_real(path)
    with os.fdopen(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise ToolError("it is no regular file")
        head = file.read(_HEAD_BYTES)
        is_media = media_type_of(head) in MEDIA_TYPES
        return head + file.read(MAX_FILE_BYTES + 1 - len(head)) if is_media else head


def _text_part(data: bytes, shown: str, mention: Mention) -> Text:
    text_format = detect(data, is_head=len(data) == _HEAD_BYTES)
    if text_format is None:
        raise ToolError("it is a binary file")
    return Text(_inlined(decode(data, text_format), shown, mention))


def _inlined(text: str, shown: str, mention: Mention) -> str:
    """Return `text` between fences that it cannot close, with a heading that names it."""
    where = shown
    if mention.first is not None and mention.last is not None:
        lines = text.splitlines(keepends=True)[mention.first - 1 : mention.last]
        text, where = "".join(lines), f"{shown}, lines {mention.first}-{mention.last}"
    text, note = without_base64(text), ""
    if len(text) > MAX_TEXT_BYTES:
        text, note = text[:MAX_TEXT_BYTES], "\n[cut here: view the file for the rest]"
    longest = max((len(run) for run in re.findall(r"`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"The file {where}:\n{fence}\n{text.rstrip()}\n{fence}{note}"
