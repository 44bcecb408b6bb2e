"""How a sub-agent looks: its line, its steps and its answer, live, settled and from any file."""

import asyncio
import json
from collections.abc import Callable
from dataclasses import replace

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import JsonValue

from crush_kernel.agent.events import PermissionSettled, ToolFinished, ToolProgressed, ToolStarted
from crush_kernel.history.redaction import Redactor
from crush_kernel.history.subagentrecord import KEY, SubagentRecord, write_subagent
from crush_kernel.history.turn import Turn
from crush_kernel.kernel import render, subagentcard
from crush_kernel.kernel.display import TurnDisplay
from crush_kernel.kernel.export import as_html, as_markdown
from crush_kernel.kernel.redactedevent import redacted_event
from crush_kernel.kernel.render import CallFacts, Rendered
from crush_kernel.messages import JsonObject, Message, Text, ToolCall, ToolResult, Usage
from crush_kernel.permissions.gate import Answer
from crush_kernel.permissions.request import CommandPart, PermissionRequest
from crush_kernel.tools.base import Delegated
from crush_kernel.tools.subagentresult import output_of
from tests.kernel.front_end import FrontEnd
from tests.kernel.parsers import commonmark, jupyterlab, nbconvert
from tests.kernel.stage import LiveStage, Stage, has_card, until
from tests.kernel.widget_models import texts, with_class

ANSWER = "It is in `src/price.py:12`.\n\n- rounds **first**\n"
HOSTILE = (
    "<script>alert(1)</script> <img src=x onerror=alert(1)> </details></sub> "
    "[click](javascript:alert(1)) ![](https://example.org/track.png) \u202eevil\u2066\n\n```\n"
)


def called(number: int, name: str, **arguments: str) -> ToolCall:
    return ToolCall(f"n{number}", name, json.dumps(arguments))


def answered(
    number: int, summary: str, *, is_error: bool = False, permission: str = ""
) -> ToolResult:
    facts = {"summary": summary, **({"permission": permission} if permission else {})}
    return ToolResult(f"n{number}", "long text", is_error=is_error, metadata=facts)


STEPS = (
    Message("user", (Text("Find the price code.\nLook into src/ only."),)),
    Message(
        "assistant", (called(1, "grep", pattern="def price"), called(2, "view", file_path="a.py"))
    ),
    Message("tool", (answered(1, "3 matches"), answered(2, "38 lines"))),
    Message(
        "assistant", (called(3, "bash", command="pytest -q"), called(4, "bash", command="rm -r x"))
    ),
    Message(
        "tool",
        (
            answered(3, "exit 1", is_error=True, permission="allowed once"),
            answered(4, "denied", is_error=True, permission="denied"),
        ),
    ),
    Message("assistant", (called(5, "ls", path="src"),)),
)
RECORD = SubagentRecord(
    "task", "acme/big", usage={"acme/big": Usage(1200, 0, 0, 64)}, messages=STEPS
)


def result(
    record: SubagentRecord = RECORD,
    *,
    content: str = ANSWER,
    summary: str = "5 calls",
    is_error: bool = False,
    seconds: JsonValue = 12.3,
) -> ToolResult:
    facts: JsonObject = {
        "summary": summary,
        "volatile": {"duration_s": seconds},
        KEY: dict(write_subagent(record)),
    }
    return ToolResult("c1", content, is_error=is_error, metadata=facts)


def shown(
    result: ToolResult, summary: str = "find the price code", name: str = "agent"
) -> Rendered:
    return subagentcard.call(CallFacts(name, summary, "done", result=result))


def title(card: Rendered) -> str:
    return card.markdown.partition("<summary>")[2].partition("</summary>")[0]


def test_a_call_is_one_line_that_opens_to_its_steps_and_then_the_answer() -> None:
    assert shown(result()).markdown == (
        "<details><summary><b>agent</b> task · find the price code · 5 calls · 12 s</summary>\n\n"
        "> Find the price code.<br>Look into src/ only.\n\n"
        '<sub><b>grep</b> "def price" · 3 matches<br>\n'
        "<b>view</b> a.py · 38 lines<br>\n"
        "<b>bash</b> pytest -q · allowed once · "
        '<span style="color: var(--jp-error-color1)">exit 1</span><br>\n'
        "<b>bash</b> rm -r x · denied<br>\n"
        "<b>ls</b> src · interrupted</sub>\n\n"
        "It is in `src/price.py:12`.\n\n- rounds **first**\n\n"
        "<sub>acme/big · 1.2 k in 64 out</sub>\n\n"
        "</details>"
    )


