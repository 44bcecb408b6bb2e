"""A command that writes to a control file always asks, however it names the file."""

from pathlib import Path

import pytest

from crush_kernel.permissions.decision import Ask
from crush_kernel.permissions.gate import Gate
from crush_kernel.permissions.request import PermissionRequest
from crush_kernel.permissions.shell.reading import read_command
from crush_kernel.tools.commandrequest import command_request
from crush_kernel.tools.paths import PathPolicy


@pytest.fixture
def paths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> PathPolicy:
    home = tmp_path / "home"
    (root := home / "project").mkdir(parents=True)
    (root / ".git/hooks").mkdir(parents=True)
    (root / "rules").symlink_to(".git/config")
    (root / "src").mkdir()
    monkeypatch.setenv("HOME", str(home))
    return PathPolicy(root=root, cwd=root)


def asked(command: str, paths: PathPolicy) -> PermissionRequest:
    folder = paths.resolve(".")
    reading = read_command(
        command, known={"HOME": str(paths.control.home), "PWD": str(folder.path)}
    )
    return command_request(command, reading, paths, folder, call_id="c")


@pytest.mark.parametrize(
    "command",
    [
        "echo x > .git/hooks/pre-commit",
        "echo x >> rules",
        "cd .git && echo x > config",
        "cp src/a .git/hooks/pre-commit",
        "sed -i s/a/b/ CRUSH.md",
        "tee ~/.bashrc < src/a",
        'echo x > "$HOME/.bashrc"',
        "echo x > src/../.env",
        "rm -r .git",
        "mv .crush.json src/",
        "echo '{}' | tee .crush.json",
        "ls; echo x > .envrc",
    ],
)
@pytest.mark.parametrize("mode", ["default", "accept-edits", "yolo"])
def test_a_command_that_writes_to_one_is_asked_in_every_mode(
    paths: PathPolicy, command: str, mode: str
) -> None:
    request = asked(command, paths)
    assert request.dangers
    assert isinstance(Gate(mode).decide(request), Ask)  # pyright: ignore[reportArgumentType] - a mode


@pytest.mark.parametrize(
    "command",
    ["cat .env", "ls .git", "touch src/a.py", "echo x > /dev/null", "mkdir build", "git status"],
)
def test_others_are_not_dangerous(paths: PathPolicy, command: str) -> None:
    assert not asked(command, paths).dangers
