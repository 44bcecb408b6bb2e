"""What becomes of a turn in the journal when it is over, by itself or with its kernel.

One row with its record and its outputs takes the place of its entries, in one transaction.
"""

import sqlite3
from collections.abc import Collection, Iterable
from dataclasses import replace
from typing import cast

from pydantic import JsonValue

from crush_kernel.history.journal import rows
from crush_kernel.history.journal.entries import Clean, to_bytes
from crush_kernel.history.journal.migrations import transaction
from crush_kernel.history.journal.replay import Replayed, fold
from crush_kernel.history.journal.rows import StoredTurn
from crush_kernel.history.outputs import Output, saved_outputs
from crush_kernel.history.record import write_turn
from crush_kernel.history.turn import Turn
from crush_kernel.messages import well_formed


def consolidate(
    connection: sqlite3.Connection,
    session: str,
    turn: Turn,
    *,
    outputs: list[Output],
    execution_count: int | None,
    clean: Clean,
    first: int = 0,
) -> None:
    """Put a turn that has ended in the place of its entries, which begin at number `first`."""
    record = _record(turn, clean)
    shown = to_bytes(clean(cast("JsonValue", saved_outputs(outputs))))
    with transaction(connection):
        rows.keep_turn(
            connection,
            session,
            turn,
            record=record,
            outputs=shown,
            execution_count=execution_count,
            is_saved=False,
        )
        rows.delete_entries(connection, session, well_formed(turn.id), first=first)


def recover(
    connection: sqlite3.Connection, session: str, *, running: Collection[str], clean: Clean
) -> list[Replayed]:
    """End the turns that were left open, except those that are `running`, and return them."""
    recovered: list[Replayed] = []
    for turn_id, entries in rows.entries_by_turn(connection, session).items():
        if turn_id in running:
            continue
        found = fold(turn_id, entries)
        is_empty = not found.turn.messages and not found.outputs
        if is_empty or rows.has_turn(connection, session, turn_id):
            rows.delete_entries(connection, session, turn_id)
            continue
        turn = replace(found.turn, record=write_turn(found.turn))
        consolidate(
            connection, session, turn, outputs=found.outputs, execution_count=None, clean=clean
        )
        recovered.append(replace(found, turn=turn))
    return recovered


def keep_imported(
    connection: sqlite3.Connection, session: str, turns: Iterable[Turn], *, clean: Clean
) -> None:
    """Keep turns that came from a file, where they are newer than what is kept."""
    with transaction(connection):
        kept = {each.id: each for each in rows.stored_turns(connection, session)}
        for turn in turns:
            if _is_same(kept.get(well_formed(turn.id)), turn):
                rows.mark_saved(connection, session, [turn.id])
                continue
            rows.keep_turn(
                connection,
                session,
                turn,
                record=_record(turn, clean),
                outputs=None,
                execution_count=None,
                is_saved=True,
            )


def _record(turn: Turn, clean: Clean) -> bytes:
    return to_bytes(clean(dict(write_turn(turn))))


def _is_same(kept: StoredTurn | None, turn: Turn) -> bool:
    return kept is not None and (kept.revision, kept.digest) == (turn.revision, turn.digest)
