"""Patterns of paths: where they begin, and what they mean there."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crush_kernel.permissions.match import BadRule, Match
from crush_kernel.permissions.pathpattern import PathScreen, Spot, parse_path, quoted_path
from tests.permissions.ruling import PLACE

NAMES = st.text(
    st.characters(exclude_categories=["Cs", "Cc"], exclude_characters="/"), min_size=1, max_size=8
).filter(lambda name: name not in (".", "..") and name.rstrip() == name.rstrip(" "))


def spot(path: str) -> Spot:
    return Spot.of(Path("/p") / path, PLACE)


@pytest.mark.parametrize(
    ("written", "path", "is_meant"),
    [
        pytest.param("src/**", "src/a/b.py", True, id="below a folder"),
        pytest.param("src/**", "src", False, id="not the folder itself"),
        pytest.param("src/**", "other/src/a", False, id="a folder elsewhere"),
        pytest.param("src", "src/a", True, id="a folder with what is in it"),
        pytest.param("src", "other/src/a", True, id="a name is meant anywhere"),
        pytest.param("./src", "other/src/a", False, id="a name at the root"),
        pytest.param("./src", "src/a", True, id="a name at the root with what is in it"),
        pytest.param("*.py", "a/b.py", True, id="an ending anywhere"),
        pytest.param("*.py", "a/b.pyc", False, id="another ending"),
        pytest.param("docs/*.md", "docs/a/b.md", False, id="a star stays in its folder"),
        pytest.param("**/test_*", "a/b/test_c", True, id="stars over folders"),
        pytest.param("a?c", "abc", True, id="a question mark"),
        pytest.param("a[bc]d", "acd", True, id="brackets"),
        pytest.param(r"a\*b", "a*b", True, id="an escaped star"),
        pytest.param(r"a\*b", "axb", False, id="an escaped star is none"),
        pytest.param(".env", ".env", True, id="a name"),
        pytest.param(".env", ".env\n", False, id="a name with a line break"),
        pytest.param(".env", "env", False, id="a name without its dot"),
        pytest.param(".env", ".ENV", False, id="case counts"),
        pytest.param("**", "a/b", True, id="all of the project"),
        pytest.param("**", "/etc/hosts", False, id="all of the project is nothing outside"),
        pytest.param("hosts", "/etc/hosts", False, id="a name is not meant outside"),
        pytest.param("**", "/project/a", False, id="a folder that begins like the project"),
        pytest.param("/etc/hosts", "/etc/hosts", True, id="an absolute path"),
        pytest.param("/etc", "/etc/a/b", True, id="an absolute folder"),
        pytest.param("/etc/*.conf", "/etc/a/b.conf", False, id="an absolute pattern"),
        pytest.param("/p/src/**", "src/a", True, id="an absolute path into the project"),
        pytest.param("/", "/anything/at/all", True, id="the whole disk"),
        pytest.param("/**", "src", True, id="the whole disk by stars"),
        pytest.param("~/data/", "/home/u/data/x", True, id="in the home"),
        pytest.param("~/data", "/home/v/data", False, id="in another home"),
        pytest.param("~", "/home/u/x", True, id="all of the home"),
        pytest.param("~/x", "~/x", False, id="a folder called like a home"),
        pytest.param("./~/x", "~/x", True, id="a folder called like a home, said so"),
        pytest.param("./", "a", True, id="the project's root"),
        pytest.param(" src/** ", "src/a", True, id="spaces around it"),
        pytest.param("a\\ ", "a ", True, id="an escaped space at the end"),
    ],
)
def test_a_pattern_means_paths_from_where_it_begins(
    written: str, path: str, *, is_meant: bool
) -> None:
    assert parse_path(written).covers(spot(path)) is is_meant


@pytest.mark.parametrize(
    ("written", "path", "match"),
    [
        pytest.param(".env", "a/.ENV", Match.YES, id="in another case"),
        pytest.param("src/**", "src", Match.YES, id="the folder whose contents are meant"),
        pytest.param("src/secret/**", "src", Match.MAYBE, id="a folder around it"),
        pytest.param("src/secret/**", ".", Match.MAYBE, id="the project around it"),
        pytest.param("*.key", ".", Match.MAYBE, id="the project around any name"),
        pytest.param("src/secret/**", "sr", Match.NO, id="a folder that begins like it"),
        pytest.param("src/secret/**", "src/other", Match.NO, id="a folder beside it"),
        pytest.param("*.key", "src", Match.NO, id="any folder, for a name anywhere"),
        pytest.param("~/.ssh/**", "/home/u", Match.MAYBE, id="the home around it"),
        pytest.param("/etc/ssh/*", "/etc", Match.MAYBE, id="an absolute folder around it"),
        pytest.param("src/**", "/etc", Match.NO, id="outside"),
    ],
)
def test_who_forbids_files_means_them_in_other_spellings_and_in_their_folders(
    written: str, path: str, match: Match
) -> None:
    assert parse_path(written).forbids(spot(path)) is match


@pytest.mark.parametrize(
    ("written", "path", "is_named"),
    [
        pytest.param("/etc/hosts", "/etc/hosts", True, id="that file"),
        pytest.param(".env", "a/.env", True, id="that name"),
        pytest.param("~/.bashrc", "/home/u/.bashrc", True, id="in the home"),
        pytest.param("/etc", "/etc/hosts", False, id="a folder around it"),
        pytest.param("/etc/*", "/etc/hosts", False, id="by a star"),
        pytest.param("/etc/host[s]", "/etc/hosts", False, id="by brackets"),
        pytest.param(r"/etc/a\*b", "/etc/a*b", True, id="a star that is escaped"),
    ],
)
def test_a_file_is_named_by_its_own_path_only(written: str, path: str, *, is_named: bool) -> None:
    assert parse_path(written).covers(spot(path))
    assert parse_path(written).covers(spot(path), by_name=True) is is_named


@pytest.mark.parametrize(
    ("written", "said"),
    [
        pytest.param("", "has to name some", id="nothing"),
        pytest.param(".", "has to name some", id="a dot"),
        pytest.param("!src", "cannot begin with", id="a negation"),
        pytest.param("../x", "cannot contain", id="a way up"),
        pytest.param("a/../b", "cannot contain", id="a way up inside"),
        pytest.param("[a", "matches no path", id="an open bracket"),
        pytest.param("[z-a]", "is no pattern", id="a range backwards"),
        pytest.param("/\xa0", "matches no path", id="the disk with an odd space"),
        pytest.param("#x", "matches no path", id="a comment"),
        pytest.param("a\\", "is no pattern", id="a backslash before nothing"),
    ],
)
def test_what_is_no_pattern_of_paths_is_explained(written: str, said: str) -> None:
    with pytest.raises(BadRule, match=said):
        parse_path(written)


@given(st.lists(NAMES, min_size=1, max_size=3), st.lists(NAMES, min_size=1, max_size=3))
def test_a_quoted_path_is_that_path_and_what_is_below(one: list[str], other: list[str]) -> None:
    path, others = "/".join(["", *one]), "/".join(["", *other])
    made = parse_path(quoted_path(path))
    assert made.covers(Spot.of(Path(path), PLACE), by_name=True)
    is_below = (others + "/").startswith(path + "/")
    assert made.covers(Spot.of(Path(others), PLACE)) == is_below


@given(NAMES, NAMES)
def test_what_is_covered_is_also_forbidden(written: str, name: str) -> None:
    try:
        made = parse_path(written)
    except BadRule:
        return
    if made.covers(spot(name)):
        assert made.forbids(spot(name)) is Match.YES


WRITTEN = st.sampled_from(
    [
        *("src/**", ".env", "*.key", "./a", "a/b/*", "~/x/y/*", "/etc", "/etc/ssh/*", "**", "/"),
        *("A/b", r"a\*b", "a/", "[ab]/c"),
    ]
)
PLACES = st.sampled_from(
    [
        *("src", "src/x", "a", "a/b", "a/B/c", ".", ".ENV", "x.key", "a*b", "b/c"),
        *("/", "/etc", "/etc/SSH/x", "/home/u", "/home/u/x", "/home/u/x/y/z", "/p2"),
    ]
)


@given(st.lists(WRITTEN, max_size=5), PLACES)
def test_a_screen_never_lets_pass_what_is_forbidden(written: list[str], path: str) -> None:
    patterns = [parse_path(text) for text in written]
    if any(pattern.forbids(spot(path)) for pattern in patterns):
        assert PathScreen(patterns).may_forbid(spot(path))
