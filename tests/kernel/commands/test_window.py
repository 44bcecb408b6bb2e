"""The commands about the context window, in a real kernel with a page."""

import html
import json
import re
from itertools import count
from typing import Any

import pytest

from crush_kernel.messages import JsonObject
from tests.fakes.kernel import RunningKernel
from tests.fakes.provider.replies import Answer, Hold, HttpReply, Reply, Say, call, say
from tests.fakes.provider.server import FakeProvider, Received
from tests.fakes.tab import Tab
from tests.kernel.desk import Desk

pytestmark = [pytest.mark.slow, pytest.mark.timeout(180)]

numbers = count(1)

IS_SUMMARY = "to be replaced by a summary"


def answer(received: Received) -> Answer:
    """Summarize, or say what was asked last."""
    text = received.raw.decode()
    if IS_SUMMARY in text:
        return Reply((Say("They asked twice and **heard**."),))
    found = re.findall(r"Ask (one|two)\.", text)
    return say(f"Heard {found[-1] if found else 'nothing'}.")


@pytest.fixture
def tab(office: tuple[Desk, RunningKernel], provider: FakeProvider) -> Tab:
    """A page with six cells, in the first two of which prompts have run."""
    desk, kernel = office
    name = f"window{next(numbers)}"
    tab = desk.open(kernel, desk.page(*(f"{name}{letter}" for letter in "abcdef")))
    provider.play(answer)
    for place, text in enumerate(("Ask one.", "Ask two.")):
        tab.run_told(tab.page.ids[place], text)
    return tab


def asked(desk: Desk, prompt: str) -> Received:
    """Return the request that a prompt has led to; a title may have been asked for since."""
    found = [r for r in desk.provider.requests if json.dumps(prompt)[1:-1] in r.raw.decode()]
    assert not [each.refusal for each in found if each.refusal]
    return found[-1]


def test_below_a_summary_its_words_are_read_in_place_of_what_is_above(
    office: tuple[Desk, RunningKernel], tab: Tab
) -> None:
    desk, _ = office
    cell = tab.run_told(tab.page.ids[2], "/compact keep the numbers")
    assert "They asked twice" in cell.shown
    assert cell.turn is not None
    assert "keep the numbers" in asked(desk, IS_SUMMARY).raw.decode()
    tab.run_told(tab.page.ids[3], "And now?")
    sent = asked(desk, "And now?").raw.decode()
    assert "They asked twice" in sent
    assert "Heard one." not in sent
    assert "Ask two." in sent  # the last request, word for word
    assert tab.page.stale == []


def test_what_was_viewed_above_a_summary_has_to_be_viewed_again(
    office: tuple[Desk, RunningKernel], tab: Tab
) -> None:
    desk, _ = office
    (desk.cwd / "seen.txt").write_text("old\n")
    calls: dict[str, JsonObject] = {
        "view": {"file_path": "seen.txt"},
        "edit": {"file_path": "seen.txt", "old_string": "old", "new_string": "new"},
    }

    def use_tools(received: Received) -> Answer:
        text = received.raw.decode()
        if IS_SUMMARY in text or "Use it." not in text:
            return answer(received)
        last = re.findall(r"Use it\. (view|edit)", text)[-1]
        is_done = f"call_{last}" in text
        return say("Used.") if is_done else call(last, calls[last], call_id=f"call_{last}")

    desk.provider.play(use_tools)
    tab.run_told(tab.page.ids[2], "Use it. view")
    tab.run_told(tab.page.ids[3], "/compact")
    tab.run_told(tab.page.ids[4], "Use it. edit")
    assert "exists but was not viewed yet" in asked(desk, "Use it. edit").raw.decode()


def test_without_its_cell_a_summary_stands_for_nothing(
    office: tuple[Desk, RunningKernel], tab: Tab
) -> None:
    desk, _ = office
    tab.run_told(tab.page.ids[2], "/compact")
    tab.page.delete(tab.page.ids[2])
    tab.tell()
    tab.run_told(tab.page.ids[2], "And then?")
    sent = asked(desk, "And then?").raw.decode()
    assert "Heard one." in sent
    assert "They asked twice" not in sent


def test_a_summary_of_something_else_is_ignored(
    office: tuple[Desk, RunningKernel], tab: Tab
) -> None:
    desk, _ = office
    tab.run_told(tab.page.ids[2], "/compact")
    tab.run_told(tab.page.ids[0], "Ask another thing.")
    tab.run_told(tab.page.ids[3], "What of it?")
    sent = asked(desk, "What of it?").raw.decode()
    assert "Ask another thing." in sent
    assert "They asked twice" not in sent
    assert tab.page.ids[2] in tab.page.stale


def test_a_summary_is_taken_back(office: tuple[Desk, RunningKernel], tab: Tab) -> None:
    desk, _ = office
    tab.run_told(tab.page.ids[2], "/compact")
    assert "taken back" in tab.run_told(tab.page.ids[3], "/uncompact").shown
    assert tab.page[tab.page.ids[2]].turn is None
    tab.run_told(tab.page.ids[4], "So what?")
    assert "Heard one." in asked(desk, "So what?").raw.decode()


