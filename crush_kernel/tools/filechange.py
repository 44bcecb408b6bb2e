"""The one way from a proposed text to a changed file, for every tool that writes.

A tool loads a `Snapshot`, computes a `Proposal` from it and hands both to `Files.change`.
That asks for permission with the diff, looks at the file once more, since the question may
have been open for long, and replaces it at once. Until then nothing is touched, not even to
make a folder.
"""

import os
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path

from anyio.to_thread import run_sync

from crush_kernel.errors import ToolError
from crush_kernel.files.names import printable
from crush_kernel.files.opening import is_real
from crush_kernel.files.textfile import (
    NEW_FILE,
    detect_and_decode,
    encode,
    has_undecoded_bytes,
    shown,
)
from crush_kernel.tools.base import KeepVersion, ToolContext, ToolOutput, limit_output
from crush_kernel.tools.diskfile import MAX_EDIT_BYTES, read_file, replace_file, require_writable
from crush_kernel.tools.notebook.openpage import NotebookDesk
from crush_kernel.tools.notebook.text import NoNotebook, read_notebook
from crush_kernel.tools.paths import PathPolicy, Target
from crush_kernel.tools.snapshot import (
    MAX_CHANGES,
    Snapshot,
    is_called_notebook,
    knowledge,
    require_seen,
)
from crush_kernel.tools.text.diff import Diff, unified_diff
from crush_kernel.tools.text.lineset import EVERY_LINE, LineSet
from crush_kernel.tools.tracker import WHOLE, ReadTracker

MAX_NOTEBOOK_BYTES = 50_000_000
"""The largest notebook that is changed: it is outputs for the most part, which are not compared."""

NOTEBOOK_TOOL = "notebook_edit"
"""What changes the cells of notebooks; the other tools change text only."""

Comment = Callable[[Path], Awaitable[str]]
"""Called with the real path of a file; what it returns is added to the result. It bounds by
itself how long it takes."""

OpenNotebook = Callable[[], Path | None]
"""Tells where the notebook is whose cells run now; `None` if nobody knows."""


def no_notebook() -> Path | None:
    """Know of no notebook."""
    return None


async def say_nothing(path: Path) -> str:  # noqa: ARG001 - a `Comment`
    """Return no words about `path`."""
    return ""


@dataclass(frozen=True, slots=True)
class Proposal:
    """What a tool wants to make of a `Snapshot`."""

    text: str
    """The whole text, in the newlines it is to have."""
    verb: str
    """What that is, to go before the path: `edit`."""
    report: str
    """What was done, for the model, to go after the path: `replaced 1 place, on line 3`."""
    is_guess: bool = False
    """Whether the model should look at what came out of it."""
    seen: LineSet = EVERY_LINE
    """Which lines of the text the model knows, since it was shown or has written them."""
    compared: tuple[str | None, str] | None = None
    """What people compare instead of the texts, before and after; `None` before is no file."""


