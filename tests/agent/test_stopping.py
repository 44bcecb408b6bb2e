"""Every tool of the agent can be stopped within a second, whatever it is held up by."""

import json
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import anyio
import pytest
from anyio.abc import SocketStream

from crush_kernel.agent.dispatch import Dispatcher
from crush_kernel.agent.events import Event, ToolProgressed
from crush_kernel.agent.runningcall import STOPPED
from crush_kernel.messages import Message, ToolCall, ToolResult
from crush_kernel.permissions.gate import Answer, Gate
from crush_kernel.permissions.request import PermissionRequest
from crush_kernel.tools.base import AnyTool, erase
from crush_kernel.tools.glob import glob_tool
from crush_kernel.tools.grep import grep_tool
from crush_kernel.tools.paths import PathPolicy
from tests.fakes.belt import by_name, tool_belt
from tests.fakes.hungdisk import hung_disk
from tests.fakes.ripgrep import EndlessRipgrep
from tests.fakes.website import PRIVATE, Asked, website

pytestmark = [pytest.mark.anyio, pytest.mark.slow]

LIMIT_S = 1.0


@dataclass
class Person:
    """Allows everything, or never answers."""

    answers: bool = True
    asked: anyio.Event = field(default_factory=anyio.Event)

    async def ask(self, request: PermissionRequest) -> Answer:
        assert request.title
        self.asked.set()
        if not self.answers:
            await anyio.sleep_forever()
        return Answer("once")


class NoKeeper:
    def answer(self, result: object) -> None: ...

    def decide(self, event: object) -> None: ...

    def keep_version(self, path: object, before: object, after: object) -> None: ...


@dataclass
class Session:
    """What calls tools, one at a time, and stops them."""

    tools: tuple[AnyTool, ...]
    person: Person = field(default_factory=Person)
    events: list[Event] = field(default_factory=list[Event])

    async def stopped(
        self, name: str, arguments: Mapping[str, object], *, busy: Callable[[], Awaitable[object]]
    ) -> ToolResult:
        """Call a tool, stop it once it is `busy`, and return what the model reads in time."""
        dispatcher = Dispatcher(
            tools=by_name(self.tools),
            gate=Gate(),
            asker=self.person,
            emit=self.events.append,
            keeper=NoKeeper(),
        )
        recorded: list[Message] = []
        call = ToolCall("c1", name, json.dumps(arguments))
        with anyio.fail_after(20):
            started_s = anyio.current_time()
            async with anyio.create_task_group() as group:
                group.start_soon(partial(dispatcher.call_tools, (call,), record=recorded.append))
                await busy()
                assert recorded == []
                started_s = anyio.current_time()
                dispatcher.stop("c1")
        assert anyio.current_time() - started_s < LIMIT_S
        (result,) = recorded[0].parts
        assert isinstance(result, ToolResult)
        assert result.metadata["summary"] == "stopped"
        assert result.content.startswith(STOPPED)
        return result

    async def progressed(self) -> None:
        """Return once a call has said how far it is."""
        while not any(isinstance(event, ToolProgressed) for event in self.events):  # noqa: ASYNC110 - polled
            await anyio.sleep(0.01)


@asynccontextmanager
async def session(cwd: Path, person: Person | None = None) -> AsyncGenerator[Session]:
    async with tool_belt(cwd) as belt:
        yield Session(belt.for_agent(), person or Person())


