"""The outputs of one turn: segments that are settled, and one live slot, always the last.

A front end gives every output a place when it first sees it and keeps the place for ever.
So when a segment is full, the live slot turns into the next one and a new live slot opens
behind it. Segments grow with the turn: few outputs however long it gets, and what is sent
again for a segment that still grows stays a small multiple of what is shown.

Source: JupyterLab hides all outputs of a cell after the fiftieth.
"""

import re
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from crush_kernel.history.notebook import RECORD_MIME_TYPE
from crush_kernel.kernel import render
from crush_kernel.kernel.render import Rendered
from crush_kernel.kernel.transcript import TAIL_CHARS, Piece, blocks

FIRST_SEGMENT_CHARS = 6000
SEGMENT_GROWTH = 1.2
REST_CHARS = 2000
"""How much of what was said after the last call may stand with the footer."""
MAX_IMAGES = 8
"""Images of one turn that get an output of their own."""
MAX_IMAGES_CHARS = 4_000_000
"""What all of these may come to, in Base64: the notebook's file holds every output."""

_BLANK_LINES = re.compile(r"\n{3,}")

Publish = Callable[[str, dict[str, Any]], None]
"""Sends one IOPub message: its type and content."""


@dataclass(slots=True)
class _Block:
    """Settled pieces that are rendered together."""

    shown: Rendered
    attempt: int
    run: int
    source: str
    is_whole: bool
    size: int
    listed: Rendered | None = None
    is_listed: bool = False


@dataclass(slots=True)
class _Segment:
    """One settled output."""

    display_id: str
    blocks: list[_Block] = field(default_factory=list[_Block])
    is_open: bool = True
    is_sent: bool = True

    @property
    def size(self) -> int:
        return sum(block.size for block in self.blocks)

    def is_cut_before(self, piece: Piece) -> bool:
        """Return whether `piece` goes on with a paragraph or a code block."""
        last = self.blocks[-1] if self.blocks else None
        return last is not None and not last.is_whole and bool(piece.run) and last.run == piece.run

    def add(self, piece: Piece) -> None:
        self.is_sent = False
        if self.is_cut_before(piece):
            last = self.blocks[-1]
            last.source += piece.source
            last.shown = render.reply(last.source)
            last.is_whole = piece.is_whole
            last.size += piece.size
            return
        source = f"{piece.opener}\n{piece.source}" if piece.opener else piece.source
        self.blocks.append(
            _Block(
                piece.shown,
                piece.attempt,
                piece.run,
                source,
                piece.is_whole,
                piece.size,
                piece.listed,
                piece.is_listed,
            )
        )

    def shown(self) -> Rendered:
        """Return what it shows, the same however the stream was cut into blocks."""
        plain: list[str] = []
        run = 0
        for block in self.blocks:
            if text := _visible(block).plain:
                is_same = bool(run) and block.run == run
                plain += ["\n\n" if is_same else "\n"] if plain else []
                plain.append(text)
                run = block.run
        markdown = joined([*map(_visible, self.blocks)]).markdown
        return Rendered(markdown, _BLANK_LINES.sub("\n\n", "".join(plain)))


