"""A turn that changes the notebook in which it runs, in a browser."""

import json
from collections.abc import Generator
from typing import Any

import nbformat
import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.jupyter import App, Notebook, Server, jupyter_server, write_notebook
from tests.fakes.offline import Step, offline_script, turn, wants

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.timeout(240)]


def edit(action: str, **arguments: str) -> Step:
    return wants("notebook_edit", file_path="prompts.ipynb", action=action, **arguments)


SCRIPT = (
    turn("hello", {"text": "Hello **there**."}),
    turn(
        "tidy up",
        wants("view", file_path="prompts.ipynb"),
        edit("insert", source="What is missing?", after="cell-1"),
        edit("replace", cell_id="cell-2", source="A better question."),
        edit("move", cell_id="cell-0", after="cell-3"),
        edit("delete", cell_id="cell-3"),
        {"text": "It is tidy."},
    ),
    turn(
        "write it up",
        wants("view", file_path="prompts.ipynb"),
        edit("insert", source="<img src=x onerror='window.hurt=1'>\n\n# Title", after="cell-0",
             cell_type="markdown"),
        edit("replace", cell_id="cell-1", source="<script>window.hurt=1</script> better"),
        [{"if_denied": True, "text": "As you like."}, {"text": "It is written."}],
    ),
)  # fmt: skip


@pytest.fixture(scope="module")
def server(
    browser: Browser,  # noqa: ARG001 - no server without a browser
    tmp_path_factory: pytest.TempPathFactory,
) -> Generator[Server]:
    home = tmp_path_factory.mktemp("jupyter")
    mode = {"CRUSH_PERMISSION_MODE": "accept-edits"}
    with jupyter_server(home, offline_script(home, *SCRIPT) | mode) as running:
        yield running


@pytest.fixture
def page(browser: Browser) -> Generator[Page]:
    opened = browser.new_page(viewport={"width": 1200, "height": 900})
    yield opened
    opened.close()


def opened(page: Page, server: Server, app: App, name: str, *cells: str) -> Notebook:
    folder = server.folder / f"{name}-{app}"
    folder.mkdir()
    write_notebook(folder / "prompts.ipynb", *cells)
    notebook = Notebook(page, server, app, f"{folder.name}/prompts.ipynb")
    notebook.open()
    return notebook


def valid(saved: dict[str, Any]) -> list[str]:
    """Return the sources of a saved notebook, which has to be valid."""
    nbformat.validate(nbformat.from_dict(saved))  # pyright: ignore[reportUnknownMemberType]
    return ["".join(cell["source"]) for cell in saved["cells"]]


def sources(notebook: Notebook) -> list[str]:
    return notebook.page.evaluate(
        "() => [...window.jupyterapp.shell.currentWidget.content.model.cells]"
        ".map(cell => cell.sharedModel.getSource())"
    )


def undo(notebook: Notebook) -> None:
    notebook.page.evaluate("() => window.jupyterapp.commands.execute('notebook:undo-cell-action')")


def test_cells_are_changed_and_the_user_takes_it_back(page: Page, server: Server, app: App) -> None:
    notebook = opened(page, server, app, "tidy", "hello", "tidy up", "A question.", "Away.")
    notebook.run(0)
    notebook.run(1)
    notebook.wait_until(lambda: notebook.is_done(0))

    tidy = ["tidy up", "What is missing?", "A better question.", "hello"]
    assert sources(notebook) == tidy
    expect(notebook.output(0)).to_contain_text("It is tidy.")
    expect(notebook.output(3)).to_contain_text("Hello there.")
    saved = notebook.save()
    assert valid(saved) == tidy
    moved = saved["cells"][3]
    assert (moved["id"], moved["metadata"]["crush"]["turn"]) == ("cell-0", "cell-0.1")
    assert saved["cells"][1]["metadata"].get("crush") is None

    steps: list[list[str]] = []
    for _ in range(4):
        undo(notebook)
        steps.append(sources(notebook))
    assert steps == [
        ["tidy up", "What is missing?", "A better question.", "Away.", "hello"],
        ["hello", "tidy up", "What is missing?", "A better question.", "Away."],
        ["hello", "tidy up", "What is missing?", "A question.", "Away."],
        ["hello", "tidy up", "A question.", "Away."],
    ]
    expect(notebook.output(0)).to_contain_text("Hello there.")
    assert valid(notebook.save()) == steps[-1]
    assert notebook.complaints == []


def test_typing_in_another_cell_goes_on_and_nothing_is_executed(
    page: Page, server: Server, app: App
) -> None:
    notebook = opened(page, server, app, "type", "write it up", "Mine.", "My next")
    notebook.start(0)
    editor = notebook.cell(2).locator(".cm-content")
    editor.click()
    page.keyboard.press("End")
    for word in (" one", " two", " three"):
        page.keyboard.type(word)
        notebook.page.wait_for_timeout(30)
    notebook.wait_until(lambda: len(sources(notebook)) == 4 and notebook.is_done(0))
    page.keyboard.type(" four")

    assert sources(notebook)[-1] == "My next one two three four"
    assert sources(notebook)[2] == "<script>window.hurt=1</script> better"
    expect(notebook.cell(1).locator(".jp-RenderedMarkdown h1")).to_contain_text("Title")
    assert page.evaluate("() => window.hurt") is None
    assert json.dumps(notebook.save()).count("crush") > 0
    assert notebook.complaints == []
