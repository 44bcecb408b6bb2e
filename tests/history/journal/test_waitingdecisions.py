"""Decisions that are always allowed wait for a while, and none is lost while the kernel lives."""

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from crush_kernel.history.journal.journal import Journal
from crush_kernel.history.redaction import Redactor
from crush_kernel.history.turn import Turn
from crush_kernel.messages import JsonObject

TURN = Turn("a", 1)

ROUTINE: JsonObject = {"by": "built-in", "is_allowed": True}
ASKED: JsonObject = {"by": "person", "is_allowed": True}


def kept(folder: Path) -> list[JsonObject]:
    """Return what another process would read now."""
    other = Journal.open(folder)
    try:
        return [facts for _, facts in other.decisions("s")]
    finally:
        other.close()


def another(journal: Journal) -> None:
    journal.decided("s", TURN.id, ASKED)


def end_of_turn(journal: Journal) -> None:
    journal.ended("s", TURN, [], None)


def somebody_asks(journal: Journal) -> None:
    assert journal.decisions("s") == [(TURN.id, ROUTINE)]


@pytest.mark.parametrize("then", [another, end_of_turn, somebody_asks, Journal.close])
def test_what_is_always_allowed_is_written_with_the_next_thing_of_weight(
    tmp_path: Path, then: Callable[[Journal], None]
) -> None:
    journal = Journal.open(tmp_path)
    journal.began("s", TURN)
    journal.decided("s", TURN.id, ROUTINE)
    assert kept(tmp_path) == []
    then(journal)

    assert kept(tmp_path)[0] == ROUTINE
    journal.close()


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.lists(st.booleans(), max_size=60))
def test_all_are_kept_in_their_order_and_few_wait(
    tmp_path_factory: pytest.TempPathFactory, routine: list[bool]
) -> None:
    folder = tmp_path_factory.mktemp("journal")
    journal = Journal.open(folder)
    given_facts: list[JsonObject] = [
        {**(ROUTINE if is_routine else ASKED), "title": str(number)}
        for number, is_routine in enumerate(routine)
    ]
    for facts in given_facts:
        journal.decided("s", TURN.id, facts)
    at_a_kill = kept(folder)
    journal.close()

    assert kept(folder) == given_facts
    assert at_a_kill == given_facts[: len(at_a_kill)]
    assert len(given_facts) - len(at_a_kill) < 20
    assert all(routine[len(at_a_kill) :]), "what a person has said never waits"


def test_secrets_are_out_before_anything_is_cut(tmp_path: Path) -> None:
    secret = "ghp_" + "A1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6Q7r8"
    journal = Journal.open(tmp_path, clean=Redactor({}).redact_json)
    journal.decided("s", TURN.id, {**ASKED, "command": "x" * 3_985 + f" {secret} " + "y" * 9_000})
    journal.close()
    (facts,) = kept(tmp_path)

    assert "ghp_" not in str(facts)
    assert "SHA-256" in str(facts["command"])


def test_what_has_no_json_takes_nothing_else_along(tmp_path: Path) -> None:
    journal = Journal.open(tmp_path)
    journal.decided("s", TURN.id, {**ROUTINE, "title": object()})  # pyright: ignore[reportArgumentType]
    journal.decided("s", TURN.id, ASKED)
    journal.close()

    assert kept(tmp_path) == [ASKED]