def test_as_plain_text_its_steps_stand_below_its_line() -> None:
    assert shown(result()).plain.splitlines() == [
        "▸ agent task · find the price code · 5 calls · 12 s",
        '  ▸ grep "def price" · 3 matches',
        "  ▸ view a.py · 38 lines",
        "  ▸ bash pytest -q · allowed once · exit 1",
        "  ▸ bash rm -r x · denied",
        "  ▸ ls src · interrupted",
    ]


def test_a_call_of_any_other_tool_is_shown_as_ever() -> None:
    facts = CallFacts("view", "a.py", "done", result=ToolResult("c", "x"))
    for is_short in (True, False):
        assert subagentcard.call(facts, is_short=is_short) == render.call(facts, is_short=is_short)


def test_in_a_turn_that_shows_very_much_only_the_line_is_left() -> None:
    card = subagentcard.call(CallFacts("agent", "look", "done", result=result()), is_short=True)
    assert card.markdown == "<sub><b>agent</b> task · look · 5 calls · 12 s</sub>"


@pytest.mark.parametrize(
    ("name", "agent", "summary", "line"),
    [
        ("agent", "task", "look", "<b>agent</b> task · look · 5 calls"),
        ("agent", "tester", "tester · look", "<b>agent</b> tester · look · 5 calls"),
        ("agent", "", "look", "<b>agent</b> look · 5 calls"),
        ("agentic_fetch", "web reader", "a.org why", "<b>agentic_fetch</b> a.org why · 5 calls"),
    ],
)
def test_the_line_says_who_does_what(name: str, agent: str, summary: str, line: str) -> None:
    card = shown(result(SubagentRecord(agent, ""), seconds=0.2), summary, name)
    assert title(card) == line


@pytest.mark.parametrize(
    ("seconds", "word"),
    [
        (0.9, ""),
        (1.0, " · 1 s"),
        (125.0, " · 2 min 5 s"),
        (-4, ""),
        (1e300, ""),
        ("9", ""),
        (None, ""),
    ],
)
def test_only_what_takes_a_while_is_told_how_long(seconds: JsonValue, word: str) -> None:
    assert title(shown(result(seconds=seconds))).endswith(f"5 calls{word}")


def test_a_failed_call_says_so_in_red_and_why() -> None:
    card = shown(
        result(content="The agent task did not finish: no key.", summary="failed", is_error=True)
    )
    assert '<span style="color: var(--jp-error-color1)">failed</span> · 12 s' in title(card)
    assert "did not finish: no key." in card.markdown


def test_the_calls_of_a_failed_sub_agent_are_told_once() -> None:
    done = Delegated("I look.", "m", failure="No key.", activity=("view a.py · 3 lines",))
    told = output_of(done, who="The agent task", notes=("It had less.",))
    card = shown(result(content=told.text, summary=told.summary, is_error=True))
    assert "No key.\n\nUntil then it had said:\nI look.\n\n[It had less.]" in card.markdown
    assert card.markdown.count("view") == 1


def test_of_what_a_sub_agent_was_told_the_task_is_shown_and_not_what_came_with_it() -> None:
    asked = Message("user", (Text("Why?\nAnd since when?"), Text("\n\nBegin with this page")))
    card = shown(result(SubagentRecord("web reader", "", messages=(asked,))), "a.org Why?")
    assert "> Why?<br>And since when?\n" in card.markdown
    assert "Begin with" not in card.markdown


def test_a_task_that_stands_in_the_line_is_not_told_twice() -> None:
    record = SubagentRecord("task", "", messages=(Message("user", (Text("find it"),)),))
    assert "> find" not in shown(result(record), "find it").markdown


