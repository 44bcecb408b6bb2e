"""Without anybody watching: nbclient, jupyter execute, nbconvert and papermill."""

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import nbclient
import nbformat
import pytest

from crush_kernel.history.notebook import RECORD_MIME_TYPE
from crush_kernel.history.record import read_turn
from crush_kernel.messages import ShellCommand, text_of
from tests.fakes import headless
from tests.fakes.headless import PROGRAMS, Program, Run, markdown
from tests.fakes.offline import LONG, offline_script, turn, wants

pytestmark = pytest.mark.slow

SCRIPT = (
    turn("say hello", {"text": "Hello **there**."}),
    turn(
        "read",
        {"text": "I look.", **wants("ls", path=".")},
        wants("view", file_path="plan.md"),
        wants("grep", pattern="bread"),
        {"text": "It is a plan."},
    ),
    turn(
        "make a file",
        wants("write", file_path="new.txt", content="made\n"),
        [{"if_denied": True, "text": "As you like."}, {"text": "It is made."}],
    ),
    turn(
        "run it",
        wants("bash", command="touch ran.txt", description="run it"),
        [{"if_denied": True, "text": "Nobody let me: {result}"}, {"text": "It ran."}],
    ),
    turn("fail", {"text": "So far so good.", "error": "authentication_failed"}),
    turn("wait", {"text": "One moment.", "delay_s": LONG}),
    turn("sleep", wants("bash", command="echo begun; sleep 631", description="wait")),
)
CELLS = ["say hello", "read", "make a file", "run it", "/status", "!echo out"]

each_command = pytest.mark.parametrize("program", PROGRAMS[1:], ids=lambda program: program.name)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    folder = tmp_path / "home"
    folder.mkdir()
    return folder


def environment(home: Path, mode: str = "") -> dict[str, str]:
    more = offline_script(home, *SCRIPT)
    return headless.environment(home, **more, **({"CRUSH_PERMISSION_MODE": mode} if mode else {}))


def notebook_in(folder: Path, cells: list[str]) -> Path:
    source = headless.write(folder / "work.ipynb", cells)
    (folder / "plan.md").write_text("buy bread\n", encoding="utf-8")
    return source


def shown(run: Run) -> list[str]:
    """Return what each cell shows, without what differs from run to run and place to place."""
    varies = r"\d+(\.\d+)? s\b|/\S*/case\b|&#126;[\d.]+( k)?|[\d.]+( k)? tokens"
    return [re.sub(varies, "…", markdown(cell)) for cell in run.notebook.cells]


