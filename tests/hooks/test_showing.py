"""What hooks did to a call, as it is shown and as a record shows it later."""

import pytest
from pydantic import JsonValue

from crush_kernel.agent.events import Event, HookTold, ToolRewritten, ToolStarted
from crush_kernel.agent.subagentactivity import Activity
from crush_kernel.history.redaction import Redactor
from crush_kernel.kernel.recordedcall import recorded_call
from crush_kernel.kernel.redactedevent import redacted_event
from crush_kernel.kernel.transcript import Transcript
from crush_kernel.messages import Message, ToolCall, ToolResult

SECRET = "sk-ant-api03-" + "a1B2" * 20

CALL = ToolCall("c1", "bash", '{"command": "ls"}')


@pytest.mark.parametrize(
    ("metadata", "shown"),
    [
        pytest.param({}, "ls", id="without hooks"),
        pytest.param({"hook": {"hook_count": 1}}, "ls", id="unchanged"),
        pytest.param({"hook": {"effective_input": {"command": "ls -a"}}}, "ls -a", id="changed"),
        pytest.param({"hook": "x"}, "ls", id="hostile: text"),
        pytest.param({"hook": {"effective_input": [1]}}, "ls", id="hostile: a list"),
    ],
)
def test_a_record_shows_what_was_done(metadata: dict[str, JsonValue], shown: str) -> None:
    assert recorded_call(CALL, ToolResult("c1", "", metadata=metadata)).summary == shown


def test_a_running_call_shows_the_input_that_a_hook_gave_it() -> None:
    transcript = Transcript("m")
    transcript.feed(ToolStarted("c1", "bash", "ls"), 0.0)
    transcript.feed(ToolRewritten("c1", "ls -a"), 1.0)
    transcript.feed(ToolRewritten("unknown", "x"), 1.0)
    assert [call.row(2.0).summary for call in transcript.calls()] == ["ls -a"]


def test_a_sub_agents_line_shows_it_too_and_what_hooks_did_is_passed_on() -> None:
    told: list[Event] = []
    activity = Activity(lambda _: None, told.append)
    activity.emit(ToolStarted("c1", "bash", "ls"))
    activity.emit(ToolRewritten("c1", "ls -a"))
    activity.emit(HookTold("so it is"))
    assert activity.lines == ("bash ls -a",)
    assert told == [HookTold("so it is")]


def test_secrets_are_taken_out_of_what_is_told_of_hooks() -> None:
    redactor = Redactor({}, ())
    for event in (HookTold(f"no {SECRET}"), ToolRewritten("c1", f"echo {SECRET}")):
        assert SECRET not in str(redacted_event(event, redactor))


def test_secrets_are_taken_out_of_both_recorded_inputs() -> None:
    facts: dict[str, JsonValue] = {
        "hook": {
            "reason": f"not {SECRET}",
            "original_input": {"command": f"echo {SECRET}"},
            "effective_input": {"list": [{"deep": SECRET}]},
        }
    }
    message = Message("tool", (ToolResult("c1", "", metadata=facts),))
    assert SECRET not in str(Redactor({}, ()).redact_messages((message,)))
