"""Whole turns in a real kernel against a provider that refuses what the real ones refuse.

Every test runs once with Anthropic's messages and once with OpenAI's chat completions. After
each, the provider has to accept one more turn on top of the history that the test has left.
"""

import base64
import json
import re
import shutil
from collections.abc import Generator
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path
from typing import Any

import pytest

from tests.fakes import clicks
from tests.fakes.clicks import ALLOW, DENY, Press
from tests.fakes.kernel import Cell, Msg, RunningKernel, running_kernel
from tests.fakes.provider.replies import (
    Answer,
    Call,
    Cut,
    ErrorEvent,
    Fault,
    Hold,
    HttpReply,
    RawReply,
    Reply,
    Reset,
    Say,
    Stall,
    Think,
    call,
    say,
)
from tests.fakes.provider.server import FakeProvider, Received
from tests.fakes.sockets import free_port

pytestmark = pytest.mark.slow

KEY = "sk-ant-0123456789abcdef"
SHOP = Path(__file__).parents[2] / "notebooks" / "shop"

FRAGMENT = Say("FRAGMENT " * 60, size=9)
"""So many deltas that a fault after `MIDDLE` bytes is in the midst of a word."""
MIDDLE = 3001


def settings(protocol: str, server: FakeProvider) -> dict[str, str]:
    """Return the environment that sends a kernel to `server`."""
    if protocol == "anthropic":
        address, model = server.url, "anthropic/claude-sonnet-4-5"
    else:
        address, model = server.openai_url, "openai/gpt-5-mini"
    name = protocol.upper()
    return {f"{name}_BASE_URL": address, f"{name}_API_KEY": KEY, "CRUSH_MODEL": model}


@dataclass(frozen=True)
class Place:
    """A kernel in a folder, and the provider that it asks."""

    protocol: str
    kernel: RunningKernel
    provider: FakeProvider
    cwd: Path

    def turn(
        self,
        *answers: Answer,
        prompt: str = "go on",
        presses: tuple[Press, ...] = (),
        cell_id: str = "cell-1",
    ) -> Cell:
        """Run one turn in which the provider gives `answers` and the user `presses`."""
        self.provider.play(*answers)
        cell = clicks.run(self.kernel, prompt, presses, cell_id=cell_id)
        assert not (refused := [each.refusal for each in self.requests if each.refusal]), refused
        return cell

    @property
    def requests(self) -> list[Received]:
        return self.provider.requests

    def sent(self, number: int = -1) -> str:
        """Return all that a request said, as text."""
        return self.requests[number].raw.decode()

    def results(self, number: int = -1) -> list[tuple[str, bool]]:
        """Return the tool results at the end of a request, and whether each tells of a failure."""
        body: Any = self.requests[number].body
        messages: list[Msg] = body["messages"]
        if self.protocol == "anthropic":
            return [
                (_text(block["content"]), block.get("is_error", False))
                for block in messages[-1]["content"]
                if block["type"] == "tool_result"
            ]
        told = [*takewhile(lambda message: message["role"] == "tool", reversed(messages))]
        texts = [_text(message["content"]) for message in reversed(told)]
        # This API has no place for the mark, so that it is a word of the text.
        return [(text, text.startswith("Error: ")) for text in texts]

    def error(self, kind: str, message: str) -> Msg:
        """Return the body of an error as the protocol words it."""
        if self.protocol == "anthropic":
            return {"type": "error", "error": {"type": kind, "message": message}}
        return {"error": {"type": kind, "message": message, "code": None}}


def _text(content: Any) -> str:  # noqa: ANN401 - JSON
    return content if isinstance(content, str) else "".join(block["text"] for block in content)


@pytest.fixture(scope="module", params=["anthropic", "openai"])
def kernel(
    request: pytest.FixtureRequest,
    provider_server: FakeProvider,
    tmp_path_factory: pytest.TempPathFactory,
) -> Generator[tuple[str, RunningKernel, Path]]:
    home, cwd = tmp_path_factory.mktemp("home"), tmp_path_factory.mktemp("cwd")
    environ = settings(request.param, provider_server)
    with running_kernel(cwd=cwd, home=home, env=environ) as running:
        yield request.param, running, cwd
    log = cwd / ".crush" / "logs" / "kernel.log"
    assert "Traceback" not in log.read_text(encoding="utf-8")
    assert KEY not in log.read_text(encoding="utf-8")


