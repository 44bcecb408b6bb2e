"""Files are replaced as a whole or not at all."""

import contextlib
import os
import resource
import signal
import stat
import subprocess
import sys
import tempfile
from collections.abc import Callable, Generator, Iterator
from pathlib import Path

import pytest

from crush_kernel.errors import ToolError
from crush_kernel.files.opening import open_real
from crush_kernel.tools.diskfile import DiskFile, read_file, replace_file, require_writable
from crush_kernel.tools.tracker import Stamp

NOBODY = 65534


@pytest.fixture
def ordinary_folder() -> Iterator[Path]:
    """A folder of a user who is not root, who may do anything anywhere."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o777)
        was_root = os.geteuid() == 0
        if was_root:
            os.seteuid(NOBODY)
        try:
            yield folder
        finally:
            if was_root:
                os.seteuid(0)


@contextlib.contextmanager
def disk_with(free_bytes: int) -> Generator[None]:
    """Let files of this process grow to `free_bytes` only, as if the disk were full then."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (free_bytes, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_file_is_read_with_its_number_of_names(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"x\r\n\0")
    (tmp_path / "b").hardlink_to(path)
    stamp = Stamp.of(path.stat())
    assert read_file(path) == DiskFile(b"x\r\n\0", hard_links=2, stamp=stamp)


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="only Linux has such files")
def test_a_file_whose_size_is_unknown_beforehand_is_read_whole() -> None:
    file = read_file(Path(os.path.realpath("/proc/self/stat")))
    assert file is not None
    assert file.stamp.size == 0
    assert file.data.endswith(b"\n")
    assert len(file.data.split()) > 40


def test_nothing_is_read_where_nothing_is(tmp_path: Path) -> None:
    assert read_file(tmp_path / "a") is None


def test_a_file_over_the_limit_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"12345")
    assert read_file(path, max_bytes=5) is not None
    with pytest.raises(ToolError, match="too large to edit"):
        read_file(path, max_bytes=4)


def make_fifo(path: Path) -> None:
    os.mkfifo(path)


def make_device(path: Path) -> None:
    path.symlink_to("/dev/zero")


@pytest.mark.parametrize(
    ("make", "kind"),
    [
        pytest.param(Path.mkdir, "a directory", id="directory"),
        pytest.param(make_fifo, "a named pipe", id="named pipe"),
        pytest.param(make_device, "a character device", id="device"),
    ],
)
def test_what_is_not_a_regular_file_is_refused_without_opening_it(
    tmp_path: Path, make: Callable[[Path], None], kind: str
) -> None:
    path = tmp_path / "a"
    make(path)
    with pytest.raises(ToolError, match=kind):
        read_file(path)


def test_a_file_below_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"")
    with pytest.raises(ToolError, match="not a directory"):
        read_file(tmp_path / "a" / "b")
    with pytest.raises(ToolError, match="not a directory"):
        require_writable(tmp_path / "a" / "b")
    with pytest.raises(ToolError, match="not a directory"):
        replace_file(tmp_path / "a" / "b" / "c", b"")


def test_an_unreadable_file_is_refused(ordinary_folder: Path) -> None:
    path = ordinary_folder / "a"
    path.write_bytes(b"x")
    path.chmod(0)
    with pytest.raises(ToolError, match="permission denied"):
        read_file(path)


@pytest.mark.parametrize("name", ["link.txt", "folder-link/file.txt", "folder-link/../link.txt"])
def test_no_link_is_followed_once_a_path_was_checked(tmp_path: Path, name: str) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder/file.txt").write_text("x", encoding="utf-8")
    (tmp_path / "link.txt").symlink_to(tmp_path / "folder/file.txt")
    (tmp_path / "folder-link").symlink_to(tmp_path / "folder")
    with pytest.raises(OSError, match=r"symbolic links|Not a directory"):
        open_real(tmp_path / name)
    descriptor = open_real(tmp_path / "folder/file.txt")
    assert os.read(descriptor, 9) == b"x"
    os.close(descriptor)


