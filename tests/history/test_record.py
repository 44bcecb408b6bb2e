"""What a turn and a session are stored as, and what is made of what anybody stored."""

import json
from copy import deepcopy
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import JsonValue

from crush_kernel.history.plainjson import MAX_DEPTH, MAX_FAULTS, MAX_VALUES
from crush_kernel.history.record import (
    MAX_COUNT,
    BadRecord,
    SessionHeader,
    examine_turn,
    read_header,
    read_turn,
    write_header,
    write_turn,
)
from crush_kernel.history.turn import Turn, digest_of
from crush_kernel.messages import (
    JsonObject,
    Media,
    Message,
    Opaque,
    Reasoning,
    ShellCommand,
    SummaryMark,
    Text,
    ToolCall,
    ToolResult,
    Usage,
)
from tests.history.values import WILD, WRITTEN, objects_of, turns_of

Json = dict[str, Any]

PROMPT: Json = {"role": "user", "parts": [{"kind": "text", "text": "List the files."}]}
RECORD: Json = {"version": 1, "turn": "c1.2", "run": 2, "revision": 5, "end": "end_turn"}

EVERYTHING = Turn(
    "c1",
    2,
    (
        Message("user", (Text("Look at `a.png`."), Media("image/png", "aGk=", "a.png"))),
        Message(
            "assistant",
            (
                Reasoning("Hm.", {"type": "thinking", "signature": "s"}),
                ToolCall("t1", "view", '{"path": "a.png"}'),
            ),
            provider="anthropic",
            model="claude",
            stop="tool_use",
            usage=Usage(10, 20, 0, 5),
        ),
        Message(
            "tool",
            (
                ToolResult(
                    "t1",
                    "An image.",
                    media=(Media("image/png", "aGk="),),
                    metadata={"summary": "1 image", "volatile": {"duration_s": 0.25}},
                ),
            ),
        ),
        Message("user", (ShellCommand("ls", "a.png\n", 0), SummaryMark("f"))),
        Message("assistant", (Text("A cat."), Opaque({"kind": "smell", "strength": 3}))),
    ),
    revision=6,
    end="end_turn",
    fingerprint="ffff",
    source="5050",
    is_start=True,
    volatile={"ended": "2026-01-01"},
)


def record_with(**fields: object) -> Json:
    """Return the record of a turn without messages, with other `fields`."""
    return {**RECORD, **fields}


def stored(turn: Turn) -> JsonObject:
    """Return the record of `turn` after a front end has written it to a file."""
    return json.loads(json.dumps(write_turn(turn), ensure_ascii=False, allow_nan=False).encode())


def without_times(message: Message) -> Message:
    parts = tuple(
        replace(part, metadata={k: v for k, v in part.metadata.items() if k != "volatile"})
        if isinstance(part, ToolResult)
        else part
        for part in message.parts
    )
    return replace(message, parts=parts)


STORED = """{
"version": 1,
"turn": "c1.2",
"run": 2,
"revision": 6,
"end": "end_turn",
"model": "anthropic/claude",
"fingerprint": "ffff",
"source": "5050",
"is_start": true,
"usage": {"input_tokens": 10, "cache_read_tokens": 20, "output_tokens": 5},
"messages": [
{"role": "user", "parts": [
{"kind": "text", "text": "Look at `a.png`."},
{"kind": "media", "media_type": "image/png", "data": "aGk=", "name": "a.png"}]},
{"role": "assistant", "parts": [
{"kind": "reasoning", "text": "Hm.", "provider_data": {"type": "thinking", "signature": "s"}},
{"kind": "tool_call", "id": "t1", "name": "view", "input": "{\\"path\\": \\"a.png\\"}"}],
"provider": "anthropic", "model": "claude", "stop": "tool_use",
"usage": {"input_tokens": 10, "cache_read_tokens": 20, "output_tokens": 5}},
{"role": "tool", "parts": [
{"kind": "tool_result", "call_id": "t1", "content": "An image.",
"media": [{"kind": "media", "media_type": "image/png", "data": "aGk="}],
"metadata": {"summary": "1 image"}}]},
{"role": "user", "parts": [
{"kind": "shell_command", "command": "ls", "output": "a.png\\n", "exit_code": 0},
{"kind": "summary_mark", "covers": "f"}]},
{"role": "assistant", "parts": [
{"kind": "text", "text": "A cat."},
{"kind": "smell", "strength": 3}]}],
"volatile": {"ended": "2026-01-01", "durations": {"t1": 0.25}}
}"""


