"""What the tools that start sub-agents have in common: the result for the model. Pure."""

from collections.abc import Iterator
from itertools import dropwhile
from typing import Final

from crush_kernel.files.names import printable
from crush_kernel.tools.base import Delegated, ToolOutput, limit_output
from crush_kernel.wording import counted

MAX_ACTIVITY_LINES = 40
"""Of a sub-agent that ended without words."""

_CALLED: Final = "It had called:"


def output_of(done: Delegated, *, who: str, notes: tuple[str, ...] = ()) -> ToolOutput:
    """Return what came of a delegation: its last words, or why there are none.

    Args:
        done: what came of it.
        who: did it, to begin a sentence with.
        notes: what the model should know besides, a sentence each.
    """
    is_error = bool(done.failure) or not done.text
    text = "\n\n".join(_failed(done, who)) if is_error else done.text
    told = "\n".join(f"[{note}]" for note in (*done.notes, *notes))
    return ToolOutput(
        f"{limit_output(text)}\n\n{told}".rstrip(),
        is_error=is_error,
        summary=counted(done.tool_calls, "call") + (", failed" if is_error else ""),
    )


def without_calls(text: str) -> str:
    """Return the text of a failed delegation without its calls, for who is shown them anyway."""
    head, called, tail = text.rpartition(f"\n\n{_CALLED}\n")
    if not called:
        return text
    rest = "\n".join(dropwhile(lambda line: line.startswith("- "), tail.split("\n")))
    return f"{head}\n{rest}".rstrip()


def _failed(done: Delegated, who: str) -> Iterator[str]:
    if done.failure:
        yield f"{who} did not finish: {done.failure}"
    else:
        yield f"{who} ended without an answer."
    if done.text:
        yield f"Until then it had said:\n{done.text}"
    if done.activity:
        shown = [printable(line) for line in done.activity[-MAX_ACTIVITY_LINES:]]
        yield f"{_CALLED}\n" + "\n".join(f"- {line}" for line in shown)
