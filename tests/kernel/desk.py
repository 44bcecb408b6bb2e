"""A folder with a notebook, a strict provider, and kernels that are started for it in turn."""

import os
import signal
import threading
import time
from contextlib import ExitStack
from itertools import count
from pathlib import Path

from tests.fakes.eventful import settings
from tests.fakes.kernel import RunningKernel, running_kernel
from tests.fakes.page import Page
from tests.fakes.provider.server import FakeProvider
from tests.fakes.tab import Tab, opened


class Desk:
    """Starts kernels and opens tabs; `stack` ends them."""

    def __init__(self, folder: Path, provider: FakeProvider, stack: ExitStack) -> None:
        self.home, self.cwd = folder / "home", folder / "cwd"
        self.path = self.cwd / "nb.ipynb"
        self.provider = provider
        self.stack = stack
        self.tabs: list[Tab] = []
        self._numbers = count(1)
        for path in (self.home, self.cwd):
            path.mkdir(exist_ok=True)

    def start(self, **more: str) -> RunningKernel:
        """Start a kernel in the folder."""
        env = settings("openai", self.provider)
        kernel = running_kernel(cwd=self.cwd, home=self.home, env=env | more)
        return self.stack.enter_context(kernel)

    def tab(self, kernel: RunningKernel, page: Page) -> Tab:
        """Return a tab whose comm is not open yet."""
        tab = self.stack.enter_context(opened(kernel, page))
        self.tabs.append(tab)
        return tab

    def close_tabs(self) -> None:
        """Close all comms in good order, so that the kernel forgets their pages."""
        for tab in self.tabs:
            if tab.comm_id:
                tab.close_comm()
        self.tabs.clear()

    def open(self, kernel: RunningKernel, page: Page | None = None) -> Tab:
        """Return a tab that shows `page`, or a new notebook."""
        tab = self.tab(kernel, page or self.page())
        tab.open()
        return tab

    def page(self, *cells: str, is_headless: bool = False) -> Page:
        """Return a new notebook with the cells a, b and c, or others."""
        return Page(*(cells or "abc"), path="nb.ipynb", is_headless=is_headless)

    def fresh_page(self, *, is_headless: bool = False) -> Page:
        """Return a new notebook with three cells that have never run in any kernel."""
        number = next(self._numbers)
        return self.page(*(f"{cell}{number}" for cell in "abc"), is_headless=is_headless)

    @property
    def sent(self) -> str:
        """All that the last request said."""
        assert not [each.refusal for each in self.provider.requests if each.refusal]
        return self.provider.requests[-1].raw.decode()


def kill(kernel: RunningKernel) -> None:
    """Kill a kernel at once."""
    os.kill(kernel.pid, signal.SIGKILL)
    deadline = time.monotonic() + 10
    while kernel.manager.is_alive() and time.monotonic() < deadline:
        threading.Event().wait(0.02)
    assert not kernel.manager.is_alive()
