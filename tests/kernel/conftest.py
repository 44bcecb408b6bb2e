"""Kernels for the tests: one shared per module where a test leaves no trace, else its own."""

from collections.abc import Generator
from pathlib import Path

import pytest

from tests.fakes.kernel import Msg, RunningKernel, offline_script, running_kernel

LONG = 600
"""Seconds that no test waits for: what is meant to be interrupted takes this long."""


def turn(prompt: str, *steps: Msg | list[Msg]) -> Msg:
    """One exchange of an offline script."""
    return {"prompt": prompt, "steps": list(steps)}


def wants(name: str, **arguments: object) -> Msg:
    """A step that calls one tool."""
    return {"tool_calls": [{"name": name, "input": arguments}]}


SCRIPT = (
    turn("hello", {"text": "Hello **there**."}),
    turn("wait", {"text": "One moment.", "delay_s": LONG}),
    turn("stream for ever", {"text": "word ", "repeat": 1_000_000, "pace_s": 0.02}),
    turn("sleep", wants("bash", command="echo begun; sleep 600", description="wait")),
    turn(
        "make a file",
        {"text": "I make it.", **wants("write", file_path="new.txt", content="made\n")},
        [{"if_denied": True, "text": "As you like."}, {"text": "It is made."}],
    ),
    turn("fail", {"error": "authentication_failed"}),
    turn("look", wants("ls", path="."), {"text": "That is all."}),
)


@pytest.fixture(scope="module")
def shared_kernel(tmp_path_factory: pytest.TempPathFactory) -> Generator[RunningKernel]:
    """A kernel with the offline provider, for tests that leave it as it was."""
    home, cwd = tmp_path_factory.mktemp("home"), tmp_path_factory.mktemp("cwd")
    with running_kernel(cwd=cwd, home=home, env=offline_script(home, *SCRIPT)) as kernel:
        yield kernel


@pytest.fixture
def kernel(tmp_path: Path) -> Generator[RunningKernel]:
    """A kernel of its own with the offline provider; it works in `tmp_path/cwd`."""
    home, cwd = tmp_path / "home", tmp_path / "cwd"
    home.mkdir()
    cwd.mkdir()
    with running_kernel(cwd=cwd, home=home, env=offline_script(home, *SCRIPT)) as running:
        yield running
