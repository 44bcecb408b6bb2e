"""What a command line asks for, on a real file system: what leads outside is never missed."""

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

from crush_kernel.permissions.decision import decide
from crush_kernel.permissions.pathpattern import Place
from crush_kernel.permissions.policy import Policy, StandingRule
from crush_kernel.permissions.proposal import proposed_rules
from crush_kernel.permissions.request import PermissionRequest
from crush_kernel.permissions.rule import parse_rule
from crush_kernel.permissions.shell.reading import read_command
from crush_kernel.tools.commandrequest import OWN_PROGRAMS, command_request
from crush_kernel.tools.paths import PathPolicy


@dataclass(frozen=True)
class World:
    """A project with links that lead out of it, and a home beside it."""

    home: Path
    project: Path

    def asked(self, command: str, *, folder: str = ".") -> PermissionRequest:
        paths = PathPolicy(root=self.project, cwd=self.project)
        target = paths.resolve(folder)
        known = {"HOME": str(self.home), "PWD": str(target.path)}
        reading = read_command(command, known=known)
        return command_request(command, reading, paths, target, call_id="c")


@pytest.fixture
def world(tmp_path: Path) -> World:
    home, project = tmp_path / "home", tmp_path / "project"
    for folder in (home / ".ssh", tmp_path / "project-other", project / "src"):
        folder.mkdir(parents=True)
    subprocess.run(("git", "init", "-q", project), check=True)
    (home / "secret.txt").write_text("secret")
    (tmp_path / "project-other/x").write_text("secret")
    (project / "a.txt").write_text("a")
    (project / "src/b.py").write_text("b")
    (project / "file-link").symlink_to(home / "secret.txt")
    (project / "folder-link").symlink_to(home)
    (project / "dangling").symlink_to(home / "not-there")
    return World(home, project)


def kind(request: PermissionRequest, mode: str = "default") -> str:
    return decide(request, mode=mode, grants=frozenset()).kind  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize(
    "command",
    [
        "cat a.txt",
        "ls -la src && git status",
        "cd src && cat b.py ../a.txt",
        "cat *.txt",
        "grep -rn b src | head -5",
        "cat < a.txt",
        "ls nothing-there",
        "find . -name '*.py'",
    ],
)
def test_looking_inside_the_project_needs_no_question(world: World, command: str) -> None:
    assert kind(world.asked(command)) == "allow"
    assert kind(world.asked(command), "plan") == "allow"


@pytest.mark.parametrize(
    ("command", "where"),
    [
        pytest.param("cat ~/secret.txt", "home/secret.txt", id="home"),
        pytest.param('cat "$HOME/secret.txt"', "home/secret.txt", id="home by its variable"),
        pytest.param("cat ../project-other/x", "project-other/x", id="name that begins alike"),
        pytest.param("cat src/../../project-other/x", "project-other/x", id="up from within"),
        pytest.param("cat file-link", "home/secret.txt", id="link to a file"),
        pytest.param("cat file-l*", "home/secret.txt", id="link by a pattern"),
        pytest.param("ls folder-link/", "home", id="link to a folder"),
        pytest.param("cat folder-link/secret.txt", "home/secret.txt", id="through a link"),
        pytest.param(
            "cd folder-link && cat secret.txt", "home/secret.txt", id="after cd by a link"
        ),
        pytest.param("cat dangling", "home/not-there", id="dangling link"),
        pytest.param("grep s < file-link", "home/secret.txt", id="redirection"),
        pytest.param("timeout 5 cat ~/secret.txt", "home/secret.txt", id="wrapper"),
        pytest.param("echo $(cat ~/secret.txt)", "home/secret.txt", id="substitution"),
        pytest.param("sh -c 'cat ~/secret.txt'", "home/secret.txt", id="script"),
        pytest.param("find -P folder-link/", "home", id="find"),
        pytest.param("cd folder-link && grep -d recurse s", "home", id="grep in its own words"),
        pytest.param("cd folder-link && grep --directories=recurse s", "home", id="in full"),
        pytest.param("git diff --no-index a.txt ~/secret.txt", "home/secret.txt", id="git"),
    ],
)
def test_reading_outside_is_asked_with_the_real_path(
    world: World, command: str, where: str
) -> None:
    request = world.asked(command)
    assert world.home.parent / where in request.paths
    assert request.is_outside
    assert [kind(request, mode) for mode in ("default", "accept-edits", "yolo")] == ["ask"] * 3


