"""What is left out, held against git and ripgrep."""

import fnmatch
import os
import shutil
import subprocess
from collections.abc import Iterator
from itertools import product
from pathlib import Path

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crush_kernel.tools.base import AnyTool, erase
from crush_kernel.tools.glob import glob_tool
from crush_kernel.tools.grep import grep_tool
from crush_kernel.tools.ls import ls_tool
from crush_kernel.tools.paths import PathPolicy
from crush_kernel.tools.search.ignore import LEFT_OUT, MAX_RULES, IgnoreRules, parse_rules
from crush_kernel.tools.search.ripgrep import find_ripgrep
from tests.fakes.tool_context import tool_context


def write(root: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def seen_by_us(base: Path, root: Path) -> set[str]:
    """Walk `base` as `ls` does."""
    rules = IgnoreRules(base, root=root)

    def walk(folder: str) -> Iterator[str]:
        for path in (base / folder).iterdir():
            name = folder + path.name
            if not rules.is_left_out(name, is_folder=path.is_dir() and not path.is_symlink()):
                yield from walk(name + "/") if path.is_dir() else [name]

    return set(walk(""))


def seen_by_ripgrep(base: Path, root: Path) -> set[str]:
    """Search `base` as `glob` does."""
    rules = IgnoreRules(base, root=root)
    command = [find_ripgrep(), "--no-config", "--files", "--null", *rules.ripgrep_options, "."]
    done = subprocess.run(command, cwd=base, capture_output=True, check=False)
    paths = [path.removeprefix("./") for path in done.stdout.decode().split("\0") if path]
    return set(rules.keep(paths))


def git(root: Path, *arguments: str) -> bytes:
    environ = {"HOME": str(root), "GIT_CONFIG_NOSYSTEM": "1", "PATH": "/usr/bin:/bin"}
    command = ["git", "-c", "core.excludesFile=", *arguments]
    return subprocess.run(command, cwd=root, env=environ, capture_output=True, check=True).stdout


def seen_by_git(root: Path) -> set[str]:
    listed = git(root, "ls-files", "-z", "--cached", "--others", "--exclude-standard")
    return {name for name in listed.decode().split("\0") if name}


NAMES = ["a", "b", "a.log", "b.log", "dir", ".x"]
PATHS = st.lists(st.sampled_from(NAMES), min_size=1, max_size=4).map("/".join)
KINDS = [
    "*.log",
    "!a.log",
    "a",
    "/a",
    "a/",
    "!a",
    "dir/",
    "/dir/",
    "!dir",
    "dir/*",
    "dir/**",
    "**/b",
    "**/dir/a",
    "a/**/b",
    "/*.log",
    "*",
    "!*/",
    "!.gitignore",
    "#",
    "\\a",
    "b\\",
    "[ab]",
    "[!a]",
    "?.log",
    ".x",
    ".*",
    "dir/a.log",
    "a/b",
    "!/a",
    "/**/b",
    "/",
    "**",
    "a/**/",
    "//a",
    "",
    "  ",
    "a  ",
]
"""Of lines, each of which means something else."""

LINES = st.sampled_from(KINDS)
RULES = st.lists(LINES, max_size=4).map("\n".join)
FOLDERS = st.sampled_from(["", "a/", "dir/", "a/dir/", "b/a/"])


def make_tree(root: Path, files: list[str], rules: dict[str, str], name: str) -> None:
    """Make what can be made of `files` and of the files of rules called `name`."""
    for path in files:
        target = root / path
        if not any(parent.is_file() for parent in target.parents) and not target.exists():
            write(root, {path: ""})
    for folder, text in rules.items():
        if (root / folder).is_dir():
            write(root, {f"{folder}{name}": text})


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "root").mkdir()
    return tmp_path / "root"


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(
    files=st.lists(PATHS, min_size=1, max_size=8), rules=st.dictionaries(FOLDERS, RULES, max_size=3)
)
def test_in_a_repository_all_see_what_git_sees(
    tmp_path_factory: pytest.TempPathFactory, files: list[str], rules: dict[str, str]
) -> None:
    root = tmp_path_factory.mktemp("repository")
    git(root, "init", "-q")
    make_tree(root, files, rules, ".gitignore")
    expected = seen_by_git(root)
    assert seen_by_us(root, root) == expected
    assert seen_by_ripgrep(root, root) == expected
    shutil.rmtree(root)


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(
    files=st.lists(PATHS, min_size=1, max_size=8),
    rules=st.dictionaries(FOLDERS, RULES, max_size=3),
    crush=st.dictionaries(FOLDERS, RULES, max_size=3),
    above=RULES,
    base=FOLDERS,
    is_repository=st.booleans(),
)
def test_walking_and_searching_see_the_same_wherever_they_start(  # noqa: PLR0917
    tmp_path_factory: pytest.TempPathFactory,
    files: list[str],
    rules: dict[str, str],
    crush: dict[str, str],
    above: str,
    base: str,
    is_repository: bool,  # noqa: FBT001 - drawn by hypothesis
) -> None:
    top = tmp_path_factory.mktemp("tree")
    root = top / "root"
    write(top, {".gitignore": above, "root/a.log": ""})
    if is_repository:
        (root / ".git").mkdir()
    make_tree(root, files, rules, ".gitignore")
    make_tree(root, files, crush, ".crushignore")
    start = root / base if (root / base).is_dir() else root
    assert seen_by_us(start, root) == seen_by_ripgrep(start, root)
    shutil.rmtree(top)


