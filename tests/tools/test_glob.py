"""What `glob` finds."""

import os
import sys
from pathlib import Path

import anyio
import pytest

from crush_kernel.errors import PermissionDenied, ToolError
from crush_kernel.tools.base import ToolOutput
from crush_kernel.tools.glob import GlobArguments, glob_tool
from crush_kernel.tools.paths import PathPolicy
from tests.fakes.ripgrep import EndlessRipgrep, fake_ripgrep
from tests.fakes.tool_context import FakeContext, tool_context
from tests.fakes.tree import DEEPER_THAN_RECURSION, make_deep_folder, write_tree

pytestmark = pytest.mark.anyio

DEEP = ["src/a.py", "src/x/b.ts", "src/x/y/c.py"]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "root").mkdir()
    return tmp_path / "root"


async def glob(
    root: Path,
    pattern: str,
    path: str = ".",
    *,
    cwd: Path | None = None,
    fake: FakeContext | None = None,
) -> ToolOutput:
    tool = glob_tool(PathPolicy(root=root, cwd=cwd or root))
    with anyio.fail_after(20):
        arguments = GlobArguments(pattern=pattern, path=path)
        return await tool.run(arguments, (fake or tool_context()).context)


async def found(root: Path, pattern: str, path: str = ".", *, cwd: Path | None = None) -> list[str]:
    output = await glob(root, pattern, path, cwd=cwd)
    lines = output.text.split("\n\n")[0].split("\n")
    return [] if output.summary == "0 files" else lines


async def test_the_newest_files_come_first(root: Path) -> None:
    write_tree(root, {"b.py": "", "src/a.py": "", "a.py": "", "c.txt": ""})
    output = await glob(root, "**/*.py")
    assert output == ToolOutput("a.py\nsrc/a.py\nb.py", summary="3 files")


@pytest.mark.parametrize(
    ("pattern", "path", "files"),
    [
        pytest.param("*.py", ".", ["top.py"], id="one folder"),
        pytest.param("*.py", "src", ["src/a.py"], id="path"),
        pytest.param("src/*.py", ".", ["src/a.py"], id="folder in the pattern"),
        pytest.param("src/**/*.{p,t}*", ".", DEEP, id="any depth in the folder"),
        pytest.param("**/x/*", ".", ["src/x/b.ts"], id="wild before the folder"),
        pytest.param("src/x/y/c.py", ".", ["src/x/y/c.py"], id="no wildcard"),
        pytest.param("../src/a.py", "src", ["src/a.py"], id="up in the pattern"),
        pytest.param("**/.hid*", ".", [".hidden"], id="hidden"),
        pytest.param("**/[ab].*", ".", ["src/a.py", "src/x/b.ts"], id="class"),
        pytest.param(r"**/\[id\].tsx", ".", ["app/[id].tsx"], id="escaped"),
        pytest.param("**/-x", ".", ["-x"], id="name like an option"),
        pytest.param("--files", ".", [], id="pattern like an option"),
        pytest.param("src", ".", [], id="folders are no files"),
    ],
)
async def test_a_pattern_starts_where_it_says(
    root: Path, pattern: str, path: str, files: list[str]
) -> None:
    names = ["top.py", ".hidden", "src/a.py", "src/x/b.ts", "src/x/y/c.py", "app/[id].tsx", "-x"]
    write_tree(root, dict.fromkeys(names, ""))
    assert sorted(await found(root, pattern, path)) == sorted(files)


async def test_absolute_patterns_and_paths_are_taken_as_such(root: Path) -> None:
    write_tree(root, {"src/a.py": "", "b.py": ""})
    assert await found(root, f"{root}/src/**/*.py") == ["src/a.py"]
    assert await found(root, f"{root}/src/*.py", "elsewhere") == ["src/a.py"]
    assert await found(root, "*.py", str(root / "src")) == ["src/a.py"]


async def test_names_are_given_from_the_working_directory(root: Path) -> None:
    write_tree(root, {"src/a.py": "", "b.py": ""})
    assert await found(root, "**/*.py", "..", cwd=root / "src") == ["../b.py", "../src/a.py"]


async def test_a_project_below_a_folder_called_build_is_searched(tmp_path: Path) -> None:
    root = tmp_path / "build" / "out" / "vendor"
    write_tree(root, {"bin/target/a.py": "", "dist/b.py": ""})
    assert await found(root, "**/*.py") == ["dist/b.py", "bin/target/a.py"]


