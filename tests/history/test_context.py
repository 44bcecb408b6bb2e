"""What a cell sees, and when a turn is stale."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crush_kernel.history.context import (
    BLANK,
    cells_above,
    depends_on_context,
    fingerprint_of,
    messages_of,
    stale_cells,
)
from crush_kernel.history.turn import Turn, TurnState, digest_of
from crush_kernel.messages import Message, Reasoning, ShellCommand, Text, text_of


def turn(cell: str, says: str = "", *, context: tuple[Turn, ...] = (), **fields: object) -> Turn:
    """Return the turn of `cell` that ran below `context`."""
    messages = (
        Message("user", (Text(f"ask {cell}"),)),
        Message("assistant", (Reasoning("hm", {"signature": "s"}), Text(says or f"say {cell}"))),
    )
    made = Turn(
        cell,
        messages=messages,
        end="end_turn",
        fingerprint=fingerprint_of(context),
        digest=digest_of(messages),
    )
    return replace(made, **fields)  # pyright: ignore[reportArgumentType]


def run_in_order(cells: str) -> dict[str, Turn]:
    """Return turns that ran from top to bottom, one for each letter."""
    turns: dict[str, Turn] = {}
    for cell in cells:
        turns[cell] = turn(cell, context=tuple(turns.values()))
    return turns


@pytest.mark.parametrize(
    ("order", "cell", "above"),
    [
        pytest.param("abcd", "d", "abc", id="all that stand above"),
        pytest.param("abcd", "b", "a", id="nothing that stands below"),
        pytest.param("cabd", "d", "cab", id="in the order of the document, moved cells too"),
        pytest.param("abd", "d", "ab", id="no deleted cell"),
        pytest.param("axbycd", "d", "abc", id="cells without a turn say nothing"),
        pytest.param("abc", "new", "abc", id="a cell that nobody knows counts as last"),
        pytest.param(None, "d", "abc", id="in the order of running where nobody tells another"),
        pytest.param(None, "b", "acd", id="a cell never sees its own former turn"),
    ],
)
def test_a_cell_sees_the_turns_above_it(order: str | None, cell: str, above: str) -> None:
    turns = run_in_order("abcd")
    assert "".join(cells_above(cell, turns, order)) == above


def test_a_context_begins_below_the_last_fresh_start() -> None:
    turns = run_in_order("abcd")
    turns["b"] = replace(turns["b"], is_start=True)
    assert cells_above("d", turns, "abcd") == ("c",)
    assert cells_above("b", turns, "abcd") == ("a",)


def test_turns_that_ran_from_top_to_bottom_are_not_stale() -> None:
    assert stale_cells(run_in_order("abcd"), "abcd") == ()


@pytest.mark.parametrize(
    ("order", "stale"),
    [
        pytest.param("bcd", "bcd", id="a cell above was deleted"),
        pytest.param("bacd", "bacd", id="two cells changed places"),
        pytest.param("abdc", "dc", id="only what is below the change"),
        pytest.param("abcd", "", id="moved back, nothing is stale any more"),
    ],
)
def test_a_turn_is_stale_once_its_context_has_changed(order: str, stale: str) -> None:
    assert "".join(stale_cells(run_in_order("abcd"), order)) == stale


def test_a_rerun_with_the_same_words_makes_nothing_below_stale() -> None:
    turns = run_in_order("abc")
    turns["b"] = replace(turns["b"], run=2, revision=9)
    assert stale_cells(turns, "abc") == ()
    turns["b"] = turn("b", "something else", context=(turns["a"],))
    assert stale_cells(turns, "abc") == ("c",)


@pytest.mark.parametrize("end", ["error", "interrupted", "running"])
def test_a_turn_that_failed_before_it_said_anything_changes_nothing_below(end: TurnState) -> None:
    turns = run_in_order("abc")
    empty = Turn("new", end=end, fingerprint=fingerprint_of([turns["a"]]), digest=digest_of(()))
    assert stale_cells({**turns, "new": empty}, ("a", "new", "b", "c")) == ()


def test_a_command_of_the_user_depends_on_nothing_above() -> None:
    shell = Turn("s", messages=(Message("user", (ShellCommand("ls", "a", 0),)),), end="end_turn")
    assert not depends_on_context(shell)
    assert stale_cells({"a": turn("a"), "s": shell}, "as") == ()


def test_below_a_fresh_start_what_is_above_makes_nothing_stale() -> None:
    start = Turn("n", is_start=True, end="end_turn", digest=digest_of(()))
    turns = {"a": turn("a"), "n": start, "b": turn("b")}
    assert stale_cells(turns, "anb") == ()
    assert stale_cells(turns, "nb") == ()


def test_thinking_is_left_out_of_a_stale_turn_only() -> None:
    turns = run_in_order("abc")
    kept = [m for m in messages_of(turns.values()) if m.role == "assistant"]
    assert all(isinstance(message.parts[0], Reasoning) for message in kept)
    changed = [m for m in messages_of((turns["b"], turns["c"])) if m.role == "assistant"]
    assert [text_of(message) for message in changed] == ["say b", "say c"]
    assert not any(isinstance(part, Reasoning) for m in changed for part in m.parts)


@given(st.permutations("abcdef"), st.sampled_from("abcdef"))
def test_whatever_the_order_a_fresh_run_is_not_stale_and_sees_what_is_above(
    order: list[str], cell: str
) -> None:
    turns = run_in_order("abcdef")
    above = cells_above(cell, turns, order)
    assert list(above) == order[: order.index(cell)]
    turns[cell] = turn(cell, "anew", context=tuple(turns[each] for each in above))
    assert cell not in stale_cells(turns, order)


def test_contexts_that_differ_have_different_fingerprints() -> None:
    a, b = turn("a"), turn("b")
    contexts = [(), (a,), (b,), (a, b), (b, a), (a, a)]
    assert len({fingerprint_of(each) for each in contexts}) == len(contexts)
    assert fingerprint_of(()) == BLANK
