"""Every answer to a permission question, in every front end, and every way to leave without one.

Each ends in bounded time, says what was decided, and leaves a history that a strict provider
takes.
"""

import json
from collections.abc import Callable, Generator, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.fakes.clicks import Person
from tests.fakes.kernel import WAIT_S, Cell, Msg, RunningKernel
from tests.fakes.provider.replies import Call, Reply, Say, say
from tests.fakes.provider.server import FakeProvider, Received, serving
from tests.kernel.desk import Desk, kill

pytestmark = [pytest.mark.slow, pytest.mark.timeout(120)]

WRITE = Reply((Say("I make it."), Call("write", {"file_path": "made.txt", "content": "made\n"})))


def replies(received: Received) -> Reply:
    """Want to write at first in each turn, and be done with whatever comes of it."""
    messages = received.body["messages"]
    assert isinstance(messages, list)
    last = messages[-1]
    assert isinstance(last, dict)
    return WRITE if last["role"] == "user" and "make" in json.dumps(last) else say("Then this.")


@pytest.fixture
def desk(tmp_path: Path) -> Generator[Desk]:
    with serving() as provider, ExitStack() as stack:
        provider.play(replies)
        yield Desk(tmp_path, provider, stack)


@pytest.fixture
def kernel(desk: Desk) -> RunningKernel:
    return desk.start()


def refused(provider: FakeProvider) -> list[str]:
    return [each.refusal for each in provider.requests if each.refusal]


# With cards


class AtCards:
    """A person at cards of a page, who does one thing after another."""

    def __init__(self, kernel: RunningKernel) -> None:
        self.kernel = kernel
        self.person = Person(kernel)

    def run(self, code: str, *acts: Callable[["AtCards"], None], cell_id: str = "a") -> Cell:
        """Run `code`; do the next of `acts` whenever a card is complete, then when it grows."""
        msg_id = self.kernel.execute(code, cell_id=cell_id)
        waiting = list(acts)
        messages: list[Msg] = []
        while not is_idle(messages[-1] if messages else None):
            message = self.kernel.wait_for(
                # What a press brings about answers the press, and not the cell.
                lambda message: (
                    message["parent_header"].get("msg_id") == msg_id
                    or message["msg_type"].startswith("comm")
                )
            )
            is_card = self.person.sees(message)
            state = message["content"].get("data", {}).get("state", {})
            is_editor = message["msg_type"] == "comm_open" and state.get("description") == "Cancel"
            if (is_card or is_editor) and waiting:
                waiting.pop(0)(self)
            if message["parent_header"].get("msg_id") == msg_id:
                messages.append(message)
        assert not waiting
        assert not self.person.models, "widgets are left behind"
        return Cell(self.kernel.reply(msg_id), messages)

    def press(self, label: str) -> None:
        self.person.click(self.person.button(label))


def is_idle(message: Msg | None) -> bool:
    return (
        message is not None
        and message["msg_type"] == "status"
        and message["content"]["execution_state"] == "idle"
    )


def pressing(*labels: str) -> tuple[Callable[[AtCards], None], ...]:
    return tuple((lambda person, label=label: person.press(label)) for label in labels)


def stop(person: AtCards) -> None:
    person.kernel.interrupt()


def reload(person: AtCards) -> None:
    """Lose all models, ask for them again as a page does, and answer."""
    label = person.person.button("Allow once")
    for comm_id in list(person.person.models):
        person.kernel.comm(comm_id, {"method": "request_state"})
    person.person.click(label)


def give_up_the_rule_and_stop(person: AtCards) -> None:
    person.press("Cancel")
    person.kernel.interrupt()


def press_twice(person: AtCards) -> None:
    """Press one button twice and then the other, before anything can have come back."""
    once, deny = person.person.button("Allow once"), person.person.button("Deny")
    for comm_id in (once, once, deny):
        person.person.click(comm_id)


CARDS = [
    pytest.param(pressing("Allow once"), "allowed once", True, True, id="once"),
    pytest.param(
        pressing("Allow for this session"), "allowed for the session", True, False, id="session"
    ),
    pytest.param(pressing("Always …", "Save"), "always allowed", True, False, id="always"),
    pytest.param(
        (*pressing("Always …"), give_up_the_rule_and_stop), "interrupted", False, True, id="give up"
    ),
    pytest.param(pressing("Deny"), "denied", False, True, id="deny"),
    pytest.param((stop,), "interrupted", False, True, id="stop"),
    pytest.param((reload,), "allowed once", True, True, id="reload"),
    pytest.param((press_twice,), "allowed once", True, True, id="twice"),
]


