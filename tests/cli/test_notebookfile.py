"""Reading and writing a notebook: what a diff shows, and what happens to the file."""

import json
import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import nbformat as untyped_nbformat
import pytest

from crush_kernel.cli.notebookfile import NotebookFile
from crush_kernel.cli.usage import UsageError
from crush_kernel.errors import CrushKernelError

nbformat: Any = untyped_nbformat

Change = Callable[[dict[str, Any]], object]


def raw(**more: object) -> dict[str, Any]:
    """Return a notebook of two cells as it lies on disk."""
    code: dict[str, Any] = {
        "cell_type": "code",
        "execution_count": None,
        "id": "one",
        "metadata": {},
        "outputs": [],
        "source": ["say\n", "héllo → 世界"],
    }
    text: dict[str, Any] = {
        "cell_type": "markdown",
        "id": "two",
        "metadata": {},
        "source": ["Title"],
    }
    whole: dict[str, Any] = {
        "cells": [code, text],
        "metadata": {},
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    return {**whole, **more}


def write(path: Path, notebook: object) -> Path:
    text = json.dumps(notebook, indent=1, sort_keys=True, ensure_ascii=False) + "\n"
    path.write_text(text, encoding="utf-8")
    return path


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return write(tmp_path / "work.ipynb", raw())


def set_output(notebook: dict[str, Any]) -> None:
    """Change a notebook as a run does."""
    output = nbformat.v4.new_output("stream", text="one\ntwo\n")
    notebook["cells"][0]["outputs"] = [output]


def files(folder: Path) -> list[str]:
    return sorted(entry.name for entry in folder.iterdir())


def test_what_has_not_changed_is_not_written(path: Path) -> None:
    before = path.read_bytes(), path.stat().st_mtime_ns
    file = NotebookFile(path)

    assert not file.save(file.read())

    assert (path.read_bytes(), path.stat().st_mtime_ns) == before


@pytest.mark.parametrize(
    "written",
    [
        pytest.param(json.dumps(raw(), indent=2), id="other indentation"),
        pytest.param(json.dumps(raw()), id="one line, ASCII"),
    ],
)
def test_a_file_that_is_written_otherwise_stays_so_until_something_changes(
    path: Path, written: str
) -> None:
    path.write_text(written, encoding="utf-8")
    file = NotebookFile(path)
    notebook = file.read()

    assert not file.save(notebook)
    assert path.read_text(encoding="utf-8") == written


def test_a_save_changes_only_the_lines_that_say_something_new(path: Path) -> None:
    before = path.read_text(encoding="utf-8").splitlines()
    file = NotebookFile(path)
    notebook = file.read()
    set_output(notebook)

    assert file.save(notebook)
    assert not file.save(notebook), "saved twice"

    after = path.read_text(encoding="utf-8").splitlines()
    assert [line for line in before if line not in after] == ['   "outputs": [],']
    assert [line.strip() for line in after if "one" in line] == ['"id": "one",', '"one\\n",']
    assert path.read_bytes().endswith(b"}\n")
    assert "héllo → 世界" in path.read_text(encoding="utf-8")


def test_half_a_character_survives(path: Path) -> None:
    text = path.read_text(encoding="utf-8").replace("héllo", "h\\ud800llo")
    path.write_text(text, encoding="utf-8")
    file = NotebookFile(path)
    notebook = file.read()
    set_output(notebook)

    assert file.save(notebook)

    assert NotebookFile(path).read()["cells"][0]["source"] == "say\nh\ud800llo → 世界"


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o664])
def test_the_mode_of_the_file_is_kept(path: Path, mode: int) -> None:
    path.chmod(mode)
    save_changed(path)

    assert stat.S_IMODE(path.stat().st_mode) == mode


def test_a_new_file_gets_the_mode_that_the_user_gives_new_files(path: Path, tmp_path: Path) -> None:
    old = os.umask(0o027)
    try:
        save_changed(path, tmp_path / "out.ipynb")
    finally:
        os.umask(old)

    assert stat.S_IMODE((tmp_path / "out.ipynb").stat().st_mode) == 0o640


def test_a_link_stays_a_link_and_its_file_is_written(path: Path, tmp_path: Path) -> None:
    link = tmp_path / "links" / "link.ipynb"
    link.parent.mkdir()
    link.symlink_to(Path("..") / path.name)
    save_changed(link)

    assert link.is_symlink()
    assert "one\\n" in path.read_text(encoding="utf-8")
    assert files(link.parent) == ["link.ipynb"], "the new file is made where the real one is"


