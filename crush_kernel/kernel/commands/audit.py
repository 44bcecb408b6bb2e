"""`/audit`: what was done in this notebook, and by whose leave.

Read on a worker thread: a long history takes a while, for which nobody waits who stops the cell.
"""

from typing import Final

from anyio.to_thread import run_sync

from crush_kernel.errors import CommandError
from crush_kernel.history.decisions import DecisionRecord, read_decision
from crush_kernel.history.journal.journal import Journal
from crush_kernel.history.turn import Turn
from crush_kernel.kernel.auditreport import AuditedTurn, audited, by_turn, orphaned
from crush_kernel.kernel.commands.auditpage import denied_page, page, project_page, turn_page
from crush_kernel.kernel.commands.call import CommandCall
from crush_kernel.kernel.render import short

USAGE: Final = "/audit [turn n, denied or all]"


async def audit(call: CommandCall) -> str:
    """Show what was decided, by turn; one turn in full; refusals only; or the whole project."""
    word, _, rest = call.arguments.partition(" ")
    if word not in ("", "turn", "denied", "all") or (rest and word != "turn"):
        raise CommandError(f"/audit knows no {short(call.arguments)!r}.", hint=f"Write {USAGE}.")
    runtime = call.runtime
    await runtime.load(call.cell_id)
    session = runtime.session
    if word == "all":
        journal = session.journal
        return await run_sync(lambda: project_page(_notebooks(journal)), abandon_on_cancel=True)
    talk = session.conversation
    turns = [talk.turns[cell] for cell in talk.above(call.cell_id)]
    if word == "turn":
        number = int(rest[:9]) if rest.isascii() and rest.isdigit() else 0
        if not 0 < number <= len(turns):
            raise CommandError(
                f"There is no turn {short(rest)!r} above this cell.",
                hint=f"There are {len(turns)}; /audit shows them all.",
            )
        return await run_sync(
            lambda: turn_page(number, _read(session.journal, session.id, turns)[number - 1]),
            abandon_on_cancel=True,
        )
    shown = denied_page if word == "denied" else page
    return await run_sync(
        lambda: shown(_read(session.journal, session.id, turns)), abandon_on_cancel=True
    )


def _read(journal: Journal, session: str, turns: list[Turn]) -> list[AuditedTurn]:
    """Return `turns`, and behind them the runs that stand in no cell above any more."""
    decisions = by_turn(_decisions(journal, session))
    found = [audited(turn, decisions.pop(turn.id, ())) for turn in turns]
    return found + [
        orphaned(turn_id, records, asked="a run that does not stand above")
        for turn_id, records in decisions.items()
    ]


def _decisions(journal: Journal, session: str) -> list[tuple[str, DecisionRecord]]:
    return [(turn_id, read_decision(facts)) for turn_id, facts in journal.decisions(session)]


def _notebooks(journal: Journal) -> list[tuple[str, list[DecisionRecord]]]:
    return [
        (stored.path or "a notebook without a name", [d for _, d in _decisions(journal, stored.id)])
        for stored in journal.sessions()
    ]
