"""What a front end with widgets gets over the wire: cards, clicks, Stop, and few messages."""

import json
from collections.abc import Generator
from pathlib import Path

import pytest

from tests.fakes import clicks
from tests.fakes.clicks import ALLOW, ALLOW_SESSION, DENY, Person, Press
from tests.fakes.kernel import Cell, Msg, RunningKernel, running_kernel
from tests.fakes.offline import LONG, Step, offline_script, turn, wants

pytestmark = pytest.mark.slow

WORDS = 20_000
CALLS = 100


def write(name: str) -> Step:
    return wants("write", file_path=name, content="made\n")


def one_of(allowed: str, denied: str) -> list[Step]:
    return [{"if_denied": True, "text": denied}, {"text": allowed}]


SCRIPT = (
    turn("hello", {"text": "Hello."}),
    turn("make one", write("one.txt"), one_of("It is made.", "As you like.")),
    turn("make two", write("one.txt"), write("two.txt"), {"text": "That is all."}),
    turn(
        "sleep",
        wants("bash", command="printf '%s\n' be gun | tr -d '\n'; echo; sleep 651"),
        {"text": "You stopped it."},
    ),
    turn("peek", wants("view", file_path="../secret.md"), {"text": "Seen."}),
    turn("peek through a link", wants("view", file_path="link/secret.md"), {"text": "Seen."}),
    turn("talk", {"text": "word ", "repeat": WORDS}),
    turn("think and wait", {"reasoning": "Hm.", "text": "", "delay_s": LONG}),
    turn(
        "look around",
        {"tool_calls": [{"name": "ls", "input": {"path": "."}}] * CALLS},
        {"text": "Seen."},
    ),
)


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Generator[tuple[RunningKernel, Path]]:
    home, cwd = tmp_path_factory.mktemp("home"), tmp_path_factory.mktemp("cwd")
    with running_kernel(cwd=cwd, home=home, env=offline_script(home, *SCRIPT)) as kernel:
        yield kernel, cwd


@pytest.fixture
def place(shared: tuple[RunningKernel, Path]) -> Generator[tuple[RunningKernel, Path]]:
    """A kernel in an empty folder, for tests that grant nothing for the session."""
    for path in shared[1].glob("*.txt"):
        path.unlink()
    yield shared
    shared[0].interrupt()  # what a failed test has left running


def made(cwd: Path) -> set[str]:
    return {path.name for path in cwd.glob("*.txt")}


def test_a_card_shows_what_is_asked_in_the_running_cell(place: tuple[RunningKernel, Path]) -> None:
    kernel, cwd = place
    person = Person(kernel)
    msg_id = kernel.execute("make one")
    is_shown = False
    for message in kernel.stream(msg_id):
        person.sees(message)
        data = message["content"].get("data", {})
        if "application/vnd.jupyter.widget-view+json" in data and not is_shown:
            is_shown = True
            card = "\n".join(person.texts)
            assert "write</b> wants to create one.txt" in card
            assert "+made" in card
            assert "waiting" in data["text/markdown"], "for a file that is saved meanwhile"
            person.press(ALLOW)
    assert is_shown
    assert kernel.reply(msg_id)["content"]["status"] == "ok"
    assert not person.models
    assert made(cwd) == {"one.txt"}


@pytest.mark.parametrize(
    ("press", "is_made", "words"),
    [
        pytest.param(ALLOW, True, "allowed once", id="allowed"),
        pytest.param(DENY, False, "denied", id="denied"),
        pytest.param(Press(DENY.button, "ask me later"), False, "ask me later", id="with a reason"),
        pytest.param(Press(DENY.button, "<b>`x`</b> \0"), False, "denied", id="with a bad reason"),
    ],
)
def test_the_answer_decides_and_stays_as_text(
    place: tuple[RunningKernel, Path], press: Press, words: str, *, is_made: bool
) -> None:
    kernel, cwd = place
    cell = clicks.run(kernel, "make one", [press])
    assert cell.status == "ok"
    assert words in cell.markdown
    assert "<b>`x`</b>" not in cell.markdown
    assert ("It is made." if is_made else "As you like.") in cell.markdown
    assert made(cwd) == ({"one.txt"} if is_made else set())
    assert "widget-view" not in json.dumps([output["data"] for output in cell.outputs])


def test_a_button_of_an_answered_card_grants_nothing(place: tuple[RunningKernel, Path]) -> None:
    kernel, cwd = place
    person = Person(kernel)
    msg_id = kernel.execute("make two")
    stale: list[str] = []
    for message in kernel.stream(msg_id):
        if person.sees(message):
            for comm_id in stale:
                person.click(comm_id)
            stale.append(person.button(ALLOW.button))
            person.press(DENY)
            person.click(stale[-1])
    assert len(stale) == 2
    assert kernel.reply(msg_id)["content"]["status"] == "ok"
    assert made(cwd) == set()


