"""The report behind `/audit`: calls joined with decisions, whoever has written either."""

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import JsonValue

from crush_kernel.history.decisions import DecisionRecord
from crush_kernel.history.subagentrecord import KEY, SubagentRecord, write_subagent
from crush_kernel.history.turn import Turn
from crush_kernel.kernel.auditreport import (
    AuditedCall,
    audited,
    by_turn,
    counted_words,
    counts,
    orphaned,
    words_of,
)
from crush_kernel.kernel.commands import auditpage
from crush_kernel.messages import Message, Text, ToolCall, ToolResult

BY = ("built-in", "rule", "mode", "hook", "bounds", "grant", "person", "nobody", "", "other")

ALLOWED = DecisionRecord(is_allowed=True)
FREE = replace(ALLOWED, by="built-in")


def call(call_id: str, name: str = "bash", **arguments: str) -> Message:
    return Message("assistant", (ToolCall(call_id, name, json.dumps(arguments)),))


def result(call_id: str, **metadata: JsonValue) -> Message:
    return Message("tool", (ToolResult(call_id, "", metadata=metadata),))


def noted(call_id: str, rule: str, by: str) -> Message:
    return result(call_id, permission=rule, permission_by=by)


def turn(*messages: Message) -> Turn:
    return Turn("a", 1, messages=(Message("user", (Text("Do it."),)), *messages), end="end_turn")


def decision(call_id: str, tool: str = "bash", *, title: str = "") -> DecisionRecord:
    return replace(ALLOWED, tool=tool, call_id=call_id, by="person", title=title)


@pytest.mark.parametrize(
    ("record", "words"),
    [
        (replace(FREE, action="read"), "read in the project"),
        (replace(FREE, action="use"), "of tools that touch nothing"),
        (replace(FREE, rule="a command that only reads"), "run as commands that only read"),
        (FREE, "always allowed"),
        (replace(ALLOWED, by="mode", rule="yolo mode"), "allowed by yolo mode"),
        (replace(ALLOWED, by="person"), "allowed by you"),
        (replace(ALLOWED, by="grant"), "allowed by you for the session"),
        (replace(ALLOWED, by="rule"), "allowed by rules"),
        (ALLOWED, "allowed"),
        (DecisionRecord(by="person"), "denied by you"),
        (DecisionRecord(by="nobody"), "denied since nobody could be asked"),
        (DecisionRecord(by="mode", rule="plan mode"), "denied by plan mode"),
        (DecisionRecord(by="hook"), "denied by hooks"),
        (DecisionRecord(), "denied"),
        (None, "not decided"),
    ],
)
def test_who_decided_is_said_in_few_words(record: DecisionRecord | None, words: str) -> None:
    assert words_of(record, person="you") == words


@given(st.lists(st.tuples(st.sampled_from(BY), st.booleans()), max_size=20))
def test_every_call_is_counted_once_and_refusals_come_last(
    decided: list[tuple[str, bool]],
) -> None:
    calls = tuple(
        AuditedCall("t", "", (DecisionRecord(by=by, is_allowed=is_allowed),))
        for by, is_allowed in decided
    )
    found = counts((replace(audited(turn()), calls=calls),), person="you")
    words = counted_words(found)
    _, denied, rest = words.partition("denied")

    assert found.total() == len(decided)
    assert bool(denied) == any(not is_allowed for _, is_allowed in decided)
    assert "allowed" not in rest


def test_a_call_has_the_journals_decision_and_its_words() -> None:
    record = replace(decision("c1"), command="rm -r /", at="2025-01-01T00:00:00+00:00")
    made = audited(turn(call("c1", command="harmless"), noted("c1", "yolo mode", "mode")), [record])
    (only,) = made.calls

    assert (only.what, only.is_recorded, only.decision) == ("rm -r /", True, record)
    assert made.when == "2025-01-01T00:00:00+00:00"


