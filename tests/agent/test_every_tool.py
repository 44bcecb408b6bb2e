"""No tool does anything that the engine was not asked about: every one of them is walked."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import anyio
import pytest
from anyio.abc import SocketStream

from crush_kernel.agent.dispatch import Dispatcher
from crush_kernel.agent.events import PermissionSettled
from crush_kernel.messages import Message, ToolCall, ToolResult
from crush_kernel.permissions.decision import Bounds, Decision, Deny, no_bounds
from crush_kernel.permissions.gate import Answer, DenyAll, Gate
from crush_kernel.permissions.request import PermissionRequest
from crush_kernel.runtime import open_runtime
from crush_kernel.toolnames import TOOLS
from crush_kernel.tools.base import AnyTool
from crush_kernel.tools.network import network_tools
from tests.agent.test_stopping import NoKeeper
from tests.fakes.tools import echo
from tests.fakes.website import PRIVATE, Asked, website
from tests.permissions.ruling import policy

pytestmark = [pytest.mark.anyio, pytest.mark.slow]

CONTENT = "the-content-of-the-file"

NOTEBOOK = '{"cells": [], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}'

CALLS: Mapping[str, Mapping[str, object]] = {
    "agent": {"prompt": "find"},
    "agentic_fetch": {"url": "SITE/a", "prompt": "find"},
    "bash": {"command": "touch made; cat a.txt", "description": "Make"},
    "crush_info": {},
    "crush_logs": {},
    "download": {"url": "SITE/a", "file_path": "made"},
    "edit": {"file_path": "a.txt", "old_string": CONTENT, "new_string": "b"},
    "fetch": {"url": "SITE/a", "format": "text"},
    "glob": {"pattern": "*.txt"},
    "grep": {"pattern": "content"},
    "job_kill": {"shell_id": "001"},
    "job_output": {"shell_id": "001"},
    "ls": {},
    "multiedit": {"file_path": "a.txt", "edits": [{"old_string": CONTENT, "new_string": "b"}]},
    "notebook_edit": {
        "file_path": "other.ipynb",
        "action": "insert",
        "cell_type": "markdown",
        "source": "b",
    },
    "present_plan": {"plan": "first this"},
    "question": {"questions": '[{"type": "yes_no", "question": "So?", "description": "It is."}]'},
    "sourcegraph": {"query": "x"},
    "todos": {"todos": [{"content": "a", "status": "pending", "active_form": "b"}]},
    "view": {"file_path": "a.txt"},
    "web_fetch": {"url": "SITE/a"},
    "web_search": {"query": "x"},
    "write": {"file_path": "made", "content": "b"},
}
"""A call of each tool that would do something."""


class Closed(Gate):
    """Refuses everything that it is asked about."""

    def decide(
        self,
        request: PermissionRequest,
        *,
        bounds: Bounds = no_bounds,
        hook: Decision | None = None,
    ) -> Decision:
        assert request.tool
        assert bounds is not hook
        return Deny("the gate is closed", "closed", "rule")


@dataclass
class Keeper(NoKeeper):
    """Notes what was decided, and whether a file was about to change."""

    decided: list[PermissionSettled] = field(default_factory=list[PermissionSettled])
    changed: list[object] = field(default_factory=list[object])

    def decide(self, event: object) -> None:
        assert isinstance(event, PermissionSettled)
        self.decided.append(event)

    def keep_version(self, path: object, before: object, after: object) -> None:
        self.changed.append((path, before, after))


@dataclass
class Person:
    """Must not be asked."""

    asked: list[PermissionRequest] = field(default_factory=list[PermissionRequest])

    async def ask(self, request: PermissionRequest) -> Answer:
        self.asked.append(request)
        return Answer("once")


async def carried_out(
    tool: AnyTool, arguments: Mapping[str, object], gate: Gate, person: Person | DenyAll
) -> tuple[ToolResult, Keeper]:
    keeper = Keeper()
    recorded: list[Message] = []
    dispatcher = Dispatcher(
        tools={tool.name: tool},
        gate=gate,
        asker=person,
        emit=lambda _: None,
        keeper=keeper,
    )
    call = ToolCall("c1", tool.name, json.dumps(arguments))
    with anyio.fail_after(20):
        await dispatcher.call_tools((call,), record=recorded.append)
    (result,) = recorded[0].parts
    assert isinstance(result, ToolResult)
    return result, keeper


def contents(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and ".crush" not in path.parts
    }


async def test_nothing_is_done_past_a_closed_gate(tmp_path: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()
    (project / "a.txt").write_text(CONTENT)
    (project / "other.ipynb").write_text(NOTEBOOK)
    before = contents(project)

    async def serve(asked: Asked, stream: SocketStream) -> None:
        assert asked
        await stream.send(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi")

    async with website(serve, PRIVATE) as site:
        environ = {
            "PATH": "/usr/bin:/bin",
            "HOME": str(tmp_path),
            "SEARCH_BACKEND": "searxng",
            "SEARCH_URL": site.url(),
            "HTTPS_PROXY": site.url(),
        }
        async with open_runtime(environ=environ, cwd=project) as runtime:
            readers = network_tools(runtime.settings).for_reader(project)
            tools = {tool.name: tool for tool in (*runtime.agent.tools, *readers)}
            assert tools.keys() == CALLS.keys() == TOOLS
            for name in ("a.txt", "other.ipynb"):  # what was not seen is not edited anyway
                seen, _ = await carried_out(tools["view"], {"file_path": name}, Gate(), DenyAll())
                assert not seen.is_error
            for name, tool in tools.items():
                person = Person()
                text = json.dumps(CALLS[name]).replace("SITE", site.url().rstrip("/"))
                result, keeper = await carried_out(tool, json.loads(text), Closed(), person)
                assert keeper.decided, f"{name} did something without asking the engine"
                assert not any(each.is_allowed for each in keeper.decided)
                assert (result.is_error, result.metadata["summary"]) == (True, "denied"), name
                assert "the gate is closed" in result.content
                assert CONTENT not in result.content
                assert (person.asked, keeper.changed) == ([], [])
            assert not runtime.jobs.listed
    assert site.asked == []
    assert contents(project) == before


@pytest.mark.parametrize("rule", ["echo", "ec*", "*"])
async def test_a_rule_against_a_tool_holds_even_if_the_tool_never_asks(rule: str) -> None:
    gate, person = Gate("yolo", policy(deny=(rule,))), Person()
    result, keeper = await carried_out(echo(), {"text": "hi"}, gate, person)
    assert (result.is_error, result.metadata["summary"]) == (True, "denied")
    assert [(each.is_allowed, each.by, each.rule) for each in keeper.decided] == [
        (False, "rule", rule)
    ]
    assert person.asked == []


async def test_a_rule_against_another_tool_does_not() -> None:
    gate = Gate(policy=policy(deny=("bash", "echo:write")))
    result, keeper = await carried_out(echo(), {"text": "hi"}, gate, Person())
    assert (result.is_error, result.content, keeper.decided) == (False, "hi", [])
