"""Which pages the kernel waits for, and which it stops talking to; without a process."""

import asyncio
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

import pytest

from crush_kernel.kernel.pages import pages as module
from tests.fakes.page import Page
from tests.kernel.pages.office import WAIT_S, FakeComm, Office


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


def test_a_page_that_is_closed_before_it_is_taken_in_is_told_nothing(office: Office) -> None:
    async def main() -> None:
        comm = FakeComm(Page("a", is_headless=True))
        office.pages.on_open(comm, {"content": {"data": comm.page.opening()}})
        comm.close()
        await office.settle()
        assert not office.pages.has_writer
        assert not office.pages.is_headless
        assert comm.heard == []

    run(main())


def test_the_session_hears_of_pages_on_the_engine(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Anywhere else, it would change while the turn of a cell begins."""
    session = office.live.session
    names = ("load", "rearrange", "acknowledged", "saving", "saved", "moved")
    heard: dict[str, bool] = dict.fromkeys(names, False)

    def watch(name: str) -> None:
        work = getattr(session, name)

        def watched(*args: Any, **options: Any) -> Any:  # noqa: ANN401 - of any method
            heard[name] = office.is_on_engine
            return work(*args, **options)

        monkeypatch.setattr(session, name, watched)

    async def main() -> None:
        for name in names:
            watch(name)
        comm = await office.open()
        await office.run("a", "one")
        comm.page.cells.reverse()
        comm.say(comm.page.news() or {})
        for message in ({"method": "saving"}, {"method": "saved"}):
            comm.say(message)
        comm.say({"method": "path", "path": "/elsewhere/nb.ipynb"})
        await office.settle()
        assert heard == dict.fromkeys(names, True)

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
        assert comm.methods == ["stale"]

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
        assert comm.methods == ["ready"]

    run(main())


def test_a_cell_without_a_page_waits_for_none(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "FIRST_CONTACT_S", 600)
    run(office.pages.settled(has_page=False))
