"""Which tool call a piece of a streamed reply belongs to.

OpenAI numbers the calls and sends id and name once, with the first piece. Servers that copy
it leave out the number, or give all calls the same; leave out the id; repeat the name with
every piece; send whole calls, or arguments that are parsed already.

Pure. Source: OpenAI API reference, "Chat completion chunk", `tool_calls`.
"""

import json
from collections.abc import Callable, Iterator

from pydantic import JsonValue

from crush_kernel.messages import JsonObject, object_in
from crush_kernel.providers.base import StreamEvent, ToolCallStart, ToolInputDelta


class ToolCalls:
    """The calls of one reply, in the order in which they appeared."""

    def __init__(self, claim_id: Callable[[str], str], next_block: Callable[[], int]) -> None:
        """Start without calls.

        Args:
            claim_id: returns the id to use for a call, given the server's, which may be
                empty or taken.
            next_block: returns the index of a new block of the reply.
        """
        self._claim_id = claim_id
        self._next_block = next_block
        self._by_index: dict[int, _Call] = {}
        self._all: list[_Call] = []

    def __bool__(self) -> bool:
        return bool(self._all)

    def feed(self, delta: JsonObject) -> Iterator[StreamEvent]:
        """Yield what `delta` adds to its call."""
        function = delta.get("function")
        if not isinstance(function, dict):
            return
        wire_id, name = _string(delta.get("id")), _string(function.get("name"))
        raw = function.get("arguments")
        # Some servers parse the arguments before they send them.
        arguments = json.dumps(raw) if isinstance(raw, dict) else _string(raw)
        call = self._place(delta.get("index"), wire_id, name, arguments)
        call.wire_id = call.wire_id or wire_id
        call.name = call.name or name
        if arguments:
            call.arguments.append(arguments)
        if call.is_started:
            if arguments:
                yield ToolInputDelta(call.block, arguments)
        elif call.name:
            yield from self._start(call)

    def rest(self) -> Iterator[StreamEvent]:
        """Yield the calls that never got a name, so that they are answered, too."""
        for call in self._all:
            if not call.is_started:
                yield from self._start(call)

    def _place(self, index: JsonValue, wire_id: str, name: str, arguments: str) -> "_Call":
        call: _Call | None
        if isinstance(index, int):
            call = self._by_index.get(index)
        elif wire_id:
            call = next((known for known in self._all if known.wire_id == wire_id), None)
        else:
            call = self._all[-1] if self._all else None
        if call is None or call.is_other(wire_id, name, arguments):
            call = _Call(self._next_block())
            self._all.append(call)
            if isinstance(index, int):
                self._by_index[index] = call
        return call

    def _start(self, call: "_Call") -> Iterator[StreamEvent]:
        call.is_started = True
        yield ToolCallStart(call.block, self._claim_id(call.wire_id), call.name)
        if call.arguments:
            yield ToolInputDelta(call.block, "".join(call.arguments))


class _Call:
    """One tool call in the making."""

    __slots__ = ("arguments", "block", "is_started", "name", "wire_id")

    def __init__(self, block: int) -> None:
        self.block = block
        self.wire_id = ""
        self.name = ""
        self.arguments: list[str] = []
        self.is_started = False

    def is_other(self, wire_id: str, name: str, arguments: str) -> bool:
        """Return whether a delta for this place belongs to another call.

        Servers that send whole calls give all of them the same index, or none.
        """
        if not name or not self.name:
            return False
        if wire_id and self.wire_id:
            return wire_id != self.wire_id
        return name != self.name or bool(
            arguments and object_in("".join(self.arguments)) is not None
        )


def _string(value: JsonValue) -> str:
    return value if isinstance(value, str) else ""
