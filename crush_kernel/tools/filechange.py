"""The one way from a proposed text to a changed file, for every tool that writes.

A tool loads a `Snapshot`, computes a `Proposal` from it and hands both to `Files.change`.
That asks for permission with the diff, looks at the file once more, since the question may
have been open for long, and replaces it at once. Until then nothing is touched, not even to
make a folder.
"""

import os
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

from anyio.to_thread import run_sync

from crush_kernel.errors import ToolError
from crush_kernel.files.names import printable
from crush_kernel.files.textfile import (
    NEW_FILE,
    TextFormat,
    decode,
    detect,
    encode,
    has_undecoded_bytes,
    shown,
)
from crush_kernel.permissions.rules import PermissionRequest
from crush_kernel.tools.base import KeepVersion, ToolContext, ToolOutput, limit_output
from crush_kernel.tools.diskfile import MAX_EDIT_BYTES, read_file, replace_file, require_writable
from crush_kernel.tools.notebooktext import SUFFIX, NoNotebook, listing, read_notebook
from crush_kernel.tools.paths import PathPolicy, Target
from crush_kernel.tools.textdiff import Diff, unified_diff
from crush_kernel.tools.tracker import FileState, ReadTracker

_MAX_CHANGES = 6_000
"""Bytes of a diff that a tool result shows the model."""

MAX_NOTEBOOK_BYTES = 50_000_000
"""The largest notebook that is changed: it is outputs for the most part, which are not compared."""

NOTEBOOK_TOOL = "notebook_edit"
"""What changes the cells of notebooks; the other tools change text only."""

AfterWrite = Callable[[Path], Awaitable[str]]
"""Called with the real path of every file written; what it returns is added to the result."""

OpenNotebook = Callable[[], Path | None]
"""Tells where the notebook is whose cells run now; `None` if nobody knows."""


def no_notebook() -> Path | None:
    """Know of no notebook."""
    return None


