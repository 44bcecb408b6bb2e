"""What is read of a notebook, whoever wrote it."""

import json
import os
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import JsonValue

from crush_kernel.history.notebook import (
    MAX_CELLS,
    MAX_NOTEBOOK_BYTES,
    MAX_PROBLEMS,
    RECORD_MIME_TYPE,
    NotebookCell,
    NotebookContents,
    read_cells,
    read_ipynb,
)
from crush_kernel.history.notebookfile import read_notebook_file
from crush_kernel.history.plainjson import MAX_VALUES
from crush_kernel.history.record import SessionHeader, read_turn
from crush_kernel.messages import text_of
from tests.history.values import WILD

Json = dict[str, Any]


def record(turn: str = "c1.1", revision: int = 2, said: str = "Hello.") -> Json:
    """Return the record of a turn in which somebody `said` something."""
    return {
        "version": 1,
        "turn": turn,
        "run": int(turn.rpartition(".")[2]),
        "revision": revision,
        "end": "end_turn",
        "messages": [{"role": "user", "parts": [{"kind": "text", "text": said}]}],
    }


def told(cell_id: JsonValue = "c1", **fields: object) -> Json:
    """Return a code cell as a page tells it."""
    return {"id": cell_id, "type": "code", **fields}


def written(cell_id: JsonValue = "c1", *outputs: JsonValue, crush: JsonValue = None) -> Json:
    """Return a code cell as a file has it, with what its outputs hold of ours."""
    metadata = {} if crush is None else {"crush": crush}
    data = [{"output_type": "display_data", "data": {RECORD_MIME_TYPE: each}} for each in outputs]
    return {
        "cell_type": "code",
        "id": cell_id,
        "metadata": metadata,
        "outputs": data,
        "execution_count": 3,
        "source": "hello",
    }


def ipynb(*cells: JsonValue, crush: JsonValue = None) -> str:
    metadata = {"kernelspec": {"name": "crush"}} | ({} if crush is None else {"crush": crush})
    return json.dumps({"nbformat": 4, "nbformat_minor": 5, "metadata": metadata, "cells": cells})


def said(contents: NotebookContents) -> list[str | None]:
    """Return what was said in each cell."""
    return [
        None if cell.turn is None else "".join(map(text_of, cell.turn.messages))
        for cell in contents.cells
    ]


def test_a_page_and_a_file_tell_the_same() -> None:
    header: Json = {"version": 1, "id": "5e55", "title": "Prices"}
    from_page = read_cells(
        [told(crush=record(), execution_count=3), {"id": "m", "type": "markdown"}], notebook=header
    )
    from_file = read_ipynb(
        ipynb(written(crush=record()), {"cell_type": "markdown", "id": "m"}, crush=header)
    )
    assert from_page == from_file
    assert from_page == NotebookContents(
        cells=(
            NotebookCell("c1", "code", read_turn(record(), cell_id="c1"), 3),
            NotebookCell("m", "markdown"),
        ),
        header=SessionHeader(id="5e55", title="Prices", extra=header),
    )


@pytest.mark.parametrize(
    "records",
    [
        pytest.param(
            [record(revision=1, said="old"), record(revision=2, said="new")], id="a revision"
        ),
        pytest.param(
            [record("c1.1", 9, said="old"), record("c1.2", 1, said="new")], id="another run"
        ),
        pytest.param(
            [record("c7.9", 9, said="copied"), record("c1.1", 1, said="new")],
            id="a cell's own turn after a copied one",
        ),
        pytest.param([record(said="new"), {"version": 2}, "x"], id="beside what cannot be read"),
    ],
)
def test_the_newest_record_counts_wherever_it_is(records: list[JsonValue]) -> None:
    for first, *others in permutations(records):
        assert said(read_ipynb(ipynb(written("c1", *others, crush=first)))) == ["new"]
        assert said(read_ipynb(ipynb(written("c1", first, *others)))) == ["new"]
    for crush, other in permutations(records[:2]):
        assert said(read_cells([told(crush=crush, record=other)])) == ["new"]


def test_a_copied_cell_has_the_turn_of_the_other_one() -> None:
    contents = read_cells([told("c1", crush=record()), told("c9", crush=record())])
    assert [cell.turn and cell.turn.id for cell in contents.cells] == ["c1.1", "c1.1"]
    assert contents.problems == ()


