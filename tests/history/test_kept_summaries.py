"""Summaries outlive their kernel, whatever secrets, kills and copies do to what they stand for."""

import json
from pathlib import Path

import pytest

from crush_kernel.errors import CommandError
from crush_kernel.history.record import read_turn
from crush_kernel.history.summary import is_summary, summary_text
from crush_kernel.messages import Message, Reasoning, Text, ToolCall, ToolResult, text_of
from tests.fakes.livesession import LiveSession, prompt, reply
from tests.fakes.page import Page

SECRET = "hunter2-hunter2-hunter2"  # noqa: S105 - made up
ENVIRON = {"SHOP_PASSWORD": SECRET}


def called(size: int = 10) -> tuple[Message, Message]:
    call = ToolCall("c1", "bash", '{"command": "env"}')
    result = ToolResult("c1", f"SHOP_PASSWORD={SECRET}\n" + "x" * size)
    return Message("assistant", (call,), "fake", "m", "tool_use"), Message("tool", (result,))


def summarize(live: LiveSession, text: str = "in short") -> None:
    live.session.conversation.summarize(
        text, todos=(), max_request_chars=1_000, reply=reply("", tokens=7)
    )


def begin_long(live: LiveSession, cell: str, *, size: int = 10) -> None:
    """Begin a turn that makes a call, is summarized, and goes on."""
    live.begin(cell, prompt("do it"), *called(size))
    summarize(live)
    live.session.conversation.append(reply(f"done in {cell}"))


def seen(live: LiveSession, cell: str) -> list[str]:
    shares = live.session.conversation.shares_above(cell)
    messages = [message for _, said in shares for message in said]
    return [summary_text(m) if is_summary(m) else text_of(m) for m in messages]


@pytest.mark.parametrize("size", [10, 3_000_000], ids=["small", "kept beside the notebook"])
def test_a_summary_stands_when_its_notebook_is_opened_again(tmp_path: Path, size: int) -> None:
    live = LiveSession(tmp_path, environ=ENVIRON)
    page = Page("a", "b", "c", path=str(tmp_path / "nb.ipynb"))
    live.open(page)
    live.run("a", page=page)
    begin_long(live, "b", size=size)
    live.tell_turn(page, live.end())
    assert seen(live, "c") == ["in short", "done in b"]
    live.save(page)
    assert SECRET not in page.ipynb
    live.kill()

    again = LiveSession(tmp_path, environ=ENVIRON)
    again.open(page.reloaded())
    assert seen(again, "c") == ["in short", "done in b"]


@pytest.mark.parametrize("size", [10, 3_000_000], ids=["small", "kept beside the notebook"])
def test_a_summary_stands_after_a_kill(tmp_path: Path, size: int) -> None:
    live = LiveSession(tmp_path, tmp_path / "nb.ipynb", ENVIRON)
    live.open_file()
    live.run("a")
    begin_long(live, "b", size=size)
    live.kill()

    again = LiveSession(tmp_path, tmp_path / "nb.ipynb", ENVIRON)
    again.open_file()
    again.begin("c", prompt("go on"))
    assert [summary_text(again.session.conversation.context[0])] == ["in short"]
    assert [text_of(m) for m in again.session.conversation.context[1:]] == ["done in b"]
    requests = again.session.conversation.request
    assert [text_of(message) for message in requests] == ["do it", "go on"]


def test_a_turn_that_was_edited_behind_our_back_is_read_in_full(tmp_path: Path) -> None:
    live = LiveSession(tmp_path)
    page = Page("a", "b", path=str(tmp_path / "nb.ipynb"))
    live.open(page)
    begin_long(live, "a")
    live.tell_turn(page, live.end())
    live.save(page)
    live.kill()

    def edit(file: dict[str, object]) -> None:
        file.update(json.loads(json.dumps(file).replace("do it", "do something else")))

    page.change_file(edit)
    again = LiveSession(tmp_path / "elsewhere")
    again.open(page.reloaded())
    assert seen(again, "b")[0] == "do something else"
    assert "in short" not in seen(again, "b")


