"""Hooks in a real kernel: configured in files, run by a turn, gone with it."""

import json
import os
import re
import signal
import threading
import time
from collections.abc import Generator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.fakes.kernel import RunningKernel, running_kernel
from tests.fakes.offline import offline_script, turn, wants
from tests.fakes.provider.replies import say
from tests.hooks.scripts import DENY_RM, FORMAT, TESTS_FIRST, script
from tests.kernel.desk import Desk, kill
from tests.kernel.test_interrupt import shows

pytestmark = [pytest.mark.slow, pytest.mark.timeout(120)]

SCRIPT = (
    turn("clean", wants("bash", command="rm -rf build; touch ran"), {"text": "So: {result}"}),
    turn("make", wants("bash", command="touch made"), {"text": "So: {result}"}),
    turn("delegate", wants("agent", prompt="look for it"), {"text": "So: {result}"}),
    turn("look for it", wants("view", file_path="a.txt"), {"text": "Found: {result}"}),
    turn("write", wants("write", file_path="new.py", content="x = 1   \n"), {"text": "Written."}),
    turn("hello", {"text": "Hello."}),
)

Listed = dict[str, list[dict[str, Any]]]


class Place:
    """A project, the user's home, and the kernels that are started there."""

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        self.home, self.cwd = folder / "home", folder / "cwd"
        self.config = self.home / ".config" / "crush" / "crush.json"
        self._stack = stack
        for path in (self.config.parent, self.cwd / "build"):
            path.mkdir(parents=True)

    def start(self, hooks: Listed, **env: str) -> RunningKernel:
        """Start a kernel whose user has configured `hooks`."""
        self.config.write_text(json.dumps({"hooks": hooks}), encoding="utf-8")
        played = offline_script(self.home, *SCRIPT)
        kernel = running_kernel(cwd=self.cwd, home=self.home, env=played | env)
        return self._stack.enter_context(kernel)


@pytest.fixture
def place(tmp_path: Path) -> Generator[Place]:
    with ExitStack() as stack:
        yield Place(tmp_path, stack)


def nested(command: object, matcher: str = "") -> list[dict[str, Any]]:
    """Return a list of hooks as Claude Code has them."""
    return [{"matcher": matcher, "hooks": [{"type": "command", "command": str(command)}]}]


def sleepers(seconds: int) -> list[str]:
    """Return the processes of this machine that sleep so long."""
    found: list[str] = []
    for process in psutil.process_iter(["cmdline", "status"]):
        words: list[str] = process.info["cmdline"] or []
        if str(seconds) in words and process.info["status"] != psutil.STATUS_ZOMBIE:
            found.append(" ".join(words))
    return found


def wait_until_none_sleeps(seconds: int) -> None:
    deadline = time.monotonic() + 10
    while sleepers(seconds) and time.monotonic() < deadline:
        threading.Event().wait(0.05)
    assert sleepers(seconds) == []


def test_a_script_for_claude_code_denies_a_call_and_the_turn_goes_on(place: Place) -> None:
    path = script(place.home, "deny_rm.py", DENY_RM)
    kernel = place.start({"PreToolUse": nested(path, "Bash")}, CRUSH_PERMISSION_MODE="yolo")
    cell = kernel.run("clean")
    assert cell.status == "ok"
    assert (place.cwd / "build").is_dir()
    assert not (place.cwd / "ran").exists()
    assert cell.markdown.count("Removing folders is not done here.") >= 1
    assert "denied" in cell.markdown
    assert kernel.run("make", cell_id="cell-2").status == "ok"
    assert (place.cwd / "made").exists()
    audit = kernel.run("/audit", cell_id="cell-3").markdown
    assert "1 denied by hooks" in audit


def test_a_hook_allows_a_call_where_nobody_can_be_asked(place: Place) -> None:
    allow = {"command": """echo '{"decision": "allow"}'""", "matcher": "^bash$"}
    kernel = place.start({"PreToolUse": [allow]})
    assert kernel.run("make", cell_id=None).status == "ok"
    assert (place.cwd / "made").exists()


def test_without_the_hook_the_same_call_is_denied_there(place: Place) -> None:
    kernel = place.start({})
    assert kernel.run("make", cell_id=None).status == "ok"
    assert not (place.cwd / "made").exists()


def test_a_rewritten_command_is_run_and_shown_in_place_of_the_first(place: Place) -> None:
    answer = json.dumps({"decision": "allow", "updated_input": {"command": "touch other"}})
    kernel = place.start({"PreToolUse": [{"command": f"echo '{answer}'", "name": "swap"}]})
    cell = kernel.run("make")
    assert (place.cwd / "other").exists()
    assert not (place.cwd / "made").exists()
    assert "<b>bash</b> touch other" in cell.markdown
    assert "swap&quot; changed the input of bash: command." in cell.markdown.replace('"', "&quot;")


def test_a_formatter_runs_after_a_file_was_written(place: Place) -> None:
    path = script(place.home, "format.sh", FORMAT)
    kernel = place.start(
        {"PostToolUse": nested(path, "Edit|Write")}, CRUSH_PERMISSION_MODE="accept-edits"
    )
    assert kernel.run("write").status == "ok"
    assert (place.cwd / "new.py").read_text(encoding="utf-8") == "x = 1\n"


