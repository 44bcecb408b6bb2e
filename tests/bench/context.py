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
from crush_kernel.messages import Message, Part, Text, ToolCall, ToolResult
from crush_kernel.providers import anthropic_wire, openai_wire
from crush_kernel.providers.base import ModelInfo, ModelRequest, ToolSpec
from crush_kernel.providers.openai_wire import Dialect
from tests.bench.report import Row, Scale

TURNS = 250
CALLS = 19
"""In each turn: with its prompt and its last reply that makes 40 messages a turn."""
MESSAGES = TURNS * (2 * CALLS + 2)

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
    name = f"{MESSAGES:,} messages, {size:.0f} MB"
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
        conversation.begin(CellRun(f"c{number}"), _prompt(f"Look at part {number}. {line * 5}"))
        for step in range(CALLS):
            for message in _step(number * CALLS + step, line):
                conversation.append(message)
        conversation.append(_reply(Text(line * 40)))
        conversation.end("end_turn")
    return conversation


def _step(number: int, line: str) -> Iterator[Message]:
    content = line * 50 if number % 5 == 0 else ""
    arguments = {"file_path": f"src/file{number}.py", "content": content}
    call = ToolCall(f"toolu_{number:06}", "view", json.dumps(arguments))
    yield _reply(Text(f"Let me look. {line * 6}"), call)
    yield Message("tool", (ToolResult(call.id, line * 85, metadata={"summary": "85 lines"}),))


def _prompt(text: str) -> Message:
    return Message("user", (Text(text),))


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
                running = (*running, *_step(-number - 1, _LINE))
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
    size = len(body) // MESSAGES
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
