"""The open pages and runners that show this kernel's notebook, over comm `crush.notebook`.

A page tells what its notebook holds and in which order the cells stand; it writes what it
is sent into the notebook's metadata, and shows again what it has missed. Messages of pages
are handled one after another, and before any cell whose request came later.

All that a page says is untrusted: it may be made of a stranger's notebook. What makes no
sense is logged and ignored.

Main loop. Source: design §5.
"""

import asyncio
import logging
import uuid
from collections.abc import Awaitable, Callable, Collection, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from crush_kernel.kernel.bridge import EngineClosed
from crush_kernel.kernel.mirror import CellOutputs, Mirror
from crush_kernel.kernel.pages.messages import (
    Message,
    client_of,
    contents_of,
    data_of,
    notice_message,
    outputs_message,
    ready_message,
    said_message,
    session_messages,
    steering_message,
    told_in_full,
    turn_message,
    turn_messages,
)
from crush_kernel.kernel.pages.page import Comm, Page
from crush_kernel.kernel.pages.place import NotebookPlace
from crush_kernel.kernel.pages.requests import PageAnswer, PageRequests

if TYPE_CHECKING:
    # These cost a quarter of a second to import, and no page waits before `kernel_info`.
    from crush_kernel.history.notebook import NotebookContents
    from crush_kernel.history.session import CellUpdate, Session
    from crush_kernel.history.turn import Turn

logger = logging.getLogger(__name__)

T = TypeVar("T")

PUSH_S = 0.25
"""Between two pictures of a running cell, for a page that does not get its outputs."""

FIRST_CONTACT_S = 0.25
"""How long the first cell waits for the page's own words after a restart."""

SILENCE_S = 30.0
"""How long a page may leave unanswered what it has to acknowledge. Reloading it closes no
comm, so that its former self would be told everything for ever."""

LATE = "What you said to the last turn came when it was over, and was not sent:"

MAX_QUOTED_CHARS = 500

KERNEL = uuid.uuid4().hex
"""Names this kernel process to pages, which may have known another one."""


