"""A session has one owner, as long as that lives."""

import os
import subprocess
import sys
import threading
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from crush_kernel.history.ownership import alone, own_session

HOLDER = """
import sys
from pathlib import Path
from crush_kernel.history.ownership import own_session
lock = own_session(Path(sys.argv[1]), sys.argv[2])
print("held" if lock is not None and lock.is_enforced else "not held", flush=True)
sys.stdin.read()
"""


@contextmanager
def other_kernel(directory: Path, session: str) -> Generator[subprocess.Popen[str]]:
    """Yield another process once it has tried to own the session; it says how that went."""
    command = [sys.executable, "-c", HOLDER, str(directory), session]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, encoding="utf-8"
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def said(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def test_a_second_kernel_does_not_own_the_session_until_the_first_is_killed(
    tmp_path: Path,
) -> None:
    directory = tmp_path / ".crush"
    with other_kernel(directory, "s") as first:
        assert said(first) == "held"
        assert own_session(directory, "s") is None
        first.kill()
        first.wait()
        lock = own_session(directory, "s")
        assert lock is not None
        assert lock.is_enforced
    with other_kernel(directory, "s") as second:
        assert said(second) == "not held"
    lock.release()


def test_sessions_are_owned_one_by_one(tmp_path: Path) -> None:
    first, second = own_session(tmp_path, "a"), own_session(tmp_path, "b")
    assert first is not None
    assert second is not None
    assert own_session(tmp_path, "a") is None
    first.release()
    second.release()


def test_a_child_of_the_kernel_does_not_keep_the_session(tmp_path: Path) -> None:
    lock = own_session(tmp_path, "s")
    assert lock is not None
    with subprocess.Popen(["sleep", "600"], close_fds=False) as child:
        lock.release()
        again = own_session(tmp_path, "s")
        child.kill()
    assert again is not None
    assert again.is_enforced
    again.release()


def test_a_released_lock_leaves_nothing_and_can_be_released_again(tmp_path: Path) -> None:
    lock = own_session(tmp_path, "s")
    assert lock is not None
    lock.release()
    lock.release()
    assert list((tmp_path / "locks").iterdir()) == []


@pytest.mark.parametrize("session", ["", "../../outside", "a/b", "\0", "\ud800", "x" * 10_000])
def test_any_text_names_a_session(tmp_path: Path, session: str) -> None:
    lock = own_session(tmp_path / ".crush", session)
    assert lock is not None
    assert lock.is_enforced
    assert [path.name for path in tmp_path.iterdir()] == [".crush"]
    lock.release()


@pytest.mark.parametrize("obstacle", ["file", "link", "no project"])
def test_where_there_are_no_locks_everybody_owns_everything(tmp_path: Path, obstacle: str) -> None:
    directory = tmp_path / "project" / ".crush"
    outside = tmp_path / "outside"
    outside.mkdir()
    if obstacle != "no project":
        directory.parent.mkdir()
    if obstacle == "file":
        directory.touch()
    elif obstacle == "link":
        directory.symlink_to(outside)
    for _ in range(2):
        lock = own_session(directory, "s")
        assert lock is not None
        assert not lock.is_enforced
        lock.release()
    assert list(outside.iterdir()) == []


def test_a_lock_is_never_made_through_a_link(tmp_path: Path) -> None:
    lock = own_session(tmp_path, "s")
    assert lock is not None
    path, target = lock.path, tmp_path / "target"
    lock.release()
    path.symlink_to(target)
    lock = own_session(tmp_path, "s")
    assert lock is not None
    assert not lock.is_enforced
    assert not target.exists()


def test_of_many_at_once_one_owns_the_session(tmp_path: Path) -> None:
    with ExitStack() as stack:
        kernels = [stack.enter_context(other_kernel(tmp_path, "s")) for _ in range(4)]
        assert sorted(said(kernel) for kernel in kernels) == ["held", *["not held"] * 3]


def test_blocks_of_one_name_run_one_at_a_time(tmp_path: Path) -> None:
    inside = 0
    most = 0

    def work() -> None:
        nonlocal inside, most
        for _ in range(20):
            with alone(tmp_path, "w", wait_s=20):
                inside += 1
                most = max(most, inside)
                os.sched_yield()
                inside -= 1

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == 1


def test_a_block_is_not_kept_waiting_for_ever(tmp_path: Path) -> None:
    ran: list[str] = []
    with alone(tmp_path, "w", wait_s=1), alone(tmp_path, "w", wait_s=0):
        ran.append("inside")
    assert ran == ["inside"]
