"""Single calls of tools beside what they cannot do without.

What counts is the difference: of `edit` to the write itself, of `bash` to the shell.
"""

import os
import time
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

import anyio
from anyio.to_thread import run_sync

from crush_kernel.shell.jobs import Jobs
from crush_kernel.shell.runner import Shell
from crush_kernel.tools.base import AnyTool, erase
from crush_kernel.tools.bash import bash_tool
from crush_kernel.tools.diskfile import replace_file
from crush_kernel.tools.edit import edit_tool
from crush_kernel.tools.filechange import Files
from crush_kernel.tools.paths import PathPolicy
from crush_kernel.tools.view import view_tool
from tests.bench.report import Row, Scale
from tests.fakes.tool_context import tool_context

_GIGABYTE = 1 << 30
_EDITED_BYTES = 5_000_000


def measure(scale: Scale) -> tuple[Row, ...]:
    """Call `view`, `edit` and `bash`, each in turn with what it is compared with."""
    with TemporaryDirectory() as folder:
        return anyio.run(_rows, Path(folder), scale)


async def _rows(folder: Path, scale: Scale) -> tuple[Row, ...]:
    files = Files(PathPolicy(root=folder, cwd=folder))
    repeats = scale.repeats(40, 10)
    return (
        await _view(files, repeats),
        await _edit(files, repeats),
        await _bash(files, repeats),
    )


async def _view(files: Files, repeats: int) -> Row:
    path = files.paths.root / "large.log"
    _write_gigabyte(path)
    view = erase(view_tool(files, accepts=lambda _: False))
    ours = [
        await _time(lambda: _call(view, file_path=path.name, limit=200)) for _ in range(repeats)
    ]
    path.unlink()
    return Row("view of 200 lines, 1 GB file", median(ours) * 1e3, "ms", limit=50)


def _write_gigabyte(path: Path) -> None:
    """Write text at the start of a file that has a hole for the rest, which costs no disk."""
    text = b"".join(b"%d a line of a log that nobody reads\n" % n for n in range(100_000))
    path.write_bytes(text)
    os.truncate(path, _GIGABYTE)


async def _edit(files: Files, repeats: int) -> Row:
    path = files.paths.root / "large.py"
    lines = [f"value_{n} = {n}  # a line of a file that is large\n" for n in range(110_000)]
    data = "".join(lines).encode()[:_EDITED_BYTES]
    path.write_bytes(data)
    files.tracker.record(path, data)
    edit = erase(edit_tool(files))
    ours: list[float] = []
    other: list[float] = []
    for number in range(repeats):
        old = f"value_{50_000 + number} = "
        call = {"file_path": path.name, "old_string": old, "new_string": f"new_{number} = "}
        ours.append(await _time(partial(_call, edit, **call)))
        other.append(await _time(lambda: run_sync(replace_file, path, path.read_bytes())))
    return _over("edit in a 5 MB file, over the write", ours, other, limit=30)


async def _bash(files: Files, repeats: int) -> Row:
    async with Shell(dict(os.environ)) as shell, Jobs(shell) as jobs:
        bash = erase(bash_tool(jobs, files.paths))
        ours: list[float] = []
        other: list[float] = []

        async def run_shell() -> None:
            # In a session of its own, as the tool does it: Linux shares the processors by session.
            await anyio.run_process(["bash", "-c", "true"], start_new_session=True)

        for _ in range(repeats):
            ours.append(await _time(lambda: _call(bash, command="true", description="nothing")))
            other.append(await _time(run_shell))
        return _over("bash true, over bash -c true", ours, other, limit=15)


def _over(name: str, ours: list[float], other: list[float], *, limit: float) -> Row:
    mine, theirs = median(ours) * 1e3, median(other) * 1e3
    note = f"{mine:.1f} ms, without the tool {theirs:.1f} ms"
    return Row(name, mine - theirs, "ms", limit=limit, note=note)


async def _call(tool: AnyTool, **arguments: object) -> None:
    await tool.run(tool.arguments.model_validate(arguments), tool_context().context)


async def _time(work: Callable[[], Awaitable[object]]) -> float:
    began = time.perf_counter()
    await work()
    return time.perf_counter() - began
