"""What `ls` lists."""

import os
from pathlib import Path
from typing import Any

import anyio
import pytest
from pydantic import ValidationError

from crush_kernel.errors import PermissionDenied, ToolError
from crush_kernel.tools.base import ToolOutput
from crush_kernel.tools.ls import LsArguments, ls_tool
from crush_kernel.tools.paths import PathPolicy
from tests.fakes.tool_context import FakeContext, tool_context
from tests.fakes.tree import make_deep_folder, write_tree

pytestmark = pytest.mark.anyio


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "root").mkdir()
    return tmp_path / "root"


async def ls(
    root: Path,
    path: str = ".",
    *,
    fake: FakeContext | None = None,
    timeout_s: float = 20,
    **more: Any,  # noqa: ANN401 - the tool's other arguments
) -> ToolOutput:
    tool = ls_tool(PathPolicy(root=root, cwd=root), timeout_s=timeout_s)
    arguments = LsArguments.model_validate({"path": path, **more})
    with anyio.fail_after(20):
        return await tool.run(arguments, (fake or tool_context()).context)


def tree(output: ToolOutput) -> list[str]:
    return output.text.split("\n\n[")[0].split("\n")


async def test_folders_come_first_and_everything_by_name(root: Path) -> None:
    write_tree(root, {"b.py": "", "A.py": "", "src/x/deep.py": "", "src/a.py": "", ".env": ""})
    (root / "empty").mkdir()
    output = await ls(root)
    assert output.text == (
        "./\n  empty/\n  src/\n    x/\n      deep.py\n    a.py\n  .env\n  A.py\n  b.py"
    )
    assert output.summary == "8 entries"


async def test_a_folder_is_named_as_it_can_be_passed_on(root: Path) -> None:
    write_tree(root, {"src/a.py": ""})
    assert tree(await ls(root, "src")) == ["src/", "  a.py"]
    assert tree(await ls(root, str(root / "src"))) == ["src/", "  a.py"]


@pytest.mark.parametrize(
    ("depth", "lines", "is_deeper"),
    [
        (1, ["./", "  a/", "  top"], True),
        (2, ["./", "  a/", "    b/", "    mid", "  top"], True),
        (3, ["./", "  a/", "    b/", "      low", "    mid", "  top"], False),
        (None, ["./", "  a/", "    b/", "      low", "    mid", "  top"], False),
    ],
)
async def test_depth_bounds_the_levels(
    root: Path, depth: int | None, lines: list[str], *, is_deeper: bool
) -> None:
    write_tree(root, {"a/b/low": "", "a/mid": "", "top": ""})
    output = await ls(root, depth=depth)
    assert tree(output) == lines
    assert ("[there is more below this depth]" in output.text) == is_deeper


@pytest.mark.parametrize("has_repository", [True, False])
async def test_ignored_entries_are_counted_and_not_listed(
    root: Path, *, has_repository: bool
) -> None:
    write_tree(root, {".gitignore": "dist/\n*.log\n", ".crushignore": "/data\n", "dist/a": ""})
    write_tree(root, {"x.log": "", "data/b": "", "src/c": "", "node_modules/d": "", ".crush/e": ""})
    write_tree(root, {"Cargo.lock": "", "bin/f": "", "vendor/g": ""})
    if has_repository:
        (root / ".git").mkdir()
    output = await ls(root)
    assert tree(output) == [
        *("./", "  bin/", "    f", "  src/", "    c", "  vendor/", "    g"),
        *("  .crushignore", "  .gitignore", "  Cargo.lock"),
    ]
    assert f"[{6 if has_repository else 5} ignored entries left out]" in output.text
    assert tree(await ls(root, "node_modules")) == ["node_modules/", "  d"]


@pytest.mark.parametrize(
    ("ignore", "lines"),
    [
        (["*.py"], ["./", "  a/", "    c.txt"]),
        (["a"], ["./", "  b.py"]),
        (["a/*.txt", "b.*"], ["./", "  a/", "    d.py"]),
    ],
)
async def test_globs_leave_out_more(root: Path, ignore: list[str], lines: list[str]) -> None:
    write_tree(root, {"a/c.txt": "", "a/d.py": "", "b.py": ""})
    assert tree(await ls(root, ignore=ignore)) == lines


async def test_links_are_shown_and_not_followed(root: Path) -> None:
    write_tree(root, {"real/a": "", "secret": ""})
    (root / "real" / "loop").symlink_to("..")
    (root / "link").symlink_to("real")
    (root / "gone").symlink_to("no\nwhere")
    assert tree(await ls(root)) == [
        *("./", "  real/", "    a", "    loop -> .."),
        *("  gone -> no\\x0awhere", "  link -> real", "  secret"),
    ]


async def test_an_empty_folder_is_called_empty(root: Path) -> None:
    assert (await ls(root)).text == "the working directory is empty"
    write_tree(root, {"src/x.log": "", ".gitignore": "*.log"})
    output = await ls(root, "src")
    assert output.text == "src is empty\n\n[1 ignored entry left out]"
    assert output.summary == "0 entries"


