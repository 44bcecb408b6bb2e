"""The `edit` tool on real files."""

import os
from collections.abc import Callable
from pathlib import Path

import anyio
import pytest

from crush_kernel.errors import PermissionDenied, ToolError
from crush_kernel.tools.base import Tool, ToolOutput
from crush_kernel.tools.diskfile import MAX_EDIT_BYTES
from crush_kernel.tools.edit import EditArguments, edit_tool
from crush_kernel.tools.filechange import Files
from crush_kernel.tools.paths import PathPolicy
from crush_kernel.tools.tracker import ReadTracker
from crush_kernel.tools.view import ViewArguments, view_tool
from tests.fakes.tool_context import FakeContext, tool_context

pytestmark = pytest.mark.anyio


class Desk:
    """A project folder, and the tool with what it knows of the folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.tracker = ReadTracker()
        self.paths = PathPolicy(root=folder, cwd=folder)
        self.tool: Tool[EditArguments] = edit_tool(
            Files(self.paths, self.tracker, notebook=lambda: folder / "open.ipynb")
        )

    def put(self, name: str, data: bytes, *, is_viewed: bool = True) -> Path:
        """Write a file behind the tool's back and return its path."""
        path = self.folder / name
        path.write_bytes(data)
        if is_viewed:
            self.tracker.record(Path(os.path.realpath(path)), data)
        return path

    async def edit(
        self,
        name: str,
        old: str,
        new: str,
        *,
        replace_all: bool = False,
        fake: FakeContext | None = None,
    ) -> ToolOutput:
        """Run the tool."""
        arguments = EditArguments(
            file_path=name, old_string=old, new_string=new, replace_all=replace_all
        )
        with anyio.fail_after(5):
            return await self.tool.run(arguments, (fake or tool_context()).context)


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


@pytest.mark.parametrize(
    ("before", "old", "new", "after"),
    [
        pytest.param(
            b"one\r\ntwo\r\nthree\r\n", "one\ntwo", "one\n2", b"one\r\n2\r\nthree\r\n", id="CRLF"
        ),
        pytest.param(
            b"func f() {\n\tx := 1\n\treturn\n}\n",
            "    x := 1",
            "    x := 2",
            b"func f() {\n\tx := 2\n\treturn\n}\n",
            id="spaces for a tab",
        ),
        pytest.param(
            b"\xef\xbb\xbf// s\xc3\xa9curis\xc3\xa9\nint a;\n",
            "int a;",
            "int b;",
            b"\xef\xbb\xbf// s\xc3\xa9curis\xc3\xa9\nint b;\n",
            id="byte-order mark",
        ),
        pytest.param(
            b"\xef\xbb\xbffirst\n", "first\n", "1st\n", b"\xef\xbb\xbf1st\n", id="on the first line"
        ),
        pytest.param(
            b"alpha\nbeta \x99 gamma\n",
            "alpha",
            "ALPHA",
            b"ALPHA\nbeta \x99 gamma\n",
            id="a legacy byte elsewhere",
        ),
        pytest.param(
            b"na\xefve caf\xe9\n", "naïve", "naïve à la", b"na\xefve \xe0 la caf\xe9\n", id="cp1252"
        ),
        pytest.param(
            "äöü\n".encode() + b"\x99 a\n",
            "a",
            "é",
            "äöü\n".encode() + b"\x99 \xc3\xa9\n",
            id="damaged UTF-8",
        ),
        pytest.param(
            "\ufeffa\r\nü\r\n".encode("utf-16-le"),
            "a\n",
            "a\nb\n",
            "\ufeffa\r\nb\r\nü\r\n".encode("utf-16-le"),
            id="UTF-16",
        ),
        pytest.param(
            b'log("done");\n',
            'log("done");',
            r'log("$& $1 \1 \g<0> $$ ok");',
            rb'log("$& $1 \1 \g<0> $$ ok");' + b"\n",
            id="a new text like a pattern",
        ),
        pytest.param(b"a\nb\n", "a\n", "", b"b\n", id="deletion"),
        pytest.param(b"a", "a", "a\n", b"a\n", id="a final newline"),
        pytest.param(b"", "", "x\r\n", b"x\r\n", id="an empty file"),
    ],
)
async def test_an_edit_changes_these_bytes_only(
    desk: Desk, before: bytes, old: str, new: str, after: bytes
) -> None:
    path = desk.put("a.txt", before)
    await desk.edit("a.txt", old, new)
    assert path.read_bytes() == after


