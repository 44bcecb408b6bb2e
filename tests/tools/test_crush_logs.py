"""What the model reads of the kernel's log."""

import logging
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crush_kernel.history.redaction import Redactor
from crush_kernel.kernel.logs import DataDirectoryHandler
from crush_kernel.tools.base import ToolOutput
from crush_kernel.tools.crush_logs import CrushLogsArguments, crush_logs_tool
from crush_kernel.tools.logentries import LogEntry, entries_backwards, show_entry
from crush_kernel.tools.text.backwards import lines_backwards
from tests.fakes.tool_context import tool_context

pytestmark = pytest.mark.anyio

KEY = "sk-ant-api03-planted-0123456789abcdef"
REDACT = Redactor({"ANTHROPIC_API_KEY": KEY}).redact


@given(
    data=st.binary(max_size=60) | st.lists(st.sampled_from([b"a", b"bcd", b"\n"])).map(b"".join),
    chunk=st.integers(1, 70),
    longest=st.integers(1, 70),
)
def test_lines_are_the_same_for_any_chunks(data: bytes, chunk: int, longest: int) -> None:
    def read_at(start: int, size: int) -> bytes:
        assert 0 < size <= chunk
        return data[start : start + size]

    got = list(lines_backwards(read_at, len(data), chunk_bytes=chunk, max_bytes=longest))
    plain = data.removesuffix(b"\n").split(b"\n") if data else []
    assert got == [line[:longest] for line in reversed(plain)]


def line(number: int, level: str = "INFO", message: str = "said") -> str:
    second = number % 60
    where = "crush_kernel.agent.calls:7"
    return f"2026-11-30 12:00:{second:02d},123 77 {level} {where} {message} {number}"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        pytest.param(line(5), "12:00:05 INFO agent.calls:7 said 5 process=77", id="an entry"),
        pytest.param(
            line(5, "WARNING"), "12:00:05 WARN agent.calls:7 said 5 process=77", id="warn"
        ),
        pytest.param(
            "2026-11-30 12:00:00,1 7 INFO crush_kernel.x hello",
            "12:00:00 INFO x hello process=7",
            id="without a line number",
        ),
        pytest.param(
            "2026-11-30 12:00:00,1 7 INFO a.b:1 ", "12:00:00 INFO a.b:1  process=7", id="mute"
        ),
        pytest.param("killed\x1b[2J", r"killed\x1b[2J", id="foreign, with control characters"),
        pytest.param('{"level": "INFO"}', '{"level": "INFO"}', id="of another program"),
        pytest.param("x" * 700, "x" * 599 + "…", id="long"),
    ],
)
def test_an_entry_is_one_line_that_says_when_where_and_what(text: str, shown: str) -> None:
    assert show_entry(LogEntry(text)) == shown


def test_of_what_stands_below_an_entry_the_last_line_is_its_error() -> None:
    lines = [
        line(1, "ERROR"),
        "Traceback (most recent call last):",
        '  File "x"',
        'E: a "b"',
        line(2),
    ]
    entries = [*entries_backwards(text.encode() for text in reversed(lines))]
    assert [show_entry(entry) for entry in reversed(entries)] == [
        r'12:00:01 ERROR agent.calls:7 said 1 error="E: a \"b\"" process=77',
        "12:00:02 INFO agent.calls:7 said 2 process=77",
    ]


@given(st.lists(st.binary(max_size=20)))
def test_any_lines_can_be_shown(lines: list[bytes]) -> None:
    for entry in entries_backwards(lines):
        assert not any(character < " " for character in show_entry(entry))


async def read(log: Path, arguments: dict[str, int] | None = None) -> ToolOutput:
    tool = crush_logs_tool(log, redact=REDACT)
    return await tool.run(CrushLogsArguments(**(arguments or {})), tool_context().context)


