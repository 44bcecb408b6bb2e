"""What the system prompt costs before a request, in a repository of many files.

Git is asked when the turn begins; here nothing else is done meanwhile, so that what is waited
for git counts in full.
"""

import tempfile
from pathlib import Path
from statistics import median
from time import perf_counter

import anyio

from crush_kernel.config.settings import read_settings
from crush_kernel.prompt.prompts import open_prompts
from tests.bench.report import Row, Scale
from tests.fakes.workcopy import ENVIRON, git, make_repository

SKILLS = 50
MEMORY_FILES = 12


def measure(scale: Scale) -> tuple[Row, ...]:
    """Measure warm prompts: the first of a turn, and those of its further steps."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name).resolve() / "repository"
        _furnish(make_repository(folder), scale.files)
        home = folder.parent / "home"
        first, further = anyio.run(_measured, folder, home, scale.repeats(41, 11))
    what = f"{scale.files:,} files, {SKILLS} skills, {MEMORY_FILES} memory files"
    return (
        Row(f"system prompt of a turn, warm: {what}", first, "ms", limit=15),
        Row("system prompt of a further step", further, "ms", limit=5),
    )


def _furnish(folder: Path, files: int) -> None:
    for number in range(files):
        path = folder / f"package{number // 100}" / f"module{number % 100}.py"
        path.parent.mkdir(exist_ok=True)
        path.touch()
    for number in range(SKILLS):
        skill = folder / ".claude/skills" / f"skill{number}"
        skill.mkdir(parents=True)
        header = f"name: skill{number}\ndescription: {'Does a thing. ' * 5}"
        (skill / "SKILL.md").write_text(f"---\n{header}\n---\nHow.\n", encoding="utf-8")
    for number in range(MEMORY_FILES):
        rule = folder / ".cursor/rules" / f"rule{number}.mdc"
        rule.parent.mkdir(parents=True, exist_ok=True)
        rule.write_text("Use tabs, not spaces.\n" * 200, encoding="utf-8")
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--message", "all")


async def _measured(folder: Path, home: Path, repeats: int) -> tuple[float, float]:
    settings = read_settings({**ENVIRON, "HOME": str(home)})
    first: list[float] = []
    further: list[float] = []
    async with anyio.create_task_group() as tasks:
        prompts = open_prompts(settings, cwd=folder, project_root=folder, tasks=tasks)
        prompts.begin_turn()
        await prompts.git.settled()
        # What changed a moment ago is read again: wait until nothing did.
        await anyio.sleep(2.5)
        await prompts.system_prompt()
        for _ in range(repeats):
            prompts.begin_turn()
            for times in (first, further):
                began = perf_counter()
                await prompts.system_prompt()
                times.append((perf_counter() - began) * 1e3)
                await prompts.git.settled()
    return median(first), median(further)
