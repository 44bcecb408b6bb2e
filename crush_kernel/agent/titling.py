"""Give a notebook its title beside its first turn: see `agent.title` for the words.

A title is worth no wait and no failure: it is asked for once the first reply is there, and
nobody waits for it.
"""

import logging
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass

from anyio.abc import TaskGroup

from crush_kernel.agent.title import Titled, first_line, title_within
from crush_kernel.errors import CrushKernelError
from crush_kernel.history.session import Session
from crush_kernel.messages import Usage
from crush_kernel.providers.base import Model, ModelInfo

logger = logging.getLogger(__name__)

OFFLINE = "offline"
"""The provider that is no language model, and cannot name anything."""


@dataclass(slots=True)
class Titling:
    """Names the notebook of one session, once."""

    session: Session
    tasks: TaskGroup
    """Where a title is asked for."""
    small: Callable[[ModelInfo], AbstractAsyncContextManager[Model]]
    """Opens the small model beside a large one."""
    on_title: Callable[[], None] = lambda: None
    """Is told that there is a title."""
    _is_asked: bool = False

    def give(self, text: str, info: ModelInfo | None, *, is_watched: bool) -> None:
        """See to it that the notebook has a title soon, if it has none.

        Args:
            text: how its conversation begins, without secrets.
            info: about the model that answers; `None` if there is none.
            is_watched: whether a person is there, for whom a model is asked; else the first
                line of `text` has to do.
        """
        if self.session.title or self._is_asked or not text.strip():
            return
        if info is None or info.provider == OFFLINE or not is_watched:
            self.session.entitle(first_line(text))
            return
        self._is_asked = True
        self.tasks.start_soon(self._ask, text, info)

    async def _ask(self, text: str, large: ModelInfo) -> None:
        try:
            titled = await self._by_small(text, large)
            self.session.entitle(titled.title or first_line(text))
            self.on_title()
        except Exception:
            # Nobody waits for it, and what fails here must not end what runs beside it.
            logger.exception("the notebook got no title")
        finally:
            self._is_asked = False

    async def _by_small(self, text: str, large: ModelInfo) -> Titled:
        """Return the title that the small model gives; what it used counts as spent."""
        try:
            async with self.small(large) as model:
                titled = await title_within(text, model)
                label = model.info.label
        except CrushKernelError:
            logger.info("no small model for a title", exc_info=True)
            return Titled("", Usage())
        if titled.usage != Usage():
            self.session.conversation.spend({label: titled.usage})
        return titled
