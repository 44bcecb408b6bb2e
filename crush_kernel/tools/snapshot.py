"""A text file as it was at one moment, and whether the model knows enough of it to change it.

A place may be changed once its lines were shown, and a file replaced once all of it was. What
others have changed since is told, if it is short; then the model knows it.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from crush_kernel.errors import ToolError
from crush_kernel.files.textfile import TextFormat, decode, detect, shown
from crush_kernel.tools.notebook.text import SUFFIX, NoNotebook, listing, read_notebook
from crush_kernel.tools.paths import Target
from crush_kernel.tools.text.diff import Diff, unified_diff
from crush_kernel.tools.text.lineset import EVERY_LINE, NO_LINE, LineChange, LineSet
from crush_kernel.tools.tracker import WHOLE, FileState, Knowledge, ReadTracker, Stamp

MAX_CHANGES = 6_000
"""Bytes of a diff that a tool result shows the model."""

MAX_VIEWED = 2_000
"""Lines that a refusal tells to view in one go."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A place where a text file is, or can be, as it was at one moment."""

    target: Target
    data: bytes | None
    """The bytes of the file, or `None` if there is none."""
    text: str
    """What they say; empty if there is no file."""
    text_format: TextFormat
    known: Knowledge
    """What the model knows of this content; all if there is none to know. The lines are those
    of the text as it is."""
    notes: tuple[str, ...]
    """What one should know before and after it is replaced, one line each."""

    @property
    def state(self) -> FileState:
        """Return whether the model knows this content, or some of it."""
        return self.known.state


def is_called_notebook(target: Target) -> bool:
    """Return whether `target` is named like a notebook."""
    return target.path.suffix.lower() == SUFFIX


def knowledge(
    tracker: ReadTracker, target: Target, data: bytes, text: str, stamp: Stamp
) -> Knowledge:
    """Return what the model knows of `target`, which says `text`."""
    if not data:
        return WHOLE
    known = tracker.knowledge(target.path, data, stamp)
    if known.state != "stale" or known.lines.has_all:
        return known
    changes = _difference(tracker, target, text)
    lines = NO_LINE if changes is None else known.lines.changed(changes.lines, adds=False)
    return replace(known, lines=lines)


def require_seen(tracker: ReadTracker, before: Snapshot) -> None:
    """Refuse to replace what the model has not seen as it is now, and all of it.

    Raises:
        ToolError: the file was not viewed yet, or only in part, or has changed since.
    """
    if before.state == "unread":
        raise unread(before)
    if before.state == "stale":
        raise changed_since(tracker, before)
    if not before.known.is_whole:
        raise ToolError(_seen_in_part(before))


def unread(before: Snapshot) -> ToolError:
    """Return the error for a file that the model has not seen; it tells nothing of it."""
    return ToolError(
        f"{before.target.shown} exists but was not viewed yet, so nothing was written. "
        "View it first."
    )


def unseen(lines: LineSet, changes: Iterable[LineChange]) -> str:
    """Return why `changes` must not be made by who has seen only `lines`; else nothing."""
    missing = LineSet.of(span for change in changes for span in lines.missing(*change.place).spans)
    if not missing.spans:
        return ""
    start, stop = max(0, missing.spans[0].start - 5), missing.spans[-1].stop + 5
    return (
        f"This place was not shown to you yet: {missing}. You have seen {lines}. View it "
        f"(offset={start}, limit={min(stop - start, MAX_VIEWED)}) and repeat the call."
    )


def changed_since(tracker: ReadTracker, before: Snapshot, region: str = "") -> ToolError:
    """Return the error for a file that is not what the model last saw.

    It tells what has changed, if that is known and short, and then that counts as seen; else
    it shows `region`, some of the text as it is now.
    """
    said = (
        f"{before.target.shown} has changed on disk since you last viewed it, so nothing was "
        "written."
    )
    # Outside the project, leave to read was given for what was there then.
    if before.data is None or before.target.is_outside:
        return ToolError(f"{said} View it again.")
    changes = _difference(tracker, before.target, before.text)
    if changes is not None and 0 < len(changes.text.encode()) <= MAX_CHANGES:
        lines = EVERY_LINE if before.known.lines.has_all else before.known.lines | changes.shown
        tracker.record(before.target.path, before.data, lines, has_cut=before.known.has_cut)
        return ToolError(f"{said} Repeat the call with these changes in mind:\n{changes.text}")
    return ToolError(f"{said} View it again.\n{shown(region)}".rstrip())


def _seen_in_part(before: Snapshot) -> str:
    lines = before.text.count("\r" if before.text_format.newline == "\r" else "\n") + 1
    missing = before.known.lines.missing(0, lines)
    said = f"You have seen only a part of {before.target.shown}, so nothing was written."
    if not missing.spans:
        return (
            f"{said} Some of its lines are too long to be shown whole: change it with edit, or "
            "remove it first if nothing of it shall stay."
        )
    start, stop = missing.spans[0].start, missing.spans[-1].stop
    return (
        f"{said} View the rest, {missing} (offset={start}, limit={min(stop - start, MAX_VIEWED)}), "
        "or change it with edit."
    )


def _difference(tracker: ReadTracker, target: Target, text: str) -> Diff | None:
    """Return the diff from what the model saw to `text`, if the former is still known."""
    seen = tracker.seen(target.path)
    seen_format = None if seen is None else detect(seen)
    if seen is None or seen_format is None:
        return None
    old, new = shown(decode(seen, seen_format)), shown(text)
    if is_called_notebook(target):
        try:
            old, new = listing(read_notebook(old)), listing(read_notebook(new))
        except NoNotebook:
            return None
    return unified_diff(target.shown, old, new)
