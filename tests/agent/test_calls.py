"""What becomes of a call as the model wrote it, good or bad."""

import json
import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import Field

from crush_kernel.agent.calls import MAX_FAULT_BYTES, prepare
from crush_kernel.messages import ToolCall
from crush_kernel.tools.base import AnyTool, Arguments, Tool, ToolContext, ToolOutput, erase
from tests.fakes.belt import by_name, tool_belt
from tests.fakes.tool_context import tool_context

pytestmark = pytest.mark.anyio

NULLS = '{"text": "a", "number": null, "flag": null, "choice": null}'
MANY_FAULTS = json.dumps({f"name_{number}": 1 for number in range(1_000)})


class SampleArguments(Arguments):
    text: str = Field(description="A text.")
    number: int = Field(default=7, ge=0, description="A number.")
    flag: bool = Field(default=False, description="A truth value.")
    choice: int | None = Field(default=None, description="A number or nothing.")
    names: tuple[str, ...] = Field(default=(), max_length=9, description="Some texts.")


async def _say_back(arguments: SampleArguments, _: ToolContext) -> ToolOutput:
    return ToolOutput(json.dumps(arguments.model_dump()))


SAMPLE = erase(
    Tool(
        name="sample",
        description="A tool.",
        arguments=SampleArguments,
        run=_say_back,
        describe=lambda arguments: arguments.text,
    )
)


async def outcome(
    arguments: str, name: str = "sample", tools: Mapping[str, AnyTool] | None = None
) -> ToolOutput:
    known = {"sample": SAMPLE, "view": SAMPLE, "grep": SAMPLE} if tools is None else tools
    prepared = prepare(ToolCall("c1", name, arguments), known)
    with anyio.fail_after(20):
        return await prepared.run(tool_context(allow=False).context)


@pytest.mark.parametrize(
    ("arguments", "read"),
    [
        pytest.param('{"text": "a", "number": 5}', {"number": 5}, id="as it should be"),
        pytest.param('{"text": "a", "number": "5"}', {"number": 5}, id="a number as a string"),
        pytest.param('{"text": "a", "number": 5.0}', {"number": 5}, id="a whole number with a dot"),
        pytest.param('{"text": "a", "choice": "5"}', {"choice": 5}, id="or nothing, as a string"),
        pytest.param('{"text": "a", "flag": "true"}', {"flag": True}, id="true as a string"),
        pytest.param('{"text": "a", "flag": "False"}', {"flag": False}, id="false as a string"),
        pytest.param(NULLS, {"number": 7, "flag": False, "choice": None}, id="nulls"),
        pytest.param('{"text": "a\nb"}', {"text": "a\nb"}, id="a raw line break"),
        pytest.param('{"text": "\\u0000"}', {"text": "\0"}, id="an escaped NUL"),
        pytest.param('{"text": "\\ud800"}', {"text": "\ud800"}, id="half a character"),
        pytest.param('{"text": "5"}', {"text": "5"}, id="a text that looks like a number"),
    ],
)
async def test_what_can_be_meant_in_one_way_only_is_taken_so(
    arguments: str, read: dict[str, object]
) -> None:
    output = await outcome(arguments)
    assert not output.is_error, output.text
    got = cast("dict[str, Any]", json.loads(output.text))
    assert {name: got[name] for name in read} == read


