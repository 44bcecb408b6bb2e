"""From sending the execute request to the arrival of our request at the provider."""

import time
from statistics import median

from tests.bench.anthropic_kernel import anthropic_kernel
from tests.bench.report import Row, Scale
from tests.fakes.kernel import RunningKernel
from tests.fakes.provider.replies import say
from tests.fakes.provider.server import FakeProvider, serving


def measure(scale: Scale) -> tuple[Row, ...]:
    """Run short turns in a warm kernel; both clocks are this machine's."""
    with serving() as provider, anthropic_kernel(provider) as kernel:
        for _ in range(5):
            _turn(kernel, provider)
        taken = [_turn(kernel, provider) for _ in range(scale.repeats(60, 20))]
    note = f"fastest {min(taken) * 1e3:.1f} ms, slowest {max(taken) * 1e3:.1f} ms"
    name = "warm: execute_request to request on the wire"
    return (Row(name, median(taken) * 1e3, "ms", limit=10, note=note),)


def _turn(kernel: RunningKernel, provider: FakeProvider) -> float:
    provider.play(say("Hello."))
    sent_at = time.monotonic()
    kernel.run("hello")
    return provider.requests[-1].arrived_at - sent_at