@pytest.fixture
def place(kernel: tuple[str, RunningKernel, Path], provider: FakeProvider) -> Generator[Place]:
    """The kernel in an empty folder; what a test leaves must do for one more turn."""
    protocol, running, cwd = kernel
    for path in cwd.iterdir():
        if path.name != ".crush":
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    here = Place(protocol, running, provider, cwd)
    yield here
    running.interrupt()  # what a failed test has left running
    provider.play(lambda _: say("Still here."))
    after = here.turn(prompt="are you there?", cell_id="cell-last")
    assert after.status == "ok"
    assert "Still here." in after.markdown


def failure_of(cell: Cell) -> tuple[str, str]:
    """Return name and sentence of a failed cell, told the same way in reply and output."""
    content = cell.reply["content"]
    assert content["status"] == "error"
    errors = [m["content"] for m in cell.messages if m["msg_type"] == "error"]
    assert [(error["ename"], error["evalue"]) for error in errors] == [
        (content["ename"], content["evalue"])
    ]
    assert re.fullmatch(r"[A-Z][^\n]{5,200}\.", content["evalue"])
    assert KEY not in str(cell.messages)
    assert "Traceback" not in "".join(content["traceback"])
    return content["ename"], content["evalue"]


# --- a turn that does something -----------------------------------------------------------


def test_a_failing_test_is_fixed_with_the_edit_and_the_run_approved(place: Place) -> None:
    shutil.copytree(SHOP, place.cwd / "shop")
    fix = {
        "file_path": "shop/price.py",
        "old_string": "round(amount, 2) * (1 - discount)",
        "new_string": "round(amount * (1 - discount), 2)",
    }
    test = {"command": "python3 -m unittest discover -s shop", "description": "Run the tests"}

    cell = place.turn(
        Reply(
            (Think("Where is it?"), Say("I look."), Call("view", {"file_path": "shop/price.py"}))
        ),
        call("edit", fix),
        call("bash", test),
        say("The test passes now."),
        prompt="A test in shop fails: fix the code.",
        presses=(ALLOW, ALLOW),
    )

    assert cell.status == "ok"
    assert "round(amount * (1 - discount), 2)" in (place.cwd / "shop/price.py").read_text()
    viewed, edited, tested = (place.results(number)[0] for number in (1, 2, 3))
    assert "return round(amount, 2)" in viewed[0]
    assert "price.py" in edited[0]
    assert "OK" in tested[0]
    assert not any(is_error for _, is_error in (viewed, edited, tested))
    shown = cell.markdown
    assert shown.index("I look.") < shown.index("<b>view</b>") < shown.index("<b>edit</b>")
    assert shown.index("+    return") < shown.index("<b>bash</b>") < shown.index("passes now")
    assert shown.count("allowed once") == 2
    assert "3 tools" in shown


def test_a_denied_call_tells_the_model_why_and_the_turn_goes_on(place: Place) -> None:
    cell = place.turn(
        call("write", {"file_path": "a.txt", "content": "a"}),
        say("As you like."),
        presses=(Press(DENY.button, "use b.txt"),),
    )
    assert cell.status == "ok"
    ((told, is_error),) = place.results()
    assert "use b.txt" in told
    assert is_error
    assert not (place.cwd / "a.txt").exists()


def test_parallel_calls_are_answered_in_their_order_also_if_one_fails(place: Place) -> None:
    (place.cwd / "a.txt").write_text("alpha\n", encoding="utf-8")
    (place.cwd / "c.txt").write_text("gamma\n", encoding="utf-8")
    names = ("a.txt", "nope.txt", "c.txt")

    cell = place.turn(
        Reply(tuple(Call("view", {"file_path": name}) for name in names)), say("Two of three.")
    )

    assert cell.status == "ok"
    first, second, third = place.results()
    assert ("alpha" in first[0], "nope.txt" in second[0], "gamma" in third[0]) == (True,) * 3
    assert [is_error for _, is_error in (first, second, third)] == [False, True, False]


