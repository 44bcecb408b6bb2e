"""What a hook says, from its exit code and what it printed."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crush_kernel.config.hooks import FailPolicy, Hook, HookEvent
from crush_kernel.hooks.outcome import MAX_SAID_BYTES, HookExit, Outcome, outcome

OPEN = Hook("PreToolUse", "hook")


def said(printed: object, event: HookEvent = "PreToolUse") -> Outcome:
    text = printed if isinstance(printed, str) else json.dumps(printed)
    return outcome(Hook(event, "hook"), HookExit(stdout=text.encode()))


def inner(**fields: object) -> dict[str, object]:
    return {"hookSpecificOutput": {"hookEventName": "PreToolUse", **fields}}


@pytest.mark.parametrize(
    ("ran", "expected"),
    [
        pytest.param(HookExit(), Outcome(), id="silent"),
        pytest.param(HookExit(stdout=b" \n"), Outcome(), id="blank"),
        pytest.param(
            HookExit(stdout=b'\xef\xbb\xbf{"decision": "deny"}'),
            Outcome("deny"),
            id="a mark before",
        ),
        pytest.param(HookExit(stdout=b"checked 3 files"), Outcome(), id="words"),
        pytest.param(HookExit(stdout=b"[1]"), Outcome(), id="a list"),
        pytest.param(HookExit(stdout=b"\xff\xfe"), Outcome(), id="no UTF-8"),
        pytest.param(HookExit(stderr=b"a log"), Outcome(), id="stderr only"),
        pytest.param(HookExit(2, b"", b" not here \n"), Outcome("deny", "not here"), id="exit 2"),
        pytest.param(
            HookExit(2, b'{"decision": "allow"}', b"no"),
            Outcome("deny", "no"),
            id="exit 2, and JSON",
        ),
        pytest.param(
            HookExit(2), Outcome("deny", "the hook gave no reason"), id="exit 2, no reason"
        ),
        pytest.param(HookExit(2, b"", b"\xff"), Outcome("deny", "\ufffd"), id="exit 2, no UTF-8"),
        pytest.param(
            HookExit(49, b"", b"over"), Outcome("deny", "over", is_halt=True), id="exit 49 halts"
        ),
    ],
)
def test_exit_codes(ran: HookExit, expected: Outcome) -> None:
    assert outcome(OPEN, ran) == expected


@pytest.mark.parametrize(
    ("printed", "expected"),
    [
        pytest.param({}, Outcome(), id="empty"),
        pytest.param({"decision": "allow", "reason": "r"}, Outcome("allow", "r"), id="allow"),
        pytest.param({"decision": " DENY "}, Outcome("deny"), id="any case"),
        pytest.param({"decision": "ask"}, Outcome("ask"), id="ask"),
        pytest.param({"decision": "maybe"}, Outcome(), id="another word"),
        pytest.param({"decision": None}, Outcome(), id="null"),
        pytest.param({"decision": "approve"}, Outcome("allow"), id="approve, as of old"),
        pytest.param({"decision": "block", "reason": "r"}, Outcome("deny", "r"), id="block"),
        pytest.param({"halt": True, "reason": "r"}, Outcome(reason="r", is_halt=True), id="halt"),
        pytest.param({"halt": False}, Outcome(), id="no halt"),
        pytest.param({"version": 7, "decision": "allow"}, Outcome("allow"), id="a newer version"),
        pytest.param({"context": " a "}, Outcome(context="a"), id="context"),
        pytest.param({"context": ["a", "", 3, "b"]}, Outcome(context="a\nb"), id="contexts"),
        pytest.param({"context": {"a": 1}}, Outcome(), id="context of another kind"),
        pytest.param({"updated_input": {"a.b": 1}}, Outcome(patch={"a.b": 1}), id="input"),
        pytest.param({"updated_input": '{"a": 1}'}, Outcome(patch={"a": 1}), id="input in text"),
        pytest.param({"updated_input": None}, Outcome(), id="null input"),
        pytest.param({"suppressOutput": True}, Outcome(), id="what is ignored"),
        pytest.param({"systemMessage": "hi"}, Outcome(message="hi"), id="a message"),
        pytest.param({"continue": True}, Outcome(), id="to go on"),
        pytest.param(
            {"continue": False, "stopReason": "enough"},
            Outcome(reason="enough", is_halt=True),
            id="not to go on",
        ),
        pytest.param(
            inner(permissionDecision="deny", permissionDecisionReason="r"),
            Outcome("deny", "r"),
            id="Claude Code: deny",
        ),
        pytest.param(inner(permissionDecision="ask"), Outcome("ask"), id="Claude Code: ask"),
        pytest.param(
            {**inner(permissionDecision="allow"), "decision": "block"},
            Outcome("allow"),
            id="Claude Code: the inner one counts",
        ),
        pytest.param(
            inner(updatedInput={"a": 1}, additionalContext="c"),
            Outcome(context="c", patch={"a": 1}),
            id="Claude Code: input and context",
        ),
        pytest.param(
            {**inner(additionalContext=["c", "d"]), "continue": False, "systemMessage": "m"},
            Outcome(context="c\nd", is_halt=True, message="m"),
            id="Claude Code: contexts, end and message",
        ),
        pytest.param(
            {"decision": "block", "reason": "r", **inner(additionalContext="c")},
            Outcome("deny", "r", context="c"),
            id="Claude Code: block with context",
        ),
    ],
)
def test_json_in_either_form(printed: object, expected: Outcome) -> None:
    assert said(printed) == expected


@pytest.mark.parametrize(
    ("ran", "why"),
    [
        pytest.param(HookExit(1, b"", b"Traceback"), "exit 1, Traceback", id="exit 1"),
        pytest.param(HookExit(127), "exit 127", id="no such program"),
        pytest.param(
            HookExit(143, trouble="it took longer than 3 s"), "longer than 3 s", id="slow"
        ),
        pytest.param(HookExit(stdout=b'{"decision": 3}'), "`decision`", id="a number as decision"),
        pytest.param(HookExit(stdout=b'{"halt": "yes"}'), "`halt`", id="text as halt"),
        pytest.param(HookExit(stdout=b'{"version": true}'), "`version`", id="true as version"),
        pytest.param(
            HookExit(stdout=b'{"hookSpecificOutput": []}'),
            "`hookSpecificOutput`",
            id="a list inside",
        ),
        pytest.param(HookExit(stdout=b'{"updated_input": 3}'), "new input", id="a number as input"),
        pytest.param(HookExit(stdout=b'{"decision": "deny",}'), "begins like JSON", id="a comma"),
        pytest.param(HookExit(stdout=b'{"decision": "deny"'), "begins like JSON", id="cut off"),
        pytest.param(HookExit(stdout=b"{'decision': 'deny'}"), "begins like JSON", id="Python's"),
        pytest.param(HookExit(stdout=b'{"a": 1}\n{"a": 1}'), "begins like JSON", id="two objects"),
        pytest.param(
            HookExit(stdout=b'{"decision": "deny"} ok'), "begins like JSON", id="words behind"
        ),
        pytest.param(HookExit(stdout=b'{"version": 1e999}'), "begins like JSON", id="no number"),
        pytest.param(
            HookExit(stdout=b'{"a":' * 100_000 + b"1" + b"}" * 100_000), "JSON", id="without end"
        ),
    ],
)
@pytest.mark.parametrize(
    ("event", "fail", "opinion"),
    [
        pytest.param("PreToolUse", "open", None, id="open"),
        pytest.param("PreToolUse", "closed", "deny", id="closed"),
        pytest.param("UserPromptSubmit", "closed", "deny", id="closed for prompts"),
        pytest.param("Stop", "closed", None, id="nothing to close at the end"),
        pytest.param("PostToolUse", "closed", None, id="nothing to close afterwards"),
    ],
)
def test_a_hook_that_fails_has_no_opinion_unless_it_fails_closed(
    ran: HookExit, why: str, *, event: HookEvent, fail: FailPolicy, opinion: str | None
) -> None:
    found = outcome(Hook(event, "hook", fail=fail), ran)
    assert found.opinion == opinion
    assert why in found.failure
    assert (why in found.reason) == (opinion == "deny")
    assert not found.is_halt


def test_an_input_that_is_none_does_not_undo_a_decision() -> None:
    found = said({"decision": "deny", "reason": "r", "updated_input": 3})
    assert (found.opinion, found.reason) == ("deny", "r")


@pytest.mark.parametrize("event", ["UserPromptSubmit", "SessionStart"])
def test_what_hooks_of_a_prompt_or_a_session_print_is_context(event: HookEvent) -> None:
    assert said(" It rains. \n", event) == Outcome(context="It rains.")
    assert said({"context": "c"}, event) == Outcome(context="c")


def test_what_is_said_is_bounded() -> None:
    found = said({"decision": "deny", "reason": "r" * 100_000, "context": "c" * 100_000})
    for text in (found.reason, found.context):
        assert len(text) < MAX_SAID_BYTES + 100
        assert "left out" in text


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5) | st.floats(),
    lambda each: st.lists(each, max_size=3) | st.dictionaries(st.text(max_size=5), each),
    max_leaves=6,
)
FIELDS = st.sampled_from(
    ["decision", "reason", "halt", "context", "updated_input", "version", "continue",
     "stopReason", "systemMessage", "hookSpecificOutput", "permissionDecision",
     "updatedInput", "additionalContext"]
)  # fmt: skip
OBJECTS = st.dictionaries(FIELDS, JSON | st.dictionaries(FIELDS, JSON)).map(json.dumps)


@given(
    st.integers(0, 255),
    st.binary(max_size=50) | OBJECTS.map(str.encode),
    st.binary(max_size=50),
    st.sampled_from(["open", "closed"]),
)
def test_nothing_that_a_hook_prints_makes_hearing_it_fail(
    code: int, stdout: bytes, stderr: bytes, fail: FailPolicy
) -> None:
    found = outcome(Hook("PreToolUse", "hook", fail=fail), HookExit(code, stdout, stderr))
    if code in (2, 49):
        assert found.opinion == "deny"
        assert found.reason
    if code not in (0, 2, 49):
        assert found.opinion == ("deny" if fail == "closed" else None)


@pytest.mark.parametrize("fail", ["open", "closed"])
def test_a_call_is_not_allowed_whose_new_input_cannot_be_read(fail: FailPolicy) -> None:
    printed = json.dumps({"decision": "allow", "updated_input": ["rm"]}).encode()
    found = outcome(Hook("PreToolUse", "hook", fail=fail), HookExit(stdout=printed))

    assert found.opinion == ("deny" if fail == "closed" else None)
    assert "new input" in found.failure


def test_a_turn_ends_also_if_the_new_input_cannot_be_read() -> None:
    assert said({"halt": True, "updated_input": 3}).is_halt
    assert said({"continue": False, "stopReason": "r", "updated_input": 3}).reason == "r"
