"""What `grep` finds and shows."""

import os
from pathlib import Path
from typing import Any

import anyio
import pytest
from pydantic import ValidationError

from crush_kernel.errors import PermissionDenied, ToolError
from crush_kernel.tools.base import ToolOutput
from crush_kernel.tools.grep import GrepArguments, grep_tool
from crush_kernel.tools.paths import PathPolicy
from tests.fakes.ripgrep import EndlessRipgrep, fake_ripgrep
from tests.fakes.tool_context import FakeContext, tool_context
from tests.fakes.tree import make_deep_folder, write_tree

pytestmark = pytest.mark.anyio


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "root").mkdir()
    return tmp_path / "root"


async def grep(
    root: Path,
    pattern: str,
    *,
    cwd: Path | None = None,
    fake: FakeContext | None = None,
    **more: Any,  # noqa: ANN401 - the tool's other arguments
) -> ToolOutput:
    tool = grep_tool(PathPolicy(root=root, cwd=cwd or root))
    arguments = GrepArguments.model_validate({"pattern": pattern, **more})
    with anyio.fail_after(20):
        return await tool.run(arguments, (fake or tool_context()).context)


async def test_lines_stand_under_their_files_the_newest_first(root: Path) -> None:
    write_tree(
        root,
        {
            "old.py": "def price():\n",
            "src/new.py": "import x\n\n\tdef price(a):\n\t    return price\n",
            "other.py": "nothing\n",
        },
    )
    output = await grep(root, r"def \w+|price$")
    assert output.text.split("\n") == [
        *("src/new.py", "     3|\tdef price(a):", "     4|\t    return price", ""),
        *("old.py", "     1|def price():"),
    ]
    assert output.summary == "3 matches"


@pytest.mark.parametrize(
    ("pattern", "more", "lines"),
    [
        pytest.param("a.c", {}, ["abc", "a.c", "xa.cx"], id="regular expression"),
        pytest.param("a.c", {"literal_text": True}, ["a.c", "xa.cx"], id="literal text"),
        pytest.param("A.C$", {"case_insensitive": True}, ["abc", "a.c"], id="any case"),
        pytest.param("^a.c$", {}, ["abc", "a.c"], id="anchors"),
        pytest.param(r"(?<=x)a", {}, ["xa.cx"], id="look-behind"),
        pytest.param("crlf$", {}, ["crlf"], id="CRLF ends a line"),
        pytest.param("-e", {}, ["-e"], id="pattern like an option"),
        pytest.param("--pre=./evil", {}, [], id="pattern like a dangerous option"),
        pytest.param("--pre=./evil", {"literal_text": True}, [], id="the same as plain text"),
        pytest.param("größe", {}, ["Die größe"], id="not ASCII"),
        pytest.param("(", {"literal_text": True}, ["f("], id="bracket as it is"),
    ],
)
async def test_a_pattern_matches_as_it_says(
    root: Path, pattern: str, more: dict[str, Any], lines: list[str]
) -> None:
    text = "abc\na.c\nxa.cx\ncrlf\r\n-e\nDie größe\nf(\n"
    write_tree(root, {"a.txt": text, "evil": "#!/bin/sh\ntouch pwned\n"})
    (root / "evil").chmod(0o755)
    output = await grep(root, pattern, **more)
    found = [line.split("|", 1)[1] for line in output.text.split("\n") if "|" in line]
    assert found == lines
    assert not (root / "pwned").exists()


