"""The `multiedit` tool on real files: all edits, or none and why."""

import os
from pathlib import Path
from typing import Any

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from crush_kernel.errors import PermissionDenied, ToolError
from crush_kernel.tools.base import Tool, ToolOutput
from crush_kernel.tools.filechange import Files
from crush_kernel.tools.multiedit import (
    MAX_EDITS,
    MultieditArguments,
    SingleEdit,
    apply_all,
    multiedit_tool,
)
from crush_kernel.tools.paths import PathPolicy
from crush_kernel.tools.tracker import ReadTracker
from tests.fakes.tool_context import FakeContext, tool_context

pytestmark = pytest.mark.anyio

Pair = tuple[str, str]


def edit(old: str, new: str, *, replace_all: bool = False) -> dict[str, object]:
    return {"old_string": old, "new_string": new, "replace_all": replace_all}


class Desk:
    """A project folder, and the tool with what it knows of the folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.tracker = ReadTracker()
        paths = PathPolicy(root=folder, cwd=folder)
        self.tool: Tool[MultieditArguments] = multiedit_tool(
            Files(paths, self.tracker, notebook=lambda: folder / "open.ipynb")
        )

    def put(self, name: str, data: bytes, *, is_viewed: bool = True) -> Path:
        """Write a file behind the tool's back and return its path."""
        path = self.folder / name
        path.write_bytes(data)
        if is_viewed:
            self.tracker.record(Path(os.path.realpath(path)), data)
        return path

    async def edit(
        self, name: str, *edits: Pair | dict[str, object], fake: FakeContext | None = None
    ) -> ToolOutput:
        """Run the tool."""
        given = [each if isinstance(each, dict) else edit(*each) for each in edits]
        arguments = MultieditArguments.model_validate({"file_path": name, "edits": given})
        with anyio.fail_after(5):
            return await self.tool.run(arguments, (fake or tool_context()).context)


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


@pytest.mark.parametrize(
    ("before", "edits", "after"),
    [
        pytest.param(b"a\nb\n", [("a", "1"), ("b", "2")], b"1\n2\n", id="two places"),
        pytest.param(b"a\n", [("a", "b"), ("b", "c")], b"c\n", id="one after the other"),
        pytest.param(
            b"a\na\nb\n", [("a\na", "x\na"), ("a", "y")], b"x\ny\nb\n", id="unique only then"
        ),
        pytest.param(
            b"a a a\r\nb\r\n",
            [edit("a", "c", replace_all=True), ("b", "d\ne")],
            b"c c c\r\nd\r\ne\r\n",
            id="all of them, CRLF",
        ),
        pytest.param(
            b"\xef\xbb\xbf\tx\n\ty\n", [("x", "é"), ("y", "")], b"\xef\xbb\xbf\t\xc3\xa9\n\t\n",
            id="byte-order mark",
        ),
        pytest.param(b"a \x99\nb\n", [("a", "c"), ("b", "d")], b"c \x99\nd\n", id="a legacy byte"),
        pytest.param(b"", [("", "a\nb\n"), ("b", "c")], b"a\nc\n", id="an empty file"),
    ],
)  # fmt: skip
async def test_edits_change_these_bytes_only(
    desk: Desk, before: bytes, edits: list[Pair | dict[str, object]], after: bytes
) -> None:
    path = desk.put("a.txt", before)
    await desk.edit("a.txt", *edits)
    assert path.read_bytes() == after


async def test_one_question_shows_the_whole_diff_and_the_answer_every_place(desk: Desk) -> None:
    path = desk.put("a.txt", b"a\n" + b"-\n" * 20 + b"b\n")
    fake = tool_context(call_id="call_7")
    output = await desk.edit("a.txt", ("a", "1\n2"), ("b", ""), fake=fake)
    assert output.text == (
        "a.txt: made 2 edits\n1: replaced 1 place, on line 1\n2: replaced 1 place, on line 23."
    )
    assert output.summary == "+3 −2"
    (request,) = fake.requests
    assert (request.call_id, request.tool, request.action) == ("call_7", "multiedit", "write")
    assert request.title == "make 2 edits in a.txt"
    assert request.diff == output.diff
    assert "-a\n+1\n+2\n" in request.diff
    assert "-b\n" in request.diff
    assert fake.versions == [(path, b"a\n" + b"-\n" * 20 + b"b\n", path.read_bytes())]


