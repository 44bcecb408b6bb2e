"""The `write` tool on real files."""

import os
import resource
from pathlib import Path

import anyio
import pytest

from crush_kernel.errors import PermissionDenied, ToolError
from crush_kernel.tools.base import ToolOutput
from crush_kernel.tools.filechange import Files
from crush_kernel.tools.notebook.splice import EMPTY
from crush_kernel.tools.paths import PathPolicy
from crush_kernel.tools.tracker import ReadTracker
from crush_kernel.tools.write import WriteArguments, write_tool
from tests.fakes.tool_context import FakeContext, tool_context

pytestmark = pytest.mark.anyio


class Desk:
    """A project folder, and the tool with what it knows of the folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.tracker = ReadTracker()
        self.tool = write_tool(
            Files(
                PathPolicy(root=folder, cwd=folder),
                self.tracker,
                notebook=lambda: folder / "open.ipynb",
            )
        )

    def put(self, name: str, data: bytes, *, is_viewed: bool = True) -> Path:
        """Write a file behind the tool's back and return its path."""
        path = self.folder / name
        path.write_bytes(data)
        if is_viewed:
            self.tracker.record(Path(os.path.realpath(path)), data)
        return path

    async def write(
        self, name: str, content: str, *, fake: FakeContext | None = None
    ) -> ToolOutput:
        """Run the tool."""
        arguments = WriteArguments(file_path=name, content=content)
        with anyio.fail_after(5):
            return await self.tool.run(arguments, (fake or tool_context()).context)


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


@pytest.mark.parametrize(
    "content",
    [
        pytest.param("é →\n", id="LF"),
        pytest.param("a\r\nb\n", id="mixed newlines"),
        pytest.param("", id="nothing"),
        pytest.param("no end", id="no final newline"),
    ],
)
async def test_a_new_file_is_written_as_it_is(desk: Desk, content: str) -> None:
    fake = tool_context()
    output = await desk.write("x/a.txt", content, fake=fake)
    assert (desk.folder / "x" / "a.txt").read_bytes() == content.encode()
    assert output.text.startswith("x/a.txt: created.")
    assert fake.requests[0].title == "create x/a.txt"
    assert fake.requests[0].action == "write"


@pytest.mark.parametrize(
    ("before", "content", "after"),
    [
        pytest.param(b"a\r\nb\r\n", "a\nc\nd\n", b"a\r\nc\r\nd\r\n", id="CRLF stays"),
        pytest.param(b"a\nb\n", "a\r\nc\r\n", b"a\nc\n", id="LF stays"),
        pytest.param(b"a\rb\r", "a\nc\n", b"a\rc\r", id="CR stays"),
        pytest.param(
            b"a\r\nb\nc\r\n", "a\nx\nb\nc\n", b"a\r\nx\r\nb\nc\r\n", id="mixed newlines stay"
        ),
        pytest.param(
            b"\xef\xbb\xbfint a;\n", "int é;\n", "\ufeffint é;\n".encode(), id="byte-order mark"
        ),
        pytest.param(
            b"\xef\xbb\xbfint a;\n", "\ufeffint b;\n", b"\xef\xbb\xbfint b;\n", id="no second mark"
        ),
        pytest.param(b"caf\xe9\n", "Café\n", b"Caf\xe9\n", id="legacy encoding"),
        pytest.param(
            "\ufeffa\n".encode("utf-16-be"), "é\n", "\ufeffé\n".encode("utf-16-be"), id="UTF-16"
        ),
        pytest.param(b"", "a\r\n", b"a\r\n", id="an empty file has no style to keep"),
        pytest.param(b"a\n", "", b"", id="emptied"),
    ],
)
async def test_an_existing_file_keeps_how_it_is_written(
    desk: Desk, before: bytes, content: str, after: bytes
) -> None:
    path = desk.put("a.txt", before)
    output = await desk.write("a.txt", content)
    assert path.read_bytes() == after
    assert output.text.startswith("a.txt: overwritten.")


async def test_the_output_counts_what_changed(desk: Desk) -> None:
    desk.put("a.txt", b"a\nb\nc\n")
    output = await desk.write("a.txt", "a\nB\nc\nd\n")
    assert output.summary == "+2 −1"
    assert output.metadata == {"additions": 2, "removals": 1}
    assert output.diff.endswith(" a\n-b\n+B\n c\n+d\n")


async def test_a_file_that_was_not_viewed_is_not_overwritten(desk: Desk) -> None:
    path = desk.put("a.txt", b"precious\n", is_viewed=False)
    fake = tool_context()
    with pytest.raises(ToolError, match="View it first"):
        await desk.write("a.txt", "new\n", fake=fake)
    assert path.read_bytes() == b"precious\n"
    assert not fake.requests


async def test_the_same_content_is_nothing_to_do_even_unread(desk: Desk) -> None:
    path = desk.put("a.txt", b"a\r\n", is_viewed=False)
    fake = tool_context()
    output = await desk.write("a.txt", "a\n", fake=fake)
    assert "nothing to do" in output.text
    assert not output.is_error
    assert not fake.requests
    assert path.read_bytes() == b"a\r\n"


async def test_a_stale_file_is_overwritten_only_after_its_changes_were_told(desk: Desk) -> None:
    path = desk.put("a.txt", b"a\nb\n")
    desk.put("a.txt", b"a\ntheirs\n", is_viewed=False)
    with pytest.raises(ToolError, match="-b\n\\+theirs"):
        await desk.write("a.txt", "mine\n")
    assert path.read_bytes() == b"a\ntheirs\n"
    await desk.write("a.txt", "mine\n")
    assert path.read_bytes() == b"mine\n"


