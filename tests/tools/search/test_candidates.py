"""Which files of a search come first."""

import os
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crush_kernel.tools.search.candidates import (
    MAX_DATED,
    Candidates,
    PathStream,
    Selection,
    matching,
)
from crush_kernel.tools.search.globs import parse_glob


def everything(paths: list[str]) -> list[str]:
    return paths


def made(folder: Path, times: dict[str, int]) -> Candidates:
    """Return the files of `times`, made in `folder` with these times, as candidates."""
    for name, time in times.items():
        (folder / name).write_bytes(b"")
        os.utime(folder / name, ns=(time, time))
    candidates = Candidates()
    candidates.add([f"./{name}".encode() for name in times])
    return candidates


def test_the_newest_come_first_and_equals_by_name(tmp_path: Path) -> None:
    candidates = made(tmp_path, {"old": 1, "b": 7, "a": 7, "new": 7_000_000_000})
    assert candidates.select(tmp_path, 9, everything) == Selection(
        ("new", "a", "b", "old"), has_more=False, is_by_time=True, found=4
    )


@pytest.mark.parametrize(("limit", "has_more"), [(2, True), (3, False), (4, False)])
def test_exactly_as_many_as_wanted_are_all_there_are(
    tmp_path: Path, limit: int, *, has_more: bool
) -> None:
    candidates = made(tmp_path, {"a": 3, "b": 2, "c": 1})
    selection = candidates.select(tmp_path, limit, everything)
    assert selection.paths == ("a", "b", "c")[:limit]
    assert selection.has_more == has_more


def test_hidden_files_make_room_for_the_next(tmp_path: Path) -> None:
    candidates = made(tmp_path, {name: 99 - n for n, name in enumerate("abcdefgh")})

    def keep(paths: list[str]) -> list[str]:
        return [path for path in paths if path in "cfg"]

    assert candidates.select(tmp_path, 2, keep) == Selection(
        ("c", "f"), has_more=True, is_by_time=True, found=None
    )
    assert not candidates.select(tmp_path, 3, keep).has_more


def test_files_that_are_gone_are_left_out(tmp_path: Path) -> None:
    candidates = made(tmp_path, {"a": 2, "b": 1})
    (tmp_path / "a").unlink()
    assert candidates.select(tmp_path, 9, everything).paths == ("b",)


def test_too_many_to_ask_for_their_time_come_by_name(tmp_path: Path) -> None:
    names = [f"{n:06d}" for n in range(5 * MAX_DATED)]
    candidates = Candidates()
    for start in range(0, len(names), 700):
        candidates.add([name.encode() for name in names[::-1][start : start + 700]])
    selection = candidates.select(tmp_path, 100, everything)
    assert selection == Selection(
        tuple(names[:100]), has_more=True, is_by_time=False, found=5 * MAX_DATED
    )


NAMES = st.lists(st.text(alphabet="ab/.é\n ", min_size=1, max_size=5), max_size=9)


@given(names=NAMES, cuts=st.lists(st.integers(0, 60), max_size=5))
def test_how_the_output_is_cut_does_not_matter_to_its_paths(
    names: list[str], cuts: list[int]
) -> None:
    data = "".join(f"./{name}\0" for name in names).encode()
    edges = [0, *sorted(cut for cut in cuts if cut < len(data)), len(data)]
    stream = PathStream()
    found: list[bytes] = []
    for start, end in pairwise(edges):
        if paths := stream.feed(data[start:end]):
            found += matching(paths, parse_glob("**"))
    assert found == [f"./{name}".encode() for name in names]


@given(names=NAMES, pattern=st.sampled_from(["a*", "a?", "[ab]/**", "**/*.*/?"]))
def test_paths_are_matched_without_what_ripgrep_puts_before_them(
    names: list[str], pattern: str
) -> None:
    glob = parse_glob(pattern)
    paths = [f"./{name}".encode() for name in names or ["x"]]
    expected = [path for path in paths if glob.matches(path[2:].decode())]
    assert matching(b"\0".join(paths), glob) == expected
