"""What hooks say together."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crush_kernel.config.hooks import Hook
from crush_kernel.hooks.matcher import MatchedHook
from crush_kernel.hooks.outcome import Opinion, Outcome
from crush_kernel.hooks.report import facts_of, lines
from crush_kernel.hooks.verdict import SILENCE, HookRun, Verdict, verdict
from crush_kernel.messages import JsonObject


def together(*said: Outcome, given_input: JsonObject | None = None) -> Verdict:
    spoken = tuple(
        HookRun(MatchedHook(Hook("PreToolUse", f"h{number}"), "bash"), each)
        for number, each in enumerate(said)
    )
    return verdict(spoken, given_input)


@pytest.mark.parametrize(
    ("said", "decision", "reason"),
    [
        pytest.param([], None, "", id="nobody"),
        pytest.param([Outcome(), Outcome(reason="x")], None, "", id="no opinion"),
        pytest.param([Outcome("allow", "fine")], "allow", "", id="nobody needs to know why"),
        pytest.param([Outcome("allow"), Outcome("ask", "?")], "ask", "?", id="ask over allow"),
        pytest.param([Outcome("ask", "?"), Outcome("deny", "!")], "deny", "!", id="deny over ask"),
        pytest.param([Outcome("deny", "a"), Outcome("deny", "b")], "deny", "a\nb", id="all why"),
        pytest.param(
            [Outcome("allow"), Outcome(reason="end", is_halt=True), Outcome("deny", "no")],
            "deny",
            "end\nno",
            id="those who end the turn, too",
        ),
        pytest.param(
            [Outcome(reason="end", is_halt=True), Outcome("allow", "fine")],
            "allow",
            "end",
            id="who ends the turn says why though another allows",
        ),
        pytest.param(
            [Outcome("ask", "?"), Outcome(reason="end", is_halt=True)],
            "ask",
            "end",
            id="who ends the turn says why, and nobody asks",
        ),
    ],
)
def test_the_strictest_decides(said: list[Outcome], decision: Opinion | None, reason: str) -> None:
    found = together(*said)
    assert (found.decision, found.reason) == (decision, reason)


def test_contexts_are_joined_also_of_those_who_deny() -> None:
    assert together(Outcome(context="a"), Outcome("deny", context="b")).context == "a\nb"


def test_the_input_is_changed_by_top_level_keys_that_are_only_names() -> None:
    given_input: JsonObject = {"a": {"b": 1}, "c": 2}
    found = together(
        Outcome(patch={"a.b": 3, "#": 4}), Outcome(patch={"c": 5}), given_input=given_input
    )
    assert found.input == {"a": {"b": 1}, "c": 5, "a.b": 3, "#": 4}
    assert given_input == {"a": {"b": 1}, "c": 2}


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        pytest.param(Outcome(patch={"a": 1}), None, id="the same again"),
        pytest.param(Outcome(patch={"a": True}), {"a": True}, id="equal to Python only"),
        pytest.param(Outcome(patch={}), None, id="nothing"),
        pytest.param(Outcome("deny", patch={"a": 2}), None, id="denied"),
        pytest.param(Outcome(is_halt=True, patch={"a": 2}), None, id="ended"),
    ],
)
def test_an_input_counts_as_changed_only_if_it_is(
    said: Outcome, expected: JsonObject | None
) -> None:
    assert together(said, given_input={"a": 1}).input == expected


OUTCOMES = st.builds(
    Outcome,
    opinion=st.sampled_from([None, "allow", "ask", "deny"]),
    reason=st.text(max_size=3),
    is_halt=st.booleans(),
    patch=st.none() | st.dictionaries(st.text(max_size=2), st.integers()),
)


@given(st.lists(OUTCOMES, max_size=6).flatmap(lambda x: st.tuples(st.just(x), st.permutations(x))))
def test_the_decision_does_not_depend_on_the_order(
    orders: tuple[list[Outcome], list[Outcome]],
) -> None:
    one, other = (together(*each, given_input={}) for each in orders)
    assert one.decision == other.decision
    assert one.is_refusal == other.is_refusal
    assert one.is_halt == any(each.is_halt for each in orders[0])


@given(st.lists(OUTCOMES, max_size=6), OUTCOMES)
def test_another_hook_never_loosens_what_the_others_have_said(
    said: list[Outcome], more: Outcome
) -> None:
    strictness = {None: 0, "allow": 0, "ask": 1, "deny": 2}
    before, after = together(*said), together(*said, more)
    assert strictness[after.decision] >= strictness[before.decision]
    assert after.is_refusal >= before.is_refusal
    if "deny" in [each.opinion for each in said]:
        assert after.decision == "deny"


@pytest.mark.parametrize(
    ("said", "line"),
    [
        pytest.param(Outcome(), None, id="silent"),
        pytest.param(Outcome("allow", "fine", context="c"), None, id="allowed"),
        pytest.param(Outcome("deny", "no"), 'Hook "h0" denied bash: no.', id="denied"),
        pytest.param(
            Outcome("deny", "No!\nNever.", is_halt=True),
            'Hook "h0" ended the turn: No! Never.',
            id="ended",
        ),
        pytest.param(
            Outcome("ask", "odd"), 'Hook "h0" wants a person to decide on bash: odd.', id="asked"
        ),
        pytest.param(
            Outcome(patch={"b": 1, "a": 2}), 'Hook "h0" changed the input of bash: a, b.', id="new"
        ),
        pytest.param(
            Outcome(failure="the hook failed: exit 1"),
            'Hook "h0": the hook failed: exit 1.',
            id="failed",
        ),
        pytest.param(Outcome(message="hi"), 'Hook "h0" says: hi', id="a message"),
    ],
)
def test_people_are_told_a_line_of_what_hooks_do(said: Outcome, line: str | None) -> None:
    assert list(lines(together(said, given_input={}), "bash")) == ([line] if line else [])


def test_the_record_of_a_call_has_both_inputs() -> None:
    said = together(Outcome("allow", patch={"a": 2}), Outcome(), given_input={"a": 1, "b": 0})
    assert facts_of(said, {"a": 1, "b": 0}, effective=said.input) == {
        "hook_count": 2,
        "decision": "allow",
        "hooks": [
            {"name": "h0", "decision": "allow", "input_rewrite": True},
            {"name": "h1", "decision": "none"},
        ],
        "input_rewrite": True,
        "original_input": {"a": 1, "b": 0},
        "effective_input": {"a": 2, "b": 0},
    }


def test_silence_says_nothing() -> None:
    assert not SILENCE.is_refusal
    assert list(lines(SILENCE)) == []


@pytest.mark.parametrize(
    ("said", "deciders"),
    [
        pytest.param([Outcome("allow"), Outcome("deny"), Outcome("deny")], "h1, h2", id="denied"),
        pytest.param([Outcome("allow"), Outcome(), Outcome("allow")], "h0, h2", id="allowed"),
        pytest.param([Outcome("allow"), Outcome(is_halt=True)], "h0, h1", id="ended"),
        pytest.param([Outcome(), Outcome(reason="x")], "", id="nobody"),
    ],
)
def test_it_is_told_whose_decision_it_is(said: list[Outcome], deciders: str) -> None:
    assert together(*said).deciders == deciders