def test_a_record_has_one_form_and_nothing_in_it_that_says_nothing() -> None:
    assert json.dumps(write_turn(EVERYTHING)) == STORED.replace(",\n", ", ").replace("\n", "")


def test_two_runs_that_differ_in_time_alone_differ_in_one_field_alone() -> None:
    result = ToolResult("t1", "", metadata={"volatile": {"duration_s": 9.5}})
    later = replace(EVERYTHING, volatile={}, messages=(Message("tool", (result,)),))
    sooner = replace(later, messages=(Message("tool", (ToolResult("t1", ""),)),))
    assert write_turn(later) == {**write_turn(sooner), "volatile": {"durations": {"t1": 9.5}}}
    assert "volatile" not in write_turn(sooner)


def test_an_empty_turn_says_who_it_is_and_no_more() -> None:
    assert write_turn(Turn("c1", 2, revision=5, end="end_turn")) == RECORD


@given(turns_of(WRITTEN))
def test_every_turn_comes_back_as_it_was_but_for_the_times_of_its_calls(turn: Turn) -> None:
    record = stored(turn)
    read = read_turn(record, cell_id="another")
    assert read.record is record
    said = tuple(map(without_times, turn.messages))
    volatile = record.get("volatile", {})
    assert read == replace(
        turn, messages=said, volatile=volatile, record=record, digest=digest_of(turn.messages)
    )


@given(turns_of(WILD, is_plain=False))
def test_every_turn_can_be_stored_and_read_again(turn: Turn) -> None:
    read, problems = (examined := examine_turn(stored(turn), cell_id="c")).turn, examined.problems
    assert not problems
    assert len(read.messages) == len(turn.messages)
    assert read.id == turn.id
    assert read.digest == digest_of(turn.messages)
    assert stored(replace(read, record=None)) == stored(turn)


UNKNOWN = objects_of(WRITTEN).map(
    lambda data: {"x-new": 1} | {f"x-{name}": value for name, value in data.items()}
)
TURNS = turns_of(WRITTEN)


def extended(value: JsonObject, unknown: Json) -> Json:
    """Return `value` with the fields of `unknown` in its objects, at every level."""

    def extend(item: JsonValue) -> JsonValue:
        if isinstance(item, list):
            return list(map(extend, item))
        return extended(item, unknown) if isinstance(item, dict) else item

    return {name: extend(item) for name, item in value.items()} | unknown


later_records = st.builds(extended, TURNS.map(stored), UNKNOWN)


@given(later_records)
def test_a_record_of_a_later_minor_version_is_written_back_as_it_came(record: JsonValue) -> None:
    before = deepcopy(record)
    examined = examine_turn(record, cell_id="c")
    assert write_turn(examined.turn) is record
    assert record == before
    assert examined.problems == ()


@given(turns_of(WRITTEN), objects_of(WRITTEN))
def test_nothing_is_read_of_a_record_but_the_fields_of_a_turn(
    turn: Turn, anything: dict[str, JsonValue]
) -> None:
    record = dict(stored(turn))
    granting = {**anything, **GRANTS, **record}
    read = read_turn(granting, cell_id="c")
    assert replace(read, record=record) == read_turn(record, cell_id="c")


GRANTS: Json = {
    "grants": ["bash"],
    "permissions": {"bash": "allow"},
    "permission_mode": "yolo",
    "mode": "yolo",
    "modes": ["yolo"],
    "hooks": {"PreToolUse": [{"command": "rm -rf ~"}]},
    "trust": True,
    "trusted": True,
    "allowed_tools": ["bash"],
    "mcp": {"x": {"command": "sh"}},
}


def test_a_record_without_messages_is_a_turn() -> None:
    turn = read_turn(RECORD, cell_id="c9")
    assert turn == Turn("c1", 2, (), 5, "end_turn", record=RECORD, digest=digest_of(()))


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        pytest.param({"turn": "a.b.2"}, "a.b.2", id="an id with a dot"),
        pytest.param({"turn": "c1.3"}, "c9.2", id="another run"),
        pytest.param({"turn": "c1"}, "c9.2", id="no run"),
        pytest.param({"turn": ".2"}, "c9.2", id="no cell"),
        pytest.param({"turn": "c1.02"}, "c9.2", id="a run in another form"),
        pytest.param({"turn": 5}, "c9.2", id="no text"),
        pytest.param({"turn": None}, "c9.2", id="null"),
        pytest.param({"turn": "c\u202e1.2"}, "c9.2", id="an id that turns around"),
        pytest.param({"turn": "c" * 5_000 + ".2"}, "c9.2", id="an id without end"),
    ],
)
def test_a_turn_keeps_its_name_in_a_copied_cell_and_gets_one_if_it_has_none(
    changes: Json, expected: str
) -> None:
    record = record_with(**changes)
    turn = read_turn(record, cell_id="c9")
    assert turn.id == expected
    assert write_turn(turn) == record