def test_the_calls_of_a_sub_agent_are_hooked(place: Place) -> None:
    (place.cwd / "a.txt").write_text("secret plans\n", encoding="utf-8")
    deny = "cat > told.json; echo plans are not for agents >&2; exit 2"
    kernel = place.start({"PreToolUse": nested(deny, "Read")})
    cell = kernel.run("delegate")
    assert cell.status == "ok"
    assert "plans are not for agents" in cell.markdown
    assert "secret plans" not in cell.markdown
    told = json.loads((place.cwd / "told.json").read_text(encoding="utf-8"))
    assert (told["tool_name"], told["agent_type"]) == ("Read", "task")


def test_a_turn_ends_only_when_a_stop_hook_lets_it(place: Place) -> None:
    path = script(place.home, "tests_first.sh", TESTS_FIRST)
    kernel = place.start({"Stop": nested(path)})
    cell = kernel.run("hello")
    assert cell.status == "ok"
    assert cell.markdown.count("Run the tests before you stop.") == 1


def test_a_hook_that_fails_is_told_in_one_line(place: Place) -> None:
    broken = {"command": "echo oh dear >&2; exit 7", "name": "broken"}
    kernel = place.start({"PreToolUse": [broken]}, CRUSH_PERMISSION_MODE="yolo")
    cell = kernel.run("make")
    assert (place.cwd / "made").exists()
    lines = [line for line in cell.markdown.splitlines() if "broken" in line]
    assert len(lines) == 1
    assert "exit 7, oh dear" in lines[0]


def test_an_interrupt_during_a_hook_leaves_no_process(place: Place) -> None:
    slow = "setsid sleep 7654 & touch begun; sleep 7654"
    kernel = place.start({"PreToolUse": [{"command": slow}]}, CRUSH_PERMISSION_MODE="yolo")
    msg_id = kernel.execute("make")
    kernel.wait_for(shows("touch made"))
    wait_for_file(place.cwd / "begun")
    kernel.interrupt()
    assert kernel.collect(msg_id).reply["content"]["ename"] == "Interrupted"
    assert sleepers(7654) == []
    assert not (place.cwd / "made").exists()


def test_a_hook_ends_with_a_kernel_that_is_killed(place: Place) -> None:
    slow = "setsid sleep 7655 & touch begun; sleep 7655"
    kernel = place.start({"UserPromptSubmit": [{"command": slow}]})
    kernel.execute("hello")
    wait_for_file(place.cwd / "begun")
    os.kill(kernel.pid, signal.SIGSTOP)  # so that it has no time to do anything about it
    kill(kernel)
    wait_until_none_sleeps(7655)


def wait_for_file(path: Path) -> None:
    deadline = time.monotonic() + 20
    while not path.exists() and time.monotonic() < deadline:
        threading.Event().wait(0.05)
    assert path.exists()


def test_hooks_of_a_project_run_only_once_it_is_trusted(place: Place) -> None:
    hooks = {"hooks": {"UserPromptSubmit": [{"command": "touch ran"}]}}
    (place.cwd / "crush.json").write_text(json.dumps(hooks), encoding="utf-8")
    kernel = place.start({})
    kernel.run("hello")
    assert not (place.cwd / "ran").exists()
    page = kernel.run("/trust", cell_id="cell-2").markdown
    digest = re.search(r"/trust ([0-9a-f]{12,})", page)
    assert digest is not None
    assert kernel.run(f"/trust {digest[1]}", cell_id="cell-3").status == "ok"
    kernel.run("hello", cell_id="cell-4")
    assert (place.cwd / "ran").exists()


def configure(desk: Desk, hooks: Listed) -> None:
    path = desk.home / ".config" / "crush" / "crush.json"
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps({"hooks": hooks}), encoding="utf-8")


def test_a_prompt_that_a_hook_stops_is_not_sent_and_not_remembered(desk: Desk) -> None:
    stop = "grep -q PASSWORD && { echo no passwords here >&2; exit 2; }; true"
    configure(desk, {"UserPromptSubmit": [{"command": stop, "name": "guard"}]})
    desk.provider.play(say("Fine."))
    tab = desk.open(desk.start())
    reply = tab.finish(tab.start("a", "my PASSWORD is tiger"))
    assert (reply["status"], reply["ename"]) == ("error", "PromptBlocked")
    assert reply["evalue"] == (
        'The prompt was not sent: the hook "guard" stopped it: no passwords here.'
    )
    tab.settle()
    assert desk.provider.requests == []
    assert tab.finish(tab.start("b", "hello"))["status"] == "ok"
    assert "tiger" not in desk.sent


def test_what_hooks_add_to_a_prompt_and_to_the_session_is_read_by_the_model(desk: Desk) -> None:
    began = "cat >> began.json; echo The release is on Friday."
    configure(
        desk,
        {
            "SessionStart": [{"command": began}],
            "UserPromptSubmit": nested("cat > asked.json; echo Be brief."),
        },
    )
    desk.provider.play(say("Fine."), say("Fine."))
    tab = desk.open(desk.start())
    for cell in "ab":
        assert tab.finish(tab.start(cell, f"hello from {cell}"))["status"] == "ok"
        tab.settle()
        assert "The release is on Friday." in desk.sent
    assert desk.sent.count("Be brief.") == 2, "with each prompt, for good"
    assert desk.sent.count("The release is on Friday.") == 1, "with the last, as it holds now"
    told = json.loads((desk.cwd / "began.json").read_text(encoding="utf-8"))
    assert (told["source"], told["hook_event_name"]) == ("startup", "SessionStart")
    asked = json.loads((desk.cwd / "asked.json").read_text(encoding="utf-8"))
    assert asked["prompt"] == "hello from b"
    assert asked["transcript_path"].endswith("nb.ipynb")