@pytest.mark.parametrize(
    ("include", "files"),
    [
        ("*.ts", ["a.ts", "src/b.ts"]),
        ("*.{ts,tsx}", ["a.ts", "src/b.ts", "src/x/c.tsx"]),
        ("/*.ts", ["a.ts"]),
        ("src/**", ["src/b.ts", "src/x/c.tsx"]),
        ("src/*.ts", ["src/b.ts"]),
        ("**/x/*", ["src/x/c.tsx"]),
        ("[ab].ts", ["a.ts", "src/b.ts"]),
        ("*.log", []),
        ("dist/*", []),
        ("--files", []),
    ],
)
async def test_include_narrows_and_never_brings_an_ignored_file_back(
    root: Path, include: str, files: list[str]
) -> None:
    write_tree(root, {".gitignore": "*.log\ndist/\n", "x.log": "hit", "dist/a.ts": "hit"})
    write_tree(root, {"a.ts": "hit", "src/b.ts": "hit", "src/x/c.tsx": "hit"})
    output = await grep(root, "hit", include=include, files_only=True)
    assert sorted(output.text.split("\n")[: len(files)]) == files
    assert output.summary == f"{len(files)} file{'' if len(files) == 1 else 's'}"


async def test_a_path_is_a_folder_or_a_file(root: Path) -> None:
    write_tree(root, {"a.txt": "hit\n", "src/b.txt": "hit\n", "src/c.txt": "hit\nhit\n"})
    assert (await grep(root, "hit", path="src")).summary == "3 matches"
    assert (await grep(root, "hit", path="src/c.txt")).text == "src/c.txt\n     1|hit\n     2|hit"
    assert (await grep(root, "hit", path=str(root / "a.txt"))).text == "a.txt\n     1|hit"
    output = await grep(root, "hit", path="../a.txt", cwd=root / "src")
    assert output.text == "../a.txt\n     1|hit"
    assert (await grep(root, "hit", path="src/c.txt", files_only=True)).text == "src/c.txt"


async def test_a_file_named_explicitly_is_searched_even_if_it_is_ignored(root: Path) -> None:
    write_tree(root, {".gitignore": "*.log\nout/\n", "a.log": "hit\n", "out/b": "hit\n"})
    assert (await grep(root, "hit")).summary == "0 matches"
    assert (await grep(root, "hit", path="a.log")).summary == "1 match"
    assert (await grep(root, "hit", path="out")).text == "out/b\n     1|hit"


@pytest.mark.parametrize("has_repository", [True, False])
async def test_ignored_files_are_not_searched(root: Path, *, has_repository: bool) -> None:
    write_tree(root, {".gitignore": "dist/\n", ".crushignore": "*.csv\n", "dist/a": "hit"})
    write_tree(root, {"src/b": "hit", "src/c.csv": "hit", ".crush/d": "hit", ".env": "hit"})
    write_tree(root, {"sub/.crushignore": "e\n", "sub/e": "hit", "node_modules/f": "hit"})
    if has_repository:
        (root / ".git").mkdir()
    output = await grep(root, "hit", files_only=True)
    assert output.text == ".env\nsrc/b"


async def test_context_lines_are_told_from_matches(root: Path) -> None:
    write_tree(root, {"a.txt": "1\n2\nhit\n4\n5\n6\n7\n8\nhit\n"})
    output = await grep(root, "hit", context=1)
    assert output.text == "a.txt\n     2-2\n     3|hit\n     4-4\n     8-8\n     9|hit"
    assert output.summary == "2 matches"


async def test_a_long_line_is_cut_around_the_match_and_costs_no_other_file(root: Path) -> None:
    write_tree(root, {"long.txt": "x" * 200_000 + "mcp" + "y" * 200_000 + "\n", "b.txt": "mcp\n"})
    output = await grep(root, "mcp")
    assert output.text.startswith("b.txt\n     1|mcp\n\nlong.txt\n     1|…xxx")
    assert "xmcpy" in output.text
    assert len(output.text) < 500
    repeated = "mcp" + "x" * 97
    write_tree(root, {"c.txt": repeated * 700})
    assert "     1|mcpxxx" in (await grep(root, "mcp", path="c.txt")).text


async def test_binary_files_are_skipped_and_named_when_asked_for(root: Path) -> None:
    write_tree(root, {"big.so": bytes(range(256)) * 10_000 + b"needle", "a.txt": "needle\n"})
    assert (await grep(root, "needle")).text == "a.txt\n     1|needle"
    output = await grep(root, "needle", path="big.so")
    assert "[binary file matches: big.so]" in output.text
    assert len(output.text) < 300