async def test_the_output_tells_model_and_person_what_changed(desk: Desk) -> None:
    desk.put("q.sql", b"-- a\n-- b\nc\n")
    fake = tool_context(call_id="call_7")
    output = await desk.edit("q.sql", "-- b", "++ b\n++ c", fake=fake)
    assert output.text == "q.sql: replaced 1 place, on line 2."
    assert output.summary == "+2 −1"
    assert output.metadata == {"additions": 2, "removals": 1}
    assert "--- b\n+++ b\n+++ c\n" in output.diff
    (request,) = fake.requests
    assert (request.call_id, request.tool, request.action) == ("call_7", "edit", "write")
    assert request.title == "edit q.sql"
    assert request.diff == output.diff
    assert request.paths == (desk.folder / "q.sql",)
    assert not request.is_outside


async def test_several_matches_change_nothing(desk: Desk) -> None:
    path = desk.put("c.py", b"x = 1\ny = 2\nx = 1\n")
    fake = tool_context()
    with pytest.raises(ToolError, match=r"c\.py: .*2 times \(line 1, 3\)"):
        await desk.edit("c.py", "x = 1", "x = 5", fake=fake)
    assert path.read_bytes() == b"x = 1\ny = 2\nx = 1\n"
    assert not fake.requests
    output = await desk.edit("c.py", "x = 1", "x = 5", replace_all=True)
    assert "2 places, from line 1" in output.text
    assert path.read_bytes() == b"x = 5\ny = 2\nx = 5\n"


async def test_a_corrected_edit_says_so_and_shows_the_result(desk: Desk) -> None:
    desk.put("a.go", b"{\n\tx\n}\n")
    output = await desk.edit("a.go", "  x", "  y")
    assert "correcting its whitespace" in output.text
    assert "-\tx\n+\ty\n" in output.text


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        pytest.param("b", "b", "are the same", id="no change"),
        pytest.param("", "b", "the file is not", id="empty old text"),
        pytest.param("\0", "b", r"old_string contains a NUL", id="NUL to find"),
        pytest.param("a", "\0", r"new_string contains a NUL", id="NUL to insert"),
        pytest.param("a", "\ud800", "new_string contains half a character", id="lone surrogate"),
        pytest.param("\udc99", "b", "old_string contains half a character", id="escaped byte"),
    ],
)
async def test_an_edit_that_cannot_be_is_refused(
    desk: Desk, old: str, new: str, reason: str
) -> None:
    path = desk.put("a.txt", b"a\n")
    with pytest.raises(ToolError, match=reason):
        await desk.edit("a.txt", old, new)
    assert path.read_bytes() == b"a\n"


async def test_what_the_encoding_cannot_say_is_refused(desk: Desk) -> None:
    path = desk.put("a.txt", b"caf\xe9\n")
    with pytest.raises(ToolError, match=r"cp1252, which has no '→' \(U\+2192\)"):
        await desk.edit("a.txt", "caf", "→ caf")
    assert path.read_bytes() == b"caf\xe9\n"


async def test_bytes_that_are_not_text_are_not_overwritten_by_their_stand_in(desk: Desk) -> None:
    data = "äöü\n".encode() + b"\x99 a\n"
    path = desk.put("a.txt", data)
    with pytest.raises(ToolError, match="Edit around them"):
        await desk.edit("a.txt", "äöü", "\ufffd")
    assert path.read_bytes() == data
    output = await desk.edit("a.txt", "a\n", "b\n")
    assert "\ufffd a" in output.diff


async def test_a_legacy_encoding_is_kept_and_named(desk: Desk) -> None:
    desk.put("a.txt", b"caf\xe9\n")
    output = await desk.edit("a.txt", "caf", "Caf")
    assert "Its encoding, cp1252, was kept." in output.text