def tree(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


HELD_UP = [
    pytest.param("view", {"file_path": "slow/a.txt"}, id="view"),
    pytest.param("view", {"file_path": "slow/a.ipynb"}, id="view of a notebook"),
    pytest.param("ls", {"path": "slow"}, id="ls"),
    pytest.param("glob", {"path": "slow", "pattern": "*"}, id="glob"),
    pytest.param("grep", {"path": "slow", "pattern": "a"}, id="grep"),
    pytest.param("grep", {"path": "slow/a.txt", "pattern": "a"}, id="grep in a file"),
    pytest.param("write", {"file_path": "slow/a.txt", "content": "a"}, id="write"),
    pytest.param(
        "edit", {"file_path": "slow/a.txt", "old_string": "a", "new_string": "b"}, id="edit"
    ),
    pytest.param(
        "multiedit",
        {"file_path": "slow/a.txt", "edits": [{"old_string": "a", "new_string": "b"}]},
        id="multiedit",
    ),
    pytest.param(
        "notebook_edit",
        {"file_path": "slow/a.ipynb", "action": "delete", "cell_id": "a"},
        id="notebook_edit",
    ),
    pytest.param(
        "download", {"url": "http://127.0.0.1:9/a", "file_path": "slow/b.txt"}, id="download"
    ),
]


@pytest.mark.parametrize(("name", "arguments"), HELD_UP)
async def test_what_waits_for_a_disk_that_hangs_is_stopped(
    tmp_path: Path, name: str, arguments: Mapping[str, object], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "slow").mkdir()
    (tmp_path / "slow/a.txt").write_text("a\n", "utf-8")
    (tmp_path / "slow/a.ipynb").write_text("{}", "utf-8")
    async with session(tmp_path) as agent:
        with hung_disk(monkeypatch, "slow") as disk:
            await agent.stopped(name, arguments, busy=disk.asked)
            assert not disk.held_the_loop


@pytest.mark.parametrize("name", ["glob", "grep"])
async def test_a_search_is_stopped_with_all_that_it_started(tmp_path: Path, name: str) -> None:
    paths = PathPolicy(root=tmp_path, cwd=tmp_path)
    ripgrep = EndlessRipgrep(tmp_path)
    tools = (
        erase(glob_tool(paths, ripgrep=ripgrep.find)),
        erase(grep_tool(paths, ripgrep=ripgrep.find)),
    )
    await Session(tools).stopped(name, {"pattern": "a"}, busy=ripgrep.begun)
    with anyio.fail_after(5):
        await ripgrep.ended()


async def stall(_: Asked, stream: SocketStream) -> None:
    """Send half of what was promised, and never the rest."""
    await stream.send(
        b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 1000\r\n\r\nhalf"
    )
    await anyio.sleep_forever()


async def keep_silent(_: Asked, __: SocketStream) -> None:
    """Never say a word."""
    await anyio.sleep_forever()


@pytest.mark.parametrize("name", ["fetch", "download"])
@pytest.mark.parametrize("serve", [stall, keep_silent])
async def test_what_waits_for_a_server_that_stalls_is_stopped(
    tmp_path: Path, name: str, serve: Callable[[Asked, SocketStream], Awaitable[None]]
) -> None:
    async with session(tmp_path) as agent, website(serve, PRIVATE) as site:

        async def busy() -> None:
            while not site.asked:  # noqa: ASYNC110 - a server tells nobody
                await anyio.sleep(0.01)

        target = {"file_path": "a.bin"} if name == "download" else {}
        await agent.stopped(name, {"url": site.url(), **target}, busy=busy)
    assert tree(tmp_path) == []


CHANGES = [
    pytest.param("edit", {"file_path": "a", "old_string": "", "new_string": "b"}, id="edit"),
    pytest.param("write", {"file_path": "a", "content": "b"}, id="write"),
    pytest.param("bash", {"command": "touch a", "description": "Touch"}, id="bash"),
    pytest.param("view", {"file_path": "/etc/hostname"}, id="view outside"),
]


@pytest.mark.parametrize(("name", "arguments"), CHANGES)
async def test_what_waits_for_permission_is_stopped_and_does_nothing(
    tmp_path: Path, name: str, arguments: Mapping[str, object]
) -> None:
    person = Person(answers=False)
    async with session(tmp_path, person) as agent:
        await agent.stopped(name, arguments, busy=person.asked.wait)
    assert tree(tmp_path) == []


async def test_a_command_is_stopped_and_what_it_printed_is_read(tmp_path: Path) -> None:
    command = {"command": "echo begun; sleep 600", "description": "Sleep"}
    async with session(tmp_path) as agent:
        result = await agent.stopped("bash", command, busy=agent.progressed)
    assert result.content.endswith("Its last output:\nbegun")


async def test_waiting_for_a_job_is_stopped_and_the_job_goes_on(tmp_path: Path) -> None:
    async with tool_belt(tmp_path) as belt:
        agent = Session(belt.for_agent())
        async with belt.jobs.command(
            "sleep 0.3; echo late; sleep 600", cwd=tmp_path, timeout_s=None
        ) as job:
            belt.jobs.put_away(job)
            wait = {"shell_id": job.id, "wait": True}
            await agent.stopped("job_output", wait, busy=agent.progressed)
            assert not job.is_ended


async def test_every_tool_has_a_limit_but_those_that_wait_for_others(tmp_path: Path) -> None:
    async with tool_belt(tmp_path) as belt:
        unlimited = {tool.name for tool in belt.for_agent() if tool.timeout_s is None}
    others = {"bash", "job_output", "question", "agent", "agentic_fetch"}
    assert unlimited <= others
