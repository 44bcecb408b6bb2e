"""What counts as only reading, run for real: nothing in the folder changes."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.permissions.shell.programlines import READ_ONLY, lines_of

LINES = [line for _, line in lines_of(READ_ONLY)]
LEFT_OUT = ("tail -f log", "pip check", "pip3 show requests", "pip show -f requests")
"""Without an end, or slow and run in another form."""

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a repository with the files that the lines name, in a home of its own."""
    root = tmp_path_factory.mktemp("place")
    for name in ("src", "tests", "sub", "src/a", ".git-not"):
        (root / name).mkdir()
    for name in ("a", "b", "a.txt", "b.txt", "log", "setup.py", "src/a.py", "sums", "link", "x"):
        (root / name).write_text("foo,1\nbar,2\n")
    (root / "f.json").write_text('{"a": [{"b": 1}]}')
    (root / "-odd").write_text("odd")
    for line in ("init -q -b main", "add .", "commit -q -m one", "tag v1"):
        _run(f"git -c user.name=a -c user.email=a@b.invalid {line}", root)
    shutil.copytree(root / ".git", root / "sub" / ".git")
    return root


@pytest.mark.skipif(os.name != "posix", reason="needs bash")
@pytest.mark.parametrize("line", [line for line in LINES if line not in LEFT_OUT])
def test_what_only_reads_changes_nothing(line: str, folder: Path) -> None:
    before = _tree(folder)
    _run(line, folder)
    assert _tree(folder) == before


def _run(line: str, folder: Path) -> None:
    environ = {"PATH": os.environ["PATH"], "HOME": str(folder), "LC_ALL": "C", "file": "a"}
    subprocess.run(
        ["bash", "-c", line],
        cwd=folder,
        env=environ,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=20,
        check=False,
    )


def _tree(folder: Path) -> dict[str, object]:
    """Return all that is in `folder`, without what git keeps to be faster."""
    found: dict[str, object] = {}
    for place, names, files in os.walk(folder):
        for name in (*names, *files):
            path = Path(place, name)
            state = path.lstat()
            is_index = path.name == "index" or (path.name == ".git" and path.is_dir())
            content = path.read_bytes() if path.is_file() and not is_index else b""
            stamp = 0 if is_index else state.st_mtime_ns
            found[str(path)] = (state.st_mode, stamp, content)
    return found
