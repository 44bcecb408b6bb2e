"""The bundled notebooks, run from top to bottom in a real kernel that needs no key."""

import json
import shutil
from collections.abc import Generator
from pathlib import Path

import pytest

from tests.fakes import clicks, headless
from tests.fakes.clicks import ALLOW, DENY, Press
from tests.fakes.headless import PROGRAMS, markdown
from tests.fakes.kernel import Cell, RunningKernel, running_kernel

pytestmark = pytest.mark.slow

SOURCE = Path(__file__).parents[2] / "notebooks"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    folder = tmp_path / "home"
    folder.mkdir()
    return folder


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """A copy of the notebooks and their folders that a test may change."""
    return shutil.copytree(
        SOURCE,
        tmp_path / "notebooks",
        ignore=shutil.ignore_patterns("__pycache__", ".ipynb_checkpoints", ".crush"),
    )


@pytest.fixture
def kernel(copy: Path, home: Path) -> Generator[RunningKernel]:
    """A kernel as it starts on a machine without keys, servers and settings."""
    with running_kernel(cwd=copy, home=home) as running:
        yield running


def run(kernel: RunningKernel, name: str, presses: dict[str, tuple[Press, ...]]) -> list[Cell]:
    """Run the cells of the notebook `name`; `presses` says what is done with which one's cards."""
    notebook = json.loads((SOURCE / f"{name}.ipynb").read_text(encoding="utf-8"))
    code = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    assert presses.keys() <= {cell["id"] for cell in code}
    return [
        clicks.run(kernel, "".join(cell["source"]), presses.get(cell["id"], ()), cell_id=cell["id"])
        for cell in code
    ]


def test_the_session_goes_on_after_a_restart_changes_and_starts_afresh(
    copy: Path, home: Path
) -> None:
    # What the server tells the kernel of the notebook that it is started for.
    environ = {"JPY_SESSION_NAME": str(copy / "persistence.ipynb")}
    notebook = json.loads(text(SOURCE, "persistence.ipynb"))
    source = {cell["id"]: "".join(cell["source"]) for cell in notebook["cells"]}

    with running_kernel(cwd=copy, home=home, env=environ) as first:
        for cell in ("keep-say", "keep-shell"):
            assert first.run(source[cell], cell_id=cell).status == "ok"
    with running_kernel(cwd=copy, home=home, env=environ) as second:
        rest = list(source)[list(source).index("keep-recall") :]
        shown = {
            cell: second.run(source[cell], cell_id=cell).markdown
            for cell in rest
            if not cell.endswith(("-text", "-next"))
        }
        ten = source["keep-say"].replace("nine", "ten")
        changed = [
            second.run(ten, cell_id="keep-say"),
            *(second.run(source[cell], cell_id=cell) for cell in ("keep-recall", "keep-versions")),
        ]

    assert "I will: it stands in this cell now" in changed[0].markdown
    assert "the shop opens at ten" in changed[1].markdown
    assert "| 2 | What have we done so far in this notebook?" in changed[2].markdown
    assert "the shop opens at nine" in shown["keep-recall"]
    assert "ls tour" in shown["keep-recall"]
    assert "| 1 | What have we done so far in this notebook?" in shown["keep-versions"]
    assert "after a restart too" in shown["keep-replay"]
    assert "Nothing yet" in shown["keep-after"]


def text(folder: Path, name: str) -> str:
    return (folder / name).read_text(encoding="utf-8")


def test_the_tour_with_every_edit_allowed(kernel: RunningKernel, copy: Path) -> None:
    cells = run(kernel, "tour", {"tour-edit": (ALLOW,)})

    assert [cell.status for cell in cells] == ["ok"] * 5
    hello, tool, edit, undo, reopen = (cell.markdown for cell in cells)
    assert "not a language model" in hello
    assert "<b>view</b> tour/price.py" in tool
    assert "+TAX_RATE = 0.25" in edit
    assert "allowed once" in edit
    assert "0.25 now" in edit
    assert "Taken back: “In tour/price.py, raise" in undo
    assert "`tour/price.py` · restored" in undo
    assert "edited `tour/price.py`" in reopen
    assert "`/undo` – you have taken back" in reopen
    assert text(copy, "tour/price.py") == text(SOURCE, "tour/price.py")


def test_the_tour_with_every_edit_denied(kernel: RunningKernel, copy: Path) -> None:
    cells = run(kernel, "tour", {"tour-edit": (Press(DENY.button, "prices are final"),)})

    assert [cell.status for cell in cells] == ["ok"] * 5
    _, _, edit, undo, reopen = (cell.markdown for cell in cells)
    assert "prices are final" in edit
    assert "There is nothing to take back" in undo
    assert "denied" in reopen
    assert text(copy, "tour/price.py") == text(SOURCE, "tour/price.py")


def test_the_failing_test_is_fixed_and_the_bug_put_back(kernel: RunningKernel, copy: Path) -> None:
    broken = kernel.run("!python3 -m unittest discover -s shop", cell_id="before").markdown
    allowed = {"fix-the-test": (ALLOW, ALLOW), "fix-put-back": (ALLOW,)}

    fix, put_back = run(kernel, "fix-a-test", allowed)

    assert "FAILED (failures=1)" in broken
    assert (fix.status, put_back.status) == ("ok", "ok")
    assert fix.markdown.count("allowed once") == 2
    assert "Ran 2 tests" in fix.markdown
    assert "The test passes now" in fix.markdown
    assert "bug is back" in put_back.markdown
    assert text(copy, "shop/price.py") == text(SOURCE, "shop/price.py")


def test_the_fix_without_permission_is_described(kernel: RunningKernel, copy: Path) -> None:
    fix, put_back = run(kernel, "fix-a-test", {"fix-the-test": (DENY,)})

    assert (fix.status, put_back.status) == ("ok", "ok")
    assert "round(amount * (1 - discount), 2)" in fix.markdown
    assert text(copy, "shop/price.py") == text(SOURCE, "shop/price.py")


def test_the_notebooks_run_unattended_with_edits_allowed_and_commands_denied(
    copy: Path, home: Path, tmp_path: Path
) -> None:
    environ = headless.environment(home, CRUSH_PERMISSION_MODE="accept-edits")

    tour = PROGRAMS[0].run(copy / "tour.ipynb", tmp_path / "tour.ipynb", environ)
    fix = PROGRAMS[0].run(copy / "fix-a-test.ipynb", tmp_path / "fix.ipynb", environ)

    assert (tour.exit_code, fix.exit_code) == (0, 0), tour.log + fix.log
    code = {
        cell.id: markdown(cell)
        for run in (tour, fix)
        for cell in run.notebook.cells
        if "outputs" in cell
    }
    assert "0.25 now" in code["tour-edit"]
    assert "`tour/price.py` · restored" in code["tour-undo"]
    assert "<b>edit</b> shop/price.py" in code["fix-the-test"]
    assert "nobody can be asked here" in code["fix-the-test"]
    assert "bug is back" in code["fix-put-back"]
    for name in ("tour/price.py", "shop/price.py"):
        assert text(copy, name) == text(SOURCE, name)