def test_a_cell_that_is_no_code_says_nothing_to_the_model() -> None:
    contents = read_cells(
        [
            {"id": "m", "type": "markdown", "crush": record()},
            {"id": "r", "type": "raw", "crush": record()},
            {"id": "x", "type": "hologram", "crush": record()},
        ]
    )
    assert [(cell.type, cell.turn) for cell in contents.cells] == [
        ("markdown", None),
        ("raw", None),
        ("raw", None),
    ]


def test_both_sides_of_a_merge_are_kept_and_told() -> None:
    contents = read_ipynb(
        ipynb(
            written("c1", crush=record(said="ours")),
            written("c1", crush=record(said="theirs")),
            written("c1", crush=record(said="theirs")),
            written("c1#2", crush=record("c1#2.1")),
        )
    )
    assert said(contents) == ["ours", "theirs", "theirs", "Hello."]
    names = [cell.id for cell in contents.cells]
    assert names[0] == "c1"
    assert len(set(names)) == 4
    assert contents.problems == (
        "Cell 2 has the id of another one, c1.",
        "Cell 2 has another turn than another cell under the same name, c1.1; both are kept.",
        "Cell 3 has the id of another one, c1.",
        "Cell 4 has the id of another one, c1?2.",
    )


def test_a_copy_that_was_run_again_on_both_sides_is_kept_on_both() -> None:
    contents = read_cells(
        [told("c1", crush=record(said="one")), told("c2", crush=record(said="two"))]
    )
    assert said(contents) == ["one", "two"]
    assert len(contents.problems) == 1


@pytest.mark.parametrize(
    "cell_id",
    [
        pytest.param(None, id="none"),
        pytest.param(5, id="a number"),
        pytest.param("", id="empty"),
        pytest.param("a\nb", id="two lines"),
        pytest.param("\ud83d", id="half a character"),
        pytest.param("x" * 5_000, id="without end"),
    ],
)
def test_a_cell_without_an_id_has_none(cell_id: JsonValue) -> None:
    contents = read_cells([told(cell_id, crush=record("x.2")), told(cell_id, crush={"version": 1})])
    assert [cell.id for cell in contents.cells] == ["", ""]
    assert [cell.turn and cell.turn.id for cell in contents.cells] == ["x.2", "#2.1"]


@pytest.mark.parametrize(
    ("told_count", "expected"),
    [
        pytest.param(3, 3, id="a count"),
        pytest.param(0, 0, id="zero"),
        pytest.param(None, None, id="none"),
        pytest.param(True, None, id="a truth value"),
        pytest.param(-1, None, id="negative"),
        pytest.param(10**400, None, id="without end"),
        pytest.param("3", None, id="a text"),
    ],
)
def test_an_execution_count_is_a_count_or_none(told_count: JsonValue, expected: int | None) -> None:
    (cell,) = read_cells([told(execution_count=told_count)]).cells
    assert cell.execution_count == expected


@pytest.mark.parametrize(
    ("crush", "problem"),
    [
        pytest.param(
            {"version": 2},
            "its version is 2, and this kernel reads version 1",
            id="a later version",
        ),
        pytest.param("<script>alert(1)</script>", "it is no JSON object", id="a text"),
        pytest.param({"version": 1, "run": -1}, "its run is no whole number from 1 up", id="a run"),
        pytest.param(
            {"version": 1, "x": [0] * MAX_VALUES}, "it is too large", id="more than is read"
        ),
    ],
)
def test_a_record_that_cannot_be_read_is_told_in_a_sentence(crush: JsonValue, problem: str) -> None:
    contents = read_cells([{"id": "m", "type": "markdown"}, told(crush=crush)])
    assert contents.problems == (f"Cell 2 has history that cannot be read: {problem}.",)
    assert [cell.turn for cell in contents.cells] == [None, None]


def test_damage_inside_a_record_is_told_in_a_sentence() -> None:
    damaged = record()
    damaged["messages"].append({"role": "user"})
    contents = read_cells([told(crush=damaged)])
    assert said(contents) == ["Hello."]
    assert contents.problems == ("Cell 1 has damaged history: of 2 messages, 1 cannot be read.",)


