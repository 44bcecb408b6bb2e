"""From the end of a reply that calls a tool to the arrival of the next request.

That is what the agent adds to a step: parse the reply, run the tool, build the request. The
other side is the shortest loop on the provider's SDK that does the same, in `bare_loop`.
"""

import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

from tests.bench.anthropic_kernel import anthropic_kernel
from tests.bench.report import Row, Scale
from tests.fakes.kernel import RunningKernel
from tests.fakes.provider.replies import Reply, call, say
from tests.fakes.provider.server import FakeProvider, Received, serving

COLD_ROUNDS = 5
"""Not counted: they import, connect and fill caches."""

FILES = 20
"""How many files are viewed in turn, so that no round repeats the one before."""


@dataclass
class Rounds:
    """A script of tool calls, and when each reply was given."""

    tool: str
    count: int
    replied_at: list[float] = field(default_factory=list[float])

    def __call__(self, _: Received) -> Reply:
        """Answer one request."""
        number = len(self.replied_at)
        reply = self._call(number) if number < self.count else say("Done.")
        self.replied_at.append(time.monotonic())
        return reply

    def _call(self, number: int) -> Reply:
        if self.tool == "view":
            return call("view", {"file_path": f"file{number % FILES}.py", "limit": 100 + number})
        # A comment of its own, since an agent stops a model that repeats itself.
        return call("bash", {"command": f"true # {number}", "description": "do nothing"})


def measure(scale: Scale) -> tuple[Row, ...]:
    """Measure `view` of a small file and `bash true`, ours and the bare loop in turn."""
    with TemporaryDirectory() as folder:
        work = Path(folder)
        for number in range(FILES):
            lines = "".join(f"value_{line} = {line * number}\n" for line in range(40))
            (work / f"file{number}.py").write_text(lines)
        with serving() as provider, anthropic_kernel(provider, cwd=work) as kernel:
            return tuple(
                _row(tool, scale, kernel=kernel, provider=provider, work=work)
                for tool in ("view", "bash")
            )


def _row(
    tool: str, scale: Scale, *, kernel: RunningKernel, provider: FakeProvider, work: Path
) -> Row:
    rounds = scale.repeats(60, 30)
    ours: list[float] = []
    other: list[float] = []

    def ask_kernel() -> None:
        kernel.reply(msg_id := kernel.execute("go"))
        for _ in kernel.stream(msg_id):
            pass

    def run_loop() -> None:
        command = [sys.executable, "-m", "tests.bench.bare_loop", provider.url, str(work)]
        # In a session of its own, as the kernel is: Linux shares the processors by session.
        subprocess.run(command, check=True, start_new_session=True)

    for _ in range(scale.repeats(3, 1)):
        ours += _gaps(ask_kernel, provider, tool, rounds)
        other += _gaps(run_loop, provider, tool, rounds)
    name = f"tool call to next request on the wire, {tool}"
    return Row(name, median(ours) * 1e3, "ms", limit=1.5, other=median(other) * 1e3)


def _gaps(run: Callable[[], None], provider: FakeProvider, tool: str, rounds: int) -> list[float]:
    provider.reset()
    script = Rounds(tool, rounds)
    provider.play(script)
    run()
    refused = [received.refusal for received in provider.requests if received.refusal]
    if refused or len(provider.requests) != rounds + 1:
        raise RuntimeError(f"{len(provider.requests)} requests came; refused: {refused}")
    arrivals = [received.arrived_at for received in provider.requests[1:]]
    gaps = [then - at for at, then in zip(script.replied_at[:-1], arrivals, strict=True)]
    return gaps[COLD_ROUNDS:]
