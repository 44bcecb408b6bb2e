"""A folder in which the user may write nothing: one clear sentence, and turns all the same."""

import os
import shutil
from collections.abc import Generator
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from tests.fakes.kernel import RunningKernel, running_kernel
from tests.fakes.offline import offline_script

# Root writes everywhere, unless it is started without the right to.
ORDINARY = (
    "setpriv",
    "--bounding-set=-dac_override,-dac_read_search,-fowner",
    "--inh-caps=-all",
)

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        os.name == "nt" or (os.geteuid() == 0 and shutil.which(ORDINARY[0]) is None),
        reason="nobody here can be kept from writing",
    ),
]


@pytest.fixture
def folder(tmp_path: Path) -> Generator[Path]:
    """A project with one file, read-only in the end."""
    cwd = tmp_path / "cwd"
    cwd.mkdir()
    (cwd / "plan.md").write_text("buy bread\n", encoding="utf-8")
    yield cwd
    for path in (cwd, *cwd.rglob("*")):
        path.chmod(0o700)


def close(folder: Path) -> None:
    """Take all rights to write from everybody."""
    for path in (folder, *folder.rglob("*")):
        path.chmod(0o555 if path.is_dir() else 0o444)


def running(folder: Path) -> AbstractContextManager[RunningKernel]:
    """Return a context of a kernel whose user may not write what nobody may write."""
    home = folder.parent / "home"
    home.mkdir(exist_ok=True)
    env = {
        **offline_script(home),
        "CRUSH_PERMISSION_MODE": "yolo",
        "JPY_SESSION_NAME": str(folder / "nb.ipynb"),
    }
    launcher = ORDINARY if os.geteuid() == 0 else ()
    return running_kernel(cwd=folder, home=home, env=env, launcher=launcher)


def test_turns_work_in_a_read_only_folder_and_the_user_is_told_once(folder: Path) -> None:
    close(folder)
    with running(folder) as kernel:
        told, *others = [kernel.run("look", cell_id=f"cell-{n}") for n in range(3)]
        wrote = kernel.run("make a file", cell_id="cell-3")
        shell = kernel.run("!echo here; touch new.txt", cell_id="cell-4")
        status = kernel.run("/status", cell_id="cell-5")
        versions = kernel.run("/versions", cell_id="cell-6")

    assert {cell.status for cell in (told, *others, wrote, shell, status)} == {"ok"}
    assert "plan.md" in told.markdown
    assert told.markdown.count("is not kept: Permission denied. Turns work as usual") == 1
    assert all("is not kept" not in cell.markdown for cell in others)
    assert "is read-only." in wrote.markdown
    assert "here" in shell.markdown
    assert "| turns | 5" in status.markdown
    assert versions.reply["content"]["evalue"] == "The journal knows no run of the cell above."
    assert [path.name for path in folder.iterdir()] == ["plan.md"]


def test_a_journal_that_is_read_only_now_is_read_or_said_to_be_lost(folder: Path) -> None:
    with running(folder) as kernel:
        assert kernel.run("hello", cell_id="cell-0").status == "ok"
    close(folder)
    with running(folder) as kernel:
        again = kernel.run("hello", cell_id="cell-1")
        assert again.status == "ok"
        assert "is not kept" in again.markdown
        assert kernel.run("look", cell_id="cell-2").status == "ok"


def test_a_folder_that_cannot_be_read_is_named_and_turns_work(folder: Path) -> None:
    with running(folder) as kernel:
        folder.chmod(0o000)
        look = kernel.run("look", cell_id="cell-0")
        shell = kernel.run("!pwd", cell_id="cell-1")
        hello = kernel.run("hello", cell_id="cell-2")
    assert (look.status, hello.status) == ("ok", "ok")
    assert "cannot be" in look.markdown
    assert shell.status == "ok" or shell.reply["content"]["evalue"].endswith(".")
    assert "Hello **there**." in hello.markdown
