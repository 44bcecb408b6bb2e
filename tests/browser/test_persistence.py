"""The notebook as the session, in a real front end: what is kept, followed, marked, cleared."""

import json
import re
import signal
from collections.abc import Sequence
from typing import Any
from urllib.request import Request, urlopen

import psutil
import pytest
from playwright.sync_api import expect

from tests.browser.conftest import OpenNotebook
from tests.browser.jupyter import Notebook

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.timeout(240)]

MODEL = "window.jupyterapp.shell.currentWidget.content.model"

WIDGET_VIEW = "application/vnd.jupyter.widget-view+json"


def kept_turn(notebook: Notebook, index: int) -> dict[str, Any] | None:
    """Return the turn that the cell at `index` keeps in the open notebook."""
    return notebook.page.evaluate(
        f"index => {MODEL}.cells.get(index).getMetadata('crush') ?? null", index
    )


def wait_kept(notebook: Notebook, index: int, turn: str) -> dict[str, Any]:
    """Wait until the cell at `index` keeps `turn`, and return it."""
    notebook.wait_until(lambda: (kept_turn(notebook, index) or {}).get("turn") == turn)
    kept = kept_turn(notebook, index)
    assert kept is not None
    return kept


def texts(kept: dict[str, Any]) -> str:
    return json.dumps(kept["messages"])


def prompt(notebook: Notebook, index: int) -> str:
    return notebook.cell(index).locator(".jp-InputPrompt").inner_text()


def session_of(notebook: Notebook) -> dict[str, Any]:
    """Return what the server knows of the notebook's kernel."""
    with urlopen(f"{notebook.server.url}/api/sessions") as answer:  # noqa: S310 - our own address
        sessions: Sequence[dict[str, Any]] = json.load(answer)
    return next(each for each in sessions if each["path"] == notebook.name)


def kernel_of(notebook: Notebook) -> str:
    """Return the id of the notebook's kernel."""
    return session_of(notebook)["kernel"]["id"]


def shut_down(notebook: Notebook) -> None:
    """End the notebook's kernel while no page shows it."""
    address = f"{notebook.server.url}/api/sessions/{session_of(notebook)['id']}"
    with urlopen(Request(address, method="DELETE")):  # noqa: S310 - our own address
        pass


def wait_ready(notebook: Notebook) -> None:
    """Wait until the kernel has started anew."""
    notebook.page.wait_for_function(
        "() => window.jupyterapp.shell.currentWidget.sessionContext.session?.kernel?.status"
        " === 'idle'"
    )


def process_of(kernel_id: str) -> psutil.Process:
    """Return the process of a kernel, by the connection file that it was started with."""
    for process in psutil.process_iter(["cmdline"]):
        command: Sequence[str] = process.info["cmdline"] or ()
        if "crush_kernel.kernel" in command and any(kernel_id in part for part in command):
            return process
    raise LookupError(kernel_id)


def reload(notebook: Notebook) -> None:
    """Load the page again while the kernel may be busy."""
    notebook.page.reload()
    notebook.open(is_ready=False)


def test_a_saved_notebook_holds_its_session(open_notebook: OpenNotebook) -> None:
    notebook = open_notebook("hello", "look")
    notebook.run(0)
    notebook.run(1)
    wait_kept(notebook, 1, "cell-1.1")
    saved = notebook.save()
    first, second = (cell["metadata"]["crush"] for cell in saved["cells"])
    assert (first["turn"], first["end"]) == ("cell-0.1", "end_turn")
    assert "Hello **there**." in texts(first)
    assert "That is all." in texts(second)
    assert saved["metadata"]["crush"]["id"]
    assert "crush.turn" not in json.dumps([cell["outputs"] for cell in saved["cells"]])
    assert notebook.complaints == []


def test_a_turn_is_kept_without_disturbing_who_types(open_notebook: OpenNotebook) -> None:
    notebook = open_notebook("make a file", "a prompt in the making")
    notebook.start(0)
    expect(notebook.button(0, "Allow once")).to_be_visible()
    editor = notebook.cell(1).locator(".cm-content")
    editor.click()
    notebook.page.keyboard.press("Home")
    notebook.page.keyboard.type("I write ")
    notebook.page.evaluate(
        "() => document.querySelector('.crush-allow-once').dispatchEvent(new MouseEvent('click'))"
    )
    wait_kept(notebook, 0, "cell-0.1")
    notebook.page.keyboard.type("on: ")
    expect(editor).to_have_text("I write on: a prompt in the making")
    notebook.page.keyboard.press("Control+z")
    # Letters that are typed shortly after each other are taken back together.
    expect(editor).not_to_contain_text("on: ")
    expect(editor).to_contain_text("a prompt in the making")
    assert kept_turn(notebook, 0) is not None