@dataclass(frozen=True, slots=True)
class Files:
    """Loads and changes files under one path policy, remembering what the model has seen."""

    paths: PathPolicy
    tracker: ReadTracker = field(default_factory=ReadTracker)
    after_write: Comment = say_nothing
    """Has something to say of text that was written."""
    notebook: OpenNotebook = no_notebook
    after_read: Comment = say_nothing
    """Has something to say of text that was viewed."""
    desk: NotebookDesk = field(default_factory=NotebookDesk)
    """Where the page is that shows `notebook`."""

    async def load(self, file_path: str, *, by_cells: bool = False) -> Snapshot:
        """Return what is at `file_path` now.

        Args:
            file_path: as the model wrote it.
            by_cells: whether it is to be changed as a notebook and not as text.

        Raises:
            ToolError: it is no text file of a size to edit, or it cannot be written, or it is
                the notebook that is open, or a notebook that is to be changed as text.
        """
        before = await run_sync(self._load, file_path, abandon_on_cancel=True)
        if not by_cells:
            await run_sync(_require_no_notebook, before, abandon_on_cancel=True)
        return before

    def _load(self, file_path: str) -> Snapshot:
        target = self.paths.resolve(file_path)
        self._require_other_than_the_notebook(target)
        limit = MAX_NOTEBOOK_BYTES if is_called_notebook(target) else MAX_EDIT_BYTES
        file = read_file(target.path, max_bytes=limit)
        require_writable(target.path)
        notes = _link_notes(file_path, target, self.paths.cwd)
        if file is None:
            return Snapshot(target, None, "", NEW_FILE, WHOLE, (*notes, *_folder_notes(target)))
        if (decoded := detect_and_decode(file.data)) is None:
            raise ToolError(
                f"{target.shown} is a binary file of {len(file.data)} bytes; only text can be "
                "edited here."
            )
        if file.hard_links > 1:
            notes += (f"{file.hard_links} hard links: the other names keep the old content",)
        return Snapshot(
            target=target,
            data=file.data,
            text=decoded.text,
            text_format=decoded.format,
            known=knowledge(self.tracker, target, file.data, decoded.text, file.stamp),
            notes=notes,
        )

    def is_open_notebook(self, target: Target) -> bool:
        """Return whether `target` is the notebook whose cells run."""
        return is_at(self.notebook, target.path)

    def _require_other_than_the_notebook(self, target: Target) -> None:
        """Refuse to write behind the back of the front end, which has unsaved work of its own."""
        if self.is_open_notebook(target):
            raise ToolError(
                f"{target.shown} is the notebook in which you run. It is open: what is written "
                "to its file would be lost or would undo what is not saved yet, so nothing was "
                f"written. {NOTEBOOK_TOOL} changes its cells."
            )

    async def change(
        self, before: Snapshot, proposal: Proposal, context: ToolContext, *, tool: str
    ) -> ToolOutput:
        """Make the file what `proposal` says, once it is permitted.

        Cancelled, it leaves the file either untouched or changed as a whole.

        Raises:
            PermissionDenied: the answer is no; nothing was written.
            ToolError: the text does not fit the file's encoding, the file changed while the
                question was open, or it cannot be written; nothing was written.
        """
        target = before.target
        data = _encoded(proposal.text, before)
        if before.data is None and is_called_notebook(target):
            await run_sync(_require_notebook, target, proposal.text, abandon_on_cancel=True)
        diff = await run_sync(_diff, before, proposal, abandon_on_cancel=True)
        await context.permit(
            self.paths.write_request(
                target,
                call_id=context.call_id,
                tool=tool,
                title=f"{proposal.verb} {target.shown}",
                diff=diff.text,
                notes=before.notes,
            )
        )
        async with self.tracker.lock(target.path):
            # Once begun it is finished, whoever has lost interest.
            await run_sync(self._commit, before, data, proposal.seen, context.keep_version)
        return await self._output(before, proposal, diff)

    def _commit(
        self, before: Snapshot, data: bytes, seen: LineSet, keep_version: KeepVersion
    ) -> None:
        """Replace the file if it still is what `before` says; in one go, in one thread."""
        target = before.target
        limit = MAX_NOTEBOOK_BYTES if is_called_notebook(target) else MAX_EDIT_BYTES
        file = read_file(target.path, max_bytes=limit)
        is_same = (file.data if file else None) == before.data
        if not is_same or not is_real(target.path):
            raise ToolError(
                f"{target.shown} was changed by something else in the meantime, so nothing was "
                "written. View it again and repeat the call."
            )
        keep_version(target.path, before.data, data)
        try:
            replace_file(target.path, data)
        except BaseException:
            keep_version(target.path, data, before.data)  # it is as it was
            raise
        # Of a stale file, what others changed is still unknown to the model.
        if before.state == "fresh":
            self.tracker.record(target.path, data, seen, has_cut=before.known.has_cut)

    async def _output(self, before: Snapshot, proposal: Proposal, diff: Diff) -> ToolOutput:
        encoding = before.text_format.encoding
        said = (
            f"{before.target.shown}: {proposal.report}.",
            f"Its encoding, {encoding}, was kept." if encoding != "utf-8" else "",
            *(f"Note: {note}." for note in before.notes),
            limit_output(diff.text, max_bytes=MAX_CHANGES) if proposal.is_guess else "",
            await self.after_write(before.target.path),
        )
        return ToolOutput(
            "\n".join(filter(None, said)),
            summary=diff.summary,
            diff=diff.text,
            metadata={"additions": diff.additions, "removals": diff.removals},
        )

    def require_seen(self, before: Snapshot) -> None:
        """Refuse to replace what the model has not seen as it is now, and all of it.

        Raises:
            ToolError: the file was not viewed yet, or only in part, or has changed since.
        """
        require_seen(self.tracker, before)

    def describe(self, file_path: str) -> str:
        """Return `file_path` as a person should see it."""
        # The disk is not asked: a call is shown before it is known whether the disk answers.
        return self.paths.named(file_path)


