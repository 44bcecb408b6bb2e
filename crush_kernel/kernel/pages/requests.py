"""Questions that are put to pages: the first page that answers is heard, in time or not at all.

Main loop.
"""

import asyncio
import logging
import uuid
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from crush_kernel.kernel.pages.messages import Message

logger = logging.getLogger(__name__)

P = TypeVar("P")


class PageGone(Exception):
    """Every page that was asked has gone before it answered."""


@dataclass(frozen=True, slots=True)
class PageAnswer(Generic[P]):
    """What a page has answered."""

    page: P
    parts: tuple[Message, ...]
    """All messages of the answer, in order; there is one at least."""


@dataclass(slots=True)
class _Question(Generic[P]):
    """One question that is open."""

    answer: asyncio.Future[PageAnswer[P]]
    parts: dict[P, list[Message]] = field(default_factory=dict[P, list[Message]])
    """What came so far, by the pages from which an answer may still come."""


class PageRequests(Generic[P]):
    """The open questions."""

    def __init__(self) -> None:
        self._open: dict[str, _Question[P]] = {}

    async def ask(
        self, pages: Collection[P], send: Callable[[P, str], None], *, within_s: float
    ) -> PageAnswer[P]:
        """Return what the first of `pages` answers.

        Cancelled, it hears no answer any more; what a page was told to do it may still do.

        Args:
            pages: whom to ask.
            send: sends the question to a page, with the id that its answer has to name.
            within_s: how long to wait.

        Raises:
            PageGone: none of them is there any more.
            TimeoutError: none of them has answered in time.
        """
        request = uuid.uuid4().hex
        question = _Question[P](asyncio.get_running_loop().create_future())
        question.parts = {page: [] for page in pages}
        self._give_up(question)
        self._open[request] = question
        try:
            for page in pages:
                send(page, request)
            return await asyncio.wait_for(question.answer, within_s)
        finally:
            del self._open[request]

    def hear(self, page: P, said: Message) -> None:
        """Take in an answer of `page`, or a part of one.

        Answers to no question, those that come late, and what is none are ignored.
        """
        match said:
            case {"method": "looked", "id": str() as request}:
                is_last = said.get("is_last") is True
            case {"method": "edited", "id": str() as request}:
                is_last = True
            case _:
                logger.debug("a page says %r", said.get("method"))
                return
        question = self._open.get(request)
        if question is not None and page in question.parts:
            question.parts[page].append(said)
            if is_last and not question.answer.done():
                question.answer.set_result(PageAnswer(page, tuple(question.parts[page])))

    def forget(self, page: P) -> None:
        """Expect no answer of a page that is gone."""
        for question in self._open.values():
            if question.parts.pop(page, None) is not None:
                self._give_up(question)

    def _give_up(self, question: _Question[P]) -> None:
        if not question.parts and not question.answer.done():
            question.answer.set_exception(PageGone())