async def test_an_unread_file_is_not_edited_and_not_told(desk: Desk) -> None:
    path = desk.put("a.txt", b"secret = 1\n", is_viewed=False)
    with pytest.raises(ToolError, match="View it first") as raised:
        await desk.edit("a.txt", "secret = 2", "x")
    assert "secret" not in str(raised.value)
    assert path.read_bytes() == b"secret = 1\n"


async def test_edits_in_a_row_need_no_new_view(desk: Desk) -> None:
    path = desk.put("a.txt", b"a b c\n")
    await desk.edit("a.txt", "a", "1")
    await desk.edit("a.txt", "b", "2")
    assert path.read_bytes() == b"1 2 c\n"


async def test_a_stale_file_is_told_by_its_content_and_the_next_try_succeeds(desk: Desk) -> None:
    path = desk.put("f.py", b"a=1\nb=2\n")
    times = path.stat()
    desk.put("f.py", b"a = 1\nb = 2\n", is_viewed=False)
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
    with pytest.raises(ToolError, match="has changed on disk") as raised:
        await desk.edit("f.py", "b=2", "b=3")
    assert "-b=2\n+a = 1\n+b = 2\n" in str(raised.value)
    output = await desk.edit("f.py", "b = 2", "b = 3")
    assert path.read_bytes() == b"a = 1\nb = 3\n"
    assert "changed on disk" not in output.text


async def test_what_was_viewed_may_be_edited(desk: Desk) -> None:
    path = desk.put("a.py", b"\xef\xbb\xbfa = 1\r\n\tb = 2\r\n", is_viewed=False)
    view = view_tool(Files(desk.paths, desk.tracker), accepts=lambda _: False)
    seen = await view.run(ViewArguments(file_path="a.py"), tool_context().context)
    line = seen.text.splitlines()[1].partition("|")[2]
    await desk.edit("a.py", line, line.replace("2", "3"))
    assert path.read_bytes() == b"\xef\xbb\xbfa = 1\r\n\tb = 3\r\n"


async def test_a_stale_file_is_edited_where_the_place_is_beyond_doubt(desk: Desk) -> None:
    path = desk.put("f.py", b"a=1\nb=2\n")
    desk.put("f.py", b"a = 1\nb=2\n", is_viewed=False)
    output = await desk.edit("f.py", "b=2", "b=3")
    assert path.read_bytes() == b"a = 1\nb=3\n"
    assert "had changed on disk" in output.text
    assert desk.tracker.knowledge(path, path.read_bytes()).state == "stale"


async def test_a_stale_file_is_not_edited_where_there_is_doubt(desk: Desk) -> None:
    now = b"a = 1\n\tb=2\n"
    for old, replace_all in (("b=2", True), ("  b=2", False), ("b=2\nc", False)):
        desk.put("f.py", b"a=1\n\tb=2\n")
        path = desk.put("f.py", now, is_viewed=False)
        with pytest.raises(ToolError, match="has changed on disk"):
            await desk.edit("f.py", old, "b=3", replace_all=replace_all)
        assert path.read_bytes() == now


async def test_a_stale_file_too_different_to_tell_shows_the_region(desk: Desk) -> None:
    desk.put("f.py", b"old\n")
    new = b"".join(b"line %d is new\n" % n for n in range(1000))
    path = desk.put("f.py", new, is_viewed=False)
    with pytest.raises(ToolError, match="View it again") as raised:
        await desk.edit("f.py", "line 500 was new", "x")
    assert "line 500 is new" in str(raised.value)
    assert len(str(raised.value)) < 2000
    assert desk.tracker.knowledge(path, new).state == "stale"


async def test_a_stale_file_outside_the_project_is_not_told(tmp_path: Path) -> None:
    (tmp_path / "project").mkdir()
    desk = Desk(tmp_path / "project")
    path = desk.put("../out.txt", b"a\n")
    desk.put("../out.txt", b"secret\n", is_viewed=False)
    with pytest.raises(ToolError, match="View it again") as raised:
        await desk.edit("../out.txt", "a\n", "b\n")
    assert "secret" not in str(raised.value)
    assert path.read_bytes() == b"secret\n"


