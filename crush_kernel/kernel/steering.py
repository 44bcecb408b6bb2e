"""Offers, in the pages, to say something to a turn that runs for long.

Short turns stay quiet. Main loop.
"""

import asyncio
from collections.abc import Callable, Generator
from contextlib import contextmanager

from crush_kernel.kernel.pages.pages import Pages

OFFER_AFTER_S = 2.0


@contextmanager
def steering_offered(
    cell_id: str,
    say: Callable[[str], None],
    *,
    pages: Pages,
    loop: asyncio.AbstractEventLoop,
) -> Generator[None]:
    """Have the pages offer to `say` something to the turn of `cell_id`, while it goes on."""
    timer = loop.call_later(OFFER_AFTER_S, pages.offer_steering, cell_id, say)
    try:
        yield
    finally:
        timer.cancel()
        pages.end_steering()
