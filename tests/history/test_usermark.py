"""The user's mark, which the kernels of one user share."""

from pathlib import Path

import pytest

from crush_kernel.history.usermark import MARK_NAME, user_mark


def test_the_users_mark_is_the_same_for_all_kernels_and_private(tmp_path: Path) -> None:
    directory = tmp_path / "data" / "crush"
    mark = user_mark(directory)
    assert len(mark) == 32
    assert user_mark(directory) == mark
    assert user_mark(tmp_path / "other") != mark
    assert [path.name for path in directory.iterdir()] == [MARK_NAME]
    assert (directory / MARK_NAME).stat().st_mode & 0o077 == 0


@pytest.mark.parametrize("content", [b"", b"\xff\xfe", b"mine", b"A" * 32])
def test_a_damaged_mark_is_none(tmp_path: Path, content: bytes) -> None:
    (tmp_path / MARK_NAME).write_bytes(content)
    assert user_mark(tmp_path) == ""


def test_where_no_mark_can_be_kept_there_is_none(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert user_mark(tmp_path / "file") == ""
