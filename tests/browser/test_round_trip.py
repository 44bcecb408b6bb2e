"""One notebook, three front ends: begun in JupyterLab, gone on with by `run`, then in Notebook 7.

Nothing but the file goes from one to the next: the journal is taken away each time.
"""

import json
import shutil
from collections.abc import Generator
from typing import Any
from urllib.request import Request, urlopen

import pytest
from playwright.sync_api import Browser, expect

from tests.browser.jupyter import App, Notebook, Server, jupyter_server, write_notebook
from tests.fakes.eventful import REFUSED, settings
from tests.fakes.media import encoded, photo
from tests.fakes.provider.replies import Call, Reply, Say, Think, call, say
from tests.fakes.provider.server import FakeProvider
from tests.fakes.runs import Place

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.timeout(400)]

CELLS = ("look around", "make a file", "!echo out", "and now", "go on", "the end")
LAST = len(CELLS) - 1


@pytest.fixture(scope="module", params=["anthropic", "openai"])
def place(
    request: pytest.FixtureRequest,
    browser: Browser,  # noqa: ARG001 - no server without a browser
    provider_server: FakeProvider,
    tmp_path_factory: pytest.TempPathFactory,
) -> Generator[tuple[Server, Place]]:
    """A server, and the folder that it serves, with the provider that both are to ask."""
    home = tmp_path_factory.mktemp("round")
    environ = settings(request.param, provider_server)
    with jupyter_server(home, environ) as server:
        made = Place(home, server.folder, environ)
        write_notebook(made.path, *CELLS)
        (made.folder / "plan.md").write_text("buy bread\n", encoding="utf-8")
        (made.folder / "viewed.png").write_bytes(encoded(photo((80, 60)), "PNG"))
        yield server, made


def opened(browser: Browser, server: Server, app: App) -> Notebook:
    page = browser.new_page(viewport={"width": 1200, "height": 900})
    notebook = Notebook(page, server, app, "work.ipynb")
    notebook.open()
    return notebook


def wait_kept(notebook: Notebook, index: int, end: str) -> None:
    """Wait until the page has written the turn of a cell, as it ended."""
    found = (
        "index => window.jupyterapp.shell.currentWidget.content.model"
        ".cells.get(index).getMetadata('crush')?.end"
    )
    notebook.wait_until(lambda: notebook.page.evaluate(found, index) == end)


def run(notebook: Notebook, index: int, *, end: str = "end_turn", reason: str = "") -> None:
    """Run a cell to its end; deny what it asks, for a `reason`."""
    notebook.start(index)
    if reason:
        notebook.cell(index).locator(".crush-reason input").fill(reason)
        notebook.button(index, "Deny").click()
    notebook.wait_done(index)
    wait_kept(notebook, index, end)


def left_behind(notebook: Notebook, place: Place) -> None:
    """Save, close the page, end the kernel, and take its journal away."""
    notebook.save()
    notebook.page.close()
    with urlopen(f"{notebook.server.url}/api/sessions") as answer:  # noqa: S310 - our own address
        sessions: Any = json.load(answer)
    for session in sessions:
        address = f"{notebook.server.url}/api/sessions/{session['id']}"
        with urlopen(Request(address, method="DELETE")):  # noqa: S310 - our own address
            pass
    forget(place)


def forget(place: Place) -> None:
    shutil.rmtree(place.folder / ".crush")


def test_each_front_end_goes_on_where_the_other_has_stopped(
    browser: Browser, place: tuple[Server, Place], provider: FakeProvider
) -> None:
    server, folder = place
    both = (Call("ls", {"path": "."}), Call("view", {"file_path": "viewed.png"}))
    write = call("write", {"file_path": "new.txt", "content": "made\n"})

    lab = opened(browser, server, "lab")
    provider.play(Reply((Think("Where am I?"), Say("I look."), *both)), say("Blots."))
    run(lab, 0)
    provider.play(write, say("As you like."))
    run(lab, 1, reason="not now")
    run(lab, 2)
    provider.play(REFUSED)
    run(lab, 3, end="error")
    told = provider.requests[-1].raw
    left_behind(lab, folder)
    assert lab.complaints == []

    provider.play(Reply((Think("Again."), Say("Here we are."))), REFUSED)
    done = folder.run()
    assert done.reasons == {"cell-3": "failed", "cell-4": "never run"}
    assert provider.requests[-2].raw == told
    told = provider.requests[-1].raw
    forget(folder)

    notebook = opened(browser, server, "notebook")
    provider.play(say("Gone on."))
    run(notebook, 4)
    assert provider.requests[-1].raw == told
    expect(notebook.output(4)).to_contain_text("History from this file: 5 turns")
    expect(notebook.output(0)).to_contain_text("Blots.")
    provider.play(say("The end."))
    run(notebook, LAST)
    expect(notebook.output(LAST)).not_to_contain_text("History from this file")
    left_behind(notebook, folder)
    assert notebook.complaints == []

    assert not [request.refusal for request in provider.requests if request.refusal]
    before = folder.path.read_bytes()
    assert folder.run().ran == []
    assert folder.path.read_bytes() == before
