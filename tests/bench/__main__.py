"""Run the benchmarks: `python -m tests.bench [--quick] [--files N] [NAME …]`.

Prints one table and exits with 0 whatever it says: numbers of a busy machine are for
people to judge. Both sides of a row are measured in turn, so that load meets both.
"""

import argparse
import signal
import sys
from collections.abc import Callable
from time import monotonic

from tests.bench import (
    browser,
    context,
    deltas,
    execute_to_wire,
    history,
    interrupt,
    kernel_ready,
    memory,
    opening,
    prompt,
    rules,
    search,
    shell_reading,
    tool_calls,
    tool_round_trip,
)
from tests.bench.report import Row, Scale, Skipped, table

Measure = Callable[[Scale], tuple[Row | Skipped, ...]]

BENCHMARKS: dict[str, Measure] = {
    "kernel_ready": kernel_ready.measure,
    "memory": memory.measure,
    "execute_to_wire": execute_to_wire.measure,
    "tool_round_trip": tool_round_trip.measure,
    "tool_calls": tool_calls.measure,
    "context": context.measure,
    "prompt": prompt.measure,
    "deltas": deltas.measure,
    "browser": browser.measure,
    "opening": opening.measure,
    "search": search.measure,
    "shell_reading": shell_reading.measure,
    "interrupt": interrupt.measure,
    "history": history.measure,
    "rules": rules.measure,
}


def main() -> None:
    """Measure what the command line asks for, and print the table."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(BENCHMARKS))
    parser.add_argument("--quick", action="store_true", help="few repeats")
    parser.add_argument("--files", type=int, default=0, help="how many files are searched")
    options = parser.parse_args()
    # A run that is told to end ends its kernels and removes its folders first.
    signal.signal(signal.SIGTERM, _stop)
    if unknown := set(options.names) - set(BENCHMARKS):
        parser.error(f"no benchmark is called {', '.join(sorted(unknown))}")
    scale = Scale(options.quick, files=options.files or (10_000 if options.quick else 50_000))
    rows: list[Row | Skipped] = []
    for name in options.names or BENCHMARKS:
        began = monotonic()
        rows += _measured(name, scale)
        sys.stderr.write(f"{name}: {monotonic() - began:.0f} s\n")
    sys.stdout.write(f"{table(rows)}\n")


def _stop(_signal: int, _frame: object) -> None:
    raise SystemExit(1)


def _measured(name: str, scale: Scale) -> tuple[Row | Skipped, ...]:
    try:
        return BENCHMARKS[name](scale)
    except Exception as error:  # noqa: BLE001 - one benchmark that fails must not cost the others
        return (Skipped(name, f"{type(error).__name__}: {error}"),)


if __name__ == "__main__":
    main()