def test_a_summary_outlives_its_kernel(office: tuple[Desk, RunningKernel], tab: Tab) -> None:
    desk, _ = office
    tab.run_told(tab.page.ids[2], "/compact")
    tab.page.save()
    kernel = desk.start()
    again = desk.open(kernel, tab.page.reloaded())
    again.run_told(again.page.ids[3], "Still?")
    sent = asked(desk, "Still?").raw.decode()
    assert "They asked twice" in sent
    assert "Heard one." not in sent
    assert "taken back" in again.run_told(again.page.ids[4], "/uncompact").shown
    again.run_told(again.page.ids[5], "And so?")
    assert "Heard one." in asked(desk, "And so?").raw.decode()


def test_a_summary_that_cannot_be_made_leaves_everything_as_it_was(
    office: tuple[Desk, RunningKernel], tab: Tab
) -> None:
    desk, _ = office
    tab.run_told(tab.page.ids[3], "What is below?")
    desk.provider.play(lambda _: HttpReply(401, {"error": {"message": "bad key"}}))
    assert "key" in tab.refused(tab.page.ids[2], "/compact", by="AuthenticationFailed")
    assert tab.page.stale == []
    desk.provider.play(answer)
    tab.run_told(tab.page.ids[3], "Well?")
    assert "Heard one." in asked(desk, "Well?").raw.decode()


def test_a_summary_that_is_interrupted_says_so_and_leaves_everything_as_it_was(
    office: tuple[Desk, RunningKernel], tab: Tab
) -> None:
    desk, _ = office
    tab.run_told(tab.page.ids[3], "What is below?")
    hold = Hold()
    desk.provider.play(lambda _: Reply((Say(("They wanted ", hold, "nothing.")),)))
    former = len(desk.provider.requests)
    request = tab.start(tab.page.ids[2], "/compact")
    desk.provider.wait_requests(former + 1)
    tab.interrupt()
    assert tab.finish(request)["status"] == "error"
    tab.settle()
    assert "interrupted" in tab.page[tab.page.ids[2]].shown
    assert tab.page.stale == []
    desk.provider.play(answer)
    tab.page.save()
    again = desk.open(desk.start(), tab.page.reloaded())
    assert again.page.stale == []
    again.run_told(again.page.ids[4], "Well?")
    sent = asked(desk, "Well?").raw.decode()
    assert "Heard one." in sent
    assert "They wanted" not in sent


@pytest.mark.parametrize(
    ("place", "code", "says"),
    [
        pytest.param(0, "/compact", "nothing above", id="nothing to compact"),
        pytest.param(2, "/uncompact", "No summary stands above", id="nothing to take back"),
        pytest.param(2, "/uncompact 3", "takes nothing", id="an argument"),
        pytest.param(2, "/context half", "knows no", id="another argument"),
    ],
)
def test_what_cannot_be_done_is_said(tab: Tab, place: int, code: str, says: str) -> None:
    assert says in tab.refused(tab.page.ids[place], code)


def test_what_is_shown_of_a_request_is_what_is_sent(
    office: tuple[Desk, RunningKernel], tab: Tab
) -> None:
    desk, _ = office
    (desk.cwd / "AGENTS.md").write_text("Speak in `riddles` & <b>rhymes</b>.\n")
    shown = tab.run_told(tab.page.ids[2], "/context full").shown
    blocks = re.findall(r"<details><summary>(.*?) · ~.*?(```+)text\n(.*?)\n\2\n", shown, re.DOTALL)
    parts = {html.unescape(name): text for name, _, text in blocks}
    tab.run_told(tab.page.ids[3], "Ask on.")
    body: Any = asked(desk, "Ask on.").body
    (desk.cwd / "AGENTS.md").unlink()

    system = body["messages"][0]["content"]
    tools = {tool["function"]["name"]: tool["function"] for tool in body["tools"]}
    names = list(parts)
    is_prompt = names[: names.index(next(iter(tools)))]
    assert "\n\n".join(parts[name] for name in is_prompt) == system
    assert "Speak in `riddles` & <b>rhymes</b>." in system
    for name, tool in tools.items():
        schema = json.dumps(tool["parameters"])
        assert parts[name] == f"{name}\n{tool['description']}\n{schema}"
    said = [text for name, text in parts.items() if name.startswith("turn ")]
    sent = [(message["role"], message["content"]) for message in body["messages"][1:-1]]
    assert "\n\n".join(said) == "\n\n".join(f"[{role}]\n{text}" for role, text in sent)
    assert parts["reminder"] in body["messages"][-1]["content"]
    rows = ("| **system prompt**", "| · instructions", "| · memory: AGENTS.md", "| **tools**")
    assert sorted(map(shown.index, rows)) == [*map(shown.index, rows)]


def test_it_says_that_no_summary_is_made_unasked(
    office: tuple[Desk, RunningKernel], tab: Tab
) -> None:
    desk, _ = office
    assert "no summary is made" not in tab.run_told(tab.page.ids[2], "/context").shown
    other = desk.open(desk.start(CRUSH_DISABLE_AUTO_SUMMARIZE="1"), desk.page("other"))
    assert "no summary is made unasked" in other.run_told(other.page.ids[0], "/context").shown


def test_looking_at_the_context_leaves_what_a_turn_has_to_tell(
    office: tuple[Desk, RunningKernel], tab: Tab
) -> None:
    desk, _ = office
    memory = desk.cwd / "AGENTS.md"
    memory.write_text("a line\n" * 10_000)
    tab.run_told(tab.page.ids[2], "/context")
    told = tab.run_told(tab.page.ids[3], "Ask on.").shown
    memory.unlink()
    assert "AGENTS.md is too long" in told
