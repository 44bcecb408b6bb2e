"""The `bash` tool: what is asked, what the model reads, what people see."""

import os
import uuid
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from pydantic import ValidationError

from crush_kernel.errors import PermissionDenied, ToolError
from crush_kernel.permissions.decision import decide
from crush_kernel.shell.jobs import Jobs
from crush_kernel.shell.output import MAX_TEXT_BYTES
from crush_kernel.shell.runner import Shell
from crush_kernel.tools.base import MAX_OUTPUT_BYTES, Tool, ToolOutput
from crush_kernel.tools.bash import OWN_NOTEBOOK, BashArguments, bash_tool
from crush_kernel.tools.commandtext import NO_OUTPUT
from crush_kernel.tools.paths import PathPolicy
from tests.fakes.tool_context import FakeContext, tool_context
from tests.shell.processes import running_with

pytestmark = pytest.mark.anyio


@pytest.fixture
def token() -> Iterator[str]:
    """Yield a word for the commands' environment; in the end nothing may run that has it."""
    token = uuid.uuid4().hex
    yield token
    assert running_with(token) == []


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "project" / "sub").mkdir(parents=True)
    (tmp_path / "outside").mkdir()
    return tmp_path / "project"


@asynccontextmanager
async def open_bash(project: Path, token: str) -> AsyncGenerator[Tool[BashArguments]]:
    async with Shell({**os.environ, "CRUSH_TEST": token}) as shell, Jobs(shell) as jobs:
        yield bash_tool(jobs, PathPolicy(project, project))


async def call(
    project: Path, token: str, command: str, *, fake: FakeContext | None = None, **more: object
) -> ToolOutput:
    arguments = BashArguments.model_validate({"command": command, **more})
    async with open_bash(project, token) as bash:
        return await bash.run(arguments, (fake or tool_context()).context)


UNQUOTED = "[bash drops unquoted backslashes: put such a path in single quotes]"


@pytest.mark.parametrize(
    ("command", "text", "summary"),
    [
        pytest.param("echo hello", "hello\n", "ok", id="output"),
        pytest.param("true", NO_OUTPUT, "ok", id="no output"),
        pytest.param("printf ' \\n\\t'", NO_OUTPUT, "ok", id="invisible output"),
        pytest.param("false", f"{NO_OUTPUT}\n[exit code 1]", "exit 1", id="failure"),
        pytest.param("echo no >&2; exit 3", "no\n[exit code 3]", "exit 3", id="error output"),
        pytest.param("kill $$", f"{NO_OUTPUT}\n[exit code 143, SIGTERM]", "exit 143", id="signal"),
        pytest.param(
            "echo C:\\tmp\\work; exit 2",
            f"C:tmpwork\n[exit code 2]\n{UNQUOTED}",
            "exit 2",
            id="a path of Windows",
        ),
        pytest.param(
            "echo 'C:\\tmp'; exit 2", "C:\\tmp\n[exit code 2]", "exit 2", id="...in quotes"
        ),
        pytest.param("echo C:\\tmp", "C:tmp\n", "ok", id="...that did no harm"),
    ],
)
async def test_the_model_reads_the_output_and_what_else_there_is_to_say(
    project: Path, token: str, command: str, text: str, summary: str
) -> None:
    output = await call(project, token, command)

    assert (output.text, output.summary) == (text, summary)
    assert output.is_error == (summary != "ok")
    assert output.metadata["exit_code"] == int(summary.removeprefix("exit ").replace("ok", "0"))


async def test_a_command_that_runs_too_long_is_an_error_that_says_so(
    project: Path, token: str
) -> None:
    output = await call(project, token, "echo before; sleep 600", timeout=1)

    assert output.is_error
    assert output.summary == "timed out"
    assert output.text.startswith("before\n[stopped after 1 s ")
    assert output.metadata["is_timed_out"] is True


async def test_what_is_left_running_is_named(project: Path, token: str) -> None:
    output = await call(project, token, "(setsid sleep 600 &); echo started")

    first, note = output.text.splitlines()
    assert first == "started"
    assert note.startswith("[still running, until the kernel ends: ")
    assert note.endswith(" sleep 600]")
    assert not output.is_error


