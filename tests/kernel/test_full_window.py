"""A window that is full in the midst of a cell, in a real kernel with a page.

The provider's window is much smaller than the kernel believes: it finds out when a request is
refused.
"""

import re
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.fakes.provider.replies import Answer, Reply, Say, call, say
from tests.fakes.provider.server import FakeProvider, Received
from tests.kernel.desk import Desk

pytestmark = [pytest.mark.slow, pytest.mark.timeout(180)]

STEPS = 25
ASKED = "Count the sheep, all of them."


def answer(received: Received) -> Answer:
    """Count on from what is to be seen, until all are counted."""
    said = received.raw.decode()
    if ASKED not in said:
        return say("A title")
    counted = int((re.findall(r"sheep (\d+) ", said) or ["0"])[-1])
    if "to be replaced by a summary" in said:
        return Reply((Say(f"Counted up to sheep {counted} so far."),))
    if counted == STEPS:
        return say("All are counted.")
    command = f"echo sheep {counted + 1} ; seq 1 900 # {counted}"
    return call("bash", {"command": command, "description": "count"})


def test_a_cell_goes_on_over_its_full_window_and_is_answered_once(
    provider: FakeProvider, tmp_path: Path
) -> None:
    provider.meter.window = 24_000
    provider.meter.measures_usage = True
    provider.play(answer)
    with ExitStack() as stack:
        desk = Desk(tmp_path, provider, stack)
        kernel = desk.start(CRUSH_PERMISSION_MODE="yolo")
        tab = desk.open(kernel, desk.page("a", "b"))
        request = tab.start("a", ASKED)
        reply = tab.finish(request)
        tab.settle()
        assert reply["status"] == "ok"
        cell = tab.page["a"]
        assert "All are counted." in cell.shown
        assert "was summarized" in cell.shown
        assert "Counted up to sheep" in cell.shown
        assert cell.turn is not None
        assert "k of 24 k" in cell.shown
        sent = [each for each in provider.requests if ASKED in each.raw.decode()]
        refused = [each for each in sent if each.refusal]
        assert 1 <= len(refused) <= 3
        assert all(each.tokens <= 24_000 for each in sent if not each.refusal)
        # What it has found out holds for the next cell too.
        tab.finish(tab.start("b", f"And again: {ASKED}"))
        assert [each for each in provider.requests if each.refusal] == refused