@pytest.fixture(scope="module")
def reference(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """The notebook as nbclient runs it, with edits allowed and commands not."""
    return executed(PROGRAMS[0], tmp_path_factory.mktemp("reference"))


def executed(program: Program, folder: Path) -> Run:
    home = folder / "home"
    home.mkdir(exist_ok=True)
    source = notebook_in(folder / "case", CELLS)
    return program.run(source, folder / "out.ipynb", environment(home, "accept-edits"))


def test_text_tools_edits_and_commands_run_unattended(reference: Run) -> None:
    assert reference.exit_code == 0, reference.log
    hello, read, made, ran, status, shell = reference.notebook.cells
    assert "Hello **there**." in markdown(hello)
    for fact in ("I look.", "plan.md", "buy bread", "1 match", "It is a plan."):
        assert fact in markdown(read)
    assert "It is made." in markdown(made)
    assert "accept-edits" in markdown(made)
    assert "Nobody let me" in markdown(ran)
    assert "CRUSH_PERMISSION_MODE" in markdown(ran)
    assert "accept-edits" in markdown(status)
    assert "out" in markdown(shell)
    folder = reference.target.parent / "case"
    assert (folder / "new.txt").read_text(encoding="utf-8") == "made\n"
    assert not (folder / "ran.txt").exists()


@each_command
def test_every_program_brings_the_same_results(
    program: Program, reference: Run, tmp_path: Path
) -> None:
    run = executed(program, tmp_path)

    assert run.exit_code == 0, run.log
    assert shown(run) == shown(reference)
    assert [cell.execution_count for cell in run.notebook.cells] == [1, 2, 3, 4, 5, 6]
    assert_plain(run.notebook)


def test_no_widget_and_no_state_of_one_is_saved(reference: Run) -> None:
    assert_plain(reference.notebook)


def assert_plain(notebook: Any) -> None:  # noqa: ANN401 - nbformat carries no types
    nbformat.validate(notebook)
    assert "widgets" not in notebook.metadata
    outputs = [output for cell in notebook.cells for output in cell.outputs]
    assert {output.output_type for output in outputs} == {"display_data"}
    kinds = {kind for output in outputs for kind in output.data}
    assert kinds == {"text/markdown", "text/plain", RECORD_MIME_TYPE}


def test_every_turn_is_kept_in_the_last_output_of_its_cell(reference: Run) -> None:
    hello, read, made, ran, status, shell = reference.notebook.cells
    for number, cell in enumerate((hello, read, made, ran), start=1):
        assert [RECORD_MIME_TYPE in output.data for output in cell.outputs][-1]
        assert sum(RECORD_MIME_TYPE in output.data for output in cell.outputs) == 1
        turn = read_turn(cell.outputs[-1].data[RECORD_MIME_TYPE], cell_id="")
        assert (turn.id, turn.end) == (f"#{number}.1", "end_turn")
        assert text_of(turn.messages[0]) == cell.source
    assert not any(RECORD_MIME_TYPE in output.data for output in status.outputs)
    command = read_turn(shell.outputs[-1].data[RECORD_MIME_TYPE], cell_id="")
    assert command.messages[0].parts == (ShellCommand("echo out", "out\n", 0),)


def test_nbconvert_makes_a_page_that_reads_without_a_kernel(home: Path, tmp_path: Path) -> None:
    source = notebook_in(tmp_path / "case", CELLS)
    command = ["-m", "jupyter", "nbconvert", "--execute", "--to", "html", str(source)]
    done = subprocess.run(
        [sys.executable, *command],
        env=environment(home, "accept-edits"),
        check=False,
        capture_output=True,
        text=True,
        timeout=headless.LIMIT_S,
    )

    assert done.returncode == 0, done.stderr
    page = source.with_suffix(".html").read_text(encoding="utf-8")
    for fact in ("Hello <strong>there</strong>.", "It is a plan.", "It is made.", "<summary>"):
        assert fact in page
    assert "widget-state+json" not in page
    assert "widget-view+json" not in page


@each_command
def test_a_failed_turn_makes_the_program_fail_and_a_denied_call_does_not(
    program: Program, home: Path, tmp_path: Path
) -> None:
    cells = ["make a file", "run it", "fail", "!touch later.txt"]
    source = notebook_in(tmp_path / "case", cells)

    run = program.run(source, tmp_path / "out.ipynb", environment(home))

    assert run.exit_code != 0
    assert "AuthenticationFailed" in run.log
    files = {path.name for path in source.parent.iterdir()} - {".crush"}
    assert files == {"plan.md", "work.ipynb"}, "what was denied, or follows the failure, was run"
    if program.name == "papermill":  # which keeps what came before the failure
        by_source = {cell.source: cell for cell in run.notebook.cells}
        made, ran, failed = (by_source[source] for source in cells[:3])
        assert "As you like." in markdown(made)
        assert "Nobody let me" in markdown(ran)
        assert "So far so good." in markdown(failed)
        errors = [output.ename for output in failed.outputs if "ename" in output]
        assert errors == ["AuthenticationFailed"]


def test_papermill_says_that_it_has_no_parameters_for_prompts_and_runs_nothing(
    home: Path, tmp_path: Path
) -> None:
    source = notebook_in(tmp_path / "case", ["!touch ran.txt"])
    command = ["-m", "papermill", str(source), str(tmp_path / "out.ipynb"), "-p", "name", "x"]
    done = subprocess.run(
        [sys.executable, *command],
        env=environment(home, "yolo"),
        cwd=source.parent,
        check=False,
        capture_output=True,
        text=True,
        timeout=headless.LIMIT_S,
    )

    assert done.returncode != 0
    assert "No parameter translator functions specified" in done.stderr
    assert "crush" in done.stderr
    assert not (source.parent / "ran.txt").exists()


SLOW = {"wait": "interrupted", "!echo begun; sleep 631": "begun", "sleep": "begun"}
"""Cells that outlast any patience, and what they show when they are stopped."""


def patience_s(cell: Any) -> int:  # noqa: ANN401 - nbformat carries no types
    return 2 if cell.source in SLOW else 40


def test_a_cell_that_takes_too_long_is_interrupted_and_the_next_one_runs(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in environment(home, "yolo").items():
        monkeypatch.setenv(name, value)
    source = notebook_in(tmp_path / "case", ["say hello", *SLOW, "say hello"])
    client = nbclient.NotebookClient(
        headless.read(source),
        timeout_func=patience_s,
        interrupt_on_timeout=True,
        allow_errors=True,
        resources={"metadata": {"path": str(source.parent)}},
    )

    notebook: Any = client.execute()

    for cell in notebook.cells[1:-1]:
        assert SLOW[cell.source] in markdown(cell)
        assert "interrupted" in markdown(cell)
    assert "Hello **there**." in markdown(notebook.cells[-1])
    assert_plain(notebook)
    assert not headless.is_running("631")


def test_a_client_that_gives_up_leaves_no_child(home: Path, tmp_path: Path) -> None:
    source = notebook_in(tmp_path / "case", ["!echo begun; sleep 632"])
    command = ["-m", "jupyter", "execute", "--timeout=2", str(source)]
    done = subprocess.run(
        [sys.executable, *command],
        env=environment(home),
        check=False,
        capture_output=True,
        text=True,
        timeout=headless.LIMIT_S,
    )

    assert done.returncode != 0
    assert "CellTimeoutError" in done.stderr
    assert not headless.is_running("632")