async def test_of_many_processes_only_some_are_named(project: Path, token: str) -> None:
    output = await call(project, token, "for i in {1..13}; do sleep 600 & done")

    assert output.text.count("sleep 600") == 10
    assert output.text.endswith("; and 3 more]")


async def test_a_long_result_fits_into_what_one_result_may_have(project: Path, token: str) -> None:
    output = await call(
        project,
        token,
        "seq -f 'the %.0fth line' 100000; for i in {1..13}; do sleep 600 & done; exit 1",
    )

    assert MAX_TEXT_BYTES < len(output.text.encode()) <= MAX_OUTPUT_BYTES
    assert output.text.startswith("the 1th line\nthe 2th line\n")
    assert "lines, " in output.text
    assert "\nthe 100000th line\n[exit code 1]\n" in output.text


async def test_every_command_is_asked_for_as_it_will_run(project: Path, token: str) -> None:
    fake = tool_context(call_id="call_7")

    await call(project, token, "ls && pwd", fake=fake, working_dir="sub")

    [request] = fake.requests
    assert (request.call_id, request.tool, request.action) == ("call_7", "bash", "execute")
    assert (request.command, request.cwd) == ("ls && pwd", project / "sub")
    assert not request.is_outside


@pytest.mark.parametrize("how", ["../outside", "link", "absolute"])
async def test_a_folder_outside_the_project_is_asked_for_by_its_real_name(
    project: Path, token: str, how: str
) -> None:
    outside = project.parent / "outside"
    (project / "link").symlink_to(outside)
    fake = tool_context()

    output = await call(
        project, token, "pwd", fake=fake, working_dir=str(outside) if how == "absolute" else how
    )

    [request] = fake.requests
    assert request.is_outside
    assert request.cwd == outside
    assert request.paths == (outside,)
    assert output.text == f"{outside}\n"


async def test_a_command_that_is_denied_does_not_run(project: Path, token: str) -> None:
    with pytest.raises(PermissionDenied):
        await call(project, token, "touch made", fake=tool_context(allow=False))

    assert not (project / "made").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        pytest.param({"command": " "}, "empty", id="empty"),
        pytest.param({"command": "echo \0"}, "NUL", id="a NUL"),
        pytest.param({"command": "echo \ud800"}, "half a character", id="a lone surrogate"),
        pytest.param({"command": "ls", "working_dir": "nonsuch"}, "no folder", id="no folder"),
        pytest.param({"command": "ls", "working_dir": "file"}, "no folder", id="a file"),
        pytest.param(
            {"command": "ls", "working_dir": "x/" * 1_500 + "x" * 1_000}, "too long", id="too long"
        ),
        pytest.param({"command": "ls", "working_dir": "a\0b"}, "NUL", id="no path"),
    ],
)
async def test_what_cannot_run_is_refused_before_anyone_is_asked(
    project: Path, token: str, arguments: dict[str, str], message: str
) -> None:
    (project / "file").touch()
    fake = tool_context()

    with pytest.raises(ToolError, match=message):
        await call(project, token, fake=fake, **arguments)

    assert fake.requests == []


async def test_a_folder_that_is_exchanged_while_permission_is_asked_is_not_used(
    project: Path, token: str
) -> None:
    def exchange() -> None:
        (project / "sub").rmdir()
        (project / "sub").symlink_to(project.parent / "outside")

    fake = tool_context(meanwhile=exchange)

    with pytest.raises(ToolError, match="was replaced"):
        await call(project, token, "touch made", fake=fake, working_dir="sub")

    assert not (project.parent / "outside" / "made").exists()


async def test_a_folder_that_vanishes_while_permission_is_asked_is_named(
    project: Path, token: str
) -> None:
    fake = tool_context(meanwhile=(project / "sub").rmdir)

    with pytest.raises(ToolError, match="no folder"):
        await call(project, token, "pwd", fake=fake, working_dir="sub")


