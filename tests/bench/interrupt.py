"""From Stop to idle, at the moments where a turn may be when it is pressed."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

from tests.bench.report import Row, Scale
from tests.fakes.kernel import Msg, RunningKernel, running_kernel
from tests.fakes.offline import LONG, offline_script, turn, wants


@dataclass(frozen=True, slots=True)
class Moment:
    """When Stop is pressed."""

    name: str
    prompt: str
    shows: str
    """What the front end has been sent by then."""


MOMENTS = (
    Moment("before the first token", "wait", "wait"),
    Moment("while streaming", "stream", "word word"),
    Moment("in a command", "sleep", "begun"),
    Moment("at a permission prompt", "ask", "widget-view"),
)


def measure(scale: Scale) -> tuple[Row, ...]:
    """Stop turns of the offline provider, the moments in turn."""
    taken: dict[str, list[float]] = {moment.name: [] for moment in MOMENTS}
    with TemporaryDirectory() as folder:
        home, cwd = Path(folder), Path(folder, "work")
        cwd.mkdir()
        env = _script(home) | {"CRUSH_PERMISSION_MODE": "yolo"}
        with running_kernel(cwd=cwd, home=home, env=env) as kernel:
            for _ in range(scale.repeats(10, 3)):
                for moment in MOMENTS:
                    taken[moment.name].append(_stop(kernel, moment) * 1e3)
    note = ", ".join(f"{name} {median(each):.0f}" for name, each in taken.items())
    times = [each for name in taken for each in taken[name]]
    return (
        Row("interrupt to idle, typical", median(times), "ms", limit=300, note=f"medians: {note}"),
        Row("interrupt to idle, slowest", max(times), "ms", limit=1000),
    )


def _script(home: Path) -> dict[str, str]:
    # What is outside the project is asked about in every permission mode.
    outside = str(home / "outside.txt")
    return offline_script(
        home,
        turn("wait", {"text": "One moment.", "delay_s": LONG}),
        turn("stream", {"text": "word ", "repeat": 1_000_000, "pace_s": 0.004}),
        turn("sleep", wants("bash", command=f"echo begun; sleep {LONG}", description="wait")),
        turn("ask", wants("write", file_path=outside, content="x\n")),
    )


def _stop(kernel: RunningKernel, moment: Moment) -> float:
    msg_id = kernel.execute(moment.prompt)
    kernel.wait_for(_shows(moment.shows))
    began = time.monotonic()
    kernel.interrupt()
    for _ in kernel.stream(msg_id):
        pass
    taken = time.monotonic() - began
    content = kernel.reply(msg_id)["content"]
    if content.get("ename") != "Interrupted":
        raise RuntimeError(f"{moment.name}: the turn ended otherwise: {content}")
    return taken


def _shows(text: str) -> Callable[[Msg], bool]:
    def shows(message: Msg) -> bool:
        return text in str(message["content"].get("data", message["content"]))

    return shows