@pytest.mark.parametrize("has_repository", [True, False])
async def test_ignored_files_are_not_found_even_by_their_name(
    root: Path, *, has_repository: bool
) -> None:
    write_tree(root, {".gitignore": "dist/\n*.log\n.wt/\n", ".crushignore": "data/\n"})
    write_tree(root, {"dist/a.md": "", "src/b.md": "", "x.log": "", "data/c.md": ""})
    write_tree(root, {".wt/a/b.md": "", ".crush/d.md": "", ".ipynb_checkpoints/e.md": ""})
    write_tree(root, {"sub/.crushignore": "*.md\n", "sub/f.md": ""})
    if has_repository:
        (root / ".git").mkdir()
    assert await found(root, "**/*.md") == ["src/b.md"]
    assert await found(root, "**/*.log") == []
    assert await found(root, "x.log") == []
    assert await found(root, "dist/*.md") == ["dist/a.md"]


async def test_ignored_folders_are_not_even_walked(root: Path) -> None:
    write_tree(root, {"app/src/x.tsx": "", "node_modules/p/x.tsx": ""})
    make_deep_folder(root / "node_modules")
    output = await glob(root, "**/*.tsx")
    assert output.text == "app/src/x.tsx"


async def test_links_are_not_followed(root: Path) -> None:
    write_tree(root, {"1/x": "", "2/x": "", "package.json": ""})
    (root / "1" / "loop").symlink_to("..")
    (root / "2" / "loop").symlink_to("..")
    assert await found(root, "**/package.json") == ["package.json"]


async def test_a_hundred_files_are_all_there_are_and_one_more_is_not(root: Path) -> None:
    write_tree(root, {f"{n:03d}.py": "" for n in range(100)})
    output = await glob(root, "*.py")
    assert output.text.split("\n") == [f"{n:03d}.py" for n in reversed(range(100))]
    assert output.summary == "100 files"
    write_tree(root, {"a/100.py": ""})
    output = await glob(root, "**/*.py")
    assert output.summary == "100+ files"
    assert "[100 of 101 files that match, the newest first. Narrow" in output.text


@pytest.mark.slow
async def test_too_many_files_come_by_name_and_it_is_said(root: Path) -> None:
    for folder in range(5):
        (root / str(folder)).mkdir()
        for n in range(900):
            (root / str(folder) / f"{n:03d}").touch()
    output = await glob(root, "**/*")
    assert output.text.split("\n")[:2] == ["0/000", "0/001"]
    assert "[100 of 4,500 files that match, by name, too many to sort by time." in output.text


async def test_nothing_found_is_said_with_what_may_be_the_reason(root: Path) -> None:
    write_tree(root, {"src/a.py": ""})
    output = await glob(root, "*.py")
    assert output.text.startswith("No files match *.py in the working directory.\n\n")
    assert "**/*.py would search below it" in output.text
    assert (output.summary, output.is_error) == ("0 files", False)
    assert "would search below" not in (await glob(root, "**/*.js")).text


async def test_names_that_would_break_the_list_are_escaped(root: Path) -> None:
    write_tree(root, {"a\nb.py": "", "c\u202ed.py": ""})
    write_tree(root, {os.fsdecode(b"latin\xe9.py"): ""})
    names = ["a\\x0ab.py", "c\\u202ed.py", "latin\\xe9.py"]
    assert sorted(await found(root, "**/*.py")) == names


@pytest.mark.parametrize(
    ("pattern", "path", "why"),
    [
        pytest.param("", ".", "pattern is empty", id="empty"),
        pytest.param("a\0", ".", "NUL", id="NUL"),
        pytest.param("a\ud800", ".", "half a character", id="lone surrogate"),
        pytest.param("{a,b", ".", "cannot be understood: a '{' is not closed", id="open choice"),
        pytest.param("*/../x", ".", "'..' cannot follow a wildcard", id="up behind a wildcard"),
        pytest.param("*", "nowhere", "nowhere does not exist", id="no such folder"),
        pytest.param(
            "nowhere/*", ".", "nowhere does not exist", id="no such folder in the pattern"
        ),
        pytest.param("*", "a.py", "a.py is not a folder", id="file as path"),
        pytest.param("a.py/*", ".", "a.py is not a folder", id="file as folder"),
    ],
)
async def test_what_cannot_be_searched_is_an_error(
    root: Path, pattern: str, path: str, why: str
) -> None:
    write_tree(root, {"a.py": ""})
    with pytest.raises(ToolError) as refused:
        await glob(root, pattern, path)
    assert why in str(refused.value)


