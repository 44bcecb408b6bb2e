"""Globs that are matched in a straight line: they mean what they meant, and take no time."""

import re
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pathspec.patterns.gitignore.spec import GitIgnoreSpecPattern

from crush_kernel.permissions.match import Match
from crush_kernel.permissions.pathpattern import PathScreen, Spot, parse_path
from crush_kernel.permissions.request import PermissionRequest
from crush_kernel.permissions.rule import parse_rule
from crush_kernel.permissions.straight import straight_path
from tests.permissions.ruling import PLACE

LIMIT_S = 5.0
"""Far more than it takes on a busy machine, far less than trying all ways."""

SIGNS = st.sampled_from(["a", "b", "/", "*", "**", "?", "[ab]", "/**/", "**/", r"\*", ".", "é"])
GLOBS = st.lists(SIGNS, min_size=1, max_size=9).map("".join)
NAMES = st.text("ab.*é", min_size=1, max_size=5)
PATHS = st.tuples(st.lists(NAMES, min_size=1, max_size=6).map("/".join), st.sampled_from(["", "/"]))


@given(GLOBS, st.lists(PATHS.map("".join), min_size=1, max_size=8))
def test_a_glob_means_what_it_means_in_gitignore(glob: str, paths: list[str]) -> None:
    try:
        source, _ = GitIgnoreSpecPattern.pattern_to_regex(glob)
    except ValueError:
        return
    theirs = re.compile(source or r"(?!)", re.DOTALL)
    ours = re.compile(straight_path(source or r"(?!)"), re.DOTALL)
    assert [bool(ours.match(path)) for path in paths] == [
        bool(theirs.match(path)) for path in paths
    ]


@pytest.mark.parametrize(
    ("glob", "path", "is_meant"),
    [
        pytest.param("a[!b]c", "a/c", False, id="all but a sign"),
        pytest.param("a[!b]c", "axc", True, id="all but a sign, a letter"),
        pytest.param("a[+-0]c", "a/c", False, id="from one sign to another"),
        pytest.param("a[+-0]c", "a.c", True, id="from one sign to another, between"),
    ],
)
def test_no_brackets_reach_over_the_end_of_a_name(glob: str, path: str, *, is_meant: bool) -> None:
    assert (parse_path(glob).forbids(Spot.of(Path("/p") / path, PLACE)) is Match.YES) == is_meant


@pytest.mark.parametrize(
    ("glob", "path"),
    [
        pytest.param("*a" * 900 + "*b", "a" * 255, id="stars in a name"),
        pytest.param("*?" * 400 + "*b", "a" * 255, id="stars with any signs between"),
        pytest.param("[a-z]*" * 300 + "1", "a" * 255, id="stars with brackets between"),
        pytest.param("**/a/" * 300 + "b", "a/" * 2_000 + "c", id="stars over folders"),
        pytest.param("**/*a*/" * 300 + "b", "a/" * 2_000 + "c", id="stars in folders anywhere"),
        pytest.param("*a*a*a*b/" * 50 + "c", ("a" * 80 + "/") * 50, id="stars in every folder"),
        pytest.param("a" + "**" * 900 + "b", "a" * 255, id="nothing but stars"),
    ],
)
def test_no_glob_of_a_stranger_holds_anybody_up(glob: str, path: str) -> None:
    pattern, spot = parse_path(glob), Spot.of(Path("/p") / path, PLACE)
    started = time.monotonic()
    assert pattern.forbids(spot) is Match.NO
    assert not pattern.covers(spot)
    assert not PathScreen([pattern]).may_forbid(spot)
    assert time.monotonic() - started < LIMIT_S


def test_no_name_of_a_tool_holds_anybody_up() -> None:
    rule = parse_rule("mcp_" + "*a" * 900 + "*b")
    started = time.monotonic()
    assert not rule.is_about("mcp_" + "a" * 2_000, "execute")
    assert time.monotonic() - started < LIMIT_S


@pytest.mark.parametrize(
    ("tool", "name", "is_meant"),
    [
        pytest.param("mcp_*_x", "mcp_a_b_x", True, id="a star"),
        pytest.param("mcp_*_x", "mcp__x", True, id="a star for nothing much"),
        pytest.param("mcp_*_x_*", "mcp_a_x_x_y", True, id="several"),
        pytest.param("mcp_?_x", "mcp_a_x", True, id="a question mark"),
        pytest.param("mcp_?_x", "mcp__x", False, id="a question mark for nothing"),
        pytest.param("mcp_a.b", "mcp_axb", False, id="a dot is a dot"),
        pytest.param("mcp_*a", "mcp_ab", False, id="an end"),
        pytest.param("*ab*ab", "xab", False, id="one stretch does not count twice"),
    ],
)
def test_names_of_tools_with_stars_mean_what_they_say(
    tool: str, name: str, *, is_meant: bool
) -> None:
    assert (
        parse_rule(tool).is_about(name, PermissionRequest("", name, "use", "").action) == is_meant
    )