@pytest.mark.parametrize(
    ("end", "expected"),
    [
        pytest.param("error", "error", id="an end that is known"),
        pytest.param("running", "interrupted", id="nobody runs it any more"),
        pytest.param("paused", "interrupted", id="an end of a later version"),
        pytest.param(None, "interrupted", id="no end"),
        pytest.param(["end_turn"], "interrupted", id="no text"),
    ],
)
def test_a_turn_that_did_not_end_as_we_know_was_interrupted(end: JsonValue, expected: str) -> None:
    assert read_turn(record_with(end=end), cell_id="c").end == expected


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        pytest.param({"fingerprint": 5}, "fingerprint", id="a fingerprint that is no text"),
        pytest.param({"fingerprint": "f" * 10_000}, "fingerprint", id="one without end"),
        pytest.param({"source": ["x"]}, "source", id="a source that is no text"),
        pytest.param({"is_start": 1}, "is_start", id="a start that is no truth value"),
        pytest.param({"is_start": "yes"}, "is_start", id="a start in words"),
        pytest.param({"volatile": "now"}, "volatile", id="times that are no object"),
    ],
)
def test_a_field_that_cannot_be_read_is_empty(changes: Json, field: str) -> None:
    turn = read_turn(record_with(**changes), cell_id="c")
    assert getattr(turn, field) == getattr(Turn("c"), field)


def nested(depth: int) -> JsonValue:
    value: JsonValue = 1
    for _ in range(depth):
        value = [value]
    return value


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        pytest.param(None, "it is no JSON object", id="null"),
        pytest.param([RECORD], "it is no JSON object", id="a list"),
        pytest.param("{}", "it is no JSON object", id="a text"),
        pytest.param({}, "it does not say which version it has", id="nothing"),
        pytest.param(
            record_with(version=True), "it does not say which version it has", id="a truth value"
        ),
        pytest.param(
            record_with(version=1.0), "it does not say which version it has", id="a fraction"
        ),
        pytest.param(record_with(version="1"), "it does not say which version it has", id="a text"),
        pytest.param(
            record_with(version=10**400),
            "it does not say which version it has",
            id="a version without end",
        ),
        pytest.param(
            record_with(version=2),
            "its version is 2, and this kernel reads version 1",
            id="a later version",
        ),
        *(
            pytest.param(
                record_with(run=run), "its run is no whole number from 1 up", id=f"run {name}"
            )
            for run, name in (
                (0, "zero"),
                (-1, "negative"),
                (True, "true"),
                (1.5, "a fraction"),
                (float("nan"), "no number"),
                (float("inf"), "infinite"),
                (10**400, "without end"),
                (MAX_COUNT + 1, "too large"),
                ("2", "a text"),
                (None, "null"),
            )
        ),
        pytest.param(
            record_with(revision=-1),
            "its revision is no whole number from 0 up",
            id="a negative revision",
        ),
        pytest.param(
            record_with(messages={}), "its messages are no list", id="messages that are an object"
        ),
        pytest.param(record_with(messages=None), "its messages are no list", id="null messages"),
        pytest.param(record_with(x=nested(MAX_DEPTH)), "it nests deeper than 64 levels", id="deep"),
        pytest.param(record_with(x=nested(900)), "it nests deeper than 64 levels", id="deeper"),
        pytest.param(record_with(x=[0] * MAX_VALUES), "it is too large", id="large"),
        pytest.param(
            record_with(messages=[0] * (MAX_FAULTS + 1)),
            "it holds too much that cannot be read",
            id="nothing but damage",
        ),
    ],
)
def test_what_is_no_record_of_ours_is_refused_with_a_reason(value: JsonValue, reason: str) -> None:
    with pytest.raises(BadRecord) as refused:
        read_turn(value, cell_id="c")
    assert str(refused.value) == reason


def test_what_nests_as_deep_as_allowed_is_read() -> None:
    record = record_with(x=nested(MAX_DEPTH - 2))
    assert write_turn(read_turn(record, cell_id="c")) is record