async def test_a_file_outside_the_project_is_asked_for_as_such(tmp_path: Path) -> None:
    (tmp_path / "project").mkdir()
    desk = Desk(tmp_path / "project")
    desk.put("../out.txt", b"a\n")
    fake = tool_context()
    output = await desk.edit("../out.txt", "a", "b", fake=fake)
    assert fake.requests[0].is_outside
    assert fake.requests[0].title == f"edit {tmp_path / 'out.txt'}"
    assert output.text.startswith(str(tmp_path / "out.txt"))


async def test_a_denied_edit_writes_nothing(desk: Desk) -> None:
    path = desk.put("a.txt", b"a\n")
    with pytest.raises(PermissionDenied, match="use a branch"):
        await desk.edit("a.txt", "a", "b", fake=tool_context(allow=False, reason="use a branch"))
    with pytest.raises(PermissionDenied):
        await desk.edit("x/y/b.txt", "", "b", fake=tool_context(allow=False))
    assert [*desk.folder.rglob("*")] == [path]
    assert path.read_bytes() == b"a\n"


async def test_a_file_that_changes_while_the_question_is_open_is_left_alone(desk: Desk) -> None:
    path = desk.put("a.txt", b"a\n")

    def change() -> None:
        path.write_bytes(b"a, theirs\n")

    fake = tool_context(meanwhile=change)
    with pytest.raises(ToolError, match="changed by something else in the meantime"):
        await desk.edit("a.txt", "a", "b", fake=fake)
    assert path.read_bytes() == b"a, theirs\n"


async def test_a_file_that_vanishes_while_the_question_is_open_stays_away(desk: Desk) -> None:
    path = desk.put("a.txt", b"a\n")
    with pytest.raises(ToolError, match="in the meantime"):
        await desk.edit("a.txt", "a", "b", fake=tool_context(meanwhile=path.unlink))
    assert not path.exists()


async def test_a_link_put_in_the_way_while_the_question_is_open_is_not_followed(
    tmp_path: Path,
) -> None:
    (tmp_path / "project" / "src").mkdir(parents=True)
    (tmp_path / "elsewhere").mkdir()
    desk = Desk(tmp_path / "project")

    def swap() -> None:
        (desk.folder / "src").rmdir()
        (desk.folder / "src").symlink_to(tmp_path / "elsewhere")

    with pytest.raises(ToolError, match="in the meantime"):
        await desk.edit("src/a.txt", "", "b", fake=tool_context(meanwhile=swap))
    assert not [*(tmp_path / "elsewhere").iterdir()]


async def test_the_notebook_that_is_open_is_not_edited(desk: Desk) -> None:
    path = desk.put("open.ipynb", b"{}\n")
    fake = tool_context()
    with pytest.raises(ToolError, match="the notebook in which you run"):
        await desk.edit("open.ipynb", "{}", "[]", fake=fake)
    assert not fake.requests
    assert path.read_bytes() == b"{}\n"


async def test_a_link_stays_and_its_target_is_changed_and_shown(desk: Desk) -> None:
    real = desk.put("real.txt", b"old\n")
    link = desk.folder / "link.txt"
    link.symlink_to("real.txt")
    fake = tool_context()
    output = await desk.edit("link.txt", "old", "new", fake=fake)
    assert link.is_symlink()
    assert real.read_bytes() == b"new\n"
    assert fake.requests[0].paths == (real,)
    assert fake.requests[0].notes == ("link.txt is a link to it",)
    assert output.text.startswith("real.txt: replaced")


async def test_hard_links_are_noted(desk: Desk) -> None:
    path = desk.put("a.txt", b"a\n")
    (desk.folder / "b.txt").hardlink_to(path)
    fake = tool_context()
    await desk.edit("a.txt", "a", "b", fake=fake)
    assert fake.requests[0].notes == ("2 hard links: the other names keep the old content",)
    assert (desk.folder / "b.txt").read_bytes() == b"a\n"


def make_fifo(path: Path) -> None:
    os.mkfifo(path)


