"""What a person and a rule are told of a command line's parts, on a real file system."""

import subprocess
from pathlib import Path

import pytest

from crush_kernel.permissions.decision import decide
from crush_kernel.permissions.request import PermissionRequest
from tests.tools.test_commandrequest import World, kind


@pytest.fixture
def world(tmp_path: Path) -> World:
    home, project = tmp_path / "home", tmp_path / "project"
    for folder in (home, project / "src"):
        folder.mkdir(parents=True)
    subprocess.run(("git", "init", "-q", project), check=True)
    for path in (home / "a.txt", project / "a.txt", project / ".crush.json"):
        path.write_text("a")
    return World(home, project)


def outside(request: PermissionRequest) -> list[str]:
    return [part.text for part in request.parts if part.is_outside]


@pytest.mark.parametrize(
    ("command", "parts"),
    [
        pytest.param("cat a.txt && ls src", [], id="none"),
        pytest.param("cat a.txt && cat ~/a.txt", ["cat ~/a.txt"], id="reads"),
        pytest.param("touch b && touch ~/b", ["touch ~/b"], id="writes"),
        pytest.param("make && echo x > ~/b", ["echo x > ~/b"], id="redirection"),
        pytest.param("cp a.txt $WHERE; ls", ["cp a.txt $WHERE"], id="nobody knows where"),
        pytest.param("make; cd ~ && make all", ["make all"], id="in a folder"),
    ],
)
def test_the_part_that_leads_outside_is_known(world: World, command: str, parts: list[str]) -> None:
    assert outside(world.asked(command)) == parts


def test_what_runs_in_a_folder_outside_no_pattern_covers(world: World) -> None:
    assert world.asked("cd src && make").unnamed == ()
    assert world.asked("cd ~ && make").unnamed == ("runs in a folder outside the project",)
    assert world.asked("cd ~ && ls").unnamed == ()


def test_only_a_repository_with_programs_is_said_to_have_them(world: World) -> None:
    assert world.asked("git status").notes == ()
    git = ("git", "-C", world.project)
    subprocess.run((*git, "config", "core.fsmonitor", "touch pwned"), check=True)
    assert len(world.asked("git status").notes) == 1
    assert world.asked("ls").notes == ()


@pytest.mark.parametrize(
    "command",
    [
        "echo x > .crush*.json",
        "echo x >> .c[r]ush.json",
        "ls > .crush.jso?",
        "cat < a.txt > ./.crush*",
        "tee .crush*.json < a.txt",
        "(ls) > .crush*.json",
        "for i in 1; do ls; done &> .crush.*",
        "sh -c 'echo x > .crush*.json'",
    ],
)
def test_a_control_file_is_known_behind_a_pattern(world: World, command: str) -> None:
    request = world.asked(command)
    assert world.project / ".crush.json" in request.writes
    assert any("writes to .crush.json" in danger for danger in request.dangers)
    assert decide(request, mode="yolo", grants=frozenset()).kind == "ask"


def test_a_pattern_that_names_a_file_outside_is_asked(world: World) -> None:
    for command in ("echo x > ~/a.*", "cat < ~/a.*", "echo x > ../home/?.txt"):
        request = world.asked(command)
        assert world.home / "a.txt" in request.paths
        assert [kind(request, mode) for mode in ("default", "yolo", "plan")] == [
            "ask",
            "ask",
            "deny",
        ]


def test_a_redirection_from_a_pattern_is_never_certain(world: World) -> None:
    assert kind(world.asked("cat < a.txt")) == "allow"
    assert kind(world.asked("cat < a*.txt")) == "ask"