@pytest.mark.parametrize(
    ("name", "arguments", "says"),
    [
        pytest.param("veiw", "{}", "There is no tool 'veiw'. Did you mean 'view'?", id="near tool"),
        pytest.param("Grep", "{}", "Did you mean 'grep'?", id="tool in another case"),
        pytest.param("zzz", "{}", "no tool 'zzz'. The tools are: grep, sample,", id="no such tool"),
        pytest.param("", "{}", "There is no tool ''. The", id="tool without a name"),
        pytest.param("a\n\x1b[2J", "{}", r"'a\x0a\x1b[2J'", id="tool with a wild name"),
        pytest.param("sample", '{"text": "a', "not valid JSON", id="cut off"),
        pytest.param("sample", "text=a", "not valid JSON", id="no JSON"),
        pytest.param("sample", '{"text": "a"} {}', "not valid JSON", id="two objects"),
        pytest.param("sample", "[" * 200_000, "not valid JSON", id="deep nesting, cut off"),
        pytest.param("sample", "[" * 50_000 + "]" * 50_000, "JSON", id="deep nesting"),
        pytest.param("sample", f'{{"number": {"9" * 5_000}}}', "JSON", id="a number without end"),
        pytest.param("sample", "[1]", "are a list and not an object", id="a list"),
        pytest.param(
            "sample", '"x"', 'a string and not an object. Write them as {"text"', id="str"
        ),
        pytest.param("sample", "null", "are null and not an object", id="null"),
        pytest.param("sample", "true", "are a truth value and", id="a truth value"),
        pytest.param("sample", "5", "are a number and", id="a number"),
        pytest.param("sample", "", "text: Field required", id="nothing at all"),
        pytest.param("sample", '{"text": null}', "text: Input should be", id="null where needed"),
        pytest.param("sample", '{"text": 5}', "text: Input should be", id="number for a text"),
        pytest.param("sample", '{"text": ["a"]}', "text: Input should be", id="list for a text"),
        pytest.param("sample", '{"text": "a", "number": "x"}', "number: Input", id="no number"),
        pytest.param("sample", '{"text": "a", "number": 5.5}', "number: Input", id="a fraction"),
        pytest.param("sample", '{"text": "a", "number": NaN}', "number: Input", id="NaN"),
        pytest.param("sample", '{"text": "a", "number": -1}', "greater than", id="out of range"),
        pytest.param(
            "sample", '{"text": "a", "flag": "maybe"}', "flag: Input", id="no truth value"
        ),
        pytest.param(
            "sample",
            '{"text": "a", "names": "b"}',
            "names: Input should be a valid list",
            id="text for a list",
        ),
        pytest.param(
            "sample",
            json.dumps({"text": "a", "names": ["b"] * 10}),
            "names: List should have at most 9 items, not 10.",
            id="a long list",
        ),
        pytest.param("sample", '{"text": "a", "names": [1]}', "names.0: Input", id="within a list"),
        pytest.param(
            "sample",
            '{"texts": "a"}',
            "sample has no parameter 'texts'. Did you mean 'text'? It has: text, number, flag,",
            id="near parameter",
        ),
        pytest.param("sample", '{"text": "a", "q": 1}', "no parameter 'q'. It has:", id="extra"),
        pytest.param("sample", '{"text": "a", "": 1}', "no parameter ''.", id="nameless parameter"),
        pytest.param("sample", MANY_FAULTS, "There are 992 more like that.", id="many extras"),
    ],
)
async def test_of_a_bad_call_the_model_reads_what_is_wrong(
    name: str, arguments: str, says: str
) -> None:
    output = await outcome(arguments, name)
    assert output.is_error
    assert output.summary == "bad call"
    assert says in output.text
    assert "Nothing was run." in output.text
    assert len(output.text.encode()) < MAX_FAULT_BYTES + 100


HUGE = "x" * 5_000_000


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        pytest.param(HUGE, "{}", id="the name of the tool"),
        pytest.param("sample", json.dumps({HUGE: 1}), id="the name of a parameter"),
        pytest.param("sample", json.dumps({"number": HUGE}), id="a value"),
        pytest.param("sample", json.dumps({"text": "", "names": [1] * 500_000}), id="a list"),
        pytest.param("sample", json.dumps({str(n): n for n in range(300_000)}), id="parameters"),
        pytest.param("sample", HUGE, id="no JSON"),
    ],
)
@pytest.mark.slow
async def test_of_a_huge_bad_call_little_is_said(name: str, arguments: str) -> None:
    output = await outcome(arguments, name)
    assert output.is_error
    assert len(output.text.encode()) < MAX_FAULT_BYTES + 100


async def test_a_huge_good_call_is_run() -> None:
    output = await outcome(json.dumps({"text": HUGE}))
    assert not output.is_error
    assert HUGE in output.text


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
WORDS = st.sampled_from(["sample", "view", "text", "number", "flag", "choice", "names"]) | st.text()


@given(name=WORDS, arguments=st.text() | st.dictionaries(WORDS, JSON).map(json.dumps))
async def test_whatever_is_called_is_answered(name: str, arguments: str) -> None:
    output = await outcome(arguments, name)
    assert output.text
    output.text.encode()


@pytest.mark.parametrize(
    "value", ["\0", "a\0b", "x" * 5_000_000, "\ud800", "\x1b]0;", "~\0", "../" * 5_000]
)
@pytest.mark.slow
async def test_no_tool_is_surprised_by_what_a_text_can_hold(
    tmp_path: Path, value: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with tool_belt(tmp_path) as belt:
        tools = by_name(belt.for_agent())
        for name, tool in tools.items():
            required = tool.arguments.model_json_schema().get("required", [])
            given = dict.fromkeys(required, value)
            output = await outcome(json.dumps(given), name, tools)
            assert "unexpectedly" not in output.text, name
    assert [record for record in caplog.records if record.levelno >= logging.ERROR] == []