def test_nothing_is_left_beside_the_file(path: Path) -> None:
    save_changed(path)

    assert files(path.parent) == ["work.ipynb"]


def save_changed(path: Path, target: Path | None = None) -> None:
    file = NotebookFile(path, target)
    notebook = file.read()
    set_output(notebook)
    assert file.save(notebook)


def test_with_another_target_the_source_stays_and_the_target_is_made_in_any_case(
    path: Path, tmp_path: Path
) -> None:
    before = path.read_bytes()
    target = tmp_path / "out.ipynb"
    file = NotebookFile(path, target)
    notebook = file.read()

    assert file.save(notebook)
    assert target.read_bytes() == before
    assert not file.save(notebook)

    set_output(notebook)
    assert file.save(notebook)
    assert path.read_bytes() == before


def test_what_somebody_else_has_written_meanwhile_is_kept_and_ours_is_put_beside(
    path: Path,
) -> None:
    file = NotebookFile(path)
    notebook = file.read()
    theirs = write(path, raw(metadata={"title": "mine"})).read_bytes()
    set_output(notebook)

    with pytest.raises(CrushKernelError, match="changed by somebody else") as caught:
        file.save(notebook)

    assert path.read_bytes() == theirs
    (aside,) = [name for name in files(path.parent) if name != "work.ipynb"]
    assert aside in caught.value.hint
    assert NotebookFile(path.parent / aside).read() == notebook


def test_a_file_that_was_deleted_meanwhile_is_not_made_anew(path: Path) -> None:
    file = NotebookFile(path)
    notebook = file.read()
    path.unlink()
    set_output(notebook)

    with pytest.raises(CrushKernelError, match="changed by somebody else"):
        file.save(notebook)

    assert "work.ipynb" not in files(path.parent)


def test_a_full_disk_leaves_the_old_file_whole(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    before = path.read_bytes()
    monkeypatch.setattr(os, "fsync", full)

    with pytest.raises(CrushKernelError, match="No space left on device") as caught:
        save_changed(path)

    assert caught.value.hint
    assert path.read_bytes() == before
    assert files(path.parent) == ["work.ipynb"]


# What is no notebook, or no place for one


def without(*keys: str) -> str:
    notebook = raw()
    for key in keys:
        del notebook[key]
    return json.dumps(notebook)


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(b"", id="empty"),
        pytest.param(b"hello", id="text"),
        pytest.param(b"[1]", id="a list"),
        pytest.param(b"7", id="a number"),
        pytest.param(b"null", id="null"),
        pytest.param(b"\xff\xfe", id="no UTF-8"),
        pytest.param(b"{}", id="an empty object"),
        pytest.param(without("cells").encode(), id="no cells"),
        pytest.param(without("metadata").encode(), id="no metadata"),
        pytest.param(without("nbformat_minor").encode(), id="no minor"),
        pytest.param(json.dumps(raw(nbformat=9)).encode(), id="a format of the future"),
        pytest.param(json.dumps(raw(nbformat_minor="x")).encode(), id="a minor that is none"),
        pytest.param(json.dumps(raw(cells=7)).encode(), id="cells that are none"),
        pytest.param(json.dumps(raw(cells=["x"])).encode(), id="a cell that is none"),
        pytest.param(json.dumps(raw(cells=[{"cell_type": "code"}])).encode(), id="half a cell"),
        pytest.param(
            json.dumps(raw(cells=[{"cell_type": "\x1b[31mred"}])).encode(),
            id="hostile to terminals",
        ),
        pytest.param(json.dumps(raw(metadata={"kernelspec": 7})).encode(), id="bad kernelspec"),
        pytest.param(b"[" * 100_000, id="nested too deeply"),
    ],
)
def test_what_is_no_notebook_is_wrong_usage_in_one_safe_sentence(
    tmp_path: Path, content: bytes
) -> None:
    path = tmp_path / "work.ipynb"
    path.write_bytes(content)

    with pytest.raises(UsageError, match="is not a notebook") as caught:
        NotebookFile(path).read()

    assert "\n" not in str(caught.value)
    assert "\x1b" not in str(caught.value)
    assert len(str(caught.value)) < 400


