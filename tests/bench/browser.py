"""How busy the page's main thread is while a reply streams in at 250 tokens a second."""

from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Protocol, cast

from playwright.sync_api import Page, sync_playwright

from tests.bench.report import Row, Scale, Skipped
from tests.browser.conftest import ARGUMENTS
from tests.browser.jupyter import Notebook, chromium, jupyter_server, write_notebook
from tests.fakes.offline import offline_script, turn

NAME = "browser main thread, 250 tokens/s"
TOKENS_PER_S = 250

_PARAGRAPH = (
    "The price is **rounded** before the discount, so the total is off by a `cent`. "
    "Look at [the rule](https://example.org) and at these:\n\n"
    "- one item of a list\n- and another one\n\n"
    "```python\ndef price(amount):\n    return round(amount, 2)\n```\n\n"
)


class Session(Protocol):
    """As much of a `CDPSession`, whose own types are partly unknown, as is needed."""

    def send(self, method: str, params: Mapping[str, object] | None = None) -> Any:  # noqa: ANN401
        """Return whatever Chromium answers."""


def measure(scale: Scale) -> tuple[Row | Skipped, ...]:
    """Stream in a real JupyterLab; the idle page comes after it."""
    if not chromium():
        return (Skipped(NAME, "no Chromium on the PATH"),)
    seconds = scale.repeats(15, 6)
    with TemporaryDirectory() as folder, sync_playwright() as playwright:
        home = Path(folder)
        script = {"text": _PARAGRAPH, "repeat": 1_000, "pace_s": 1 / TOKENS_PER_S}
        with jupyter_server(home, offline_script(home, turn("stream", script))) as server:
            write_notebook(server.folder / "bench.ipynb", "stream")
            browser = playwright.chromium.launch(executable_path=chromium(), args=list(ARGUMENTS))
            page = browser.new_page(viewport={"width": 1200, "height": 900})
            notebook = Notebook(page, server, "lab", "bench.ipynb")
            notebook.open()
            rows = _measured(notebook, seconds)
            notebook.command("kernelmenu:shutdown")
            browser.close()
            return rows


def _measured(notebook: Notebook, seconds: int) -> tuple[Row, ...]:
    page = notebook.page
    metrics = session_of(page)
    # CPU time of the thread, which other programs on this machine do not stretch.
    metrics.send("Performance.enable", {"timeDomain": "threadTicks"})
    notebook.start(0)
    notebook.output(0).get_by_text("rounded").first.wait_for()
    first = _tokens(notebook)
    streaming = _busy_percent(notebook, metrics, seconds)
    rate = (_tokens(notebook) - first) / seconds
    notebook.command("notebook:interrupt-kernel")
    notebook.wait_done(0)
    idle = _busy_percent(notebook, metrics, max(4, seconds // 3))
    note = f"{rate:.0f} tokens/s came; the same page at rest: {idle:.1f} %"
    return (Row(NAME, streaming, "%", limit=20, note=note),)


def _tokens(notebook: Notebook) -> int:
    shown = notebook.output(0).inner_text()
    return shown.count("rounded") * len(_PARAGRAPH.split())


def session_of(page: Page) -> Session:
    """Return the way to Chromium's own tools for a page."""
    return cast("Session", page.context.new_cdp_session(page))


def _busy_percent(notebook: Notebook, metrics: Session, seconds: int) -> float:
    before = _values(metrics)
    notebook.page.wait_for_timeout(seconds * 1_000)
    after = _values(metrics)
    busy = after["TaskDuration"] - before["TaskDuration"]
    return 100 * busy / (after["Timestamp"] - before["Timestamp"])


def _values(metrics: Session) -> dict[str, float]:
    found = metrics.send("Performance.getMetrics")["metrics"]
    return {each["name"]: each["value"] for each in found}
