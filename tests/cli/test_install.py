"""`install`: a kernelspec that starts this very interpreter."""

import json
import sys
from pathlib import Path

import pytest

from crush_kernel.cli import main


def installed(folder: Path, name: str = "crush") -> dict[str, object]:
    place = folder / "share" / "jupyter" / "kernels" / name
    return json.loads((place / "kernel.json").read_text("utf-8"))


def test_the_kernelspec_starts_this_interpreter_by_its_absolute_path(tmp_path: Path) -> None:
    assert main.main(["install", "--prefix", str(tmp_path)]) == 0

    spec = installed(tmp_path)
    assert spec["argv"] == [
        sys.executable, "-P", "-m", "crush_kernel.kernel", "-f", "{connection_file}",
    ]  # fmt: skip
    assert spec["display_name"] == "Crush"
    assert spec["interrupt_mode"] == "message"


def test_the_logos_come_along(tmp_path: Path) -> None:
    main.main(["install", "--prefix", str(tmp_path)])

    place = tmp_path / "share" / "jupyter" / "kernels" / "crush"
    assert {file.name for file in place.iterdir()} == {
        "kernel.json", "logo-svg.svg", "logo-64x64.png", "logo-32x32.png",
    }  # fmt: skip


def test_name_and_display_name_can_be_chosen(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["--name", "crush-lab.2", "--display-name", "Crush für Physik"]

    assert main.main(["install", "--prefix", str(tmp_path), *words]) == 0

    assert installed(tmp_path, "crush-lab.2")["display_name"] == "Crush für Physik"
    assert str(tmp_path) in capsys.readouterr().out


def test_installing_again_replaces_the_former_one(tmp_path: Path) -> None:
    main.main(["install", "--prefix", str(tmp_path), "--display-name", "Old"])
    main.main(["install", "--prefix", str(tmp_path)])

    assert installed(tmp_path)["display_name"] == "Crush"


def test_the_user_s_own_directory_is_the_default_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JUPYTER_DATA_DIR", str(tmp_path))

    assert main.main(["install"]) == 0

    assert (tmp_path / "kernels" / "crush" / "kernel.json").is_file()


def test_a_place_that_cannot_be_written_is_a_failure_with_advice(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("", "utf-8")

    assert main.main(["install", "--prefix", str(blocked)]) == 1

    error = capsys.readouterr().err
    assert "cannot be written" in error
    assert "Choose another place" in error