@pytest.mark.parametrize(
    ("command", "where"),
    [
        pytest.param("echo x > ~/x", "home/x", id="redirection"),
        pytest.param("echo x >> file-link", "home/secret.txt", id="redirection to a link"),
        pytest.param("cp a.txt ~/", "home", id="cp"),
        pytest.param("mv a.txt ../project-other/", "project-other", id="mv"),
        pytest.param("tee ~/x < a.txt", "home/x", id="tee"),
        pytest.param("touch folder-link/x", "home/x", id="through a link"),
        pytest.param("sed -i s/a/b/ file-link", "home/secret.txt", id="sed"),
        pytest.param("cd ~ && touch x", "home/x", id="after cd"),
        pytest.param("(cd ..; touch x)", "x", id="in a subshell"),
        pytest.param("cd ..; echo x > y", "y", id="redirection after cd"),
        pytest.param("python build.py ../project-other", "project-other", id="who knows"),
    ],
)
def test_writing_outside_is_asked_in_every_mode(world: World, command: str, where: str) -> None:
    request = world.asked(command)
    assert world.home.parent / where in request.paths
    assert [kind(request, mode) for mode in ("default", "accept-edits", "yolo")] == ["ask"] * 3
    assert kind(request, "plan") == "deny"


@pytest.mark.parametrize(
    "command",
    [
        "rm -rf ~/.pi",
        "rm -rf ~",
        "rm -rf .",
        'rm -rf "$PWD"',
        "rm -rf ../project",
        "rm -rf ..",
        "rm -rf /",
        "rm -rf .git",
        "rm -rf folder-link/",
        "rm -rf .git/objects",
        "rm -rf $TARGET",
        "find ~ -delete",
        "true && nice rm -r ~/.pi",
        "sh -c 'rm -rf ~/.pi'",
        "cd / && rm -rf home",
        "echo ~ | xargs rm -rf",
    ],
)
def test_what_cannot_be_brought_back_is_dangerous(world: World, command: str) -> None:
    request = world.asked(command)
    assert request.dangers
    assert kind(request, "yolo") == "ask"


@pytest.mark.parametrize(
    "command",
    ['echo x > "$PLACE"', "cp a.txt $PLACE", "touch `cat a.txt`", "cd src; cd ../..; touch x"],
)
def test_writing_where_only_the_shell_knows_is_asked_in_every_mode(
    world: World, command: str
) -> None:
    request = world.asked(command)
    assert "writes where only the shell can know" in request.unnamed
    assert [kind(request, mode) for mode in ("default", "accept-edits", "yolo")] == ["ask"] * 3


@pytest.mark.parametrize(
    "command",
    ["$X a.txt", "/bin/c?t a.txt", "echo 'touch x' | sh", "cat a.txt | bash -s", "eval $X"],
)
def test_running_what_only_the_shell_knows_is_asked_in_every_mode(
    world: World, command: str
) -> None:
    request = world.asked(command)
    assert "runs what only the shell can know" in request.unnamed
    assert [kind(request, mode) for mode in ("default", "accept-edits", "yolo")] == ["ask"] * 3


@pytest.mark.parametrize(
    "command",
    [
        "rm -rf build",
        "rm -rf src",
        "rm a.txt",
        "touch x > y",
        "cd src; touch x",
        "echo $X > out-$X.txt",
    ],
)
def test_what_stays_in_the_project_is_left_to_the_mode(world: World, command: str) -> None:
    request = world.asked(command)
    assert (request.dangers, request.is_outside) == ((), False)
    assert kind(request) == "ask"
    assert kind(request, "yolo") == "allow"


def test_a_repository_that_names_programs_is_not_looked_at_unasked(world: World) -> None:
    assert kind(world.asked("git status")) == "allow"
    git = ("git", "-C", world.project)
    subprocess.run((*git, "config", "core.fsmonitor", "touch pwned"), check=True)
    request = world.asked("git status")
    assert kind(request) == "ask"
    assert "git run other programs" in request.notes[-1]
    assert kind(world.asked("ls && cat a.txt")) == "allow"


@pytest.mark.parametrize("line", ["cd sub && git status", "git -C sub status"])
def test_git_in_another_folder_is_looked_at_there(line: str, world: World) -> None:
    inner = world.project / "sub"
    subprocess.run(("git", "init", "-q", inner), check=True)
    assert kind(world.asked(line)) == "allow"
    subprocess.run(("git", "-C", inner, "config", "core.fsmonitor", "touch pwned"), check=True)
    assert kind(world.asked(line)) == "ask"


def test_a_command_in_a_folder_outside_is_asked(world: World) -> None:
    assert kind(world.asked("ls")) == "allow"
    assert kind(world.asked("ls", folder="folder-link")) == "ask"


def test_a_pattern_for_very_many_names_is_not_known(world: World) -> None:
    for number in range(1_001):
        (world.project / f"src/{number}.txt").touch()
    assert kind(world.asked("cat src/*.py")) == "allow"
    assert kind(world.asked("cat src/*.txt")) == "ask"


@pytest.mark.parametrize(
    "command",
    [
        pytest.param("echo ~/*", id="of the home folder"),
        pytest.param("echo folder-link/*", id="through a link"),
        pytest.param("printf '%s\\n' folder-link/*", id="printf"),
        pytest.param("cd folder-link && echo *", id="after cd"),
        pytest.param("ls $(echo folder-link/*)", id="within a substitution"),
        pytest.param("basename -a [a-g]*-link/*", id="any sign of a pattern"),
        pytest.param("type folder-link/*", id="a program that takes no files"),
    ],
)
def test_patterns_list_names_whoever_gets_them(world: World, command: str) -> None:
    request = world.asked(command)
    assert [kind(request, mode) for mode in ("default", "accept-edits", "yolo")] == ["ask"] * 3


