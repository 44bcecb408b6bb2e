"""Where the kernel writes its log, and what happens where it cannot."""

import logging
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from crush_kernel.history.redaction import Redactor
from crush_kernel.kernel.logs import MAX_BYTES, DataDirectoryHandler

VALUE = "corp 1234\nsecond line 5678"
REDACT = Redactor({"CORP_TOKEN": VALUE}).redact


def handler_in(data_directory: Path) -> DataDirectoryHandler:
    return DataDirectoryHandler(data_directory, redact=REDACT)


def record(text: str) -> logging.LogRecord:
    return logging.LogRecord("crush_kernel", logging.INFO, "", 0, text, None, None)


def test_nothing_is_created_before_the_first_record(tmp_path: Path) -> None:
    handler = handler_in(tmp_path / ".crush")
    assert not (tmp_path / ".crush").exists()
    handler.emit(record("hello"))
    handler.close()
    assert "hello" in (tmp_path / ".crush/logs/kernel.log").read_text("utf-8")
    assert (tmp_path / ".crush/.gitignore").read_text("utf-8") == "*\n"


def test_the_log_is_bounded(tmp_path: Path) -> None:
    handler = handler_in(tmp_path)
    for _ in range(50):
        handler.emit(record("x" * 100_000))
    handler.close()
    sizes = [file.stat().st_size for file in (tmp_path / "logs").iterdir()]
    assert len(sizes) == 3
    assert max(sizes) <= MAX_BYTES


def test_where_nothing_can_be_written_nothing_is_said(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").touch()
    handler = handler_in(tmp_path / "file" / "below")
    handler.emit(record("hello"))
    handler.close()
    assert capfd.readouterr() == ("", "")


def test_no_record_can_forge_another(tmp_path: Path) -> None:
    handler = handler_in(tmp_path / ".crush")
    handler.emit(record("tool x\n2026 INFO all is well\x1b[2J took 1 s"))
    handler.close()
    text = (tmp_path / ".crush/logs/kernel.log").read_text("utf-8")
    assert text.count("\n") == 1
    assert text.rstrip("\n").isprintable()


def make_pipe(path: Path, _: Path) -> None:
    os.mkfifo(path)


@pytest.mark.parametrize(
    ("name", "plant"),
    [
        pytest.param(".crush", Path.symlink_to, id="the data directory leads elsewhere"),
        pytest.param(".crush/logs", Path.symlink_to, id="the folder leads elsewhere"),
        pytest.param(".crush/logs/kernel.log", Path.symlink_to, id="the log leads elsewhere"),
        pytest.param(".crush/logs/kernel.log", Path.hardlink_to, id="the log is another file"),
        pytest.param(".crush/.gitignore", Path.symlink_to, id="the ignore file leads elsewhere"),
        pytest.param(".crush/logs/kernel.log", make_pipe, id="the log is a pipe"),
    ],
)
def test_a_strangers_project_cannot_lead_the_log_elsewhere(
    tmp_path: Path, name: str, plant: Callable[[Path, Path], None]
) -> None:
    project, elsewhere = tmp_path / "project", tmp_path / "elsewhere"
    (project / name).parent.mkdir(parents=True)
    is_folder = not Path(name).suffix
    if is_folder:
        elsewhere.mkdir()
    elif name.endswith("log"):
        elsewhere.write_text("as it was", "utf-8")
    plant(project / name, elsewhere)
    handler = handler_in(project / ".crush")
    handler.emit(record("hello"))
    handler.close()
    if is_folder:
        assert list(elsewhere.iterdir()) == []
    else:
        assert not elsewhere.exists() or elsewhere.read_text("utf-8") == "as it was"


def test_a_deleted_project_is_not_made_again(tmp_path: Path) -> None:
    handler = handler_in(tmp_path / "deleted" / ".crush")
    handler.emit(record("hello"))
    handler.close()
    assert list(tmp_path.iterdir()) == []


class Loud(Exception):
    """An error that says too much."""


def fail(text: str) -> None:
    raise Loud(text)


def failing(text: str) -> logging.LogRecord:
    try:
        fail(text)
    except Loud as error:
        facts = (type(error), error, error.__traceback__)
        return logging.LogRecord("crush_kernel", logging.ERROR, "", 0, "it failed", None, facts)
    raise AssertionError


def with_arguments(text: str) -> logging.LogRecord:
    return logging.LogRecord(
        "crush_kernel",
        logging.INFO,
        "",
        0,
        "payload=%s and %r",
        ({"environment": text}, text),
        None,
    )


def with_stack(text: str) -> logging.LogRecord:
    made = record("here")
    made.stack_info = f"Stack (most recent call last):\n  {text}"
    return made


@pytest.mark.parametrize("make", [record, failing, with_arguments, with_stack])
@pytest.mark.parametrize(
    "secret",
    [
        pytest.param(VALUE, id="the value of a variable, over two lines"),
        pytest.param("ghp_a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8", id="a token of a known format"),
        pytest.param("password='hunter2-x'", id="a value where passwords stand"),
    ],
)
def test_no_secret_reaches_the_file(
    tmp_path: Path, make: Callable[[str], logging.LogRecord], secret: str
) -> None:
    handler = handler_in(tmp_path / ".crush")
    handler.emit(make(f"before {secret} after"))
    handler.close()
    text = (tmp_path / ".crush/logs/kernel.log").read_text("utf-8")
    assert "⟨secret: " in text
    assert "before" in text
    assert "after" in text
    for part in ("corp 1234", "5678", "ghp_a1B2", "hunter2"):
        assert part not in text
