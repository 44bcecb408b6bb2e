"""From the start of the process to the reply to `kernel_info_request`."""

from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

from tests.bench.processes import CRUSH, IPYTHON, started_kernel
from tests.bench.report import Row, Scale


def measure(scale: Scale) -> tuple[Row, ...]:
    """Start our kernel and ipykernel's in turn."""
    times: dict[str, list[float]] = {CRUSH: [], IPYTHON: []}
    with TemporaryDirectory() as folder:
        for module in times:  # once to write the compiled files
            _start(module, folder)
        for _ in range(scale.repeats(9, 3)):
            for module, taken in times.items():
                taken.append(_start(module, folder))
    ours, other = median(times[CRUSH]), median(times[IPYTHON])
    name = "kernel process start to kernel_info_reply"
    return (Row(name, ours * 1e3, "ms", limit=1.0, other=other * 1e3),)


def _start(module: str, folder: str) -> float:
    with started_kernel(module, Path(folder)) as kernel:
        return kernel.ready_s