def test_what_nests_too_deep_is_cut_when_it_is_written() -> None:
    deep: JsonValue = nested(500)
    turn = replace(EVERYTHING, messages=(Message("assistant", (Reasoning("", {"a": deep}),)),))
    read = read_turn(stored(turn), cell_id="c")
    assert isinstance(read.messages[0].parts[0], Reasoning)
    assert "null" in json.dumps(read.messages[0].parts[0].provider_data)


CALL = {"kind": "tool_call", "id": "t1", "name": "ls", "input": "{}"}
RESULT = {"kind": "tool_result", "call_id": "t1", "content": "a.py"}


@pytest.mark.parametrize(
    ("stored_message", "expected"),
    [
        pytest.param(
            {**PROMPT, "role": "wizard"},
            Message("user", (Text("List the files."),)),
            id="an unknown role is a user's",
        ),
        pytest.param(
            {"role": "system", "parts": [CALL]},
            Message("assistant", (ToolCall("t1", "ls", "{}"),)),
            id="who calls is a model",
        ),
        pytest.param(
            {"role": "function", "parts": [RESULT]},
            Message("tool", (ToolResult("t1", "a.py"),)),
            id="who answers is a tool",
        ),
        pytest.param(
            {"role": ["user"], "parts": PROMPT["parts"]},
            Message("user", (Text("List the files."),)),
            id="a role that is no text",
        ),
        pytest.param(
            {**PROMPT, "role": "assistant", "stop": "paused"},
            Message("assistant", (Text("List the files."),)),
            id="an unknown reason to stop",
        ),
        *(
            pytest.param(
                {**PROMPT, "usage": usage},
                Message("user", (Text("List the files."),)),
                id=f"usage {name}",
            )
            for usage, name in (
                ({"input_tokens": -1}, "negative"),
                ({"input_tokens": True}, "true"),
                ({"input_tokens": 10**400}, "without end"),
                ({"output_tokens": "5"}, "a text"),
                ([1, 2], "a list"),
            )
        ),
        pytest.param(
            {**PROMPT, "provider": 5, "model": {}},
            Message("user", (Text("List the files."),)),
            id="labels that are no text",
        ),
        pytest.param(
            {"role": "user", "parts": [{"kind": "text"}, *PROMPT["parts"]]},
            Message("user", (Opaque({"kind": "text"}), Text("List the files."))),
            id="a part that is not what it says",
        ),
        pytest.param(
            {"role": "user", "parts": [{"kind": "text", "text": 5}]},
            Message("user", (Opaque({"kind": "text", "text": 5}),)),
            id="a part of the wrong type",
        ),
        pytest.param(
            {"role": "user", "parts": [5, None, *PROMPT["parts"]]},
            Message("user", (Text("List the files."),)),
            id="parts that are no objects",
        ),
        pytest.param(
            {
                "role": "user",
                "parts": [
                    {"kind": "shell_command", "command": "", "output": "", "exit_code": 10**9}
                ],
            },
            Message("user", (ShellCommand("", "", 10**9),)),
            id="a large exit code",
        ),
    ],
)
def test_a_damaged_message_is_read_as_far_as_it_goes(
    stored_message: Json, expected: Message
) -> None:
    record = record_with(messages=[PROMPT, stored_message])
    examined = examine_turn(record, cell_id="c")
    prompt = Message("user", (Text("List the files."),))
    assert examined.turn.messages == (prompt, expected)
    assert write_turn(examined.turn) is record


@pytest.mark.parametrize(
    "stored_message",
    [
        pytest.param(None, id="null"),
        pytest.param("hello", id="a text"),
        pytest.param({}, id="nothing"),
        pytest.param({"role": "user"}, id="no parts"),
        pytest.param({"role": "user", "parts": "hello"}, id="parts that are a text"),
        pytest.param({"role": "wizard", "parts": []}, id="nobody who says nothing"),
        pytest.param({"role": "user", "parts": [5]}, id="no part that can be read"),
    ],
)
def test_a_message_that_cannot_be_read_is_skipped_and_counted(stored_message: JsonValue) -> None:
    record = record_with(messages=[PROMPT, stored_message, {**PROMPT, "role": "wizard"}, PROMPT])
    examined = examine_turn(record, cell_id="c")
    assert [message.role for message in examined.turn.messages] == ["user"] * 3
    assert examined.problems == (
        "of 4 messages, 1 cannot be read",
        "of 4 messages, 1 can only be read in part",
    )
    assert write_turn(examined.turn) is record