async def test_a_file_of_utf_16_is_searched_as_text(root: Path) -> None:
    write_tree(root, {"a.txt": "größe\nandere\n".encode("utf-16")})
    assert (await grep(root, "größe")).text == "a.txt\n     1|größe"


async def test_a_hundred_matches_are_all_there_are_and_one_more_is_not(root: Path) -> None:
    write_tree(root, {"a.txt": "hit\n" * 60, "b.txt": "hit\n" * 40})
    output = await grep(root, "hit")
    assert output.summary == "100 matches"
    assert "Narrow" not in output.text
    write_tree(root, {"c.txt": "hit\n"})
    output = await grep(root, "hit")
    assert output.summary == "100+ matches"
    assert "[the first 100 matches, of 3 files that match, the newest first. Narrow" in output.text
    assert output.text.count("|hit") == 100
    assert "c.txt" not in output.text.split("\n\n")[1]


async def test_a_hundred_files_are_all_there_are_and_one_more_is_not(root: Path) -> None:
    write_tree(root, {f"{n:03d}": "hit\nhit\n" for n in range(100)})
    assert (await grep(root, "hit", files_only=True)).summary == "100 files"
    write_tree(root, {"a/new": "hit\n"})
    output = await grep(root, "hit", files_only=True)
    assert output.summary == "100+ files"
    assert "[100 of 101 files that match" in output.text


async def test_nothing_found_is_said(root: Path) -> None:
    write_tree(root, {"a.txt": "x\n"})
    output = await grep(root, "nothing", include="*.txt")
    assert output.text.startswith(
        "No matches for nothing in files like *.txt in the working directory."
    )
    assert (output.summary, output.is_error) == ("0 matches", False)


async def test_odd_names_are_shown_and_searched(root: Path) -> None:
    names = {"a\nb": "hit\n", "-x": "hit\n", os.fsdecode(b"\xe9"): "hit\n", "--pre=x": "hit\n"}
    write_tree(root, dict(names))
    output = await grep(root, "hit")
    headings = [line for line in output.text.split("\n") if line and "|" not in line]
    assert sorted(headings) == ["--pre=x", "-x", "\\xe9", "a\\x0ab"]


@pytest.mark.parametrize(
    ("pattern", "more", "why"),
    [
        pytest.param("", {}, "pattern is empty", id="empty"),
        pytest.param("a\0", {}, "NUL", id="NUL"),
        pytest.param("\udfff", {}, "half a character", id="lone surrogate"),
        pytest.param("a\nb", {}, "cannot hold a newline", id="newline"),
        pytest.param("a\nb", {"literal_text": True}, "cannot hold a newline", id="literal newline"),
        pytest.param("(", {}, "unclosed group", id="bad regular expression"),
        pytest.param("x", {"include": "{a"}, "'{' is not closed", id="bad include"),
        pytest.param("x", {"include": "a\0"}, "include contains a NUL", id="NUL in include"),
        pytest.param("x", {"path": "nowhere"}, "nowhere does not exist", id="no such path"),
        pytest.param("x" * 200_000, {}, "could not be started", id="far too long"),
    ],
)
async def test_what_cannot_be_searched_is_an_error(
    root: Path, pattern: str, more: dict[str, Any], why: str
) -> None:
    write_tree(root, {"a.py": "x"})
    with pytest.raises(ToolError) as refused:
        await grep(root, pattern, **more)
    assert why in str(refused.value)


async def test_a_special_file_is_not_searched(root: Path) -> None:
    os.mkfifo(root / "pipe")
    with pytest.raises(ToolError, match="pipe is a named pipe"):
        await grep(root, "x", path="pipe")
    assert (await grep(root, "x")).summary == "0 matches"


