"""What turns are told of jobs, and that it is not lost."""

from pathlib import Path

import pytest

from crush_kernel.agent.jobnews import JobNews, last_job_number
from crush_kernel.messages import JsonObject, Message, ToolResult
from crush_kernel.shell.jobs import Jobs
from crush_kernel.shell.runner import Shell

pytestmark = pytest.mark.anyio

ENVIRON = {"PATH": "/usr/bin:/bin", "HOME": "/nonexistent"}


async def test_what_ended_is_told_until_a_reply_shows_that_it_was_read(tmp_path: Path) -> None:
    async with Shell(ENVIRON) as shell, Jobs(shell) as jobs:
        news = JobNews(jobs, redact=str.upper)
        async with jobs.command("exit 3", cwd=tmp_path, timeout_s=None) as job:
            jobs.put_away(job)
        assert await job.wait(None)

        news.begin_turn()
        assert "JOB 001 ENDED WITH EXIT CODE 3" in news.said
        news.end_turn()  # before the first request
        assert news.said == ""

        news.begin_turn()
        assert "JOB 001 ENDED WITH EXIT CODE 3" in news.said
        news.has_arrived()
        assert "JOB 001 ENDED" in news.said, "it belongs to all requests of the turn"
        news.end_turn()

        news.begin_turn()
        assert news.said == ""
        assert news.preview() == ""


def told(metadata: JsonObject) -> Message:
    return Message("tool", (ToolResult("c1", "text", metadata=metadata),))


@pytest.mark.parametrize(
    ("messages", "number"),
    [
        pytest.param([], 0, id="no messages"),
        pytest.param([told({})], 0, id="no jobs"),
        pytest.param([told({"shell_id": "00A"}), told({"shell_id": "002"})], 10, id="the highest"),
        pytest.param([told({"shell_id": "1000"})], 0x1000, id="many"),
        pytest.param([told({"shell_id": "F" * 99})], 0, id="what no job is called"),
        pytest.param([told({"shell_id": "-01"})], 0, id="negative"),
        pytest.param([told({"shell_id": 7})], 0, id="no text"),
    ],
)
def test_numbers_go_on_from_those_in_the_conversation(messages: list[Message], number: int) -> None:
    assert last_job_number(messages) == number
