"""A task of 300 steps comes to its end in windows that hold a small part of it.

The model is played by the strict fake provider. It knows no more than what it is sent: where
the task is, it reads from the last result or from the summary that it wrote itself. The
process that runs the turn is killed on the way, several times.
"""

import json
import os
import re
import signal
import subprocess
import sys
from dataclasses import asdict, dataclass, field
from pathlib import Path

import pytest
from pydantic import JsonValue

from crush_kernel.messages import JsonObject
from tests.agent.long_task import RULES, Options
from tests.fakes.provider.replies import Answer, Call, Reply, Say, say
from tests.fakes.provider.server import FakeProvider, Received

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

STEPS = 300
REQUEST = f"Write the {STEPS} lines of result.txt, one by one; mind “the rules”, and (really) all."
GO_ON = "Go on."

PROGRESS = re.compile(r"progress: (\d+)")


@dataclass
class Player:
    """Plays the model."""

    size: int
    """What each result prints, in characters."""
    deaths: list[int]
    """At which requests the process that asks is killed."""
    deadly_summary: int = 0
    """Which request for a summary is one of them."""
    process: subprocess.Popen[bytes] | None = None
    count: int = 0
    lost: list[int] = field(default_factory=list[int])
    """Requests without what the model has to know."""
    summaries: list[int] = field(default_factory=list[int])
    """The requests for summaries."""

    def answer(self, received: Received) -> Answer:
        self.count += 1
        if self.deaths and self.count == self.deaths[0]:
            self.deaths.pop(0)
            self._kill()
        said = _text_of(received.body)
        if REQUEST not in said or RULES not in said:
            self.lost.append(self.count)
        found = PROGRESS.findall(said)
        done = int(found[-1]) if found else 0
        if "to be replaced by a summary" in said:
            self.summaries.append(self.count)
            if len(self.summaries) == self.deadly_summary:
                self._kill()
            return Reply((Say(f"The task goes well. progress: {done}"),))
        if done == STEPS:
            return say("All lines are there.")
        return Reply((Call("put", {"number": done + 1, "size": self.size}),))

    def _kill(self) -> None:
        assert self.process is not None
        os.kill(self.process.pid, signal.SIGKILL)


def _text_of(body: JsonObject) -> str:
    """Return all strings of a request, in their order, the messages last."""
    texts: list[str] = []
    todo: list[JsonValue] = [body.get("messages"), body.get("system")]
    while todo:
        match todo.pop():
            case str(text):
                texts.append(text)
            case dict(value):
                todo += reversed([*value.values()])
            case list(value):
                todo += reversed(value)
            case _:
                pass
    return "\n".join(texts)


@dataclass(frozen=True)
class Run:
    """How the task went."""

    player: Player
    requests: list[Received]
    result: str
    events: list[dict[str, object]]
    starts: int

    @property
    def refusals(self) -> list[str]:
        return [each.refusal for each in self.requests if each.refusal]

    @property
    def cached_share(self) -> float:
        """What part of all prompts was read from the cache."""
        usages = [each.usage for each in self.requests if each.usage]
        return sum(u.cache_read_tokens for u in usages) / sum(each.tokens for each in self.requests)


def run_task(
    provider: FakeProvider,
    folder: Path,
    *,
    protocol: str,
    window: int,
    size: int,
    deaths: list[int],
) -> Run:
    player = Player(size, deaths, deadly_summary=2)
    provider.play(player.answer)
    starts, is_done = 0, False
    while not is_done:
        starts += 1
        options = Options(
            url=provider.url if protocol == "anthropic" else provider.openai_url,
            protocol=protocol,
            window=window,
            cell_id=f"cell-{starts}",
            prompt=REQUEST if starts == 1 else GO_ON,
        )
        command = [sys.executable, "-m", "tests.agent.long_task", str(folder)]
        with subprocess.Popen([*command, json.dumps(asdict(options))]) as process:
            player.process = process
            is_done = process.wait() == 0
        assert is_done or process.returncode == -signal.SIGKILL
    log = (folder / "events.jsonl").read_text().splitlines()
    return Run(
        player,
        list(provider.requests),
        (folder / "result.txt").read_text(),
        [json.loads(line) for line in log],
        starts,
    )


@pytest.mark.parametrize(
    ("protocol", "window", "size", "reports_usage"),
    [
        pytest.param("anthropic", 32_000, 1_500, True, id="32k"),
        pytest.param("anthropic", 200_000, 8_000, True, id="200k"),
        pytest.param("anthropic", 200_000, 8_000, False, id="200k, no usage"),
        pytest.param("openai", 32_000, 1_500, False, id="32k, no usage"),
    ],
)
def test_a_long_task_is_done_in_a_window_that_does_not_hold_it(  # noqa: PLR0917 - a table
    provider: FakeProvider,
    tmp_path: Path,
    protocol: str,
    window: int,
    size: int,
    reports_usage: bool,  # noqa: FBT001 - a table
) -> None:
    provider.meter.window = window
    provider.meter.measures_usage = provider.meter.reports_usage = reports_usage
    run = run_task(provider, tmp_path, protocol=protocol, window=window, size=size, deaths=[7, 205])
    assert run.result == "".join(f"line {n}.\n" for n in range(1, STEPS + 1))
    assert run.refusals == []
    assert run.player.lost == []
    assert run.starts == 4
    assert run.player.count <= STEPS + 1 + len(run.player.summaries) + 3
    # No loop: each summary stands for a good part of a window.
    gaps = [b - a for a, b in zip(run.player.summaries, run.player.summaries[1:], strict=False)]
    assert 3 <= len(run.player.summaries) <= 12
    # The second one was asked for again, as the process was killed in it.
    assert min(gaps[:1] + gaps[2:]) > 10
    assert [event["kind"] for event in run.events].count("TurnFinished") == 1
    if reports_usage:
        assert run.cached_share > 0.85


def test_a_window_that_nobody_knows_is_found_out(provider: FakeProvider, tmp_path: Path) -> None:
    provider.meter.window = 32_000
    provider.meter.reports_usage = False
    run = run_task(provider, tmp_path, protocol="openai", window=0, size=1_500, deaths=[])
    assert run.result == "".join(f"line {n}.\n" for n in range(1, STEPS + 1))
    assert run.player.lost == []
    assert 1 <= len(run.refusals) <= 4