def test_a_header_that_cannot_be_read_is_told_in_a_sentence() -> None:
    contents = read_cells([], notebook={"version": 3})
    reason = "its version is 3, and this kernel reads version 1"
    problem = f"What the notebook says of its session cannot be read: {reason}."
    assert contents == NotebookContents(problems=(problem,))


def test_more_problems_than_anybody_reads_are_counted() -> None:
    contents = read_cells([told(f"c{number}", crush=5) for number in range(100)])
    assert len(contents.problems) == MAX_PROBLEMS
    assert contents.problems[-1] == "81 more things in it cannot be used as they are."


def test_what_a_notebook_holds_stands_in_no_problem() -> None:
    name = "<b>&`x`" * 50
    cells: list[JsonValue] = [
        told(name, crush=record(f"{name}.1", said="one")),
        told(name, crush=record(f"{name}.1", said="two")),
    ]
    problems = " ".join(read_cells(cells).problems)
    assert problems
    assert problems.isascii()
    assert not set("<>&`") & set(problems)
    assert len(problems) < 400


def test_reading_the_cells_of_a_page_takes_only_so_much_in_all() -> None:
    large = record() | {"x": [0] * (MAX_VALUES // 3)}
    contents = read_cells([told(f"c{number}", crush=large) for number in range(4)])
    assert said(contents) == ["Hello.", "Hello.", None, None]


def test_no_more_cells_are_read_than_a_front_end_shows() -> None:
    contents = read_cells([told(f"c{number}") for number in range(MAX_CELLS + 1)])
    assert len(contents.cells) == MAX_CELLS
    assert contents.problems == ("Only the first 20,000 cells are read.",)


@pytest.mark.parametrize(
    ("cells", "count"),
    [
        pytest.param(None, 0, id="null"),
        pytest.param({"c1": {}}, 0, id="an object"),
        pytest.param([5, told(), None], 1, id="values between cells"),
    ],
)
def test_a_damaged_list_of_cells_is_read_as_far_as_it_goes(cells: JsonValue, count: int) -> None:
    contents = read_cells(cells)
    assert len(contents.cells) == count
    assert contents.problems == ("The list of the cells is damaged.",)


# Files


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        pytest.param(b"[", "it is no JSON text", id="half a text"),
        pytest.param(b"\xff\xfe{}", "it is no JSON text", id="no UTF-8"),
        pytest.param(b"PK\x03\x04", "it is no JSON text", id="an archive"),
        pytest.param(b"[" * 100_000, "it is no JSON text", id="deep"),
        pytest.param(b'{"a":' * 100_000, "it is no JSON text", id="deep objects"),
        pytest.param(b"1" * 5_000, "it is no JSON text", id="a number without end"),
        pytest.param(b"[]", "it is no JSON object", id="a list"),
        pytest.param(b'"nbformat"', "it is no JSON object", id="a text"),
        pytest.param(b"{}", "it has not version 4 of the notebook format", id="an object"),
        pytest.param(
            b'{"nbformat": 3, "worksheets": [{"cells": []}]}',
            "it has not version 4 of the notebook format",
            id="version 3",
        ),
        pytest.param(
            b'{"nbformat": true, "cells": []}',
            "it has not version 4 of the notebook format",
            id="no version",
        ),
    ],
)
def test_a_file_that_is_no_notebook_is_told_in_a_sentence(data: bytes, reason: str) -> None:
    expected = NotebookContents(problems=(f"The notebook cannot be read: {reason}.",))
    assert read_ipynb(data) == expected


