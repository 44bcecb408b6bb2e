"""`/agents`: who can be given tasks, and what is wrong with the files of others."""

from collections.abc import Callable
from pathlib import Path

import pytest

from crush_kernel.kernel.commands.agents import sections
from crush_kernel.prompt.agents import CustomAgent, CustomAgents
from crush_kernel.prompt.headedfiles import FaultyFile, Override
from tests.fakes.eventful import settings
from tests.fakes.kernel import running_kernel
from tests.fakes.provider.server import FakeProvider
from tests.kernel.parsers import commonmark, jupyterlab, nbconvert

REVIEWER = CustomAgent(
    name="reviewer",
    description="Reviews diffs.",
    tools=("view", "grep"),
    model="acme/big",
    text="Review.",
    location=".crush/agents/reviewer.md",
)
HOSTILE = "<script>alert(1)</script> </td> [x](javascript:alert(1)) \u202e"


def rows(found: CustomAgents) -> dict[str, str]:
    table = next(sections(found)).splitlines()[2:]
    return {line.split("|")[1].strip(): line for line in table}


def test_the_built_in_agents_are_listed_where_there_are_no_others() -> None:
    assert list(rows(CustomAgents())) == ["`task`", "web reader"]
    assert len(list(sections(CustomAgents()))) == 2


def test_a_custom_agent_is_told_with_what_it_may_do() -> None:
    other = CustomAgent("other", "d", None, "small", "x", "o.md")
    idle = CustomAgent("idle", "d", (), "large", "x", "i.md")
    found = rows(CustomAgents((idle, other, REVIEWER)))
    assert found["`reviewer`"] == (
        "| `reviewer` | Reviews diffs. | `view`, `grep` | `acme/big` "
        "| `.crush/agents/reviewer.md` |"
    )
    assert "| reading ones | small |" in found["`other`"]
    assert "| none | large |" in found["`idle`"]


def test_what_is_wrong_and_what_does_not_count_is_told() -> None:
    broken = CustomAgent("odd", "d", (), "large", "x", "odd.md", problems=("no tool 'Fly'", "b"))
    found = CustomAgents(
        (broken, REVIEWER),
        faulty=(FaultyFile("bad.md", ("description is missing", "a")),),
        overrides=(
            Override("reviewer", "mid.md", "far.md"),
            Override("reviewer", ".crush/agents/reviewer.md", "mid.md"),
        ),
        is_cut=True,
    )
    _, problems, overrides, cut, _ = sections(found)
    assert "`bad.md` cannot be used: description is missing; a" in problems
    assert "`odd.md`: no tool 'Fly'; b" in problems
    assert "reviewer: `.crush/agents/reviewer.md`, not `far.md`, `mid.md`" in overrides
    assert "some agents may be missing" in cut


@pytest.mark.parametrize("parser", [commonmark, jupyterlab, nbconvert])
def test_hostile_files_stay_text(parser: Callable[[str], str]) -> None:
    agent = CustomAgent("a", HOSTILE, (), "large", HOSTILE, HOSTILE, problems=(HOSTILE,))
    found = CustomAgents((agent,), faulty=(FaultyFile(HOSTILE, (HOSTILE,)),))
    html = parser("\n\n".join(sections(found)))
    assert "<script" not in html
    assert 'href="javascript:' not in html
    assert "\u202e" not in html


@pytest.mark.slow
def test_the_page_shows_what_is_in_the_project(tmp_path: Path, provider: FakeProvider) -> None:
    cwd = tmp_path / "cwd"
    (cwd / ".claude/agents").mkdir(parents=True)
    for name, header in (("good", "description: Does it.\ntools: Read, Fly"), ("bad", "x: y")):
        text = f"---\n{header}\n---\nBody.\n"
        (cwd / f".claude/agents/{name}.md").write_text(text, encoding="utf-8")
    (tmp_path / "home").mkdir()
    env = settings("anthropic", provider)
    with running_kernel(cwd=cwd, home=tmp_path / "home", env=env) as kernel:
        shown = kernel.run("/agents").markdown
        assert "| `good` | Does it. | `view` | large | `.claude/agents/good.md` |" in shown
        assert "`.claude/agents/bad.md` cannot be used: description is missing" in shown
        assert "`.claude/agents/good.md`: there is no tool 'Fly'" in shown
        refused = kernel.run("/agents good")
        assert refused.status == "error"
        reply = kernel.shell_request("complete_request", {"code": "/age", "cursor_pos": 4})
        assert reply["content"]["matches"] == ["/agents"]
    assert provider.requests == []
