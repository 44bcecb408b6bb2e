"""What is swapped for a link between the check and the use is not read and not written."""

import ctypes
import os
import sys
import threading
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path

import pytest

from crush_kernel.errors import PermissionDenied, ToolError
from crush_kernel.permissions.request import PermissionRequest
from crush_kernel.tools.access import find_readable
from crush_kernel.tools.base import ToolOutput
from crush_kernel.tools.filechange import Files
from crush_kernel.tools.glob import GlobArguments, glob_tool
from crush_kernel.tools.grep import GrepArguments, grep_tool
from crush_kernel.tools.ls import LsArguments, ls_tool
from crush_kernel.tools.paths import PathPolicy
from crush_kernel.tools.view import ViewArguments, view_tool
from crush_kernel.tools.write import WriteArguments, write_tool
from tests.fakes.ripgrep import fake_ripgrep
from tests.fakes.tool_context import tool_context

pytestmark = pytest.mark.anyio

linux = pytest.mark.skipif(sys.platform != "linux", reason="two names are swapped at once there")

SECRET = "top-secret"  # noqa: S105 - a word to find
ROUNDS = 40

_LIBC = ctypes.CDLL(None, use_errno=True)
_HERE, _EXCHANGE = -100, 2
"""As renameat2(2) has them."""


@pytest.fixture
def project(tmp_path: Path) -> PathPolicy:
    (outside := tmp_path / "outside").mkdir()
    (outside / f"{SECRET}.txt").write_text(f"{SECRET}\n")
    (outside / "a.txt").write_text(f"{SECRET}\n")
    (folder := tmp_path / "project/folder").mkdir(parents=True)
    (folder / "a.txt").write_text("plain\n")
    return PathPolicy(root=tmp_path / "project", cwd=tmp_path / "project")


def exchange(one: Path, other: Path) -> None:
    """Have each of two names be what the other was, at once."""
    names = (ctypes.c_char_p(os.fsencode(path)) for path in (one, other))
    first, second = names
    result = _LIBC.renameat2(_HERE, first, _HERE, second, _EXCHANGE)
    assert result == 0, os.strerror(ctypes.get_errno())


@contextmanager
def swapping(place: Path, destination: Path) -> Generator[None]:
    """Have `place` be itself and a link to `destination` by turns, as fast as can be."""
    link = place.with_name("link")
    link.symlink_to(destination)
    is_over = threading.Event()

    def swap() -> None:
        while not is_over.is_set():
            exchange(place, link)
            exchange(place, link)

    thread = threading.Thread(target=swap)
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        thread.join(timeout=10)
        assert not thread.is_alive()


async def inside_only(request: PermissionRequest) -> None:
    """Allow what is inside the project."""
    if request.is_outside:
        raise PermissionDenied("not outside")


async def view(paths: PathPolicy) -> ToolOutput:
    tool = view_tool(Files(paths), accepts=lambda _: False)
    context = tool_context(allow=False).context
    return await tool.run(ViewArguments(file_path="folder/a.txt"), context)


async def ls(paths: PathPolicy) -> ToolOutput:
    context = tool_context(allow=False).context
    return await ls_tool(paths).run(LsArguments(path="folder"), context)


async def glob(paths: PathPolicy) -> ToolOutput:
    context = tool_context(allow=False).context
    return await glob_tool(paths).run(GlobArguments(pattern="*", path="folder"), context)


async def grep(paths: PathPolicy) -> ToolOutput:
    context = tool_context(allow=False).context
    return await grep_tool(paths).run(GrepArguments(pattern=".", path="folder"), context)


@linux
@pytest.mark.slow
@pytest.mark.parametrize("look", [view, ls, glob, grep])
async def test_a_folder_that_is_swapped_in_a_loop_shows_nothing_from_outside(
    project: PathPolicy, look: Callable[[PathPolicy], Awaitable[ToolOutput]]
) -> None:
    outcomes: set[str] = set()
    with swapping(project.root / "folder", project.root.parent / "outside"):
        for _ in range(ROUNDS):
            try:
                output = await look(project)
            except (ToolError, PermissionDenied) as error:
                outcomes.add(type(error).__name__)
            else:
                assert SECRET not in output.text
                outcomes.add("read")
    assert outcomes