def test_a_click_after_the_interrupt_grants_nothing(place: tuple[RunningKernel, Path]) -> None:
    kernel, cwd = place
    person = Person(kernel)
    msg_id = kernel.execute("make one")
    kernel.wait_for(person.sees)
    button = person.button(ALLOW.button)
    kernel.interrupt()
    cell = kernel.collect(msg_id)
    person.click(button)
    assert cell.reply["content"]["ename"] == "Interrupted"
    assert kernel.run("hello").status == "ok"
    assert made(cwd) == set()


def test_a_grant_for_the_session_covers_such_calls_and_ends_with_the_kernel(
    tmp_path: Path,
) -> None:
    home, cwd = tmp_path / "home", tmp_path / "cwd"
    home.mkdir()
    cwd.mkdir()
    with running_kernel(cwd=cwd, home=home, env=offline_script(home, *SCRIPT)) as kernel:
        granted = clicks.run(kernel, "make two", [ALLOW_SESSION])
        (cwd / "one.txt").unlink()
        kernel.manager.restart_kernel()
        kernel.client.wait_for_ready(timeout=30)
        asked_again = clicks.run(kernel, "make one", [DENY])
    assert granted.markdown.count("for the session") + granted.markdown.count("this session") == 2
    assert "As you like." in asked_again.markdown
    assert made(cwd) == {"two.txt"}


@pytest.mark.parametrize(
    "code",
    [
        pytest.param("peek", id="by a path"),
        pytest.param("peek through a link", id="through a link"),
    ],
)
@pytest.mark.parametrize("press", [ALLOW, DENY], ids=["allowed", "denied"])
def test_reading_outside_the_project_asks(
    place: tuple[RunningKernel, Path], code: str, press: Press
) -> None:
    kernel, cwd = place
    (cwd.parent / "secret.md").write_text("pearl\n", encoding="utf-8")
    if not (cwd / "link").exists():
        (cwd / "link").symlink_to(cwd.parent)

    cell = clicks.run(kernel, code, [press])

    assert cell.status == "ok"
    assert "Seen." in cell.markdown
    assert ("pearl" in cell.markdown) is (press is ALLOW)


def test_attaching_a_file_outside_the_project_asks(place: tuple[RunningKernel, Path]) -> None:
    kernel, cwd = place
    (cwd.parent / "secret.md").write_text("pearl\n", encoding="utf-8")
    person = Person(kernel)
    msg_id = kernel.execute("hello @../secret.md")
    kernel.wait_for(person.sees)
    assert "outside the project" in "".join(person.texts)
    person.press(DENY)
    assert kernel.collect(msg_id).status == "ok"


def test_stop_on_a_call_ends_that_call_and_the_turn_goes_on(
    place: tuple[RunningKernel, Path],
) -> None:
    kernel, _ = place
    person = Person(kernel)
    msg_id = kernel.execute("sleep")
    messages: list[Msg] = []
    is_stopped = False
    for message in kernel.stream(msg_id):
        messages.append(message)
        if person.sees(message):
            person.press(ALLOW)
        if not is_stopped and any("begun" in text for text in person.texts):
            is_stopped = True
            person.click(person.button("Stop"))
    cell = Cell(kernel.reply(msg_id), messages)
    assert cell.status == "ok"
    assert "begun" in cell.markdown
    assert "stopped" in cell.markdown
    assert "You stopped it." in cell.markdown
    assert not person.models


def test_a_flood_of_words_comes_in_few_messages_and_whole(
    place: tuple[RunningKernel, Path],
) -> None:
    cell = place[0].run("talk")
    sent = [m["content"]["data"] for m in cell.messages if "data" in m["content"]]
    size = len("word ") * WORDS
    assert cell.markdown.count("word") == WORDS
    assert len(sent) < WORDS / 20
    assert len(json.dumps(sent)) < 10 * size
    assert len(cell.outputs) < 20


def test_many_calls_make_few_outputs(place: tuple[RunningKernel, Path]) -> None:
    cell = place[0].run("look around")
    assert cell.markdown.count("<b>ls</b>") == CALLS
    assert "Seen." in cell.markdown
    assert len(cell.outputs) < 20


def test_a_turn_shows_that_it_runs_before_anything_comes(
    place: tuple[RunningKernel, Path],
) -> None:
    kernel, _ = place
    msg_id = kernel.execute("think and wait")
    first = kernel.wait_for(lambda message: message["msg_type"] == "display_data")
    kernel.interrupt()
    cell = kernel.collect(msg_id)
    assert first["content"]["data"]["text/markdown"]
    assert cell.reply["content"]["ename"] == "Interrupted"


def test_every_output_belongs_to_the_cell_that_made_it(place: tuple[RunningKernel, Path]) -> None:
    kernel, _ = place
    sent = [kernel.execute("hello", cell_id=name) for name in "abc"]
    kinds = ("display_data", "update_display_data", "stream", "comm_open")
    seen: list[str] = []
    for msg_id in sent:
        cell = kernel.collect(msg_id)
        seen += [m["parent_header"]["msg_id"] for m in cell.messages if m["msg_type"] in kinds]
        assert "Hello." in cell.markdown
    assert set(seen) == set(sent)
