"""`lab`: which notebook is opened, and how JupyterLab is started."""

import os
from pathlib import Path

import pytest

from crush_kernel.cli.lab import find_tour, root_options
from crush_kernel.errors import CrushKernelError


@pytest.fixture
def packaged(tmp_path: Path) -> Path:
    """Notebooks as they lie in an installed package: read-only, with a stray hidden folder."""
    folder = tmp_path / "site-packages" / "notebooks"
    (folder / "shop").mkdir(parents=True)
    (folder / "tour.ipynb").write_text("{}", "utf-8")
    (folder / "tour.ipynb").chmod(0o444)
    (folder / "shop" / "price.py").write_text("x = 1\n", "utf-8")
    (folder / "shop" / "__pycache__").mkdir()
    (folder / ".crush").mkdir()
    (folder / ".crush" / "notebooks.db").write_text("private", "utf-8")
    return folder


@pytest.fixture
def cwd(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    folder.mkdir()
    return folder


def test_the_tour_of_the_checkout_in_the_current_folder_is_opened_in_place(
    packaged: Path, cwd: Path
) -> None:
    (cwd / "crush_kernel").mkdir()
    (cwd / "notebooks").mkdir()
    (cwd / "notebooks" / "tour.ipynb").write_text("{}", "utf-8")

    assert find_tour(cwd, packaged) == cwd / "notebooks" / "tour.ipynb"
    assert not (cwd / "crush-tour").exists()


def test_elsewhere_a_writable_copy_is_made_and_named(
    packaged: Path, cwd: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tour = find_tour(cwd, packaged)

    assert tour == cwd / "crush-tour" / "tour.ipynb"
    assert tour.stat().st_mode & 0o200
    assert (cwd / "crush-tour" / "shop" / "price.py").read_text("utf-8") == "x = 1\n"
    assert str(cwd / "crush-tour") in capsys.readouterr().out


def test_hidden_and_compiled_files_are_not_copied(packaged: Path, cwd: Path) -> None:
    find_tour(cwd, packaged)

    assert not (cwd / "crush-tour" / ".crush").exists()
    assert not (cwd / "crush-tour" / "shop" / "__pycache__").exists()


def test_a_folder_of_the_users_with_a_tour_of_its_own_is_not_taken_for_a_checkout(
    packaged: Path, cwd: Path
) -> None:
    (cwd / "notebooks").mkdir()
    (cwd / "notebooks" / "tour.ipynb").write_text("{}", "utf-8")

    assert find_tour(cwd, packaged) == cwd / "crush-tour" / "tour.ipynb"


def test_a_copy_that_was_run_is_opened_as_it_is(packaged: Path, cwd: Path) -> None:
    tour = find_tour(cwd, packaged)
    tour.write_text('{"mine": true}', "utf-8")

    assert find_tour(cwd, packaged).read_text("utf-8") == '{"mine": true}'


def test_a_file_in_the_way_of_the_copy_is_a_clear_failure(packaged: Path, cwd: Path) -> None:
    (cwd / "crush-tour").write_text("mine", "utf-8")

    with pytest.raises(CrushKernelError, match="cannot be copied") as caught:
        find_tour(cwd, packaged)

    assert caught.value.hint
    assert (cwd / "crush-tour").read_text("utf-8") == "mine"


def test_an_installation_without_a_tour_says_so(tmp_path: Path, cwd: Path) -> None:
    with pytest.raises(CrushKernelError, match="has no tour"):
        find_tour(cwd, tmp_path / "nowhere")


@pytest.mark.parametrize(
    ("user_id", "options", "added"),
    [
        pytest.param(0, [], ["--allow-root"], id="root"),
        pytest.param(0, ["--allow-root"], [], id="root who says so"),
        pytest.param(0, ["--allow-root=False"], [], id="root who says no"),
        pytest.param(1000, [], [], id="a user"),
    ],
)
def test_root_gets_what_jupyterlab_needs_to_start(
    monkeypatch: pytest.MonkeyPatch, user_id: int, options: list[str], added: list[str]
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: user_id)

    assert root_options(options) == added
