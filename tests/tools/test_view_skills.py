"""The files of skills, as `view` shows them: unasked and whole."""

from pathlib import Path

import pytest

from crush_kernel.errors import PermissionDenied, ToolError
from crush_kernel.tools.base import ToolOutput
from crush_kernel.tools.filechange import Files
from crush_kernel.tools.paths import PathPolicy
from crush_kernel.tools.view import ViewArguments, view_tool
from tests.fakes.tool_context import FakeContext, tool_context

pytestmark = pytest.mark.anyio

LONG = "".join(f"step {number} {'x' * 3_000}\n" for number in range(30)) + "line\n" * 300


class Shelf:
    """One skill on disk, and a built-in one."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def built_in(self, location: str) -> str | None:
        return "Built in.\n" if location == "crush://skills/jq/SKILL.md" else None

    def name_of(self, path: Path) -> str:
        return "notes" if path == self.folder / "SKILL.md" else ""

    def covers(self, path: Path) -> bool:
        return path.is_relative_to(self.folder)


@pytest.fixture
def skill(tmp_path: Path) -> Path:
    folder = tmp_path / "home/skills/notes"
    folder.mkdir(parents=True)
    (tmp_path / "project").mkdir()
    (folder / "SKILL.md").write_text(LONG, encoding="utf-8")
    (folder / "more.md").write_text("more\n", encoding="utf-8")
    (tmp_path / "home/secret.md").write_text("SECRET\n", encoding="utf-8")
    return folder


async def view(skill: Path, path: str | Path, fake: FakeContext | None = None) -> ToolOutput:
    project = skill.parents[2] / "project"
    policy = PathPolicy(root=project, cwd=project)
    tool = view_tool(Files(policy), accepts=lambda _: False, skills=Shelf(skill))
    context = (fake or tool_context(allow=False)).context
    return await tool.run(ViewArguments(file_path=str(path)), context)


async def test_a_skill_is_read_whole_and_unasked(skill: Path) -> None:
    output = await view(skill, skill / "SKILL.md")
    assert output.text.startswith(LONG.rstrip())
    assert output.text.endswith(f"[whole file {skill / 'SKILL.md'}, the skill notes]")
    assert output.summary == "skill notes"
    assert output.metadata == {"skill": "notes"}


async def test_a_built_in_skill_is_read_at_its_location(skill: Path) -> None:
    output = await view(skill, " crush://skills/jq/SKILL.md ")
    assert output.text == "Built in.\n\n[whole file crush://skills/jq/SKILL.md, the skill jq]"
    assert output.metadata == {"skill": "jq"}


async def test_other_files_of_a_skill_are_read_unasked(skill: Path) -> None:
    output = await view(skill, skill / "more.md")
    assert "more" in output.text
    assert not output.metadata


@pytest.mark.parametrize("path", ["../home/secret.md", "../home/skills/notes/../../secret.md"])
async def test_what_lies_beside_a_skill_is_asked_for(skill: Path, path: str) -> None:
    with pytest.raises(PermissionDenied):
        await view(skill, path)


async def test_a_link_in_a_skill_does_not_open_what_it_leads_to(skill: Path) -> None:
    (skill / "link.md").symlink_to(skill.parents[1] / "secret.md")
    with pytest.raises(PermissionDenied):
        await view(skill, skill / "link.md")


async def test_another_address_is_still_refused(skill: Path) -> None:
    with pytest.raises(ToolError, match="is a URL"):
        await view(skill, "crush://skills/none/SKILL.md")