def test_an_image_is_attached_as_an_image(place: Place) -> None:
    png = base64.b64decode(
        "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mNk+A8AAQUBAScY42YAAAAASUVORK5CYII="
    )
    (place.cwd / "dot.png").write_bytes(png)

    assert place.turn(say("One pixel."), prompt="What is on @dot.png?").status == "ok"

    prompt: Any = place.requests[0].body["messages"]
    *_, asked = prompt
    blocks = [block["type"] for block in asked["content"]]
    assert min(blocks) in ("image", "image_url")
    assert base64.b64encode(png).decode() in place.sent(0)


# --- failures of the provider -------------------------------------------------------------

NOW = {"retry-after-ms": "5"}
"""What keeps a test from waiting for our own backoff."""


@dataclass(frozen=True)
class Refusal:
    """What a provider answers, and what the user should read."""

    status: int
    kind: str
    said: str
    name: str
    words: str
    attempts: int = 1


@pytest.mark.parametrize(
    "case",
    [
        pytest.param(
            Refusal(401, "authentication_error", f"bad {KEY}", "AuthenticationFailed", "key (401)"),
            id="a wrong key",
        ),
        pytest.param(
            Refusal(404, "not_found_error", "model: gpt-0", "ModelNotFound", "no such model (404)"),
            id="no such model",
        ),
        pytest.param(
            Refusal(413, "request_too_large", "Too large", "ContextTooLong", "too long"),
            id="too large",
        ),
        pytest.param(
            Refusal(400, "invalid_request_error", "no", "RequestRejected", "refused the request"),
            id="a bad request",
        ),
        pytest.param(
            Refusal(429, "rate_limit_error", "Slow", "RateLimited", "no more requests", attempts=5),
            id="too many requests",
        ),
        pytest.param(
            Refusal(529, "overloaded_error", "Busy", "Overloaded", "overloaded (529)", attempts=5),
            id="overloaded",
        ),
    ],
)
def test_a_refusal_is_one_clear_sentence(place: Place, case: Refusal) -> None:
    refusal = HttpReply(case.status, place.error(case.kind, case.said), headers=NOW)

    cell = place.turn(*[refusal] * case.attempts)

    name, sentence = failure_of(cell)
    assert name == case.name
    assert case.words in sentence
    assert sentence.removesuffix(".") in cell.markdown
    assert len(place.requests) == case.attempts


@pytest.mark.parametrize(
    ("status", "name"),
    [
        pytest.param(200, "ConnectionLost", id="in place of a reply"),
        pytest.param(502, "Overloaded", id="of a gateway"),
        pytest.param(403, "RequestRejected", id="of a proxy that wants a login"),
    ],
)
def test_a_web_page_is_named_by_its_title_and_not_shown(
    place: Place, status: int, name: str
) -> None:
    page = "<html><title>Corporate login</title><script>alert(1)</script></html>"
    attempts = 1 if status == 403 else 5

    cell = place.turn(*[HttpReply(status, page, headers=NOW)] * attempts)

    ename, sentence = failure_of(cell)
    assert ename == name
    assert "<" not in sentence
    assert not re.search(r"^<script", cell.markdown, re.MULTILINE)


@pytest.mark.parametrize(
    "fault",
    [
        pytest.param(Cut(MIDDLE), id="cut off in a word"),
        pytest.param(Cut(MIDDLE, is_clean=True), id="ended politely in a word"),
        pytest.param(Reset(MIDDLE), id="reset in a word"),
        pytest.param(ErrorEvent("overloaded_error"), id="an error in the stream"),
        pytest.param(HttpReply(529, "Overloaded", headers=NOW), id="an overload"),
        pytest.param(HttpReply(429, "Slow down", headers=NOW), id="a rate limit"),
    ],
)
def test_after_a_failed_attempt_there_is_one_clean_answer(
    place: Place, fault: Fault | ErrorEvent | HttpReply
) -> None:
    match fault:
        case HttpReply():
            broken = fault
        case ErrorEvent():
            broken = Reply((FRAGMENT,), error=fault)
        case _:
            broken = Reply((FRAGMENT,), fault=fault)

    cell = place.turn(broken, say("One clean answer."))
    after = place.turn(say("Yes."), prompt="and?", cell_id="cell-2")

    assert (cell.status, after.status) == ("ok", "ok")
    assert cell.markdown.count("One clean answer.") == 1
    assert "1 retry" in cell.markdown
    assert "FRAGMENT" not in str(cell.outputs)
    assert "One clean answer." in place.sent()
    assert "FRAGMENT" not in place.sent()


