"""The tour, as a newcomer runs it: from top to bottom, clicking Allow where a card asks."""

import json
import shutil
from collections.abc import Generator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from tests.browser.jupyter import App, Notebook, Server, jupyter_server

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.timeout(240)]

NOTEBOOKS = Path(__file__).parents[2] / "notebooks"


@pytest.fixture(scope="module")
def tour_server(
    browser: Browser,  # noqa: ARG001 - no server without a browser
    tmp_path_factory: pytest.TempPathFactory,
) -> Generator[Server]:
    home = tmp_path_factory.mktemp("tour")
    with jupyter_server(home, {}) as running:
        shutil.copytree(NOTEBOOKS, running.folder, dirs_exist_ok=True)
        yield running


def test_the_tour_runs_without_a_key(browser: Browser, tour_server: Server, app: App) -> None:
    page = browser.new_page(viewport={"width": 1200, "height": 900})
    tour = Notebook(page, tour_server, app, "tour.ipynb")
    tour.open()
    cells = json.loads(tour.path.read_text("utf-8"))["cells"]
    prompts = [index for index, cell in enumerate(cells) if cell["cell_type"] == "code"]
    for index in prompts:
        tour.start(index)
        while not tour.is_done(index):
            allow = tour.cell(index).locator("button.crush-allow-once:enabled")
            if allow.is_visible():
                allow.click()
            page.wait_for_timeout(100)
    first, last = prompts[0], prompts[-1]
    expect(tour.output(first)).to_contain_text("I am not a language model")
    expect(tour.output(last)).to_contain_text("edited tour/price.py")
    undo = next(index for index in prompts if cells[index]["id"] == "tour-undo")
    expect(tour.output(undo)).to_contain_text("Taken back")
    for index in prompts:
        if index != undo:
            expect(tour.output(index)).to_contain_text("offline")
    assert "0.20" in (tour_server.folder / "tour" / "price.py").read_text("utf-8")
    tour.command("kernelmenu:shutdown")
    page.close()
