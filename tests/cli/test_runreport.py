"""How a run is told: lines for people, objects for programs, and the exit code."""

import io
import json
from typing import get_args

import pytest

from crush_kernel.cli.main import PERMISSION_MODES
from crush_kernel.cli.runevents import (
    CellFinished,
    CellStarted,
    Finished,
    Output,
    PermissionDenied,
    RunEvent,
    Started,
    Status,
    SubagentCalled,
    Text,
    ToolAnswered,
    ToolCalled,
    Warned,
    exit_code,
)
from crush_kernel.cli.runreport import json_report, lines, people_report
from crush_kernel.config.settings import PermissionMode

UNASKED = (
    "Nobody could be asked in cells 1, 3: the next run runs them again. Allow what is needed with "
    "--permission-mode accept-edits or yolo, or with a rule under permissions.allow in your own "
    "crush.json."
)

ADVICE = (
    "What was denied can be allowed with --permission-mode accept-edits or yolo; "
    "--all runs those cells again."
)
USAGE = {"input_tokens": 1_100, "cache_read_tokens": 100, "output_tokens": 20}


@pytest.mark.parametrize(
    ("event", "expected"),
    [
        pytest.param(
            Started("a.ipynb", "a.ipynb", "crush", 1), ["a.ipynb: 1 cell, kernel crush"], id="start"
        ),
        pytest.param(
            Started("a.ipynb", "b.ipynb", "crush", 2),
            ["a.ipynb to b.ipynb: 2 cells, kernel crush"],
            id="another target",
        ),
        pytest.param(
            CellStarted("c", 2, "read the plan\nand say", "never run"),
            ["[2/4] read the plan and say"],
            id="a cell",
        ),
        pytest.param(
            CellStarted("c", 2, "word " * 100, "edited"),
            [f"[2/4] {'word ' * 13}word…"],
            id="a long cell",
        ),
        pytest.param(
            ToolCalled("c", "1", "bash", '{"command": "ls -l", "description": "list"}'),
            ["  ● bash ls -l"],
            id="a call",
        ),
        pytest.param(ToolCalled("c", "1", "bash", "{oops"), ["  ● bash {oops"], id="a bad call"),
        pytest.param(ToolCalled("c", "1", "bash", "[7]"), ["  ● bash [7]"], id="a list"),
        pytest.param(ToolCalled("c", "1", "ls", "{}"), ["  ● ls"], id="no arguments"),
        pytest.param(
            ToolAnswered("c", "1", "view", "ok", "3 lines"), ["  └ view · 3 lines"], id="a result"
        ),
        pytest.param(
            ToolAnswered("c", "1", "view", "error", ""), ["  └ view · error"], id="a mute result"
        ),
        pytest.param(
            SubagentCalled("c", "1", "task", "view", '{"file_path": "a.py"}', "ok", "3 lines"),
            ["  ├ view a.py · 3 lines"],
            id="a step of a sub-agent",
        ),
        pytest.param(
            PermissionDenied("c", "bash", "Permission denied: nobody can be asked"),
            ["  ! bash: Permission denied: nobody can be asked"],
            id="a denial",
        ),
        pytest.param(Warned("careful"), ["warning: careful"], id="a warning"),
        pytest.param(
            CellFinished("c", "ok", 3.21, usage=USAGE), ["  ✓ · 3.2 s · 1.2 k in 20 out"], id="done"
        ),
        pytest.param(
            CellFinished("c", "ok", 0.5, usage={**USAGE, "is_estimated": True}),
            ["  ✓ · 0.50 s · ~1.2 k in ~20 out"],
            id="estimated",
        ),
        pytest.param(
            CellFinished("c", "failed", 1.0, error="RateLimited", message="Too many requests."),
            ["  ✗ RateLimited: Too many requests. · 1.0 s"],
            id="failed",
        ),
        pytest.param(
            CellFinished("c", "interrupted", 1.0), ["  ■ interrupted · 1.0 s"], id="interrupted"
        ),
        pytest.param(
            CellFinished("c", "timed_out", 9.0),
            ["  ✗ took too long and was interrupted · 9.0 s"],
            id="late",
        ),
        pytest.param(
            CellFinished("c", "died", 1.0),
            ["  ✗ the kernel died; what was shown until then is kept · 1.0 s"],
            id="died",
        ),
        pytest.param(
            Finished(0, ran=2, up_to_date=1, usage=USAGE, duration_s=4.0),
            ["2 cells run, 1 up to date · 4.0 s · 1.2 k in 20 out"],
            id="the end",
        ),
        pytest.param(
            Finished(0, up_to_date=3, duration_s=1.0),
            ["Nothing to run, 3 up to date · 1.0 s", "--all runs them again."],
            id="nothing to do",
        ),
        pytest.param(
            Finished(1, ran=1, failed=1, duration_s=1.0, message="The disk is full."),
            ["✗ The disk is full.", "1 cell run, 1 failed · 1.0 s"],
            id="failed in the end",
        ),
        pytest.param(
            Finished(0, ran=1, written=2, duration_s=1.0),
            [
                "1 cell run · 1.0 s",
                (
                    "2 cells written by the model in this run: read what they say, then run the "
                    "notebook again to run them."
                ),
            ],
            id="cells of the model in the end",
        ),
        pytest.param(
            Finished(3, ran=1, denied=2, duration_s=1.0),
            [
                "1 cell run, 2 denied · 1.0 s",
                ADVICE,
            ],
            id="denied in the end",
        ),
        pytest.param(
            Finished(3, ran=3, denied=2, unasked=(1, 3), duration_s=1.0),
            [
                "3 cells run, 2 denied · 1.0 s",
                UNASKED,
            ],
            id="nobody to ask",
        ),
    ],
)
def test_people_read_one_line_for_each_thing(event: RunEvent, expected: list[str]) -> None:
    assert list(lines(event, cells=4)) == expected


