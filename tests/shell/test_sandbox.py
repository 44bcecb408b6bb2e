"""The sandbox: what commands in it cannot do, and what they can all the same."""

import os
import socket
import sys
import tempfile
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crush_kernel.errors import ToolError
from crush_kernel.shell.jobs import Jobs
from crush_kernel.shell.runner import CommandResult, Shell
from crush_kernel.shell.sandbox import (
    PROBE_TIMEOUT_S,
    Confinement,
    Mount,
    Sandbox,
    Way,
    find_sandbox,
    refusals,
    sandbox_argv,
    survey,
)
from tests.shell.processes import running_with, wait_until

pytestmark = pytest.mark.anyio

_, TROUBLE = find_sandbox(os.environ)

real = pytest.mark.skipif(bool(TROUBLE), reason=TROUBLE or "there is a sandbox")

OUTSIDE = Path("/var/tmp")  # noqa: S108 - all may write there, and it is not what is allowed


@pytest.fixture
def project(tmp_path: Path) -> Path:
    root = tmp_path / "project"
    (root / ".git" / "hooks").mkdir(parents=True)
    (root / ".git" / "config").write_text("[core]\n")
    (root / "crush.json").write_text("{}")
    return root


@pytest.fixture
def outside() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(dir=OUTSIDE) as folder:
        (Path(folder) / "there").write_text("as it was")
        yield Path(folder)


def confinement_of(project: Path, *hidden: Path) -> Confinement:
    return Confinement(
        writable=(project, Path(tempfile.gettempdir())),
        sealed=(project / ".git" / "config", project / "crush.json"),
        sealed_folders=(project / ".git" / "hooks",),
        hidden=hidden,
    )


@asynccontextmanager
async def opened(environ: dict[str, str], confinement: Confinement) -> AsyncGenerator[Jobs]:
    with anyio.fail_after(30):
        async with (
            Shell(environ) as shell,
            Jobs(shell, sandbox=Sandbox(environ, confinement)) as jobs,
        ):
            yield jobs


async def ran(
    jobs: Jobs, command: str, cwd: Path, *, timeout_s: float | None = None
) -> CommandResult:
    async with jobs.command(command, cwd=cwd, timeout_s=timeout_s) as job:
        await job.wait(None)
    assert job.result is not None
    return job.result


def contents(folder: Path) -> dict[str, str]:
    files = (path for path in folder.rglob("*") if path.is_file() and not path.is_symlink())
    return {str(path): path.read_text() for path in files}


@real
@pytest.mark.parametrize(
    "command",
    [
        pytest.param("touch {outside}/new", id="a new file outside"),
        pytest.param("echo changed > {outside}/there", id="a file that is outside"),
        pytest.param("rm {outside}/there", id="deleting outside"),
        pytest.param("ln -s {outside} out; touch out/new", id="through a link"),
        pytest.param("echo changed > .git/hooks/pre-commit", id="a git hook"),
        pytest.param("git config core.fsmonitor ./evil", id="git's configuration"),
        pytest.param("rm .git/config", id="deleting git's configuration"),
        pytest.param("mv .git old && cp -r old .git", id="another git folder"),
        pytest.param("rm -rf .git/hooks && mkdir .git/hooks", id="other git hooks"),
        pytest.param("echo [] > new.json; mv new.json crush.json", id="other configuration"),
        pytest.param("mv $PWD $PWD.away", id="another project"),
        pytest.param("mv $PWD/.. $PWD/../../away", id="another folder of projects"),
    ],
)
async def test_a_command_changes_nothing_that_it_may_not(
    environ: dict[str, str], project: Path, outside: Path, command: str
) -> None:
    before = contents(project), contents(outside)
    written = command.format(outside=outside)
    async with opened(environ, confinement_of(project)) as jobs:
        result = await ran(jobs, written, project)

    for new in (project / "new.json", project / "out"):
        new.unlink(missing_ok=True)
    assert result.exit_code != 0
    assert (contents(project), contents(outside)) == before


