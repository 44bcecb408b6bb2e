"""`doctor`: each usual fault is found, and the advice says what to do."""

import json
import sys
from pathlib import Path

import pytest

from crush_kernel import __version__
from crush_kernel.cli.doctor import report
from crush_kernel.cli.findings import Finding
from crush_kernel.cli.jupyter_checks import (
    disabled_extensions,
    jupyter_command,
    kernelspec,
    labextension,
)
from crush_kernel.cli.kernelspecs import Kernelspec
from crush_kernel.cli.machine_checks import writable


def spec_of(directory: Path, python: str) -> Kernelspec:
    return Kernelspec(directory, (python, "-m", "crush_kernel.kernel", "-f", "{connection_file}"))


def python_that(directory: Path, does: str) -> str:
    """Make an interpreter of another environment, as far as a check can see."""
    program = directory / "python"
    program.write_text(f"#!/bin/sh\n{does}\n", "utf-8")
    program.chmod(0o755)
    return str(program)


def extension_in(place: Path, *, version: str = __version__, load: str = "static/entry.js") -> Path:
    folder = place / "crush-kernel"
    (folder / "static").mkdir(parents=True)
    (folder / "static" / "entry.js").write_text("", "utf-8")
    manifest = {"version": version, "jupyterlab": {"_build": {"load": load}}}
    (folder / "package.json").write_text(json.dumps(manifest), "utf-8")
    return folder


@pytest.mark.parametrize("python", ["python", "python3", sys.executable])
def test_a_kernelspec_that_starts_this_python_is_fine(tmp_path: Path, python: str) -> None:
    assert kernelspec(spec_of(tmp_path, python)).grade == "ok"


def test_a_missing_kernelspec_is_broken() -> None:
    finding = kernelspec(None)

    assert finding.grade == "broken"
    assert "crush-kernel install" in finding.advice


@pytest.mark.parametrize(
    ("does", "grade", "says"),
    [
        pytest.param("exit 1", "broken", "which has no crush-kernel", id="without our package"),
        pytest.param("kill -9 $$", "broken", "which has no crush-kernel", id="that crashes"),
        pytest.param(
            "echo 0.0.1", "warning", "starts crush-kernel 0.0.1", id="with an old version"
        ),
        pytest.param(f"echo {__version__}", "ok", "kernelspec", id="with the same version"),
    ],
)
def test_a_kernelspec_that_starts_a_python_of_another_environment(
    tmp_path: Path, does: str, grade: str, says: str
) -> None:
    finding = kernelspec(spec_of(tmp_path, python_that(tmp_path, does)))

    assert finding.grade == grade
    assert says in finding.text


@pytest.mark.parametrize(
    "python",
    [
        pytest.param("/nowhere/bin/python", id="deleted environment"),
        pytest.param("", id="no command at all"),
    ],
)
def test_a_kernelspec_that_starts_nothing_is_broken(tmp_path: Path, python: str) -> None:
    finding = kernelspec(spec_of(tmp_path, python))

    assert finding.grade == "broken"
    assert "not there" in finding.text


def test_jupyter_of_the_same_environment_is_fine(tmp_path: Path) -> None:
    assert jupyter_command(str(tmp_path / "jupyter"), scripts=str(tmp_path)).grade == "ok"


def test_jupyter_of_another_environment_is_a_warning(tmp_path: Path) -> None:
    finding = jupyter_command("/usr/bin/jupyter", scripts=str(tmp_path))

    assert finding.grade == "warning"
    assert "/usr/bin/jupyter" in finding.text


def test_no_jupyter_on_the_path_is_a_warning(tmp_path: Path) -> None:
    assert jupyter_command(None, scripts=str(tmp_path)).grade == "warning"


def test_an_installed_extension_is_fine(tmp_path: Path) -> None:
    extension_in(tmp_path)

    assert labextension([tmp_path / "none", tmp_path], disabled=[]).grade == "ok"


def test_a_missing_extension_is_broken(tmp_path: Path) -> None:
    finding = labextension([tmp_path], disabled=[])

    assert finding.grade == "broken"
    assert "not installed" in finding.text


