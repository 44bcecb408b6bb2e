"""Browser, server and notebooks for the tests; without Chromium they are skipped, not in CI."""

import os
from collections.abc import Callable, Generator

import pytest
from playwright.sync_api import Browser, expect, sync_playwright

from tests.browser.jupyter import (
    TIMEOUT_MS,
    App,
    Notebook,
    Server,
    chromium,
    jupyter_server,
    write_notebook,
)
from tests.fakes.offline import offline_script

ARGUMENTS = (
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
)  # fmt: skip

OpenNotebook = Callable[..., Notebook]

# Five seconds, as it comes, are short on two busy cores.
expect.set_options(timeout=TIMEOUT_MS)


# Not for the session: while Playwright runs, no other test of the process can have a loop.
@pytest.fixture(scope="module")
def browser() -> Generator[Browser]:
    path = chromium()
    if not path and os.environ.get("CRUSH_REQUIRE_BROWSER"):
        pytest.fail("no Chromium, and CRUSH_REQUIRE_BROWSER is set")
    if not path:
        pytest.skip("no Chromium on the PATH: browser tests need one")
    with sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=path, args=list(ARGUMENTS))
        yield running
        running.close()


@pytest.fixture(scope="module")
def server(
    browser: Browser,  # noqa: ARG001 - no server without a browser
    tmp_path_factory: pytest.TempPathFactory,
) -> Generator[Server]:
    home = tmp_path_factory.mktemp("jupyter")
    with jupyter_server(home, offline_script(home)) as running:
        yield running


@pytest.fixture(params=["lab", "notebook"])
def app(request: pytest.FixtureRequest) -> App:
    return request.param


@pytest.fixture
def open_notebook(
    browser: Browser, server: Server, app: App, request: pytest.FixtureRequest
) -> Generator[OpenNotebook]:
    """Opens a new notebook of prompts in a folder of its own."""
    page = browser.new_page(viewport={"width": 1200, "height": 900})
    opened: list[Notebook] = []

    def open_it(*cells: str) -> Notebook:
        folder = "".join(c if c.isalnum() else "-" for c in request.node.name)
        name = f"{folder}/prompts.ipynb"
        (server.folder / folder).mkdir(exist_ok=True)
        write_notebook(server.folder / name, *cells)
        notebook = Notebook(page, server, app, name)
        opened.append(notebook)
        notebook.open()
        return notebook

    yield open_it
    for notebook in opened:
        notebook.command("kernelmenu:shutdown")
    page.close()