def test_a_missing_notebook_is_wrong_usage_and_a_near_one_is_named(path: Path) -> None:
    with pytest.raises(UsageError, match="there is no notebook") as caught:
        NotebookFile(path.with_suffix("")).read()

    assert "work.ipynb" in caught.value.hint


@pytest.mark.parametrize("make", [Path.mkdir, os.mkfifo], ids=["folder", "pipe"])
def test_what_is_no_file_is_wrong_usage(tmp_path: Path, make: Callable[[Path], None]) -> None:
    make(tmp_path / "work.ipynb")

    with pytest.raises(UsageError, match="it is no file"):
        NotebookFile(tmp_path / "work.ipynb").read()


@pytest.mark.parametrize(
    ("target", "message"),
    [
        pytest.param("nowhere/out.ipynb", "there is no folder", id="no folder"),
        pytest.param(".", "no file that a notebook can be written to", id="a folder"),
        pytest.param("/dev/null", "no file that a notebook can be written to", id="a device"),
    ],
)
def test_a_target_that_makes_no_sense_is_wrong_usage(path: Path, target: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        NotebookFile(path, path.parent / target).check_target()


def deny(_: object, mode: int) -> bool:
    """Stand in for the file system, which refuses root nothing."""
    return mode != os.W_OK


def test_a_read_only_file_is_told_before_anything_is_run(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "access", deny)

    with pytest.raises(CrushKernelError, match="read-only") as caught:
        NotebookFile(path).check_target()

    assert "--output" in caught.value.hint


def test_a_folder_that_cannot_be_written_is_told_before_anything_is_run(path: Path) -> None:
    with pytest.raises(CrushKernelError, match="cannot be written") as caught:
        NotebookFile(path, Path("/proc/out.ipynb")).check_target()

    assert "--output" in caught.value.hint


# Ids and formats


def strip_ids(notebook: dict[str, Any]) -> None:
    for cell in notebook["cells"]:
        del cell["id"]


def same_ids(notebook: dict[str, Any]) -> None:
    for cell in notebook["cells"]:
        cell["id"] = "twin"


def bad_ids(notebook: dict[str, Any]) -> None:
    for cell in notebook["cells"]:
        cell["id"] = "not a valid id"


@pytest.mark.parametrize(
    ("minor", "change", "kept"),
    [
        pytest.param(5, strip_ids, [], id="missing"),
        pytest.param(5, same_ids, ["twin"], id="twice the same"),
        pytest.param(5, bad_ids, [], id="not allowed"),
        pytest.param(4, strip_ids, [], id="format without ids"),
    ],
)
def test_every_cell_gets_an_id_that_is_the_same_in_every_copy(
    tmp_path: Path, minor: int, change: Change, kept: list[str]
) -> None:
    source = raw(nbformat_minor=minor)
    change(source)
    one, other = (write(tmp_path / name, source) for name in ("a.ipynb", "b.ipynb"))

    notebook, copy = NotebookFile(one).read(), NotebookFile(other).read()

    assert notebook == copy
    ids = [cell["id"] for cell in notebook["cells"]]
    assert len(set(ids)) == 2
    assert [each for each in ids if each in kept] == kept
    assert notebook["nbformat_minor"] == 5
    set_output(notebook)
    NotebookFile(one).check_target()
    assert_valid(notebook)


def test_ids_and_the_minor_version_that_are_there_are_kept(tmp_path: Path) -> None:
    path = write(tmp_path / "work.ipynb", raw(nbformat_minor=6))

    notebook = NotebookFile(path).read()

    assert [cell["id"] for cell in notebook["cells"]] == ["one", "two"]
    assert notebook["nbformat_minor"] == 6


def test_an_old_format_is_brought_up_to_date(tmp_path: Path) -> None:
    cell: dict[str, Any] = {
        "cell_type": "code",
        "collapsed": False,
        "input": ["say hello"],
        "language": "markdown",
        "metadata": {},
        "outputs": [],
    }
    old: dict[str, Any] = {
        "metadata": {"name": ""},
        "nbformat": 3,
        "nbformat_minor": 0,
        "worksheets": [{"cells": [cell], "metadata": {}}],
    }
    path = write(tmp_path / "work.ipynb", old)

    notebook = NotebookFile(path).read()

    assert notebook["cells"][0]["source"] == "say hello"
    assert_valid(notebook)


def assert_valid(notebook: dict[str, Any]) -> None:
    assert notebook["nbformat"] == 4
    nbformat.validate(notebook)
