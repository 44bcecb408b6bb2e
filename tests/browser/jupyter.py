"""A real JupyterLab or Notebook 7 with the kernel of this checkout, in headless Chromium."""

import json
import os
import re
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal
from urllib.error import URLError
from urllib.request import urlopen

from playwright.sync_api import Error, Locator, Page

from tests.fakes.kernel import clean_environment, kernel_specs

App = Literal["lab", "notebook"]

START_S = 60
"""How long the server may take to start on two busy cores."""

TIMEOUT_MS = 40_000

EXTENSION = Path(__file__).parents[2] / "labextension"


@dataclass(frozen=True)
class Server:
    """A running Jupyter server that serves both apps from `folder`."""

    url: str
    folder: Path


@contextmanager
def jupyter_server(home: Path, env: Mapping[str, str]) -> Generator[Server]:
    """Start a server on a free port; it ends, and its kernels with it, on leaving."""
    folder = home / "notebooks"
    folder.mkdir(parents=True)
    data = home / "jupyter"
    kernel_specs(data / "kernels")
    if (EXTENSION / "dist").is_dir():
        target = data / "labextensions" / "crush-kernel"
        shutil.copytree(EXTENSION / "dist", target)
        shutil.copy(EXTENSION / "install.json", target)
    port = _free_port()
    command = [
        sys.executable, "-m", "jupyterlab", "--allow-root", "--no-browser",
        f"--ServerApp.port={port}", "--ServerApp.ip=127.0.0.1", "--IdentityProvider.token=",
        "--ServerApp.disable_check_xsrf=True", f"--ServerApp.root_dir={folder}",
        "--LabApp.expose_app_in_browser=True",
        "--JupyterNotebookApp.expose_app_in_browser=True",
    ]  # fmt: skip
    environ = clean_environment(home) | {
        "JUPYTER_PATH": str(data),
        "JUPYTER_CONFIG_DIR": str(home / "config"),
        "JUPYTER_RUNTIME_DIR": str(home / "runtime"),
        "PYTHONWARNINGS": "default",
        **env,
    }
    with (home / "server.log").open("wb") as log:
        process = subprocess.Popen(command, env=environ, stdout=log, stderr=log)
    try:
        url = f"http://127.0.0.1:{port}"
        _wait_until_up(url, process)
        yield Server(url, folder)
    finally:
        process.terminate()
        try:
            process.wait(15)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(5)


@dataclass
class Notebook:
    """A notebook that is open in a page, and what the browser complained about."""

    page: Page
    server: Server
    app: App
    name: str
    complaints: list[str] = field(default_factory=list[str])

    def __post_init__(self) -> None:
        self.page.on("pageerror", self._on_error)

    @property
    def path(self) -> Path:
        return self.server.folder / self.name

    def open(self, *, is_ready: bool = True) -> None:
        """Open the notebook and wait for its kernel, unless it is known to be busy."""
        where = "lab/tree" if self.app == "lab" else "notebooks"
        query = "?reset" if self.app == "lab" else ""
        self.page.goto(f"{self.server.url}/{where}/{self.name}{query}")
        self.page.wait_for_function(
            "() => window.jupyterapp?.shell?.currentWidget?.context?.isReady", timeout=TIMEOUT_MS
        )
        states = ["idle"] if is_ready else ["idle", "busy"]
        self.page.wait_for_function(
            "states => states.includes("
            "window.jupyterapp.shell.currentWidget.sessionContext.session?.kernel?.status)",
            arg=states,
            timeout=TIMEOUT_MS,
        )

    def _on_error(self, error: Error) -> None:
        """Keep what our extension may have caused; Notebook 7 has faults of its own."""
        if "crush" in str(error.stack).lower():
            self.complaints.append(str(error))

    def start(self, index: int) -> None:
        """Run the cell at `index` without waiting for it."""
        self.page.evaluate(
            "index => { const app = window.jupyterapp;"
            " app.shell.currentWidget.content.activeCellIndex = index;"
            " app.commands.execute('notebook:run-cell'); }",
            index,
        )

    def run(self, index: int) -> None:
        """Run the cell at `index` to its end."""
        self.start(index)
        self.wait_done(index)

    def wait_done(self, index: int) -> None:
        """Wait until the cell at `index` has its number."""
        prompt = self.cell(index).locator(".jp-InputPrompt")
        self.page.wait_for_function(
            r"element => /\[\d+\]/.test(element.innerText)",
            arg=prompt.element_handle(),
            timeout=TIMEOUT_MS,
        )

    def is_done(self, index: int) -> bool:
        """Return whether the cell at `index` has its number."""
        return bool(re.search(r"\[\d+\]", self.cell(index).locator(".jp-InputPrompt").inner_text()))

    def wait_until(self, is_true: Callable[[], bool]) -> None:
        """Let the page go on until `is_true`."""
        deadline = time.monotonic() + TIMEOUT_MS / 1000
        while not is_true():
            if time.monotonic() > deadline:
                raise TimeoutError
            self.page.wait_for_timeout(50)

    def command(self, name: str) -> None:
        self.page.evaluate("name => { window.jupyterapp.commands.execute(name); }", name)

    def cell(self, index: int) -> Locator:
        return self.page.locator(".jp-Notebook .jp-Cell").nth(index)

    def output(self, index: int) -> Locator:
        return self.cell(index).locator(".jp-OutputArea").first

    def button(self, index: int, label: str) -> Locator:
        return self.cell(index).get_by_role("button", name=label, exact=True)

    def save(self) -> dict[str, Any]:
        """Save the notebook and return what is in the file."""
        self.page.evaluate("() => window.jupyterapp.shell.currentWidget.context.save()")
        return json.loads(self.path.read_text("utf-8"))


def write_notebook(path: Path, *cells: str) -> None:
    """Write a notebook of prompt cells for the Crush kernel."""
    path.write_text(
        json.dumps(
            {
                "nbformat": 4,
                "nbformat_minor": 5,
                "metadata": {
                    "kernelspec": {"name": "crush", "display_name": "Crush", "language": "markdown"}
                },
                "cells": [
                    {
                        "cell_type": "code",
                        "id": f"cell-{number}",
                        "metadata": {},
                        "execution_count": None,
                        "outputs": [],
                        "source": source,
                    }
                    for number, source in enumerate(cells)
                ],
            }
        ),
        encoding="utf-8",
    )


def chromium() -> str:
    """Return the path of a Chromium, empty if there is none."""
    found = (
        os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")
    )
    return found or ""


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def _wait_until_up(url: str, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + START_S
    while time.monotonic() < deadline and process.poll() is None:
        try:
            with urlopen(f"{url}/api/status", timeout=1):  # noqa: S310 - our own address
                return
        except (URLError, ConnectionError, TimeoutError):
            time.sleep(0.2)
    raise TimeoutError(f"no server at {url}")