EVERY_PLACE = [
    *("b", "a.log", "b.log", "a/a", "a/b", "a/b.log", "a/dir/a", "a/dir/a.log", "a/.x/b"),
    *("dir/a/b", "dir/a.log", "dir/b/a", "dir/b/b.log", "dir/dir", "dir/.x", "dir/a/dir/a/b"),
]
"""Each name as a file and as a folder, at several depths."""


@pytest.mark.slow
@pytest.mark.parametrize("line", KINDS)
def test_each_kind_of_line_means_what_it_means_to_git(root: Path, line: str) -> None:
    git(root, "init", "-q")
    make_tree(root, EVERY_PLACE, {}, "")
    for folder, above in product(("", "dir/"), ("", "*\n", "a\n!b\n")):
        rules, ours = root / folder / ".gitignore", root / folder / ".crushignore"
        rules.write_text(above + line, encoding="utf-8")
        expected = seen_by_git(root)
        assert both(root, root) == expected
        rules.unlink()
        ours.write_text((above + line).replace(".git", ".crush"), encoding="utf-8")
        assert both(root, root) == {name.replace(".git", ".crush") for name in expected}
        ours.unlink()


WILD = st.sampled_from(["**", "*", "*.log", ".*", "?"])
# A name in front would be where the search starts, whether it is ignored or not.
GLOBS = st.tuples(WILD, st.lists(WILD | st.sampled_from(["a", "dir"]), max_size=2)).map(
    lambda drawn: [drawn[0], *drawn[1]]
)


async def told(tool: AnyTool, **arguments: str | bool) -> list[str]:
    """Return the lines that `tool` answers with, without its remarks."""
    output = await tool.run(tool.arguments.model_validate(arguments), tool_context().context)
    lines = output.text.partition("\n\n[")[0].split("\n")
    return [] if lines[0].startswith("No ") else lines


