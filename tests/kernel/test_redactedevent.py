"""What is shown in short was clean before it was cut."""

from dataclasses import replace
from pathlib import Path

import pytest

from crush_kernel.agent.events import (
    Event,
    Notice,
    PermissionSettled,
    Retrying,
    StepStarted,
    ToolCallWritten,
    ToolFinished,
    ToolProgressed,
    ToolStarted,
)
from crush_kernel.history.redaction import Redactor
from crush_kernel.kernel.redactedevent import WITHHELD, redacted_event, redacted_request
from crush_kernel.kernel.transcript import Transcript
from crush_kernel.messages import ToolResult
from crush_kernel.permissions.request import CommandPart, PermissionRequest

REDACTOR = Redactor({})
KEY = "ghp_" + "a1B2" * 9
MARK = "⟨secret: GitHub token⟩"


def request(text: str) -> PermissionRequest:
    return PermissionRequest(
        call_id="c",
        tool="bash",
        action="execute",
        title=f"run {text}",
        paths=(Path("/home/ada"),),
        command=f"echo {text}",
        diff=f"+{text}",
        notes=(text, "plain"),
        parts=(CommandPart(f"echo {text}", ("echo", text, None), f"says {text}", writes=(text,)),),
        reads=(Path(f"/home/{text}"),),
        writes=(Path(f"/srv/{text}"),),
        dangers=(f"tells {text}",),
        server=f"{text}.example.org",
    )


def events(text: str) -> list[Event]:
    return [
        ToolStarted("c", text, f"echo {text}"),
        ToolProgressed("c", f"printed {text}"),
        ToolCallWritten("c", text),
        Notice(f"note {text}"),
        Retrying(f"failed {text}", attempt=2, attempts=4, delay_s=1.0),
        PermissionSettled(request(text), is_allowed=False, rule="denied", reason=f"has {text}"),
        ToolFinished(ToolResult("c", f"got {text}", metadata={"summary": text}), 0.1),
    ]


@pytest.mark.parametrize(
    ("event", "expected"),
    [*zip(events(KEY), events(MARK), strict=True)],
    ids=[type(event).__name__ for event in events("")],
)
def test_every_event_is_clean(event: Event, expected: Event) -> None:
    assert redacted_event(event, REDACTOR) == expected


@pytest.mark.parametrize("event", [*events("plain"), StepStarted(1)])
def test_what_is_clean_is_as_it_was(event: Event) -> None:
    assert redacted_event(event, REDACTOR) == event


def test_a_question_shows_no_secret_and_grants_what_was_asked() -> None:
    asked = request(KEY)
    assert redacted_request(asked, REDACTOR) == request(MARK)
    assert asked.grant != request(MARK).grant


def test_a_secret_that_only_the_whole_command_gives_away_is_in_no_part_of_it() -> None:
    command = "deploy $(echo hunter2)"
    parts = (
        CommandPart(command, ("deploy", None), "runs it"),
        CommandPart("echo hunter2", ("echo", "hunter2"), "prints text"),
    )
    redactor = Redactor({}, [r"echo \w+\)"])
    shown = redacted_request(replace(request(""), command=command, parts=parts), redactor)
    assert [part.text for part in shown.parts] == [shown.command, WITHHELD]
    assert "hunter2" not in str((shown.command, shown.parts))


@pytest.mark.parametrize("before", range(60, 110))
def test_a_token_that_a_limit_cuts_is_not_shown_in_part(before: int) -> None:
    transcript = Transcript("m")
    text = "x" * before + " " + KEY
    result = ToolResult("c", f"{'y' * (1940 + before)} {KEY}\n" + "z\n" * 3000)
    for event in (ToolStarted("c", "bash", text), ToolFinished(result, 0.1)):
        transcript.feed(redacted_event(event, REDACTOR), 0.0)
    (piece,) = transcript.settle()
    assert "a1B2" not in piece.shown.markdown
    assert "ghp" not in piece.shown.markdown
