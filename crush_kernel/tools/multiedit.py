"""`multiedit`: several replacements in one text file, all of them or none.

Each edit works on what the ones before it have made. An edit that fails is left out while the
rest is tried, so that the answer can say of each edit what became of it; but then nothing is
written, and the model repeats the call with what it has corrected.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated

from anyio.to_thread import run_sync
from pydantic import BaseModel, ConfigDict, Field, WithJsonSchema

from crush_kernel.errors import ToolError
from crush_kernel.files.textfile import shown
from crush_kernel.tools.base import (
    QUICK_S,
    Arguments,
    Tool,
    ToolContext,
    ToolOutput,
    description_of,
    limit_output,
)
from crush_kernel.tools.edit import REINDENTED, STALE, is_safe_on_stale, places
from crush_kernel.tools.filechange import Files, Proposal, require_text
from crush_kernel.tools.snapshot import Snapshot, changed_since, unread, unseen
from crush_kernel.tools.text.lineset import EVERY_LINE, LineSet
from crush_kernel.tools.text.replacement import Rejected, Replaced, replace_text
from crush_kernel.wording import counted

MAX_EDITS = 200
"""In one call; more are a program's work."""

_MAX_REASON = 1_500
"""Bytes that the answer spends on what is wrong with one edit."""

_MAX_REASONS = 12_000
"""Bytes that it spends on all of them."""


class SingleEdit(BaseModel):
    """One replacement."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    old_string: str = Field(description="The exact text to replace.")
    new_string: str = Field(description="The text to put in its place. Empty to delete it.")
    replace_all: bool = Field(
        default=False, description="Replace every place instead of the only one."
    )


_Edit = Annotated[SingleEdit, WithJsonSchema(SingleEdit.model_json_schema())]
"""With its schema in place: not every server of models follows a reference."""


class MultieditArguments(Arguments):
    """What `multiedit` is asked to do."""

    file_path: str = Field(description="The file to change, relative to the working directory.")
    edits: tuple[_Edit, ...] = Field(
        min_length=1,
        max_length=MAX_EDITS,
        description="The replacements, in the order in which they are made.",
    )


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of the edits, each of them tried on what the ones before had made."""

    text: str
    """With all that fit."""
    results: tuple[Replaced | Rejected, ...]
    """One for each edit."""
    seen: LineSet
    """The lines of the text that are known, as they were or as they were made."""

    @property
    def failures(self) -> int:
        """Return how many edits do not fit."""
        return sum(isinstance(result, Rejected) for result in self.results)

    @property
    def is_guess(self) -> bool:
        """Return whether a place was found only by other whitespace."""
        return any(isinstance(each, Replaced) and each.is_reindented for each in self.results)


def multiedit_tool(files: Files) -> Tool[MultieditArguments]:
    """Return the tool, which changes `files`."""

    async def run(arguments: MultieditArguments, context: ToolContext) -> ToolOutput:
        for number, edit in enumerate(arguments.edits, 1):
            require_text(f"old_string of edit {number}", edit.old_string)
            require_text(f"new_string of edit {number}", edit.new_string)
        before = await files.load(arguments.file_path)
        proposal = await run_sync(_propose, files, before, arguments.edits, abandon_on_cancel=True)
        return await files.change(before, proposal, context, tool="multiedit")

    return Tool(
        name="multiedit",
        description=description_of("multiedit", {"edits": MAX_EDITS}),
        arguments=MultieditArguments,
        run=run,
        timeout_s=QUICK_S,
        describe=lambda arguments: (
            f"{files.describe(arguments.file_path)}, {counted(len(arguments.edits), 'edit')}"
        ),
    )


