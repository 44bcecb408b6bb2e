"""The system prompt of a real project, gathered again and again."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from zoneinfo import ZoneInfo

import anyio
import pytest

from crush_kernel.config.settings import read_settings
from crush_kernel.prompt.gitfacts import GitAnswer, GitFacts
from crush_kernel.prompt.prompts import Prompts, open_prompts
from crush_kernel.prompt.reminder import describe_now
from crush_kernel.prompt.system import Instructions
from tests.fakes.workcopy import ENVIRON, git, make_repository

pytestmark = pytest.mark.anyio


@asynccontextmanager
async def opened(folder: Path, *, cwd: str = ".") -> AsyncGenerator[Prompts]:
    home = folder.parent / "home"
    home.mkdir(exist_ok=True)
    settings = read_settings({**ENVIRON, "HOME": str(home)})
    async with anyio.create_task_group() as tasks:
        prompts = open_prompts(settings, cwd=folder / cwd, project_root=folder, tasks=tasks)
        prompts.now = lambda: datetime(2026, 1, 2, 3, 4, tzinfo=UTC)
        yield prompts
        tasks.cancel_scope.cancel()


async def answered(prompts: Prompts) -> None:
    """Begin a turn and wait until git has answered, however busy the machine is."""
    prompts.begin_turn()
    with anyio.fail_after(20):
        await prompts.git.settled()


async def test_nothing_that_changes_by_itself_is_in_the_prompt(tmp_path: Path) -> None:
    folder = make_repository(tmp_path / "a", "one")
    (folder / "AGENTS.md").write_text("Be good.", encoding="utf-8")
    async with opened(folder) as prompts:
        await answered(prompts)
        first = await prompts.system_prompt()
        prompts.now = lambda: datetime(2026, 2, 3, tzinfo=UTC)
        (folder / "new").touch()
        git(folder, "checkout", "--quiet", "-b", "other")
        await answered(prompts)
        second = await prompts.system_prompt()
    assert first.text == second.text
    assert "Git branch: main" in first.reminder
    assert "2026-01-02, Friday" in first.reminder
    assert "Git branch: other" in second.reminder
    assert "?? new" in second.reminder
    assert "2026-02-03, Tuesday" in second.reminder


async def test_a_changed_memory_file_is_in_the_next_request(tmp_path: Path) -> None:
    (tmp_path / "a/sub").mkdir(parents=True)
    async with opened(tmp_path / "a", cwd="sub") as prompts:
        (tmp_path / "a/AGENTS.md").write_text("one", encoding="utf-8")
        assert [part.name for part in (await prompts.preview()).parts][-1] == "memory: ../AGENTS.md"
        (tmp_path / "a/AGENTS.md").write_text("two", encoding="utf-8")
        assert (await prompts.preview()).parts[-1].text.splitlines()[1] == "two"


async def test_whether_pull_requests_can_be_made_is_found_out_once(tmp_path: Path) -> None:
    folder = make_repository(tmp_path / "a", "one")
    program = tmp_path / "bin/gh"
    program.parent.mkdir()
    program.touch(mode=0o755)
    async with opened(folder) as prompts:
        prompts.path, prompts.model = str(program.parent), lambda: "m-1"
        first = await prompts.preview()
        program.unlink()
        second = await prompts.preview()
    assert first.text == second.text
    assert "gh pr create" in first.text
    assert "Assisted-by: Crush:m-1" in first.text


async def test_without_git_only_the_date_is_told(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    async with opened(tmp_path / "a") as prompts:
        prompts.begin_turn()
        prompt = await prompts.system_prompt()
    assert "Git repository: no" in prompt.text
    assert prompt.reminder.splitlines()[1:-1] == [
        "Date: 2026-01-02, Friday (local time, UTC+00:00)"
    ]


async def test_a_folder_of_a_work_tree_is_in_git(tmp_path: Path) -> None:
    folder = make_repository(tmp_path / "a", "one")
    (folder / "sub").mkdir()
    async with opened(folder, cwd="sub") as prompts:
        await answered(prompts)
        prompt = await prompts.system_prompt()
    assert "Git repository: yes" in prompt.text
    assert "Git branch: main" in prompt.reminder


async def test_a_notice_is_given_once_for_as_long_as_it_holds(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    rules = tmp_path / "a/AGENTS.md"
    rules.write_text("x" * 50_000, encoding="utf-8")
    async with opened(tmp_path / "a") as prompts:
        assert not (await prompts.preview()).notices
        (notice,) = (await prompts.system_prompt()).notices
        assert notice.startswith("AGENTS.md is too long")
        rules.write_text("y" * 60_000, encoding="utf-8")
        assert not (await prompts.system_prompt()).notices
        rules.write_text("short", encoding="utf-8")
        assert not (await prompts.system_prompt()).notices
        rules.write_text("x" * 50_000, encoding="utf-8")
        assert (await prompts.system_prompt()).notices == (notice,)


async def test_servers_that_connect_are_in_the_next_request(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    async with opened(tmp_path / "a") as prompts:
        before = (await prompts.system_prompt()).text
        prompts.mcp = (Instructions("files", "Ask me."),)
        prompts.language_servers = ("gopls",)
        names = [part.name for part in (await prompts.preview()).parts]
        assert names[2] == "language servers"
        assert names[-1] == "MCP: files"
        prompts.mcp = prompts.language_servers = ()
        assert (await prompts.system_prompt()).text == before


async def test_the_runtime_may_close_while_git_is_asked(tmp_path: Path) -> None:
    folder = make_repository(tmp_path / "a", "one")
    with anyio.fail_after(10):
        async with opened(folder) as prompts:
            prompts.begin_turn()
        prompts.begin_turn()
        prompts.end_turn()


async def test_an_old_answer_tells_its_age() -> None:
    facts = GitFacts(GitAnswer(b"## main\n"), GitAnswer(b""))
    now = datetime(2026, 1, 2, tzinfo=UTC)
    assert "ago" not in describe_now(now, facts, age_s=4)
    assert "Git 61 s ago" in describe_now(now, facts, age_s=61.2)


@pytest.mark.parametrize(
    ("zone", "date"),
    [
        pytest.param("UTC", "2026-03-01, Sunday (local time, UTC+00:00)", id="UTC"),
        pytest.param(
            "Pacific/Auckland", "2026-03-02, Monday (local time, UTC+13:00)", id="a day ahead"
        ),
        pytest.param("Asia/Kolkata", "2026-03-01, Sunday (local time, UTC+05:30)", id="half"),
        pytest.param("America/New_York", "2026-03-01, Sunday (local time, UTC-05:00)", id="behind"),
    ],
)
async def test_the_date_is_that_of_the_user_with_the_offset(zone: str, date: str) -> None:
    now = datetime(2026, 3, 1, 11, 30, tzinfo=UTC).astimezone(ZoneInfo(zone))
    assert f"Date: {date}" in describe_now(now, None)


async def test_agents_are_in_the_prompt_while_there_are_any(tmp_path: Path) -> None:
    (tmp_path / "a/sub/.crush/agents").mkdir(parents=True)
    file = tmp_path / "a/sub/.crush/agents/reviewer.md"
    async with opened(tmp_path / "a", cwd="sub") as prompts:
        assert "<agents>" not in (await prompts.preview()).text
        file.write_text("---\ndescription: Reviews.\n---\nGo.\n", encoding="utf-8")
        assert "<name>reviewer</name>" in (await prompts.preview()).text
        assert [agent.name for agent in (await prompts.found_agents()).active] == ["reviewer"]
        file.write_text("---\n---\n", encoding="utf-8")
        prompt = await prompts.system_prompt()
    assert "<agents>" not in prompt.text
    (notice,) = prompt.notices
    assert notice == (
        "The agent .crush/agents/reviewer.md cannot be used: its header is no list of names and "
        "values."
    )