def test_a_wait_is_counted_down_and_can_be_stopped(place: Place) -> None:
    place.provider.play(
        HttpReply(429, place.error("rate_limit_error", "no"), headers={"retry-after": "20"})
    )
    msg_id = place.kernel.execute("go on")
    place.kernel.wait_for(lambda message: "(2 of 5)" in str(message["content"].get("data")))

    place.kernel.interrupt()

    assert_interrupted(place.kernel.collect(msg_id))


@pytest.mark.parametrize(
    "blocks",
    [
        pytest.param((), id="nothing"),
        pytest.param((Say(" \n"),), id="white space"),
    ],
)
def test_an_empty_reply_is_asked_for_once_more(place: Place, blocks: tuple[Say, ...]) -> None:
    assert "Here." in place.turn(Reply(blocks), say("Here.")).markdown

    assert failure_of(place.turn(Reply(blocks), Reply(blocks)))[0] == "EmptyReply"


def test_a_filtered_reply_fails_the_turn(place: Place) -> None:
    word = "refusal" if place.protocol == "anthropic" else "content_filter"

    assert failure_of(place.turn(Reply((Say("Well"),), stop=word)))[0] == "ReplyRefused"


# --- faults in tool calls -----------------------------------------------------------------


@pytest.mark.parametrize("fault", [Cut(MIDDLE), Cut(MIDDLE, is_clean=True)], ids=["cut", "ended"])
def test_a_call_that_was_cut_off_is_never_run(place: Place, fault: Cut) -> None:
    whole = {"file_path": "a.txt", "content": "FRAGMENT " * 60}

    cell = place.turn(Reply((Call("write", whole, size=9),), fault=fault), say("I gave up."))

    assert cell.status == "ok"
    assert "<b>write</b>" not in cell.markdown
    assert not (place.cwd / "a.txt").exists()
    assert "FRAGMENT" not in place.sent()


def cut_at_limit(place: Place) -> Reply:
    word = "max_tokens" if place.protocol == "anthropic" else "length"
    return Reply((Call("write", '{"file_path": "a.txt", "content": "# Title'),), stop=word)


def test_a_call_at_the_output_limit_is_not_run_and_the_model_is_told(place: Place) -> None:
    cell = place.turn(cut_at_limit(place), say("In parts, then."))

    assert cell.status == "ok"
    assert not (place.cwd / "a.txt").exists()
    assert "output limit" in place.results()[0][0]


def test_reply_after_reply_at_the_output_limit_ends_the_turn(place: Place) -> None:
    cell = place.turn(*[cut_at_limit(place)] * 3)

    assert failure_of(cell)[0] == "OutputLimitReached"
    assert not (place.cwd / "a.txt").exists()
    assert len(place.requests) == 3


def test_text_at_the_output_limit_goes_on(place: Place) -> None:
    word = "max_tokens" if place.protocol == "anthropic" else "length"

    cell = place.turn(Reply((Say("One, two"),), stop=word), say(", three."))

    assert cell.status == "ok"
    assert "One, two" in cell.markdown
    assert "three." in cell.markdown


@pytest.mark.parametrize(
    ("name", "arguments", "told"),
    [
        pytest.param("write", '{"file_path": "a.txt", "cont', "not valid JSON", id="half of it"),
        pytest.param("write", "[1, 2]", "not an object", id="a list"),
        pytest.param("write", "", "file_path", id="nothing"),
        pytest.param("write", '{"file_path": "a.txt"}', "content", id="an argument missing"),
        pytest.param(
            "view", '{"file_path": "a.txt", "colour": 1}', "colour", id="an argument too many"
        ),
        pytest.param(
            "view", '{"file_path": "."}', "directory", id="a folder where a file is meant"
        ),
        pytest.param("view", '{"file_path": "no.txt"}', "does not exist", id="no such file"),
        pytest.param("grep", '{"pattern": "("}', "pattern", id="a broken pattern"),
        pytest.param("view", '{"file_path": 7}', "file_path", id="an argument of a wrong type"),
        pytest.param("view", '{"file_path": "\\u0000"}', "NUL", id="a path with NUL"),
        pytest.param(
            "write", '{"file_path": "a.txt", "content": "\\u0000"}', "NUL", id="a text with NUL"
        ),
        pytest.param(
            "view", '{"file_path": "\\ud800.txt"}', "not valid Unicode", id="half a character"
        ),
        pytest.param("frobnicate", "{}", "There is no tool", id="no such tool"),
        pytest.param("view the file!", "{}", "There is no tool", id="no name at all"),
    ],
)
def test_a_faulty_call_gets_an_answer_that_helps(
    place: Place, name: str, arguments: str, told: str
) -> None:
    cell = place.turn(Reply((Call(name, arguments),)), say("I see."))

    assert cell.status == "ok"
    ((answer, is_error),) = place.results()
    assert told in answer
    assert is_error
    assert {path.name for path in place.cwd.iterdir()} <= {".crush"}