def test_answers_go_to_the_output_and_the_rest_to_the_error_stream() -> None:
    out, err = io.StringIO(), io.StringIO()
    report = people_report(out, err)

    for event in (
        Started("a.ipynb", "a.ipynb", "crush", 2),
        CellStarted("c", 1, "look", "never run"),
        Text("c", "I look."),
        Text("c", "Done.\x1b[2J"),
        CellFinished("c", "ok", 1.0),
        CellStarted("d", 2, "!ls", "never run"),
        Output("d", "a\nb"),
        CellFinished("d", "ok", 1.0),
    ):
        report(event)

    assert out.getvalue() == "Done.⟨U+001B⟩[2J\na\nb\n", "the last words only, and visible"
    assert err.getvalue().splitlines() == [
        "a.ipynb: 2 cells, kernel crush",
        "[1/2] look",
        "  ✓ · 1.0 s",
        "[2/2] !ls",
        "  ✓ · 1.0 s",
    ]


EVENTS: tuple[RunEvent, ...] = (
    Started("a.ipynb", "a.ipynb", "crush", 2),
    CellStarted("c", 1, "look", "never run"),
    ToolCalled("c", "1", "ls", "{}"),
    ToolAnswered("c", "1", "ls", "ok", ""),
    SubagentCalled("c", "1", "task", "ls", "{}", "interrupted", ""),
    PermissionDenied("c", "ls", "no"),
    Text("c", "→ \ud800\n"),
    Output("c", "x"),
    Warned("careful"),
    CellFinished("c", "ok", 1.0, usage=USAGE),
    Finished(0),
)


def test_programs_read_one_object_a_line_whatever_is_in_it() -> None:
    out = io.StringIO()
    report = json_report(out)

    for event in EVENTS:
        report(event)

    printed = out.getvalue()
    assert printed.isascii()
    objects = [json.loads(row) for row in printed.splitlines()]
    assert [each["event"] for each in objects] == [event.kind for event in EVENTS]
    assert objects[6] == {"event": "text", "cell": "c", "text": "→ \ud800\n"}
    assert objects[9]["usage"] == USAGE
    assert {type(event) for event in EVENTS} == set(get_args(RunEvent))


@pytest.mark.parametrize("kind", ["closed", "broken"])
def test_a_reader_that_has_gone_stops_nothing(kind: str) -> None:
    out, err = (Broken() if kind == "broken" else io.StringIO() for _ in range(2))
    if kind == "closed":
        out.close()
        err.close()
    report = people_report(out, err)

    for event in EVENTS:
        report(event)

    assert all(each.writes == 1 for each in (out, err) if isinstance(each, Broken)), "tried again"


class Broken(io.StringIO):
    writes = 0

    def write(self, _: str, /) -> int:
        self.writes += 1
        raise BrokenPipeError


def cell(status: Status, denied: int = 0) -> CellFinished:
    return CellFinished("c", status, 1.0, denied=denied)


@pytest.mark.parametrize(
    ("cells", "flags", "code"),
    [
        pytest.param([], {}, 0, id="nothing ran"),
        pytest.param([cell("ok")], {}, 0, id="all is well"),
        pytest.param([cell("ok", denied=1), cell("ok")], {}, 3, id="denied"),
        pytest.param([cell("ok", denied=1), cell("failed")], {}, 1, id="denied and failed"),
        pytest.param([cell("failed"), cell("ok")], {}, 1, id="failed and went on"),
        pytest.param([cell("timed_out")], {}, 1, id="late"),
        pytest.param([cell("died")], {}, 1, id="died"),
        pytest.param([cell("interrupted")], {}, 130, id="interrupted by somebody else"),
        pytest.param([cell("ok", denied=1)], {"is_stopped": True}, 130, id="stopped"),
        pytest.param([cell("failed")], {"is_stopped": True}, 130, id="failed and stopped"),
        pytest.param([cell("ok")], {"is_broken": True}, 1, id="not saved"),
        pytest.param(
            [cell("ok")], {"is_broken": True, "is_stopped": True}, 1, id="stopped and not saved"
        ),
    ],
)
def test_the_exit_code_says_the_worst(
    cells: list[CellFinished], flags: dict[str, bool], code: int
) -> None:
    assert exit_code(tuple(cells), **{"is_stopped": False, **flags}) == code


def test_the_command_line_knows_the_permission_modes() -> None:
    assert get_args(PermissionMode) == PERMISSION_MODES
