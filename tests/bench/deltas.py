"""CPU time of a long reply that comes token by token: 20,000 deltas, one event each.

Ours is the whole kernel, display included; the other side only joins the text.
"""

import subprocess
import sys
from statistics import median

from tests.bench.anthropic_kernel import anthropic_kernel
from tests.bench.processes import cpu_s
from tests.bench.report import Row, Scale
from tests.fakes.kernel import RunningKernel
from tests.fakes.provider.replies import Reply, Say, say
from tests.fakes.provider.server import FakeProvider, serving

DELTAS = 20_000

_SENTENCE = "The price is rounded before the discount , so the total is off by a cent . "
_TOKENS = tuple(f"{word} " for word in _SENTENCE.split())
_PARAGRAPH = (*(_TOKENS * 5), "\n\n", "- ", "a ", "list ", "item\n", "\n")


def measure(scale: Scale) -> tuple[Row, ...]:
    """Stream the same reply to the kernel, to the SDK and to a plain parser, in turn."""
    ours: list[float] = []
    sdk: list[float] = []
    plain: list[float] = []
    with serving() as provider, anthropic_kernel(provider) as kernel:
        _in_kernel(kernel, provider, reply(2_000))
        for _ in range(scale.repeats(3, 1)):
            ours.append(_in_kernel(kernel, provider, reply()))
            sdk.append(_in_process("sdk", provider))
            plain.append(_in_process("plain", provider))
    note = f"a plain SSE parser: {_each_us(plain):.1f} us"
    name = f"CPU per delta, {DELTAS:,} deltas"
    return (Row(name, _each_us(ours), "us", limit=0.6, other=_each_us(sdk), note=note),)


def reply(deltas: int = DELTAS) -> Reply:
    """Return a reply of so many deltas."""
    times = deltas // len(_PARAGRAPH) + 1
    return Reply((Say((_PARAGRAPH * times)[:deltas]),))


def _each_us(seconds: list[float]) -> float:
    return median(seconds) / DELTAS * 1e6


def _in_kernel(kernel: RunningKernel, provider: FakeProvider, streamed: Reply) -> float:
    provider.play(streamed)
    before = cpu_s(kernel.pid)
    kernel.reply(msg_id := kernel.execute("go"))
    used = cpu_s(kernel.pid) - before
    for _ in kernel.stream(msg_id):
        pass
    return used


def _in_process(parser: str, provider: FakeProvider) -> float:
    provider.play(say("Hello."), reply())
    command = [sys.executable, "-m", "tests.bench.stream_reader", parser, provider.url]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return float(done.stdout)