def test_of_very_many_steps_the_first_and_the_last_are_shown() -> None:
    calls = tuple(called(number, "view", file_path=f"{number}.py") for number in range(300))
    card = shown(result(SubagentRecord("task", "", messages=(Message("assistant", calls),))))
    assert "<b>view</b> 0.py" in card.markdown
    assert "<b>view</b> 299.py" in card.markdown
    assert "… 260 more calls …" in card.markdown
    assert len(card.plain.splitlines()) == 12


def test_a_long_answer_and_a_long_task_are_bounded() -> None:
    asked = Message("user", (Text("t" * 90_000),))
    card = shown(result(SubagentRecord("task", "", messages=(asked,)), content="a" * 90_000))
    assert len(card.markdown) < 20_000
    assert card.markdown.count("characters not shown here") == 2


@pytest.mark.parametrize("parser", [commonmark, jupyterlab, nbconvert])
def test_hostile_words_of_a_sub_agent_stay_text(parser: Callable[[str], str]) -> None:
    calls = (
        ToolCall("n1", HOSTILE, json.dumps({"command": HOSTILE})),
        ToolCall("n2", "x", HOSTILE),
    )
    facts: JsonObject = {"summary": HOSTILE, "permission": HOSTILE}
    record = SubagentRecord(
        HOSTILE,
        HOSTILE,
        usage={HOSTILE: Usage(5)},
        messages=(
            Message("user", (Text(HOSTILE),)),
            Message("assistant", calls),
            Message("tool", (ToolResult("n1", HOSTILE, metadata=facts),)),
        ),
    )
    html = parser(shown(result(record, content=HOSTILE, summary=HOSTILE), HOSTILE).markdown)
    assert "<script" not in html
    assert "<img" not in html
    assert 'href="javascript:' not in html
    assert "\u202e" not in html
    assert html.count("<details>") == html.count("</details>") == 1
    assert html.rstrip().endswith("</details>")