def apply_all(
    text: str, edits: tuple[SingleEdit, ...], *, exists: bool, seen: LineSet = EVERY_LINE
) -> Outcome:
    """Return what `edits` make of `text`, one after the other.

    Args:
        text: of the file.
        edits: what to replace.
        exists: whether there is a file; if not, the first edit has to make it.
        seen: the lines that may be changed.
    """
    results: list[Replaced | Rejected] = []
    for position, edit in enumerate(edits):
        result = _apply(text, edit, is_first=position == 0, exists=exists)
        if isinstance(result, Replaced) and (refusal := unseen(seen, result.changes)):
            result = Rejected(refusal)
        results.append(result)
        if isinstance(result, Replaced):
            text, exists = result.text, True
            seen = seen.changed(result.changes, adds=True)
    return Outcome(text, tuple(results), seen)


def _apply(text: str, edit: SingleEdit, *, is_first: bool, exists: bool) -> Replaced | Rejected:
    if not exists:
        if edit.old_string or not is_first:
            return Rejected(
                "The file does not exist. Check the path, or leave old_string of the first edit "
                "empty to create it."
            )
        return Replaced(edit.new_string, count=1, line=1, changes=())
    if not edit.old_string and not is_first:
        return Rejected("old_string is empty, which only the first edit may be, to create a file.")
    return replace_text(text, edit.old_string, edit.new_string, replace_all=edit.replace_all)


def _propose(files: Files, before: Snapshot, edits: tuple[SingleEdit, ...]) -> Proposal:
    """Return what `edits` make of `before`.

    Raises:
        ToolError: one of them does not fit, or all together change nothing; nothing of the
            file's content is told unless it was seen.
    """
    if before.state == "unread":
        raise unread(before)
    outcome = apply_all(before.text, edits, exists=before.data is not None, seen=before.known.lines)
    if before.state == "stale" and not _are_safe_on_stale(outcome, edits):
        reasons = (each.reason for each in outcome.results if isinstance(each, Rejected))
        raise changed_since(files.tracker, before, next(reasons, ""))
    if outcome.failures:
        raise ToolError(shown(_refusal(before, outcome)))
    if before.data is not None and outcome.text == before.text:
        raise ToolError(
            f"{before.target.shown}: the edits undo each other, so nothing would change."
        )
    what = counted(len(edits), "edit")
    return Proposal(
        outcome.text,
        verb="create" if before.data is None else f"make {what} in",
        report=_report(before, outcome),
        is_guess=outcome.is_guess,
        seen=outcome.seen,
    )


def _are_safe_on_stale(outcome: Outcome, edits: tuple[SingleEdit, ...]) -> bool:
    return all(
        is_safe_on_stale(result, replace_all=edit.replace_all)
        for result, edit in zip(outcome.results, edits, strict=True)
    )


def _refusal(before: Snapshot, outcome: Outcome) -> str:
    head = (
        f"{before.target.shown}: nothing was written, because {outcome.failures} of "
        f"{counted(len(outcome.results), 'edit')} failed. Correct what failed and send all "
        "edits again."
    )
    reasons = "\n".join(_lines(outcome))
    return f"{head}\n{limit_output(reasons, max_bytes=_MAX_REASONS)}"


def _lines(outcome: Outcome) -> Iterator[str]:
    """Yield what became of each edit; the failures first, as they are what is to be read."""
    results = tuple(enumerate(outcome.results, 1))
    for number, result in results:
        if isinstance(result, Rejected):
            yield f"edit {number} failed: {limit_output(result.reason, max_bytes=_MAX_REASON)}"
    for number, result in results:
        if isinstance(result, Replaced):
            yield f"edit {number} fits: it would have {places(result)}"


def _report(before: Snapshot, outcome: Outcome) -> str:
    done = [each for each in outcome.results if isinstance(each, Replaced)]
    report = "created" if before.data is None else f"made {counted(len(done), 'edit')}"
    if before.data is not None:
        report += "".join(f"\n{number}: {places(each)}" for number, each in enumerate(done, 1))
    guessed = [str(number) for number, each in enumerate(done, 1) if each.is_reindented]
    if guessed:
        report += f". In edit {', '.join(guessed)} {REINDENTED}; check the result below"
    if before.state == "stale":
        report += STALE.format(touched="only these places were")
    return report