async def test_a_thousand_entries_are_all_there_are_and_one_more_is_not(root: Path) -> None:
    write_tree(root, {f"{n:04d}": "" for n in range(999)})
    (root / "empty").mkdir()
    output = await ls(root)
    assert (output.summary, "[cut at" in output.text) == ("1,000 entries", False)
    write_tree(root, {"empty/one": ""})
    output = await ls(root)
    assert output.summary == "1,000+ entries"
    assert output.text.startswith("./\n  empty/ … 1 more\n  0000\n")
    assert "[cut at 1,000 entries, the nearest to the top;" in output.text


async def test_a_limit_cuts_off_what_is_deep(root: Path) -> None:
    write_tree(root, {f"a/{n:04d}": "" for n in range(1_200)} | {"z": "", "b/c/d": ""})
    lines = tree(await ls(root))
    assert lines[:2] == ["./", "  a/"]
    assert lines[-3:] == ["    … 203 more", "  b/ …", "  z"]
    assert len(lines) == 1 + 1_000 + 1


async def test_both_limits_are_told_at_once(root: Path) -> None:
    write_tree(root, {f"{n:04d}": "" for n in range(1_100)} | {"a/b/c": ""})
    text = (await ls(root, depth=1)).text
    assert "[cut at 1,000" in text
    assert "[there is more below" in text


async def test_a_folder_that_cannot_be_read_is_marked(root: Path) -> None:
    write_tree(root, {"top": ""})
    make_deep_folder(root)
    output = await ls(root)
    assert "/ [file name too long]" in output.text
    assert "[1 folder could not be read]" in output.text
    assert output.text.split("\n\n")[0].endswith("\n  top")


async def test_when_time_is_up_it_says_so(root: Path) -> None:
    write_tree(root, {"a/b": ""})
    output = await ls(root, timeout_s=-1)
    assert output.text.startswith("./\n  …\n\n[stopped for lack of time")


async def test_names_that_would_break_the_tree_are_escaped(root: Path) -> None:
    write_tree(root, {"a\n  fake": "", os.fsdecode(b"\xff"): ""})
    assert tree(await ls(root)) == ["./", "  a\\x0a  fake", "  \\xff"]


@pytest.mark.slow
async def test_a_tree_deeper_than_python_can_recurse_is_drawn(deep_folder: Path) -> None:
    output = await ls(deep_folder)
    assert output.summary == "1,000+ entries"
    assert (await ls(deep_folder, "/".join("d" * 1_050))).text.count("\n") == 50


@pytest.mark.parametrize(
    ("path", "more", "why"),
    [
        pytest.param("a.py", {}, "a.py is not a folder. Read it with view.", id="file"),
        pytest.param("nowhere", {}, "nowhere does not exist", id="missing"),
        pytest.param("src\0", {}, "NUL", id="NUL"),
        pytest.param(".", {"ignore": ["["]}, "'[' is not closed", id="bad glob"),
    ],
)
async def test_what_cannot_be_listed_is_an_error(
    root: Path, path: str, more: dict[str, Any], why: str
) -> None:
    write_tree(root, {"a.py": ""})
    with pytest.raises(ToolError) as refused:
        await ls(root, path, **more)
    assert why in str(refused.value)


@pytest.mark.parametrize("path", ["..", "link", "src/../.."])
async def test_outside_the_project_it_asks(root: Path, path: str) -> None:
    write_tree(root, {"src/a": "", "../secret": ""})
    (root / "link").symlink_to("..")
    fake = tool_context()
    output = await ls(root, path, depth=1, fake=fake)
    assert tree(output) == [f"{root.parent}/", "  root/", "  secret"]
    request = fake.requests[0]
    assert (request.tool, request.action, request.paths) == ("ls", "list", (root.parent,))
    with pytest.raises(PermissionDenied):
        await ls(root, path, fake=tool_context(allow=False))


async def test_a_missing_folder_outside_is_not_asked_about(root: Path) -> None:
    fake = tool_context()
    with pytest.raises(ToolError, match="does not exist"):
        await ls(root, "../nowhere", fake=fake)
    assert fake.requests == []


@pytest.mark.parametrize("arguments", [{"depth": "all"}, {"path": 3}, {"recursive": True}])
def test_bad_arguments_are_refused(arguments: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        LsArguments.model_validate(arguments)


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (LsArguments(), "."),
        (LsArguments(path="src", depth=2), "src to depth 2"),
    ],
)
def test_a_call_is_described_in_one_line(root: Path, arguments: LsArguments, text: str) -> None:
    tool = ls_tool(PathPolicy(root=root, cwd=root))
    assert tool.describe(arguments) == text
    assert tool.is_read_only
    assert "At most 1,000 entries" in tool.description