def files_of(tree: list[str]) -> Iterator[str]:
    """Yield the files in what `ls` answers, by their paths."""
    folders: list[str] = []
    for line in tree[1:]:
        name = line.lstrip(" ")
        folders[(len(line) - len(name)) // 2 - 1 :] = [name]
        if not name.endswith("/"):
            yield "".join(folders)


@pytest.mark.slow
@settings(max_examples=40, deadline=None)
@given(
    files=st.lists(PATHS, min_size=1, max_size=8),
    rules=st.dictionaries(FOLDERS, RULES, max_size=3),
    pattern=GLOBS,
)
def test_the_tools_answer_with_what_git_sees(
    tmp_path_factory: pytest.TempPathFactory,
    files: list[str],
    rules: dict[str, str],
    pattern: list[str],
) -> None:
    root = Path(os.path.realpath(tmp_path_factory.mktemp("repository")))
    git(root, "init", "-q")
    make_tree(root, files, rules, ".gitignore")
    for path in files[::2]:
        if (root / path).is_file():
            write(root, {path: "text\nwith a needle\n"})
    expected = seen_by_git(root)
    needles = {name for name in expected if "needle" in (root / name).read_text("utf-8")}
    paths = PathPolicy(root=root, cwd=root)

    async def check() -> None:
        listed = await told(erase(ls_tool(paths)))
        assert set(files_of(listed)) == expected
        globbed = await told(erase(glob_tool(paths)), pattern="/".join(pattern))
        assert sorted(globbed) == sorted(
            name for name in expected if matches_parts(pattern, name.split("/"))
        )
        found = await told(erase(grep_tool(paths)), pattern="needle", files_only=True)
        assert sorted(found) == sorted(needles)

    anyio.run(check)
    shutil.rmtree(root)


def matches_parts(pattern: list[str], path: list[str]) -> bool:
    """Match part by part, in the plainest way; a last `**` takes files, never nothing."""
    if not pattern or not path:
        return not pattern and not path
    if pattern[0] != "**":
        return fnmatch.fnmatchcase(path[0], pattern[0]) and matches_parts(pattern[1:], path[1:])
    rest = pattern[1:]
    return not rest or matches_parts(rest, path) or matches_parts(pattern, path[1:])


def both(base: Path, root: Path) -> set[str]:
    seen = seen_by_us(base, root)
    assert seen_by_ripgrep(base, root) == seen
    return seen


def test_hidden_files_are_seen_and_the_stores_of_tools_are_not(root: Path) -> None:
    write(root, {".env": "", ".github/ci.yml": "", "src/.crush/x": "", "src/a": ""})
    write(root, {f"{name}/x": "" for name in LEFT_OUT})
    assert both(root, root) == {".env", ".github/ci.yml", "src/a"}


def test_ignore_files_count_without_a_repository_too(root: Path) -> None:
    write(root, {".gitignore": "*.log\n", "a.log": "", "a.py": "", "x/.gitignore": "!b.log\n"})
    write(root, {"x/b.log": "", "x/c.log": ""})
    assert both(root, root) == {".gitignore", "a.py", "x/.gitignore", "x/b.log"}
    assert both(root / "x", root) == {".gitignore", "b.log"}


def test_ignore_files_above_a_project_without_a_repository_do_not_count(root: Path) -> None:
    write(root, {"../.gitignore": "*\n", "a.py": "", "x/b.py": "", ".gitignore": "*.log\n"})
    write(root, {"x/y/a.log": "", "x/y/c.py": "", "x/.gitignore": "c.py\n"})
    assert both(root, root) == {".gitignore", "a.py", "x/.gitignore", "x/b.py"}
    assert both(root / "x" / "y", root) == set()


def test_a_project_within_a_repository_obeys_all_of_it(root: Path) -> None:
    write(root, {"../.git/HEAD": "", "../.gitignore": "*.log\n/root/x/secret\n"})
    write(root, {"a.log": "", "x/secret/k": "", "x/a": ""})
    assert both(root, root) == {"x/a"}
    assert both(root / "x", root) == {"a"}


def test_the_excludes_of_a_repository_count(root: Path) -> None:
    write(root, {".git/info/exclude": "*.tmp\n", "a.tmp": "", "x/b.tmp": "", "x/c": ""})
    assert both(root, root) == {"x/c"}


def test_a_repository_within_a_repository_has_its_own_rules(root: Path) -> None:
    write(root, {".git/HEAD": "", ".gitignore": "*.log\n", "in/.git/HEAD": "", "in/a.log": ""})
    assert both(root, root) == {".gitignore", "in/a.log"}
    assert both(root / "in", root) == {"a.log"}


def test_a_crushignore_hides_in_its_folder_whatever_git_says(root: Path) -> None:
    write(root, {".git/HEAD": "", ".gitignore": "!*.csv\n", ".crushignore": "*.csv\n/gen/\n"})
    write(root, {"a.csv": "", "gen/x": "", "x/gen/y": "", "x/b.csv": "", "x/.crushignore": "y\n"})
    assert both(root, root) == {".gitignore", ".crushignore", "x/.crushignore"}
    assert both(root / "x", root) == {".crushignore"}


def test_a_crushignore_shows_nothing_that_is_hidden(root: Path) -> None:
    write(root, {".gitignore": "a\nb\n", ".crushignore": "!a\nc\n", "a": "", "b": "", "c": ""})
    write(root, {"x/.crushignore": "!c\n", "x/c": "", "x/d": ""})
    assert both(root, root) == {".gitignore", ".crushignore", "x/.crushignore", "x/d"}


@pytest.mark.parametrize("rule", ["build/", "build", "build/*", "**/build/", "/build/**"])
def test_an_ignored_folder_can_be_entered_by_its_name(root: Path, rule: str) -> None:
    write(root, {".git/HEAD": "", ".gitignore": f"{rule}\n", "build/lib/a.o": "", "b": ""})
    write(root, {"build/lib/.gitignore": "*.tmp\n", "build/lib/x.tmp": ""})
    assert both(root, root) == {".gitignore", "b"}
    assert both(root / "build" / "lib", root) == {".gitignore", "a.o"}


@pytest.mark.parametrize("name", ["node_modules", ".git", ".venv"])
def test_a_folder_that_is_always_left_out_can_be_entered_too(root: Path, name: str) -> None:
    write(root, {f"{name}/pkg/index.js": ""})
    assert both(root / name, root) == {"pkg/index.js"}


def test_a_folder_outside_the_project_has_only_its_own_rules(root: Path) -> None:
    write(root, {"../.gitignore": "*\n", "../other/a.log": "", "../other/.gitignore": "*.log\n"})
    write(root, {"../other/x/b.log": "", "../other/x/c": ""})
    assert both(root.parent / "other", root) == {".gitignore", "x/c"}
    assert both(root.parent / "other" / "x", root) == {"b.log", "c"}


def test_links_to_folders_are_no_folders(root: Path) -> None:
    write(root, {".gitignore": "link/\n", "real/a": ""})
    (root / "link").symlink_to("real")
    rules = IgnoreRules(root, root=root)
    assert not rules.is_left_out("link", is_folder=False)
    assert rules.is_left_out("link", is_folder=True)


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(b"\xef\xbb\xbf*.log\r\n", id="BOM and CRLF"),
        pytest.param(b"[z-a]\n{\n[\n\\\n*.log\n", id="lines that are no globs"),
        pytest.param(b"*.log\n\xff\xfe\nb\n", id="no UTF-8 from the second line on"),
        pytest.param(b"*.log", id="no newline"),
    ],
)
def test_odd_files_of_rules_do_what_they_can(root: Path, content: bytes) -> None:
    (root / ".gitignore").write_bytes(content)
    write(root, {"a.log": "", "b": ""})
    assert both(root, root) == {".gitignore", "b"}