def test_the_same_faulty_call_for_ever_ends_the_turn(place: Place) -> None:
    place.provider.play(lambda _: Reply((Call("write", ""),)))

    ename, _ = failure_of(clicks.run(place.kernel, "go on"))

    assert ename == "LoopDetected"
    assert len(place.requests) <= 4


def test_half_characters_and_nul_in_a_reply_stop_neither_the_turn_nor_the_next(
    place: Place,
) -> None:
    place.provider.play(spoken(place.protocol, "a\0b\ud83dc"))

    cell = clicks.run(place.kernel, "go on")

    assert cell.status == "ok"
    assert re.search("a[^\0]*b[^\0\ud83d]*c", cell.markdown)


def spoken(protocol: str, text: str) -> RawReply:
    """Return a reply that says `text`, which may hold what has no place in UTF-8."""
    if protocol == "anthropic":
        usage = {"input_tokens": 1, "output_tokens": 1}
        events: list[Msg] = [
            {"type": "message_start", "message": {"id": "m", "role": "assistant", "usage": usage}},
            {
                "type": "content_block_start",
                "index": 0,
                "content_block": {"type": "text", "text": ""},
            },
            {
                "type": "content_block_delta",
                "index": 0,
                "delta": {"type": "text_delta", "text": text},
            },
            {"type": "content_block_stop", "index": 0},
            {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": usage},
            {"type": "message_stop"},
        ]
        lines = [f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events]
        return RawReply("".join(lines))
    deltas: list[Msg] = [
        {"choices": [{"index": 0, "delta": {"content": text}}]},
        {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]},
    ]
    lines = [f"data: {json.dumps(delta)}\n\n" for delta in deltas]
    return RawReply("".join([*lines, "data: [DONE]\n\n"]))


# --- interrupts ---------------------------------------------------------------------------


def assert_interrupted(cell: Cell) -> None:
    content = cell.reply["content"]
    assert (content["status"], content["ename"]) == ("error", "Interrupted")
    assert "error" not in cell.kinds
    assert "interrupted" in cell.markdown
    assert not any("widget-view" in str(output["data"]) for output in cell.outputs)


@pytest.mark.parametrize(
    "after",
    [
        pytest.param(None, id="before the headers"),
        pytest.param(0, id="after the headers"),
        pytest.param(MIDDLE, id="in a word"),
    ],
)
def test_a_silent_provider_can_be_left(place: Place, after: int | None) -> None:
    hold = Hold()
    place.provider.play(Reply((FRAGMENT,), fault=Stall(hold, after=after)))
    msg_id = place.kernel.execute("go on")
    hold.wait_reached()

    place.kernel.interrupt()

    assert_interrupted(place.kernel.collect(msg_id))
    assert place.requests[0].gone.wait(5), "the connection is still open"


def test_a_turn_that_was_stopped_in_a_tool_can_be_built_on(place: Place) -> None:
    command = {"command": "printf be; echo gun; sleep 641", "description": "wait"}
    place.provider.play(
        Reply((Say("I wait."), Call("bash", command), Call("view", {"file_path": "x"})))
    )
    person = clicks.Person(place.kernel)
    msg_id = place.kernel.execute("go on")
    messages: list[Msg] = []
    is_stopped = False
    for message in place.kernel.stream(msg_id):
        messages.append(message)
        if person.sees(message):
            person.press(ALLOW)
        if not is_stopped and any("begun" in text for text in person.texts):
            is_stopped = True
            place.kernel.interrupt()
    assert_interrupted(Cell(place.kernel.reply(msg_id), messages))

    after = place.turn(say("Good."), prompt="go on", cell_id="cell-2")

    assert after.status == "ok"
    assert "I wait." in place.sent()
    assert "interrupted before it returned" in place.sent()