def test_halves_of_characters_in_an_old_file_are_replaced() -> None:
    old = json.loads(
        '{"version": 1, "run": 1, "x\\ud83d": ["\\udd25"], "messages":'
        ' [{"role": "user", "parts": [{"kind": "text", "text": "a\\ud83d"}]}]}'
    )
    turn = read_turn(old, cell_id="c")
    assert turn.messages == (Message("user", (Text("a\ufffd"),)),)
    written = json.dumps(write_turn(turn), ensure_ascii=False).encode()
    assert json.loads(written)["x\ufffd"] == ["\ufffd"]
    assert write_turn(read_turn(json.loads(written), cell_id="c")) == json.loads(written)


def test_numbers_that_json_has_not_are_read_as_null() -> None:
    record = read_turn(record_with(x=[float("nan"), float("-inf"), 1.5]), cell_id="c").record
    assert record == record_with(x=[None, None, 1.5])


def test_the_durations_of_calls_are_kept_as_numbers_only() -> None:
    times: list[JsonValue] = [
        {"duration_s": 1.5},
        {"duration_s": float("inf")},
        {"duration_s": "long"},
        "now",
    ]
    results = tuple(
        ToolResult(f"t{number}", "", metadata={"volatile": each})
        for number, each in enumerate(times)
    )
    turn = replace(
        EVERYTHING, messages=(Message("tool", results),), volatile={"durations": {"a": 2}}
    )
    assert write_turn(turn)["volatile"] == {"durations": {"a": 2, "t0": 1.5}}


# Headers

HEADER: Json = {
    "version": 1,
    "id": "5e55",
    "title": "Prices",
    "model": "anthropic/claude",
    "totals": {
        "turns": 3,
        "usage_by_model": {"anthropic/claude": {"input_tokens": 10, "output_tokens": 5}},
    },
    "todos": [{"content": "Round last.", "status": "pending"}],
    "summaries": [{"turn": "c2.1", "covers": "ffff"}],
    "volatile": {"opened": "2026-01-01"},
}

SESSION = SessionHeader(
    id="5e55",
    title="Prices",
    model="anthropic/claude",
    turns=3,
    usage={"anthropic/claude": Usage(input_tokens=10, output_tokens=5)},
    todos=({"content": "Round last.", "status": "pending"},),
    summaries=({"turn": "c2.1", "covers": "ffff"},),
    volatile={"opened": "2026-01-01"},
)


def header_with(**fields: object) -> Json:
    return {**HEADER, **fields}


def test_a_header_has_one_form() -> None:
    assert json.dumps(write_header(SESSION)) == json.dumps(HEADER)
    assert write_header(SessionHeader()) == {"version": 1}


COUNTS = st.integers(0, 2**53)
USAGE = st.builds(Usage, st.integers(1, 2**53), COUNTS, COUNTS, COUNTS, st.booleans())
ITEMS = st.lists(objects_of(WRITTEN), max_size=2).map(tuple)

headers = st.builds(
    SessionHeader,
    id=st.text("abc-_0", max_size=8),
    title=WRITTEN,
    model=WRITTEN,
    turns=st.integers(0, MAX_COUNT),
    usage=st.dictionaries(WRITTEN, USAGE, max_size=2),
    todos=ITEMS,
    summaries=ITEMS,
    volatile=objects_of(WRITTEN),
)


@given(headers)
def test_every_header_comes_back_as_it_was(header: SessionHeader) -> None:
    written = write_header(header)
    assert replace(read_header(json.loads(json.dumps(written))), extra={}) == header


later_headers = st.builds(extended, headers.map(write_header), UNKNOWN)


@given(later_headers)
def test_a_header_of_a_later_minor_version_is_written_back_as_it_came(header: Json) -> None:
    assert write_header(read_header(header)) == header


@given(later_headers, headers)
def test_what_changed_is_written_over_what_was_read_and_the_unknown_stays(
    former: Json, now: SessionHeader
) -> None:
    read = read_header(former)
    written = write_header(replace(now, extra=read.extra))
    again = read_header(written)
    assert replace(again, extra={}, usage={}) == replace(now, usage={})
    assert now.usage.items() <= again.usage.items() <= (read.usage | now.usage).items()
    unknown = {name: value for name, value in former.items() if name.startswith("x-")}
    assert unknown.items() <= written.items()


