"""Resident memory when the kernel is ready, and after its first turn with Anthropic."""

from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

import psutil

from tests.bench.anthropic_kernel import anthropic_kernel
from tests.bench.processes import CRUSH, IPYTHON, resident_mb, started_kernel
from tests.bench.report import Row, Scale
from tests.fakes.provider.replies import say
from tests.fakes.provider.server import serving


def measure(scale: Scale) -> tuple[Row, ...]:
    """Weigh ours and ipykernel's kernel, which no turn makes heavier."""
    ready: dict[str, list[float]] = {CRUSH: [], IPYTHON: []}
    with TemporaryDirectory() as folder:
        for _ in range(scale.repeats(3, 1)):
            for module, weights in ready.items():
                with started_kernel(module, Path(folder)) as kernel:
                    weights.append(kernel.resident_mb)
    other = median(ready[IPYTHON])
    after, children = _after_a_turn()
    return (
        Row("resident memory when ready", median(ready[CRUSH]), "MB", limit=1.1, other=other),
        Row(
            "resident memory after the first turn",
            after,
            "MB",
            limit=2.5,
            other=other,
            note=f"child processes beside it: {children:.1f} MB",
        ),
    )


def _after_a_turn() -> tuple[float, float]:
    with serving() as provider, anthropic_kernel(provider) as kernel:
        provider.play(say("Hello."))
        kernel.run("hello")
        children = psutil.Process(kernel.pid).children(recursive=True)
        return resident_mb(kernel.pid), sum(resident_mb(child.pid) for child in children)