def test_a_turn_goes_on_in_a_page_that_is_loaded_again(open_notebook: OpenNotebook) -> None:
    notebook = open_notebook("stream for ever")
    notebook.start(0)
    expect(notebook.output(0)).to_contain_text("word word")
    reload(notebook)
    expect(notebook.cell(0).locator(".jp-InputPrompt")).to_have_text("[*]:")
    expect(notebook.output(0)).to_contain_text("word word")
    length = len(notebook.output(0).inner_text())
    notebook.wait_until(lambda: len(notebook.output(0).inner_text()) > length + 50)
    notebook.command("notebook:interrupt-kernel")
    notebook.wait_done(0)
    expect(notebook.output(0)).to_contain_text("interrupted")
    assert wait_kept(notebook, 0, "cell-0.1")["end"] == "interrupted"
    assert notebook.complaints == []


def test_a_new_cell_is_in_the_file_before_it_runs(open_notebook: OpenNotebook) -> None:
    notebook = open_notebook("hello")
    notebook.command("notebook:insert-cell-below")
    expect(notebook.cell(1)).to_be_visible()
    notebook.page.evaluate(
        f"() => {MODEL}.cells.get(1).sharedModel.setSource('stream for ever')",
    )
    notebook.start(1)
    expect(notebook.output(1)).to_contain_text("word word")
    reload(notebook)
    expect(notebook.output(1)).to_contain_text("word word")
    assert prompt(notebook, 1) == "[*]:"
    notebook.command("notebook:interrupt-kernel")
    expect(notebook.output(1)).to_contain_text("interrupted")


def test_a_question_is_answered_in_a_page_that_is_loaded_again(open_notebook: OpenNotebook) -> None:
    notebook = open_notebook("make a file")
    notebook.start(0)
    expect(notebook.button(0, "Allow once")).to_be_visible()
    # Not saved with the question: the page has it from the kernel alone.
    reload(notebook)
    notebook.button(0, "Allow once").click()
    notebook.wait_done(0)
    expect(notebook.output(0)).to_contain_text("It is made.")
    expect(notebook.button(0, "Allow once")).to_have_count(0)
    assert "It is made." in texts(wait_kept(notebook, 0, "cell-0.1"))


def test_a_turn_that_ended_without_a_page_is_there_when_one_opens(
    open_notebook: OpenNotebook,
) -> None:
    notebook = open_notebook("make a file", "hello")
    notebook.start(0)
    expect(notebook.button(0, "Allow for this session")).to_be_visible()
    notebook.start(1)
    # What the page does last; it does not see what comes of it.
    notebook.button(0, "Allow for this session").click(no_wait_after=True)
    notebook.page.goto("about:blank")
    made = notebook.path.parent / "new.txt"
    notebook.wait_until(made.exists)
    notebook.open(is_ready=False)
    notebook.wait_done(0)
    notebook.wait_done(1)
    expect(notebook.output(0)).to_contain_text("It is made.")
    expect(notebook.output(1)).to_contain_text("there")
    wait_kept(notebook, 0, "cell-0.1")
    wait_kept(notebook, 1, "cell-1.1")


def test_a_killed_kernel_leaves_words_in_place_of_its_question(
    open_notebook: OpenNotebook,
) -> None:
    notebook = open_notebook("make a file", "hello")
    notebook.start(0)
    expect(notebook.button(0, "Allow once")).to_be_visible()
    process_of(kernel_of(notebook)).send_signal(signal.SIGKILL)
    expect(notebook.button(0, "Allow once")).to_have_count(0)
    expect(notebook.output(0)).to_contain_text("I make it.")
    notebook.wait_until(lambda: prompt(notebook, 0) != "[*]:")
    assert WIDGET_VIEW not in json.dumps(notebook.save())
    wait_ready(notebook)
    assert "I make it." in texts(wait_kept(notebook, 0, "cell-0.1"))
    notebook.run(1)
    expect(notebook.output(1)).to_contain_text("there")


def test_a_question_in_a_file_is_words_for_a_kernel_that_did_not_ask_it(
    open_notebook: OpenNotebook,
) -> None:
    notebook = open_notebook("make a file")
    notebook.start(0)
    expect(notebook.button(0, "Allow once")).to_be_visible()
    assert WIDGET_VIEW in json.dumps(notebook.save())
    notebook.page.goto("about:blank")
    shut_down(notebook)
    notebook.open()
    expect(notebook.output(0)).to_contain_text("I make it.")
    expect(notebook.output(0)).not_to_contain_text("model not found")
    expect(notebook.output(0)).not_to_contain_text("Loading widget")
    notebook.wait_until(lambda: WIDGET_VIEW not in json.dumps(notebook.save()))


