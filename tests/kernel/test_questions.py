"""Questions of the model in a real kernel: forms, the keyboard of a console, and nobody."""

import json
from collections.abc import Generator
from typing import Any

import pytest

from tests.fakes.clicks import Person
from tests.fakes.kernel import WAIT_S, Cell, Msg, RunningKernel, running_kernel
from tests.fakes.offline import Step, offline_script, turn, wants

pytestmark = pytest.mark.slow

SECRET = "sk-ant-api03-" + "a1B2" * 20

END: list[Step] = [{"if_error": True, "text": "On my own: {result}"}, {"text": "Then {result}"}]

CHOICES = [{"id": "pg", "label": "Postgres"}, {"id": "lite", "label": "SQLite <b>"}]


def item(kind: str, question: str, **more: object) -> Step:
    return {"type": kind, "question": question, "description": "It matters.", **more}


SCRIPT = (
    turn("hello", {"text": "Hello."}),
    turn("propose", wants("question", questions=[item("yes_no", "Shall I go on?")]), END),
    turn(
        "choose",
        wants(
            "question",
            questions=[
                item("single_choice", "Which database?", choices=CHOICES),
                item("free_text", "What name?"),
            ],
        ),
        END,
    ),
    turn("tell", wants("question", questions=[item("free_text", f"Is it {SECRET}?")]), END),
    turn("ask badly", wants("question", questions=[item("single_choice", "Which?")]), END),
)


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Generator[RunningKernel]:
    home, cwd = tmp_path_factory.mktemp("home"), tmp_path_factory.mktemp("cwd")
    with running_kernel(cwd=cwd, home=home, env=offline_script(home, *SCRIPT)) as kernel:
        yield kernel


@pytest.fixture
def kernel(shared: RunningKernel) -> Generator[RunningKernel]:
    yield shared
    shared.interrupt()  # what a failed test has left running


class Reader:
    """A person who fills in a form."""

    def __init__(self, kernel: RunningKernel) -> None:
        self.kernel = kernel
        self.person = Person(kernel)

    def sees(self, message: Msg) -> bool:
        """Take in `message` and return whether a form is complete with it."""
        self.person.sees(message)
        state = message["content"].get("data", {}).get("state", {})
        return message["msg_type"] == "comm_open" and state.get("description") == "Dismiss"

    def fields(self, model: str) -> list[str]:
        return [id_ for id_, each in self.person.models.items() if each["_model_name"] == model]

    def fill(self, field: str, **state: object) -> None:
        self.kernel.comm(field, {"method": "update", "state": state, "buffer_paths": []})

    def press(self, label: str) -> None:
        self.person.click(self.person.button(label))


def answered(kernel: RunningKernel, code: str, label: str, **fills: dict[str, Any]) -> Cell:
    """Run `code`, fill in the fields of its form and press the button `label`.

    Args:
        kernel: runs it.
        code: the cell.
        label: of the button.
        fills: what to set by the name of the model, of the newest of its kind.
    """
    reader = Reader(kernel)
    msg_id = kernel.execute(code)
    messages: list[Msg] = []
    for message in kernel.stream(msg_id):
        messages.append(message)
        if reader.sees(message):
            for model, state in fills.items():
                reader.fill(reader.fields(model)[-1], **state)
            reader.press(label)
    assert not reader.person.models, f"widgets are left: {reader.person.texts}"
    return Cell(kernel.reply(msg_id), messages)


@pytest.mark.parametrize(
    ("label", "fills", "said"),
    [
        pytest.param("Yes", {}, "Yes.", id="yes"),
        pytest.param("No", {"TextModel": {"value": "too dear"}}, "too dear", id="no, because"),
        pytest.param("Dismiss", {}, "On my own: ", id="dismissed"),
    ],
)
def test_a_proposal_is_answered_by_a_button_and_stays_as_text(
    kernel: RunningKernel, label: str, fills: dict[str, dict[str, Any]], said: str
) -> None:
    cell = answered(kernel, "propose", label, **fills)
    assert cell.status == "ok"
    assert said in cell.markdown
    assert "Shall I go on?" in cell.markdown
    assert "widget-view" not in json.dumps([output["data"] for output in cell.outputs])


