"""Consoles: text and a keyboard, no widgets, no cell ids."""

import sys
from collections.abc import Generator
from pathlib import Path
from queue import Empty
from typing import Any

import pexpect
import pytest

from tests.fakes import clicks, headless
from tests.fakes.kernel import WAIT_S, Cell, Msg, RunningKernel, running_kernel
from tests.fakes.offline import offline_script, turn, wants

pytestmark = pytest.mark.slow

WORDS = {"text": "word ", "repeat": 1_000_000, "pace_s": 0.02}
"""A reply that ends only with the turn."""


def writing(prompt: str, name: str) -> dict[str, object]:
    """A turn that writes a file of its own, so that it has to ask."""
    return turn(
        prompt,
        {"text": "I make it.", **wants("write", file_path=name, content="made\n")},
        [{"if_denied": True, "text": "As you like."}, {"text": "It is made."}],
    )


SCRIPT = (
    turn("hello", {"text": "Hello **there**."}),
    turn("stream for ever", WORDS),
    turn("fail", {"error": "authentication_failed"}),
    turn("touch it", wants("bash", command="touch it", description="x"), {"text": "Touched."}),
    writing("make one", "one.txt"),
    writing("make two", "two.txt"),
    writing("make three", "three.txt"),
)

QUESTION = "or say why not: "


@pytest.fixture
def folders(tmp_path: Path) -> tuple[Path, Path]:
    """The user's home and the folder of work."""
    home, cwd = tmp_path / "home", tmp_path / "cwd"
    home.mkdir()
    cwd.mkdir()
    return home, cwd


class Terminal:
    """A `jupyter console` in a terminal of its own."""

    def __init__(self, home: Path, cwd: Path) -> None:
        self._child: Any = pexpect.spawn(
            sys.executable,
            ["-m", "jupyter", "console", "--simple-prompt", "--kernel", "crush"],
            env=headless.environment(home, **offline_script(home, *SCRIPT), TERM="dumb"),
            cwd=str(cwd),
            encoding="utf-8",
            timeout=WAIT_S,
        )
        self._cells = 0
        self.wait_prompt()

    def type(self, line: str, until: str) -> str:
        """Type `line` and return what is printed after it up to `until`."""
        self._send(line)
        return self.wait(until)

    def run(self, line: str) -> str:
        """Send `line`, a cell or an answer, and return what is printed up to the next cell."""
        self._send(line)
        return self.wait_prompt()

    def wait(self, text: str) -> str:
        self._child.expect_exact(text)
        return str(self._child.before).replace("\r\n", "\n")

    def wait_prompt(self) -> str:
        self._cells += 1
        return self.wait(f"In [{self._cells}]: ")

    def _send(self, line: str) -> None:
        self._child.sendline(line)
        self._child.expect_exact(f"{line}\r\n")

    def press_ctrl_c(self) -> None:
        self._child.sendintr()

    def press_ctrl_d(self) -> None:
        self._child.sendeof()

    def close(self) -> None:
        self._child.close(force=True)


@pytest.fixture
def terminal(folders: tuple[Path, Path]) -> Generator[Terminal]:
    opened = Terminal(*folders)
    yield opened
    opened.close()


def test_a_turn_in_a_terminal_is_text_questions_and_answers(
    terminal: Terminal, folders: tuple[Path, Path]
) -> None:
    cwd = folders[1]
    assert "Hello **there**." in terminal.run("hello")
    assert "permission mode" in terminal.run("/status")
    assert "out\n" in terminal.run("!echo out")

    asked = terminal.type("make one", until=QUESTION)
    assert asked.index("I make it.") < asked.index("wants to create one.txt") < asked.index("+made")
    assert "As you like." in terminal.run("n not on a Friday")
    assert not (cwd / "one.txt").exists()

    terminal.type("make two", until=QUESTION)
    assert "It is made." in terminal.run("y")
    assert (cwd / "two.txt").read_text(encoding="utf-8") == "made\n"

    failed = terminal.run("fail")
    assert failed.count("AuthenticationFailed") == 1
    assert "Traceback" not in failed


