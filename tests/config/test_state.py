"""The remembered models survive, and so does everything else in the file."""

import errno
import json
import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from crush_kernel.config.state import ModelChoice, State
from crush_kernel.config.statefile import MAX_BYTES
from crush_kernel.errors import ConfigError

CHOICE = ModelChoice("openai", "gpt-5")


def state_at(tmp_path: Path, content: str | bytes | None = None) -> State:
    path = tmp_path / "data" / "crush.json"
    if content is not None:
        path.parent.mkdir()
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return State(path)


def test_a_choice_is_read_back(tmp_path: Path) -> None:
    state = state_at(tmp_path)
    state.remember("large", CHOICE)
    state.remember("small", ModelChoice("groq", "a/b"))
    assert state.choice("large") == CHOICE
    assert State(state.path).choice("small") == ModelChoice("groq", "a/b")


def test_the_file_is_crushs(tmp_path: Path) -> None:
    state = state_at(tmp_path)
    state.remember("large", CHOICE)
    document = json.loads(state.path.read_text(encoding="utf-8"))
    assert document == {"models": {"large": {"provider": "openai", "model": "gpt-5"}}}


def test_only_its_owner_can_read_the_file(tmp_path: Path) -> None:
    state = state_at(tmp_path, "{}")
    state.path.chmod(0o644)
    state.remember("large", CHOICE)
    assert stat.S_IMODE(state.path.stat().st_mode) == 0o600


def test_what_others_keep_in_the_file_stays(tmp_path: Path) -> None:
    others = {"providers": {"x": {"oauth": {"access_token": "t"}}}, "models": {"small": {"a": 1}}}
    state = state_at(tmp_path, json.dumps(others))
    state.remember("large", CHOICE)
    document = json.loads(state.path.read_text(encoding="utf-8"))
    assert document["providers"] == others["providers"]
    assert document["models"]["small"] == {"a": 1}


def test_a_choice_replaces_the_former_one_whole(tmp_path: Path) -> None:
    former = {"models": {"large": {"provider": "anthropic", "model": "m", "think": True}}}
    state = state_at(tmp_path, json.dumps(former))
    state.remember("large", CHOICE)
    document = json.loads(state.path.read_text(encoding="utf-8"))
    assert document["models"]["large"] == {"provider": "openai", "model": "gpt-5"}


UNREADABLE = [
    pytest.param("{", id="cut off"),
    pytest.param("[1]", id="a list"),
    pytest.param(b"\xff\xfe\x00", id="not text"),
    pytest.param("[" * 100_000, id="nested without end"),
    pytest.param(" " * (MAX_BYTES + 1), id="huge"),
]


@pytest.mark.parametrize("content", UNREADABLE)
def test_a_file_that_cannot_be_read_is_no_choice_and_is_never_overwritten(
    tmp_path: Path, content: str | bytes
) -> None:
    state = state_at(tmp_path, content)
    before = state.path.read_bytes()
    assert state.choice("large") is None
    with pytest.raises(ConfigError, match="no choice of model is kept") as caught:
        state.remember("large", CHOICE)
    assert caught.value.path == state.path
    assert caught.value.hint
    assert state.path.read_bytes() == before


@pytest.mark.parametrize(
    "content",
    [
        pytest.param("", id="empty file"),
        pytest.param("{}", id="empty object"),
        pytest.param('{"models": []}', id="models is a list"),
        pytest.param('{"models": {"large": "gpt"}}', id="a choice is a text"),
        pytest.param('{"models": {"large": {"provider": "openai"}}}', id="half a choice"),
        pytest.param('{"models": {"large": {"provider": 1, "model": 2}}}', id="numbers"),
        pytest.param('{"models": {"large": {"provider": "", "model": ""}}}', id="blank"),
    ],
)
def test_a_file_without_a_choice_has_none_and_takes_one(tmp_path: Path, content: str) -> None:
    state = state_at(tmp_path, content)
    assert state.choice("large") is None
    state.remember("large", CHOICE)
    assert state.choice("large") == CHOICE


def test_a_linked_file_stays_where_it_is_kept(tmp_path: Path) -> None:
    kept = tmp_path / "dotfiles.json"
    kept.write_text("{}", encoding="utf-8")
    link = tmp_path / "crush.json"
    link.symlink_to(kept)
    State(link).remember("large", CHOICE)
    assert link.is_symlink()
    assert "gpt-5" in kept.read_text(encoding="utf-8")


def a_folder_in_its_place(path: Path) -> None:
    path.mkdir(parents=True)


def a_file_for_its_folder(path: Path) -> None:
    path.parent.write_text("", encoding="utf-8")


@pytest.mark.parametrize("obstruct", [a_folder_in_its_place, a_file_for_its_folder])
def test_a_place_that_cannot_be_written_is_explained(
    tmp_path: Path, obstruct: Callable[[Path], None]
) -> None:
    state = state_at(tmp_path)
    obstruct(state.path)
    assert state.choice("large") is None
    with pytest.raises(ConfigError, match="state file"):
        state.remember("large", CHOICE)


def test_a_write_that_fails_halfway_leaves_the_file_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_handle: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    state = state_at(tmp_path, '{"kept": 1}')
    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(ConfigError, match="No space left"):
        state.remember("large", CHOICE)
    assert state.path.read_text(encoding="utf-8") == '{"kept": 1}'
    assert [path.name for path in state.path.parent.iterdir()] == ["crush.json"]


def test_nothing_is_left_beside_the_file(tmp_path: Path) -> None:
    state = state_at(tmp_path)
    for _ in range(3):
        state.remember("large", CHOICE)
    assert [path.name for path in state.path.parent.iterdir()] == ["crush.json"]
