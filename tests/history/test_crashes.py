"""Killed at any moment, a kernel leaves a journal that holds all that was shown."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from crush_kernel.history.journal.journal import Journal
from crush_kernel.history.journal.replay import Replayed
from crush_kernel.history.repair import repair
from crush_kernel.messages import Message, Text, ToolCall, calls_of
from crush_kernel.providers.anthropic_wire import RequestEncoder
from crush_kernel.providers.base import ModelInfo, ModelRequest, ToolSpec
from tests.fakes.provider.anthropic_rules import SentThinking, check_body
from tests.history.scripted_session import PATH, SESSION, Expected, expected, script, user

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(os.name == "nt", reason="nobody forks or is killed like that there"),
]


def deaths(folder: Path, moment: str) -> list[tuple[Path, int]]:
    """Return where each killed kernel has written, and how many of its calls had returned."""
    command = [sys.executable, "-m", "tests.history.killed_kernel", str(folder), moment]
    subprocess.run(command, check=True, timeout=50)
    places = sorted(folder.iterdir(), key=lambda place: int(place.name))[:-1]
    return [(place / ".crush", int((place / "returned").read_bytes() or b"0")) for place in places]


def found(directory: Path) -> Expected:
    """Return what the next kernel finds; it finds the same however often it looks."""
    journal = Journal.open(directory)
    assert journal.own(SESSION)
    opened = {turn.id: (turn, outputs) for turn, outputs in journal.recover(SESSION)}
    assert journal.recover(SESSION) == []
    state = Expected({}, {}, journal.decisions(SESSION), [])
    state.files = [version.path for version in journal.files(SESSION)]
    for stored in journal.turns(SESSION):
        outputs, count = journal.outputs(SESSION, stored.id) or ([], None)
        record = journal.record(SESSION, stored.id)
        if stored.id in opened:
            turn, shown = opened[stored.id]
            assert (record, outputs, count) == (turn.record, shown, None)
            state.open[stored.id] = Replayed(replace(turn, record=None), shown)
        else:
            state.ended[stored.id] = record, outputs, count or 0
        assert journal.find(PATH, [stored.cell_id]) == SESSION
    assert journal.take_notice() == ""
    journal.close()
    return state


def assert_is_accepted(messages: tuple[Message, ...]) -> None:
    """Check that a strict provider takes a request that goes on from `messages`."""
    request = ModelRequest("", repair((*messages, user("Go on."))), tools_of(messages))
    body = RequestEncoder(ModelInfo("anthropic", "m"), use_cache=True).encode(request)
    check_body(json.loads(body), SentThinking())


def tools_of(messages: tuple[Message, ...]) -> tuple[ToolSpec, ...]:
    names = {call.name for message in messages for call in calls_of(message)}
    return tuple(ToolSpec(name, "", {"type": "object"}) for name in sorted(names))


def test_killed_after_a_call_nothing_of_it_is_lost(tmp_path: Path) -> None:
    calls = script()
    places = deaths(tmp_path, "after")
    assert [returned for _, returned in places] == [*range(1, len(calls) + 1)]
    for directory, returned in places:
        assert found(directory) == expected(calls[:returned])


def test_killed_before_a_statement_a_call_is_there_as_a_whole_or_not_at_all(
    tmp_path: Path,
) -> None:
    calls = script()
    places = deaths(tmp_path, "before")
    assert {returned for _, returned in places} == {*range(1, len(calls))}
    for directory, returned in places:
        state = found(directory)
        assert state in (expected(calls[:returned]), expected(calls[: returned + 1]))
        for turn in state.open.values():
            assert_is_accepted(turn.turn.messages)


def prefixes() -> Iterator[tuple[Message, ...]]:
    """Yield what an unfinished turn says after each call of the script."""
    calls = script()
    for count in range(len(calls) + 1):
        for replayed in expected(calls[:count]).open.values():
            yield replayed.turn.messages


def test_the_script_meets_what_it_is_for() -> None:
    unfinished = list(prefixes())
    last = [messages[-1] for messages in unfinished if messages]
    assert Message("assistant", (Text("All made"),), "fake", "m", "interrupted") in last
    assert any(message.role == "tool" and len(message.parts) == 1 for message in last)
    assert any(isinstance(part, ToolCall) for message in last for part in message.parts)
