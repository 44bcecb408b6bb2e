"""Small tools for tests of the agent."""

from collections.abc import Awaitable, Callable

import anyio
from pydantic import Field

from crush_kernel.permissions.request import PermissionRequest
from crush_kernel.tools.base import AnyTool, Arguments, Tool, ToolContext, ToolOutput, erase


class EchoArguments(Arguments):
    text: str = Field(description="What to say.")


def tool(
    name: str,
    run: Callable[[EchoArguments, ToolContext], Awaitable[ToolOutput]],
    *,
    is_read_only: bool = False,
) -> AnyTool:
    """A tool that takes `text`."""
    return erase(
        Tool(
            name=name,
            description=f"The {name} tool.",
            arguments=EchoArguments,
            run=run,
            describe=lambda arguments: arguments.text,
            is_read_only=is_read_only,
        )
    )


def echo(name: str = "echo", *, is_read_only: bool = False) -> AnyTool:
    """Answers with its text."""

    async def run(arguments: EchoArguments, _: ToolContext) -> ToolOutput:
        return ToolOutput(arguments.text, summary="ok")

    return tool(name, run, is_read_only=is_read_only)


def asking(name: str = "risky") -> AnyTool:
    """Asks to execute its text and answers with it."""

    async def run(arguments: EchoArguments, context: ToolContext) -> ToolOutput:
        await context.permit(
            PermissionRequest(
                call_id=context.call_id,
                tool=name,
                action="execute",
                title="run",
                command=arguments.text,
            )
        )
        return ToolOutput(f"ran {arguments.text}")

    return tool(name, run)


def raising(error: Exception, name: str = "broken") -> AnyTool:
    """Raises."""

    async def run(_: EchoArguments, __: ToolContext) -> ToolOutput:
        raise error

    return tool(name, run)


def hanging(started: anyio.Event, name: str = "hang") -> AnyTool:
    """Says that it started, and never ends."""

    async def run(_: EchoArguments, __: ToolContext) -> ToolOutput:
        started.set()
        await anyio.sleep_forever()
        raise AssertionError

    return tool(name, run)


def meeting(count: int, name: str = "meet") -> AnyTool:
    """Ends only when `count` calls are running at the same time."""
    arrived: list[int] = []
    everyone = anyio.Event()

    async def run(arguments: EchoArguments, _: ToolContext) -> ToolOutput:
        arrived.append(1)
        if len(arrived) == count:
            everyone.set()
        await everyone.wait()
        return ToolOutput(arguments.text)

    return tool(name, run, is_read_only=True)
