"""A real kernel process, driven over ZMQ as a front end would."""

import json
import os
import shutil
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from queue import Empty
from typing import Any

from jupyter_client.blocking.client import BlockingKernelClient
from jupyter_client.kernelspec import KernelSpecManager
from jupyter_client.manager import KernelManager

import crush_kernel.kernel

WAIT_S = 30.0
"""How long a test waits for a message, on two busy cores."""

Msg = dict[str, Any]


@dataclass
class Cell:
    """What one execute request brought: its reply, and all messages that answer it."""

    reply: Msg
    messages: list[Msg] = field(default_factory=list[Msg])

    @property
    def kinds(self) -> list[str]:
        return [message["msg_type"] for message in self.messages]

    @property
    def status(self) -> str:
        return self.reply["content"]["status"]

    @property
    def outputs(self) -> list[Msg]:
        """The display data as a front end shows them in the end, in order."""
        shown: dict[str, Msg] = {}
        for message in self.messages:
            content = message["content"]
            if message["msg_type"] in ("display_data", "update_display_data"):
                key = content["transient"]["display_id"] if content.get("transient") else ""
                shown[key or message["header"]["msg_id"]] = content
        return list(shown.values())

    @property
    def markdown(self) -> str:
        """All Markdown that is shown in the end."""
        return "\n".join(out["data"].get("text/markdown", "") for out in self.outputs)

    @property
    def stdout(self) -> str:
        return "".join(m["content"]["text"] for m in self.messages if m["msg_type"] == "stream")


class RunningKernel:
    """A kernel process and a client of it."""

    def __init__(self, manager: KernelManager, client: BlockingKernelClient) -> None:
        self.manager = manager
        self.client = client

    @property
    def pid(self) -> int:
        provisioner: Any = self.manager.provisioner
        return provisioner.pid

    def execute(
        self,
        code: str,
        *,
        cell_id: str | None = "cell-1",
        allow_stdin: bool = False,
        silent: bool = False,
    ) -> str:
        """Send one execute request and return its id; JupyterLab sends `cell_id`."""
        body: Msg = {
            "code": code,
            "silent": silent,
            "store_history": not silent,
            "user_expressions": {},
            "allow_stdin": allow_stdin,
            "stop_on_error": True,
        }
        metadata = {"cellId": cell_id} if cell_id else {}
        message = self.client.session.msg("execute_request", body, metadata=metadata)
        self.client.shell_channel.send(message)
        return message["header"]["msg_id"]

    def run(self, code: str, *, cell_id: str | None = "cell-1", allow_stdin: bool = False) -> Cell:
        """Execute `code` and return all that came of it."""
        return self.collect(self.execute(code, cell_id=cell_id, allow_stdin=allow_stdin))

    def collect(self, msg_id: str) -> Cell:
        """Gather the messages that answer `msg_id`, up to its idle, and its reply."""
        messages = list(self.stream(msg_id))
        return Cell(self.reply(msg_id), messages)

    def stream(self, msg_id: str) -> Generator[Msg]:
        """Yield the IOPub messages that answer `msg_id` up to its idle."""
        deadline = time.monotonic() + WAIT_S
        while time.monotonic() < deadline:
            message = self.client.get_iopub_msg(timeout=WAIT_S)
            if message["parent_header"].get("msg_id") != msg_id:
                continue
            yield message
            content = message["content"]
            if message["msg_type"] == "status" and content["execution_state"] == "idle":
                return
        raise TimeoutError(msg_id)

    def wait_for(self, wanted: Callable[[Msg], bool]) -> Msg:
        """Return the next IOPub message that is `wanted`."""
        deadline = time.monotonic() + WAIT_S
        while time.monotonic() < deadline:
            message = self.client.get_iopub_msg(timeout=WAIT_S)
            if wanted(message):
                return message
        raise TimeoutError

    def reply(self, msg_id: str) -> Msg:
        """Return the shell reply to `msg_id`."""
        while True:
            try:
                message = self.client.get_shell_msg(timeout=WAIT_S)
            except Empty:
                raise TimeoutError(msg_id) from None
            if message["parent_header"].get("msg_id") == msg_id:
                return message

    def shell_request(self, msg_type: str, content: Msg) -> Msg:
        """Send any request on the shell channel and return its reply."""
        message = self.client.session.msg(msg_type, content)
        self.client.shell_channel.send(message)
        return self.reply(message["header"]["msg_id"])

    def comm(self, comm_id: str, data: Msg) -> None:
        """Send a comm message, as a clicked widget does."""
        message = self.client.session.msg("comm_msg", {"comm_id": comm_id, "data": data})
        self.client.shell_channel.send(message)

    def interrupt(self) -> None:
        """Interrupt as the Stop button does, and wait until the kernel has heard it."""
        message = self.client.session.msg("interrupt_request", {})
        self.client.control_channel.send(message)
        while True:
            reply = self.client.get_control_msg(timeout=WAIT_S)
            if reply["parent_header"].get("msg_id") == message["header"]["msg_id"]:
                return