class Slots:
    """Publishes the outputs of one turn; nothing is sent that has not changed."""

    def __init__(self, publish: Publish) -> None:
        self._publish = publish
        self._segments: list[_Segment] = []
        self._spare: list[str] = []
        """Outputs that were emptied again and stand before the live slot."""
        self._pending: list[Piece] = []
        """Settled, but still shown in the live slot."""
        self._said = 0
        """How much was said after the last call, in characters."""
        self._live = ""
        self._live_content: dict[str, Any] = {}
        self._known: set[str] = set()
        self._images = 0
        self._image_chars = 0

    def keep(self, pieces: Sequence[Piece]) -> None:
        """Take over what is settled; it is shown at the next `show` or `finish`."""
        for piece in pieces:
            if piece.listed is not None:
                self._unlist()
            self._pending.append(piece)
            self._said = 0 if _is_landmark(piece) else self._said + piece.size

    def show(self, live: Sequence[Rendered], *, view: dict[str, object] | None = None) -> None:
        """Bring the outputs up to date.

        Args:
            live: what may still change, for the live slot.
            view: a widget to show in its place, for which `live` is the fallback.
        """
        self._send_changed()
        if view is not None:
            self._commit(len(self._pending))
        elif self._shown_size() + _size(live) > TAIL_CHARS:
            self._commit(self._landmarks())
            if sum(piece.size for piece in self._pending) > REST_CHARS:
                self._commit(len(self._pending))
        shown = joined([*map(_visible, self._pending), *live])
        data: dict[str, object] = {"text/markdown": shown.markdown}
        if view is None:
            self._send_live(data, {})
        elif any(self._live_content.get("data", {}).get(key) != view[key] for key in view):
            self._send_live(
                {**data, "text/plain": shown.plain, **view}, {"crush": {"pending": True}}
            )

    def drop(self, attempt: int) -> None:
        """Take back everything that is shown of the reply `attempt`."""
        self._pending = [piece for piece in self._pending if piece.attempt != attempt]
        self._said = sum(piece.size for piece in self._pending[self._landmarks() :])
        for segment in self._segments:
            kept = [block for block in segment.blocks if block.attempt != attempt]
            if len(kept) < len(segment.blocks):
                segment.blocks, segment.is_sent = kept, False
        emptied: list[str] = []
        while self._segments and not self._segments[-1].is_sent:
            last = self._segments[-1]
            self._send_segment(last)
            if last.blocks:
                last.is_open = True
                break
            emptied.insert(0, self._segments.pop().display_id)
        self._spare = [*emptied, *self._spare]
        self._send_changed()

    def finish(self, last: Sequence[Rendered], record: Mapping[str, object] | None = None) -> None:
        """Show the final state, without a widget, with `last` at its end and `record` beside it.

        What stands in which output depends on what was said and done alone, and not on how
        fast: the same turn is to make the same notebook.
        """
        self._commit(len(self._pending) if self._said > REST_CHARS else self._landmarks())
        self._list_last()
        rest = _Segment("")
        for piece in self._pending:
            rest.add(piece)
        self._pending = []
        data: dict[str, object] = {**joined([rest.shown(), *last]).bundle()}
        self._send_live(data if record is None else {**data, RECORD_MIME_TYPE: record}, {})

    def _unlist(self) -> None:
        """Have no call show the list of what is to do: a later one has set it."""
        self._pending = [replace(each, is_listed=False) for each in self._pending]
        for segment in self._segments:
            for block in segment.blocks:
                if block.is_listed:
                    block.is_listed, segment.is_sent = False, False

    def _list_last(self) -> None:
        """Have the call show the list that has set it last; all calls are in segments."""
        for segment in reversed(self._segments):
            for block in reversed(segment.blocks):
                if block.listed is not None:
                    segment.is_sent = segment.is_sent and block.is_listed
                    block.is_listed = True
                    self._send_changed()
                    return

    def _shown_size(self) -> int:
        if any(piece.images for piece in self._pending):
            return TAIL_CHARS + 1
        return sum(len(piece.shown.markdown) for piece in self._pending)

    def _landmarks(self) -> int:
        """Return how many pieces there are up to the last call."""
        places = (place for place, piece in enumerate(self._pending, 1) if _is_landmark(piece))
        return max(places, default=0)

    def _commit(self, count: int) -> None:
        """Move the first `count` pieces of what is settled from the live slot into segments."""
        for piece in self._pending[:count]:
            if piece.shown.markdown:
                self._add(piece)
            for image in piece.images:
                self._add_image(render.image_bundle(image))
        del self._pending[:count]
        self._send_changed()

    def _add(self, piece: Piece) -> None:
        segment = self._open_segment()
        is_split = bool(piece.run) and segment.size + piece.size >= self._limit()
        for block in blocks(piece) if is_split else (piece,):
            limit = self._limit() * (3 if segment.is_cut_before(block) else 1)
            if segment.size >= limit:
                self._close(segment)
                segment = self._open_segment()
            segment.add(block)

    def _limit(self) -> float:
        """Return how much goes into the open segment."""
        closed = sum(not each.is_open for each in self._segments)
        return FIRST_SEGMENT_CHARS * SEGMENT_GROWTH**closed

    def _open_segment(self) -> _Segment:
        last = self._segments[-1] if self._segments else None
        return last if last is not None and last.is_open else self._new_segment()

    def _close(self, segment: _Segment) -> None:
        segment.is_open = False
        if not segment.is_sent:
            self._send_segment(segment)

    def _add_image(self, bundle: dict[str, str] | None) -> None:
        if bundle is None:
            return
        self._images += 1
        size = max(map(len, bundle.values()))
        if self._images > MAX_IMAGES or self._image_chars + size > MAX_IMAGES_CHARS:
            self._add(Piece(render.notice(f"{bundle['text/plain']} (not shown)")))
            return
        self._image_chars += size
        if self._segments and self._segments[-1].is_open:
            self._close(self._segments[-1])
        segment = self._new_segment()
        segment.is_open, segment.is_sent = False, True
        self._send(segment.display_id, dict(bundle), {})

    def _new_segment(self) -> _Segment:
        """Open the next segment: in an emptied output, in the live slot, or behind all."""
        if self._spare:
            display_id = self._spare.pop(0)
        elif self._live:
            display_id, self._live, self._live_content = self._live, "", {}
        else:
            display_id = uuid.uuid4().hex
        segment = _Segment(display_id)
        self._segments.append(segment)
        return segment

    def _send_changed(self) -> None:
        for segment in self._segments:
            if not segment.is_sent:
                self._send_segment(segment)

    def _send_segment(self, segment: _Segment) -> None:
        segment.is_sent = True
        self._send(segment.display_id, dict(segment.shown().bundle()), {})

    def _send_live(self, data: dict[str, object], metadata: dict[str, object]) -> None:
        content = {"data": data, "metadata": metadata}
        is_empty = not data["text/markdown"] and len(data) <= 2
        if content == self._live_content or (is_empty and not self._live):
            return
        self._live = self._live or uuid.uuid4().hex
        self._live_content = content
        self._send(self._live, data, metadata)

    def _send(self, display_id: str, data: dict[str, object], metadata: dict[str, object]) -> None:
        is_known = display_id in self._known
        self._known.add(display_id)
        self._publish(
            "update_display_data" if is_known else "display_data",
            {"data": data, "metadata": metadata, "transient": {"display_id": display_id}},
        )


def joined(parts: Sequence[Rendered]) -> Rendered:
    """Return `parts` as one, with blank lines between them."""
    return Rendered(
        "\n\n".join(part.markdown for part in parts if part.markdown),
        "\n".join(part.plain for part in parts if part.plain),
    )


def _visible(what: Piece | _Block) -> Rendered:
    """Return how `what` is to be shown now."""
    return what.listed if what.is_listed and what.listed is not None else what.shown


def _is_landmark(piece: Piece) -> bool:
    """Return whether what follows `piece` begins another output in the end."""
    return piece.is_call or bool(piece.images)


def _size(parts: Iterable[Rendered]) -> int:
    return sum(len(part.markdown) for part in parts)