async def test_if_one_fails_nothing_is_written_and_each_is_accounted_for(desk: Desk) -> None:
    data = b"one\ntwo\ntwo\nthree\n"
    path = desk.put("a.txt", data)
    fake = tool_context()
    with pytest.raises(ToolError) as raised:
        await desk.edit(
            "a.txt", ("one", "1"), ("two", "2"), ("four", "4"), ("three", "3"), fake=fake
        )
    head, *lines = str(raised.value).splitlines()
    assert head.startswith("a.txt: nothing was written, because 2 of 4 edits failed.")
    assert lines[0].startswith("edit 2 failed: old_string is there 2 times (line 2, 3)")
    assert lines[1].startswith("edit 3 failed: ")
    assert lines[-2:] == [
        "edit 1 fits: it would have replaced 1 place, on line 1",
        "edit 4 fits: it would have replaced 1 place, on line 4",
    ]
    assert path.read_bytes() == data
    assert not fake.requests
    output = await desk.edit("a.txt", ("one", "1"), edit("two", "2", replace_all=True))
    assert "2: replaced 2 places, from line 2" in output.text


async def test_the_reasons_of_many_failures_stay_short(desk: Desk) -> None:
    desk.put("a.txt", b"x = 1\n" * 3_000)
    edits = [(f"x = {number}\n" * 40, "y") for number in range(2, MAX_EDITS + 2)]
    with pytest.raises(ToolError, match=f"{MAX_EDITS} of {MAX_EDITS} edits failed") as raised:
        await desk.edit("a.txt", *edits)
    assert len(str(raised.value).encode()) < 13_000


@pytest.mark.parametrize(
    ("edits", "reason"),
    [
        pytest.param([("a", "b"), ("b", "a")], "undo each other", id="nothing in the end"),
        pytest.param([("a", "a")], "edit 1 failed: .* are the same", id="no change"),
        pytest.param([("a", "b"), ("a", "c")], "edit 2 failed", id="taken away by another"),
        pytest.param([("a", "b"), ("", "c")], "edit 2 failed: .*only the first", id="empty, later"),
        pytest.param([("", "b")], "edit 1 failed: .*is not", id="empty, but there is a file"),
        pytest.param([("a", "b"), ("\0", "c")], "old_string of edit 2 contains a NUL", id="NUL"),
        pytest.param([("a", "\ud800")], "new_string of edit 1 .*half", id="lone surrogate"),
    ],
)
async def test_edits_that_cannot_be_are_refused_unasked(
    desk: Desk, edits: list[Pair], reason: str
) -> None:
    path = desk.put("a.txt", b"a\n")
    fake = tool_context()
    with pytest.raises(ToolError, match=reason):
        await desk.edit("a.txt", *edits, fake=fake)
    assert path.read_bytes() == b"a\n"
    assert not fake.requests


async def test_a_file_is_created_and_changed_in_one_go(desk: Desk) -> None:
    fake = tool_context()
    output = await desk.edit("x/a.txt", ("", "a\nb\n"), ("b", "c"), fake=fake)
    assert (desk.folder / "x" / "a.txt").read_bytes() == b"a\nc\n"
    assert fake.requests[0].title == "create x/a.txt"
    assert output.text.startswith("x/a.txt: created.")


@pytest.mark.parametrize("edits", [[("a", "b")], [("a", "b"), ("", "c")]])
async def test_what_is_not_there_is_created_by_a_first_edit_only(
    desk: Desk, edits: list[Pair]
) -> None:
    with pytest.raises(ToolError, match="edit 1 failed: The file does not exist"):
        await desk.edit("x/a.txt", *edits)
    assert not (desk.folder / "x").exists()


async def test_a_denied_change_writes_nothing(desk: Desk) -> None:
    path = desk.put("a.txt", b"a\nb\n")
    with pytest.raises(PermissionDenied):
        await desk.edit("a.txt", ("a", "1"), ("b", "2"), fake=tool_context(allow=False))
    assert path.read_bytes() == b"a\nb\n"


async def test_a_file_that_changes_while_the_question_is_open_is_left_alone(desk: Desk) -> None:
    path = desk.put("a.txt", b"a\n")

    def change() -> None:
        path.write_bytes(b"theirs\n")

    fake = tool_context(meanwhile=change)
    with pytest.raises(ToolError, match="in the meantime"):
        await desk.edit("a.txt", ("a", "b"), fake=fake)
    assert path.read_bytes() == b"theirs\n"