def test_a_folder_called_like_a_file_of_rules_is_none(root: Path) -> None:
    write(root, {".gitignore/x": "", ".crushignore/y": ""})
    assert both(root, root) == {".gitignore/x", ".crushignore/y"}


def test_a_pipe_called_like_a_file_of_rules_is_not_waited_for(root: Path) -> None:
    os.mkfifo(root / ".crushignore")
    assert not IgnoreRules(root, root=root).is_left_out("a", is_folder=False)


def test_rules_are_read_from_the_last_line_up() -> None:
    rules = parse_rules("*.a\n# no rule\n\n!b.a\nc/")
    assert [(rule.is_ignoring, rule.is_for_folders) for rule in rules] == [
        (True, True),
        (False, False),
        (True, False),
    ]


@pytest.mark.parametrize(
    "line",
    [
        pytest.param("\0" * 1_000_000, id="zeros"),
        pytest.param("a" * 1_000_000, id="an endless name"),
        pytest.param("**/" * 300_000, id="endlessly deep"),
    ],
)
def test_an_endless_line_is_no_rule(line: str) -> None:
    assert [rule.is_ignoring for rule in parse_rules(f"a\n{line}\n!b")] == [False, True]


def test_of_very_many_rules_the_last_count() -> None:
    rules = parse_rules("\n".join(f"a{number}" for number in range(MAX_RULES + 10)))
    assert len(rules) == MAX_RULES
    assert rules[0].regex.fullmatch(f"a{MAX_RULES + 9}")


@pytest.mark.parametrize("name", [".gitignore", ".crushignore"])
def test_rules_that_never_end_are_none(tmp_path: Path, name: str) -> None:
    (tmp_path / name).symlink_to("/dev/zero")
    (tmp_path / "a.txt").touch()
    assert not IgnoreRules(tmp_path, root=tmp_path).is_left_out("a.txt", is_folder=False)