async def test_a_file_that_appears_while_the_question_is_open_is_left_alone(desk: Desk) -> None:
    def appear() -> None:
        desk.put("a.txt", b"theirs\n")

    fake = tool_context(meanwhile=appear)
    with pytest.raises(ToolError, match="in the meantime"):
        await desk.write("a.txt", "mine\n", fake=fake)
    assert (desk.folder / "a.txt").read_bytes() == b"theirs\n"


async def test_a_denied_write_makes_neither_file_nor_folder(desk: Desk) -> None:
    with pytest.raises(PermissionDenied):
        await desk.write("x/y/a.txt", "a", fake=tool_context(allow=False))
    assert not [*desk.folder.iterdir()]


async def test_what_the_disk_refuses_is_kept_as_no_change(desk: Desk) -> None:
    path = desk.put("a.txt", b"old\n")
    fake = tool_context()
    usual, most = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, most))
    try:
        with pytest.raises(ToolError, match="not written"):
            await desk.write("a.txt", "x" * 200_000, fake=fake)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (usual, most))
    assert path.read_bytes() == b"old\n"
    made, unmade = fake.versions
    assert (made[1], unmade[2]) == (b"old\n", b"old\n")
    assert made[2] == unmade[1]


async def test_a_link_stays_and_its_target_is_written(desk: Desk) -> None:
    real = desk.put("real.txt", b"old\n")
    link = desk.folder / "link.txt"
    link.symlink_to("real.txt")
    fake = tool_context()
    await desk.write("link.txt", "new\n", fake=fake)
    assert link.is_symlink()
    assert real.read_bytes() == b"new\n"
    assert fake.requests[0].paths == (real,)
    assert fake.requests[0].title == "overwrite real.txt"


async def test_a_link_to_nothing_makes_its_target(desk: Desk) -> None:
    (desk.folder / "link.txt").symlink_to("real.txt")
    await desk.write("link.txt", "new\n")
    assert (desk.folder / "link.txt").is_symlink()
    assert (desk.folder / "real.txt").read_bytes() == b"new\n"


async def test_a_link_out_of_the_project_is_asked_for_as_outside(tmp_path: Path) -> None:
    (tmp_path / "project").mkdir()
    desk = Desk(tmp_path / "project")
    (desk.folder / "link.txt").symlink_to(tmp_path / "out.txt")
    fake = tool_context()
    await desk.write("link.txt", "new\n", fake=fake)
    assert fake.requests[0].is_outside
    assert fake.requests[0].paths == (tmp_path / "out.txt",)
    assert fake.requests[0].title == f"create {tmp_path / 'out.txt'}"


@pytest.mark.parametrize(
    ("file_path", "content", "reason"),
    [
        pytest.param("a.txt", "a\0b", "content contains a NUL", id="NUL"),
        pytest.param("a.txt", "a\ud800b", "content contains half a character", id="surrogate"),
        pytest.param("", "a", "path is empty", id="no path"),
        pytest.param("a\0b", "a", "NUL", id="NUL in the path"),
        pytest.param(".", "a", "is a directory", id="directory"),
        pytest.param("/dev/null", "a", "is a character device", id="device"),
        pytest.param("file/a.txt", "a", "not a directory", id="a file in the way"),
    ],
)
async def test_what_cannot_be_written_is_refused_unasked(
    desk: Desk, file_path: str, content: str, reason: str
) -> None:
    file = desk.put("file", b"")
    fake = tool_context()
    with pytest.raises(ToolError, match=reason):
        await desk.write(file_path, content, fake=fake)
    assert not fake.requests
    assert [*desk.folder.iterdir()] == [file]


@pytest.mark.parametrize(
    "is_saved", [pytest.param(True, id="saved"), pytest.param(False, id="never saved")]
)
@pytest.mark.parametrize("name", ["open.ipynb", "./x/../open.ipynb", "link.ipynb"])
async def test_the_notebook_that_is_open_is_not_written(
    desk: Desk, name: str, *, is_saved: bool
) -> None:
    if is_saved:
        desk.put("open.ipynb", b"{}\n")
    (desk.folder / "link.ipynb").symlink_to("open.ipynb")
    fake = tool_context()
    with pytest.raises(ToolError, match="the notebook in which you run"):
        await desk.write(name, "[]\n", fake=fake)
    assert not fake.requests
    path = desk.folder / "open.ipynb"
    assert (path.read_bytes() if path.exists() else None) == (b"{}\n" if is_saved else None)


async def test_another_notebook_can_be_made(desk: Desk) -> None:
    await desk.write("other.ipynb", EMPTY)
    assert (desk.folder / "other.ipynb").read_text(encoding="utf-8") == EMPTY


async def test_a_binary_file_is_not_overwritten(desk: Desk) -> None:
    path = desk.put("lib.so", bytes.fromhex("7f454c46020101000000000000000000"))
    with pytest.raises(ToolError, match="binary file of 16 bytes"):
        await desk.write("lib.so", "text")
    assert path.stat().st_size == 16


async def test_an_executable_stays_one(desk: Desk) -> None:
    path = desk.put("run.sh", b"#!/bin/sh\n")
    path.chmod(0o755)
    await desk.write("run.sh", "#!/bin/bash\n")
    assert path.stat().st_mode & 0o777 == 0o755


def test_a_person_sees_where_the_path_leads(desk: Desk) -> None:
    arguments = WriteArguments(file_path=str(desk.folder / "a.txt"), content="")
    assert desk.tool.describe(arguments) == "a.txt"