class Pages:
    """Listens to all pages and tells them what they have to write and to show."""

    def __init__(
        self,
        session: "Callable[[], Awaitable[Session]]",
        on_engine: Callable[[Callable[[], Awaitable[Any]]], Awaitable[Any]],
        mirror: Mirror,
    ) -> None:
        """Wait for pages.

        Args:
            session: gives the session once it is open.
            on_engine: runs a coroutine function on the engine.
            mirror: what the cells show.
        """
        self._session = session
        self._on_engine = on_engine
        self._mirror = mirror
        self._pages: list[Page] = []
        self._turn = asyncio.Lock()
        self._contact = asyncio.Event()
        self._is_first_cell = True
        self._place = NotebookPlace()
        self._tasks: set[asyncio.Task[None]] = set()
        self._pictures: set[asyncio.Task[None]] = set()
        self._requests = PageRequests[Page]()
        self._begun = ("", "")
        """The cell that began last, and the client that had it run."""
        self._steering: tuple[str, Callable[[str], None]] | None = None
        """The cell whose turn takes messages, and who takes them."""

    @property
    def has_writer(self) -> bool:
        """Whether a page writes metadata, so that outputs need not carry the turns."""
        return bool(self._pages)

    @property
    def is_headless(self) -> bool:
        """Whether cells are run by a program, with nobody to press a button."""
        return any(page.is_headless for page in self._pages)

    def on_open(self, comm: Comm, message: Message) -> None:
        """Take in a page: `{version, path, notebook, cells, is_headless}`."""
        page = Page(comm, client_of(message))

        def hear(said: Message) -> None:
            page.asked = None
            self._spawn(partial(self._heard, page, data_of(said)))

        def close(_: object) -> None:
            page.is_closed = True
            self._forget(page)

        comm.on_msg(hear)
        comm.on_close(close)
        self._spawn(partial(self._opened, page, data_of(message)))

    async def settled(self, *, has_page: bool) -> None:
        """Wait until all that pages have said so far is taken in.

        Args:
            has_page: whether a page is to be expected; the first cell waits for it a moment.
        """
        if self._is_first_cell and has_page and not self._pages:
            try:
                await asyncio.wait_for(self._contact.wait(), FIRST_CONTACT_S)
            except TimeoutError:
                logger.info("no page has opened a comm")
        self._is_first_cell = False
        if self._tasks:
            await asyncio.wait(self._tasks)

    def began(self, shown: CellOutputs, client: str) -> None:
        """Have the pages follow a cell that begins to run, if others have asked for it."""
        self._begun = shown.cell_id, client
        for page in self._listening():
            if page.client != client:
                self._follow(page, shown)

    def ended(self, turn: "Turn", session: "Session") -> None:
        """Tell all pages of a turn that has ended."""
        self._tell_session([turn_message(turn.cell_id, turn.record)], session)

    def tell_turns(self, updates: "Iterable[CellUpdate]", session: "Session") -> None:
        """Have all pages write turns, the notebook's header, and what is stale."""
        self._tell_session(turn_messages(updates), session)

    def show(self, cells: Sequence[CellOutputs]) -> None:
        """Have all pages show `cells` as they are."""
        self._tell([outputs_message(cells)])

    def show_ended(self, shown: CellOutputs) -> None:
        """Give those pages a last picture that do not get the outputs of the cell."""
        for page in self._listening():
            if page.follows is shown:
                page.follows = None
                self._send(page, [outputs_message([shown])])

    def said(self, cell_id: str, index: int, messages: Sequence[Any]) -> None:
        """Tell runners what was said in a turn that goes on, from its message `index` on.

        Pages see it in the outputs of the cell.
        """
        self._tell_runners(said_message(cell_id, index, messages))

    def noticed(self, cell_id: str, text: str) -> None:
        """Tell runners what the user should know about a turn; pages see it as well."""
        self._tell_runners(notice_message(cell_id, text))

    def _tell_runners(self, message: Message) -> None:
        for page in self._listening():
            if page.is_headless:
                self._send(page, [message])

    def offer_steering(self, cell_id: str, say: Callable[[str], None]) -> None:
        """Have the pages offer to say something to the turn of a cell that is running."""
        self._steering = cell_id, say
        self._tell_steering(cell_id, is_open=True)

    def end_steering(self) -> None:
        """Have the pages offer that no more; safe to repeat."""
        if self._steering is not None:
            cell_id, _ = self._steering
            self._steering = None
            self._tell_steering(cell_id, is_open=False)

    def _tell_steering(self, cell_id: str, *, is_open: bool) -> None:
        for page in self._listening():
            if not page.is_headless:
                self._send(page, [steering_message(cell_id, is_open=is_open)])

    def editors(self, notebook: Path | None) -> tuple[list[Page], list[Page]]:
        """Return the pages that can change `notebook`, in which the cell runs that began last.

        The first ones have had it run; the others show the same notebook.
        """
        cell_id, client = self._begun
        able = [
            page
            for page in self._listening()
            if page.edits and cell_id in page.cells and page.notebook in (None, notebook)
        ]
        own = [page for page in able if page.client == client]
        return own, [page for page in able if page not in own]

    async def ask(
        self, pages: Collection[Page], message: Callable[[str], Message], *, within_s: float
    ) -> PageAnswer[Page]:
        """Send the `message` of a request to `pages`, and return what the first one answers.

        What a page has said before its answer is taken in by then.

        Raises:
            PageGone: none of them is there any more.
            TimeoutError: none of them has answered in time.
        """

        def send(page: Page, request: str) -> None:
            self._send(page, [message(request)])

        there = [page for page in pages if page in self._pages]
        return await self._requests.ask(there, send, within_s=within_s)

    def _tell_session(self, messages: Sequence[Message], session: "Session") -> None:
        """Tell `messages`, then what the whole notebook is now; to find that out takes a while."""
        if self._pages:
            self._tell([*messages, *session_messages(session)])

    def _tell(self, messages: Sequence[Message]) -> None:
        for page in self._listening():
            self._send(page, messages)

    def _send(self, page: Page, messages: Iterable[Message]) -> None:
        for message in messages:
            if message["method"] == "session":
                if message["record"] == page.header:
                    continue
                page.header = message["record"]
                if page.asked is None:
                    page.asked = asyncio.get_running_loop().time()
            page.comm.send(message)

    def _listening(self) -> list[Page]:
        """Return the pages, without those that are gone and did not say so."""
        now = asyncio.get_running_loop().time()
        for page in [*self._pages]:
            if page.asked is not None and now - page.asked > SILENCE_S:
                logger.info("a page does not answer any more")
                self._forget(page)
        return [*self._pages]

    # What pages say

    async def _opened(self, page: Page, data: Message) -> None:
        if page.is_closed:
            return
        page.is_headless = data.get("is_headless") is True
        page.edits = data.get("edits") is True
        self._pages.append(page)
        session = await self._session()
        contents = await self._contents(page, data)
        path = page.notebook = self._place.located(data.get("path"), session.notebook)
        updates = await self._do(partial(session.load, contents, path))
        missed = self._missed(contents, updates)
        self._send(page, _news(updates, missed))
        if session.id:
            self._send(page, session_messages(session))
        self._send(page, [ready_message(KERNEL)])
        if self._steering is not None and not page.is_headless:
            self._send(page, [steering_message(self._steering[0], is_open=True)])
        for shown in missed:
            if shown.is_running:
                self._follow(page, shown)
        self._contact.set()

    async def _contents(self, page: Page, data: Message) -> "NotebookContents":
        contents = await asyncio.to_thread(contents_of, data)
        page.cells = frozenset(cell.id for cell in contents.cells)
        return contents

    async def _rearranged(self, page: Page, data: Message, session: "Session") -> None:
        contents = await self._contents(page, data)
        if told := told_in_full(data):
            # It may have read its file again, and hold an older header.
            page.header = None
        updates = await self._do(partial(session.rearrange, contents.cells, told=told))
        self._send(page, _news(updates, self._restored(updates)))
        if session.id:
            self._send(page, session_messages(session))

    def _restored(self, updates: "Iterable[CellUpdate]") -> list[CellOutputs]:
        """Return what the cells show that a page has to be told about."""
        return [
            self._mirror.get(each.cell_id)
            or self._mirror.restore(each.cell_id, each.outputs, each.execution_count)
            for each in updates
            if each.outputs is not None
        ]

    def _missed(
        self, contents: "NotebookContents", updates: "Iterable[CellUpdate]"
    ) -> list[CellOutputs]:
        """Return what the cells show that a page shows otherwise."""
        missed = {shown.cell_id: shown for shown in self._restored(updates)}
        for cell in contents.cells:
            shown = self._mirror.get(cell.id)
            if shown is None or cell.id in missed:
                continue
            if shown.is_running or shown.execution_count != cell.execution_count:
                missed[cell.id] = shown
        return list(missed.values())

    async def _heard(self, page: Page, data: Message) -> None:
        session = await self._session()
        if page not in self._pages and not page.is_closed:
            self._pages.append(page)
        match data:
            case {"method": "cells"}:
                await self._rearranged(page, data, session)
            case {"method": "ack", "cell_id": str() as cell, "turn": str() as turn}:
                if isinstance(revision := data.get("revision"), int):
                    await self._do(partial(session.acknowledged, cell, turn, revision))
            case {"method": "saving"}:
                await self._do(session.saving)
            case {"method": "saved"}:
                await self._do(session.saved)
            case {"method": "path"}:
                if path := self._place.located(data.get("path")):
                    page.notebook = path
                    await self._do(partial(session.moved, path))
            case {"method": "say", "cell_id": str() as cell, "text": str() as text}:
                await self._steer(cell, text, session)
            case _:
                self._requests.hear(page, data)

    async def _steer(self, cell_id: str, text: str, session: "Session") -> None:
        """Hand on what is said to a running turn; what comes too late is told with the next."""
        if self._steering is not None and self._steering[0] == cell_id:
            self._steering[1](text)
        else:
            await self._do(partial(session.note, f"{LATE} {text[:MAX_QUOTED_CHARS]}"))

    async def _do(self, work: Callable[[], T]) -> T:
        """Do `work` on the engine, to which the session belongs."""

        async def do() -> T:
            return work()

        return await self._on_engine(do)

    def _forget(self, page: Page) -> None:
        page.follows = None
        self._requests.forget(page)
        if page in self._pages:
            self._pages.remove(page)

    # Running cells

    def _follow(self, page: Page, shown: CellOutputs) -> None:
        """Send a page pictures of a running cell until it ends."""
        if not page.is_closed and page.follows is not shown:
            page.follows = shown
            task = asyncio.get_running_loop().create_task(self._keep_sending(page, shown))
            self._pictures.add(task)
            task.add_done_callback(self._pictures.discard)

    async def _keep_sending(self, page: Page, shown: CellOutputs) -> None:
        sent = shown.changes
        while page.follows is shown and shown.is_running:
            await asyncio.sleep(PUSH_S)
            if shown.changes != sent and page.follows is shown and shown.is_running:
                sent = shown.changes
                self._send(page, [outputs_message([shown])])

    def _spawn(self, work: Callable[[], Awaitable[None]]) -> None:
        task = asyncio.get_running_loop().create_task(self._one_by_one(work))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _one_by_one(self, work: Callable[[], Awaitable[None]]) -> None:
        async with self._turn:
            try:
                await work()
            except EngineClosed:
                logger.info("a page spoke after the end")
            except Exception:
                logger.exception("what a page said could not be taken in")


def _news(updates: "Iterable[CellUpdate]", shown: Sequence[CellOutputs]) -> list[Message]:
    turns = turn_messages(updates)
    return [*turns, outputs_message(shown)] if shown else turns
