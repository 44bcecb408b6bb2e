"""How many tokens the tools have, as the model reads them. Pure."""

import json

from crush_kernel.history.estimate import tokens_of_text
from crush_kernel.providers.base import ToolSpec


def tokens_of_tools(tools: tuple[ToolSpec, ...]) -> int:
    """Return about how many tokens the descriptions of `tools` have."""
    return sum(tokens_of_text(tool_text(tool)) for tool in tools)


def tool_text(tool: ToolSpec) -> str:
    """Return `tool` as it is sent: its name, what it does and what it takes."""
    return f"{tool.name}\n{tool.description}\n{json.dumps(dict(tool.input_schema))}"