def test_ctrl_c_and_ctrl_d_at_a_question_grant_nothing(
    terminal: Terminal, folders: tuple[Path, Path]
) -> None:
    terminal.type("make one", until=QUESTION)
    terminal.press_ctrl_c()
    assert "interrupted" in terminal.wait_prompt()

    terminal.type("make one", until=QUESTION)
    terminal.press_ctrl_d()
    assert "nobody answered" in terminal.wait_prompt()

    assert not (folders[1] / "one.txt").exists()
    assert "Hello **there**." in terminal.run("hello")


def test_ctrl_c_stops_a_streaming_turn(folders: tuple[Path, Path]) -> None:
    for _ in range(3):
        terminal = Terminal(*folders)
        terminal.type("stream for ever", until="word word")
        terminal.press_ctrl_c()
        try:
            shown = terminal.wait_prompt()
        except pexpect.TIMEOUT:
            # jupyter_console 6.6 deadlocks once in a while: its signal handler waits for a
            # future while the main thread holds the lock of another.
            continue
        finally:
            terminal.close()
        assert "interrupted" in shown
        return
    raise AssertionError("Ctrl-C never worked")


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Generator[tuple[RunningKernel, Path]]:
    """A kernel and its folder, for tests that grant nothing for the session."""
    home, cwd = tmp_path_factory.mktemp("home"), tmp_path_factory.mktemp("cwd")
    with running_kernel(cwd=cwd, home=home, env=offline_script(home, *SCRIPT)) as kernel:
        yield kernel, cwd


@pytest.fixture
def console(shared: tuple[RunningKernel, Path]) -> tuple[RunningKernel, Path]:
    """The shared kernel in an empty folder."""
    for path in shared[1].glob("*.txt"):
        path.unlink()
    return shared


def asked(kernel: RunningKernel, code: str) -> tuple[str, Msg]:
    """Run `code` as a console does; return the id of the request, and the question it brings."""
    msg_id = kernel.execute(code, cell_id=None, allow_stdin=True)
    question = kernel.client.get_stdin_msg(timeout=WAIT_S)
    assert question["msg_type"] == "input_request"
    assert question["parent_header"]["msg_id"] == msg_id
    return msg_id, question


def reply(kernel: RunningKernel, content: Msg, parent: Msg | None = None) -> None:
    message = kernel.client.session.msg("input_reply", content, parent=parent)
    kernel.client.stdin_channel.send(message)


def run_answering(kernel: RunningKernel, code: str, line: str) -> Cell:
    msg_id, _ = asked(kernel, code)
    reply(kernel, {"value": line})
    return kernel.collect(msg_id)


def is_asked(kernel: RunningKernel) -> bool:
    """Return whether an unexpected question has come."""
    try:
        kernel.client.get_stdin_msg(timeout=0)
    except Empty:
        return False
    return True


@pytest.mark.parametrize(
    ("line", "is_written", "word"),
    [
        pytest.param("y", True, "allowed once", id="yes"),
        pytest.param("n", False, "denied", id="no"),
        pytest.param("n not on a Friday", False, "not on a Friday", id="no with a reason"),
        pytest.param("not on a Friday", False, "not on a Friday", id="a reason alone"),
        pytest.param("", False, "denied", id="an empty line"),
        pytest.param("\x04", False, "nobody answered", id="the end of the input"),
    ],
)
def test_a_console_is_asked_on_its_keyboard(
    console: tuple[RunningKernel, Path], line: str, word: str, *, is_written: bool
) -> None:
    kernel, cwd = console
    cell = run_answering(kernel, "make one", line)
    assert cell.status == "ok"
    assert word in cell.stdout
    assert (cwd / "one.txt").exists() is is_written
    assert ("It is made." if is_written else "As you like.") in cell.stdout


