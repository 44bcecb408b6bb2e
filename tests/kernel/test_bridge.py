"""What crosses between the two loops, and how it stops."""

import asyncio
import gc
import threading
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import anyio
import anyio.lowlevel
import pytest

from crush_kernel.kernel.bridge import CallCancelled, Engine, EngineClosed, Mailbox, call_main

pytestmark = pytest.mark.anyio


class Parts:
    """A runtime that notes what happened to it."""

    def __init__(self) -> None:
        self.thread = threading.current_thread()
        self.is_closed = False


def engine(parts: list[Parts]) -> Engine[Parts]:
    @asynccontextmanager
    async def open_parts() -> AsyncGenerator[Parts]:
        made = Parts()
        parts.append(made)
        try:
            yield made
        finally:
            made.is_closed = True

    return Engine(open_parts)


async def test_the_runtime_opens_once_on_a_thread_of_its_own_and_closes_there() -> None:
    made: list[Parts] = []
    motor = engine(made)
    with anyio.fail_after(5):
        assert await motor.runtime() is await motor.runtime()
    assert made[0].thread is not threading.current_thread()
    await anyio.to_thread.run_sync(motor.close)
    assert [parts.is_closed for parts in made] == [True]
    assert not made[0].thread.is_alive()
    motor.close()


@pytest.mark.parametrize("is_used", [True, False], ids=["after use", "before use"])
async def test_a_closed_engine_does_not_start_again(*, is_used: bool) -> None:
    made: list[Parts] = []
    motor = engine(made)
    with anyio.fail_after(5):
        if is_used:
            await motor.runtime()
        await anyio.to_thread.run_sync(motor.close)
        with pytest.raises(EngineClosed):
            motor.call(anyio.lowlevel.checkpoint)
        with pytest.raises(EngineClosed):
            await motor.runtime()
    assert [parts.is_closed for parts in made] == [True] * is_used


async def test_a_call_returns_what_the_engine_gives_or_raises() -> None:
    motor = engine([])

    async def fails() -> None:
        raise ValueError("no")

    async def works() -> str:
        return threading.current_thread().name

    with anyio.fail_after(5):
        assert await motor.call(works).result() != threading.current_thread().name
        with pytest.raises(ValueError, match="no"):
            await motor.call(fails).result()
    await anyio.to_thread.run_sync(motor.close)


async def test_nothing_is_printed_about_a_call_that_was_cancelled() -> None:
    motor = engine([])
    running, complaints = threading.Event(), list[dict[str, object]]()
    asyncio.get_running_loop().set_exception_handler(lambda _, context: complaints.append(context))

    async def works() -> None:
        running.set()
        await anyio.sleep_forever()

    waiting = asyncio.create_task(motor.call(works).result())
    await anyio.to_thread.run_sync(running.wait, 5)
    waiting.cancel()
    with anyio.fail_after(5):
        await asyncio.wait([waiting])
    assert waiting.cancelled()
    del waiting
    gc.collect()
    assert complaints == []
    await anyio.to_thread.run_sync(motor.close)


async def test_a_cancelled_call_is_waited_for_until_it_has_cleaned_up() -> None:
    motor = engine([])
    running, log = threading.Event(), list[str]()

    async def works() -> None:
        try:
            running.set()
            await anyio.sleep_forever()
        finally:
            with anyio.CancelScope(shield=True):
                await anyio.lowlevel.checkpoint()
            log.append("cleaned up")

    call = motor.call(works)
    await anyio.to_thread.run_sync(running.wait, 5)
    call.cancel()
    with anyio.fail_after(5), pytest.raises(CallCancelled):
        await call.result()
    assert log == ["cleaned up"]
    await anyio.to_thread.run_sync(motor.close)


async def test_cancelling_the_waiter_cancels_the_call_and_waits_for_it() -> None:
    motor = engine([])
    running, log = threading.Event(), list[str]()

    async def works() -> None:
        try:
            running.set()
            await anyio.sleep_forever()
        finally:
            log.append("cleaned up")

    waiter = asyncio.create_task(motor.call(works).result())
    await anyio.to_thread.run_sync(running.wait, 5)
    waiter.cancel()
    with anyio.fail_after(5), pytest.raises(asyncio.CancelledError):
        await waiter
    assert log == ["cleaned up"]
    await anyio.to_thread.run_sync(motor.close)


async def test_a_runtime_that_does_not_open_says_why_every_time() -> None:
    @asynccontextmanager
    async def broken() -> AsyncGenerator[Parts]:
        raise RuntimeError("no disk")
        yield Parts()

    motor = Engine(broken)
    for _ in range(2):
        with anyio.fail_after(5), pytest.raises(RuntimeError, match="no disk"):
            await motor.runtime()
    await anyio.to_thread.run_sync(motor.close)


async def test_the_mailbox_keeps_the_order_and_wakes_the_loop_few_times() -> None:
    motor = engine([])
    got: list[int] = []
    done = asyncio.Event()

    def deliver(number: int) -> None:
        got.append(number)
        if number == -1:
            done.set()

    box = Mailbox(asyncio.get_running_loop(), deliver, is_bulk=lambda number: number >= 0)

    async def post() -> None:
        for number in range(1000):
            box.post(number)
        box.post(-1)

    with anyio.fail_after(5):
        await motor.call(post).result()
        await done.wait()
    assert got == [*range(1000), -1]
    await anyio.to_thread.run_sync(motor.close)


async def test_bulk_events_arrive_without_anything_after_them() -> None:
    motor = engine([])
    arrived = asyncio.Event()
    box = Mailbox[int](asyncio.get_running_loop(), lambda _: arrived.set(), is_bulk=lambda _: True)

    async def post() -> None:
        box.post(1)

    with anyio.fail_after(5):
        await motor.call(post).result()
        await arrived.wait()
    await anyio.to_thread.run_sync(motor.close)


async def test_the_engine_asks_the_main_loop_and_withdraws_its_question() -> None:
    motor = engine([])
    loop = asyncio.get_running_loop()
    asked, withdrawn = asyncio.Event(), asyncio.Event()

    async def answer() -> str:
        return threading.current_thread().name

    async def question() -> None:
        asked.set()
        try:
            await asyncio.sleep(60)
        finally:
            withdrawn.set()

    with anyio.fail_after(5):
        call = motor.call(lambda: call_main(loop, answer))
        assert await call.result() == threading.current_thread().name
        asking = motor.call(lambda: call_main(loop, question))
        await asked.wait()
        asking.cancel()
        await withdrawn.wait()
        with pytest.raises(CallCancelled):
            await asking.result()
    await anyio.to_thread.run_sync(motor.close)
