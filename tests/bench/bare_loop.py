"""The shortest agent there is: Anthropic's SDK, one file read or one bash a step.

Run as `python -m tests.bench.bare_loop URL FOLDER`.
"""

import subprocess
import sys
from pathlib import Path

from anthropic import Anthropic
from anthropic.types import MessageParam, ToolParam, ToolResultBlockParam, ToolUseBlock

from tests.bench.anthropic_kernel import MODEL

TOOLS: list[ToolParam] = [
    {
        "name": "view",
        "description": "Read a file.",
        "input_schema": {
            "type": "object",
            "properties": {"file_path": {"type": "string"}, "limit": {"type": "integer"}},
        },
    },
    {
        "name": "bash",
        "description": "Run a command.",
        "input_schema": {
            "type": "object",
            "properties": {"command": {"type": "string"}, "description": {"type": "string"}},
        },
    },
]


def main(url: str, folder: Path) -> None:
    """Ask until the model calls no tool any more."""
    client = Anthropic(api_key="key", base_url=url)
    messages: list[MessageParam] = [{"role": "user", "content": "go"}]
    while True:
        with client.messages.stream(
            model=MODEL, max_tokens=1000, messages=messages, tools=TOOLS
        ) as stream:
            reply = stream.get_final_message()
        messages.append({"role": "assistant", "content": reply.content})
        results = [_answer(block, folder) for block in reply.content if block.type == "tool_use"]
        if not results:
            return
        messages.append({"role": "user", "content": results})


def _answer(call: ToolUseBlock, folder: Path) -> ToolResultBlockParam:
    if call.name == "view":
        text = (folder / str(call.input["file_path"])).read_text("utf-8")
    else:
        command = ["bash", "-c", str(call.input["command"])]
        text = subprocess.run(command, capture_output=True, text=True, check=False).stdout
    return {"type": "tool_result", "tool_use_id": call.id, "content": text or "(no output)"}


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