@pytest.mark.parametrize(("acts", "said", "is_made", "asks_again"), CARDS)
def test_at_a_card(
    desk: Desk,
    *,
    acts: tuple[Callable[[AtCards], None], ...],
    said: str,
    is_made: bool,
    asks_again: bool,
) -> None:
    kernel = desk.start()
    cell = AtCards(kernel).run("make it", *acts)
    assert said in cell.markdown
    assert (desk.cwd / "made.txt").exists() is is_made
    again = pressing("Deny") if asks_again else ()
    (desk.cwd / "made.txt").unlink(missing_ok=True)
    assert AtCards(kernel).run("make it again", *again, cell_id="b").status == "ok"
    assert (desk.cwd / "made.txt").exists() is not asks_again
    assert refused(desk.provider) == []


# At a keyboard


def at_a_keyboard(kernel: RunningKernel, code: str, lines: Iterator[str | None]) -> Cell:
    """Run `code` and answer what is asked with `lines`; `None` stops the cell."""
    msg_id = kernel.execute(code, cell_id=None, allow_stdin=True)
    for line in lines:
        assert kernel.client.get_stdin_msg(timeout=WAIT_S)["msg_type"] == "input_request"
        if line is None:
            kernel.interrupt()
        else:
            kernel.client.input(line)
    return kernel.collect(msg_id)


@pytest.mark.parametrize(
    ("lines", "said", "is_made", "asks_again"),
    [
        pytest.param(("y",), "allowed once", True, True, id="once"),
        pytest.param(("s",), "allowed for the session", True, False, id="session"),
        pytest.param(("a", "p"), "always allowed", True, False, id="always"),
        pytest.param(("n not now",), "not now", False, True, id="deny"),
        pytest.param(("what?",), "what?", False, True, id="something else"),
        pytest.param((None,), "interrupted", False, True, id="stop"),
    ],
)
def test_at_a_keyboard(
    desk: Desk,
    *,
    lines: tuple[str | None, ...],
    said: str,
    is_made: bool,
    asks_again: bool,
) -> None:
    kernel = desk.start()
    cell = at_a_keyboard(kernel, "make it", iter(lines))
    assert said in cell.stdout
    assert (desk.cwd / "made.txt").exists() is is_made
    (desk.cwd / "made.txt").unlink(missing_ok=True)
    cell = at_a_keyboard(kernel, "make it again", iter(("n",) if asks_again else ()))
    assert cell.status == "ok"
    assert (desk.cwd / "made.txt").exists() is not asks_again
    assert refused(desk.provider) == []


# Where nobody is


def test_where_nobody_is_the_answer_is_no_at_once_and_on_record(
    desk: Desk, kernel: RunningKernel
) -> None:
    cell = kernel.run("make it", cell_id=None)
    assert cell.status == "ok"
    assert "denied" in cell.markdown
    assert not (desk.cwd / "made.txt").exists()
    assert "nobody" in kernel.run("/audit", cell_id=None).markdown
    assert refused(desk.provider) == []


# Restarts


def test_nothing_is_granted_by_a_kernel_that_is_gone(desk: Desk) -> None:
    first = desk.start(JPY_SESSION_NAME=str(desk.path))
    person = AtCards(first)
    assert person.run("make it", *pressing("Allow for this session")).status == "ok"
    (desk.cwd / "made.txt").unlink()
    person.kernel.execute("make it again", cell_id="b")
    person.kernel.wait_for(lambda message: message["msg_type"] == "status")
    kill(first)
    second = desk.start(JPY_SESSION_NAME=str(desk.path))
    cell = AtCards(second).run("make it anew", *pressing("Deny"), cell_id="c")
    assert "denied" in cell.markdown
    assert refused(desk.provider) == []


def test_what_is_always_allowed_is_so_in_the_next_kernel_and_in_no_other_project(
    desk: Desk, kernel: RunningKernel, tmp_path: Path
) -> None:
    AtCards(kernel).run("make it", *pressing("Always …", "Save"))
    (desk.cwd / "made.txt").unlink()
    assert AtCards(desk.start()).run("make it").status == "ok"
    assert (desk.cwd / "made.txt").exists()
    assert ".crush" not in str(list(desk.cwd.rglob("permissions*")))
    desk.cwd = tmp_path / "other"
    desk.cwd.mkdir()
    AtCards(desk.start()).run("make it", *pressing("Deny"))
    assert not (desk.cwd / "made.txt").exists()