def test_a_summary_in_a_turn_is_taken_back_alone(tmp_path: Path) -> None:
    live = LiveSession(tmp_path)
    page = Page("a", "b", "c", path=str(tmp_path / "nb.ipynb"))
    live.open(page)
    live.run("a", page=page)
    begin_long(live, "b")
    before = live.end()
    live.tell_turn(page, before)
    update = live.session.take_back_summary("c")
    assert update.cell_id == "b"
    after = live.session.conversation.turns["b"]
    assert after.summary is None
    assert after.revision > before.revision
    said = ["ask in a", "answer in a", "do it", "", "", "done in b"]
    assert seen(live, "c") == said
    with pytest.raises(CommandError, match="No summary"):
        live.session.take_back_summary("c")


def test_a_summary_taken_back_stays_so_after_a_restart(tmp_path: Path) -> None:
    live = LiveSession(tmp_path, tmp_path / "nb.ipynb")
    live.open_file()
    begin_long(live, "a")
    live.end()
    live.session.take_back_summary("b")
    live.kill()
    again = LiveSession(tmp_path, tmp_path / "nb.ipynb")
    again.open_file()
    assert seen(again, "b")[0] == "do it"


def test_the_one_summary_of_two_that_is_nearest_is_taken_back_first(tmp_path: Path) -> None:
    live = LiveSession(tmp_path)
    live.run("a")
    for cell in "bc":
        live.begin(cell)
        summarize(live, f"as of {cell}")
        live.end()
    assert seen(live, "d") == ["as of c"]
    live.session.take_back_summary("d")
    assert seen(live, "d") == ["as of b"]
    live.session.take_back_summary("d")
    assert seen(live, "d") == ["ask in a", "answer in a"]


def test_what_a_summary_cost_counts_as_spent(tmp_path: Path) -> None:
    live = LiveSession(tmp_path)
    live.run("a")
    live.begin("b")
    summarize(live)
    turn = live.end()
    assert turn.usage.output_tokens == 7
    assert live.session.conversation.spent_by_model["fake/m"].output_tokens == 8


def test_a_secret_in_what_a_summary_stands_for_changes_nothing(tmp_path: Path) -> None:
    live = LiveSession(tmp_path, environ=ENVIRON)
    begin_long(live, "a")
    turn = live.end()
    assert turn.record is not None
    assert SECRET not in str(turn.record)
    assert turn.summary == 3
    # What is kept stands by itself, without what was in memory.
    kept = read_turn(dict(turn.record), cell_id="a")
    assert kept.summary == 3
    assert kept.messages[3].parts[0] != turn.messages[3].parts[0]


def test_the_header_tells_which_turns_hold_summaries(tmp_path: Path) -> None:
    live = LiveSession(tmp_path)
    live.run("a")
    begin_long(live, "b")
    turn = live.end()
    assert live.session.header()["summaries"] == [{"turn": turn.id}]
    live.session.take_back_summary("c")
    assert not live.session.header().get("summaries")


def test_what_was_thought_behind_a_summary_does_not_stand_without_it(tmp_path: Path) -> None:
    live = LiveSession(tmp_path)
    live.begin("a", prompt("do it"), thought("early"))
    summarize(live)
    live.session.conversation.append(thought("late"))
    live.end()
    assert thoughts(live, "b") == ["late"]
    live.session.take_back_summary("b")
    assert thoughts(live, "b") == ["early"]


def thought(text: str) -> Message:
    return Message("assistant", (Reasoning(text), Text("so")), "fake", "m", "end_turn")


def thoughts(live: LiveSession, cell: str) -> list[str]:
    shares = live.session.conversation.shares_above(cell)
    parts = [part for _, said in shares for message in said for part in message.parts]
    return [part.text for part in parts if isinstance(part, Reasoning)]