async def test_an_unread_file_is_not_edited_and_not_told(desk: Desk) -> None:
    path = desk.put("a.txt", b"secret = 1\n", is_viewed=False)
    with pytest.raises(ToolError, match="View it first") as raised:
        await desk.edit("a.txt", ("secret = 2", "x"), ("secret = 1", "y"))
    assert "secret" not in str(raised.value)
    assert path.read_bytes() == b"secret = 1\n"


async def test_a_stale_file_is_edited_only_where_all_places_are_beyond_doubt(desk: Desk) -> None:
    desk.put("f.py", b"a=1\nb=2\nc=3\n")
    path = desk.put("f.py", b"a = 1\nb=2\nc=3\n", is_viewed=False)
    with pytest.raises(ToolError, match="has changed on disk"):
        await desk.edit("f.py", ("b=2", "b=3"), ("a=1", "a=2"))
    desk.put("g.py", b"a=1\nb=2\nc=3\n")
    path = desk.put("g.py", b"a = 1\nb=2\nc=3\n", is_viewed=False)
    output = await desk.edit("g.py", ("b=2", "b=3"), ("c=3", "c=4"))
    assert path.read_bytes() == b"a = 1\nb=3\nc=4\n"
    assert "only these places were touched" in output.text


async def test_corrected_whitespace_is_told_with_the_edit_that_needed_it(desk: Desk) -> None:
    path = desk.put("a.go", b"{\n\tx\n\ty\n}\n")
    output = await desk.edit("a.go", ("x", "z"), ("  y", "  w"))
    assert path.read_bytes() == b"{\n\tz\n\tw\n}\n"
    assert "In edit 2 old_string matched only after correcting" in output.text
    assert "+\tw\n" in output.text


async def test_the_notebook_that_is_open_is_not_edited(desk: Desk) -> None:
    path = desk.put("open.ipynb", b"{}\n")
    with pytest.raises(ToolError, match="the notebook in which you run"):
        await desk.edit("open.ipynb", ("{}", "[]"))
    assert path.read_bytes() == b"{}\n"


@pytest.mark.parametrize(
    "arguments",
    [
        pytest.param({"file_path": "a"}, id="no edits"),
        pytest.param({"file_path": "a", "edits": []}, id="an empty list"),
        pytest.param({"file_path": "a", "edits": [{"old_string": "a"}]}, id="no new text"),
        pytest.param({"file_path": "a", "edits": [edit("a", "b") | {"x": 1}]}, id="unknown name"),
        pytest.param({"file_path": "a", "edits": edit("a", "b")}, id="no list"),
        pytest.param(
            {"file_path": "a", "edits": [edit("a", "b")] * (MAX_EDITS + 1)}, id="too many"
        ),
        pytest.param({"edits": [edit("a", "b")]}, id="no file"),
    ],
)
def test_arguments_that_do_not_fit_are_refused(arguments: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        MultieditArguments.model_validate(arguments)


def test_the_schema_needs_no_references(desk: Desk) -> None:
    schema = desk.tool.arguments.model_json_schema()
    assert "$ref" not in str(schema)
    assert schema["properties"]["edits"]["items"]["required"] == ["old_string", "new_string"]


async def test_a_call_is_described_by_its_file_and_the_number_of_edits(desk: Desk) -> None:
    arguments = MultieditArguments.model_validate(
        {"file_path": "sub/../a.txt", "edits": [edit("a", "b")]}
    )
    assert desk.tool.describe(arguments) == "a.txt, 1 edit"


LETTERS = st.text(alphabet="abc", min_size=1, max_size=2)


@given(
    text=st.text(alphabet="abc", min_size=1, max_size=12),
    pairs=st.lists(st.tuples(LETTERS, LETTERS), min_size=1, max_size=4),
)
def test_edits_are_those_of_strings_where_each_place_is_the_only_one(
    text: str, pairs: list[Pair]
) -> None:
    expected: str = text
    fits = 0
    for old, new in pairs:
        is_only = old in expected and expected.find(old) == expected.rfind(old)
        if is_only and old != new:
            expected, fits = expected.replace(old, new), fits + 1
    edits = tuple(SingleEdit(old_string=old, new_string=new) for old, new in pairs)
    outcome = apply_all(text, edits, exists=True)
    assert outcome.text == expected
    assert len(outcome.results) - outcome.failures == fits
