"""The table of programs through the reader of command lines, which adds doubts and takes none."""

import pytest

from crush_kernel.permissions.shell.reading import read_command
from tests.permissions.shell.programlines import (
    DANGEROUS,
    NOT_READ_ONLY,
    READ_ONLY,
    READS_UNKNOWN,
    lines_of,
)


def table(lines: dict[str, str]) -> list[object]:
    return [pytest.param(line, id=f"{kind}: {line}") for kind, line in lines_of(lines)]


@pytest.mark.parametrize("line", table(READ_ONLY))
def test_a_line_that_only_reads_is_read_so_if_it_is_known_what(line: str) -> None:
    reading = read_command(line)
    assert reading.reasons == ()
    assert reading.is_read_only is (line not in READS_UNKNOWN)


def test_all_of_what_reads_the_unknown_is_in_the_table() -> None:
    assert {line for _, line in lines_of(READ_ONLY)} >= READS_UNKNOWN


@pytest.mark.parametrize("line", table(NOT_READ_ONLY))
def test_a_line_that_does_more_is_not_read_as_reading(line: str) -> None:
    assert not read_command(line).is_read_only


@pytest.mark.parametrize("line", table(DANGEROUS))
def test_a_danger_is_found_by_the_reader(line: str) -> None:
    reading = read_command(line)
    assert any(part.judgement.dangers for part in reading.parts)
