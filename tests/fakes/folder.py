"""A folder that answers tool calls as the real tools would, and a turn that is played in it."""

import json
from dataclasses import dataclass, field
from pathlib import Path

from crush_kernel.messages import Message, Text, ToolCall, ToolResult, calls_of
from crush_kernel.providers.base import Accumulator, Model, ModelRequest, ToolSpec

TOOLS = tuple(
    ToolSpec(name, f"The {name} tool.", {"type": "object"})
    for name in ("bash", "edit", "glob", "grep", "ls", "view", "write")
)
MAX_STEPS = 10


@dataclass
class Folder:
    """Carries out calls below `root`; what would ask for permission is allowed or not."""

    root: Path
    allow: bool = True
    printed: dict[str, ToolResult] = field(default_factory=dict[str, ToolResult])
    """What `bash`, `glob` and `grep` answer, by command or pattern."""
    calls: list[tuple[str, dict[str, object]]] = field(
        default_factory=list[tuple[str, dict[str, object]]]
    )

    def answer(self, call: ToolCall) -> ToolResult:
        """Return the result of `call`."""
        arguments: dict[str, str] = json.loads(call.input)
        self.calls.append((call.name, {**arguments}))
        if call.name in ("edit", "write", "bash") and not self.allow:
            return ToolResult(
                call.id,
                "Permission denied: nobody can be asked here. Do not try another way.",
                is_error=True,
                metadata={"summary": "denied", "permission": "denied"},
            )
        if call.name in ("bash", "glob", "grep"):
            known = self.printed[arguments.get("command") or arguments["pattern"]]
            return ToolResult(call.id, known.content, known.is_error, metadata=known.metadata)
        try:
            return ToolResult(call.id, self._file_tool(call.name, arguments))
        except (OSError, ValueError) as error:
            return ToolResult(call.id, str(error), is_error=True, metadata={"summary": "failed"})

    def _file_tool(self, name: str, arguments: dict[str, str]) -> str:
        path = self.root / arguments.get("file_path", arguments.get("path", "."))
        match name:
            case "ls":
                paths = sorted(path.iterdir(), key=lambda p: (not p.is_dir(), p.name))
                rows = [f"  {p.name}{'/' if p.is_dir() else ''}" for p in paths]
                return "\n".join(["./", *rows]) if rows else f"{path.name} is empty"
            case "view":
                lines = path.read_text(encoding="utf-8").splitlines()
                return "\n".join(f"{n:6d}|{line}" for n, line in enumerate(lines, 1)) + "\n"
            case "write":
                path.write_text(arguments["content"], encoding="utf-8")
                return "Written."
            case "edit":
                return self._edit(path, arguments)
            case _:
                raise ValueError(name)

    def _edit(self, path: Path, arguments: dict[str, str]) -> str:
        text = path.read_text(encoding="utf-8")
        if text.count(arguments["old_string"]) != 1 and not arguments.get("replace_all"):
            raise ValueError(f"old_string is not there exactly once in {path.name}")
        changed = text.replace(arguments["old_string"], arguments["new_string"])
        path.write_text(changed, encoding="utf-8")
        return "Edited."


async def reply_to(
    model: Model, messages: tuple[Message, ...], tools: tuple[ToolSpec, ...] = TOOLS
) -> Message:
    """Return what `model` replies to `messages`, its events added up."""
    sum_of_events = Accumulator(model.info)
    async with model.stream(ModelRequest("Be brief.", messages, tools)) as events:
        async for event in events:
            sum_of_events.feed(event)
    return sum_of_events.message()


async def play_turn(
    model: Model, folder: Folder, prompt: str, history: tuple[Message, ...] = ()
) -> tuple[Message, ...]:
    """Return `history` with the turn of `prompt`, its calls carried out in `folder`."""
    messages = (*history, Message("user", (Text(prompt),)))
    for _ in range(MAX_STEPS):
        reply = await reply_to(model, messages)
        messages = (*messages, reply)
        calls = calls_of(reply)
        if not calls:
            return messages
        messages = (*messages, Message("tool", tuple(folder.answer(call) for call in calls)))
    raise AssertionError(f"the turn of {prompt!r} does not end")
