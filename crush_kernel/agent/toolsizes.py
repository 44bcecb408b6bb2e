"""The tools as the model reads them, and how many tokens they have. Pure."""

import json

from crush_kernel.history.estimate import tokens_of_text
from crush_kernel.providers.base import ToolSpec
from crush_kernel.tools.base import AnyTool


def spec_of(tool: AnyTool) -> ToolSpec:
    """Return `tool` as the model reads it."""
    schema = tool.arguments.model_json_schema()
    schema.pop("title", None)
    return ToolSpec(name=tool.name, description=tool.description, input_schema=schema)


def tokens_of_tools(tools: tuple[ToolSpec, ...]) -> int:
    """Return about how many tokens the descriptions of `tools` have."""
    return sum(tokens_of_text(tool_text(tool)) for tool in tools)


def tool_text(tool: ToolSpec) -> str:
    """Return `tool` as it is sent: its name, what it does and what it takes."""
    return f"{tool.name}\n{tool.description}\n{json.dumps(dict(tool.input_schema))}"
