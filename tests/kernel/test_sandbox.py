"""A kernel whose commands are confined, or not run at all."""

import os
import tempfile
from contextlib import ExitStack
from pathlib import Path

import pytest

from crush_kernel.shell.sandbox import find_sandbox
from tests.fakes.provider.replies import call, say
from tests.fakes.provider.server import FakeProvider
from tests.kernel.desk import Desk

pytestmark = [pytest.mark.slow, pytest.mark.timeout(120)]

TROUBLE = find_sandbox(os.environ)[1]


@pytest.mark.skipif(bool(TROUBLE), reason=TROUBLE or "there is a sandbox")
def test_the_agents_commands_are_confined_and_the_users_own_are_free(
    tmp_path: Path, provider: FakeProvider
) -> None:
    with ExitStack() as stack:
        outside = Path(stack.enter_context(tempfile.TemporaryDirectory(dir="/var/tmp")))
        desk = Desk(tmp_path, provider, stack)
        # Not to be read from the command line: what lies outside would be asked for.
        (desk.cwd / "make.sh").write_text(f"touch {outside}/by-agent\n")
        tab = desk.open(desk.start(CRUSH_SANDBOX="1", CRUSH_PERMISSION_MODE="yolo"))
        provider.play(
            call("bash", {"command": "touch in; sh make.sh", "description": ""}),
            say("Done."),
        )
        tab.run_told("a", "Make it.")
        tab.run_told("b", f"!touch {outside}/by-user")
        made = {path.name for path in outside.iterdir()}

    assert (desk.cwd / "in").exists()
    assert made == {"by-user"}
    assert "the sandbox lets commands write only in the project" in desk.sent


def test_where_there_is_no_sandbox_the_agents_commands_are_refused(
    tmp_path: Path, provider: FakeProvider
) -> None:
    programs = tmp_path / "programs"
    programs.mkdir()
    (programs / "bwrap").write_text("#!/bin/sh\nexit 1\n")
    (programs / "bwrap").chmod(0o755)
    with ExitStack() as stack:
        desk = Desk(tmp_path, provider, stack)
        path = f"{programs}:{os.environ['PATH']}"
        tab = desk.open(desk.start(CRUSH_SANDBOX="1", CRUSH_PERMISSION_MODE="yolo", PATH=path))
        provider.play(call("bash", {"command": "touch in", "description": ""}), say("No."))
        tab.run_told("a", "Make it.")

    assert not (desk.cwd / "in").exists()
    assert "nothing was run" in desk.sent
