"""What the wheel and its JupyterLab extension are made of."""

import json
import re
import zipfile
from pathlib import Path
from typing import Any

import pytest
from hatchling.builders.wheel import WheelBuilder

from crush_kernel import __version__

ROOT = Path(__file__).parents[2]
EXTENSION = ROOT / "labextension"


def read_json(path: Path) -> dict[str, Any]:
    return json.loads(path.read_text("utf-8"))


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> zipfile.Path:
    """The wheel as it would be published; the extension must be built, as an install does."""
    if not (EXTENSION / "dist" / "package.json").is_file():
        pytest.skip("the JupyterLab extension is not built: run `python -m pip install -e .`")
    folder = tmp_path_factory.mktemp("wheel")
    [built] = WheelBuilder(str(ROOT)).build(directory=str(folder), versions=["standard"])
    return zipfile.Path(built)


def data_of(wheel: zipfile.Path) -> zipfile.Path:
    return wheel / f"crush_kernel-{__version__}.data" / "data" / "share" / "jupyter"


def test_package_and_extension_have_one_version() -> None:
    assert read_json(EXTENSION / "package.json")["version"] == __version__
    assert read_json(EXTENSION / "package-lock.json")["version"] == __version__


def test_no_registry_is_written_into_the_project() -> None:
    for name in ("package-lock.json", ".npmrc", "package.json"):
        text = (EXTENSION / name).read_text("utf-8")
        assert not re.search(r"https?://[^\s\"]*(registry|npmjs|yarnpkg)", text), name
    assert "omit-lockfile-registry-resolved=true" in (EXTENSION / ".npmrc").read_text("utf-8")


def test_the_wheel_brings_the_kernelspec(wheel: zipfile.Path) -> None:
    place = data_of(wheel) / "kernels" / "crush"

    spec = json.loads((place / "kernel.json").read_text("utf-8"))
    assert spec["argv"][:4] == ["python", "-P", "-m", "crush_kernel.kernel"]
    assert spec["argv"][4:] == ["-f", "{connection_file}"]
    assert spec["language"] == "markdown"
    assert spec["interrupt_mode"] == "message"
    assert spec["metadata"]["supported_encryption"] == ["curve"]
    assert (place / "logo-svg.svg").exists()


def test_the_wheel_brings_the_built_extension(wheel: zipfile.Path) -> None:
    place = data_of(wheel) / "labextensions" / "crush-kernel"

    manifest = json.loads((place / "package.json").read_text("utf-8"))
    assert (place / manifest["jupyterlab"]["_build"]["load"]).exists()
    assert json.loads((place / "install.json").read_text("utf-8"))["packageName"] == "crush-kernel"


def test_the_wheel_brings_the_notebooks_but_nothing_private(wheel: zipfile.Path) -> None:
    names = [
        entry.removeprefix("/") for entry in zipfile.ZipFile(str(wheel.root.filename)).namelist()
    ]

    assert "crush_kernel/notebooks/tour.ipynb" in names
    private = [name for name in names if re.search(r"/\.|__pycache__|node_modules|\.db(-|$)", name)]
    assert private == []
    assert {name.split("/")[0].split("-")[0] for name in names} == {"crush_kernel"}


def test_the_three_commands_are_entry_points_of_one_program(wheel: zipfile.Path) -> None:
    entry_points = wheel / f"crush_kernel-{__version__}.dist-info" / "entry_points.txt"

    text = entry_points.read_text("utf-8")
    assert "crush-kernel = crush_kernel.cli.main:main" in text
    assert "jupyter-crush = crush_kernel.cli.main:main" in text
