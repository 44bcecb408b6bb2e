"""Stop works at every moment of a turn, and once is enough."""

import time
from collections.abc import Callable

import psutil
import pytest

from tests.fakes.kernel import Cell, Msg, RunningKernel

pytestmark = pytest.mark.slow

STOP_LIMIT_S = 1.0
"""Design §12: interrupt to idle, always."""


def shows(text: str) -> Callable[[Msg], bool]:
    """Return a test for messages that show `text` in any form."""
    return lambda message: text in str(message["content"].get("data", message["content"]))


def interrupted(kernel: RunningKernel, code: str, when: Callable[[Msg], bool]) -> Cell:
    """Run `code`, interrupt when a message comes that `when` accepts, return the cell."""
    msg_id = kernel.execute(code)
    kernel.wait_for(when)
    began = time.monotonic()
    kernel.interrupt()
    cell = kernel.collect(msg_id)
    assert time.monotonic() - began < STOP_LIMIT_S * 3, "a generous bound on a busy machine"
    return cell


@pytest.mark.parametrize(
    ("code", "when"),
    [
        pytest.param("wait", shows("wait"), id="before the first token"),
        pytest.param("stream for ever", shows("word word"), id="while streaming"),
        pytest.param("make a file", shows("widget-view"), id="at a permission prompt"),
    ],
)
def test_an_interrupted_turn_ends_at_once_without_a_red_box(
    kernel: RunningKernel, code: str, when: Callable[[Msg], bool]
) -> None:
    cell = interrupted(kernel, code, when)
    content = cell.reply["content"]
    assert (content["status"], content["ename"]) == ("error", "Interrupted")
    assert "error" not in cell.kinds
    assert not any("widget-view" in str(output["data"]) for output in cell.outputs)
    assert kernel.run("hello", cell_id="cell-2").status == "ok"


def test_an_interrupt_kills_the_running_command(kernel: RunningKernel) -> None:
    msg_id = kernel.execute("!echo $((617 + 1)); sleep 600")
    kernel.wait_for(shows("618"))
    kernel.interrupt()
    cell = kernel.collect(msg_id)
    assert cell.reply["content"]["ename"] == "Interrupted"
    assert "618" in cell.markdown
    assert not [
        p for p in psutil.Process(kernel.pid).children(recursive=True) if "600" in p.cmdline()
    ]


def test_what_was_streamed_is_kept_and_the_model_is_told(kernel: RunningKernel) -> None:
    cell = interrupted(kernel, "stream for ever", shows("word word"))
    assert "word word" in cell.markdown
    assert kernel.run("hello", cell_id="cell-2").status == "ok"


def test_one_interrupt_aborts_the_queued_cells_and_later_ones_run(kernel: RunningKernel) -> None:
    first = kernel.execute("wait", cell_id="a")
    queued = [kernel.execute("hello", cell_id=name) for name in "bc"]
    kernel.wait_for(shows("wait"))
    kernel.interrupt()
    replies = [kernel.collect(msg_id).status for msg_id in (first, *queued)]
    assert replies == ["error", "aborted", "aborted"]
    assert kernel.run("hello", cell_id="d").status == "ok"


def test_a_failed_cell_aborts_all_queued_cells(kernel: RunningKernel) -> None:
    sent = [kernel.execute(code, cell_id=code) for code in ("hello", "fail", "look", "hello")]
    statuses = [kernel.collect(msg_id).status for msg_id in sent]
    assert statuses == ["ok", "error", "aborted", "aborted"]


def test_an_interrupt_while_nothing_runs_is_harmless(kernel: RunningKernel) -> None:
    kernel.interrupt()
    assert kernel.run("hello").status == "ok"


def test_messages_are_answered_while_a_cell_runs(kernel: RunningKernel) -> None:
    msg_id = kernel.execute("wait")
    kernel.wait_for(shows("wait"))
    matches = kernel.shell_request("complete_request", {"code": "/he", "cursor_pos": 3})
    assert matches["content"]["matches"] == ["/help"]
    assert kernel.shell_request("kernel_info_request", {})["content"]["status"] == "ok"
    kernel.interrupt()
    assert kernel.collect(msg_id).reply["content"]["ename"] == "Interrupted"
