"""`grep` and `glob` in a project of many files, and ripgrep itself on the same search."""

import subprocess
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

import anyio

from crush_kernel.tools.base import AnyTool, ToolOutput, erase
from crush_kernel.tools.glob import glob_tool
from crush_kernel.tools.grep import grep_tool
from crush_kernel.tools.paths import PathPolicy
from crush_kernel.tools.search.ripgrep import find_ripgrep
from tests.bench.report import Row, Scale
from tests.fakes.tool_context import tool_context

_IGNORED_EVERY = 10
_RARE_EVERY = 2_500
_COMMON_EVERY = 5
_FILES_PER_FOLDER = 50


@dataclass(frozen=True, slots=True)
class Search:
    """One search in both forms."""

    name: str
    tool: str
    arguments: dict[str, str]
    ripgrep: tuple[str, ...]


def _files_like(name: str) -> tuple[str, ...]:
    # By type, since `--glob` is another search: it brings ignored files back.
    return ("--files", f"--type-add=these:{name}", "--type=these")


SEARCHES = (
    Search("grep, few matches", "grep", {"pattern": "rare_[a-z]+"}, ("-n", "-e", "rare_[a-z]+")),
    Search("grep, many", "grep", {"pattern": "common_[a-z]+"}, ("-n", "-e", "common_[a-z]+")),
    Search("glob, few matches", "glob", {"pattern": "**/*.toml"}, _files_like("*.toml")),
    Search("glob, many", "glob", {"pattern": "**/*.py"}, _files_like("*.py")),
)


def measure(scale: Scale) -> tuple[Row, ...]:
    """Search a made-up repository with our tools and with ripgrep, in turn."""
    with TemporaryDirectory() as folder:
        root = Path(folder)
        make_project(root, scale.files)
        return anyio.run(_rows, root, scale)


def make_project(root: Path, files: int) -> None:
    """Write `files` small files below `root`, a repository that ignores some of them."""
    subprocess.run(["git", "init", "-q", str(root)], check=True)
    (root / ".gitignore").write_text("*.log\nbuild/\n")
    folder = root
    for number in range(files):
        if number % _FILES_PER_FOLDER == 0:
            group, place = divmod(number // _FILES_PER_FOLDER, 40)
            folder = root / f"package{group}" / f"module{place}"
            folder.mkdir(parents=True)
        (folder / _name(number)).write_text(_text(number))


def _name(number: int) -> str:
    if number % _IGNORED_EVERY == 0:
        return f"out{number}.log"
    return f"file{number}.{'toml' if number % _RARE_EVERY == 1 else 'py'}"


def _text(number: int) -> str:
    lines = [f"value_{line} = {number * line}" for line in range(20)]
    lines += ["rare_thing = 1"] if number % _RARE_EVERY == 1 else []
    lines += ["common_thing = 1"] if number % _COMMON_EVERY == 1 else []
    return "\n".join(lines) + "\n"


async def _rows(root: Path, scale: Scale) -> tuple[Row, ...]:
    paths = PathPolicy(root=root, cwd=root)
    tools = {"grep": erase(grep_tool(paths)), "glob": erase(glob_tool(paths))}
    return tuple([await _row(each, tools[each.tool], root, scale) for each in SEARCHES])


async def _row(search: Search, tool: AnyTool, root: Path, scale: Scale) -> Row:
    command = [str(find_ripgrep()), "--hidden", "-g", "!.git", *search.ripgrep, "."]

    async def use_tool() -> ToolOutput:
        arguments = tool.arguments.model_validate(search.arguments)
        return await tool.run(arguments, tool_context().context)

    async def use_ripgrep() -> None:
        # In a session of its own, as the tool does it: Linux shares the processors by session.
        await anyio.run_process(command, cwd=root, start_new_session=True)

    ours: list[float] = []
    other: list[float] = []
    for _ in range(scale.repeats(5, 3)):
        ours.append(await _time(use_tool))
        other.append(await _time(use_ripgrep))
    name = f"{search.name}, {scale.files:,} files"
    return Row(name, median(ours) * 1e3, "ms", limit=1.1, other=median(other) * 1e3)


async def _time(work: Callable[[], Awaitable[object]]) -> float:
    began = time.perf_counter()
    await work()
    return time.perf_counter() - began
