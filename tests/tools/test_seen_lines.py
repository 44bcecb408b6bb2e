"""What may be changed is what was shown: lines of a file, by whatever tool showed them."""

import os
from pathlib import Path
from tempfile import TemporaryDirectory

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crush_kernel.errors import ToolError
from crush_kernel.tools.base import AnyTool, ToolOutput, erase
from crush_kernel.tools.edit import edit_tool
from crush_kernel.tools.filechange import Files
from crush_kernel.tools.grep import grep_tool
from crush_kernel.tools.multiedit import multiedit_tool
from crush_kernel.tools.paths import PathPolicy
from crush_kernel.tools.tracker import MAX_KEPT_FILE_BYTES
from crush_kernel.tools.view import view_tool
from crush_kernel.tools.write import write_tool
from tests.fakes.tool_context import tool_context

pytestmark = pytest.mark.anyio


class Desk:
    """A project folder, and the tools that read and change its files."""

    def __init__(self, folder: Path) -> None:
        self.folder = Path(os.path.realpath(folder))
        self.files = files = Files(PathPolicy(root=folder, cwd=folder))
        self._tools: dict[str, AnyTool] = {
            "view": erase(view_tool(files, accepts=lambda _: False)),
            "edit": erase(edit_tool(files)),
            "multiedit": erase(multiedit_tool(files)),
            "write": erase(write_tool(files)),
            "grep": erase(grep_tool(files.paths, tracker=files.tracker)),
        }

    async def use(self, tool: str, **arguments: object) -> ToolOutput:
        """Call a tool."""
        ready = self._tools[tool]
        with anyio.fail_after(20):
            return await ready.run(
                ready.arguments.model_validate(arguments), tool_context().context
            )

    async def refusal(self, tool: str, **arguments: object) -> str:
        """Call a tool that has to refuse, and return in which words it does."""
        with pytest.raises(ToolError) as refused:
            await self.use(tool, **arguments)
        return str(refused.value)

    def put(self, text: str, name: str = "a.txt") -> Path:
        """Write a file behind the back of the tools, some time ago."""
        path = self.folder / name
        path.write_bytes(text.encode())
        os.utime(path, (1_000_000_000, 1_000_000_000))
        return path


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


def numbered(count: int) -> str:
    """Return a text of lines that are all different."""
    return "".join(f"line {number};\n" for number in range(1, count + 1))


async def test_a_line_that_was_shown_is_edited_and_another_is_not(desk: Desk) -> None:
    path = desk.put(numbered(300))
    await desk.use("view", file_path="a.txt", offset=100, limit=50)
    assert await desk.refusal(
        "edit", file_path="a.txt", old_string="line 151;", new_string="x"
    ) == (
        "a.txt: nothing was written. This place was not shown to you yet: line 151. You have seen "
        "lines 101–150. View it (offset=145, limit=11) and repeat the call."
    )
    assert path.read_text() == numbered(300)
    await desk.use("edit", file_path="a.txt", old_string="line 150;", new_string="x")
    await desk.use("view", file_path="a.txt", offset=145, limit=11)
    await desk.use("edit", file_path="a.txt", old_string="line 151;", new_string="y")
    assert path.read_text() == numbered(300).replace("line 150;\nline 151;", "x\ny")


async def test_a_place_is_shown_only_if_all_its_lines_are(desk: Desk) -> None:
    desk.put(numbered(20))
    await desk.use("view", file_path="a.txt", limit=10)
    said = await desk.refusal(
        "edit", file_path="a.txt", old_string="line 10;\nline 11;\nline 12;", new_string="x"
    )
    assert "not shown to you yet: lines 11–12." in said
    await desk.use("edit", file_path="a.txt", old_string="line 10;\n", new_string="x\n")


async def test_replacing_all_needs_all_places_to_be_shown(desk: Desk) -> None:
    path = desk.put(numbered(30))
    await desk.use("view", file_path="a.txt", limit=10)
    call = {"file_path": "a.txt", "old_string": "line", "new_string": "row", "replace_all": True}
    assert "not shown to you yet: lines 11–30." in await desk.refusal("edit", **call)
    await desk.use("view", file_path="a.txt", offset=10)
    await desk.use("edit", **call)
    assert path.read_text() == numbered(30).replace("line", "row")