def test_a_cell_says_that_other_cells_stand_above_it_now(open_notebook: OpenNotebook) -> None:
    notebook = open_notebook("hello", "look")
    notebook.run(0)
    notebook.run(1)
    notes = notebook.page.locator(".crush-stale-note")
    expect(notes).to_have_count(0)
    notebook.page.evaluate(f"() => {MODEL}.sharedModel.moveCell(1, 0)")
    expect(notes).to_have_count(2)
    note = notebook.cell(0).get_by_text(re.compile("^The cells above have changed since"))
    expect(note).to_be_visible()
    expect(notebook.cell(0)).to_have_accessible_description(re.compile("run it again"))
    notebook.page.evaluate(f"() => {MODEL}.sharedModel.moveCell(1, 0)")
    expect(notes).to_have_count(0)


def test_a_cell_that_is_taken_out_and_put_back_keeps_its_turn(open_notebook: OpenNotebook) -> None:
    notebook = open_notebook("hello", "look")
    notebook.run(0)
    wait_kept(notebook, 0, "cell-0.1")
    notebook.page.evaluate(f"() => {MODEL}.sharedModel.deleteCell(0)")
    notebook.page.evaluate(f"() => {MODEL}.sharedModel.undo()")
    assert texts(wait_kept(notebook, 0, "cell-0.1"))
    notebook.run(0)
    wait_kept(notebook, 0, "cell-0.2")


def test_a_cell_is_run_among_the_cells_that_stand_there_now(open_notebook: OpenNotebook) -> None:
    """What is inserted and run in one go is known to the kernel in its place."""
    notebook = open_notebook("hello", "look")
    notebook.run(0)
    notebook.page.evaluate(
        f"""() => {{
            {MODEL}.sharedModel.insertCell(0, {{
                cell_type: 'code', id: 'first', source: 'hello', metadata: {{}}
            }});
            window.jupyterapp.shell.currentWidget.content.activeCellIndex = 0;
            window.jupyterapp.commands.execute('notebook:run-cell');
        }}"""
    )
    notebook.wait_done(0)
    wait_kept(notebook, 0, "first.1")
    expect(notebook.page.locator(".crush-stale-note")).to_have_count(1)
    expect(notebook.cell(1).locator(".crush-stale-note")).to_be_visible()


@pytest.mark.parametrize("who", ["this page", "somebody else"])
def test_a_session_goes_on_after_a_restart(open_notebook: OpenNotebook, who: str) -> None:
    notebook = open_notebook("hello", "look")
    notebook.run(0)
    wait_kept(notebook, 0, "cell-0.1")
    session = notebook.save()["metadata"]["crush"]["id"]
    restart = (
        "window.jupyterapp.shell.currentWidget.sessionContext.restartKernel()"
        if who == "this page"
        else f"fetch('/api/kernels/{kernel_of(notebook)}/restart', {{ method: 'POST' }})"
    )
    notebook.page.evaluate(f"async () => {{ await {restart}; }}")
    wait_ready(notebook)
    notebook.run(1)
    wait_kept(notebook, 1, "cell-1.1")
    notebook.run(0)
    wait_kept(notebook, 0, "cell-0.2")
    assert notebook.save()["metadata"]["crush"]["id"] == session


def test_what_is_read_stays_in_its_place_while_a_cell_above_is_painted(
    open_notebook: OpenNotebook,
) -> None:
    notebook = open_notebook("stream for ever", *["text\n" * 12] * 12)
    notebook.start(0)
    expect(notebook.output(0)).to_contain_text("word word")
    reload(notebook)
    expect(notebook.output(0)).to_contain_text("word word")
    notebook.cell(6).evaluate("cell => cell.scrollIntoView({ block: 'start' })")
    top = notebook.cell(6).bounding_box()
    length = len(notebook.output(0).evaluate("output => output.textContent"))
    notebook.wait_until(
        lambda: len(notebook.output(0).evaluate("output => output.textContent")) > length + 2000
    )
    # A page that is slow may be seen between a paint and the scrolling that makes up for it.
    notebook.wait_until(lambda: notebook.cell(6).bounding_box() == pytest.approx(top, abs=2))
    notebook.command("notebook:interrupt-kernel")