_VALUES = st.recursive(
    st.none() | st.booleans() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@given(_VALUES, _VALUES, st.text())
def test_any_record_can_be_shown(record: JsonValue, volatile: JsonValue, text: str) -> None:
    facts: JsonObject = {KEY: record, "volatile": volatile, "summary": text}
    for is_error in (True, False):
        card = shown(ToolResult("c", text, is_error=is_error, metadata=facts), text, text)
        assert card.markdown.startswith(("<details>", "<sub>"))


# --- documents ----------------------------------------------------------------------------


def test_an_export_has_the_steps_and_the_answer() -> None:
    call = ToolCall("c1", "agent", json.dumps({"prompt": "Find it.", "description": "find it"}))
    turn = Turn("c", messages=(Message("assistant", (call,)), Message("tool", (result(),))))
    text = as_markdown([turn])
    assert "<b>agent</b> task · find it · 5 calls · 12 s" in text
    assert '<b>grep</b> "def price" · 3 matches<br>' in text
    page = as_html([turn])
    assert "<strong>first</strong>" in page
    assert "<b>bash</b> rm -r x · denied" in page


def test_no_secret_of_a_nested_call_is_shown() -> None:
    key = "ghp_" + "a1B2" * 9
    messages = (
        Message("user", (Text(f"Use {key}"),)),
        Message("assistant", (called(1, "bash", command=f"curl -H {key}"),)),
        Message("tool", (answered(1, f"said {key}"),)),
    )
    event = ToolFinished(result(SubagentRecord("task", "", messages=messages), content=key), 0.1)
    cleaned = redacted_event(event, Redactor({}))
    assert isinstance(cleaned, ToolFinished)
    card = shown(cleaned.result)
    assert "a1B2" not in card.markdown + card.plain
    assert card.markdown.count("⟨secret: GitHub token⟩") == 4


# --- live ---------------------------------------------------------------------------------

INSIDE = PermissionRequest(
    "c1/n3",
    "bash",
    "execute",
    "run",
    command="make",
    parts=(CommandPart("make", ("make",), "runs the project's code"),),
    on_behalf="agent: tester",
)
STARTED = (
    ToolStarted("c1", "agent", "tester · run the tests"),
    ToolProgressed("c1", "grep x · 3 matches\nview a.py · 9 lines\nbash make"),
)


def settled(*, is_allowed: bool) -> PermissionSettled:
    rule = "allowed once" if is_allowed else "denied"
    return PermissionSettled(INSIDE, is_allowed=is_allowed, rule=rule)


def row() -> str:
    (box,) = with_class("crush-call")
    return texts(box)


def test_the_row_shows_the_last_steps() -> None:
    stage = Stage()
    stage.play(*STARTED)
    stage.loop.advance(4.5)
    assert "grep x · 3 matches\nview a.py · 9 lines\nbash make" in row()
    assert "running 4 s" in row()
    stage.finish()


@pytest.mark.anyio
async def test_a_question_says_for_whom_it_is_asked_and_the_row_waits() -> None:
    stage = LiveStage()
    stage.display.on_event(STARTED[0])
    answers: list[Answer] = []

    async def ask() -> None:
        answers.append(await stage.display.ask(INSIDE))

    async with anyio.create_task_group() as group:
        group.start_soon(ask)
        await until(has_card(stage.page))
        (card,) = with_class("crush-card")
        assert "tester (sub-agent) · <b>bash</b> wants to run" in texts(card)
        bundle = stage.page.last["data"]
        assert "<b>tester (sub-agent) · bash wants to run</b>" in bundle["text/markdown"]
        assert "waiting for you" in row()
        with_class("crush-deny")[0].click()
    assert answers == [Answer("deny")]
    await until(lambda: "waiting for you" not in row())
    stage.finish()


@pytest.mark.anyio
async def test_of_two_questions_inside_one_call_the_second_is_still_waited_for() -> None:
    stage = LiveStage()
    stage.display.on_event(STARTED[0])
    other = replace(INSIDE, call_id="c1/n4")
    async with anyio.create_task_group() as group:
        group.start_soon(stage.display.ask, INSIDE)
        group.start_soon(stage.display.ask, other)
        await until(lambda: len(with_class("crush-card")) == 2)
        with_class("crush-allow-once")[0].click()
        await until(lambda: len(with_class("crush-card")) == 1)
        stage.display.on_event(settled(is_allowed=True))
        assert "waiting for you" in row()
        group.cancel_scope.cancel()
    stage.finish()


def test_what_a_sub_agent_was_refused_does_not_make_its_call_a_refused_one() -> None:
    stage = Stage()
    stage.play(*STARTED, settled(is_allowed=False), ToolFinished(result(), 12.3))
    line = "<b>agent</b> task · tester · run the tests · 5 calls · 12 s</summary>"
    assert line in stage.finish()


def test_a_refused_call_of_a_sub_agent_has_no_steps() -> None:
    stage = Stage()
    request = PermissionRequest("c1", "agentic_fetch", "fetch", "read a.org")
    denied = ToolResult("c1", "Permission denied.", is_error=True, metadata={"summary": "denied"})
    stage.play(
        ToolStarted("c1", "agentic_fetch", "a.org"),
        PermissionSettled(request, is_allowed=False, rule="denied"),
        ToolFinished(denied, 0.1),
    )
    assert "<b>agentic_fetch</b> a.org · denied" in stage.finish()


@pytest.mark.anyio
async def test_a_console_tells_for_whom_and_shows_the_steps_when_they_are_over() -> None:
    page = FrontEnd(lambda: 0.0)
    loop = asyncio.get_running_loop()

    async def read_line(prompt: str) -> str:  # noqa: ARG001 - a keyboard
        return "y"

    display = TurnDisplay(
        page.publish,
        loop=loop,
        front_end="console",
        model="m",
        stop_tool=lambda _: None,
        read_line=read_line,
    )
    display.on_event(STARTED[0])
    assert await display.ask(INSIDE) == Answer("once")
    display.on_event(settled(is_allowed=True))
    display.on_event(ToolFinished(result(), 12.3))
    display.finish()
    assert page.stdout.splitlines() == [
        "● agent tester · run the tests",
        "tester (sub-agent) · bash wants to run",
        "  make   (runs the project's code)",
        '  ├ grep "def price" · 3 matches',
        "  ├ view a.py · 38 lines",
        "  ├ bash pytest -q · allowed once · exit 1",
        "  ├ bash rm -r x · denied",
        "  ├ ls src · interrupted",
        "  └ agent · 5 calls · 12 s",
    ]