async def test_sections_that_come_to_the_whole_file_are_the_whole_file(desk: Desk) -> None:
    path = desk.put(numbered(30))
    await desk.use("view", file_path="a.txt", offset=12)
    assert await desk.refusal("write", file_path="a.txt", content="new") == (
        "You have seen only a part of a.txt, so nothing was written. View the rest, lines 1–12 "
        "(offset=0, limit=12), or change it with edit."
    )
    await desk.use("view", file_path="a.txt", limit=12)
    await desk.use("write", file_path="a.txt", content="new")
    assert path.read_text() == "new"


async def test_what_was_written_is_known_whole(desk: Desk) -> None:
    path = desk.folder / "a.txt"
    await desk.use("write", file_path="a.txt", content=numbered(300))
    await desk.use("edit", file_path="a.txt", old_string="line 299;", new_string="x")
    await desk.use("view", file_path="a.txt", limit=1)
    await desk.use("write", file_path="a.txt", content="y")
    assert path.read_text() == "y"


async def test_a_line_too_long_to_be_shown_is_edited_and_the_file_not_overwritten(
    desk: Desk,
) -> None:
    path = desk.put(f"begin {'x' * 5_000}\nshort\n")
    await desk.use("view", file_path="a.txt")
    assert "too long to be shown whole" in await desk.refusal(
        "write", file_path="a.txt", content="new"
    )
    await desk.use("edit", file_path="a.txt", old_string="begin", new_string="start")
    assert path.read_text().startswith("start xxx")
    assert "too long" in await desk.refusal("write", file_path="a.txt", content="new")


async def test_encoded_data_that_is_left_out_was_not_seen(desk: Desk) -> None:
    data = "".join(
        chr(65 + (7 * n) % 26) + chr(97 + (5 * n) % 26) + str(n % 10) for n in range(500)
    )
    desk.put(f"<img src='data:image/png;base64,{data}'>\n")
    await desk.use("view", file_path="a.txt")
    assert "only a part" in await desk.refusal("write", file_path="a.txt", content="new")


async def test_lines_that_a_search_showed_may_be_edited_and_no_others(desk: Desk) -> None:
    path = desk.put(numbered(300))
    await desk.use("grep", pattern="line 20;", context=1)
    for number in (19, 21):
        await desk.use(
            "edit", file_path="a.txt", old_string=f"line {number};", new_string=f"row {number};"
        )
    assert "You have seen lines 19–21." in await desk.refusal(
        "edit", file_path="a.txt", old_string="line 22;", new_string="x"
    )
    assert "only a part" in await desk.refusal("write", file_path="a.txt", content="new")
    assert path.read_text().count("row") == 2


async def test_what_a_search_showed_of_another_version_counts_for_nothing(desk: Desk) -> None:
    path = desk.put(numbered(30))
    await desk.use("grep", pattern="line 20;")
    path.write_text(f"new\n{numbered(30)}")
    said = await desk.refusal("edit", file_path="a.txt", old_string="line 20;", new_string="x")
    assert said.startswith("a.txt exists but was not viewed yet")


async def test_a_search_of_a_file_that_changes_meanwhile_counts_for_nothing(desk: Desk) -> None:
    (desk.folder / "a.txt").write_text(numbered(30))
    tomorrow = 4_000_000_000
    os.utime(desk.folder / "a.txt", (tomorrow, tomorrow))
    await desk.use("grep", pattern="line 20;")
    said = await desk.refusal("edit", file_path="a.txt", old_string="line 20;", new_string="x")
    assert said.startswith("a.txt exists but was not viewed yet")


async def test_a_search_adds_to_what_was_viewed(desk: Desk) -> None:
    desk.put(numbered(300))
    await desk.use("view", file_path="a.txt", limit=5)
    await desk.use("grep", pattern="line 299;")
    await desk.use("edit", file_path="a.txt", old_string="line 299;", new_string="x")
    await desk.use("edit", file_path="a.txt", old_string="line 2;", new_string="y")