def test_without_a_journal_the_notebook_is_quoted_as_such() -> None:
    (only,) = audited(turn(call("c1"), noted("c1", "x", "rule"))).calls

    assert only.decision == DecisionRecord(tool="bash", is_allowed=True, by="rule", rule="x")
    assert not only.is_recorded


def test_an_id_that_is_used_twice_does_not_mix_two_tools() -> None:
    made = audited(
        turn(call("c", "view"), result("c"), call("c", "bash"), result("c")),
        [replace(decision("c", "view"), by="built-in"), decision("c", "bash")],
    )

    assert [each.decision and each.decision.by for each in made.calls] == ["built-in", "person"]


def test_calls_of_a_sub_agent_follow_the_one_that_started_it() -> None:
    inside = (call("n1", "view"), noted("n1", "p", "bounds"))
    record = dict(write_subagent(SubagentRecord("task", "a/b", messages=inside)))
    made = audited(
        turn(call("c1", "agent"), result("c1", **{KEY: record}), call("c2")),
        [replace(decision("c1/n1", "view"), on_behalf="agent: task")],
    )

    assert [(each.tool, each.agent, each.outcome) for each in made.calls] == [
        ("agent", "", "done"),
        ("view", "task", "done"),
        ("bash", "", "interrupted"),
    ]
    assert made.calls[1].is_recorded


def test_what_took_leave_outside_of_a_call_comes_first_and_what_is_lost_last() -> None:
    made = audited(
        turn(call("c1"), result("c1")),
        [decision("gone", title="run"), decision("", "attach"), decision("c1")],
    )

    assert [each.tool for each in made.calls] == ["attach", "bash", "bash"]
    assert [each.what for each in made.calls] == ["", "", "run"]


CALLS = st.lists(st.sampled_from(("a", "b", "c", "")), max_size=6)


@given(called=CALLS, decided=CALLS)
def test_no_decision_is_lost_and_none_is_told_twice(called: list[str], decided: list[str]) -> None:
    records = [decision(name, title=str(number)) for number, name in enumerate(decided)]
    made = audited(turn(*map(call, called)), records)
    told = [record.title for each in made.calls for record in each.decisions]

    assert sorted(told) == [record.title for record in records]
    assert len(made.calls) >= len(called)


def test_decisions_of_turns_that_are_gone_are_told_too() -> None:
    found = by_turn([("a.1", decision("1")), ("b.1", decision("2")), ("a.1", decision("3"))])

    assert {name: [each.call_id for each in records] for name, records in found.items()} == {
        "a.1": ["1", "3"],
        "b.1": ["2"],
    }
    assert len(orphaned("a.1", found["a.1"], asked="gone").calls) == 2


def test_where_nothing_was_called_there_is_nothing_to_show() -> None:
    assert "no tool has been called" in auditpage.page([audited(turn())])
    assert "nothing was called" in auditpage.turn_page(1, audited(turn()))
    assert auditpage.denied_page([audited(turn())]) == "Nothing was refused."
    assert "no decisions" in auditpage.project_page([("nb.ipynb", [])])


def test_a_long_history_is_told_in_bounds() -> None:
    many = tuple(call(f"c{n}", command="x" * 5000) for n in range(300))
    page = auditpage.page([audited(turn(*many))] * 200)

    assert "140 turns before are only counted" in page
    assert "and 200 more" in page
    assert "60,000 calls" in page
    assert len(page) < 5_000_000


@given(st.text(st.sampled_from("<>&|`*[]$\\\n\u202ea"), max_size=30))
def test_nothing_quoted_breaks_the_table(text: str) -> None:
    record = replace(
        decision("c", tool=text), command=text, rule=text, reason=text, kept_rules=(text,)
    )
    page = auditpage.turn_page(1, audited(turn(), [record]))
    rows = page.split("|---|---|---|\n")[1].splitlines()

    assert len(rows) == 1
    assert rows[0].count("|") == 4
    assert "\u202e" not in page
