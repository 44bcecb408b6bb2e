"""Fixtures for tests of tools."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fakes.tree import DEEPER_THAN_RECURSION, make_deep_folder


@pytest.fixture
def deep_folder(tmp_path: Path) -> Iterator[Path]:
    """Yield a folder that holds folders called `d` in each other, more than Python can recurse."""
    folder = tmp_path / "deep"
    folder.mkdir()
    make_deep_folder(folder, name="d", levels=DEEPER_THAN_RECURSION)
    yield folder
    # What pytest itself would use to remove it recurses.
    subprocess.run(["rm", "-rf", folder], check=True)