async def test_several_edits_are_held_against_what_the_ones_before_made(desk: Desk) -> None:
    path = desk.put(numbered(20))
    await desk.use("view", file_path="a.txt", limit=10)
    more = {"old_string": "line 5;", "new_string": "a\nb\nc"}
    last = {"old_string": "line 10;", "new_string": "ten"}
    unseen = {"old_string": "line 11;", "new_string": "eleven"}
    said = await desk.refusal("multiedit", file_path="a.txt", edits=[more, last, unseen])
    assert "edit 3 failed: This place was not shown to you yet: line 13." in said
    assert "1 of 3 edits failed" in said
    assert path.read_text() == numbered(20)
    await desk.use("multiedit", file_path="a.txt", edits=[more, last])
    await desk.use("edit", file_path="a.txt", old_string="ten", new_string="10")
    assert "line 13" in await desk.refusal("edit", file_path="a.txt", **unseen)


async def test_lines_are_followed_when_others_change_the_file(desk: Desk) -> None:
    path = desk.put(numbered(300))
    await desk.use("view", file_path="a.txt", limit=50)
    path.write_text(numbered(300).replace("line 10;\n", "line 10;\nnew\nnew\n"))
    output = await desk.use("edit", file_path="a.txt", old_string="line 50;", new_string="x")
    assert "had changed on disk since" in output.text
    assert "not shown to you yet: line 53." in await desk.refusal(
        "edit", file_path="a.txt", old_string="line 51;", new_string="x"
    )


async def test_changes_that_were_told_were_shown_and_the_rest_was_not(desk: Desk) -> None:
    path = desk.put(numbered(300))
    await desk.use("view", file_path="a.txt", limit=50)
    path.write_text(numbered(300).replace("line 200;", "row 200;"))
    call = {"file_path": "a.txt", "old_string": "line 1;", "new_string": "x", "replace_all": True}
    assert "+row 200;" in await desk.refusal("edit", **call)
    await desk.use("edit", file_path="a.txt", old_string="row 200;", new_string="r")
    assert "You have seen lines 1–50 and 197–203." in await desk.refusal(
        "edit", file_path="a.txt", old_string="line 204;", new_string="x"
    )


async def test_lines_of_a_file_too_large_to_keep_cannot_be_followed(desk: Desk) -> None:
    text = numbered(2) + "y" * MAX_KEPT_FILE_BYTES
    path = desk.put(text)
    await desk.use("view", file_path="a.txt", limit=2)
    path.write_text(f"new\n{text}")
    said = await desk.refusal("edit", file_path="a.txt", old_string="line 1;", new_string="x")
    assert "You have seen no lines." in said


async def test_what_was_shown_before_a_summary_counts_for_nothing(desk: Desk) -> None:
    desk.put(numbered(3))
    await desk.use("view", file_path="a.txt")
    desk.files.tracker.forget()
    said = await desk.refusal("edit", file_path="a.txt", old_string="line 2;", new_string="x")
    assert said.startswith("a.txt exists but was not viewed yet")


LINES = 12


@settings(max_examples=60)
@given(
    st.lists(
        st.tuples(st.sampled_from(["view", "edit"]), st.integers(0, LINES + 4), st.integers(0, 3)),
        max_size=8,
    )
)
def test_an_edit_is_made_exactly_where_every_line_was_shown(
    steps: list[tuple[str, int, int]],
) -> None:
    anyio.run(_check_against_model, steps)


async def _check_against_model(steps: list[tuple[str, int, int]]) -> None:
    """Play `steps` and, beside, a text whose lines carry whether they were shown."""
    with TemporaryDirectory() as folder:
        desk = Desk(Path(folder))
        path = desk.put(numbered(LINES))
        model = [(line, False) for line in numbered(LINES).splitlines()]
        for number, (step, at, count) in enumerate(steps):
            if at >= len(model):
                continue
            if step == "view":
                await desk.use("view", file_path="a.txt", offset=at, limit=count + 1)
                shown = range(at, at + count + 1)
                model = [(line, seen or n in shown) for n, (line, seen) in enumerate(model)]
                continue
            line, is_seen = model[at]
            new = [f"new {number}.{each};" for each in range(count)]
            call = {"file_path": "a.txt", "old_string": f"{line}\n"}
            call["new_string"] = "".join(f"{each}\n" for each in new)
            if is_seen:
                await desk.use("edit", **call)
                model[at : at + 1] = [(each, True) for each in new]
            else:
                assert "not" in await desk.refusal("edit", **call)
            assert path.read_text() == "".join(f"{line}\n" for line, _ in model)
