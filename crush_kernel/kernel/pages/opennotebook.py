"""The notebook as its page has it, for tools: they ask on the engine, pages answer elsewhere.

Engine thread, except where a method says otherwise.
"""

import asyncio
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, replace
from functools import partial
from typing import Any, Final, cast

from crush_kernel.history.notebook import MAX_CELLS, RECORD_MIME_TYPE
from crush_kernel.history.outputs import saved_outputs, without_type
from crush_kernel.history.session import Session
from crush_kernel.kernel.bridge import call_main
from crush_kernel.kernel.mirror import Mirror
from crush_kernel.kernel.pages.messages import Message, edit_message, look_message
from crush_kernel.kernel.pages.page import Page
from crush_kernel.kernel.pages.pages import Pages
from crush_kernel.kernel.pages.requests import PageGone
from crush_kernel.messages import JsonObject
from crush_kernel.tools.notebook.openpage import CellChange, NoPage, PageCell, Refusal
from crush_kernel.tools.notebook.splice import CellType

ANSWER_S: Final = 10.0
"""How long all pages together have to answer."""

OWN_S: Final = 3.0
"""How long the page that had the cell run has for itself, where others show the notebook too."""

Busy = Callable[[], Collection[str]]
"""Tells the cells that run or wait to be run."""


class OpenPages:
    """The pages that show this kernel's notebook."""

    def __init__(
        self,
        pages: Pages,
        mirror: Mirror,
        session: Session,
        *,
        loop: asyncio.AbstractEventLoop,
        busy: Busy,
    ) -> None:
        """Ask nobody yet.

        Args:
            pages: whom to ask.
            mirror: what cells show that ran in this kernel.
            session: what cells showed before.
            loop: the main loop, on which pages speak.
            busy: asked on that loop.
        """
        self._pages = pages
        self._mirror = mirror
        self._session = session
        self._loop = loop
        self._busy = busy
        self._answered: Page | None = None
        """The page that told its cells last: what it showed is what is changed."""

    async def cells(self) -> tuple[PageCell, ...]:
        """Return the cells from top to bottom, as the page has them.

        Raises:
            NoPage: there is none, or none answers.
        """
        told, busy = await call_main(self._loop, self._look)
        turns = self._session.conversation
        return tuple(
            replace(
                cell,
                is_busy=cell.is_busy or cell.id in busy,
                has_turn=turns.turn_in(cell.id) is not None,
            )
            for cell in told
        )

    def outputs(self, cell_id: str) -> list[JsonObject]:
        """Return what a cell shows, from this kernel or from the journal."""
        shown = self._mirror.get(cell_id)
        outputs = self._session.outputs(cell_id) if shown is None else shown.outputs
        return [*without_type(saved_outputs(outputs), RECORD_MIME_TYPE)]

    async def edit(self, change: CellChange) -> Refusal | None:
        """Have the page change one cell, and return why it did not."""
        return await call_main(self._loop, partial(self._edit, change))

    # Main loop

    async def _look(self) -> tuple[list[PageCell], Collection[str]]:
        own, others = self._pages.editors(self._session.notebook)
        if not (own or others):
            raise NoPage("nobody")
        waits = (
            ((own, OWN_S), (others, ANSWER_S - OWN_S))
            if own and others
            else ((own or others, ANSWER_S),)
        )
        for pages, within_s in waits:
            with suppress(PageGone, TimeoutError):
                answer = await self._pages.ask(pages, look_message, within_s=within_s)
                self._answered = answer.page
                return [*_cells_of(answer.parts)], frozenset(self._busy())
        raise NoPage("silent")

    async def _edit(self, change: CellChange) -> Refusal | None:
        if change.cell_id in self._busy():
            return "busy"
        page = self._answered
        message = partial(edit_message, change=asdict(change))
        try:
            if page is None:
                return "gone"
            answer = await self._pages.ask([page], message, within_s=ANSWER_S)
        except PageGone:
            return "gone"
        except TimeoutError:
            return "silent"
        return _refusal_of(answer.parts[-1])


def _refusal_of(answer: Message) -> Refusal | None:
    match answer.get("refusal"):
        case None:
            return None
        case "unknown" | "taken" | "busy" | "locked" | "read-only" as refusal:
            return refusal
        case _:
            # A later page may have more reasons; whichever it is, it did nothing.
            return "changed"


def _cells_of(parts: tuple[Message, ...]) -> Iterator[PageCell]:
    """Yield what a page has told of its cells; what makes no sense is left out."""
    listed = [each for part in parts for each in _list(part.get("cells"))]
    for told in listed[:MAX_CELLS]:
        match told:
            case {"id": str() as name, "type": "code" | "markdown" | "raw" as kind}:
                yield _cell(name, kind, cast("Mapping[str, Any]", told))
            case _:
                pass


def _cell(name: str, kind: CellType, told: Mapping[str, Any]) -> PageCell:
    source, count, outputs = told.get("source"), told.get("execution_count"), told.get("outputs")
    return PageCell(
        name,
        kind,
        source if isinstance(source, str) else "",
        execution_count=count if type(count) is int else None,
        outputs=outputs if type(outputs) is int else 0,
        is_busy=told.get("is_busy") is True,
    )


def _list(value: object) -> list[Any]:
    return cast("list[Any]", value) if isinstance(value, list) else []
