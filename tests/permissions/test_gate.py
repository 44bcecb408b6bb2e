"""How the gate asks, and what it remembers."""

from dataclasses import dataclass, field, replace
from pathlib import Path

import anyio
import pytest

from crush_kernel.permissions.gate import Answer, DenyAll, Gate
from crush_kernel.permissions.rules import Allow, Bounds, Deny, PermissionRequest, no_bounds

pytestmark = pytest.mark.anyio

LS = PermissionRequest("c1", "bash", "execute", "run", command="ls", cwd=Path("/p"))


@dataclass
class SlowAsker:
    """Answers when told to, and notes how many questions are open at once."""

    answer: Answer
    go: anyio.Event = field(default_factory=anyio.Event)
    asked: anyio.Event = field(default_factory=anyio.Event)
    count: int = 0
    open: int = 0

    async def ask(self, request: PermissionRequest) -> Answer:
        assert request.tool == "bash"
        self.count += 1
        self.open += 1
        assert self.open == 1
        self.asked.set()
        await self.go.wait()
        self.open -= 1
        return self.answer


async def test_without_anyone_to_ask_the_answer_is_no_at_once_and_says_how_to_allow() -> None:
    word = await Gate().settle(LS, DenyAll())
    assert isinstance(word, Deny)
    assert "CRUSH_PERMISSION_MODE" in word.reason


async def test_a_grant_counts_for_requests_that_were_waiting() -> None:
    gate, asker = Gate(), SlowAsker(Answer("session"))
    words: list[Allow | Deny] = []

    async def settle() -> None:
        words.append(await gate.settle(LS, asker))

    with anyio.fail_after(5):
        async with anyio.create_task_group() as group:
            for _ in range(3):
                group.start_soon(settle)
            await asker.asked.wait()
            asker.go.set()
    assert asker.count == 1
    assert [type(word) for word in words] == [Allow] * 3


async def test_questions_are_put_one_at_a_time() -> None:
    gate, asker = Gate(), SlowAsker(Answer("once"))
    asker.go.set()
    async with anyio.create_task_group() as group:
        for number in range(3):
            group.start_soon(gate.settle, replace(LS, command=str(number)), asker)
    assert asker.count == 3


async def test_a_cancelled_question_grants_nothing_and_lets_the_next_be_asked() -> None:
    gate, asker = Gate(), SlowAsker(Answer("session"))
    with anyio.fail_after(5):
        async with anyio.create_task_group() as group:
            group.start_soon(gate.settle, LS, asker)
            await asker.asked.wait()
            group.cancel_scope.cancel()
        word = await gate.settle(LS, DenyAll())
    assert isinstance(word, Deny)


async def test_once_is_once() -> None:
    gate, asker = Gate(), SlowAsker(Answer("once"))
    asker.go.set()
    await gate.settle(LS, asker)
    await gate.settle(LS, asker)
    assert asker.count == 2


async def test_bounds_are_asked_again_when_a_question_had_to_wait() -> None:
    gate, asker = Gate(), SlowAsker(Answer("session"))
    words: list[Allow | Deny] = []

    def bounds(_: PermissionRequest) -> Allow | Deny | None:
        return Deny("too late", "bounds") if asker.count else None

    async def settle(within: Bounds) -> None:
        words.append(await gate.settle(LS, asker, bounds=within))

    with anyio.fail_after(5):
        async with anyio.create_task_group() as group:
            group.start_soon(settle, no_bounds)
            group.start_soon(settle, bounds)
            await asker.asked.wait()
            asker.go.set()
    assert [word.rule for word in words] == ["allowed for the session", "bounds"]
