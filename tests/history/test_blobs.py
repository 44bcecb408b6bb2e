"""What is kept by its hash comes back whole or not at all."""

import os
import stat
from hashlib import sha256
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from crush_kernel.history.blobs import Blobs

DATA = b"what was there"
HASH = sha256(DATA).hexdigest()


@pytest.fixture
def blobs(tmp_path: Path) -> Blobs:
    return Blobs(tmp_path / ".crush")


def place(folder: Path) -> Path:
    return folder / ".crush" / "blobs" / HASH[:2] / HASH[2:]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.binary(max_size=100))
def test_what_is_kept_comes_back(blobs: Blobs, data: bytes) -> None:
    assert blobs.fetch(blobs.keep(data)) == data


def test_nothing_is_made_before_something_is_kept(blobs: Blobs, tmp_path: Path) -> None:
    assert blobs.fetch(HASH) is None
    assert list(tmp_path.iterdir()) == []


def test_the_same_content_is_one_file_for_its_owner_only(blobs: Blobs, tmp_path: Path) -> None:
    assert blobs.keep(DATA) == blobs.keep(DATA) == HASH
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert place(tmp_path) in files
    assert {path.name for path in files} == {HASH[2:], ".gitignore"}
    assert stat.S_IMODE(place(tmp_path).stat().st_mode) == 0o600


@pytest.mark.parametrize(
    "name",
    ["", "..", "../../etc/passwd", "/etc/passwd", HASH.upper(), HASH[:-1], f"{HASH}\n", "\0" * 64],
)
def test_only_hashes_are_looked_for(blobs: Blobs, name: str) -> None:
    blobs.keep(DATA)
    assert blobs.fetch(name) is None


@pytest.mark.parametrize("damage", [b"", b"what was THERE", DATA + b"!"])
def test_a_damaged_file_is_missing_until_it_is_kept_again(
    blobs: Blobs, tmp_path: Path, damage: bytes
) -> None:
    blobs.keep(DATA)
    place(tmp_path).write_bytes(damage)
    assert blobs.fetch(HASH) is None
    assert blobs.keep(DATA) == HASH
    assert blobs.fetch(HASH) == DATA


def test_links_are_not_followed(blobs: Blobs, tmp_path: Path) -> None:
    blobs.keep(DATA)
    secret = tmp_path / "secret"
    secret.write_bytes(DATA)
    place(tmp_path).unlink()
    place(tmp_path).symlink_to(secret)
    assert blobs.fetch(HASH) is None
    assert blobs.keep(DATA) == HASH
    assert not place(tmp_path).is_symlink()
    assert secret.read_bytes() == DATA


def test_nothing_is_written_through_a_linked_folder(blobs: Blobs, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (tmp_path / ".crush").symlink_to(outside)
    assert blobs.keep(DATA) == ""
    assert list(outside.iterdir()) == []


@pytest.mark.parametrize("obstacle", ["file", "pipe"])
def test_what_cannot_be_kept_has_no_hash(blobs: Blobs, tmp_path: Path, obstacle: str) -> None:
    blobs.keep(b"first")
    place(tmp_path).parent.parent.rename(tmp_path / "gone")
    if obstacle == "pipe":
        os.mkfifo(tmp_path / ".crush" / "blobs")
    else:
        (tmp_path / ".crush" / "blobs").touch()
    assert blobs.keep(DATA) == ""
    assert blobs.fetch(HASH) is None


def test_a_deleted_project_stays_deleted(tmp_path: Path) -> None:
    assert Blobs(tmp_path / "gone" / ".crush").keep(DATA) == ""
    assert list(tmp_path.iterdir()) == []
