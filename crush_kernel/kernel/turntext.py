"""What a turn was asked, as its cell says it. Pure."""

from typing import Final

from crush_kernel.history.summary import is_summary
from crush_kernel.history.turn import Turn, source_digest
from crush_kernel.kernel.cells import Prompt, Shell, cell_text
from crush_kernel.messages import ShellCommand, Text

_COMMANDS: Final = {
    source_digest(text): text for text in ("/undo", "/undo force", "/redo", "/redo force")
}
"""Cells whose turns say something else, by the digest of their text."""


def asked(turn: Turn) -> str:
    """Return the text of the cell that made `turn`, as far as its messages tell."""
    if command := _COMMANDS.get(turn.source):
        return command
    prompt = next((message for message in turn.messages if not is_summary(message)), None)
    if prompt is None and turn.messages:
        return "/compact"
    for part in prompt.parts if prompt is not None else ():
        if isinstance(part, Text):
            return cell_text(Prompt(part.text))
        if isinstance(part, ShellCommand):
            return cell_text(Shell(part.command))
    return "/new" if turn.is_start else ""
