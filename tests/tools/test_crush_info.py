"""What the model reads of how Crush is set up."""

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crush_kernel.config.settings import read_settings
from crush_kernel.history.redaction import Redactor
from crush_kernel.prompt.agents import CustomAgents
from crush_kernel.prompt.headedfiles import FaultyFile
from crush_kernel.prompt.skills import Skills
from crush_kernel.providers.base import ModelInfo
from crush_kernel.providers.selection import Providers
from crush_kernel.shell.jobs import Jobs
from crush_kernel.shell.runner import Shell
from crush_kernel.tools.crush_info import (
    MAX_LINES,
    ORDER,
    CrushInfoArguments,
    Section,
    Sections,
    crush_info_tool,
    render,
)
from crush_kernel.tools.setup import Setup
from tests.fakes.tool_context import tool_context

pytestmark = pytest.mark.anyio

KEY = "sk-ant-api03-planted-0123456789abcdef"
PASSWORD = "planted-Passw0rd"  # noqa: S105 - planted
SECRETS = {
    "ANTHROPIC_API_KEY": KEY,
    "OPENAI_API_KEY": "sk-proj-planted0123456789abcdefghij",
    "GROQ_API_KEY": "short-planted",
    "ANTHROPIC_BASE_URL": f"http://user:{PASSWORD}@127.0.0.1:9/v1",
    "OLLAMA_HOST": f"http://user:{PASSWORD}@127.0.0.1:9",
    "CORP_TOKEN": "corp-planted-token-12345",
    "CRUSH_MODEL": "anthropic/claude-sonnet-4-6",
    "CRUSH_MAX_TURN_COST": "0.5",
    "CRUSH_PERMISSION_MODE": "planned",
}


@asynccontextmanager
async def set_up(cwd: Path, environ: Mapping[str, str]) -> AsyncGenerator[Setup]:
    given = {"PATH": "/usr/bin:/bin", "HOME": str(cwd), **environ}
    settings = read_settings(given)
    providers = Providers(settings)

    async def skills() -> Skills:
        return Skills(faulty=(FaultyFile("bad/SKILL.md", ("it has no name",)),))

    async def agents() -> CustomAgents:
        return CustomAgents()

    async with Shell(given) as shell, Jobs(shell) as jobs:
        yield Setup(
            settings=settings,
            data_directory=cwd / ".crush",
            providers=providers,
            model=lambda: providers.info(settings.model or "offline"),
            mode=lambda: settings.permission_mode,
            skills=skills,
            agents=agents,
            jobs=jobs,
        )


async def info(*sources: Sections, environ: Mapping[str, str] = SECRETS) -> str:
    tool = crush_info_tool(sources, redact=Redactor(environ).redact)
    output = await tool.run(CrushInfoArguments(), tool_context().context)
    assert not output.is_error
    return output.text


async def test_it_says_how_the_kernel_is_set_up(tmp_path: Path) -> None:
    async with (
        set_up(tmp_path, SECRETS) as setup,
        setup.jobs.command("sleep 60", cwd=tmp_path, timeout_s=None) as job,
    ):
        setup.jobs.put_away(job)
        text = await info(setup.sections)
        await setup.jobs.stop(job)
    blocks = dict(block.removeprefix("[").split("]\n", 1) for block in text.split("\n\n"))
    order = ["config_files", "config", "model", "providers", "skills", "permissions", "options"]
    assert [*blocks] == [*order, "jobs"]
    assert blocks["config_files"].startswith("none = ")
    assert "warning = CRUSH_PERMISSION_MODE is none of" in blocks["config"]
    assert blocks["model"].splitlines() == [
        "large = claude-sonnet-4-6 (anthropic)",
        "small = claude-haiku-4-5 (anthropic)",
    ]
    assert blocks["providers"].splitlines()[0].startswith("anthropic = ")
    assert " models, ANTHROPIC_API_KEY is set" in blocks["providers"]
    assert blocks["skills"].splitlines()[1] == "bad/SKILL.md = faulty: it has no name"
    assert blocks["permissions"] == "mode = default"
    assert f"data_directory = {tmp_path}/.crush\n" in blocks["options"]
    assert "max_turn_cost_usd = 0.5" in blocks["options"]
    assert blocks["jobs"].startswith(f"{job.id} = running for 0 s: sleep 60")


async def test_it_never_says_a_secret(tmp_path: Path) -> None:
    async def careless() -> tuple[Section, ...]:
        headers = tuple(f"{name} = {value}" for name, value in SECRETS.items())
        return (Section("mcp", (f"Authorization = Bearer {KEY}", *headers)),)

    async with set_up(tmp_path, SECRETS) as setup:
        text = await info(setup.sections, careless)
    assert "[mcp]\nAuthorization = " in text
    planted = (KEY, PASSWORD, *(SECRETS[name] for name in ("OPENAI_API_KEY", "CORP_TOKEN")))
    assert [secret for secret in planted if secret in text] == []


async def test_it_says_the_same_while_nothing_changes(tmp_path: Path) -> None:
    async with set_up(tmp_path, {}) as setup:
        assert await info(setup.sections) == await info(setup.sections)


async def test_with_nothing_set_the_offline_provider_is_in_use(tmp_path: Path) -> None:
    async with set_up(tmp_path, {}) as setup:
        text = await info(setup.sections)
    assert text.count("(offline)") == 2
    assert "[jobs]" not in text


async def test_without_a_model_that_is_said(tmp_path: Path) -> None:
    async with set_up(tmp_path, {}) as setup:
        none: ModelInfo | None = None
        bare = Setup(
            settings=setup.settings,
            data_directory=tmp_path,
            providers=setup.providers,
            model=lambda: none,
            mode=setup.mode,
            skills=setup.skills,
            agents=setup.agents,
            jobs=setup.jobs,
        )
        assert "[model]\nlarge = none is open\n" in await info(bare.sections)


NAMES = st.sampled_from([*ORDER, "zeta", "alpha"])
LINES = st.lists(st.text(max_size=400), max_size=MAX_LINES + 5).map(tuple)


@given(st.lists(st.builds(Section, NAMES, LINES), max_size=6))
def test_sections_have_an_order_and_bounds_and_no_empty_ones(sections: list[Section]) -> None:
    lines = [*render(sections)]
    said = {section.name for section in sections if section.lines}
    assert said <= {line.strip("[]") for line in lines}
    heads = [lines.index(f"[{name}]") for name in sorted(said, key=[*ORDER, "alpha", "zeta"].index)]
    assert heads == sorted(heads)
    assert len(lines) <= len(said) * (MAX_LINES + 3)
    assert all(len(line) <= 300 and "\n" not in line for line in lines)


@given(st.lists(st.builds(Section, NAMES, LINES), max_size=4, unique_by=lambda each: each.name))
def test_who_says_it_first_makes_no_difference(sections: list[Section]) -> None:
    assert [*render(sections)] == [*render(reversed(sections))]
