"""Questions of the agent in a real front end: a form, with the mouse, the keyboard, and axe."""

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import OpenNotebook
from tests.browser.test_accessibility import faults

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.timeout(180)]


def test_a_form_is_filled_in_while_the_cell_runs_and_stays_as_text(
    open_notebook: OpenNotebook,
) -> None:
    notebook = open_notebook("ask me")
    notebook.start(0)
    form = notebook.cell(0).get_by_role("group", name="Question: 2 questions")
    expect(form).to_be_visible()
    choices = form.get_by_role("radiogroup", name="Which database?")
    expect(choices).to_contain_text("SQLite <b>")
    assert faults(notebook) == []
    choices.get_by_role("radio").nth(1).check()
    form.get_by_role("textbox", name="What is it called?").fill("shop")
    notebook.button(0, "Send answers").click()
    notebook.wait_done(0)
    output = notebook.output(0)
    expect(output).to_contain_text("SQLite <b>; shop")
    expect(output).to_contain_text("So it is: ")
    expect(notebook.button(0, "Send answers")).to_have_count(0)


def test_escape_dismisses_the_form(open_notebook: OpenNotebook) -> None:
    notebook = open_notebook("ask me")
    notebook.start(0)
    form = notebook.cell(0).get_by_role("group", name="Question: 2 questions")
    form.get_by_role("textbox", name="What is it called?").press("Escape")
    notebook.wait_done(0)
    expect(notebook.output(0)).to_contain_text("As you like.")
