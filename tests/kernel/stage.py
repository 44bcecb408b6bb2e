"""A turn on show in a front end in miniature, at a virtual time."""

import asyncio
from collections.abc import Callable
from typing import Any

import anyio

from crush_kernel.agent.events import Event, ToolFinished, ToolStarted
from crush_kernel.kernel.display import TurnDisplay
from crush_kernel.kernel.render import FooterFacts
from crush_kernel.messages import ToolResult
from tests.kernel.front_end import WIDGET_VIEW, FrontEnd, VirtualLoop

FOOTER = FooterFacts("claude", 1.0)


async def no_keyboard(prompt: str) -> str:
    raise AssertionError(prompt)


class Stage:
    """A turn on show: its events go in at a virtual time."""

    def __init__(
        self,
        front_end: Any = "rich",  # noqa: ANN401 - the kind's name
        *,
        offers_steering: bool = False,
    ) -> None:
        self.loop = VirtualLoop()
        self.page = FrontEnd(self.loop.time)
        self.stopped: list[str] = []
        self.said: list[str] = []
        self.display = TurnDisplay(
            self.page.publish,
            loop=self.loop,
            front_end=front_end,
            model="claude",
            stop_tool=self.stopped.append,
            read_line=no_keyboard,
            say=self.said.append if offers_steering else None,
        )
        self.display.start()

    def play(self, *events: Event, after_s: float = 0.0) -> None:
        for event in events:
            self.display.on_event(event)
            self.loop.advance(after_s)

    def call(self, call_id: str = "c1", *, lasts_s: float = 0.0, content: str = "out") -> None:
        self.play(ToolStarted(call_id, "bash", f"make {call_id}"))
        self.loop.advance(lasts_s)
        self.play(finished(call_id, content))

    def finish(self) -> str:
        self.display.finish(FOOTER)
        assert_final(self.page)
        return self.page.markdown


class LiveStage(Stage):
    """A turn on show on a real loop, for questions."""

    def __init__(self) -> None:
        loop = asyncio.get_running_loop()
        self.page = FrontEnd(loop.time)
        self.display = TurnDisplay(
            self.page.publish,
            loop=loop,
            front_end="rich",
            model="claude",
            stop_tool=lambda _: None,
            read_line=no_keyboard,
        )


async def until(condition: Callable[[], bool]) -> None:
    with anyio.fail_after(5):
        while not condition():
            await anyio.lowlevel.checkpoint()


def has_card(page: FrontEnd) -> Callable[[], bool]:
    return lambda: bool(page.outputs) and WIDGET_VIEW in page.last["data"]


def finished(call_id: str = "c1", content: str = "out") -> ToolFinished:
    return ToolFinished(ToolResult(call_id, content, metadata={"summary": "exit 0"}), 0.1)


def assert_final(page: FrontEnd) -> None:
    for output in page.outputs.values():
        assert WIDGET_VIEW not in output["data"]
        assert "pending" not in output["metadata"].get("crush", {})