async def say_nothing(path: Path) -> str:  # noqa: ARG001 - an `AfterWrite`
    """Return no words about `path`."""
    return ""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A place where a text file is, or can be, as it was at one moment."""

    target: Target
    data: bytes | None
    """The bytes of the file, or `None` if there is none."""
    text: str
    """What they say; empty if there is no file."""
    text_format: TextFormat
    state: FileState
    """Whether the model knows this content; `fresh` if there is none to know."""
    notes: tuple[str, ...]
    """What one should know before and after it is replaced, one line each."""


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
    compared: tuple[str | None, str] | None = None
    """What people compare instead of the texts, before and after; `None` before is no file."""


@dataclass(frozen=True, slots=True)
class Files:
    """Loads and changes files under one path policy, remembering what the model has seen."""

    paths: PathPolicy
    tracker: ReadTracker
    after_write: AfterWrite = say_nothing
    notebook: OpenNotebook = no_notebook

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
            return Snapshot(target, None, "", NEW_FILE, "fresh", (*notes, *_folder_notes(target)))
        if (text_format := detect(file.data)) is None:
            raise ToolError(
                f"{target.shown} is a binary file of {len(file.data)} bytes; only text can be "
                "edited here."
            )
        if file.hard_links > 1:
            notes += (f"{file.hard_links} hard links: the other names keep the old content",)
        return Snapshot(
            target=target,
            data=file.data,
            text=decode(file.data, text_format),
            text_format=text_format,
            state=self.tracker.state_of(target.path, file.data) if file.data else "fresh",
            notes=notes,
        )

    def _require_other_than_the_notebook(self, target: Target) -> None:
        """Refuse to write behind the back of the front end, which has unsaved work of its own."""
        notebook = self.notebook()
        if notebook is not None and _is_same_file(notebook, target.path):
            raise ToolError(
                f"{target.shown} is the notebook in which you run. It is open: what is written "
                "to its file would be lost or would undo what is not saved yet, so nothing was "
                "written. Say in your reply what the user should change in which cell."
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
            PermissionRequest(
                call_id=context.call_id,
                tool=tool,
                action="write",
                title=f"{proposal.verb} {target.shown}",
                paths=(target.path,),
                is_outside=target.is_outside,
                diff=diff.text,
                notes=before.notes,
            )
        )
        async with self.tracker.lock(target.path):
            # Once begun it is finished, whoever has lost interest.
            await run_sync(self._commit, before, data, context.keep_version)
        return await self._output(before, proposal, diff)

    def _commit(self, before: Snapshot, data: bytes, keep_version: KeepVersion) -> None:
        """Replace the file if it still is what `before` says; in one go, in one thread."""
        target = before.target
        limit = MAX_NOTEBOOK_BYTES if is_called_notebook(target) else MAX_EDIT_BYTES
        file = read_file(target.path, max_bytes=limit)
        is_same = (file.data if file else None) == before.data
        if not is_same or Path(os.path.realpath(target.path)) != target.path:
            raise ToolError(
                f"{target.shown} was changed by something else in the meantime, so nothing was "
                "written. View it again and repeat the call."
            )
        keep_version(target.path, before.data, data)
        replace_file(target.path, data)
        # Of a stale file, what others changed is still unknown to the model.
        if before.state == "fresh":
            self.tracker.record(target.path, data)

    async def _output(self, before: Snapshot, proposal: Proposal, diff: Diff) -> ToolOutput:
        encoding = before.text_format.encoding
        said = (
            f"{before.target.shown}: {proposal.report}.",
            f"Its encoding, {encoding}, was kept." if encoding != "utf-8" else "",
            *(f"Note: {note}." for note in before.notes),
            limit_output(diff.text, max_bytes=_MAX_CHANGES) if proposal.is_guess else "",
            await self.after_write(before.target.path),
        )
        return ToolOutput(
            "\n".join(filter(None, said)),
            summary=diff.summary,
            diff=diff.text,
            metadata={"additions": diff.additions, "removals": diff.removals},
        )

    def require_seen(self, before: Snapshot) -> None:
        """Refuse to touch what the model has not seen as it is now.

        Raises:
            ToolError: the file was not viewed yet, or has changed since.
        """
        if before.state == "unread":
            raise unread(before)
        if before.state == "stale":
            raise self.changed_since(before)

    def changed_since(self, before: Snapshot, region: str = "") -> ToolError:
        """Return the error for a file that is not what the model last saw.

        It tells what has changed, if that is known and short, and then the file counts as
        seen; else it shows `region`, some of the text as it is now.
        """
        said = (
            f"{before.target.shown} has changed on disk since you last viewed it, so nothing "
            "was written."
        )
        # Outside the project, leave to read was given for what was there then.
        if before.data is None or before.target.is_outside:
            return ToolError(f"{said} View it again.")
        changes = self._changes(before)
        if 0 < len(changes.encode()) <= _MAX_CHANGES:
            self.tracker.record(before.target.path, before.data)
            return ToolError(f"{said} Repeat the call with these changes in mind:\n{changes}")
        return ToolError(f"{said} View it again.\n{shown(region)}".rstrip())

    def _changes(self, before: Snapshot) -> str:
        """Return the diff from what the model saw to what there is, or nothing."""
        seen = self.tracker.seen(before.target.path)
        seen_format = None if seen is None else detect(seen)
        if seen is None or seen_format is None:
            return ""
        old, new = shown(decode(seen, seen_format)), shown(before.text)
        if is_called_notebook(before.target):
            try:
                old, new = listing(read_notebook(old)), listing(read_notebook(new))
            except NoNotebook:
                return ""
        return unified_diff(before.target.shown, old, new).text

    def describe(self, file_path: str) -> str:
        """Return `file_path` as a person should see it."""
        try:
            return self.paths.resolve(file_path).shown
        except ToolError:
            return printable(file_path)


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


def unread(before: Snapshot) -> ToolError:
    """Return the error for a file that the model has not seen; it tells nothing of it."""
    return ToolError(
        f"{before.target.shown} exists but was not viewed yet, so nothing was written. "
        "View it first."
    )


def is_called_notebook(target: Target) -> bool:
    """Return whether `target` is named like a notebook."""
    return target.path.suffix.lower() == SUFFIX


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