@pytest.mark.parametrize(
    ("pattern", "path"),
    [("*.txt", ".."), ("../*.txt", "."), ("{up}/*.txt", "."), ("*.txt", "link"), ("link/*", ".")],
)
async def test_outside_the_project_it_asks(root: Path, pattern: str, path: str) -> None:
    write_tree(root.parent, {"secret.txt": ""})
    (root / "link").symlink_to("..")
    fake = tool_context()
    output = await glob(root, pattern.replace("{up}", str(root.parent)), path, fake=fake)
    assert output.text == f"{root.parent}/secret.txt"
    request = fake.requests[0]
    assert (request.action, request.paths, request.is_outside) == ("list", (root.parent,), True)
    with pytest.raises(PermissionDenied):
        await glob(
            root, pattern.replace("{up}", str(root.parent)), path, fake=tool_context(allow=False)
        )


async def test_inside_the_project_nobody_is_asked(root: Path) -> None:
    fake = tool_context()
    await glob(root, "*", fake=fake)
    assert fake.requests == []


async def test_what_cannot_be_read_does_not_cost_the_rest(root: Path) -> None:
    write_tree(root, {"a.py": ""})
    make_deep_folder(root)
    output = await glob(root, "**/*.py")
    assert output.text.startswith("a.py\n\n[1 place could not be read: ")
    assert "(os error 36)" in output.text


async def test_when_time_is_up_it_says_so_and_gives_what_it_has(root: Path) -> None:
    write_tree(root, {"a.py": ""})
    ripgrep = fake_ripgrep(root.parent, "printf './a.py\\0'; sleep 60")
    tool = glob_tool(PathPolicy(root=root, cwd=root), ripgrep=ripgrep, timeout_s=0.5)
    with anyio.fail_after(5):
        output = await tool.run(GlobArguments(pattern="**/*.py"), tool_context().context)
    assert output.text.startswith("a.py\n\n[stopped after 0.5 s; this is what was found")
    assert not output.is_error


async def test_stopping_the_call_stops_the_search_and_its_children(root: Path) -> None:
    endless = EndlessRipgrep(root.parent)
    tool = glob_tool(PathPolicy(root=root, cwd=root), ripgrep=endless.find, timeout_s=60)

    async def run() -> None:
        await tool.run(GlobArguments(pattern="**"), tool_context().context)

    with anyio.fail_after(5):
        async with anyio.create_task_group() as group:
            group.start_soon(run)
            await endless.begun()
            group.cancel_scope.cancel()
        await endless.ended()


async def test_a_search_that_breaks_off_is_not_called_complete(root: Path) -> None:
    write_tree(root, {"a.py": ""})
    ripgrep = fake_ripgrep(root.parent, "printf './a.py\\0'; kill -SEGV $$")
    tool = glob_tool(PathPolicy(root=root, cwd=root), ripgrep=ripgrep)
    output = await tool.run(GlobArguments(pattern="**/*.py"), tool_context().context)
    assert output.text.startswith("a.py\n\n[1 place could not be read: ripgrep broke off")


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="only Linux limits a process from outside")
async def test_rules_that_never_end_do_not_fill_the_memory(root: Path) -> None:
    (root / ".gitignore").symlink_to("/dev/zero")
    output = await glob(root, "*.py")
    assert "memory allocation" in output.text


async def test_without_ripgrep_the_user_is_told_how_to_get_it(root: Path) -> None:
    def missing() -> Path:
        return root / "nowhere" / "rg"

    tool = glob_tool(PathPolicy(root=root, cwd=root), ripgrep=missing)
    with pytest.raises(ToolError, match="could not be started"):
        await tool.run(GlobArguments(pattern="**"), tool_context().context)


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (GlobArguments(pattern="**/*.py"), "**/*.py"),
        (GlobArguments(pattern="*.py", path="src/"), "*.py in src/"),
    ],
)
def test_a_call_is_described_in_one_line(root: Path, arguments: GlobArguments, text: str) -> None:
    tool = glob_tool(PathPolicy(root=root, cwd=root))
    assert tool.describe(arguments) == text
    assert tool.is_read_only
    assert "100 at most" in tool.description


@pytest.mark.slow
async def test_folders_deeper_than_python_can_recurse_are_searched(deep_folder: Path) -> None:
    write_tree(deep_folder, {".crushignore": "x\n"})
    write_tree(deep_folder / "/".join("d" * DEEPER_THAN_RECURSION), {"a.py": "", "x": ""})
    assert [Path(name).name for name in await found(deep_folder, "**/[ax]*")] == ["a.py"]
