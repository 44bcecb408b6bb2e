"""The command line as a user meets it: usage, exit codes, streams."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from crush_kernel import __version__
from crush_kernel.cli import lab, main
from crush_kernel.errors import CrushKernelError


def crush(*words: str, cwd: Path | None = None, **environ: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "crush_kernel", *words],
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2]), **environ},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
        check=False,
    )


def test_version_is_printed_with_the_program_name() -> None:
    done = crush("--version")

    assert (done.returncode, done.stdout) == (0, f"crush-kernel {__version__}\n")


def test_help_names_every_command_and_gives_examples() -> None:
    done = crush("--help")

    assert done.returncode == 0
    for command in ("lab", "run", "doctor", "models", "install", "examples:"):
        assert command in done.stdout


@pytest.mark.parametrize(
    "words",
    [
        pytest.param((), id="no command"),
        pytest.param(("fly",), id="unknown command"),
        pytest.param(("models", "--xml"), id="unknown option"),
        pytest.param(("run",), id="no notebook"),
        pytest.param(("run", "nowhere.ipynb"), id="no such notebook"),
        pytest.param(("run", __file__), id="not a notebook"),
        pytest.param(("run", "a.ipynb", "--timeout", "0"), id="no time at all"),
        pytest.param(("run", "a.ipynb", "--timeout", "nan"), id="a time that is no number"),
        pytest.param(("run", "a.ipynb", "--timeout", "soon"), id="a time in words"),
        pytest.param(("run", "a.ipynb", "--permission-mode", "all"), id="unknown mode"),
        pytest.param(("install", "--user", "--sys-prefix"), id="two places"),
        pytest.param(("install", "--name", "no spaces"), id="bad kernelspec name"),
        pytest.param(("install", "--name", "../up"), id="path as kernelspec name"),
        pytest.param(("install", "--name", ""), id="empty kernelspec name"),
    ],
)
def test_wrong_usage_exits_with_2_and_explains_on_stderr(words: tuple[str, ...]) -> None:
    done = crush(*words)

    assert done.returncode == 2
    assert done.stdout == ""
    assert "crush" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_failure_exits_with_1_and_says_what_to_do(tmp_path: Path) -> None:
    done = crush("lab", "nowhere.ipynb", cwd=tmp_path)

    assert done.returncode == 1
    assert "there is no 'nowhere.ipynb'" in done.stderr
    assert "Without a path, `lab` opens the tour." in done.stderr


def test_an_interrupt_exits_with_130(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(_: object) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr(lab, "run", interrupted)

    assert main.main(["lab"]) == 130


def test_a_hint_follows_the_failure(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def failing(_: object) -> int:
        raise CrushKernelError("it broke", hint="Mend it.")

    monkeypatch.setattr(lab, "run", failing)

    assert main.main(["lab"]) == 1
    assert capsys.readouterr().err.endswith(": it broke\nMend it.\n")


@pytest.mark.parametrize(
    ("words", "path", "for_jupyterlab"),
    [
        pytest.param(["lab"], None, [], id="nothing"),
        pytest.param(["lab", "a.ipynb"], Path("a.ipynb"), [], id="a path"),
        pytest.param(["lab", "--no-browser"], None, ["--no-browser"], id="an option"),
        pytest.param(
            ["lab", "a.ipynb", "--port", "9000"], Path("a.ipynb"), ["--port", "9000"], id="both"
        ),
        pytest.param(["lab", "--", "--port", "9000"], None, ["--port", "9000"], id="two dashes"),
        pytest.param(
            ["lab", "--ip=::", "--", "x"], None, ["--ip=::", "--", "x"], id="later two dashes"
        ),
    ],
)
def test_lab_keeps_the_path_and_hands_on_the_options(
    monkeypatch: pytest.MonkeyPatch, words: list[str], path: Path | None, for_jupyterlab: list[str]
) -> None:
    seen: list[tuple[Path | None, list[str]]] = []

    def record(arguments: object) -> int:
        seen.append((getattr(arguments, "path"), getattr(arguments, "jupyterlab")))  # noqa: B009 - a Namespace
        return 0

    monkeypatch.setattr(lab, "run", record)

    assert main.main(words) == 0
    assert seen == [(path, for_jupyterlab)]


def test_a_terminal_that_has_no_check_mark_gets_a_question_mark() -> None:
    done = crush("doctor", PYTHONIOENCODING="ascii", PYTHONUTF8="0", LC_ALL="C")

    assert "Traceback" not in done.stderr
    assert "? ok" in done.stdout


def test_help_and_version_load_nothing_heavy() -> None:
    code = (
        "import sys, crush_kernel.cli.main as m\n"
        "try: m.main(['--version'])\n"
        "except SystemExit: pass\n"
        "print(sorted({'anyio', 'pydantic', 'httpx2', 'jupyter_client', 'jupyterlab_server'}"
        " & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, encoding="utf-8", check=True
    )

    assert done.stdout.splitlines()[-1] == "[]"


def test_a_run_does_not_wait_for_a_grammar_that_no_notebook_needs() -> None:
    code = "import sys, crush_kernel.cli.run; print({'rfc3987_syntax', 'lark'} & set(sys.modules))"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, encoding="utf-8", check=True
    )

    assert done.stdout.strip() == "set()"
