"""Command lines that mean harm, end to end with nobody to ask: on disk nothing happens."""

import json
import os
import subprocess
from pathlib import Path

import anyio
import pytest

from crush_kernel.agent.dispatch import Dispatcher
from crush_kernel.config.settings import PermissionMode
from crush_kernel.messages import Message, ToolCall, ToolResult
from crush_kernel.permissions.gate import DenyAll, Gate
from crush_kernel.shell.jobs import Jobs
from crush_kernel.shell.runner import Shell
from crush_kernel.tools.base import erase
from crush_kernel.tools.bash import bash_tool
from crush_kernel.tools.paths import PathPolicy
from tests.agent.test_stopping import NoKeeper

pytestmark = [pytest.mark.anyio, pytest.mark.slow]

KEPT = "the-secret-of-the-user"
NAME = "what-the-user-keeps"

RUN = "echo ran >> RAN"
EVIL = f"{RUN}; cat"

SETUP = rf"""
set -e
git init -q . && echo a > a.txt && mkdir src && echo b > src/b.py
g() {{ git -c user.name=a -c user.email=a@example.org "$@"; }}
ln -s ../home out && ln -s ../home/{NAME} file-out && echo ../home/{NAME} > list
mkdir bin && printf '#!/bin/sh\n{RUN}\n' > bin/wc && chmod +x bin/wc
git init -q vendor/evil && mkdir vendor/evil/deep && ln -s vendor/evil/deep in
echo '* filter=evil' > vendor/evil/.gitattributes && echo x > vendor/evil/f
g -C vendor/evil add . && g -C vendor/evil commit -qm x
g add a.txt src vendor/evil 2> /dev/null && g commit -qm x && g tag t
git -C vendor/evil config filter.evil.clean '{EVIL}'
git -C vendor/evil config diff.external '{RUN};:'
git -C vendor/evil config core.fsmonitor '{RUN};false'
echo y > vendor/evil/f
"""

PLAIN = "cat a.txt"

LINES = (
    PLAIN,
    *(
        "cat file-out",
        "cat out/*",
        "cat $'\\x66ile-out'",
        "cat file-ou\\\nt",
        "cat <(cat file-out)",
    ),
    *("echo out/*", "echo ~/*", "cd out && echo *", "printf '%s\\n' [m-o]ut/*"),
    *("strings @list", "strings -n 4 @list", "xargs cat < list", "cat $(cat list)"),
    *("cd out && grep -d recurse secret", "cd out; grep -rh secret", "cd src; cat b.py deeper"),
    *("cat **/link", "cat FILE-OUT*", "echo a | wc -l", "nice wc a.txt"),
    *("git -C in diff", "cd in && git status", "cd in; git diff", "git -C vendor/evil diff"),
    *("git diff --submodule=diff --ignore-submodules=none", "git diff-index HEAD", "git status"),
    *("git describe --dirty --tags", "git log --output=RAN", "git grep -Otouch a"),
    *(f"[[ -v 'a[$({RUN})]' ]]", f"printf -v 'a[$({RUN})]' x", f"echo ${{x:-$({RUN})}}"),
    *(f"cat <<X\n$({RUN})\nX", f"echo a # \\\n{RUN}", f"bash <<< '{RUN}'", f"x=1 sh -c '{RUN}'"),
    *(
        "sed -n 'w RAN' a.txt",
        "awk '{print > \"RAN\"}' a.txt",
        "sort -o RAN a.txt",
        "uniq a.txt RAN",
    ),
    *("find . -fprintf RAN x", "find . -exec touch RAN \\;", "tar -cf RAN a.txt", "date -f list"),
    "env PATH=bin wc a.txt",
    "GIT_EXTERNAL_DIFF=./bin/wc git diff HEAD",
)


def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a project with everything that a stranger could put into it."""
    project, home, elsewhere = (tmp_path / name for name in ("project", "home", "elsewhere"))
    for folder in (project, home, elsewhere / "src"):
        folder.mkdir(parents=True)
    for file in (home / NAME, elsewhere / "src/b.py"):
        file.write_text(KEPT)
    monkeypatch.setenv("HOME", str(home))
    subprocess.run(("bash", "-c", SETUP), cwd=project, check=True)
    (project / "src/link").symlink_to(home / NAME)
    monkeypatch.setenv("PATH", f"bin:{os.environ['PATH']}")
    monkeypatch.setenv("CDPATH", str(elsewhere))
    monkeypatch.setenv("BASHOPTS", "globstar:nocaseglob")
    return project


def contents(folder: Path) -> dict[str, bytes]:
    files = (path for path in folder.rglob("*") if path.is_file() and not path.is_symlink())
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


@pytest.mark.parametrize("mode", ["default", "plan"])
async def test_nothing_is_run_written_or_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: PermissionMode
) -> None:
    project = world(tmp_path, monkeypatch)
    before = contents(tmp_path)
    recorded: list[Message] = []
    async with Shell(os.environ) as shell, Jobs(shell) as jobs:
        dispatcher = Dispatcher(
            tools={"bash": erase(bash_tool(jobs, PathPolicy(project, project)))},
            gate=Gate(mode),
            asker=DenyAll(),
            emit=lambda _: None,
            keeper=NoKeeper(),
        )
        for line in LINES:
            call = ToolCall("c", "bash", json.dumps({"command": line, "description": "look"}))
            with anyio.fail_after(20):
                await dispatcher.call_tools((call,), record=recorded.append)
            assert contents(tmp_path) == before, line
    assert len(recorded) == len(LINES)
    for line, message in zip(LINES, recorded, strict=True):
        (result,) = message.parts
        assert isinstance(result, ToolResult)
        assert KEPT not in result.content, line
        assert NAME not in result.content, line
        assert (result.content == "a\n") is (line == PLAIN), line