def test_what_became_empty_is_written_as_such() -> None:
    read = read_header(header_with(totals={"turns": 3, "x": 1}))
    written = write_header(replace(read, title="", turns=0, todos=(), volatile={}))
    assert written == header_with(title="", totals={"turns": 0, "x": 1}, todos=[], volatile={})


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        pytest.param({"id": 5}, "id", id="an id that is no text"),
        pytest.param({"id": "../../etc/passwd"}, "id", id="an id that is a path"),
        pytest.param({"id": "a" * 1_000}, "id", id="an id without end"),
        pytest.param({"title": ["Prices"]}, "title", id="a title that is no text"),
        pytest.param({"title": "x" * 10_000}, "title", id="a title without end"),
        pytest.param({"model": {}}, "model", id="a model that is no text"),
        pytest.param({"totals": 3}, "turns", id="totals that are no object"),
        pytest.param({"totals": {"turns": -1}}, "turns", id="a negative number of turns"),
        pytest.param({"totals": {"turns": True}}, "turns", id="a number that is true"),
        pytest.param({"totals": {"usage_by_model": [5]}}, "usage", id="usage that is a list"),
        pytest.param(
            {"totals": {"usage_by_model": {"m": {"input_tokens": -1}}}},
            "usage",
            id="negative usage",
        ),
        pytest.param({"todos": {"a": 1}}, "todos", id="todos that are no list"),
        pytest.param({"todos": ["a", None]}, "todos", id="todos that are no objects"),
        pytest.param({"summaries": "none"}, "summaries", id="summaries that are no list"),
        pytest.param({"volatile": 5}, "volatile", id="times that are no object"),
    ],
)
def test_a_field_of_a_header_that_cannot_be_read_is_empty(changes: Json, field: str) -> None:
    read = read_header(header_with(**changes))
    assert getattr(read, field) == getattr(SessionHeader(), field)


@pytest.mark.parametrize(
    "value",
    [
        pytest.param(None, id="null"),
        pytest.param({}, id="no version"),
        pytest.param(header_with(version=2), id="a later version"),
        pytest.param(header_with(x=nested(MAX_DEPTH)), id="deep"),
    ],
)
def test_what_is_no_header_of_ours_is_refused(value: JsonValue) -> None:
    with pytest.raises(BadRecord):
        read_header(value)


@given(headers, objects_of(WRITTEN))
def test_nothing_is_read_of_a_header_but_the_fields_of_a_session(
    header: SessionHeader, anything: dict[str, JsonValue]
) -> None:
    written = dict(write_header(header))
    known = {"version", "id", "title", "model", "totals", "todos", "summaries", "volatile"}
    others = {name: value for name, value in anything.items() if name not in known}
    read = read_header({**others, **GRANTS, **written})
    assert replace(read, extra=written) == read_header(written)


# Whatever else a file may hold

_NAMES = "version turn run revision end messages role parts kind text usage metadata volatile"
KEYS = st.sampled_from([*_NAMES.split(), "__proto__", "constructor", "<script>", "\ud83d"])
HOSTILE = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | WILD
    | st.sampled_from([10**400, -1, 2**63, "user", "text", "x" * 100_000, "<img onerror=x>", 1]),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS | WILD, inner, max_size=5),
    max_leaves=12,
)


@st.composite
def damaged_records(draw: st.DrawFn) -> JsonValue:
    """Draw records in which some values have become others."""

    def damaged(value: JsonValue) -> JsonValue:
        if draw(st.integers(0, 9)) == 0:
            return draw(HOSTILE)
        if isinstance(value, list):
            return [damaged(item) for item in value]
        if isinstance(value, dict):
            return {name: damaged(item) for name, item in value.items()}
        return value

    return damaged(json.loads(STORED))


@given(HOSTILE | damaged_records() | HOSTILE.map(lambda value: record_with(messages=value)))
def test_reading_anything_gives_a_turn_or_says_why_not(value: JsonValue) -> None:
    try:
        examined = examine_turn(value, cell_id="c")
    except BadRecord:
        return
    again = read_turn(stored(examined.turn), cell_id="c")
    assert again == examined.turn
    json.dumps(write_turn(replace(again, record=None)), ensure_ascii=False).encode()


@given(HOSTILE | HOSTILE.map(lambda value: header_with(totals=value, todos=[value])))
def test_reading_anything_gives_a_header_or_says_why_not(value: JsonValue) -> None:
    try:
        read = read_header(value)
    except BadRecord:
        return
    written = write_header(read)
    assert read_header(json.loads(json.dumps(written, ensure_ascii=False).encode())) == replace(
        read, extra=written
    )
