"""What is shown can be read and used without seeing and without a mouse."""

# axe-playwright-python has no types:
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false

import pytest
from axe_playwright_python.sync_playwright import (  # pyright: ignore[reportMissingTypeStubs]
    Axe,
)
from playwright.sync_api import expect

from tests.browser.conftest import OpenNotebook
from tests.browser.jupyter import Notebook

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.timeout(180)]

THEMES = ("JupyterLab Light", "JupyterLab Dark")


def faults(notebook: Notebook) -> list[str]:
    """Return what axe finds wrong inside the outputs, serious or worse."""
    found = Axe().run(notebook.page, context=".jp-Cell-outputArea").response["violations"]
    return [
        f"{fault['id']}: {node['html']}"
        for fault in found
        if fault["impact"] in ("serious", "critical")
        for node in fault["nodes"]
    ]


@pytest.mark.parametrize("theme", THEMES)
def test_a_card_and_a_transcript_have_no_serious_faults(
    open_notebook: OpenNotebook, theme: str
) -> None:
    notebook = open_notebook("look", "make a file")
    notebook.page.evaluate(
        "theme => window.jupyterapp.commands.execute('apputils:change-theme', { theme })", theme
    )
    notebook.run(0)
    notebook.start(1)
    expect(notebook.button(1, "Allow once")).to_be_visible()
    assert faults(notebook) == []
    notebook.button(1, "Deny").click()
    notebook.wait_done(1)
    assert faults(notebook) == []


def test_a_card_is_a_named_group_of_real_controls(open_notebook: OpenNotebook) -> None:
    notebook = open_notebook("make a file")
    notebook.start(0)
    card = notebook.cell(0).get_by_role("group", name="write wants to create new.txt")
    expect(card).to_be_visible()
    for label in ("Allow once", "Allow for this session", "Deny"):
        expect(card.get_by_role("button", name=label, exact=True)).to_be_enabled()
    expect(card.get_by_role("textbox")).to_be_editable()
    card.get_by_role("button", name="Deny", exact=True).press("Escape")
    notebook.wait_done(0)
    expect(notebook.output(0)).to_contain_text("As you like.")
