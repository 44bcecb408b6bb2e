"""What `view` shows of every sort of file."""

import base64
import os
import socket
import threading
import tracemalloc
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import anyio
import anyio.from_thread
import anyio.lowlevel
import anyio.to_thread
import pytest
from pydantic import ValidationError

from crush_kernel.errors import PermissionDenied, ToolError
from crush_kernel.tools.base import ToolOutput
from crush_kernel.tools.filechange import Files
from crush_kernel.tools.filecontent import chunks_of
from crush_kernel.tools.paths import PathPolicy
from crush_kernel.tools.tracker import ReadTracker
from crush_kernel.tools.view import MAX_NAMES, ViewArguments, view_tool
from tests.fakes.media import decoded, encoded, pdf, photo, png_head
from tests.fakes.tool_context import FakeContext, tool_context

pytestmark = pytest.mark.anyio

ELF_HEAD = bytes.fromhex("7f454c46020101000000000000000000")
JPEG_HEAD = bytes.fromhex("ffd8ffe000104a4649460001")
FAKE_PDF = b"%PDF-1.4 not really a pdf\n"
ALL_BYTES = bytes(range(256))


class Project:
    """A folder of files, and `view` in it."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.tracker = ReadTracker()
        self.can_see = True
        paths = PathPolicy(root=root, cwd=root)
        self.tool = view_tool(Files(paths, self.tracker), accepts=lambda _: self.can_see)

    def write(self, name: str, data: bytes) -> Path:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        return path

    async def view(
        self, name: str, *, offset: int = 0, limit: int = 200, fake: FakeContext | None = None
    ) -> ToolOutput:
        arguments = ViewArguments(file_path=name, offset=offset, limit=limit)
        with anyio.fail_after(20):
            return await self.tool.run(arguments, (fake or tool_context()).context)

    async def refusal(self, name: str, *, offset: int = 0) -> str:
        with pytest.raises(ToolError) as refused:
            await self.view(name, offset=offset)
        return str(refused.value)


@pytest.fixture
def project(tmp_path: Path) -> Project:
    (tmp_path / "project").mkdir()
    return Project(tmp_path / "project")


async def test_lines_are_numbered_and_the_whole_file_is_named_as_such(project: Project) -> None:
    project.write("a.py", b"import os\n\tx = 1\n")
    output = await project.view("a.py")
    assert output.text == "     1|import os\n     2|\tx = 1\n\n[whole file: 2 lines, 17 bytes]"
    assert (output.summary, output.is_error) == ("2 lines", False)


@pytest.mark.parametrize(
    ("data", "lines"),
    [
        pytest.param(b"one", ["one"], id="no newline at the end"),
        pytest.param(b"one\n", ["one"], id="newline at the end"),
        pytest.param(b"one\n\n", ["one", ""], id="empty last line"),
        pytest.param(b"\n", [""], id="a single newline"),
        pytest.param(b"one\r\ntwo\r\n", ["one", "two"], id="CRLF"),
        pytest.param(b"one\rtwo\r", ["one", "two"], id="lone CR"),
        pytest.param(b"func f() {\n\tx := 1\n}\n", ["func f() {", "\tx := 1", "}"], id="tabs"),
        pytest.param(b"\xef\xbb\xbfone\n", ["one"], id="UTF-8 BOM"),
        pytest.param("eins\nzwölf\n".encode("utf-16"), ["eins", "zwölf"], id="UTF-16"),
        pytest.param("a\nb\n".encode("utf-32"), ["a", "b"], id="UTF-32"),
        pytest.param(b"alpha\nbeta \x99 gamma\n", ["alpha", "beta ™ gamma"], id="cp1252"),
        pytest.param("日本語\n".encode(), ["日本語"], id="wide characters"),
    ],
)
async def test_the_lines_shown_are_the_lines_of_the_text(
    project: Project, data: bytes, lines: list[str]
) -> None:
    project.write("file", data)
    body = (await project.view("file")).text.split("\n\n[")[0].rstrip("\n")
    assert body.split("\n") == [f"{n:6d}|{line}" for n, line in enumerate(lines, 1)]


@pytest.mark.parametrize(
    ("data", "note"),
    [
        pytest.param(b"\xef\xbb\xbfone\n", "[encoding: utf-8 with BOM]", id="BOM"),
        pytest.param("x\n".encode("utf-16"), "[encoding: utf-16-le with BOM]", id="UTF-16"),
        pytest.param(b"beta \x99 gamma\n", "[encoding: cp1252", id="legacy"),
        pytest.param(b"one", "[no newline at the end of the file]", id="no final newline"),
        pytest.param(
            "ein schöner Tag, Füße, Öl und überall Größe\n".encode() * 9 + b"\xff\n",
            "[U+FFFD stands for bytes that the encoding does not explain]",
            id="damaged UTF-8",
        ),
    ],
)
async def test_oddities_are_named(project: Project, data: bytes, note: str) -> None:
    project.write("file", data)
    assert note in (await project.view("file")).text


@pytest.mark.parametrize(
    ("offset", "limit", "note", "summary"),
    [
        (0, 200, "lines 1-200 of 500; 4,392 bytes; go on with offset=200", "lines 1–200 of 500"),
        (
            199,
            2,
            "lines 200-201 of 500; 4,392 bytes; go on with offset=201",
            "lines 200–201 of 500",
        ),
        (400, 200, "lines 401-500 of 500; 4,392 bytes; the end", "lines 401–500 of 500"),
        (499, 1, "lines 500-500 of 500; 4,392 bytes; the end", "lines 500–500 of 500"),
        (0, 500, "whole file: 500 lines, 4,392 bytes", "500 lines"),
    ],
)
async def test_a_section_says_where_it_is_and_how_to_go_on(
    project: Project, offset: int, limit: int, note: str, summary: str
) -> None:
    project.write("a.txt", b"".join(b"line %d\n" % n for n in range(1, 501)))
    output = await project.view("a.txt", offset=offset, limit=limit)
    wanted = range(offset + 1, min(offset + limit, 500) + 1)
    assert output.text == "\n".join(f"{n:6d}|line {n}" for n in wanted) + f"\n\n[{note}]"
    assert output.summary == summary


async def test_an_offset_behind_the_end_is_explained(project: Project) -> None:
    project.write("a.txt", b"one\ntwo\n")
    assert "has only 2 lines; offset 2 is past its end" in await project.refusal("a.txt", offset=2)


async def test_an_empty_file_is_called_empty(project: Project) -> None:
    project.write("empty.txt", b"")
    output = await project.view("empty.txt")
    assert (output.text, output.is_error) == ("[empty.txt is empty]", False)


async def test_a_long_line_is_cut_with_a_note(project: Project) -> None:
    project.write("min.js", "é".encode() * 3_000 + b"\nnext\n")
    lines = (await project.view("min.js")).text.split("\n")
    assert lines[0] == "     1|" + "é" * 2_000 + "… [cut; the line has 6,000 bytes]"
    assert lines[1] == "     2|next"


async def test_too_large_a_section_is_shown_as_far_as_it_fits(project: Project) -> None:
    project.write("big.txt", (b"x" * 999 + b"\n") * 1_000)
    output = await project.view("big.txt", limit=1_000)
    shown = len(output.text.split("\n\n")[0].split("\n"))
    assert 190 < shown < 210
    assert f"[lines 1-{shown} of 1,000, as many as fit in 200 KiB; 1,000,000 bytes; " in output.text
    assert f"go on with offset={shown}]" in output.text
    assert len(output.text) < 210_000


@pytest.mark.parametrize("newline", [b"\n", b"\r\n"])
async def test_nothing_but_newlines_stays_within_the_bound(
    project: Project, newline: bytes
) -> None:
    project.write("blank.txt", newline * 900_000)
    output = await project.view("blank.txt", limit=900_000)
    assert len(output.text) < 210_000


async def test_a_file_of_90_megabytes_is_read_in_bounded_memory(project: Project) -> None:
    line = b'{"event": "something happened", "value": 123456789, "more": "text"}\n'
    size = 90_000_000 // len(line) * len(line)
    with (project.root / "log.jsonl").open("wb") as file:
        for _ in range(90):
            file.write(line * (1_000_000 // len(line)))
        file.truncate(size)
    tracemalloc.start()
    output = await project.view("log.jsonl")
    far = await project.view("log.jsonl", offset=1_000_000, limit=2)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 10_000_000
    assert "[lines 1-200 of a file too large to count them; 8" in output.text
    assert "go on with offset=200]" in output.text
    assert far.text.startswith("1000001|{")
    assert len(output.text) < 20_000


async def test_a_sparse_file_of_a_gigabyte_does_not_hold_anything_up(project: Project) -> None:
    with project.write("big.log", b"first\nsecond\n").open("r+b") as file:
        file.truncate(1_000_000_000)
    assert "[binary file, 1,000,000,000 bytes," in await project.refusal("big.log")


async def test_one_endless_line_does_not_hold_anything_up(project: Project) -> None:
    head = b"x" * 1_000_000
    with project.write("line.txt", head * 12).open("r+b") as file:
        file.truncate(700_000_000)
    output = await project.view("line.txt")
    assert output.text.startswith("     1|" + "x" * 2_000 + "… [cut; the line has ")
    assert "of a file too large to count them" in output.text


@pytest.mark.parametrize(
    ("name", "data", "kind"),
    [
        pytest.param("lib.so", ELF_HEAD, "unknown type", id="ELF head"),
        pytest.param("data.txt", b"text and then \0\1\2\3", "unknown type", id="NUL"),
        pytest.param("a.gz", b"\x1f\x8b\x08\0" + ALL_BYTES, "application/gzip", id="gzip"),
        pytest.param("a.heic", b"\0\0\0\x18ftypheic\0\0\0\0mif1heic", "image/heic", id="HEIC"),
        pytest.param("huge.bin", b"\0" * 11_000_000, "unknown type", id="large"),
    ],
)
async def test_binary_files_are_refused_by_their_bytes(
    project: Project, name: str, data: bytes, kind: str
) -> None:
    path = project.write(name, data)
    refusal = await project.refusal(name)
    assert refusal.startswith(f"[binary file, {len(data):,} bytes, {kind}] {name} is not text")
    assert project.tracker.knowledge(path, data).state == "unread"


PHOTO = photo((40, 30))


@pytest.mark.parametrize(
    ("name", "data", "kind", "facts"),
    [
        pytest.param("dot.png", encoded(PHOTO, "PNG"), "image", "image/png, 40×30 pixels",
                     id="PNG"),
        pytest.param("dot.txt", encoded(PHOTO, "PNG"), "image", "image/png, 40×30 pixels",
                     id="PNG called text"),
        pytest.param("logo.png", encoded(PHOTO, "JPEG"), "image", "image/jpeg, 40×30 pixels",
                     id="JPEG called PNG"),
        pytest.param("paper", pdf(2), "document", "application/pdf, 2 pages", id="PDF"),
    ],
)  # fmt: skip
async def test_images_and_documents_come_as_media_typed_by_their_bytes(
    project: Project, name: str, data: bytes, kind: str, facts: str
) -> None:
    project.write(name, data)
    output = await project.view(name)
    assert output.text == f"[{kind} {name}: {facts}, {len(data):,} bytes]"
    assert [(media.media_type, media.name) for media in output.media] == [(output.summary, name)]
    assert facts.startswith(output.summary)
    assert base64.b64decode(output.media[0].data) == data


@pytest.mark.parametrize("name", ["shot.png", "shot.tiff"])
async def test_what_was_made_smaller_says_so(project: Project, name: str) -> None:
    data = encoded(photo((2_000, 500)), name.rpartition(".")[2].upper())
    project.write(name, data)
    output = await project.view(name)
    assert f"2000×500 pixels, {len(data):,} bytes; shown as image/jpeg, 1568×392" in output.text
    assert decoded(base64.b64decode(output.media[0].data)).size == (1_568, 392)


@pytest.mark.parametrize(
    ("name", "data", "said"),
    [
        pytest.param("logo.png", JPEG_HEAD, "image/jpeg, 12 bytes] It cannot be shown: it cannot "
                     "be decoded", id="image that ends too early"),
        pytest.param("doc.txt", FAKE_PDF, "application/pdf, 26 bytes] It cannot be shown: its end "
                     "is missing", id="fake PDF"),
        pytest.param("bomb.png", png_head((50_000, 50_000)), "it has more than 50 million pixels",
                     id="bomb"),
        pytest.param("huge.png", encoded(PHOTO, "PNG") + bytes(24_000_000), "it is larger than "
                     "24 MB", id="huge"),
    ],
)  # fmt: skip
async def test_what_a_provider_would_refuse_is_refused_here(
    project: Project, name: str, data: bytes, said: str
) -> None:
    project.write(name, data)
    assert said in await project.refusal(name)


async def test_an_image_between_the_bounds_of_editing_and_viewing_is_shown(
    project: Project,
) -> None:
    project.write("big.png", encoded(PHOTO, "PNG") + bytes(12_000_000))
    output = await project.view("big.png")
    assert "shown as image/jpeg, 40×30 pixels" in output.text


@pytest.mark.parametrize(
    ("name", "data"),
    [
        pytest.param("a.svg", b"<svg/>", id="SVG"),
        pytest.param("a.txt", b"BM stands for bitmap", id="begins like BMP"),
        pytest.param("b.txt", b"GIF stands for something", id="begins like GIF"),
    ],
)
async def test_text_that_is_or_begins_like_a_picture_is_shown_as_text(
    project: Project, name: str, data: bytes
) -> None:
    project.write(name, data + b"\n")
    assert (await project.view(name)).text.startswith(f"     1|{data.decode()}\n")


async def test_a_model_without_eyes_is_told_so(project: Project) -> None:
    project.write("file", encoded(PHOTO, "PNG"))
    project.can_see = False
    refusal = await project.refusal("file")
    assert "image/png, " in refusal
    assert "The current model cannot look at images" in refusal


async def test_what_is_read_whole_is_known_to_the_tracker(project: Project) -> None:
    data = b"one\ntwo\n"
    path = project.write("a.txt", data)
    await project.view("a.txt", limit=1)
    assert project.tracker.knowledge(path, data).state == "fresh"
    large = project.write("large.txt", b"line\n" * 2_000_001)
    await project.view("large.txt")
    assert project.tracker.knowledge(large, large.read_bytes()).state == "unread"


async def test_a_link_is_read_where_it_leads(project: Project) -> None:
    real = project.write("real.txt", b"text\n")
    (project.root / "link.txt").symlink_to("real.txt")
    assert "|text" in (await project.view("link.txt")).text
    assert project.tracker.knowledge(real, b"text\n").state == "fresh"


@pytest.mark.parametrize(
    ("names", "said"),
    [
        pytest.param((), "It is empty.", id="nothing in it"),
        pytest.param(("b.py", "a/"), "In it: a/, b.py.", id="a folder and a file"),
        pytest.param(
            [f"{n:02}" for n in range(MAX_NAMES + 2)],
            "In it: 00, 01, 02, 03, 04, 05, 06, 07, 08, 09 and 2 more.",
            id="more than are named",
        ),
        pytest.param(("\u202ex",), "In it: \\u202ex.", id="a name that hides"),
    ],
)
async def test_a_directory_is_referred_to_ls_with_some_of_its_names(
    project: Project, names: Sequence[str], said: str
) -> None:
    folder = project.root / "src"
    folder.mkdir()
    for name in names:
        (folder / name).mkdir() if name.endswith("/") else (folder / name).touch()
    assert await project.refusal("src") == f"src is a directory. List it with ls. {said}"


async def test_what_is_known_of_a_text_beyond_it_is_added(project: Project) -> None:
    told: list[Path] = []

    async def diagnose(path: Path) -> str:
        await anyio.lowlevel.checkpoint()
        told.append(path)
        return "1 warning"

    paths = PathPolicy(root=project.root, cwd=project.root)
    project.tool = view_tool(Files(paths, after_read=diagnose), accepts=lambda _: True)
    path = project.write("a.py", b"x\n")
    project.write("a.png", encoded(photo((4, 3)), "PNG"))
    assert (await project.view("a.py")).text.endswith("2 bytes]\n1 warning")
    await project.view("a.png")
    assert told == [path]


async def test_a_missing_file_is_answered_with_near_names(project: Project) -> None:
    for name in ("config.py", "config_test.py", "Configs.PY", "readme.md", "zebra.txt"):
        project.write(f"src/{name}", b"x")
    refusal = await project.refusal("src/confg.py")
    assert refusal.startswith("src/confg.py does not exist. Did you mean src/config.py or ")
    assert refusal.count("src/") == 4
    assert "zebra" not in refusal


@pytest.mark.parametrize("name", ["nothing.like.it", "a.txt/below", "no/such/folder/x"])
async def test_a_missing_file_without_near_names_is_answered_with_what_to_do(
    project: Project, name: str
) -> None:
    project.write("a.txt", b"x")
    refusal = await project.refusal(name)
    assert refusal == f"{name} does not exist. Find it with glob, or list the folder with ls."


async def test_a_path_that_is_too_long_only_with_its_folder_is_an_error(project: Project) -> None:
    assert "cannot be read: file name too long" in await project.refusal("x/" * 2_045)


def _pipe(path: Path) -> None:
    os.mkfifo(path)


def _socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path))


@pytest.mark.parametrize(
    ("make", "kind"), [pytest.param(_pipe, "named pipe"), pytest.param(_socket, "socket")]
)
async def test_special_files_are_refused_unopened(
    project: Project, monkeypatch: pytest.MonkeyPatch, make: Callable[[Path], None], kind: str
) -> None:
    monkeypatch.chdir(project.root)
    make(Path("special"))
    refusal = await project.refusal("special")
    assert refusal == f"special is a {kind}, not a file that can be read."


async def test_devices_are_refused(project: Project) -> None:
    assert "character device" in await project.refusal("/dev/zero")


async def test_a_file_outside_is_read_after_asking(project: Project) -> None:
    outside = project.write("../outside.txt", b"secret\n").resolve()
    fake = tool_context()
    output = await project.view("../outside.txt", fake=fake)
    assert "|secret" in output.text
    assert [(r.tool, r.action, r.paths, r.is_outside) for r in fake.requests] == [
        ("view", "read", (outside,), True)
    ]


async def test_a_link_out_of_the_project_asks_for_the_real_place(project: Project) -> None:
    outside = project.write("../outside.txt", b"secret\n").resolve()
    (project.root / "innocent.txt").symlink_to("../outside.txt")
    fake = tool_context(allow=False)
    with pytest.raises(PermissionDenied):
        await project.view("innocent.txt", fake=fake)
    assert fake.requests[0].paths == (outside,)


async def test_nobody_is_asked_about_a_file_that_is_not_there(project: Project) -> None:
    project.write("../outside.txt", b"secret\n")
    fake = tool_context()
    with pytest.raises(ToolError, match="does not exist") as refused:
        await project.view("../outside.tx", fake=fake)
    assert fake.requests == []
    assert "Did you mean" not in str(refused.value)


async def test_nobody_is_asked_inside_the_project(project: Project) -> None:
    project.write("a.txt", b"x\n")
    await project.view("a.txt", fake=(fake := tool_context()))
    assert fake.requests == []


async def test_a_file_that_vanishes_while_the_question_is_open_is_an_error(
    project: Project,
) -> None:
    outside = project.write("../outside.txt", b"secret\n")
    with pytest.raises(ToolError, match="does not exist"):
        await project.view("../outside.txt", fake=tool_context(meanwhile=outside.unlink))


async def test_a_link_put_in_the_place_of_an_allowed_file_is_not_followed(
    project: Project,
) -> None:
    allowed, other = project.write("../allowed.txt", b"x\n"), project.write("../other.txt", b"y\n")

    def swap() -> None:
        allowed.unlink()
        allowed.symlink_to(other)

    with pytest.raises(ToolError, match="was replaced"):
        await project.view("../allowed.txt", fake=tool_context(meanwhile=swap))


async def test_a_link_put_in_the_place_of_a_folder_above_is_not_followed(
    project: Project,
) -> None:
    allowed = project.write("../beside/note.txt", b"x\n")
    other = project.write("../secret/note.txt", b"y\n")

    def swap() -> None:
        allowed.parent.rename(project.root.parent / "moved")
        allowed.parent.symlink_to(other.parent)

    with pytest.raises(ToolError, match="was replaced"):
        await project.view("../beside/note.txt", fake=tool_context(meanwhile=swap))


async def test_a_pipe_put_in_the_place_of_an_allowed_file_is_not_waited_for(
    project: Project,
) -> None:
    allowed = project.write("../allowed.txt", b"x\n")

    def swap() -> None:
        allowed.unlink()
        os.mkfifo(allowed)

    with pytest.raises(ToolError, match="named pipe"):
        await project.view("../allowed.txt", fake=tool_context(meanwhile=swap))


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
async def test_an_unreadable_file_is_an_error(project: Project) -> None:
    project.write("a.txt", b"x\n").chmod(0)
    assert "permission denied" in await project.refusal("a.txt")


async def test_a_file_whose_size_is_unknown_beforehand_is_read(project: Project) -> None:
    output = await project.view("/proc/self/status")
    assert output.text.startswith("     1|Name:")


async def test_reading_ends_soon_after_it_is_cancelled() -> None:
    begun, ended = anyio.Event(), threading.Event()

    def read(_: int) -> bytes:
        anyio.from_thread.run_sync(begun.set)
        return b"x"

    def read_for_ever() -> None:
        try:
            for _ in chunks_of(read):
                pass
        finally:
            ended.set()

    with anyio.fail_after(5):
        async with anyio.create_task_group() as group:
            run = partial(anyio.to_thread.run_sync, read_for_ever, abandon_on_cancel=True)
            group.start_soon(run)
            await begun.wait()
            group.cancel_scope.cancel()
        assert await anyio.to_thread.run_sync(ended.wait, 4)


@pytest.mark.parametrize(
    "arguments",
    [
        pytest.param({"file_path": "a", "offset": -1}, id="negative offset"),
        pytest.param({}, id="no path"),
        pytest.param({"file_path": "a", "lines": 3}, id="unknown argument"),
    ],
)
def test_bad_arguments_are_refused(arguments: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        ViewArguments.model_validate(arguments)


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (ViewArguments(file_path="src/a.py"), "src/a.py"),
        (ViewArguments(file_path="src/a.py", offset=200), "src/a.py lines 201–400"),
        (ViewArguments(file_path="a\nb"), "a\\x0ab"),
    ],
)
def test_a_call_is_described_in_one_line(
    project: Project, arguments: ViewArguments, text: str
) -> None:
    assert project.tool.describe(arguments) == text


def test_the_description_names_the_limits(project: Project) -> None:
    for fact in ("200 KiB", "2,000 characters", "24 MB", "`offset`", "`limit` (200)"):
        assert fact in project.tool.description
    assert project.tool.is_read_only
