"""Pages in front of the kernel's end of their comms, without a process."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

from crush_kernel.kernel.mirror import Mirror
from crush_kernel.kernel.pages.pages import Pages
from tests.fakes.livesession import LiveSession
from tests.fakes.page import Page

Json = dict[str, Any]
Callback = Callable[[Json], None]

WAIT_S = 10


class FakeComm:
    """The kernel's end of a comm, at whose other end is a page."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.answers = True
        self.heard: list[Json] = []
        """What the kernel has said, oldest first."""
        self._hear: Callback = lambda _: None
        self._close: Callback = lambda _: None

    @property
    def methods(self) -> list[str]:
        return [message["method"] for message in self.heard]

    def send(self, data: Mapping[str, Any]) -> None:
        self.heard.append(dict(data))
        for answer in self.page.hear(dict(data)):
            if self.answers:
                self.say(answer)

    def on_msg(self, callback: Callback) -> None:
        self._hear = callback

    def on_close(self, callback: Callback) -> None:
        self._close = callback

    def say(self, data: Json) -> None:
        self._hear({"content": {"data": data}})

    def close(self) -> None:
        self._close({"content": {"data": {}}})


class Office:
    """Pages in front of a session that lives in the same loop."""

    def __init__(self, folder: Path) -> None:
        self.live = LiveSession(folder)
        self.pages = Pages(self._session, self._on_engine, Mirror())
        self.is_on_engine = False

    async def _session(self) -> Any:  # noqa: ANN401 - the session
        return self.live.session

    async def _on_engine(self, work: Callable[[], Awaitable[Any]]) -> Any:  # noqa: ANN401
        self.is_on_engine = True
        try:
            return await work()
        finally:
            self.is_on_engine = False

    async def open(self, *cells: str, is_headless: bool = False) -> FakeComm:
        """Open a page and wait until it is taken in."""
        comm = FakeComm(Page(*(cells or "ab"), is_headless=is_headless))
        opening = {"content": {"data": comm.page.opening()}, "header": {"session": "client"}}
        self.pages.on_open(comm, opening)
        await self.settle()
        return comm

    async def settle(self) -> None:
        await asyncio.wait_for(self.pages.settled(has_page=False), WAIT_S)

    async def run(self, cell_id: str, text: str) -> None:
        """Run a cell to its end and wait for the answers of the pages."""
        turn = self.live.run(cell_id, text)
        self.pages.ended(turn, self.live.session)
        await self.settle()