def test_a_form_is_filled_in_and_sent(kernel: RunningKernel) -> None:
    cell = answered(
        kernel,
        "choose",
        "Send answers",
        RadioButtonsModel={"index": 1},
        TextareaModel={"value": "shop"},
    )
    assert "SQLite" in cell.markdown
    assert "<b>;" not in cell.markdown
    assert "shop" in cell.markdown


def test_an_interrupt_withdraws_a_form_whose_buttons_do_nothing_then(
    kernel: RunningKernel,
) -> None:
    reader = Reader(kernel)
    msg_id = kernel.execute("propose")
    kernel.wait_for(reader.sees)
    stale = reader.person.button("Yes")
    kernel.interrupt()
    cell = kernel.collect(msg_id)
    assert cell.reply["content"]["ename"] == "Interrupted"
    reader.person.click(stale)
    assert kernel.run("hello").status == "ok"
    assert "No." in answered(kernel, "propose", "No").markdown


def test_a_second_click_does_not_answer_the_next_form(kernel: RunningKernel) -> None:
    reader = Reader(kernel)
    msg_id = kernel.execute("propose")
    kernel.wait_for(reader.sees)
    stale = reader.person.button("Yes")
    reader.person.click(stale)
    reader.person.click(stale)
    assert "Yes." in kernel.collect(msg_id).markdown
    reader.person.click(stale)
    assert "No." in answered(kernel, "propose", "No").markdown


def test_secrets_are_neither_shown_nor_told(kernel: RunningKernel) -> None:
    cell = answered(kernel, "tell", "Send answers", TextareaModel={"value": f"no, x {SECRET}"})
    # Front ends are sent back what was typed into them.
    sent = [message["content"] for message in cell.messages if _is_ours(message)]
    assert SECRET not in json.dumps(sent, default=str)
    assert "no, x" in cell.markdown


def _is_ours(message: Msg) -> bool:
    return message["content"].get("data", {}).get("method") != "echo_update"


def test_a_bad_question_is_told_to_the_model_and_never_shown(kernel: RunningKernel) -> None:
    cell = kernel.run("ask badly")
    assert "2 to 5 choices" in cell.markdown
    assert not [kind for kind in cell.kinds if kind.startswith("comm")]


def typed(kernel: RunningKernel, code: str, *lines: str) -> tuple[Cell, list[str]]:
    """Run `code` as a console does and type `lines`; return the prompts, too."""
    msg_id = kernel.execute(code, cell_id=None, allow_stdin=True)
    prompts: list[str] = []
    for line in lines:
        asked = kernel.client.get_stdin_msg(timeout=WAIT_S)
        prompts.append(asked["content"]["prompt"])
        content = kernel.client.session.msg("input_reply", {"value": line}, parent=asked)
        kernel.client.stdin_channel.send(content)
    return kernel.collect(msg_id), prompts


def test_a_console_is_asked_one_question_after_the_other(kernel: RunningKernel) -> None:
    cell, prompts = typed(kernel, "choose", "2", "shop")
    assert "(1 of 2) Which database?\n  It matters.\n  [1] Postgres\n  [2] SQLite" in cell.stdout
    assert prompts == [
        "A number, or your words (Enter skips): ",
        "Your answer (Enter skips): ",
    ]
    assert "SQLite <b>; shop" in cell.stdout


def test_the_end_of_the_input_dismisses_all(kernel: RunningKernel) -> None:
    cell, _ = typed(kernel, "choose", "\x04")
    assert "On my own: " in cell.stdout


def test_where_nobody_is_the_model_is_told_at_once(kernel: RunningKernel) -> None:
    cell = kernel.run("propose", cell_id=None)
    assert "Nobody can be asked here" in cell.markdown
    assert not [kind for kind in cell.kinds if kind.startswith("comm")]