@linux
@pytest.mark.slow
async def test_a_file_that_is_written_while_its_folder_is_swapped_stays_inside(
    project: PathPolicy,
) -> None:
    outside = project.root.parent / "outside"
    before = {path: path.read_text() for path in outside.iterdir()}
    tool = write_tool(Files(project))
    with swapping(project.root / "folder", outside):
        for number in range(ROUNDS):
            arguments = WriteArguments(file_path=f"folder/new-{number}.txt", content="x\n")
            with suppress(ToolError):
                await tool.run(arguments, replace(tool_context().context, permit=inside_only))
    assert {path: path.read_text() for path in outside.iterdir()} == before


async def test_a_file_that_becomes_a_link_between_finding_and_reading_has_no_lines(
    project: PathPolicy,
) -> None:
    script = (
        'case "$*" in *--files-with-matches*) printf "./a.txt\\0" ;; '
        '*) ln -sf ../../outside/a.txt a.txt; printf "./a.txt\\0001:1:0:top-secret\\n" ;; esac'
    )
    tool = grep_tool(project, ripgrep=fake_ripgrep(project.root.parent, script))
    arguments = GrepArguments(pattern="t", path="folder")
    output = await tool.run(arguments, tool_context(allow=False).context)
    assert (project.root / "folder/a.txt").is_symlink()
    assert SECRET not in output.text


@pytest.mark.parametrize(
    ("text", "leads"),
    [
        pytest.param("../project-other/secret.txt", "project-other/secret.txt", id="begins alike"),
        pytest.param("link/../secret.txt", "secret.txt", id="up after a link"),
        pytest.param("link/x", "elsewhere/x", id="below a link"),
        pytest.param("dangling", "elsewhere/none", id="a dangling link"),
        pytest.param("dangling/x", "elsewhere/none/x", id="below a dangling link"),
        pytest.param("~/x", "home/x", id="home"),
        pytest.param("file://{base}/secret.txt", "secret.txt", id="a file URL"),
        pytest.param("FILE://localhost{base}/a%20b", "a b", id="a file URL with a host"),
        pytest.param("/proc/self/root{base}/secret.txt", "secret.txt", id="root of the process"),
        pytest.param("/proc/self/cwd/../x", None, id="folder of the process"),
        pytest.param("/proc/self/environ", None, id="environment of the process"),
        pytest.param("/dev/fd/0", None, id="standard input"),
    ],
)
def test_a_way_out_is_told_by_where_it_leads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, leads: str | None
) -> None:
    base = Path(os.path.realpath(tmp_path))
    for name in ("project", "project-other", "elsewhere", "home"):
        (base / name).mkdir()
    (base / "project/link").symlink_to("../elsewhere")
    (base / "project/dangling").symlink_to(base / "elsewhere/none")
    monkeypatch.setenv("HOME", str(base / "home"))
    paths = PathPolicy(root=base / "project", cwd=base / "project")
    target = paths.resolve(text.replace("{base}", str(base)))
    assert target.is_outside
    if leads is not None:
        assert target.path == base / leads


async def test_every_reading_is_put_to_the_rules(project: PathPolicy) -> None:
    fake = tool_context()
    await find_readable(project, "folder", fake.context, tool="ls", action="list")
    (request,) = fake.passed
    assert request.paths == (project.root / "folder",)
    assert not request.is_outside


async def test_a_rule_against_reading_holds_inside_the_project(project: PathPolicy) -> None:
    async def refuse(request: PermissionRequest) -> None:
        raise PermissionDenied(f"a rule is against {request.paths[0].name}")

    context = replace(tool_context().context, permit=refuse)
    for run in (
        lambda: glob_tool(project).run(GlobArguments(pattern="*"), context),
        lambda: grep_tool(project).run(GrepArguments(pattern="x"), context),
        lambda: ls_tool(project).run(LsArguments(), context),
    ):
        with pytest.raises(PermissionDenied, match="a rule is against project"):
            await run()
