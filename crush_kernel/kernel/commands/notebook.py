"""The `/commands` about the notebook's own history: `/replay`, `/versions`, `/export`.

They speak of the turns above the cell in which they stand. They run on the engine thread.
"""

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Final

import anyio.to_thread

from crush_kernel.errors import CommandError
from crush_kernel.history.journal.journal import StoredTurn
from crush_kernel.history.redaction import Redactor
from crush_kernel.history.turn import Turn, source_digest
from crush_kernel.kernel.commands.call import CommandAnswer, CommandCall
from crush_kernel.kernel.export import FORMATS, export_name, exported
from crush_kernel.kernel.plaintext import code_span, escape
from crush_kernel.kernel.render import short
from crush_kernel.kernel.turntext import asked
from crush_kernel.messages import text_of

_ENDS: Final = {
    "end_turn": "answered",
    "interrupted": "interrupted",
    "error": "failed",
    "running": "running",
}


async def replay(call: CommandCall) -> CommandAnswer:
    """Show again what the turn above has shown, or the nth turn from the top."""
    cells = call.runtime.session.conversation.above(call.cell_id)
    cell_id = cells[-1] if cells else ""
    if call.arguments:
        number = _number(call.arguments, "/replay 3 shows the third turn again.")
        cell_id = cells[number - 1] if 0 < number <= len(cells) else ""
    if not cell_id:
        raise CommandError(
            "There is no such turn above this cell.",
            hint=f"There are {len(cells)}; the first one is /replay 1." if cells else "",
        )
    outputs = call.runtime.session.outputs(cell_id)
    if not outputs:
        raise CommandError("The journal does not know what that turn has shown.")
    position = cells.index(cell_id) + 1
    return CommandAnswer(f"<sub>turn {position} again</sub>", outputs=outputs)


async def versions(call: CommandCall) -> str | CommandAnswer:
    """List the runs of the cell above, or bring one of them back."""
    session = call.runtime.session
    cells = session.conversation.above(call.cell_id)
    if not cells:
        raise CommandError("There is no turn above this cell.")
    cell_id = cells[-1]
    word, _, rest = call.arguments.partition(" ")
    if word == "restore":
        number = _number(rest, "/versions restore 2 brings the second run back.")
        update = session.restore(cell_id, number)
        source = _source(session.conversation.turns[cell_id])
        return CommandAnswer(
            f"Run {number} stands in the cell above again, as its latest run.",
            updates=[replace(update, source=source)],
        )
    if word:
        raise CommandError(
            f"/versions knows no {word!r}.",
            hint="/versions lists, /versions restore 2 brings back.",
        )
    current = session.conversation.turns[cell_id]
    rows = [_row(stored, session.turn_of(stored), current) for stored in session.versions(cell_id)]
    if not rows:
        raise CommandError(
            "The journal knows no run of the cell above.",
            hint="/status says in which folder it is kept; that may be read-only or full.",
        )
    return (
        "| run | asked | answer | outcome | |\n|---:|---|---|---|---|\n"
        + "\n".join(rows)
        + "\n\n`/versions restore n` brings one back."
    )


async def export(call: CommandCall) -> str:
    """Write the turns above to a new file beside the notebook."""
    runtime = call.runtime
    wanted = call.arguments or FORMATS[0]
    if wanted not in FORMATS:
        formats = ", ".join(FORMATS)
        raise CommandError(f"There is no format {wanted!r}.", hint=f"The formats are {formats}.")
    talk = runtime.session.conversation
    by_cell = talk.turns
    turns = [by_cell[cell] for cell in talk.above(call.cell_id)]
    if not turns:
        raise CommandError("There is no turn above this cell to export.")
    clean = partial(_without_secrets, redactor=runtime.session.redactor)
    # A long conversation takes seconds, for which nobody waits who has stopped the cell.
    text = await anyio.to_thread.run_sync(
        lambda: exported([*map(clean, turns)], wanted), abandon_on_cancel=True
    )
    name = export_name(runtime.session.notebook, wanted)
    path = await anyio.to_thread.run_sync(_write_new, runtime.paths.cwd, name, text)
    return f"{len(turns)} turns are in {code_span(path.name)}."


def _without_secrets(turn: Turn, redactor: Redactor) -> Turn:
    """Return `turn` for a file; in memory it has what the model's own tools have read."""
    record = None if turn.record is None else redactor.redact_json(dict(turn.record))
    return replace(
        turn,
        messages=redactor.redact_messages(turn.messages),
        record=record if isinstance(record, dict) else None,
    )


def _write_new(folder: Path, name: str, text: str) -> Path:
    """Write `text` to a file that did not exist, numbering `name` if it does."""
    wanted = Path(name)
    for number in range(1, 1000):
        path = folder / (name if number == 1 else f"{wanted.stem}-{number}{wanted.suffix}")
        try:
            with path.open("x", encoding="utf-8", errors="replace") as file:
                file.write(text)
        except FileExistsError:
            continue
        except OSError as error:
            raise CommandError(
                f"{path.name} cannot be written: {error.strerror}.",
                hint="Check the folder's permissions and the space on its disk.",
            ) from error
        return path
    raise CommandError(f"There are too many files called {name} already.")


def _number(text: str, hint: str) -> int:
    if text.strip().isascii() and text.strip().isdigit():
        return int(text.strip()[:9])
    raise CommandError(f"{short(text) or 'Nothing'} is no number.", hint=hint)


def _row(stored: StoredTurn, turn: Turn | None, current: Turn) -> str:
    if turn is None:
        return f"| {stored.run} | | | cannot be read | |"
    mark = "the one above" if stored.run == current.run else ""
    said = (escape(short(text)) for text in (asked(turn), _answered(turn)))
    return f"| {stored.run} | {' | '.join(said)} | {_ENDS[turn.end]} | {mark} |"


def _source(turn: Turn) -> str | None:
    """Return the text of the cell that made `turn`; `None` where it is not known exactly."""
    text = asked(turn)
    return text if source_digest(text) == turn.source else None


def _answered(turn: Turn) -> str:
    """Return what was said last, which tells apart runs of the same prompt."""
    replies = (text_of(m).strip() for m in reversed(turn.messages) if m.role == "assistant")
    return next(filter(None, replies), "")
