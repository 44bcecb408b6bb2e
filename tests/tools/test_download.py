"""`download`: a file is there in full or not at all."""

from pathlib import Path

import anyio
import pytest
from anyio.abc import SocketStream

from crush_kernel.errors import PermissionDenied, ToolError
from crush_kernel.tools.base import ToolOutput
from crush_kernel.tools.download import DownloadArguments, download_tool
from crush_kernel.tools.incoming import Incoming
from crush_kernel.tools.paths import PathPolicy
from crush_kernel.tools.web.inquiry import Web
from tests.fakes.tool_context import FakeContext, tool_context
from tests.fakes.website import Asked, counts_as_public, reply, serving, website

pytestmark = pytest.mark.anyio

DATA = bytes(range(256)) * 1_000


async def download(
    url: str,
    folder: Path,
    file_path: str = "a.bin",
    *,
    context: FakeContext | None = None,
    notebook: Path | None = None,
    max_bytes: int = 1_000_000,
) -> ToolOutput:
    tool = download_tool(
        Web({}, is_public=counts_as_public),
        PathPolicy(root=folder, cwd=folder),
        notebook=lambda: notebook,
        max_bytes=max_bytes,
    )
    arguments = DownloadArguments(url=url, file_path=file_path, timeout=5)
    with anyio.fail_after(10):
        return await tool.run(arguments, (context or tool_context()).context)


def tree(folder: Path) -> dict[str, bytes]:
    """Return every file below `folder`, temporary ones included; folders as such with a slash."""
    return {
        f"{path.relative_to(folder)}{'/' if path.is_dir() else ''}": (
            b"" if path.is_dir() else path.read_bytes()
        )
        for path in folder.rglob("*")
    }


async def test_bytes_arrive_as_they_are_in_folders_made_for_them(tmp_path: Path) -> None:
    context = tool_context()
    async with website(serving(f=reply(DATA, content_type="application/x-thing"))) as site:
        output = await download(site.url("/f"), tmp_path, "new/a.bin", context=context)
    assert tree(tmp_path) == {"new/": b"", "new/a.bin": DATA}
    assert output.text == (
        f"new/a.bin: 256,000 bytes of application/x-thing from {site.url('/f')}."
    )
    assert context.versions == [(tmp_path / "new/a.bin", None, DATA)]
    assert context.requests[0].title == f"download {site.url('/f')} to new/a.bin"


async def test_a_file_that_is_there_is_replaced_with_its_mode_and_kept(tmp_path: Path) -> None:
    old = tmp_path / "a.bin"
    old.write_bytes(b"old")
    old.chmod(0o640)
    context = tool_context()
    async with website(serving(f=reply(DATA))) as site:
        await download(site.url("/f"), tmp_path, context=context)
    assert old.read_bytes() == DATA
    assert old.stat().st_mode & 0o777 == 0o640
    assert context.versions == [(old, b"old", DATA)]
    assert context.requests[0].notes == ("replaces the file of 3 bytes there",)


@pytest.mark.parametrize(
    ("page", "said"),
    [
        pytest.param(reply("no", status="500 x"), "500", id="error"),
        pytest.param(reply("abc", Content_Length="999"), "broke off", id="too short"),
        pytest.param(reply("abc", Content_Length="2000000"), "larger than 1 MB", id="announced"),
        pytest.param(
            b"HTTP/1.1 200 OK\r\n\r\n" + bytes(1_100_000), "larger than 1 MB", id="unannounced"
        ),
    ],
)
async def test_a_failure_leaves_everything_as_it_was(
    tmp_path: Path, page: bytes, said: str
) -> None:
    (tmp_path / "a.bin").write_bytes(b"old")
    before = tree(tmp_path)
    async with website(serving(f=page)) as site:
        with pytest.raises(ToolError, match=said):
            await download(site.url("/f"), tmp_path)
        with pytest.raises(ToolError, match=said):
            await download(site.url("/f"), tmp_path, "x/y/z.bin")
    assert tree(tmp_path) == before


async def test_a_refusal_asks_for_nothing_and_writes_nothing(tmp_path: Path) -> None:
    async with website(serving(f=reply(DATA))) as site:
        with pytest.raises(PermissionDenied):
            await download(site.url("/f"), tmp_path, "x/a", context=tool_context(allow=False))
        assert site.asked == []
    assert tree(tmp_path) == {}


async def test_a_file_that_changes_while_the_question_is_open_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "a.bin"

    def write() -> None:
        path.write_bytes(b"mine")

    context = tool_context(meanwhile=write)
    async with website(serving(f=reply(DATA))) as site:
        with pytest.raises(ToolError, match="changed by something else"):
            await download(site.url("/f"), tmp_path, context=context)
    assert tree(tmp_path) == {"a.bin": b"mine"}


@pytest.mark.parametrize("file_path", ["", "dir", "http://a/b", "a\0b", "book.ipynb"])
async def test_places_where_no_file_can_be_saved_are_refused_unasked(
    tmp_path: Path, file_path: str
) -> None:
    (tmp_path / "dir").mkdir()
    context = tool_context()
    with pytest.raises(ToolError):
        await download(
            "http://127.0.0.2:9/",
            tmp_path,
            file_path,
            context=context,
            notebook=tmp_path / "book.ipynb",
        )
    assert context.requests == []


async def test_outside_the_project_is_said_and_granted_by_file(tmp_path: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()
    context = tool_context()
    async with website(serving(f=reply(DATA))) as site:
        await download(site.url("/f"), project, "../one", context=context)
        await download(site.url("/f"), project, "../two", context=context)
    one, two = context.requests
    assert one.is_outside
    assert one.grant != two.grant


async def test_cancelling_takes_the_half_file_away_and_closes_the_connection(
    tmp_path: Path,
) -> None:
    begun = anyio.Event()

    async def serve(asked: Asked, stream: SocketStream) -> None:
        del asked
        await stream.send(b"HTTP/1.1 200 OK\r\n\r\n")
        while True:
            await stream.send(b"x" * 1_000)
            begun.set()
            await anyio.sleep(0.01)

    async with website(serve) as site:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(download, site.url("/f"), tmp_path)
            with anyio.fail_after(5):
                await begun.wait()
            tasks.cancel_scope.cancel()
        with anyio.fail_after(5):
            await site.left.wait()
    assert tree(tmp_path) == {}


async def test_what_cannot_be_put_in_its_place_is_kept_as_no_change(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a.bin").write_bytes(b"old")

    def refuse(_: object) -> None:
        raise ToolError("The disk is full.")

    monkeypatch.setattr(Incoming, "commit", refuse)
    context = tool_context()
    async with website(serving(f=reply(DATA))) as site:
        with pytest.raises(ToolError, match="full"):
            await download(site.url("/f"), tmp_path, context=context)
    assert tree(tmp_path) == {"a.bin": b"old"}
    path = tmp_path / "a.bin"
    assert context.versions == [(path, b"old", DATA), (path, DATA, b"old")]