def require_text(name: str, text: str) -> None:
    """Refuse an argument that no text file can hold.

    Raises:
        ToolError: there is a NUL or a lone surrogate in `text`.
    """
    if "\0" in text:
        raise ToolError(f"{name} contains a NUL character (U+0000). Leave it out.")
    if has_undecoded_bytes(text):
        raise ToolError(
            f"{name} contains half a character (a lone surrogate). Write the whole character."
        )


def _require_no_notebook(before: Snapshot) -> None:
    """Refuse to change a notebook as text; one that is damaged can be mended that way."""
    if before.data is None or not is_called_notebook(before.target):
        return
    try:
        read_notebook(before.text)
    except NoNotebook:
        return
    raise ToolError(
        f"{before.target.shown} is a notebook, so nothing was written: change its cells with "
        f"{NOTEBOOK_TOOL}. View it for their ids."
    )


def _require_notebook(target: Target, text: str) -> None:
    """Refuse to make a notebook that nothing could open."""
    try:
        read_notebook(text)
    except NoNotebook as error:
        raise ToolError(
            f"{target.shown} would be no notebook: {error}. Nothing was written. Insert its "
            f"first cell with {NOTEBOOK_TOOL}, which makes the file."
        ) from error


def is_at(notebook: OpenNotebook, path: Path) -> bool:
    """Return whether `notebook` is the one at `path`, a real one."""
    known = notebook()
    return known is not None and _is_same_file(known, path)


def _is_same_file(one: Path, other: Path) -> bool:
    try:
        return one.samefile(other)
    except OSError:  # one of them does not exist yet
        return Path(os.path.realpath(one)) == other


def _encoded(text: str, before: Snapshot) -> bytes:
    is_damaged = has_undecoded_bytes(before.text)
    if is_damaged and text.count("\ufffd") > before.text.count("\ufffd"):
        raise ToolError(
            f"{before.target.shown} has bytes that are not {before.text_format.encoding}; you see "
            "them as U+FFFD, but writing that would destroy them. Edit around them."
        )
    try:
        return encode(text, before.text_format)
    except UnicodeEncodeError as error:
        character = text[error.start]
        raise ToolError(
            f"{before.target.shown} is encoded in {before.text_format.label}, which has no "
            f"{character!r} (U+{ord(character):04X}). Write it without, or convert the file first."
        ) from error


def _diff(before: Snapshot, proposal: Proposal) -> Diff:
    old = None if before.data is None else before.text
    old, new = proposal.compared or (old, proposal.text)
    return unified_diff(before.target.shown, None if old is None else shown(old), shown(new))


def _link_notes(file_path: str, target: Target, cwd: Path) -> tuple[str, ...]:
    is_named_plainly = file_path.startswith("~") or os.path.normpath(cwd / file_path) == str(
        target.path
    )
    return () if is_named_plainly else (f"{printable(file_path)} is a link to it",)


def _folder_notes(target: Target) -> tuple[str, ...]:
    parent = target.path.parent
    return () if parent.exists() else (f"the folder {printable(str(parent))} is made for it",)
