"""Finding the processes of a command again."""

import os
import signal
import subprocess
from collections.abc import Generator

import anyio
import psutil
import pytest

from crush_kernel.shell.processes import Family, is_orphaned_group, still_running, wait_for_exit
from tests.shell.processes import wait_until

pytestmark = pytest.mark.anyio


@pytest.fixture
def sleeper() -> Generator[subprocess.Popen[bytes]]:
    """Yield a process in a session of its own, marked `MARK=x.1`."""
    with subprocess.Popen(
        ["bash", "-c", "exec -a $'evil\\e[2J\\n name)' sleep 600"],
        env={"PATH": "/usr/bin:/bin", "MARK": "x.1"},
        start_new_session=True,
    ) as process:
        yield process
        process.kill()


async def started(sleeper: subprocess.Popen[bytes]) -> None:
    await wait_until(lambda: psutil.Process(sleeper.pid).name() == "sleep")


@pytest.mark.parametrize(
    ("mark", "count"),
    [
        pytest.param(b"MARK=x.", 1, id="any command of the shell"),
        pytest.param(b"MARK=x.1\0", 1, id="that command"),
        pytest.param(b"MARK=x.11\0", 0, id="another command"),
        pytest.param(b"MARK=y.", 0, id="another shell"),
    ],
)
@pytest.mark.parametrize("since", [0, 1, 2**40], ids=["all", "younger", "after a wrap-around"])
async def test_a_process_is_found_by_its_mark(
    sleeper: subprocess.Popen[bytes], mark: bytes, count: int, since: int
) -> None:
    await started(sleeper)

    survivors = Family(mark, frozenset()).survivors(since=since)

    assert [survivor.pid for survivor in survivors] == [sleeper.pid] * count


async def test_a_process_is_found_by_its_group_and_shown_without_control_characters(
    sleeper: subprocess.Popen[bytes],
) -> None:
    await started(sleeper)

    [survivor] = Family(b"NONSUCH=", frozenset((sleeper.pid,))).survivors()

    assert survivor.pid == survivor.group == sleeper.pid
    assert survivor.command == "evil\ufffd[2J\ufffd name) 600"


async def test_a_process_that_ended_is_no_survivor_even_before_it_is_reaped(
    sleeper: subprocess.Popen[bytes],
) -> None:
    await started(sleeper)
    family = Family(b"MARK=x.1\0", frozenset((sleeper.pid,)))
    survivors = family.survivors()
    assert still_running(survivors) == survivors

    family.send_signal(survivors, signal.SIGKILL)
    await wait_until(lambda: not still_running(survivors))

    assert family.survivors() == ()
    sleeper.wait()
    family.send_signal(survivors, signal.SIGKILL)


async def test_elsewhere_than_on_linux_a_group_stands_for_its_members(
    sleeper: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("crush_kernel.shell.processes.sys.platform", "darwin")
    family = Family(b"MARK=x.1\0", frozenset((sleeper.pid,)))

    [survivor] = family.survivors(since=1)
    assert survivor.group == sleeper.pid
    assert still_running((survivor,)) == (survivor,)
    family.send_signal((survivor,), signal.SIGKILL)
    with anyio.fail_after(5):
        await wait_for_exit(sleeper)

    assert sleeper.returncode == -signal.SIGKILL
    assert family.survivors() == still_running((survivor,)) == ()


def test_a_group_is_orphaned_when_its_leader_is_reaped_before_the_others() -> None:
    with subprocess.Popen(
        ["bash", "-c", "sleep 600 & echo; exec sleep 600"],
        stdout=subprocess.PIPE,
        start_new_session=True,
    ) as leader:
        assert leader.stdout is not None
        leader.stdout.readline()
        assert not is_orphaned_group(leader.pid)

        leader.kill()
        leader.wait()

        assert is_orphaned_group(leader.pid)
        os.killpg(leader.pid, signal.SIGKILL)
    assert not is_orphaned_group(os.getpid())
