"""What a glob matches, and what is known of its matches beforehand."""

import fnmatch
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crush_kernel.tools.search.globs import (
    BadGlob,
    anywhere,
    expand_choices,
    parse_glob,
    split_base,
    translate,
)


@pytest.mark.parametrize(
    ("pattern", "matching", "others"),
    [
        pytest.param("*.py", ["a.py", ".py", ".hidden.py"], ["a/b.py", "a.pyc"], id="one folder"),
        pytest.param("**/*.py", ["a.py", "x/a.py", "x/y/a.py"], ["a.js"], id="any depth"),
        pytest.param("**", ["a", "x/y/z"], [], id="everything"),
        pytest.param("**/*", ["a", "x/y/z"], [], id="everything again"),
        pytest.param("src/**", ["src/a", "src/x/y"], ["src", "srca"], id="everything below"),
        pytest.param("a/**/z", ["a/z", "a/b/z", "a/b/c/z"], ["az", "a/bz"], id="in the middle"),
        pytest.param("**/a/**/b/c", ["a/b/c", "x/a/y/b/c"], ["a/c", "b/c/a"], id="twice"),
        pytest.param("**/**/a", ["a", "x/y/a"], ["b"], id="doubled"),
        pytest.param("a**b", ["ab", "axxb"], ["a/b"], id="no whole part"),
        pytest.param("?.c", ["a.c", "é.c"], [".c", "ab.c", "/.c"], id="one character"),
        pytest.param("[a-c]1", ["a1", "c1"], ["d1", "-1"], id="class"),
        pytest.param("[!a]1", ["b1"], ["a1", "/1"], id="negated class"),
        pytest.param("[]x]", ["]", "x"], ["[]x]"], id="bracket in a class"),
        pytest.param("[a&&b|~]", ["&", "|", "~"], ["c"], id="set operators are members"),
        pytest.param("*.{ts,tsx}", ["a.ts", "a.tsx"], ["a.t", "a.{ts,tsx}"], id="choice"),
        pytest.param("{a,b/{c,d}}/x", ["a/x", "b/c/x", "b/d/x"], ["b/x"], id="nested choice"),
        pytest.param("a{,b}", ["a", "ab"], ["abb"], id="empty choice"),
        pytest.param(r"\[id\].tsx", ["[id].tsx"], ["i.tsx"], id="escaped"),
        pytest.param("a.b+c(d)$", ["a.b+c(d)$"], ["axb+c(d)$"], id="no regular expression"),
        pytest.param("a\nb*", ["a\nbc"], ["ab"], id="newline"),
    ],
)
def test_a_glob_matches_what_it_says(pattern: str, matching: list[str], others: list[str]) -> None:
    glob = parse_glob(pattern)
    assert [path for path in (*matching, *others) if glob.matches(path)] == matching


NAMES = st.text(alphabet="ab.", max_size=6)


@given(pattern=st.text(alphabet="ab.*?", max_size=8), name=NAMES)
def test_within_a_name_wildcards_mean_what_the_shell_says(pattern: str, name: str) -> None:
    if pattern == "**":
        return
    expected = fnmatch.fnmatchcase(name, pattern)
    assert (re.fullmatch(translate(pattern), name) is not None) == expected


def matches_parts(pattern: list[str], path: list[str]) -> bool:
    """Match part by part, in the plainest way."""
    if not pattern:
        return not path
    if pattern[0] == "**":
        if len(pattern) == 1:
            return bool(path)
        return any(matches_parts(pattern[1:], path[n:]) for n in range(len(path) + 1))
    return (
        bool(path)
        and fnmatch.fnmatchcase(path[0], pattern[0])
        and (matches_parts(pattern[1:], path[1:]))
    )


@settings(max_examples=500)
@given(
    pattern=st.lists(
        st.sampled_from(["**", "*", "a", "b*", "*a", "*a*", "a*b"]), min_size=1, max_size=4
    ),
    path=st.lists(st.sampled_from(["a", "b", "ba", "ab"]), min_size=1, max_size=4),
)
def test_across_folders_wildcards_match_part_by_part(pattern: list[str], path: list[str]) -> None:
    found = re.fullmatch(translate("/".join(pattern)), "/".join(path)) is not None
    assert found == matches_parts(pattern, path)


@pytest.mark.timeout(10)
@pytest.mark.parametrize(
    "pattern", ["*a" * 60 + "b", "**/" * 60 + "x", "**/a*/" * 40 + "x", "{a,aa}" * 8 + "*b"]
)
def test_no_pattern_takes_for_ever(pattern: str) -> None:
    glob = parse_glob(pattern)
    assert not any(map(glob.matches, ["a" * 255, "/".join("a" * 200)]))


@pytest.mark.parametrize(
    ("pattern", "why"),
    [
        ("{a,b", "'{' is not closed"),
        ("[ab", "'[' is not closed"),
        ("[z-a]", "is no class"),
        ("*/../x", "'..' cannot follow"),
        ("{a,b}" * 9, "more than 256"),
        ("{" * 500 + "}" * 500, "nested more than 20 deep"),
    ],
)
def test_what_is_no_glob_is_refused(pattern: str, why: str) -> None:
    with pytest.raises(BadGlob, match=re.escape(why)):
        parse_glob(pattern)


@pytest.mark.parametrize(
    ("pattern", "base", "rest"),
    [
        ("*.py", "", "*.py"),
        ("src/**/*.py", "src", "**/*.py"),
        ("src/a/b.py", "src/a", "b.py"),
        ("/abs/x/*.py", "/abs/x", "*.py"),
        ("/*.py", "/", "*.py"),
        ("~/x/*", "~/x", "*"),
        ("./**/*.py", ".", "**/*.py"),
        ("../x/*.py", "../x", "*.py"),
        ("{a,b}/*.py", "", "{a,b}/*.py"),
        (r"a\*/x", "", r"a\*/x"),
        ("src/", "src", "**"),
        ("src//*/./a", "src/", "*/a"),
    ],
)
def test_the_folder_that_a_pattern_starts_in(pattern: str, base: str, rest: str) -> None:
    assert split_base(pattern) == (base, rest)


@pytest.mark.parametrize(
    ("pattern", "max_depth", "name_glob", "is_by_name"),
    [
        ("*.py", 1, "*.py", False),
        ("a/*/c.py", 3, "c.py", False),
        ("**/*.{ts,tsx}", None, "*.{ts,tsx}", True),
        ("**", None, "*", True),
        ("a/**/*.py", None, "*.py", False),
        ("{a,b/c}/x", 3, "x", False),
        ("**/{a,b/c}", None, None, False),
        ("**/[ab].py", None, None, False),
        ("**/a?", None, None, False),
        ("**/a:b", None, None, False),
        ("x**y", 1, None, False),
    ],
)
def test_what_is_known_of_the_matches_beforehand(
    pattern: str, max_depth: int | None, name_glob: str | None, *, is_by_name: bool
) -> None:
    glob = parse_glob(pattern)
    assert (glob.max_depth, glob.name_glob, glob.is_by_name) == (max_depth, name_glob, is_by_name)


def test_a_mere_name_is_looked_for_anywhere() -> None:
    assert (anywhere("*.py"), anywhere("/*.py"), anywhere("a/*.py")) == (
        "**/*.py",
        "*.py",
        "a/*.py",
    )


def test_choices_are_written_out_in_order() -> None:
    assert expand_choices("{a,b}{1,2}") == ["a1", "a2", "b1", "b2"]
    assert expand_choices("a,b}") == ["a,b}"]
    assert expand_choices(r"\{a,b\}[{,]") == [r"\{a,b\}[{,]"]