def make_large(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(MAX_EDIT_BYTES + 1)


def make_binary(path: Path) -> None:
    path.write_bytes(b"\x7fELF\0")


def make_circle(path: Path) -> None:
    path.symlink_to(path.name)


def make_nothing(path: Path) -> None:
    assert not path.exists()


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        pytest.param(Path.mkdir, "directory, not a regular file", id="directory"),
        pytest.param(make_fifo, "named pipe, not a regular file", id="named pipe"),
        pytest.param(make_large, "too large to edit", id="huge file"),
        pytest.param(make_binary, "binary", id="binary"),
        pytest.param(make_nothing, "does not exist", id="nothing"),
        pytest.param(make_circle, "circle of", id="a circle of links"),
    ],
)
async def test_what_is_no_text_file_is_refused_unasked(
    desk: Desk, make: Callable[[Path], None], reason: str
) -> None:
    make(desk.folder / "a")
    fake = tool_context()
    with pytest.raises(ToolError, match=reason):
        await desk.edit("a", "x", "y", fake=fake)
    assert not fake.requests


async def test_an_empty_old_text_creates_a_file_and_its_folders(desk: Desk) -> None:
    fake = tool_context()
    output = await desk.edit("x/y/a.txt", "", "é\n", fake=fake)
    assert (desk.folder / "x" / "y" / "a.txt").read_bytes() == "é\n".encode()
    assert fake.requests[0].title == "create x/y/a.txt"
    assert fake.requests[0].diff.startswith("--- /dev/null\n+++ b/x/y/a.txt\n")
    assert fake.requests[0].notes == (f"the folder {desk.folder / 'x' / 'y'} is made for it",)
    assert output.summary == "+1 −0"
    await desk.edit("x/y/a.txt", "é", "è")


async def test_of_two_edits_at_once_none_is_lost_unsaid(desk: Desk) -> None:
    path = desk.put("a.txt", b"a b\n")
    failed: list[str] = []

    async def edit(old: str, new: str) -> None:
        try:
            await desk.edit("a.txt", old, new)
        except ToolError:
            failed.append(new)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(edit, "a", "1")
        tasks.start_soon(edit, "b", "2")
    done = {"1", "2"} - set(failed)
    assert done
    assert done == {"1", "2"} & set(path.read_text("utf-8").split())


@pytest.mark.parametrize("steps", range(12))
async def test_cancelled_at_any_point_an_edit_leaves_the_old_or_the_new_text(
    desk: Desk, steps: int
) -> None:
    path = desk.put("a.txt", b"old\n")

    async def cancel_later(scope: anyio.CancelScope) -> None:
        for _ in range(steps):
            await anyio.lowlevel.checkpoint()
        scope.cancel()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(cancel_later, tasks.cancel_scope)
        await desk.edit("a.txt", "old", "new")
    assert path.read_bytes() in (b"old\n", b"new\n")
    assert [*desk.folder.iterdir()] == [path]


async def test_cancelled_at_the_question_an_edit_writes_nothing(desk: Desk) -> None:
    path = desk.put("a.txt", b"old\n")
    with anyio.CancelScope() as scope:
        await desk.edit("a.txt", "old", "new", fake=tool_context(meanwhile=scope.cancel))
    assert scope.cancelled_caught
    assert path.read_bytes() == b"old\n"
    assert [*desk.folder.iterdir()] == [path]


async def test_what_is_found_after_writing_is_added_to_the_output(desk: Desk) -> None:
    path = desk.put("a.txt", b"a\n")
    told: list[Path] = []

    async def diagnose(path: Path) -> str:
        await anyio.lowlevel.checkpoint()
        told.append(path)
        return "line 1: no good"

    desk.tool = edit_tool(Files(desk.paths, desk.tracker, after_write=diagnose))
    output = await desk.edit("a.txt", "a", "b")
    assert output.text.endswith("\nline 1: no good")
    assert told == [path]


@pytest.mark.parametrize(
    ("file_path", "said"),
    [
        pytest.param("./src/../a.txt", "a.txt", id="a way about"),
        pytest.param("", "", id="nothing"),
        pytest.param("a\u202etxt", r"a\u202etxt", id="text that would be reordered"),
    ],
)
def test_a_person_sees_where_the_path_leads(desk: Desk, file_path: str, said: str) -> None:
    arguments = EditArguments(file_path=file_path, old_string="a", new_string="b")
    assert desk.tool.describe(arguments) == said
