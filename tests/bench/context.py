"""What a long conversation costs a request: 10,000 messages, 30 MB.

CPU time, since nothing here waits: first of putting the whole context together and repairing
it, then of what one more step adds. The other side makes the same request by writing all of
it as JSON again, as most agents do.
"""

import gc
import json
from collections.abc import Callable, Iterator
from statistics import median
from time import process_time

from crush_kernel.history.conversation import CellRun, Conversation
from crush_kernel.history.repairer import Repairer
from crush_kernel.history.turn import Turn, digest_of
from crush_kernel.messages import Message, Part, Text, ToolCall, ToolResult
from crush_kernel.providers import anthropic_wire, openai_wire
from crush_kernel.providers.base import ModelInfo, ModelRequest, ToolSpec
from crush_kernel.providers.openai_wire import Dialect
from tests.bench.report import Row, Scale

TURNS = 2_500
"""Of four messages each."""

INFO = ModelInfo("anthropic", "m")
TOOLS = (ToolSpec("view", "Shows a file.", {"type": "object"}),)
PROMPT = Message("user", (Text("And now?"),))

_LINE = "    total += item.price * item.count  # rounded at the end\n"
_OTHER_LINE = "    gesamt += preis · menge  # gerundet wird am Ende – nicht früher\n"

Encode = Callable[[tuple[Message, ...]], bytes]


def measure(scale: Scale) -> tuple[Row, ...]:
    """Measure the first request of a turn, and the further ones."""
    conversation = long_conversation()
    size = sum(len(body) for body in map(_json, _bodies(_context(conversation)))) / 1e6
    first, steps, joins, again = _measured(conversation, scale.repeats(7, 3))
    name = f"{4 * TURNS:,} messages, {size:.0f} MB"
    return (
        Row(f"context assembly and repair, {name}", first, "ms", limit=50),
        *(
            Row(
                f"repair and encoding of a further step, {protocol}",
                step - joins[protocol],
                "ms",
                limit=3,
                note=f"and {joins[protocol]:.1f} ms to join the bytes",
            )
            for protocol, step in steps.items()
        ),
        Row("a further request, all of it", steps["Anthropic"], "ms", limit=0.25, other=again),
    )


def long_conversation() -> Conversation:
    """Return a conversation of `TURNS` turns with tools, a tenth of it not in English."""
    conversation = Conversation()
    for number in range(TURNS):
        line = _OTHER_LINE if number % 10 == 0 else _LINE
        prompt = Message("user", (Text(f"Look at file {number}. {line * 5}"),))
        messages = (prompt, *_turn(number, line))
        digest = digest_of(messages)
        turn = Turn(f"c{number}", messages=messages, end="end_turn", digest=digest)
        conversation.place(turn.cell_id, turn)
    return conversation


def _turn(number: int, line: str) -> Iterator[Message]:
    is_writing = number % 5 == 0
    arguments = {"file_path": f"src/file{number}.py", "content": line * 50 if is_writing else ""}
    call = ToolCall(f"toolu_{number:06}", "view", json.dumps(arguments))
    yield _reply(Text(f"Let me look. {line * 6}"), call)
    yield Message("tool", (ToolResult(call.id, line * 135, metadata={"summary": "135 lines"}),))
    yield _reply(Text(line * 40))


def _reply(*parts: Part) -> Message:
    return Message("assistant", parts, "anthropic", "m", "end_turn")


def _measured(
    conversation: Conversation, repeats: int
) -> tuple[float, dict[str, float], dict[str, float], float]:
    """Return the milliseconds of the first repair, of steps, of joining, and of the other side."""
    first: list[float] = []
    again: list[float] = []
    steps: dict[str, list[float]] = {"Anthropic": [], "OpenAI": []}
    joins: dict[str, list[float]] = {"Anthropic": [], "OpenAI": []}
    for _ in range(repeats):
        repairer = Repairer()
        gc.collect()  # what the rounds before have left is not this one's to clear away
        first.append(_ms(lambda repairer=repairer: _began(conversation, repairer)))
        context = conversation.context
        for protocol, encode in _encoders().items():
            running = (PROMPT,)
            encode(repairer.repaired(context, running))
            for number in range(5):
                running = (*running, *_turn(-number - 1, _LINE))[:-1]
                steps[protocol].append(
                    _ms(lambda: encode(repairer.repaired(context, running)))  # noqa: B023 - called at once
                )
            joins[protocol].append(_joining_ms(encode(repairer.repaired(context, running))))
        bodies = _bodies(repairer.repaired(context, (PROMPT,)))
        again.append(_ms(lambda bodies=bodies: _json({"messages": bodies})))
    return (
        median(first),
        {protocol: median(times) for protocol, times in steps.items()},
        {protocol: median(times) for protocol, times in joins.items()},
        median(again),
    )


def _encoders() -> dict[str, Encode]:
    anthropic = anthropic_wire.RequestEncoder(INFO, use_cache=True)
    openai = openai_wire.RequestEncoder(INFO)
    return {
        "Anthropic": lambda messages: anthropic.encode(ModelRequest("Be good.", messages, TOOLS)),
        "OpenAI": lambda messages: openai.encode(
            ModelRequest("Be good.", messages, TOOLS), Dialect()
        ),
    }


def _began(conversation: Conversation, repairer: Repairer) -> None:
    conversation.begin(CellRun("last"), PROMPT)
    repairer.repaired(conversation.context, conversation.running)


def _context(conversation: Conversation) -> tuple[Message, ...]:
    conversation.begin(CellRun("last"), PROMPT)
    return conversation.context


def _joining_ms(body: bytes) -> float:
    """Return what it takes to join as many pieces of as many bytes."""
    size = len(body) // (4 * TURNS)
    pieces = [body[start : start + size] for start in range(0, len(body), size)]
    return median(_ms(lambda: b",".join(pieces)) for _ in range(5))


def _bodies(messages: tuple[Message, ...]) -> list[dict[str, object]]:
    return [
        {
            "role": message.role if message.role != "tool" else "user",
            "content": [_block(part) for part in message.parts],
        }
        for message in messages
    ]


def _block(part: Part) -> dict[str, object]:
    match part:
        case Text(text=text):
            return {"type": "text", "text": text}
        case ToolCall(id=call_id, name=name, input=arguments):
            content = json.loads(arguments)
            return {"type": "tool_use", "id": call_id, "name": name, "input": content}
        case ToolResult(call_id=call_id, content=content):
            return {"type": "tool_result", "tool_use_id": call_id, "content": content}
        case _:
            raise TypeError(part.kind)


def _json(value: object) -> bytes:
    return json.dumps(value, ensure_ascii=False).encode()


def _ms(run: Callable[[], object]) -> float:
    start = process_time()
    run()
    return (process_time() - start) * 1e3
