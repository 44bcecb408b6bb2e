"""The box in which something is said to a running turn, and the list of what it does."""

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import OpenNotebook

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.timeout(180)]

LABEL = "Add a message to this turn…"
SAID = r"add a branch, dd, for $1 or $2, \(as\) you like"
"""Letters that are shortcuts, and signs that are formulas to JupyterLab."""


def test_what_is_typed_reaches_the_running_turn(open_notebook: OpenNotebook) -> None:
    notebook = open_notebook("work for long", "hello")
    notebook.start(0)
    cell = notebook.cell(0)
    box = cell.get_by_role("textbox", name=LABEL, exact=True)
    expect(box).to_be_visible()
    expect(box).not_to_be_focused()
    expect(notebook.output(0)).to_contain_text("◐ Running the tests")
    expect(notebook.output(0)).to_contain_text("☐ Write <b>docs</b>")

    # Letters are no shortcuts, and what is shown above comes and goes beside the box.
    box.click()
    notebook.page.keyboard.type(SAID)
    words = len(notebook.output(0).inner_text())
    notebook.wait_until(lambda: len(notebook.output(0).inner_text()) > words + 50)
    expect(box).to_be_focused()
    expect(box).to_have_value(SAID)
    notebook.page.keyboard.press("Enter")
    expect(box).to_have_value("")
    expect(notebook.output(0)).to_contain_text(f"queued for the next step: {SAID}")
    assert notebook.page.locator(".jp-Notebook .jp-Cell").count() == 2

    notebook.wait_done(0)
    expect(notebook.output(0).locator("blockquote")).to_have_text(f"You: {SAID}")
    expect(box).to_have_count(0)
    expect(notebook.output(0).get_by_text("☑ Read the code")).to_have_count(1)
    assert notebook.complaints == []


def test_it_is_used_by_keyboard_alone_and_keeps_what_comes_too_late(
    open_notebook: OpenNotebook,
) -> None:
    notebook = open_notebook("work for long")
    notebook.start(0)
    cell = notebook.cell(0)
    box = cell.get_by_role("textbox", name=LABEL, exact=True)
    box.focus()
    notebook.page.keyboard.type("first")
    notebook.page.keyboard.press("Tab")
    expect(cell.get_by_role("button", name="Send", exact=True)).to_be_focused()
    notebook.page.keyboard.press("Enter")
    expect(notebook.output(0)).to_contain_text("queued for the next step: first")
    box.fill("too late")
    notebook.command("notebook:interrupt-kernel")
    notebook.wait_done(0)
    expect(notebook.output(0)).to_contain_text("not sent")
    expect(box).to_have_value("too late")
    expect(box).not_to_be_editable()
    expect(cell).to_contain_text("Not sent: the turn was over.")
    cell.get_by_role("button", name="Discard", exact=True).click()
    expect(box).to_have_count(0)


def test_a_short_turn_stays_quiet(open_notebook: OpenNotebook) -> None:
    notebook = open_notebook("hello")
    notebook.run(0)
    expect(notebook.cell(0).locator("form")).to_have_count(0)
