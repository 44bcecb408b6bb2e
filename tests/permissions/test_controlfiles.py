"""What always asks before it is written: files by which programs and agents are told what to do."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crush_kernel.permissions.controlfiles import ControlFiles
from crush_kernel.prompt.memory import NAMES

HOME = Path("/home/u")
ROOT = HOME / "project"
CONTROL = ControlFiles(HOME, ROOT, own=(Path("/srv/crush-config"),))

BY_KIND = {
    "git": (".git", ".git/", ".git/hooks/pre-commit", ".git/config", ".gitmodules", ".gitconfig"),
    "git below": ("vendor/lib/.git/hooks/x", "a/.git"),
    "commit": (".husky/pre-push", ".pre-commit-config.yaml", "lefthook.yml", ".githooks/x"),
    "agent": (
        *("crush.json", ".crush.json", "crushrc", ".crushrc", ".crush/crush.json", ".mcp.json"),
        *(".claude/settings.json", ".claude/settings.local.json", ".crush/skills/x/SKILL.md"),
        *("sub/crush.json", ".agents/skills/x/SKILL.md", ".claude/agents/a.md"),
    ),
    "memory": ("AGENTS.md", "CRUSH.md", "CLAUDE.md", "sub/GEMINI.local.md", ".cursorrules"),
    "memory of others": (".github/copilot-instructions.md", ".cursor/rules/a.mdc"),
    "editor": (".vscode/tasks.json", ".vscode/settings.json", "x.code-workspace", ".vscode"),
    "environment": (".env", ".env.local", "app/.env.production", ".envrc"),
    "sources": (".npmrc", ".pypirc", ".netrc", "pip.conf", ".yarnrc.yml"),
    "python": ("sitecustomize.py", ".venv/lib/python3.12/site-packages/x.pth"),
    "kernel": (
        *("kernel.json", "spec/kernel.json", "share/jupyter/kernels/x/kernel.json"),
        ".jupyter/jupyter_server_config.py",
    ),
    "shell": ("~/.bashrc", "~/.profile", "~/.zshenv", "~/dotfiles/.bashrc", "~/.ipython/x.py"),
    "home": (
        *("~/.ssh/authorized_keys", "~/.aws/credentials", "~/.gnupg", "~/.kube/config"),
        *("~/.config/crush/crush.json", "~/.local/share/crush/trust.json", "~/.docker/config.json"),
        *("~/.config/autostart/x.desktop", "~/.config/systemd/user/x.service", "~/.local/bin/ls"),
        *("~/Library/LaunchAgents/x.plist", "~/.local/share/jupyter/kernels/k/kernel.json"),
    ),
    "machine": ("/etc/passwd", "/etc/cron.d/x", "/var/spool/cron/u", "/proc/sys/x", "/dev/sda"),
    "own": ("/srv/crush-config", "/srv/crush-config/crush.json"),
    "folders that hold one": ("~", "~/.config", "~/.local", "/home", "/", "/srv", "~/.local/share"),
    "other spellings": (
        ".GIT/hooks/x",
        ".Git",
        "Crush.JSON",
        ".g\u200cit/config",
        ".git./x",
        "git~1",
    ),
    "keys in the project": (".ssh/id", "backup/.aws/credentials"),
}

FREE = (
    *("src/a.py", "README.md", "git/hooks/x", ".gitignore", ".gitattributes", "env", "x.env.md"),
    *(".env.example", ".env.sample", "model.pth", "kernels.json", "settings.json", "tasks.json"),
    *("agents.py", "hooks/pre-commit", ".github/workflows/ci.yml", "/dev/null", "/opt/x", "."),
    *("~/other/x", "~/.config/app/x", "/dev/stdout", "bin/x", "docs/.docker/Dockerfile"),
)


def path_of(text: str) -> Path:
    return HOME / text[2:] if text.startswith("~") else ROOT / text


@pytest.mark.parametrize(
    "text",
    [pytest.param(text, id=f"{kind}: {text}") for kind, texts in BY_KIND.items() for text in texts],
)
def test_a_control_file_has_a_reason(text: str) -> None:
    danger = CONTROL.danger(path_of(text))
    assert danger.startswith("writes to ")
    assert "which " in danger or "where " in danger


@pytest.mark.parametrize("text", FREE)
def test_other_files_have_none(text: str) -> None:
    assert CONTROL.danger(path_of(text)) == ""


def test_every_memory_file_is_one() -> None:
    assert {name for name in NAMES if not ControlFiles(HOME, ROOT).danger(ROOT / name)} == set()


def test_where_the_project_is_says_nothing_of_its_files() -> None:
    inner = ControlFiles(HOME, HOME / ".claude/worktrees/one")
    assert inner.danger(HOME / ".claude/worktrees/one/src/a.py") == ""
    assert inner.danger(HOME / ".claude/worktrees/one/.env")
    assert inner.danger(HOME / ".claude/settings.json")


def test_a_reason_names_the_place_as_people_write_it() -> None:
    assert CONTROL.danger(ROOT / ".git/config").startswith("writes to .git/config, which git")
    assert CONTROL.danger(HOME / ".bashrc").startswith("writes to ~/.bashrc, which is run")
    assert CONTROL.danger(HOME) == "writes to ~, which holds all that is the user's"
    assert "\x1b" not in CONTROL.danger(ROOT / ".git/\x1b[2J")


def test_reasons_are_told_once() -> None:
    paths = (ROOT / ".env", ROOT / "a", ROOT / ".env")
    assert CONTROL.dangers(paths) == (CONTROL.danger(ROOT / ".env"),)


NAME = st.text(min_size=1, max_size=8).filter(
    lambda name: "/" not in name and name not in (".", "..")
)


@given(st.lists(NAME, max_size=4), st.sampled_from((".git", ".ssh", ".husky", ".crush")))
def test_all_below_a_control_folder_is_one(names: list[str], folder: str) -> None:
    path = ROOT.joinpath(*names, folder)
    assert CONTROL.danger(path)
    assert CONTROL.danger(path.joinpath(*names))


@given(st.sampled_from(sorted(text for texts in BY_KIND.values() for text in texts)))
def test_case_makes_no_difference(text: str) -> None:
    path = path_of(text)
    inside = path.is_relative_to(HOME) and path != HOME
    other = HOME / str(path.relative_to(HOME)).swapcase() if inside else Path(str(path).swapcase())
    assert CONTROL.danger(other)


@given(st.lists(NAME, min_size=1, max_size=6))
def test_any_name_has_an_answer(names: list[str]) -> None:
    danger = CONTROL.danger(Path("/").joinpath(*names))
    assert "\n" not in danger
