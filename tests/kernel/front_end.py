"""A front end in miniature: it applies output messages, and a loop whose time is ours."""

import asyncio
import contextvars
import heapq
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

WIDGET_VIEW = "application/vnd.jupyter.widget-view+json"


@dataclass
class FrontEnd:
    """Applies `display_data`, `update_display_data` and `stream`, and remembers all of them."""

    clock: Callable[[], float] = lambda: 0.0
    messages: list[tuple[float, str, dict[str, Any]]] = field(
        default_factory=list[tuple[float, str, dict[str, Any]]]
    )
    outputs: dict[str, dict[str, Any]] = field(default_factory=dict[str, dict[str, Any]])
    """What each display shows, in the order of the page."""
    stdout: str = ""

    def publish(self, msg_type: str, content: dict[str, Any]) -> None:
        self.messages.append((self.clock(), msg_type, content))
        if msg_type == "stream":
            assert content["text"], "an empty stream message"
            self.stdout += content["text"]
            return
        display_id = content["transient"]["display_id"]
        assert (msg_type == "update_display_data") == (display_id in self.outputs)
        self.outputs[display_id] = {"data": content["data"], "metadata": content["metadata"]}

    @property
    def bundles(self) -> list[dict[str, Any]]:
        return [output["data"] for output in self.outputs.values()]

    @property
    def markdown(self) -> str:
        return "\n\n".join(bundle.get("text/markdown", "") for bundle in self.bundles)

    @property
    def last(self) -> dict[str, Any]:
        return list(self.outputs.values())[-1]

    def sent(self, display_id: str) -> list[dict[str, Any]]:
        return [
            content
            for _, kind, content in self.messages
            if kind != "stream" and content["transient"]["display_id"] == display_id
        ]


class VirtualLoop(asyncio.AbstractEventLoop):
    """Timers only; `advance` moves its time and runs what is due."""

    def __init__(self) -> None:
        self._now = 100.0
        self._timers: list[tuple[float, int, asyncio.TimerHandle]] = []
        self._count = 0

    def time(self) -> float:
        return self._now

    def get_debug(self) -> bool:
        return False

    def call_at(
        self,
        when: float,
        callback: Callable[..., object],
        *args: Any,  # noqa: ANN401 - as in asyncio
        context: contextvars.Context | None = None,
    ) -> asyncio.TimerHandle:
        handle = asyncio.TimerHandle(when, callback, args, self, context)
        self._count += 1
        heapq.heappush(self._timers, (when, self._count, handle))
        return handle

    def call_later(
        self,
        delay: float,
        callback: Callable[..., object],
        *args: Any,  # noqa: ANN401 - as in asyncio
        context: contextvars.Context | None = None,
    ) -> asyncio.TimerHandle:
        return self.call_at(self._now + delay, callback, *args, context=context)

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        raise context["exception"]

    def _timer_handle_cancelled(self, handle: asyncio.TimerHandle) -> None:
        """The real one counts these to clean up; here cancelled timers are skipped."""

    def advance(self, seconds: float) -> None:
        end = self._now + seconds
        while self._timers and self._timers[0][0] <= end:
            when, _, handle = heapq.heappop(self._timers)
            self._now = max(self._now, when)
            if not handle.cancelled():
                handle._run()
        self._now = end

    @property
    def pending(self) -> int:
        return sum(not handle.cancelled() for _, _, handle in self._timers)