async def test_every_call_starts_in_the_same_folder_without_what_the_last_one_set(
    project: Path, token: str
) -> None:
    async with open_bash(project, token) as bash:
        texts = [
            (
                await bash.run(
                    BashArguments.model_validate({"command": command}), tool_context().context
                )
            ).text
            for command in ("cd sub && export X=1 && pwd", "echo $X$PWD")
        ]

    assert texts == [f"{project / 'sub'}\n", f"{project}\n"]


@pytest.mark.slow
async def test_people_see_the_last_lines_while_a_command_runs(project: Path, token: str) -> None:
    fake = tool_context()

    await call(project, token, "seq 9; sleep 0.3; echo 10; sleep 0.3", fake=fake)

    assert fake.progress == ["7\n8\n9", "8\n9\n10"]


@pytest.mark.parametrize(
    ("command", "shown"),
    [
        pytest.param("pytest -q", "pytest -q", id="one line"),
        pytest.param("\n cat <<E\na\nE\n", "cat <<E …", id="several lines"),
        pytest.param("x" * 300, "x" * 198 + " …", id="a long line"),
        pytest.param(" ", "", id="nothing"),
    ],
)
async def test_a_call_is_described_by_its_first_line(
    project: Path, token: str, command: str, shown: str
) -> None:
    async with open_bash(project, token) as bash:
        assert bash.describe(BashArguments.model_validate({"command": command})) == shown


@pytest.mark.parametrize(
    "arguments",
    [
        pytest.param({}, id="no command"),
        pytest.param({"command": "ls", "timeout": "soon"}, id="no number"),
        pytest.param({"command": "ls", "run_in_background": "later"}, id="neither yes nor no"),
        pytest.param({"command": "ls", "stdin": "y"}, id="not offered"),
        pytest.param({"command": ["ls"]}, id="a list"),
    ],
)
def test_arguments_that_do_not_fit_are_refused(arguments: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        BashArguments.model_validate(arguments)


def test_the_model_is_asked_for_a_description_but_may_leave_it_out() -> None:
    schema = BashArguments.model_json_schema()

    assert schema["required"] == ["command", "description"]
    assert BashArguments.model_validate({"command": "ls"}).description == ""


async def test_the_description_names_the_limits(project: Path, token: str) -> None:
    async with open_bash(project, token) as bash:
        assert "(60 unless given)" in bash.description
        assert "{" not in bash.description


async def test_who_writes_to_a_notebook_is_told_how_it_is_done(project: Path, token: str) -> None:
    (project / "nb.ipynb").write_text('{"cells": [], "metadata": {}, "nbformat": 4}')
    output = await call(project, token, "sed -i 's/{}/{ }/' nb.ipynb")
    head, note = output.text.split("\n")
    assert head == "(no output)"
    assert note.startswith("[nb.ipynb is a notebook: next time change its cells with notebook_edit")


@pytest.mark.parametrize(
    ("command", "is_asked"),
    [
        ("echo x > nb.ipynb", True),
        ("rm ./sub/../nb.ipynb", True),
        ("mv nb.ipynb other", True),
        ("tee -a link < other.ipynb", True),
        ("truncate -s0 *.ipynb", True),
        ("jq . nb.ipynb > other.ipynb", False),
        ("cp nb.ipynb other.ipynb", False),
        ("cat nb.ipynb", False),
    ],
)
async def test_writing_to_the_notebook_that_runs_is_asked_in_every_mode(
    *, project: Path, token: str, command: str, is_asked: bool
) -> None:
    for name in ("nb.ipynb", "other.ipynb"):
        (project / name).write_text("{}")
    (project / "link").symlink_to("nb.ipynb")
    fake = tool_context(allow=False)
    arguments = BashArguments(command=command)
    async with Shell({**os.environ, "CRUSH_TEST": token}) as shell, Jobs(shell) as jobs:
        paths = PathPolicy(project, project)
        bash = bash_tool(jobs, paths, notebook=lambda: project / "nb.ipynb")
        with pytest.raises(PermissionDenied):
            await bash.run(arguments, fake.context)
    (request,) = fake.requests
    asked = decide(request, mode="yolo", grants=frozenset()).kind == "ask"
    assert (asked, request.dangers) == (is_asked, (OWN_NOTEBOOK,) if is_asked else ())
