"""What is sent once is found in the provider's cache ever after, also by another kernel."""

from itertools import pairwise

import pytest

from tests.fakes.eventful import settings
from tests.fakes.provider.replies import Answer, Call, Reply, Say, Think, say
from tests.fakes.provider.server import Received
from tests.fakes.tab import Tab
from tests.fakes.workcopy import make_repository
from tests.kernel.desk import Desk

pytestmark = [pytest.mark.slow, pytest.mark.timeout(180)]

CELLS = "abcdefghijkl"


def answer(received: Received) -> Answer:
    """Look at a file first, then say what is in it."""
    messages = received.body["messages"]
    assert isinstance(messages, list)
    if "tool_result" in str(messages[-1]) or "'tool'" in str(messages[-1]):
        return say("It holds a word or two. " * 20)
    return Reply((Think("Hm."), Say("I look."), Call("view", {"file_path": "file.txt"})))


def ask(tab: Tab, desk: Desk, cells: str) -> None:
    for cell in cells:
        (desk.cwd / f"{cell}.txt").write_text(cell, encoding="utf-8")
        assert tab.finish(tab.start(cell, f"What is in it? I am in cell {cell}."))["status"] == "ok"
        tab.settle()


@pytest.mark.parametrize("protocol", ["anthropic", "openai"])
def test_ten_turns_and_a_reload_read_from_the_cache_all_that_was_sent_before(
    desk: Desk, protocol: str
) -> None:
    make_repository(desk.cwd, "one")
    (desk.cwd / "CRUSH.md").write_text("Be good.", encoding="utf-8")
    desk.provider.meter.measures_usage = True
    desk.provider.play(answer)
    env = settings(protocol, desk.provider)
    tab = desk.open(desk.start(**env), desk.page(*CELLS))
    ask(tab, desk, CELLS[:10])
    tab.page.save()
    again = desk.open(desk.start(**env), tab.page.reloaded())
    ask(again, desk, CELLS[10:])

    assert [each.refusal for each in desk.provider.requests] == [""] * 24
    slack = 200 if protocol == "anthropic" else 600  # the reminder; a message, and 128 tokens
    for former, request in pairwise(desk.provider.requests):
        assert request.usage is not None
        assert request.usage.cache_read_tokens >= former.tokens - slack