@pytest.mark.parametrize(
    ("piece", "size", "reason"),
    [
        pytest.param(b"0,", 22_000_000, "it has too many values", id="a long list"),
        pytest.param(b"[],{}", 6_000_000, "it has too many values", id="many lists"),
        pytest.param(b'"a":0,', 15_000_000, "it has too many values", id="many keys"),
        pytest.param(b'"\\"', 6_000_000, "it is no JSON text", id="texts without end"),
        pytest.param(b" ", MAX_NOTEBOOK_BYTES + 1, "it has more than 100 MB", id="a large file"),
    ],
)
def test_a_file_that_would_take_long_is_not_read(piece: bytes, size: int, reason: str) -> None:
    data = piece * (size // len(piece))
    expected = NotebookContents(problems=(f"The notebook cannot be read: {reason}.",))
    assert read_ipynb(data) == expected


@pytest.mark.parametrize("data", [b"", "", b" \n"])
def test_an_empty_file_is_an_empty_notebook(data: bytes | str) -> None:
    assert read_ipynb(data) == NotebookContents()


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("\ufeff" + ipynb(written(crush=record())), id="a byte order mark"),
        pytest.param(
            ipynb(written("c1", {"x": float("nan")}, crush=record(said="Hello."))),
            id="numbers that JSON has not",
        ),
        pytest.param(
            ipynb(written(crush=record(said="Hello.") | {"x": "[{,:" * 700_000})),
            id="text that looks like many values",
        ),
        pytest.param(
            ipynb(written(crush=record())).replace('"turn"', '"run": 1, "turn"'),
            id="a key twice",
        ),
        pytest.param(
            ipynb(written(crush={**record(), "__proto__": {"run": 9}, "constructor": 5})),
            id="keys that mean something elsewhere",
        ),
        pytest.param(
            ipynb({key: value for key, value in written(crush=record()).items() if key != "id"}),
            id="a cell of version 4.4, without an id",
        ),
    ],
)
def test_odd_files_are_read(text: str) -> None:
    for data in (text, text.encode()):
        assert said(read_ipynb(data)) == ["Hello."]


def test_halves_of_characters_in_a_file_are_replaced() -> None:
    text = ipynb(written("c\ud83d", crush=record(said="a\ud83d")))
    assert "\\ud83d" in text
    contents = read_ipynb(text)
    assert said(contents) == ["a\ufffd"]
    assert contents.cells[0].id == ""


_NAMES = "id type cell_type crush record metadata outputs data version turn run cells messages"
NAMES = st.sampled_from(_NAMES.split(" ")) | WILD
ODD = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 3) | st.floats() | WILD,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=4),
    max_leaves=10,
)
ODD_CELLS = st.builds(told, ODD, type=st.sampled_from(["code", "raw", 5]), crush=ODD, record=ODD)


@st.composite
def odd_files(draw: st.DrawFn) -> str:
    """Draw the text of notebooks, whole or cut off."""
    cells = draw(st.lists(ODD | st.builds(written, ODD, ODD, crush=ODD), max_size=3))
    text = ipynb(*cells, crush=draw(ODD))
    return text[: draw(st.just(len(text)) | st.integers(0, len(text)))]


@given(ODD | st.lists(ODD_CELLS | ODD, max_size=4), ODD)
def test_whatever_a_page_tells_is_read(value: JsonValue, header: JsonValue) -> None:
    contents = read_cells(value, notebook=header)
    assert len(contents.problems) <= MAX_PROBLEMS
    assert all(problem.isascii() and problem.endswith(".") for problem in contents.problems)
    listed = value if isinstance(value, list) else []
    assert len(contents.cells) == sum(isinstance(each, dict) for each in listed)


@given(odd_files())
def test_whatever_a_file_holds_is_read(text: str) -> None:
    contents = read_ipynb(text)
    assert len(contents.problems) <= MAX_PROBLEMS
    assert read_ipynb(text.encode()) == contents


@given(st.binary(max_size=40) | WILD)
def test_noise_is_no_notebook(data: bytes | str) -> None:
    assert read_ipynb(data).cells == ()


def test_a_file_is_read_from_its_folder(tmp_path: Path) -> None:
    path = tmp_path / "a.ipynb"
    path.write_text(ipynb(written(crush=record())), encoding="utf-8")
    assert said(read_notebook_file(path)) == ["Hello."]


def test_a_file_that_is_not_there_holds_nothing(tmp_path: Path) -> None:
    assert read_notebook_file(tmp_path / "none.ipynb") == NotebookContents()


def test_what_is_no_file_is_told_and_not_waited_for(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe.ipynb"
    os.mkfifo(pipe)
    for path in (tmp_path, pipe):
        assert read_notebook_file(path).problems == ("The notebook cannot be read: it is no file.",)
    assert read_notebook_file(Path("a\0b")).problems