@pytest.mark.parametrize("path", ["..", "../secret.txt", "link", "{up}/secret.txt"])
async def test_outside_the_project_it_asks(root: Path, path: str) -> None:
    write_tree(root.parent, {"secret.txt": "hit\n"})
    (root / "link").symlink_to("../secret.txt")
    path = path.replace("{up}", str(root.parent))
    fake = tool_context()
    output = await grep(root, "hit", path=path, fake=fake)
    assert output.text == f"{root.parent}/secret.txt\n     1|hit"
    request = fake.requests[0]
    assert (request.tool, request.action, request.is_outside) == ("grep", "read", True)
    assert request.paths[0].is_relative_to(root.parent)
    with pytest.raises(PermissionDenied):
        await grep(root, "hit", path=path, fake=tool_context(allow=False))


async def test_links_inside_are_no_way_out(root: Path) -> None:
    write_tree(root.parent, {"secret/a.txt": "hit\n"})
    (root / "folder").symlink_to("../secret")
    (root / "file.txt").symlink_to("../secret/a.txt")
    fake = tool_context()
    assert (await grep(root, "hit", fake=fake)).summary == "0 matches"
    assert fake.requests == []


async def test_what_cannot_be_read_does_not_cost_the_rest(root: Path) -> None:
    write_tree(root, {"a.py": "hit\n"})
    make_deep_folder(root)
    output = await grep(root, "hit")
    assert output.text.startswith("a.py\n     1|hit\n\n[1 place could not be read: ")


async def test_when_time_is_up_it_says_so_and_gives_what_it_has(root: Path) -> None:
    write_tree(root, {"a.py": "hit\n"})
    script = 'printf "./a.py\\0"; sleep 60'
    tool = grep_tool(
        PathPolicy(root=root, cwd=root), ripgrep=fake_ripgrep(root.parent, script), timeout_s=0.5
    )
    with anyio.fail_after(10):
        output = await tool.run(
            GrepArguments(pattern="hit", files_only=True), tool_context().context
        )
    assert output.text.startswith("a.py\n\n[stopped after 0.5 s; this is what was found")
    assert "rather than repeat the search" in output.text
    assert not output.is_error


async def test_stopping_the_call_stops_the_search(root: Path) -> None:
    endless = EndlessRipgrep(root.parent)
    tool = grep_tool(PathPolicy(root=root, cwd=root), ripgrep=endless.find, timeout_s=60)

    async def run() -> None:
        await tool.run(GrepArguments(pattern="x"), tool_context().context)

    with anyio.fail_after(5):
        async with anyio.create_task_group() as group:
            group.start_soon(run)
            await endless.begun()
            group.cancel_scope.cancel()
        await endless.ended()


async def test_a_flood_of_matches_is_not_waited_for(root: Path) -> None:
    write_tree(root, {f"{n}.txt": "hit " * 20 + "\n" + "hit\n" * 50_000 for n in range(20)})
    output = await grep(root, "hit")
    assert output.summary == "100+ matches"
    assert len(output.text) < 3_000


async def test_the_users_own_ripgrep_settings_do_not_count(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_tree(root, {"a.txt": "hit\n", "config": "--invert-match\n"})
    monkeypatch.setenv("RIPGREP_CONFIG_PATH", str(root / "config"))
    assert (await grep(root, "hit")).text == "a.txt\n     1|hit"


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"pattern": "x", "context": "some"},
        {"pattern": "x", "A": 3},
    ],
)
def test_bad_arguments_are_refused(arguments: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        GrepArguments.model_validate(arguments)


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (GrepArguments(pattern="def price", path="src/"), '"def price" in src/'),
        (GrepArguments(pattern="x", include="*.py"), '"x" (*.py)'),
        (GrepArguments(pattern="a\nb"), '"a\\x0ab"'),
    ],
)
def test_a_call_is_described_in_one_line(root: Path, arguments: GrepArguments, text: str) -> None:
    tool = grep_tool(PathPolicy(root=root, cwd=root))
    assert tool.describe(arguments) == text
    assert tool.is_read_only
    for fact in ("`literal_text`", "`include`", "up to 100 matches", "after 20 s", "*.{ts,tsx}"):
        assert fact in tool.description
