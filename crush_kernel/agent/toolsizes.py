"""The tools as the model reads them, and how many tokens they have. Pure."""

import json
from collections.abc import Mapping
from typing import Any, cast

from crush_kernel.history.estimate import tokens_of_text
from crush_kernel.providers.base import ToolSpec
from crush_kernel.tools.base import AnyTool


def spec_of(tool: AnyTool) -> ToolSpec:
    """Return `tool` as the model reads it."""
    schema = _untitled(tool.arguments.model_json_schema())
    return ToolSpec(name=tool.name, description=tool.description, input_schema=schema)


def _untitled(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return `schema` without the titles, which only say the names of the parameters again."""
    return {
        key: {name: _inner(each) for name, each in value.items()}
        if key == "properties"
        else _inner(value)
        for key, value in schema.items()
        if key != "title"
    }


def _inner(value: object) -> object:
    if isinstance(value, dict):
        return _untitled(cast("dict[str, Any]", value))
    if isinstance(value, list):
        return [_inner(each) for each in cast("list[object]", value)]
    return value


def tokens_of_tools(tools: tuple[ToolSpec, ...]) -> int:
    """Return about how many tokens the descriptions of `tools` have."""
    return sum(tokens_of_text(tool_text(tool)) for tool in tools)


def tool_text(tool: ToolSpec) -> str:
    """Return `tool` as it is sent: its name, what it does and what it takes."""
    return f"{tool.name}\n{tool.description}\n{json.dumps(dict(tool.input_schema))}"
