"""Every crossing between the kernel's two loops.

The main thread runs Jupyter's loop: messages, widgets, display. The engine thread runs an
anyio loop: agent, providers, tools. Values cross in four ways and no other: the main loop
calls the engine (`Engine.call`), cancels such a call (`EngineCall.cancel`), the engine
calls the main loop (`call_main`), and the engine posts events (`Mailbox`). Each method says
which thread may use it.

Source: design §6; ipykernel 7.4 runs `do_shutdown` and `interrupt_request` on its control
thread, everything else of ours on the main thread.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine
from concurrent.futures import Future
from contextlib import AbstractAsyncContextManager, ExitStack
from typing import Any, Generic, TypeVar

import anyio
from anyio import CancelScope
from anyio.from_thread import BlockingPortal, start_blocking_portal

logger = logging.getLogger(__name__)

R = TypeVar("R")
T = TypeVar("T")
E = TypeVar("E")

CLOSE_TIMEOUT_S = 1.6
"""How long the engine may take to stop its children; jupyter_client sends SIGTERM at 2.5 s."""

BULK_DELAY_S = 0.05
"""How long text may lie in the mailbox: half the interval at which outputs are updated."""


class CallCancelled(Exception):
    """The engine call was cancelled and has cleaned up."""


class EngineClosed(RuntimeError):
    """The engine is closed, and does not start again."""


class EngineCall(Generic[T]):
    """One coroutine that runs on the engine, in a scope that any thread can cancel."""

    def __init__(self, portal: BlockingPortal, function: Callable[[], Awaitable[T]]) -> None:
        """Start `function` on the engine. Main thread."""
        self._portal = portal
        self._function = function
        self._scope = CancelScope()
        self._future: Future[T] = portal.start_task_soon(self._run)

    def cancel(self) -> None:
        """Ask the call to stop; `result` then raises `CallCancelled`. Any thread."""
        try:
            self._portal.start_task_soon(self._cancel)
        except RuntimeError:
            logger.debug("the engine has stopped before the call could be cancelled")

    async def result(self) -> T:
        """Wait for the call and return its value, or raise what it raised. Main loop.

        Cancelling the waiter cancels the call and still waits for its clean-up.
        """
        waiter = asyncio.wrap_future(self._future)
        try:
            return await asyncio.shield(waiter)
        except asyncio.CancelledError:
            if not self._future.done():
                self.cancel()
                await asyncio.wait([waiter])
                _take_note(waiter)
            raise

    async def _run(self) -> T:
        with self._scope:
            return await self._function()
        raise CallCancelled

    async def _cancel(self) -> None:
        self._scope.cancel()


def _take_note(cancelled: asyncio.Future[Any]) -> None:
    """Log how a cancelled call failed; asyncio would print that nobody has asked."""
    error = None if cancelled.cancelled() else cancelled.exception()
    if error is not None and not isinstance(error, CallCancelled):
        logger.warning("a cancelled call failed", exc_info=error)


class Engine(Generic[R]):
    """The engine thread and the runtime that lives on it."""

    def __init__(self, open_runtime: Callable[[], AbstractAsyncContextManager[R]]) -> None:
        """Prepare the engine; nothing starts before the first use.

        Args:
            open_runtime: runs on the engine thread; what it imports is imported there.
        """
        self._open_runtime = open_runtime
        self._thread = ExitStack()
        self._portal: BlockingPortal | None = None
        self._runtime: Future[R] = Future()
        self._closing = anyio.Event()
        self._is_closed = False
        self._root: Future[None] | None = None

    def _started(self) -> BlockingPortal:
        """Start the thread, unless it has begun, and open the runtime in the background."""
        # Pages and cells may still speak while it closes; a thread begun then would keep the
        # process from ending.
        if self._is_closed:
            raise EngineClosed("the kernel is shutting down")
        if self._portal is None:
            self._portal = self._thread.enter_context(start_blocking_portal())
            self._root = self._portal.start_task_soon(self._own_runtime)
        return self._portal

    async def runtime(self) -> R:
        """Wait until the runtime is open and return it. Main loop.

        Raises:
            EngineClosed: there is none any more.
            Exception: whatever kept it from opening.
        """
        self._started()
        return await asyncio.shield(asyncio.wrap_future(self._runtime))

    def call(self, function: Callable[[], Awaitable[T]]) -> EngineCall[T]:
        """Run `function` on the engine. Main thread.

        Raises:
            EngineClosed: nothing runs there any more.
        """
        return EngineCall(self._started(), function)

    async def run(self, function: Callable[[], Awaitable[T]]) -> T:
        """Run `function` on the engine and return what it returns; see `EngineCall.result`."""
        return await self.call(function).result()

    def close(self) -> None:
        """Close the runtime and end the thread; safe to repeat.

        Blocks for `CLOSE_TIMEOUT_S` at most, then gives up on what will not stop. Any
        thread but the engine's.
        """
        self._is_closed = True
        portal, self._portal = self._portal, None
        if portal is None or self._root is None:
            return
        portal.start_task_soon(self._stop)
        try:
            self._root.result(timeout=CLOSE_TIMEOUT_S)
        except TimeoutError:
            logger.warning("the engine did not stop within %s s", CLOSE_TIMEOUT_S)
        except Exception:
            logger.exception("the engine failed while closing")
        else:
            self._thread.close()

    async def _stop(self) -> None:
        self._closing.set()

    async def _own_runtime(self) -> None:
        try:
            async with self._open_runtime() as runtime:
                self._runtime.set_result(runtime)
                await self._closing.wait()
        except BaseException as error:
            if not self._runtime.done():
                self._runtime.set_exception(error)
            raise


class Mailbox(Generic[E]):
    """Carries events from the engine to the main loop, in order, with few wake-ups."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        deliver: Callable[[E], None],
        *,
        is_bulk: Callable[[E], bool],
    ) -> None:
        """Bind to the main `loop`, on which `deliver` is called.

        Args:
            loop: the main loop.
            deliver: takes one event; must not raise.
            is_bulk: whether an event may wait `BULK_DELAY_S` for others to come.
        """
        self._loop = loop
        self._deliver = deliver
        self._is_bulk = is_bulk
        self._events: deque[E] = deque()
        self._is_due = False
        self._is_waiting = False

    def post(self, event: E) -> None:
        """Add `event`. Engine thread."""
        self._events.append(event)
        if self._is_bulk(event):
            if not (self._is_waiting or self._is_due):
                self._is_waiting = True
                self._loop.call_soon_threadsafe(self._wait)
        elif not self._is_due:
            self._is_due = True
            self._loop.call_soon_threadsafe(self.drain)

    def drain(self) -> None:
        """Deliver what has been posted. Main thread."""
        self._is_due = self._is_waiting = False
        while self._events:
            self._deliver(self._events.popleft())

    def _wait(self) -> None:
        self._loop.call_later(BULK_DELAY_S, self.drain)


async def call_main(
    loop: asyncio.AbstractEventLoop, function: Callable[[], Coroutine[Any, Any, T]]
) -> T:
    """Run `function` on the main `loop` and wait for it. Engine loop.

    Cancelling cancels it there; its clean-up is not waited for.
    """
    future = asyncio.run_coroutine_threadsafe(function(), loop)
    try:
        return await asyncio.wrap_future(future)
    finally:
        future.cancel()
