"""The agent's own tools, in a folder of a test."""

from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

from crush_kernel.agent.toolbelt import ToolBelt
from crush_kernel.config.settings import read_settings
from crush_kernel.prompt.diskcache import DiskCache
from crush_kernel.prompt.skills import SkillFiles
from crush_kernel.shell.jobs import Jobs
from crush_kernel.shell.runner import Shell
from crush_kernel.tools.base import AnyTool
from crush_kernel.tools.filechange import no_notebook
from crush_kernel.tools.network import network_tools
from crush_kernel.tools.paths import PathPolicy
from crush_kernel.tools.question import QuestionDesk

ENVIRON = {"PATH": "/usr/bin:/bin", "HOME": "/nonexistent"}


@asynccontextmanager
async def tool_belt(
    cwd: Path,
    environ: Mapping[str, str] = ENVIRON,
    *,
    accepts: Callable[[str], bool] = lambda _: True,
) -> AsyncGenerator[ToolBelt]:
    """Give what the tools of an agent in `cwd` share."""
    paths = PathPolicy(root=cwd, cwd=cwd)
    async with Shell(dict(environ)) as shell, Jobs(shell) as jobs:
        yield ToolBelt(
            paths=paths,
            jobs=jobs,
            network=network_tools(read_settings(environ)),
            questions=QuestionDesk(),
            skills=SkillFiles((), DiskCache(), cwd=cwd, project_root=cwd),
            accepts=accepts,
            notebook=no_notebook,
        )


def by_name(tools: tuple[AnyTool, ...]) -> dict[str, AnyTool]:
    """Return `tools` as a dispatcher knows them."""
    return {tool.name: tool for tool in tools}
