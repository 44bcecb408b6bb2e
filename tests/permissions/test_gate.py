"""How the gate asks, and what it remembers."""

from dataclasses import dataclass, field, replace
from pathlib import Path

import anyio
import anyio.lowlevel
import pytest

from crush_kernel.errors import ConfigError
from crush_kernel.permissions.decision import Allow, Bounds, Deny, no_bounds
from crush_kernel.permissions.gate import NOBODY, Answer, DenyAll, Gate, KeepRules, RuleScope
from crush_kernel.permissions.policy import Policy
from crush_kernel.permissions.request import PermissionRequest
from tests.permissions.ruling import bash, policy

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
        assert request.tool in ("bash", "edit")
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


async def test_what_is_granted_answers_the_same_question_but_not_another_that_a_rule_wants() -> (
    None
):
    gate, asker = Gate(policy=policy(ask=("edit(keys/**)",))), SlowAsker(Answer("session"))
    asker.go.set()
    for count, name in enumerate(("keys/a", "keys/a", "keys/b", "keys/a", "src/a", "src/b")):
        wanted = PermissionRequest("c", "edit", "write", "edit", paths=(Path("/p") / name,))
        assert isinstance(await gate.settle(wanted, asker), Allow)
        assert asker.count == (1 if count < 2 else 2)


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


# What an answer comes to


@dataclass
class Answers:
    """Gives one answer at once."""

    answer: Answer

    async def ask(self, request: PermissionRequest) -> Answer:
        assert request.tool
        return self.answer


def rules_kept(kept: list[tuple[tuple[str, ...], str]], *, fails: bool = False) -> KeepRules:
    async def keep(rules: tuple[str, ...], scope: str) -> Policy:
        await anyio.lowlevel.checkpoint()
        kept.append((rules, scope))
        if fails:
            raise ConfigError("the disk is full")
        return policy(allow=rules)

    return keep


@pytest.mark.parametrize(
    ("answer", "by", "reason"),
    [
        pytest.param(Answer("deny", "not now"), "person", "not now", id="a person"),
        pytest.param(Answer("deny", "no", is_nobody=True), "nobody", "no", id="nobody"),
    ],
)
async def test_who_has_refused_is_told(answer: Answer, by: str, reason: str) -> None:
    assert await Gate().settle(LS, Answers(answer)) == Deny(reason, "denied", by)  # pyright: ignore[reportArgumentType]


async def test_nobody_is_told_as_nobody() -> None:
    word = await Gate().settle(LS, DenyAll())
    assert isinstance(word, Deny)
    assert word.by == "nobody"
    assert word.reason.startswith(NOBODY)


@pytest.mark.parametrize(("scope", "where"), [("project", "in this project"), ("everywhere",) * 2])
async def test_always_keeps_the_rules_where_they_hold_and_grants_nothing_more(
    scope: RuleScope, where: str
) -> None:
    kept: list[tuple[tuple[str, ...], str]] = []
    gate = Gate(keep_rules=rules_kept(kept))
    rules = ("bash(ls:*)",)
    word = await gate.settle(LS, Answers(Answer("always", rules=rules, scope=scope)))
    assert word == Allow(f"always allowed {where}", "person", kept=rules, kept_scope=scope)
    assert (kept, gate.grants) == ([(rules, scope)], frozenset())
    assert gate.policy.allows(bash("ls -l"))


@pytest.mark.parametrize(
    ("can_keep", "fails", "rules", "said"),
    [
        pytest.param(False, False, ("bash",), "allowed for the session", id="nowhere to keep"),
        pytest.param(True, False, (), "allowed for the session", id="nothing to keep"),
        pytest.param(
            True,
            True,
            ("bash",),
            "allowed for the session, since the rule cannot be stored",
            id="cannot be kept",
        ),
    ],
)
async def test_always_counts_for_the_session_where_no_rule_is_kept(
    *, can_keep: bool, fails: bool, rules: tuple[str, ...], said: str
) -> None:
    kept: list[tuple[tuple[str, ...], str]] = []
    gate = Gate(keep_rules=rules_kept(kept, fails=fails) if can_keep else None)
    word = await gate.settle(LS, Answers(Answer("always", rules=rules)))
    assert word == Allow(said, "person")
    assert gate.grants == {LS.grant}
    assert bool(kept) is fails
    assert gate.policy.allows(LS) == ""


async def test_what_was_granted_can_be_taken_back() -> None:
    gate = Gate()
    await gate.settle(LS, Answers(Answer("session")))
    assert isinstance(await gate.settle(LS, DenyAll()), Allow)
    gate.forget()
    assert isinstance(await gate.settle(LS, DenyAll()), Deny)


async def test_a_change_of_rules_settles_what_waits() -> None:
    gate, asker = Gate(), SlowAsker(Answer("once"))
    words: list[Allow | Deny] = []

    async def settle() -> None:
        words.append(await gate.settle(LS, asker))

    with anyio.fail_after(5):
        async with anyio.create_task_group() as group:
            group.start_soon(settle)
            await asker.asked.wait()
            gate.policy = policy(deny=("bash",))
    assert [word.rule for word in words] == ["bash"]


async def test_a_rule_against_a_tool_refuses_it_whatever_it_would_do() -> None:
    gate = Gate(policy=policy(deny=("bash", "edit(src/**)"), ask=("view",)))
    tools = [tool for tool in ("bash", "edit", "view", "ls") if gate.refuses_tool(tool)]
    assert tools == ["bash"]


@pytest.mark.parametrize(
    ("request_", "how"),
    [
        pytest.param(LS, "CRUSH_PERMISSION_MODE set to yolo,", id="a command"),
        pytest.param(
            PermissionRequest("c1", "edit", "write", "edit a", paths=(Path("/p/a"),)),
            "CRUSH_PERMISSION_MODE set to accept-edits or yolo,",
            id="an edit",
        ),
        pytest.param(replace(LS, dangers=("it ends",)), "no mode lets it", id="danger"),
        pytest.param(
            PermissionRequest("c1", "view", "read", "read /a", (Path("/a"),), is_outside=True),
            "no mode lets it",
            id="outside the project",
        ),
    ],
)
async def test_where_nobody_is_it_says_what_would_help(
    request_: PermissionRequest, how: str
) -> None:
    answer = await DenyAll().ask(request_)
    assert how in answer.reason
    assert answer.is_nobody
