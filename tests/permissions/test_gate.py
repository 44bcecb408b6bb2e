"""How the gate asks, and what it remembers."""

from dataclasses import dataclass, field, replace
from pathlib import Path

import anyio
import pytest

from crush_kernel.permissions.decision import Allow, Bounds, Deny, no_bounds
from crush_kernel.permissions.gate import Answer, DenyAll, Gate
from crush_kernel.permissions.request import PermissionRequest

pytestmark = pytest.mark.anyio

LS = PermissionRequest("c1", "bash", "execute", "run", command="ls", cwd=Path("/p"))


@dataclass
class SlowAsker:
    """Answers when told to."""

    answer: Answer
    go: anyio.Event = field(default_factory=anyio.Event)
    asked: anyio.Event = field(default_factory=anyio.Event)
    count: int = 0

    async def ask(self, request: PermissionRequest) -> Answer:
        assert request.tool == "bash"
        self.count += 1
        self.asked.set()
        await self.go.wait()
        return self.answer


async def test_without_anyone_to_ask_the_answer_is_no_at_once_and_says_how_to_allow() -> None:
    word = await Gate().settle(LS, DenyAll())
    assert isinstance(word, Deny)
    assert "CRUSH_PERMISSION_MODE" in word.reason


async def test_a_grant_counts_for_requests_that_wait_and_withdraws_their_questions() -> None:
    gate, first, others = Gate(), SlowAsker(Answer("session")), SlowAsker(Answer("deny"))
    words: list[Allow | Deny] = []

    async def settle(asker: SlowAsker) -> None:
        words.append(await gate.settle(LS, asker))

    with anyio.fail_after(5):
        async with anyio.create_task_group() as group:
            for asker in (others, others, first):
                group.start_soon(settle, asker)
            await first.asked.wait()
            first.go.set()
    assert others.count == 2
    assert [type(word) for word in words] == [Allow] * 3


async def test_questions_do_not_hold_each_other_up() -> None:
    gate, slow, quick = Gate(), SlowAsker(Answer("once")), SlowAsker(Answer("once"))
    quick.go.set()
    words: list[Allow | Deny] = []

    async def settle_slowly() -> None:
        words.append(await gate.settle(LS, slow))

    with anyio.fail_after(5):
        async with anyio.create_task_group() as group:
            group.start_soon(settle_slowly)
            await slow.asked.wait()
            assert isinstance(await gate.settle(replace(LS, command="pwd"), quick), Allow)
            assert not words
            slow.go.set()
    assert len(words) == 1


async def test_a_change_of_mode_settles_what_waits() -> None:
    gate, asker = Gate(), SlowAsker(Answer("once"))
    words: list[Allow | Deny] = []

    async def settle() -> None:
        words.append(await gate.settle(LS, asker))

    with anyio.fail_after(5):
        async with anyio.create_task_group() as group:
            group.start_soon(settle)
            await asker.asked.wait()
            gate.mode = "plan"
    assert [(type(word), word.by) for word in words] == [(Deny, "mode")]


async def test_what_an_asker_raises_comes_through_as_it_is() -> None:
    class Broken:
        async def ask(self, request: PermissionRequest) -> Answer:
            raise RuntimeError(request.command)

    with pytest.raises(RuntimeError, match="ls"):
        await Gate().settle(LS, Broken())


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


async def test_bounds_are_asked_again_when_something_changes_while_a_question_waits() -> None:
    gate, first, other = Gate(), SlowAsker(Answer("session")), SlowAsker(Answer("once"))
    words: list[Allow | Deny] = []

    def bounds(_: PermissionRequest) -> Allow | Deny | None:
        return Deny("too late", "bounds") if first.count else None

    async def settle(within: Bounds, asker: SlowAsker) -> None:
        words.append(await gate.settle(LS, asker, bounds=within))

    with anyio.fail_after(5):
        async with anyio.create_task_group() as group:
            group.start_soon(settle, bounds, other)
            await other.asked.wait()
            group.start_soon(settle, no_bounds, first)
            await first.asked.wait()
            first.go.set()
    assert sorted(word.rule for word in words) == ["allowed for the session", "bounds"]
