"""Skills in cells: `/skills`, and a skill that is called by its name."""

import json
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from crush_kernel.kernel.commands.skills import loaded_skills
from crush_kernel.messages import Message, Text, ToolResult
from crush_kernel.prompt.skilltext import SkillText, invocation
from tests.fakes.eventful import settings
from tests.fakes.kernel import RunningKernel, running_kernel
from tests.fakes.provider.replies import call, say
from tests.fakes.provider.server import FakeProvider
from tests.fakes.workcopy import git, make_repository

CALLED = invocation(SkillText("notes", "d", "Body."), location="x", arguments="")


@pytest.mark.parametrize(
    ("message", "names"),
    [
        pytest.param(Message("user", (Text(CALLED),)), {"notes"}, id="called by the user"),
        pytest.param(Message("assistant", (Text(CALLED),)), set[str](), id="quoted by the model"),
        pytest.param(
            Message("tool", (ToolResult("c", "text", metadata={"skill": "jq"}),)),
            {"jq"},
            id="read by the model",
        ),
        pytest.param(
            Message("tool", (ToolResult("c", "text", metadata={"skill": 3}),)),
            set[str](),
            id="nonsense in a record",
        ),
    ],
)
def test_what_was_loaded_is_told_from_what_was_said(message: Message, names: set[str]) -> None:
    assert loaded_skills((message,)) == names


@pytest.fixture
def cwd(tmp_path: Path) -> Path:
    folder = make_repository(tmp_path / "cwd", "one")
    for name, more in (("notes", "user-invocable: true"), ("jq", ""), ("help", ""), ("bad", "x")):
        skill = folder / ".claude/skills" / name
        skill.mkdir(parents=True)
        header = f"name: {name}\ndescription: Writes {name}.\n{more}"
        header = header if name != "bad" else "name: other\ndescription:"
        text = f"---\n{header}\n---\nMention @file.txt.\n"
        (skill / "SKILL.md").write_text(text, encoding="utf-8")
    return folder


@pytest.fixture
def kernel(tmp_path: Path, cwd: Path, provider: FakeProvider) -> Generator[RunningKernel]:
    (tmp_path / "home").mkdir()
    env = settings("anthropic", provider)
    with running_kernel(cwd=cwd, home=tmp_path / "home", env=env) as running:
        yield running


def texts(content: object) -> str:
    return json.dumps(content, ensure_ascii=False)


@pytest.mark.slow
def test_a_skill_is_called_by_its_name_and_read_by_the_model(
    kernel: RunningKernel, provider: FakeProvider, cwd: Path
) -> None:
    (cwd / "data.txt").write_text("DATA", encoding="utf-8")
    provider.play(call("view", {"file_path": "crush://skills/crush-config/SKILL.md"}), say("Done."))
    cell = kernel.run("/notes on @data.txt", cell_id="a")
    assert cell.status == "ok"
    assert "Done." in cell.markdown
    assert "cannot be used: name is other" in cell.markdown

    first, second = provider.requests
    body: Any = first.body
    user = texts(body["messages"][-1])
    assert "Mention @file.txt." in user
    assert "on this: on @data.txt" in user
    assert "DATA" in user
    # What the skill's text mentions is not attached; only what the user wrote is.
    assert "The file file.txt" not in user
    assert "Git branch: main" in user
    assert "Git branch" not in texts(body["system"])
    assert "<name>notes</name>" in texts(body["system"])
    assert "# Configuring crush-kernel" in texts(second.body["messages"])
    # The reminder is said once a turn and not kept.
    assert "Git branch" not in texts(second.body["messages"])
    assert texts(first.body["system"]) == texts(second.body["system"])

    shown = kernel.run("/skills", cell_id="b").markdown
    lines = {line.split("|")[1].strip(): line for line in shown.splitlines() if "|" in line}
    assert "loaded" in lines["`/notes`"]
    assert "loaded" in lines["`/crush-config`"]
    assert "loaded" not in lines["`/crush-hooks`"]
    assert "`.claude/skills/bad/SKILL.md`: name is other" in shown
    assert "jq: `.claude/skills/jq/SKILL.md`, not `crush://skills/jq/SKILL.md`" in shown
    assert git(cwd, "status", "--short")


@pytest.mark.slow
def test_commands_come_before_skills_and_tab_offers_both(
    kernel: RunningKernel, provider: FakeProvider
) -> None:
    assert "Write what you want" in kernel.run("/help").markdown
    for name in ("jq", "none"):
        # The project's `jq` is not for people, and it hides the built-in one that is.
        cell = kernel.run(f"/{name}")
        assert (cell.status, provider.requests) == ("error", [])
    reply = kernel.shell_request("complete_request", {"code": "/", "cursor_pos": 1})
    matches = reply["content"]["matches"]
    assert {"/help", "/skills", "/notes", "/crush-config"} <= set(matches)
    assert matches.count("/help") == 1
    assert "/jq" not in matches
