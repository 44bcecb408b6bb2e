"""What is said of mistakes in configuration files: enough to mend them, and no flood."""

import json
from pathlib import Path

import pytest

from crush_kernel.config.settings import read_settings
from crush_kernel.safety import MAX_WARNINGS, Safety, open_safety
from crush_kernel.tools.paths import PathPolicy


def opened(tmp_path: Path, document: object) -> Safety:
    home, root = tmp_path / "home", tmp_path / "project"
    home.mkdir()
    root.mkdir()
    (root / "crush.json").write_text(json.dumps(document))
    paths = PathPolicy(root=root, cwd=root, own=())
    return open_safety(read_settings({"HOME": str(home)}), paths, data=root / ".crush")


@pytest.mark.parametrize(
    "document",
    [
        pytest.param({"permissions": {f"key {n}": 1 for n in range(20_000)}}, id="keys"),
        pytest.param({"permissions": {"deny": [f"no rule {n}" for n in range(9_000)]}}, id="rules"),
        pytest.param({"permissions": {"ask": [f"tool{n}" for n in range(9_000)]}}, id="tools"),
        pytest.param({"permissions": {"deny": [[n] for n in range(9_000)]}}, id="no texts"),
        pytest.param({"options": {"disabled_tools": [[n] for n in range(9_000)]}}, id="no names"),
        pytest.param({"permissions": {"x" * 400_000: 1}}, id="a long key"),
        pytest.param({"permissions": {"deny": ["x " * 200_000]}}, id="a long rule"),
        pytest.param({"permissions": {"mode": "x" * 400_000}}, id="a long mode"),
    ],
)
def test_a_strangers_file_does_not_flood_the_first_turn(tmp_path: Path, document: object) -> None:
    warnings = opened(tmp_path, document).warnings
    assert 1 <= len(warnings) <= MAX_WARNINGS + 1
    assert sum(map(len, warnings)) < 500 * (MAX_WARNINGS + 1)


def test_how_much_more_there_is_is_said(tmp_path: Path) -> None:
    safety = opened(tmp_path, {"permissions": {"deny": [f"no rule {n}" for n in range(30)]}})
    assert safety.warnings[-1] == "10 more things in configuration files do not count."