@pytest.mark.parametrize(
    ("wanted", "count"),
    [(None, 50), (0, 50), (-3, 50), (1, 1), (100, 100), (101, 100), (10**30, 100)],
)
async def test_as_many_entries_are_shown_as_are_wanted(
    tmp_path: Path, wanted: int | None, count: int
) -> None:
    log = tmp_path / "kernel.log"
    log.write_text("".join(f"{line(number)}\n" for number in range(500)), "utf-8")
    output = await read(log, {} if wanted is None else {"lines": wanted})
    entries = output.text.splitlines()[:-2]
    assert [entry.split()[4] for entry in entries] == [str(n) for n in range(500 - count, 500)]
    assert output.text.endswith(f"\n\n[from {log}]")


async def test_the_files_that_were_rotated_away_are_read_too(tmp_path: Path) -> None:
    log = tmp_path / "kernel.log"
    log.write_text(f"{line(5)}\n", "utf-8")
    (tmp_path / "kernel.log.1").write_text(f"{line(3)}\n{line(4)}\n", "utf-8")
    (tmp_path / "kernel.log.2").write_text(f"{line(1)}\n{line(2)}\n", "utf-8")
    assert "said 2 " in (await read(log)).text
    entries = (await read(log, {"lines": 4})).text.splitlines()[:-2]
    assert [entry.split()[4] for entry in entries] == ["2", "3", "4", "5"]


async def test_what_the_kernel_logs_is_read(tmp_path: Path) -> None:
    handler = DataDirectoryHandler(tmp_path / ".crush", redact=str)
    logger = logging.getLogger("crush_kernel.tools.bash").getChild("test")
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    logger.info("%s took %.3f s: %s", "bash", 0.5, "ok")
    logger.error("tool bash failed", exc_info=ValueError("no\nsuch thing"))
    handler.close()
    logger.removeHandler(handler)
    output = await read(tmp_path / ".crush/logs/kernel.log")
    first, second, *_ = output.text.splitlines()
    assert first[8:].startswith(" INFO tools.bash.test:")
    assert f" bash took 0.500 s: ok process={os.getpid()}" in first
    assert 'tool bash failed error="such thing"' in second


async def test_no_secret_is_read(tmp_path: Path) -> None:
    log = tmp_path / "kernel.log"
    lines = (line(1, message=f"payload={{'environment': {{'ANTHROPIC_API_KEY': '{KEY}'}}}}"), KEY)
    log.write_text("\n".join(lines), "utf-8")
    output = await read(log)
    assert "payload=" in output.text
    assert KEY not in output.text


def nothing(_: Path) -> None: ...


def empty(log: Path) -> None:
    log.touch()


def folder(log: Path) -> None:
    log.mkdir()


def link(log: Path) -> None:
    secret = log.with_name("id_rsa")
    secret.write_text("PRIVATE", "utf-8")
    log.symlink_to(secret)


def second_name(log: Path) -> None:
    secret = log.with_name("id_rsa")
    secret.write_text("PRIVATE", "utf-8")
    log.hardlink_to(secret)


@pytest.mark.parametrize(
    ("make", "says"),
    [
        pytest.param(nothing, "There is no log yet; it will be ", id="none"),
        pytest.param(empty, " is empty.", id="empty"),
        pytest.param(folder, " cannot be read: it is no file of its own", id="folder"),
        pytest.param(os.mkfifo, " cannot be read: it is no file of its own", id="pipe"),
        pytest.param(link, " cannot be read: too many levels of symbolic links", id="link"),
        pytest.param(second_name, " cannot be read: it is no file of its own", id="hard link"),
    ],
)
async def test_where_there_is_nothing_to_read_that_is_said(
    tmp_path: Path, make: Callable[[Path], None], says: str
) -> None:
    make(tmp_path / "kernel.log")
    output = await read(tmp_path / "kernel.log")
    assert not output.is_error
    assert says in output.text
    assert "PRIVATE" not in output.text


async def test_what_is_no_log_is_shown_in_bounds(tmp_path: Path) -> None:
    log = tmp_path / "kernel.log"
    log.write_bytes(bytes(range(256)) * 40_000)
    output = await read(log, {"lines": 100})
    assert len(output.text.encode()) < 40_000
