"""Which pages the kernel waits for, and which it stops talking to; without a process."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from pathlib import Path
from typing import Any

import pytest

from crush_kernel.kernel import pages as module
from crush_kernel.kernel.mirror import Mirror
from crush_kernel.kernel.pages import Pages
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
        self.heard: list[str] = []
        self._hear: Callback = lambda _: None
        self._close: Callback = lambda _: None

    def send(self, data: Mapping[str, Any]) -> None:
        self.heard.append(data["method"])
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

    async def _session(self) -> Any:  # noqa: ANN401 - the session
        return self.live.session

    async def _on_engine(self, work: Callable[[], Awaitable[Any]]) -> Any:  # noqa: ANN401
        return await work()

    async def open(self, *cells: str) -> FakeComm:
        """Open a page and wait until it is taken in."""
        comm = FakeComm(Page(*(cells or "ab")))
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


@pytest.fixture
def office(tmp_path: Path) -> Office:
    return Office(tmp_path)


def run(work: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(work, WAIT_S))


def test_a_page_that_does_not_answer_is_told_nothing_more_until_it_speaks(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "SILENCE_S", 0)

    async def main() -> None:
        gone, there = await office.open(), await office.open()
        gone.answers = False
        await office.run("a", "one")
        assert gone.page.turns["a"] == there.page.turns["a"] == "a.1"
        await office.run("a", "two")
        assert gone.page.turns["a"] == "a.1"
        assert there.page.turns["a"] == "a.2"
        assert office.pages.has_writer
        gone.answers = True
        gone.say({"method": "saved"})
        await office.settle()
        await office.run("a", "three")
        assert gone.page.turns["a"] == there.page.turns["a"] == "a.3"

    run(main())


def test_only_pages_that_are_there_write_turns(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "SILENCE_S", 0)

    async def main() -> None:
        assert not office.pages.has_writer
        comm = await office.open()
        assert office.pages.has_writer
        comm.answers = False
        await office.run("a", "one")
        await office.run("a", "two")
        assert not office.pages.has_writer
        other = await office.open()
        other.close()
        assert not office.pages.has_writer
        other.say({"method": "saved"})
        await office.settle()
        assert not office.pages.has_writer, "what comes late from a closed comm does not open it"

    run(main())


def test_what_has_not_changed_is_not_told_again(office: Office) -> None:
    async def main() -> None:
        comm = await office.open()
        await office.run("a", "one")
        comm.heard.clear()
        comm.page.cells.reverse()
        news = comm.page.news()
        assert news
        comm.say(news)
        await office.settle()
        assert comm.heard == ["stale"]

    run(main())


def test_a_page_that_reads_its_file_again_is_told_what_the_notebook_is(office: Office) -> None:
    async def main() -> None:
        comm = await office.open()
        await office.run("a", "one")
        header = comm.page.crush
        comm.page.save()
        comm.page.file["metadata"] = {}
        comm.page.file["cells"][1]["metadata"] = {"crush": {"version": 1, "run": 1}}
        comm.page.revert()
        news = comm.page.news()
        assert news
        comm.say(news)
        await office.settle()
        assert comm.page.crush
        assert comm.page.crush["id"] == (header or {})["id"]

    run(main())


def test_the_first_cell_waits_for_a_page_and_no_later_one(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def main() -> None:
        monkeypatch.setattr(module, "FIRST_CONTACT_S", 0.01)
        await office.pages.settled(has_page=True)
        monkeypatch.setattr(module, "FIRST_CONTACT_S", 600)
        await office.pages.settled(has_page=True)

    run(main())


def test_the_first_cell_goes_on_when_a_page_is_taken_in(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "FIRST_CONTACT_S", 600)

    async def main() -> None:
        cell = asyncio.create_task(office.pages.settled(has_page=True))
        await asyncio.sleep(0)
        comm = await office.open()
        await cell
        assert comm.heard == ["ready"]

    run(main())


def test_a_cell_without_a_page_waits_for_none(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "FIRST_CONTACT_S", 600)
    run(office.pages.settled(has_page=False))
