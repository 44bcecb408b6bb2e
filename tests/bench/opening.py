"""What the extension does on the page's main thread while a notebook of 200 turns opens.

The page itself takes seconds, and never the same time twice: a difference of two openings
says nothing. So the profiler tells what runs in the extension's functions and below them.
"""

import json
from collections import defaultdict
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

from playwright.sync_api import Browser, sync_playwright

from crush_kernel.history.record import write_turn
from crush_kernel.history.turn import Turn, digest_of, source_digest
from crush_kernel.messages import Message, Text, ToolCall, ToolResult
from tests.bench.browser import session_of
from tests.bench.report import Row, Scale, Skipped
from tests.browser.conftest import ARGUMENTS
from tests.browser.jupyter import Notebook, Server, chromium, jupyter_server, write_notebook
from tests.fakes.offline import offline_script, turn

NAME = "opening 200 turns, main thread in the extension"
CELLS = 200
SETTLE_MS = 1_500
"""After the kernel is idle: the page tells it what it holds and is told what is stale."""

OURS = "/crush-kernel/"
"""In the address of each of the extension's scripts."""

IDLE = "(idle)"


def measure(scale: Scale) -> tuple[Row | Skipped, ...]:
    """Open the notebook again and again, each time in a fresh page with a fresh kernel."""
    if not chromium():
        return (Skipped(NAME, "no Chromium on the PATH"),)
    with TemporaryDirectory() as folder, sync_playwright() as playwright:
        home = Path(folder)
        script = offline_script(home, turn("hello", {"text": "Hello."}))
        with jupyter_server(home, script) as server:
            _write(server.folder / "bench.ipynb")
            browser = playwright.chromium.launch(executable_path=chromium(), args=list(ARGUMENTS))
            _profile(browser, server)  # fills the caches
            profiles = [_profile(browser, server) for _ in range(scale.repeats(7, 3))]
            browser.close()
    ours = median(map(_ours_ms, profiles))
    note = f"the whole page is busy for {median(map(_busy_ms, profiles)):.0f} ms meanwhile"
    return (Row(NAME, ours, "ms", limit=50, note=note),)


def _profile(browser: Browser, server: Server) -> Any:  # noqa: ANN401 - JSON
    """Open the notebook and return what Chromium's profiler has seen."""
    page = browser.new_page(viewport={"width": 1200, "height": 900})
    session = session_of(page)
    session.send("Profiler.enable")
    session.send("Profiler.setSamplingInterval", {"interval": 200})
    session.send("Profiler.start")
    notebook = Notebook(page, server, "lab", "bench.ipynb")
    notebook.open()
    page.wait_for_timeout(SETTLE_MS)
    profile = session.send("Profiler.stop")["profile"]
    notebook.command("kernelmenu:shutdown")
    page.wait_for_timeout(200)
    page.close()
    return profile


def _ours_ms(profile: Any) -> float:  # noqa: ANN401 - JSON
    """Return the milliseconds in which a function of ours was on the stack."""
    own = _own_ms(profile)
    nodes = {node["id"]: node for node in profile["nodes"]}
    waiting = [(profile["nodes"][0], False)]
    spent = 0.0
    while waiting:
        node, is_below = waiting.pop()
        is_ours = is_below or OURS in node["callFrame"]["url"]
        spent += own[node["id"]] if is_ours else 0.0
        waiting += [(nodes[child], is_ours) for child in node.get("children", ())]
    return spent


def _busy_ms(profile: Any) -> float:  # noqa: ANN401 - JSON
    own = _own_ms(profile)
    return sum(
        own[node["id"]] for node in profile["nodes"] if node["callFrame"]["functionName"] != IDLE
    )


def _own_ms(profile: Any) -> dict[int, float]:  # noqa: ANN401 - JSON
    own: dict[int, float] = defaultdict(float)
    for node, spent_us in zip(profile["samples"], profile["timeDeltas"], strict=True):
        own[node] += spent_us / 1_000
    return own


def _write(path: Path) -> None:
    """Write a notebook in which each cell has run: a call, its result and an answer."""
    write_notebook(path, *(f"look at file {number}" for number in range(CELLS)))
    notebook = json.loads(path.read_text("utf-8"))
    for number, cell in enumerate(notebook["cells"]):
        answer = f"File {number} has **three** lines.\n\n- one\n- two\n- three\n"
        cell["execution_count"] = number + 1
        cell["metadata"]["crush"] = _record(cell["id"], cell["source"], answer)
        cell["outputs"] = [
            {"output_type": "display_data", "metadata": {}, "data": {"text/markdown": answer}}
        ]
    path.write_text(json.dumps(notebook), "utf-8")


def _record(cell_id: str, prompt: str, answer: str) -> Any:  # noqa: ANN401 - JSON
    call = ToolCall("call-1", "view", json.dumps({"file_path": "a.txt"}))
    messages = (
        Message("user", (Text(prompt),)),
        Message("assistant", (call,), provider="offline", model="demo", stop="tool_use"),
        Message("tool", (ToolResult("call-1", "1|one\n2|two\n3|three"),)),
        Message("assistant", (Text(answer),), provider="offline", model="demo", stop="end_turn"),
    )
    return write_turn(
        Turn(
            cell_id,
            messages=messages,
            revision=5,
            end="end_turn",
            source=source_digest(prompt),
            digest=digest_of(messages),
        )
    )