@pytest.mark.parametrize(
    "command",
    ["echo *", "[[ a.txt == /* ]]", "printf '%s' '~/*'", 'echo "$(ls *.txt | wc -l)"'],
)
def test_patterns_within_the_project_or_in_quotes_list_nothing_else(
    world: World, command: str
) -> None:
    assert kind(world.asked(command)) == "allow"


@pytest.mark.parametrize("folder", ["bin", "./bin", "", "{project}/bin", "{project}/bin-link"])
@pytest.mark.parametrize(
    "command", ["cat a.txt", "ls | cat", "nice cat a.txt", "sh -c 'cat a.txt'", "(cat a.txt)"]
)
def test_a_program_that_the_project_brings_is_not_the_systems(
    world: World, monkeypatch: pytest.MonkeyPatch, folder: str, command: str
) -> None:
    own = world.project / ("bin" if folder else ".")
    own.mkdir(exist_ok=True)
    (world.project / "bin-link").symlink_to("bin")
    path = f"{os.environ['PATH']}:{folder.format(project=world.project)}"
    monkeypatch.setenv("PATH", path)
    (own / "cat").write_text("#!/bin/sh\ntouch ran")
    (own / "cat").chmod(0o755)
    request = world.asked(command)
    assert kind(request) == "ask"
    assert kind(request, "plan") == "deny"
    assert OWN_PROGRAMS in request.notes
    assert kind(world.asked("ls")) == "allow"


@pytest.mark.parametrize(
    ("command", "where"),
    [
        pytest.param("python build.py ..", "", id="the folder above"),
        pytest.param("python build.py folder-link/secret.txt", "home/secret.txt", id="by a link"),
        pytest.param("python build.py file-link", "home/secret.txt", id="a link itself"),
        pytest.param("python build.py src/../../other", "other", id="up from within"),
        pytest.param("python build.py --out=../other", "other", id="value of an option"),
        pytest.param("python build.py -o../other", "other", id="attached to a letter"),
        pytest.param("make DESTDIR=../other install", "other", id="value of a name"),
    ],
)
@pytest.mark.parametrize("mode", ["default", "accept-edits", "yolo"])
def test_what_an_unknown_program_gets_may_lead_outside(
    world: World, command: str, where: str, mode: str
) -> None:
    request = world.asked(command)
    assert world.home.parent / where in request.paths
    assert kind(request, mode) == "ask"


@pytest.mark.parametrize(
    "command",
    ["python build.py a.txt src/b.py", "make OUT=src -j4 -Isrc", "sed -E '/a b/d;/c d/d' -i a.txt"],
)
def test_what_stays_in_the_project_leads_nowhere(world: World, command: str) -> None:
    assert not world.asked(command).paths
    assert kind(world.asked(command), "yolo") == "allow"


@pytest.mark.parametrize("command", ["git status", "git diff && ls", "cd src && git log"])
def test_no_rule_for_looking_covers_what_a_repository_has_run(world: World, command: str) -> None:
    place = Place(world.project, world.home)
    rules = Policy((StandingRule("allow", parse_rule("bash(git:*)")),), place)

    def said() -> str:
        return decide(world.asked(command), mode="default", grants=frozenset(), policy=rules).kind

    assert said() == "allow"
    with (world.project / ".git/config").open("a") as config:
        config.write("[core]\nhooksPath = .husky\n")
    assert said() == "allow"
    with (world.project / ".git/config").open("a") as config:
        config.write("[diff]\nexternal = ./spy\n")
    assert said() == "ask"
    assert not proposed_rules(world.asked(command), rules)


@pytest.mark.parametrize(
    ("rule", "command", "is_allowed"),
    [
        pytest.param("bash(git:*)", "git push --force", False, id="only the program"),
        pytest.param("bash(git push:*)", "git push origin --force", False, id="too few words"),
        pytest.param("bash(git push --force:*)", "git push --force origin", True, id="the danger"),
        pytest.param("bash(git push o --force)", "git push o --force", True, id="exactly"),
        pytest.param("bash(curl:*)", "curl https://example.org", True, id="a banned program"),
        pytest.param("bash(curl *)", "timeout 5 curl x", True, id="in a wrapper"),
        pytest.param("bash(npm:*)", "npm publish", False, id="what publishes"),
    ],
)
def test_a_rule_with_open_words_allows_a_danger_only_if_it_names_it(
    world: World, rule: str, command: str, *, is_allowed: bool
) -> None:
    policy = Policy((StandingRule("allow", parse_rule(rule)),))
    request = world.asked(command)
    assert request.dangers
    assert bool(policy.allows(request, by_name=True)) is is_allowed
