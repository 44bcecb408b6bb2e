"""A sub-agent in a real kernel: kept, clean, and still there after the kernel was killed."""

import json
import sqlite3
from collections.abc import Generator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import pytest

from crush_kernel.history.journal.journal import FILE_NAME
from crush_kernel.history.subagentrecord import KEY
from tests.fakes.kernel import RunningKernel, running_kernel
from tests.fakes.offline import LONG, offline_script, turn, wants
from tests.fakes.page import Page
from tests.fakes.tab import Tab, opened
from tests.kernel.desk import kill

pytestmark = [pytest.mark.slow, pytest.mark.timeout(120)]

SECRET = "sk-ant-api03-" + "a1B2" * 20

SCRIPT = (
    turn("Delegate.", wants("agent", prompt="Look for it."), {"text": "So: {result}"}),
    turn("Look for it.", wants("view", file_path="a.txt"), {"text": "It is in a.txt:1."}),
    turn("Take long.", wants("agent", prompt="Look for long."), {"text": "Done."}),
    turn(
        "Look for long.",
        wants("view", file_path="a.txt"),
        {"text": "It takes a while.", "delay_s": LONG},
    ),
)


class Place:
    """A project with a notebook, and the kernels that are started in it."""

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        self.home, self.cwd = folder / "home", folder / "cwd"
        self._stack = stack
        for path in (self.home, self.cwd):
            path.mkdir()
        (self.cwd / "a.txt").write_text(f"key: {SECRET}\n", encoding="utf-8")

    def open(self, page: Page) -> tuple[RunningKernel, Tab]:
        env = offline_script(self.home, *SCRIPT)
        kernel = self._stack.enter_context(running_kernel(cwd=self.cwd, home=self.home, env=env))
        tab = self._stack.enter_context(opened(kernel, page))
        tab.open()
        return kernel, tab

    @property
    def journal(self) -> Path:
        return self.cwd / ".crush" / FILE_NAME

    def nested(self) -> int:
        """Return how many messages of sub-agents the journal holds of turns that run."""
        if not self.journal.exists():
            return 0
        with closing(sqlite3.connect(f"file:{self.journal}?mode=ro", uri=True)) as connection:
            try:
                query = "SELECT count(*) FROM entries WHERE kind = 'nested'"
                return int(connection.execute(query).fetchone()[0])
            except sqlite3.OperationalError:  # its tables are being made
                return 0


@pytest.fixture
def place(tmp_path: Path) -> Generator[Place]:
    with ExitStack() as stack:
        yield Place(tmp_path, stack)


def result_in(page: Page, cell_id: str) -> dict[str, Any]:
    """Return the first result of a tool in the turn of a cell."""
    record = page[cell_id].crush
    assert record is not None
    parts = [part for message in record["messages"] for part in message["parts"]]
    return next(part for part in parts if part["kind"] == "tool_result")


def test_what_a_sub_agent_did_is_kept_with_its_call_and_without_secrets(place: Place) -> None:
    _, tab = place.open(Page("a", path="nb.ipynb"))
    tab.finish(tab.start("a", "Delegate."))
    tab.settle()
    result = result_in(tab.page, "a")
    record = result["metadata"][KEY]
    assert result["content"] == "It is in a.txt:1."
    assert (record["name"], record["model"], record["end"]) == (
        "task",
        "offline/offline",
        "end_turn",
    )
    assert [message["role"] for message in record["messages"]] == [
        "user",
        "assistant",
        "tool",
        "assistant",
    ]
    assert "⟨secret:" in json.dumps(record, ensure_ascii=False)
    kept = json.dumps(tab.page["a"].crush) + str(tab.page["a"].outputs)
    assert SECRET not in kept
    for file in place.journal.parent.glob(f"{FILE_NAME}*"):
        assert SECRET.encode() not in file.read_bytes()


def test_what_a_sub_agent_did_is_there_after_the_kernel_was_killed(place: Place) -> None:
    kernel, tab = place.open(Page("a", "b", path="nb.ipynb"))
    tab.start("a", "Take long.")
    tab.wait(lambda: place.nested() >= 3)
    kill(kernel)
    _, again = place.open(tab.page.reloaded())
    result = result_in(again.page, "a")
    record = result["metadata"][KEY]
    assert (result["is_error"], record["end"]) == (True, "interrupted")
    assert [message["role"] for message in record["messages"][:3]] == ["user", "assistant", "tool"]
    turn_record = again.page["a"].crush
    assert turn_record is not None
    used = turn_record["usage"]["input_tokens"]
    own = [message.get("usage", {}) for message in turn_record["messages"]]
    assert used > sum(usage.get("input_tokens", 0) for usage in own) > 0
    again.finish(again.start("b", "Delegate."))
    again.settle()
    assert "It is in a.txt:1." in result_in(again.page, "b")["content"]