def test_a_turn_that_was_stopped_while_a_call_was_written_can_be_built_on(place: Place) -> None:
    hold = Hold()
    half = ('{"file_path": "a.txt", "content": "half', hold, ' a file"}')
    place.provider.play(Reply((Say("I write."), Call("write", half))))
    msg_id = place.kernel.execute("go on")
    place.kernel.wait_for(lambda message: "I write." in str(message["content"]))
    hold.wait_reached()
    place.kernel.interrupt()
    assert_interrupted(place.kernel.collect(msg_id))

    after = place.turn(say("Good."), prompt="go on", cell_id="cell-2")

    assert after.status == "ok"
    assert "I write." in place.sent()
    assert not (place.cwd / "a.txt").exists()


# --- kernels of their own -----------------------------------------------------------------


def test_the_model_is_switched_in_the_middle_and_the_cost_is_kept_apart(
    provider: FakeProvider, tmp_path: Path
) -> None:
    home, cwd = tmp_path / "home", tmp_path / "cwd"
    home.mkdir()
    cwd.mkdir()
    (cwd / "a.txt").write_text("alpha\n", encoding="utf-8")
    environ = settings("openai", provider) | settings("anthropic", provider)
    with running_kernel(cwd=cwd, home=home, env=environ) as kernel:
        here = Place("anthropic", kernel, provider, cwd)
        here.turn(
            Reply((Think("Hm."), Call("view", {"file_path": "a.txt"}))), say("Alpha."), cell_id="1"
        )
        switched = kernel.run("/model openai/gpt-5-mini", cell_id="2")
        second = here.turn(Reply((Call("view", {"file_path": "a.txt"}),)), say("Yes."), cell_id="3")
        kernel.run("/model anthropic/claude-sonnet-4-5", cell_id="4")
        third = here.turn(say("Back."), cell_id="5")
        cost = kernel.run("/cost", cell_id="6").markdown
        unknown = kernel.run("/model nonsense-9000", cell_id="7")

    assert "openai/gpt-5-mini" in switched.markdown
    paths = [each.path for each in provider.requests]
    assert paths == ["/v1/messages"] * 2 + ["/v1/chat/completions"] * 2 + ["/v1/messages"]
    assert "Alpha." in here.sent(2)
    assert "alpha" in here.sent(4)
    assert (second.status, third.status) == ("ok", "ok")
    assert "gpt-5-mini" in second.markdown
    rows = {line.split("|")[1].strip(" `"): line for line in cost.splitlines() if "`" in line}
    titling = "anthropic/claude-haiku-4-5"
    assert rows.keys() == {"anthropic/claude-sonnet-4-5", "openai/gpt-5-mini", titling}
    assert "| 30 | 0 | 0 | 15 |" in rows["anthropic/claude-sonnet-4-5"]
    assert "| 20 | 0 | 0 | 10 |" in rows["openai/gpt-5-mini"]
    assert failure_of(unknown)[0] == "CommandError"


@pytest.mark.parametrize("protocol", ["anthropic", "openai"])
def test_where_nothing_listens_the_address_is_named_and_stop_works(
    protocol: str, tmp_path: Path
) -> None:
    home = tmp_path / "home"
    home.mkdir()
    port = free_port()
    environ = {
        f"{protocol.upper()}_BASE_URL": f"http://127.0.0.1:{port}",
        f"{protocol.upper()}_API_KEY": KEY,
    }
    with running_kernel(cwd=tmp_path, home=home, env=environ) as kernel:
        msg_id = kernel.execute("hello")
        retry = kernel.wait_for(lambda message: "(2 of 5)" in str(message["content"].get("data")))
        kernel.interrupt()
        cell = kernel.collect(msg_id)
        status = kernel.run("/status").status

    assert f"127.0.0.1:{port}" in str(retry["content"]["data"])
    assert_interrupted(cell)
    assert status == "ok"
