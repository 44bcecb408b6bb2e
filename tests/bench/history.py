"""What a long history costs: 10,000 messages, 30 MB of records.

In this process and in CPU time, on values as a comm message brings them. Each measurement
is a function of the corpus, and a row of its own.
"""

import json
from statistics import median
from time import process_time

from pydantic import JsonValue

from crush_kernel.history.notebook import read_cells
from crush_kernel.history.record import write_turn
from crush_kernel.history.turn import Turn
from crush_kernel.messages import Message, Reasoning, Text, ToolCall, ToolResult, Usage
from tests.bench.report import Row, Scale

MESSAGES = 10_000

_TURNS = 200
_LINE = "def total(prices): return sum(price * 1.2 for price in prices)  # the tax\n"


def measure(scale: Scale) -> tuple[Row, ...]:
    """Measure everything that is done with a long history."""
    turns = corpus()
    return (_load(turns, scale.repeats(9, 3)),)


def corpus() -> list[Turn]:
    """Return turns that make up a long history, each a prompt and what a model did about it."""
    return [_turn(number) for number in range(_TURNS)]


def _turn(number: int) -> Turn:
    messages = [Message("user", (Text(f"Look at the files of part {number}."),))]
    while len(messages) < MESSAGES // _TURNS - 1:
        call_id = f"toolu_{number:04}_{len(messages):04}"
        arguments = json.dumps({"path": f"src/part_{number}/file_{len(messages)}.py"})
        messages += (
            Message(
                "assistant",
                (
                    Reasoning(
                        "The next file is needed as well. " * 4,
                        {"type": "thinking", "signature": "s" * 300},
                    ),
                    Text("I am looking at the next file."),
                    ToolCall(call_id, "view", arguments),
                ),
                provider="anthropic",
                model="claude-sonnet-4-5",
                stop="tool_use",
                usage=Usage(12, 20_000, 1_800, 160),
            ),
            Message("tool", (ToolResult(call_id, _LINE * 68, metadata={"summary": "68 lines"}),)),
        )
    messages.append(
        Message("assistant", (Text("Done."),), provider="anthropic", model="claude-sonnet-4-5")
    )
    return Turn(f"cell-{number}", 1, tuple(messages), len(messages) + 1, "end_turn")


def _load(turns: list[Turn], repeats: int) -> Row:
    """Read the records of a whole notebook, as when it is opened."""
    cells = [{"id": turn.cell_id, "type": "code", "crush": write_turn(turn)} for turn in turns]
    data = json.dumps(cells).encode()
    ours: list[float] = []
    parsing: list[float] = []
    for _ in range(repeats):
        began = process_time()
        # Fresh values each time: whatever a text remembers about itself is not there yet.
        values: JsonValue = json.loads(data)
        parsed = process_time()
        contents = read_cells(values)
        ours.append(process_time() - parsed)
        parsing.append(parsed - began)
        if sum(len(cell.turn.messages) for cell in contents.cells if cell.turn) != MESSAGES:
            raise AssertionError("not all of the history was read")
    note = f"json.loads of the same {len(data) / 1e6:.0f} MB: {median(parsing) * 1e3:.0f} ms"
    return Row("history load", median(ours) * 1e3, "ms", limit=300, note=note)