def kernel_specs(folder: Path, *, launcher: Sequence[str] = ()) -> KernelSpecManager:
    """Return a manager that knows the kernel of this checkout, installed or not.

    Args:
        folder: where the kernelspec is put.
        launcher: a command that starts the kernel's own one, such as with fewer rights.
    """
    source = Path(crush_kernel.kernel.__path__[0]) / "kernelspec"
    shutil.copytree(source, folder / "crush", dirs_exist_ok=True)
    if launcher:
        path = folder / "crush" / "kernel.json"
        spec = json.loads(path.read_text(encoding="utf-8"))
        spec["argv"] = [*launcher, *spec["argv"]]
        path.write_text(json.dumps(spec), encoding="utf-8")
    return KernelSpecManager(kernel_dirs=[str(folder)])


@contextmanager
def running_kernel(
    *,
    cwd: Path,
    home: Path,
    env: Mapping[str, str] | None = None,
    launcher: Sequence[str] = (),
) -> Generator[RunningKernel]:
    """Start a kernel in `cwd` with an empty `home` and only `env` to configure it."""
    specs = kernel_specs(home / "kernels", launcher=launcher)
    environ = clean_environment(home) | dict(env or {})
    manager, client = _start(specs, str(cwd), environ)
    try:
        yield RunningKernel(manager, client)
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=not manager.is_alive())


def _start(
    specs: KernelSpecManager, cwd: str, environ: dict[str, str], *, attempts: int = 3
) -> tuple[KernelManager, BlockingKernelClient]:
    """Start a kernel, again if it dies at once.

    jupyter_client chooses its ports a second before the kernel listens on them; on a busy
    machine another process has taken one by then.
    """
    manager = KernelManager(kernel_name="crush", kernel_spec_manager=specs)
    manager.start_kernel(cwd=cwd, env=environ)
    client: BlockingKernelClient = manager.client()
    client.start_channels()
    try:
        client.wait_for_ready(timeout=WAIT_S)
    except RuntimeError:
        client.stop_channels()
        is_dead = not manager.is_alive()
        manager.shutdown_kernel(now=True)
        if is_dead and attempts > 1:
            return _start(specs, cwd, environ, attempts=attempts - 1)
        raise
    return manager, client


def clean_environment(home: Path) -> dict[str, str]:
    """Return the environment of this process without keys, settings and caches of a user."""
    private = ("_API_KEY", "_BASE_URL", "_API_ENDPOINT", "_TOKEN")
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.endswith(private) and not name.startswith(("CRUSH_", "XDG_", "OLLAMA_"))
    }
    checkout = str(Path(crush_kernel.__path__[0]).parent)
    return kept | {
        "HOME": str(home),
        "PYTHONPATH": checkout,
        "PYTHONWARNINGS": "error",
        "OLLAMA_HOST": "127.0.0.1:9",
    }