@real
@pytest.mark.parametrize("has_hooks", [True, False])
async def test_no_git_hook_comes_into_being(
    environ: dict[str, str], project: Path, *, has_hooks: bool
) -> None:
    if not has_hooks:
        (project / ".git" / "hooks").rmdir()
    async with opened(environ, confinement_of(project)) as jobs:
        result = await ran(jobs, "mkdir -p .git/hooks; echo x > .git/hooks/pre-commit", project)

    assert result.exit_code != 0
    assert list((project / ".git" / "hooks").iterdir()) == []


@real
async def test_hooks_behind_a_link_stay_as_they_are(environ: dict[str, str], project: Path) -> None:
    (project / ".git" / "hooks").rmdir()
    (project / "mine").mkdir()
    (project / ".git" / "hooks").symlink_to(project / "mine")
    async with opened(environ, confinement_of(project)) as jobs:
        into = await ran(jobs, "echo x > .git/hooks/pre-commit", project)
        instead = await ran(jobs, "rm .git/hooks && mkdir .git/hooks", project)

    assert (into.exit_code, instead.exit_code) == (1, 1)
    assert (project / ".git" / "hooks").is_symlink()


@real
async def test_there_is_no_network_not_even_this_machine(
    environ: dict[str, str], project: Path
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        async with opened(environ, confinement_of(project)) as jobs:
            here = await ran(jobs, f"exec 3<>/dev/tcp/127.0.0.1/{port}", project)
            away = await ran(jobs, "exec 3<>/dev/tcp/192.0.2.1/80", project)
        server.settimeout(0)
        with pytest.raises(BlockingIOError):
            server.accept()

    assert here.exit_code != 0
    assert "Network is unreachable" in away.output
    assert "no network" in "".join(away.refusals)


@real
async def test_sockets_in_the_temporary_folder_lead_nowhere(
    environ: dict[str, str], project: Path
) -> None:
    ask = "import socket, sys; socket.socket(socket.AF_UNIX).connect(sys.argv[1])"
    with (
        socket.socket(socket.AF_UNIX) as bare,
        socket.socket(socket.AF_UNIX) as agent,
        tempfile.TemporaryDirectory(prefix="ssh-") as folder,
    ):
        paths = f"{tempfile.gettempdir()}/sandbox-{os.getpid()}.sock", f"{folder}/agent.1"
        for each, path in zip((bare, agent), paths, strict=True):
            each.bind(path)
            each.listen()
        try:
            async with opened(environ, confinement_of(project)) as jobs:
                results = [
                    await ran(jobs, f'{sys.executable} -c "{ask}" {path}', project)
                    for path in paths
                ]
        finally:
            os.unlink(paths[0])  # noqa: PTH108 - Path would be a finding in a coroutine

    assert [result.exit_code for result in results] == [1, 1]


@pytest.mark.parametrize(
    "folder",
    [
        pytest.param("{project}", id="in the project"),
        pytest.param("{project}/.git", id="of git"),
        pytest.param("{temporary}/some/where", id="deep in the temporary folder"),
        pytest.param("{outside}/.cache/app", id="elsewhere"),
    ],
)
@real
async def test_who_listens_outside_is_reached_by_no_socket(
    environ: dict[str, str], project: Path, tmp_path: Path, outside: Path, folder: str
) -> None:
    place = folder.format(project=project, temporary=tmp_path, outside=outside)
    os.makedirs(place, exist_ok=True)  # noqa: PTH103 - Path would be a finding in a coroutine
    ask = "import socket, sys; socket.socket(socket.AF_UNIX).connect(sys.argv[1])"
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(f"{place}/a b.sock")
        server.listen()
        async with opened(environ, confinement_of(project)) as jobs:
            found = await ran(jobs, f"{sys.executable} -c '{ask}' '{place}/a b.sock'", project)
        server.settimeout(0)
        with pytest.raises(BlockingIOError):
            server.accept()

    assert "ConnectionRefusedError" in found.output


@real
async def test_commands_can_talk_to_each_other_by_a_socket(
    environ: dict[str, str], project: Path
) -> None:
    talk = (
        "import socket; s = socket.socket(socket.AF_UNIX); s.bind('own.sock'); s.listen(); "
        "c = socket.socket(socket.AF_UNIX); c.connect('own.sock'); c.send(b'heard'); "
        "print(s.accept()[0].recv(9))"
    )
    async with opened(environ, confinement_of(project)) as jobs:
        found = await ran(jobs, f'{sys.executable} -c "{talk}"', project)

    assert "heard" in found.output


@real
async def test_sockets_where_nothing_is_seen_are_no_trouble(
    environ: dict[str, str], project: Path, outside: Path
) -> None:
    with socket.socket(socket.AF_UNIX) as server, socket.socket(socket.AF_UNIX) as gone:
        server.bind(str(outside / "hidden.sock"))
        gone.bind(str(project / "gone.sock"))
        (project / "gone.sock").unlink()
        async with opened(environ, confinement_of(project, outside)) as jobs:
            seen = await ran(jobs, f"ls -A {outside}; echo end", project)

    assert seen.output == "end\n"


@pytest.mark.parametrize(
    "name", ["sys/kernel/core_pattern", "sys/kernel/modprobe", "sys/vm/overcommit_memory"]
)
@real
async def test_the_machine_cannot_be_set_up_otherwise_not_even_by_root(
    environ: dict[str, str], project: Path, name: str
) -> None:
    # What is written is what is there already.
    same = f'kept=$(cat /proc/{name}) || exit 0; printf %s\\\\n "$kept" > /proc/{name}'
    async with opened(environ, confinement_of(project)) as jobs:
        tried = await ran(jobs, f"{same} && echo written", project)

    assert "written" not in tried.output


@real
async def test_what_is_hidden_looks_empty(environ: dict[str, str], project: Path) -> None:
    with tempfile.TemporaryDirectory(dir=OUTSIDE) as folder:
        keys, netrc = Path(folder) / ".ssh", Path(folder) / ".netrc"
        keys.mkdir()
        (keys / "id_ed25519").write_text("the key")
        netrc.write_text("password")
        async with opened(environ, confinement_of(project, keys, netrc)) as jobs:
            shown = await ran(jobs, f"cat {netrc}; ls -A {keys}; cat {keys}/id_ed25519", project)

    assert "No such file" in shown.output
    assert "password" not in shown.output


@real
async def test_other_processes_are_not_seen(environ: dict[str, str], project: Path) -> None:
    async with opened(environ, confinement_of(project)) as jobs:
        seen = await ran(jobs, f"kill -0 {os.getpid()} || ls -d /proc/[0-9]*", project)

    assert str(os.getpid()) not in {Path(line).name for line in seen.output.splitlines()}
    assert "/proc/1\n" in seen.output


@real
async def test_nothing_gives_it_more_rights(environ: dict[str, str], project: Path) -> None:
    async with opened(environ, confinement_of(project)) as jobs:
        status = await ran(jobs, "cat /proc/self/status", project)
        mounted = await ran(jobs, "mount -o remount,rw,bind / && touch /var/tmp/new", project)

    assert "NoNewPrivs:\t1" in status.output
    assert "CapEff:\t0000000000000000" in status.output
    assert mounted.exit_code != 0


@real
async def test_a_command_works_in_the_project_as_it_does_outside(
    environ: dict[str, str], project: Path
) -> None:
    (project / "src").mkdir()
    with tempfile.TemporaryDirectory() as temporary:
        env = {**environ, "TMPDIR": temporary}
        async with opened(env, confinement_of(project)) as jobs:
            result = await ran(
                jobs,
                f"""
                echo changed > ../made
                mktemp
                pwd
                tty
                wc -c
                echo to stderr >&2
                echo kept > {temporary}/kept
                exit 7
                """,
                project / "src",
            )
        assert (Path(temporary) / "kept").read_text() == "kept\n"

    temp, cwd, *rest = result.output.splitlines()
    assert temp.startswith(temporary)
    assert cwd == str(project / "src")
    assert rest == ["not a tty", "0", "to stderr"]
    assert result.exit_code == 7
    assert (project / "made").read_text() == "changed\n"
    assert result.refusals == ()


@real
async def test_git_can_still_commit(environ: dict[str, str], tmp_path: Path) -> None:
    project = tmp_path / "repository"
    project.mkdir()
    name = "-c user.name=a -c user.email=a@example.org"
    async with opened(environ, confinement_of(project)) as jobs:
        begun = await ran(jobs, "git init -q", project)
        made = await ran(
            jobs, f"echo 1 > a && git add a && git {name} commit -qm one && git log", project
        )

    assert (begun.exit_code, made.exit_code) == (0, 0), made.output
    assert "one" in made.output


@real
@pytest.mark.parametrize(
    ("command", "code"),
    [
        pytest.param("exit 3", 3, id="exit"),
        pytest.param("kill -TERM $$", 143, id="TERM"),
        pytest.param("kill -KILL $$", 137, id="KILL"),
        pytest.param("no-such-program-here", 127, id="not found"),
    ],
)
async def test_exit_codes_are_those_of_a_shell(
    environ: dict[str, str], project: Path, command: str, code: int
) -> None:
    async with opened(environ, confinement_of(project)) as jobs:
        result = await ran(jobs, f"bash -c {command!r}", project)

    assert result.exit_code == code


@real
async def test_a_timeout_leaves_time_to_write_a_report(
    environ: dict[str, str], project: Path
) -> None:
    command = "trap 'echo report > report; exit 5' TERM; echo begun; while :; do sleep 0.01; done"
    async with opened(environ, confinement_of(project)) as jobs:
        result = await ran(jobs, command, project, timeout_s=1)

    assert result.is_timed_out
    assert (project / "report").read_text() == "report\n"


@real
@pytest.mark.parametrize("is_stubborn", [False, True])
async def test_cancelling_ends_all_inside(
    environ: dict[str, str], project: Path, *, is_stubborn: bool
) -> None:
    ignore = "trap '' TERM;" if is_stubborn else ""
    command = f"{ignore} setsid sleep 600 & (sleep 600 &); touch begun; sleep 600; sleep 600"
    async with opened(environ, confinement_of(project)) as jobs:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(ran, jobs, command, project)
            await wait_until((project / "begun").exists)
            tasks.cancel_scope.cancel()
        assert running_with(environ["CRUSH_TEST"]) == []


@real
async def test_what_a_command_leaves_behind_ends_with_it(
    environ: dict[str, str], project: Path
) -> None:
    async with opened(environ, confinement_of(project)) as jobs:
        result = await ran(jobs, "setsid sleep 600 >/dev/null 2>&1 & echo left", project)
        await wait_until(lambda: running_with(environ["CRUSH_TEST"]) == [])

    assert (result.output, result.left_over) == ("left\n", ())


@real
async def test_a_job_in_the_background_is_confined_too_and_ends_with_the_shell(
    environ: dict[str, str], project: Path, outside: Path
) -> None:
    command = f"touch {outside}/new; echo $?; sleep 600"
    async with opened(environ, confinement_of(project)) as jobs:
        async with jobs.command(command, cwd=project, timeout_s=None) as job:
            jobs.put_away(job)
        await wait_until(lambda: "Read-only" in job.read(0).text)
        assert running_with(environ["CRUSH_TEST"]) != []

    assert running_with(environ["CRUSH_TEST"]) == []
    assert not (outside / "new").exists()


@real
async def test_what_is_refused_is_told_the_model(
    environ: dict[str, str], project: Path, outside: Path
) -> None:
    async with opened(environ, confinement_of(project)) as jobs:
        refused = await ran(jobs, f"touch {outside}/new", project)
        failed = await ran(jobs, "ls nothing", project)

    assert "write only in the project" in "".join(refused.refusals)
    assert failed.refusals == ()


@pytest.mark.parametrize(
    ("program", "reason"),
    [
        pytest.param(None, "not installed", id="none"),
        pytest.param(
            "echo 'No permissions to create a namespace' >&2; exit 1", "namespace", id="fails"
        ),
        pytest.param("exit 1", "gave no reason", id="fails without a word"),
    ],
)
@pytest.mark.skipif(sys.platform != "linux", reason="there is no sandbox elsewhere")
async def test_where_there_is_no_sandbox_nothing_is_run(
    environ: dict[str, str], project: Path, tmp_path: Path, program: str | None, reason: str
) -> None:
    folder = tmp_path / "bin"
    folder.mkdir()
    for name in ("bash", "sh"):
        (folder / name).symlink_to(f"/bin/{name}")
    if program is not None:
        (folder / "bwrap").write_text(f"#!/bin/sh\n{program}\n")
        (folder / "bwrap").chmod(0o755)
    async with opened({**environ, "PATH": str(folder)}, confinement_of(project)) as jobs:
        with pytest.raises(ToolError, match=reason) as caught:
            await ran(jobs, "echo run > run", project)

    assert "nothing was run" in str(caught.value)
    assert not (project / "run").exists()


async def test_whether_there_is_a_sandbox_is_found_out_once(
    environ: dict[str, str], tmp_path: Path
) -> None:
    (tmp_path / "bwrap").write_text(f"#!/bin/sh\necho tried >> {tmp_path}/tries\n")
    (tmp_path / "bwrap").chmod(0o755)
    path = f"{tmp_path}:{environ['PATH']}"
    sandbox = Sandbox({**environ, "PATH": path}, Confinement(writable=(tmp_path,)))

    assert [await sandbox.trouble() for _ in range(3)] == ["", "", ""]
    assert (tmp_path / "tries").read_text() == "tried\n"
    assert PROBE_TIMEOUT_S <= 5


PATHS = st.lists(st.sampled_from(("a", "b", "c")), min_size=1, max_size=4).map(
    lambda names: Path("/", *names)
)
WAYS = st.sampled_from(("bind", "hide", "blank", "seal", "empty"))


@given(mounts=st.lists(st.builds(Mount, PATHS, WAYS)), cwd=PATHS)
def test_the_command_comes_last_and_everything_before_it_is_ours(
    mounts: list[Mount], cwd: Path
) -> None:
    argv = sandbox_argv("bwrap", mounts, cwd=cwd)

    assert argv[0] == "bwrap"
    assert argv[-3:] == ("--chdir", str(cwd), "--")
    assert argv.count("--") == 1
    assert {"--unshare-net", "--unshare-pid", "--die-with-parent"} <= {*argv}
    assert argv.index("--ro-bind") < min(
        (argv.index(str(mount.path)) for mount in mounts), default=len(argv)
    )


def test_outer_folders_are_mounted_before_what_is_in_them(project: Path) -> None:
    mounts = survey(confinement_of(project, project / "crush.json"), {})
    places = [mount.path for mount in mounts]

    assert all(
        places.index(parent) < index
        for index, path in enumerate(places)
        for parent in path.parents
        if parent in places
    )
    assert len(places) == len({*places})


@pytest.mark.parametrize(
    ("name", "way"),
    [
        pytest.param(".git", "bind", id="on the way to what is sealed"),
        pytest.param(".git/config", "seal", id="what is sealed"),
        pytest.param(".git/hooks", "seal", id="a sealed folder that is there"),
    ],
)
def test_what_is_sealed_cannot_be_exchanged_either(project: Path, name: str, way: Way) -> None:
    assert Mount(project / name, way) in survey(confinement_of(project), {})


@pytest.mark.parametrize(
    ("output", "count"),
    [
        pytest.param("", 0, id="nothing"),
        pytest.param("curl: (6) Could not resolve host: example.org", 1, id="curl"),
        pytest.param("[Errno -3] Temporary failure in name resolution", 1, id="python"),
        pytest.param("getaddrinfo EAI_AGAIN registry", 1, id="node"),
        pytest.param("touch: cannot touch '/x': Read-only file system", 1, id="touch"),
        pytest.param("OSError: [Errno 30] Read-only file system\nEROFS", 1, id="said twice"),
        pytest.param("Network is unreachable\nRead-only file system", 2, id="both"),
        pytest.param("Permission denied", 0, id="what fails anywhere"),
        pytest.param("bwrap: Can't mkdir /x: No such file", 1, id="the sandbox itself"),
    ],
)
def test_only_what_the_sandbox_has_refused_is_blamed_on_it(output: str, count: int) -> None:
    assert len(refusals(output)) == count