def test_a_replacement_keeps_mode_and_attributes(tmp_path: Path) -> None:
    path = tmp_path / "run.sh"
    path.write_bytes(b"old")
    path.chmod(0o4751)
    os.setxattr(path, "user.note", b"kept")
    replace_file(path, b"new")
    assert path.read_bytes() == b"new"
    assert stat.S_IMODE(path.stat().st_mode) == 0o4751
    assert os.getxattr(path, "user.note") == b"kept"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may give files away")
def test_a_replacement_keeps_the_owner(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"old")
    os.chown(path, 1234, 2345)
    replace_file(path, b"new")
    assert (path.stat().st_uid, path.stat().st_gid) == (1234, 2345)


def test_a_new_file_gets_the_usual_mode(tmp_path: Path) -> None:
    (tmp_path / "plain").touch()
    replace_file(tmp_path / "x" / "y" / "new", b"new")
    usual = stat.S_IMODE((tmp_path / "plain").stat().st_mode)
    assert stat.S_IMODE((tmp_path / "x" / "y" / "new").stat().st_mode) == usual


def test_a_full_disk_leaves_everything_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"old")
    with disk_with(1000), pytest.raises(ToolError, match="was not written: file too large"):
        replace_file(path, b"new" * 1000)
    with disk_with(1000), pytest.raises(ToolError, match="was not written"):
        replace_file(tmp_path / "x" / "y" / "b", b"new" * 1000)
    assert [*tmp_path.rglob("*")] == [path]
    assert path.read_bytes() == b"old"


def test_a_read_only_folder_leaves_everything_as_it_was(ordinary_folder: Path) -> None:
    path = ordinary_folder / "inner" / "a"
    path.parent.mkdir()
    path.write_bytes(b"old")
    path.parent.chmod(0o555)
    with pytest.raises(ToolError, match="read-only"):
        require_writable(path)
    with pytest.raises(ToolError, match="permission denied"):
        replace_file(path, b"new")
    assert [*path.parent.iterdir()] == [path]
    assert path.read_bytes() == b"old"
    path.parent.chmod(0o755)


def test_a_read_only_file_is_found_out_beforehand(ordinary_folder: Path) -> None:
    path = ordinary_folder / "a"
    path.write_bytes(b"old")
    require_writable(path)
    path.chmod(0o444)
    with pytest.raises(ToolError, match="read-only"):
        require_writable(path)


def test_a_folder_that_cannot_be_entered_is_no_place(ordinary_folder: Path) -> None:
    closed = ordinary_folder / "closed"
    closed.mkdir(mode=0)
    with pytest.raises(ToolError, match="cannot be written: permission denied"):
        require_writable(closed / "a" / "b")


def test_a_folder_in_the_place_of_the_file_is_not_replaced(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    with pytest.raises(ToolError, match="was not written"):
        replace_file(tmp_path / "a", b"new")
    assert [*tmp_path.rglob("*")] == [tmp_path / "a"]


WRITER = """
import sys
from pathlib import Path
from crush_kernel.tools.diskfile import replace_file
path = Path(sys.argv[1])
while True:
    for letter in (b"a", b"b"):
        replace_file(path, letter * 300_000)
        print(flush=True)
"""


@pytest.mark.slow
def test_a_killed_writer_leaves_the_old_or_the_new_content(tmp_path: Path) -> None:
    path = tmp_path / "a"
    for rounds in (1, 2, 3):
        command = [sys.executable, "-c", WRITER, str(path)]
        with subprocess.Popen(command, stdout=subprocess.PIPE) as writer:
            assert writer.stdout
            for _ in range(rounds):
                writer.stdout.readline()
            writer.send_signal(signal.SIGKILL)
        assert path.read_bytes() in (b"a" * 300_000, b"b" * 300_000)