def test_a_console_gets_neither_widgets_nor_updates(console: tuple[RunningKernel, Path]) -> None:
    cell = run_answering(console[0], "make one", "y")
    assert set(cell.kinds) == {"status", "execute_input", "stream"}


def test_a_grant_for_the_session_is_asked_for_once(folders: tuple[Path, Path]) -> None:
    home, cwd = folders
    with running_kernel(cwd=cwd, home=home, env=offline_script(home, *SCRIPT)) as kernel:
        first = run_answering(kernel, "make one", "s")
        second = kernel.run("make two", cell_id=None, allow_stdin=True)
        assert "allowed for the session" in first.stdout
        assert "It is made." in second.stdout
        assert not is_asked(kernel)
        assert (cwd / "two.txt").exists()


def test_a_rule_is_made_on_the_keyboard_and_counts_from_then_on(
    folders: tuple[Path, Path],
) -> None:
    home, cwd = folders
    with running_kernel(cwd=cwd, home=home, env=offline_script(home, *SCRIPT)) as kernel:
        msg_id, question = asked(kernel, "touch it")
        assert "[a] always" in question["content"]["prompt"]
        for line in ("a", "bash(ls:*)", "n", "a", "bash(touch:*)", "p"):
            reply(kernel, {"value": line})
            if line != "p":
                kernel.client.get_stdin_msg(timeout=WAIT_S)
        first = kernel.collect(msg_id)
        assert "do not allow" in first.stdout
        assert "always allowed in this project: bash(touch:*)" in first.stdout
        second = kernel.run("touch it", cell_id=None, allow_stdin=True)
        assert "allowed by a rule: bash(touch:*)" in second.stdout
        assert not is_asked(kernel)


def test_an_answer_after_an_interrupt_does_not_answer_the_next_question(
    console: tuple[RunningKernel, Path],
) -> None:
    kernel, cwd = console
    first, withdrawn = asked(kernel, "make one")
    kernel.interrupt()
    assert kernel.collect(first).reply["content"]["ename"] == "Interrupted"
    reply(kernel, {"value": "y"})

    second, _ = asked(kernel, "make two")
    reply(kernel, {"value": "y"}, parent=withdrawn)
    reply(kernel, {"value": "n"})

    assert "As you like." in kernel.collect(second).stdout
    assert not list(cwd.glob("*.txt"))


@pytest.mark.parametrize(
    "content",
    [
        pytest.param({}, id="no value"),
        pytest.param({"value": None}, id="null"),
        pytest.param({"value": ["y"]}, id="a list"),
    ],
)
def test_a_malformed_answer_answers_nothing(
    console: tuple[RunningKernel, Path], content: Msg
) -> None:
    kernel, cwd = console
    msg_id, _ = asked(kernel, "make one")
    reply(kernel, content)
    kernel.client.stdin_channel.socket.send_multipart([b"nonsense"])
    reply(kernel, {"value": "n"})
    assert "As you like." in kernel.collect(msg_id).stdout
    assert not (cwd / "one.txt").exists()


def test_a_front_end_with_widgets_and_a_keyboard_is_asked_by_widget_alone(
    console: tuple[RunningKernel, Path],
) -> None:
    kernel, cwd = console
    cell = clicks.run(kernel, "make one", [clicks.ALLOW], stdin=True)
    assert "comm_open" in cell.kinds
    assert not is_asked(kernel)
    assert (cwd / "one.txt").exists()


def test_nobody_is_asked_where_nobody_can_answer(console: tuple[RunningKernel, Path]) -> None:
    kernel, cwd = console
    cell = kernel.run("make one", cell_id=None)
    assert "As you like." in cell.markdown
    assert "comm_open" not in cell.kinds
    assert not is_asked(kernel)
    assert not (cwd / "one.txt").exists()
