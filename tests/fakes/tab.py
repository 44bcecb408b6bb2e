"""A browser tab in front of a real kernel: a page, its comm, and the outputs that it gets.

Like JupyterLab it has a client of its own, hears the outputs of its own requests only, tells
a changed list of cells before the request that follows, and acknowledges at once. Closing it
says nothing to the kernel, as a reload does not.
"""

import time
import uuid
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from queue import Empty
from typing import Any

from jupyter_client.blocking.client import BlockingKernelClient

from crush_kernel.history.outputs import WIDGET_VIEW, apply_output
from tests.fakes.kernel import WAIT_S, Msg, RunningKernel
from tests.fakes.page import Page, PageCell

TARGET = "crush.notebook"

OUTPUTS = ("display_data", "update_display_data", "stream", "error", "clear_output")


@dataclass
class Tab:
    """One tab; made by `opened`."""

    page: Page
    client: BlockingKernelClient
    comm_id: str = ""
    requests: dict[str, str] = field(default_factory=dict[str, str])
    """The cells that its requests run, by request."""
    replies: dict[str, Msg] = field(default_factory=dict[str, Msg])
    idle: set[str] = field(default_factory=set[str])
    """The requests that are answered in full on IOPub."""
    heard: list[Msg] = field(default_factory=list[Msg])
    """What the kernel said over the comm, oldest first."""
    models: dict[str, dict[str, Any]] = field(default_factory=dict[str, dict[str, Any]])
    """The widgets that are there, by comm: also those that somebody else has opened."""
    acknowledges: bool = True
    outputs: int = 0
    """How many output messages have come for its cells."""

    # What it does

    def open(self) -> None:
        """Open the comm, and wait until the kernel has taken it in."""
        self.open_comm()
        self.wait(lambda: bool(self.said("ready")))

    def open_comm(self, data: object = None) -> None:
        """Open the comm, with other data than what is due if there is some, and do not wait."""
        self.comm_id = uuid.uuid4().hex
        opening = self.page.opening() if data is None else data
        content = {"comm_id": self.comm_id, "target_name": TARGET, "data": opening}
        self._send("comm_open", content)

    def say(self, data: object) -> None:
        """Send anything over the comm."""
        self._send("comm_msg", {"comm_id": self.comm_id, "data": data})

    def tell(self) -> None:
        """Tell what has changed in the list of cells."""
        if self.comm_id and (news := self.page.news()):
            self.say(news)

    def close_comm(self) -> None:
        """Close the comm, as a page does that is closed in good order."""
        self._send("comm_close", {"comm_id": self.comm_id, "data": {}})

    def start(self, cell_id: str, code: str = "") -> str:
        """Have a cell run and return the id of the request."""
        self.tell()
        cell = self.page[cell_id]
        cell.source = code or cell.source
        cell.outputs, cell.is_running = [], True
        body: Msg = {
            "code": cell.source,
            "silent": False,
            "store_history": True,
            "user_expressions": {},
            "allow_stdin": False,
            "stop_on_error": True,
        }
        request = self._send("execute_request", body, {"cellId": cell_id})
        self.requests[request] = cell_id
        return request

    def run(self, cell_id: str, code: str = "") -> PageCell:
        """Run a cell to its end, and return it as it is then."""
        self.finish(self.start(cell_id, code))
        return self.page[cell_id]

    def run_told(self, cell_id: str, code: str = "") -> PageCell:
        """Run a cell; its turn, if it makes one, is told by then."""
        cell = self.run(cell_id, code)
        self.settle()
        return cell

    def refused(self, cell_id: str, code: str, *, by: str = "CommandError") -> str:
        """Run a command that must fail `by` an error, and return what is said of it."""
        reply = self.finish(self.start(cell_id, code))
        assert (reply["status"], reply["ename"]) == ("error", by)
        return self.page[cell_id].shown

    def finish(self, request: str) -> Msg:
        """Wait for the end of a request of this tab and return its reply."""
        self.wait(lambda: request in self.idle)
        while request not in self.replies:
            message = self.client.get_shell_msg(timeout=WAIT_S)
            self.replies[message["parent_header"].get("msg_id", "")] = message["content"]
        return self.replies[request]

    def connect(self) -> None:
        """Wait until the kernel is heard: what it said before the channel was there is lost."""
        deadline = time.monotonic() + WAIT_S
        asked: set[str] = set()
        while not asked & self.idle:
            if time.monotonic() > deadline:
                raise TimeoutError("the kernel is not heard")
            asked.add(self._send("kernel_info_request", {}))
            self.take_in(0.5)

    def settle(self) -> None:
        """Wait until the kernel has answered all that was sent so far."""
        request = self._send("kernel_info_request", {})
        self.wait(lambda: request in self.idle)

    def save(self, path: Path | None = None) -> None:
        """Save the notebook, to the disk too if there is a path."""
        self.say({"method": "saving"})
        self.page.save()
        if path is not None:
            path.write_text(self.page.ipynb, encoding="utf-8")
        self.say({"method": "saved"})

    def press(self, label: str) -> str:
        """Press the newest button that says `label`, and return its comm."""
        comm_id = self.button(label)
        self.click(comm_id)
        return comm_id

    def button(self, label: str) -> str:
        """Return the comm of the newest button that says `label`."""
        self.wait(lambda: any(m.get("description") == label for m in self.models.values()))
        return next(
            comm for comm in reversed(self.models) if self.models[comm].get("description") == label
        )

    def click(self, comm_id: str) -> None:
        """Press the button of this comm, which may be gone."""
        data = {"method": "custom", "content": {"event": "click"}}
        self._send("comm_msg", {"comm_id": comm_id, "data": data})

    def interrupt(self) -> None:
        """Press Stop, and wait until the kernel has heard it."""
        message = self.client.session.msg("interrupt_request", {})
        self.client.control_channel.send(message)
        self.client.get_control_msg(timeout=WAIT_S)

    # What it hears

    def wait(self, is_so: Callable[[], bool]) -> None:
        """Take in what the kernel says until `is_so`.

        Raises:
            TimeoutError: it does not come to that.
        """
        deadline = time.monotonic() + WAIT_S
        while not is_so():
            if time.monotonic() > deadline:
                raise TimeoutError([message.get("method") for message in self.heard])
            self.take_in(0.1)

    def take_in(self, wait_s: float) -> None:
        """Take in one message, if there is one by then."""
        with suppress(Empty):
            self._receive(self.client.get_iopub_msg(timeout=wait_s))

    def said(self, method: str) -> list[Msg]:
        """Return what the kernel said of one kind."""
        return [message for message in self.heard if message["method"] == method]

    def pictures(self, cell_id: str) -> list[Msg]:
        """Return the pictures of one cell."""
        cells = [cell for message in self.said("outputs") for cell in message["cells"]]
        return [cell for cell in cells if cell["cell_id"] == cell_id]

    def _receive(self, message: Msg) -> None:
        content, kind = message["content"], message["msg_type"]
        request = message["parent_header"].get("msg_id", "")
        if kind == "comm_msg" and content["comm_id"] == self.comm_id:
            self.heard.append(content["data"])
            for answer in self.page.hear(content["data"]):
                if self.acknowledges:
                    self.say(answer)
        elif kind.startswith("comm_"):
            self._see_widget(kind, content)
        elif kind == "status" and content["execution_state"] == "idle":
            self.idle.add(request)
            if request in self.requests and self.requests[request] in self.page.ids:
                self.page[self.requests[request]].is_running = False
        elif kind == "execute_input" and request in self.requests:
            if (cell_id := self.requests[request]) in self.page.ids:
                self.page[cell_id].execution_count = content["execution_count"]
        elif kind in OUTPUTS and self.requests.get(request) in self.page.ids:
            self.outputs += 1
            apply_output(self.page[self.requests[request]].outputs, kind, content)

    def _see_widget(self, kind: str, content: Msg) -> None:
        comm_id = content["comm_id"]
        if kind == "comm_open":
            self.models[comm_id] = dict(content["data"].get("state", {}))
        elif kind == "comm_close":
            self.models.pop(comm_id, None)
        elif comm_id in self.models and content["data"].get("method") == "update":
            self.models[comm_id].update(content["data"]["state"])

    def _send(self, kind: str, content: Msg, metadata: Msg | None = None) -> str:
        message = self.client.session.msg(kind, content, metadata=metadata or {})
        self.client.shell_channel.send(message)
        return message["header"]["msg_id"]


@contextmanager
def opened(kernel: RunningKernel, page: Page) -> Generator[Tab]:
    """Connect a tab to a kernel; its comm is opened by the test."""
    client = BlockingKernelClient(connection_file=kernel.manager.connection_file)
    client.load_connection_file()
    client.start_channels(hb=False)
    tab = Tab(page, client)
    try:
        tab.connect()
        yield tab
    finally:
        client.stop_channels()


def views(cell: PageCell) -> list[str]:
    """Return the widgets that a cell shows."""
    bundles = [output.get("data", {}) for output in cell.outputs]
    return [data[WIDGET_VIEW]["model_id"] for data in bundles if WIDGET_VIEW in data]
