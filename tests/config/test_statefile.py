"""A state file loses nothing: not to others, not to a crash, not to a mistake in it."""

import os
import subprocess
import sys
import textwrap
from pathlib import Path
from threading import Thread

import pytest

from crush_kernel.config import statefile
from crush_kernel.config.statefile import StateFile
from crush_kernel.errors import ConfigError
from crush_kernel.messages import JsonObject


def file_at(path: Path) -> StateFile:
    return StateFile(path, loss="nothing is kept", hint="Mend it.")


def counted(document: JsonObject) -> JsonObject:
    count = document.get("count", 0)
    assert isinstance(count, int)
    return {**document, "count": count + 1}


COUNTING = textwrap.dedent(
    """
    import sys
    from pathlib import Path
    from crush_kernel.config.statefile import StateFile

    file = StateFile(Path(sys.argv[1]), loss="", hint="")
    for _ in range(int(sys.argv[2])):
        file.change(lambda document: {"count": document.get("count", 0) + 1})
    """
)


@pytest.mark.slow
def test_processes_that_change_it_at_once_lose_nothing(tmp_path: Path) -> None:
    path = tmp_path / "data" / "state.json"
    arguments = [sys.executable, "-c", COUNTING, str(path), "25"]
    children = [subprocess.Popen(arguments) for _ in range(4)]
    assert [child.wait(30) for child in children] == [0] * 4
    assert file_at(path).read() == {"count": 100}


def test_threads_that_change_it_at_once_lose_nothing(tmp_path: Path) -> None:
    path = tmp_path / "state.json"
    threads = [Thread(target=lambda: file_at(path).change(counted)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    assert file_at(path).read() == {"count": 8}
    assert [path.name for path in tmp_path.iterdir()] == ["state.json"]


def test_a_change_that_fails_leaves_the_file_and_the_lock(tmp_path: Path) -> None:
    file = file_at(tmp_path / "state.json")
    file.change(counted)

    def failing(_: JsonObject) -> JsonObject:
        raise ConfigError("no")

    with pytest.raises(ConfigError, match="no"):
        file.change(failing)
    assert file.change(counted) == {"count": 2}


@pytest.mark.skipif(sys.platform == "win32", reason="folders cannot be locked there")
def test_a_lock_that_is_never_let_go_is_explained(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import fcntl  # noqa: PLC0415 - not on Windows

    monkeypatch.setattr(statefile, "LOCK_WAIT_S", 0.05)
    holder = os.open(tmp_path, os.O_RDONLY)
    try:
        fcntl.flock(holder, fcntl.LOCK_EX)
        with pytest.raises(ConfigError, match="another kernel holds it") as caught:
            file_at(tmp_path / "state.json").change(counted)
    finally:
        os.close(holder)
    assert caught.value.hint == "Mend it."
    assert list(tmp_path.iterdir()) == []


def test_a_disk_without_locks_is_written_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_locks(_: int) -> None:
        raise OSError

    monkeypatch.setattr(statefile, "_lock", no_locks)
    assert file_at(tmp_path / "state.json").change(counted) == {"count": 1}


@pytest.mark.skipif(sys.platform == "win32", reason="there are no such files")
@pytest.mark.parametrize("way", ["pipe", "device", "link to a pipe"])
def test_nothing_is_waited_for_in_what_is_no_file(tmp_path: Path, way: str) -> None:
    path, pipe = tmp_path / "state.json", tmp_path / "pipe"
    match way:
        case "pipe":
            os.mkfifo(path)
        case "device":
            path.symlink_to("/dev/zero")
        case _:
            os.mkfifo(pipe)
            path.symlink_to(pipe)
    with pytest.raises(ConfigError, match="no regular file"):
        file_at(path).read()
    with pytest.raises(ConfigError, match="no regular file"):
        file_at(path).change(counted)
    assert not path.is_file()


@pytest.mark.skipif(
    sys.platform == "win32" or os.getuid() != 0, reason="only root can give files away"
)
@pytest.mark.parametrize(
    ("owner", "folder", "is_read"),
    [
        pytest.param(0, 0, True, id="one's own"),
        pytest.param(65_534, 0, False, id="of another user"),
        pytest.param(65_534, 65_534, True, id="in a folder of another user's"),
        pytest.param(65_533, 65_534, False, id="of a third user"),
    ],
)
def test_what_somebody_else_has_put_there_does_not_count(
    tmp_path: Path, owner: int, folder: int, *, is_read: bool
) -> None:
    path = tmp_path / "state.json"
    path.write_text('{"count": 7}')
    os.chown(path, owner, owner)
    os.chown(tmp_path, folder, folder)
    if is_read:
        assert file_at(path).read() == {"count": 7}
        return
    for attempt in (file_at(path).read, lambda: file_at(path).change(counted)):
        with pytest.raises(ConfigError, match="another user"):
            attempt()
    assert path.read_text() == '{"count": 7}'
