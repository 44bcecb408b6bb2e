"""The output of a `!cmd` cell: the last lines while it runs, all of it in the end."""

import uuid

from crush_kernel.history.notebook import RECORD_MIME_TYPE
from crush_kernel.kernel.display import FrontEnd
from crush_kernel.kernel.markdown import escape, fenced, visible
from crush_kernel.kernel.outlet import Outlet
from crush_kernel.messages import JsonObject
from crush_kernel.shell.runner import CommandResult


class ShellOutput:
    """Shows one running command; every method runs on the main loop."""

    def __init__(self, outlet: Outlet, front_end: FrontEnd) -> None:
        self._outlet = outlet
        self._front_end = front_end
        self._display_id = ""
        self._tail = ""

    def progress(self, tail: str) -> None:
        """Show the last lines printed so far; a console waits for the end."""
        self._tail = tail
        if self._front_end == "rich" and tail.strip():
            self._show(tail)

    def interrupted(self, record: JsonObject | None = None) -> None:
        """Settle on what was printed last, with the turn that is kept beside it."""
        self._end(self._tail, "interrupted", record)

    def finish(self, result: CommandResult, record: JsonObject | None = None) -> None:
        """Settle on the whole output and say how the command ended."""
        code = f"exit {result.exit_code}" if result.exit_code else ""
        left = ", ".join(f"{process.pid} {process.command}" for process in result.left_over)
        running = f"still running, until the kernel ends: {left}" if left else ""
        self._end(result.output, " · ".join(filter(None, (code, running))), record)

    def _end(self, output: str, note: str, record: JsonObject | None) -> None:
        if self._front_end == "console":
            text = "\n".join(filter(None, (visible(output.rstrip()), note)))
            if text:
                self._outlet.publish("stream", {"name": "stdout", "text": f"{text}\n"})
            return
        self._show(output, note, record)

    def _show(self, output: str, note: str = "", record: JsonObject | None = None) -> None:
        body = fenced(output.rstrip(), "text") if output.strip() else ""
        markdown = "\n\n".join(filter(None, (body, f"<sub>{escape(note)}</sub>" if note else "")))
        if not (markdown or self._display_id or record):
            return
        plain = "\n".join(filter(None, (visible(output.rstrip()), note)))
        data: dict[str, object] = {"text/markdown": markdown, "text/plain": plain}
        if record is not None:
            data[RECORD_MIME_TYPE] = record
        kind = "update_display_data" if self._display_id else "display_data"
        self._display_id = self._display_id or uuid.uuid4().hex
        self._outlet.publish(
            kind,
            {
                "data": data,
                "metadata": {},
                "transient": {"display_id": self._display_id},
            },
        )
