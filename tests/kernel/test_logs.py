"""Where the kernel writes its log, and what happens where it cannot."""

import logging
from pathlib import Path

import pytest

from crush_kernel.kernel.logs import MAX_BYTES, DataDirectoryHandler


def record(text: str) -> logging.LogRecord:
    return logging.LogRecord("crush_kernel", logging.INFO, "", 0, text, None, None)


def test_nothing_is_created_before_the_first_record(tmp_path: Path) -> None:
    handler = DataDirectoryHandler(tmp_path / ".crush")
    assert not (tmp_path / ".crush").exists()
    handler.emit(record("hello"))
    handler.close()
    assert "hello" in (tmp_path / ".crush/logs/kernel.log").read_text("utf-8")
    assert (tmp_path / ".crush/.gitignore").read_text("utf-8") == "*\n"


def test_the_log_is_bounded(tmp_path: Path) -> None:
    handler = DataDirectoryHandler(tmp_path)
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
    handler = DataDirectoryHandler(tmp_path / "file" / "below")
    handler.emit(record("hello"))
    handler.close()
    assert capfd.readouterr() == ("", "")