@pytest.mark.parametrize("off", ["crush-kernel", "crush-kernel:notebook"])
def test_a_disabled_extension_or_plugin_is_broken(tmp_path: Path, off: str) -> None:
    extension_in(tmp_path)

    finding = labextension([tmp_path], disabled=["other", off])

    assert finding.grade == "broken"
    assert f"jupyter labextension enable {off}" in finding.advice


def test_another_extension_with_a_similar_name_may_be_disabled(tmp_path: Path) -> None:
    extension_in(tmp_path)

    assert labextension([tmp_path], disabled=["crush-kernel-theme"]).grade == "ok"


def test_an_extension_of_another_version_is_a_warning(tmp_path: Path) -> None:
    extension_in(tmp_path, version="9.9.9")

    finding = labextension([tmp_path], disabled=[])

    assert finding.grade == "warning"
    assert "9.9.9" in finding.text


def test_an_extension_with_files_missing_is_broken(tmp_path: Path) -> None:
    extension_in(tmp_path, load="static/gone.js")

    assert labextension([tmp_path], disabled=[]).grade == "broken"


@pytest.mark.parametrize("content", ["", "{", "[]", "{}", '{"version": "1", "jupyterlab": 3}'])
def test_a_damaged_extension_is_broken(tmp_path: Path, content: str) -> None:
    (extension_in(tmp_path) / "package.json").write_text(content, "utf-8")

    finding = labextension([tmp_path], disabled=[])

    assert finding.grade == "broken"
    assert "damaged" in finding.text


@pytest.mark.parametrize(
    ("user", "environment", "off"),
    [
        pytest.param(None, None, (), id="nothing said"),
        pytest.param(None, '{"disabledExtensions": {"a": true, "b": false}}', ("a",), id="a table"),
        pytest.param(None, '{"disabledExtensions": ["a", "b"]}', ("a", "b"), id="an old list"),
        pytest.param(
            '{"disabledExtensions": {"a": false}}',
            '{"disabledExtensions": {"a": true}}',
            (),
            id="the user has the last word",
        ),
        pytest.param("{", '{"disabledExtensions": ["a"]}', ("a",), id="a damaged file"),
        pytest.param(None, '{"disabledExtensions": 3}', (), id="a wrong type"),
        pytest.param(None, "[]", (), id="not a table"),
    ],
)
def test_what_the_page_configuration_turns_off(
    tmp_path: Path, user: str | None, environment: str | None, off: tuple[str, ...]
) -> None:
    for name, text in (("user", user), ("environment", environment)):
        (tmp_path / name / "labconfig").mkdir(parents=True)
        if text is not None:
            (tmp_path / name / "labconfig" / "page_config.json").write_text(text, "utf-8")

    assert disabled_extensions([tmp_path / "user", tmp_path / "environment"]) == off


def test_a_directory_that_is_not_there_yet_can_be_made(tmp_path: Path) -> None:
    assert writable("data", tmp_path / "a" / "b").grade == "ok"
    assert list(tmp_path.iterdir()) == []


def test_a_directory_that_cannot_be_made_is_broken(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", "utf-8")

    finding = writable("the data directory", tmp_path / "file" / "data")

    assert finding.grade == "broken"
    assert "cannot be written" in finding.text


@pytest.mark.parametrize(
    ("findings", "last"),
    [
        pytest.param([Finding("ok", "a")], "Ready.", id="all fine"),
        pytest.param(
            [Finding("ok", "a"), Finding("warning", "b")], "Ready, 1 with a warning.", id="warned"
        ),
        pytest.param(
            [Finding("broken", "a"), Finding("broken", "b"), Finding("warning", "c")],
            "2 broken, 1 with a warning.",
            id="broken",
        ),
    ],
)
def test_the_last_line_sums_up(findings: list[Finding], last: str) -> None:
    assert list(report(findings))[-1] == last


def test_a_grade_is_a_word_and_advice_stands_below() -> None:
    lines = list(report([Finding("broken", "no bash", "Install bash.")]))

    assert lines[0].split() == ["✗", "broken", "no", "bash"]
    assert lines[1].strip() == "Install bash."
