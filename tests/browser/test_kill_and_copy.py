"""What a killed kernel, another name and a copy leave of a session, in a real page."""

import json
import os
import signal
from pathlib import Path
from typing import Any

import psutil
import pytest
from playwright.sync_api import expect

from tests.browser.conftest import OpenNotebook
from tests.browser.jupyter import App, Notebook

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.timeout(180)]


@pytest.fixture
def app() -> App:
    return "lab"


def kernel_pid(notebook: Notebook) -> int | None:
    """Return the process of the kernel that works in the notebook's folder."""
    folder = str(notebook.path.parent)
    for process in psutil.process_iter(["cmdline"]):
        try:
            words = " ".join(process.info["cmdline"] or ())
            if "crush_kernel.kernel" in words and process.cwd() == folder:
                return process.pid
        except psutil.Error:
            continue
    return None


def kill_kernel(notebook: Notebook) -> None:
    """Kill the kernel and wait until another one, started by the server, is idle."""
    pid = kernel_pid(notebook)
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    notebook.wait_until(lambda: kernel_pid(notebook) not in (None, pid))
    notebook.page.wait_for_function(
        "() => window.jupyterapp.shell.currentWidget.sessionContext.session?.kernel?.status"
        " === 'idle'"
    )


def saved(notebook: Notebook, index: int) -> dict[str, Any]:
    """Return the metadata of a cell in the saved file, once its turn is in it."""
    found: list[dict[str, Any]] = [{}]

    def is_there() -> bool:
        found[0] = notebook.save()["cells"][index]["metadata"]
        return "crush" in found[0]

    notebook.wait_until(is_there)
    return found[0]["crush"]


def test_a_killed_kernel_loses_nothing_that_was_shown(open_notebook: OpenNotebook) -> None:
    notebook = open_notebook("hello", "stream for ever", "recap")
    notebook.run(0)
    notebook.start(1)
    expect(notebook.output(1)).to_contain_text("word word word")

    kill_kernel(notebook)

    expect(notebook.output(1)).to_contain_text("word word word")
    notebook.run(2)
    expect(notebook.output(2)).to_contain_text("hello")
    expect(notebook.output(2)).to_contain_text("stream for ever")
    kept = saved(notebook, 1)
    assert kept["end"] == "interrupted"
    assert "word word" in json.dumps(kept["messages"])
    assert notebook.complaints == []


def test_a_renamed_notebook_stays_itself_and_a_copy_becomes_another(
    open_notebook: OpenNotebook,
) -> None:
    notebook = open_notebook("hello", "recap")
    notebook.run(0)
    saved(notebook, 0)
    first = session_id(notebook)
    notebook.page.evaluate(
        "() => window.jupyterapp.shell.currentWidget.context.rename('renamed.ipynb')"
    )
    notebook.name = str(Path(notebook.name).with_name("renamed.ipynb"))
    notebook.run(1)
    expect(notebook.output(1)).to_contain_text("hello")
    saved(notebook, 1)
    assert session_id(notebook) == first

    name = str(Path(notebook.name).with_name("copy.ipynb"))
    twin = Notebook(notebook.page, notebook.server, notebook.app, name)
    twin.path.write_bytes(notebook.path.read_bytes())
    twin.open()
    twin.run(1)
    expect(twin.output(1)).to_contain_text("hello")
    saved(twin, 1)
    assert session_id(twin) != first
    twin.command("kernelmenu:shutdown")


def session_id(notebook: Notebook) -> str:
    return json.loads(notebook.path.read_text("utf-8"))["metadata"]["crush"]["id"]
