"""What the model is told of its tools: true, short, and nothing that is not there."""

import json
import re
from collections.abc import AsyncGenerator, Iterator
from importlib import resources
from pathlib import Path
from string import Formatter
from typing import Any, cast

import pytest

from crush_kernel.agent.toolsizes import spec_of, tokens_of_tools
from crush_kernel.runtime import open_runtime
from crush_kernel.tools.base import AnyTool, description_of
from crush_kernel.tools.network import network_tools

pytestmark = pytest.mark.anyio

MAX_TOKENS = 9_000
"""Of all tools of the agent, as they are sent with every request."""

MAX_CHARACTERS = 1_800
"""Of one description."""

FOLDER = resources.files("crush_kernel.tools").joinpath("descriptions")
NAMES = sorted(entry.name.removesuffix(".md") for entry in FOLDER.iterdir())

WITHOUT_NEIGHBORS = {"question", "todos"}
"""Tools whose work no other tool does."""

NO_NAMES = {"cd", "text", "html", "large", "small", "task"}
"""Words in code that are commands or values."""

_IN_CODE = re.compile(r"`([a-z_]+)`")


@pytest.fixture
async def tools(tmp_path: Path) -> AsyncGenerator[dict[str, AnyTool]]:
    """Give all tools, those of the agent and those of its sub-agents, by name."""
    async with open_runtime(environ=environ(tmp_path), cwd=tmp_path) as runtime:
        of_readers = network_tools(runtime.settings).for_reader(tmp_path)
        yield {tool.name: tool for tool in (*runtime.agent.tools, *of_readers)}


def environ(home: Path) -> dict[str, str]:
    return {"PATH": "/usr/bin:/bin", "HOME": str(home)}


def words_of(schema: object) -> Iterator[str]:
    """Yield the names of parameters and the values that a schema allows, at any depth."""
    if isinstance(schema, list):
        for each in cast("list[object]", schema):
            yield from words_of(each)
    if isinstance(schema, dict):
        known = cast("dict[str, Any]", schema)
        yield from known.get("properties", {})
        yield from map(str, known.get("enum", ()))
        for each in known.values():
            yield from words_of(each)


async def test_the_tools_of_the_agent_leave_room_for_the_conversation(tmp_path: Path) -> None:
    async with open_runtime(environ=environ(tmp_path), cwd=tmp_path) as runtime:
        specs = tuple(map(spec_of, runtime.agent.tools))
    assert tokens_of_tools(specs) <= MAX_TOKENS


async def test_every_tool_has_a_description_and_every_description_a_tool(
    tools: dict[str, AnyTool],
) -> None:
    assert sorted(tools) == NAMES


@pytest.mark.parametrize("name", NAMES)
async def test_a_description_names_only_what_there_is(tools: dict[str, AnyTool], name: str) -> None:
    tool = tools[name]
    own = {*words_of(tool.arguments.model_json_schema())}
    named = {*_IN_CODE.findall(tool.description)}
    assert named - own - {*tools} - NO_NAMES == set()


@pytest.mark.parametrize("name", NAMES)
async def test_a_description_says_which_tool_is_better_for_something_else(
    tools: dict[str, AnyTool], name: str
) -> None:
    others = {*_IN_CODE.findall(tools[name].description)} & {*tools} - {name}
    assert bool(others) is (name not in WITHOUT_NEIGHBORS)


@pytest.mark.parametrize("name", NAMES)
async def test_a_description_is_filled_in_short_and_says_nothing_twice(
    tools: dict[str, AnyTool], name: str
) -> None:
    tool, template = tools[name], FOLDER.joinpath(f"{name}.md").read_text("utf-8")
    # Templates without values may hold braces of their own.
    parsed = Formatter().parse(template) if "{" in template else ()
    places = {field for _, field, _, _ in parsed if field}
    assert not [place for place in places if f"{{{place}}}" in tool.description]
    assert len(tool.description) <= MAX_CHARACTERS
    properties = spec_of(tool).input_schema.get("properties", {})
    said = [each["description"] for each in cast("dict[str, Any]", properties).values()]
    assert not [each for each in said if each.strip(".") in tool.description]


@pytest.mark.parametrize("name", NAMES)
def test_limits_are_those_of_the_program(name: str) -> None:
    # Whatever is more than one digit is a limit, and those stand in the code.
    template = FOLDER.joinpath(f"{name}.md").read_text("utf-8")
    assert re.findall(r"\d{2,}|\d+ ?[kMG]i?B", template) == []


@pytest.mark.parametrize("name", NAMES)
def test_a_value_that_is_missing_is_noticed(name: str) -> None:
    template = FOLDER.joinpath(f"{name}.md").read_text("utf-8")
    if "{" in template:
        with pytest.raises(KeyError):
            description_of(name, {"nothing": 1})


async def test_schemas_need_no_look_up_and_bound_their_lists(tools: dict[str, AnyTool]) -> None:
    for name, tool in tools.items():
        schema = spec_of(tool).input_schema
        text = json.dumps(dict(schema))
        assert "$ref" not in text, name
        assert text.count('"type": "array"') == text.count('"maxItems"'), name
        assert '"title": "' not in text, name
