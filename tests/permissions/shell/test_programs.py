"""What is known of programs: which command lines only read, and which a person has to say about."""

import pytest

from crush_kernel.permissions.shell.programs import judge
from tests.permissions.shell.commandwords import everything_judged
from tests.permissions.shell.programlines import (
    DANGEROUS,
    HARMLESS,
    NOT_READ_ONLY,
    READ_ONLY,
    lines_of,
)


def table(lines: dict[str, str]) -> list[object]:
    return [pytest.param(line, id=f"{kind}: {line}") for kind, line in lines_of(lines)]


@pytest.mark.parametrize("line", table(READ_ONLY))
def test_a_line_only_reads_with_all_that_it_runs(line: str) -> None:
    assert all(judged.is_read_only for judged in everything_judged(line))


@pytest.mark.parametrize("line", table(READ_ONLY))
def test_what_only_reads_writes_nothing_and_is_no_danger(line: str) -> None:
    for judged in everything_judged(line):
        assert (judged.writes, judged.dangers, judged.removes_trees) == ((), (), False)


@pytest.mark.parametrize("line", table(NOT_READ_ONLY))
def test_a_line_does_not_count_as_only_reading(line: str) -> None:
    assert not all(judged.is_read_only for judged in everything_judged(line))


@pytest.mark.parametrize("line", table(DANGEROUS))
def test_a_person_has_to_say_in_any_mode(line: str) -> None:
    found = everything_judged(line)
    dangers = [danger for judged in found for danger in judged.dangers]
    assert dangers
    assert all(danger.endswith(".") for danger in dangers)
    assert not all(judged.is_read_only for judged in found)


@pytest.mark.parametrize("line", table(HARMLESS))
def test_everyday_work_is_no_danger(line: str) -> None:
    assert [judged.dangers for judged in everything_judged(line) if judged.dangers] == []


def test_no_words_are_no_program() -> None:
    assert not judge(()).is_read_only


def test_the_table_is_large() -> None:
    lines = [
        line
        for table in (READ_ONLY, NOT_READ_ONLY, DANGEROUS, HARMLESS)
        for line in lines_of(table)
    ]
    assert len(lines) >= 400
