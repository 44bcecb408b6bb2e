"""Skills: found on disk, checked, and known by name.

Built-in ones come with the program, then come the user's, then the project's; of two with the
same name the later one counts, and that is said. Only names and descriptions go into the prompt.
The model reads the file of a skill with `view` when it needs it, unasked: what lies in a skill's
folder is open to it, wherever that is.

Source: Crush, skills.
"""

import os
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Final

from crush_kernel.config.skilldirectories import SkillDirectory, SkillScope
from crush_kernel.prompt.diskcache import (
    Bounds,
    DiskCache,
    FoundFile,
    Remembered,
    Walk,
    walk_files,
)
from crush_kernel.prompt.headedfiles import (
    FaultyFile,
    HeadedFiles,
    Override,
    first_notices,
    within_room,
)
from crush_kernel.prompt.skilltext import FILE_NAME, SkillText, parse_skill
from crush_kernel.prompt.system import ListedSkill

BUILT_IN: Final = ("crush-config", "crush-hooks", "jq")
SCHEME: Final = "crush://skills/"
"""Where the files of built-in skills are, for `view`."""

MAX_SKILL_BYTES = 200_000
MAX_SKILLS = 500
MAX_WALK_ENTRIES = 5_000
MAX_WALK_DEPTH = 6
MAX_SECONDS = 0.5
"""How far all directories together are searched."""

MAX_LISTED_BYTES = 30_000
"""What the list in the prompt may come to."""


@dataclass(frozen=True, slots=True)
class Skill:
    """A skill that can be used."""

    text: SkillText
    scope: SkillScope
    location: str
    """What to give to `view`."""
    path: Path | None = None
    """Its `SKILL.md`, without links; `None` for a built-in one."""

    @property
    def name(self) -> str:
        """Return its name."""
        return self.text.name


@dataclass(frozen=True, slots=True)
class Skills:
    """All that was found, by name."""

    active: tuple[Skill, ...] = ()
    disabled: tuple[Skill, ...] = ()
    faulty: tuple[FaultyFile, ...] = ()
    overrides: tuple[Override, ...] = ()
    is_cut: bool = False
    """Whether there was more than is searched."""

    def named(self, name: str) -> Skill | None:
        """Return the skill `name` if it can be used."""
        return next((skill for skill in self.active if skill.name == name), None)

    @property
    def invocable(self) -> tuple[Skill, ...]:
        """Return what people can call as `/name`."""
        return tuple(skill for skill in self.active if skill.text.is_user_invocable)

    @property
    def listed(self) -> tuple[ListedSkill, ...]:
        """Return what the model sees, by name; the project's are the first to have no room."""
        return within_room(
            (
                ListedSkill(skill.name, skill.text.description, skill.location)
                for skill in sorted(self.active, key=lambda skill: skill.scope == "project")
                if skill.text.is_model_invocable
            ),
            MAX_LISTED_BYTES,
        )

    @property
    def notices(self) -> tuple[str, ...]:
        """Return what the user should hear of, a sentence each."""
        notices = [
            f"The skill {skill.location} cannot be used: {skill.faults[0]}."
            for skill in self.faulty
        ]
        notices += [
            f"The skill {override.name} is the one in {override.used}, not {override.unused}."
            for override in self.overrides
        ]
        wanted = sum(skill.text.is_model_invocable for skill in self.active)
        if (unlisted := wanted - len(self.listed)) or self.is_cut:
            what = f"{unlisted} skills" if unlisted else "Some skills"
            notices.append(f"{what} are more than the agent is told of.")
        return first_notices(notices, "skills")


class SkillFiles:
    """Reads the skills of one project, again before every request, and tells what is open.

    `read` is for one thread at a time; what it found last may be asked for from any.
    """

    def __init__(
        self,
        directories: Sequence[SkillDirectory],
        disk: DiskCache,
        *,
        cwd: Path,
        project_root: Path,
        disabled: Iterable[str] = (),
    ) -> None:
        """Prepare to read.

        Args:
            directories: where to look, the ones that count most last.
            disk: remembers what was read.
            cwd: the folder, a real path.
            project_root: the project's root, a real path.
            disabled: the names of skills that are not wanted.
        """
        self._directories = tuple(directories)
        self._disk = disk
        self._files = HeadedFiles(disk, cwd=cwd, project_root=project_root)
        self._disabled = frozenset(disabled)
        self._parsed: dict[tuple[str, str], SkillText | tuple[str, ...]] = {}
        self._latest = Skills()
        self._skills = Remembered(disk, self._read)

    @property
    def latest(self) -> Skills:
        """Return what was found last."""
        return self._latest

    def read(self) -> Skills:
        """Return the skills as they are now. Blocks, for half a second at worst."""
        self._latest = self._skills.value()
        return self._latest

    def _read(self) -> Skills:
        by_name: dict[str, Skill] = {skill.name: skill for skill in built_in_skills()}
        faulty: list[FaultyFile] = []
        overrides: list[Override] = []
        search = _Search(self._disk, time.monotonic() + MAX_SECONDS)
        for directory in self._directories:
            for file in search.files(directory, self._files.bounds(directory.scope)):
                found = self._read_one(file, directory)
                if isinstance(found, FaultyFile):
                    faulty.append(found)
                    continue
                if former := by_name.get(found.name):
                    overrides.append(Override(found.name, found.location, former.location))
                by_name[found.name] = found
        skills = [by_name[name] for name in sorted(by_name)]
        return Skills(
            active=tuple(skill for skill in skills if skill.name not in self._disabled),
            disabled=tuple(skill for skill in skills if skill.name in self._disabled),
            faulty=tuple(faulty),
            overrides=tuple(each for each in overrides if each.name not in self._disabled),
            is_cut=search.is_cut,
        )

    def built_in(self, location: str) -> str | None:
        """Return the whole text of the built-in skill file that `location` names."""
        name = location.removeprefix(SCHEME).removesuffix(f"/{FILE_NAME}")
        is_one = location == built_in_location(name) and name in BUILT_IN
        return built_in_source(name) if is_one else None

    def name_of(self, path: Path) -> str:
        """Return the name of the skill that has `path`, a real one, as its file; else nothing."""
        return next((skill.name for skill in self._latest.active if skill.path == path), "")

    def covers(self, path: Path) -> bool:
        """Return whether `path`, a real one, lies in the folder of a skill that is in use."""
        return any(
            skill.path is not None and Bounds(skill.path.parent).admit(path)
            for skill in self._latest.active
        )

    def _read_one(self, file: FoundFile, directory: SkillDirectory) -> Skill | FaultyFile:
        """Return the skill in `file`."""
        found = self._files.read(file, directory.scope, max_bytes=MAX_SKILL_BYTES)
        if isinstance(found, FaultyFile):
            return found
        parsed = self._parse(found.text, file.path.parent.name)
        if isinstance(parsed, tuple):
            return FaultyFile(found.location, parsed)
        return Skill(parsed, directory.scope, found.location, file.real)

    def _parse(self, text: str, folder: str) -> SkillText | tuple[str, ...]:
        """Return what `text` says, parsing it the first time only."""
        key = (text, folder)
        if key not in self._parsed:
            if len(self._parsed) >= 2 * MAX_SKILLS:
                self._parsed.clear()
            self._parsed[key] = parse_skill(text, folder=folder)
        return self._parsed[key]


class _Search:
    """Looks for skill files in one directory after the other, within limits for all."""

    def __init__(self, disk: DiskCache, deadline_s: float) -> None:
        self._disk = disk
        self._deadline_s = deadline_s
        self._entries = MAX_WALK_ENTRIES
        self._files = MAX_SKILLS
        self._seen: set[Path] = set()
        self.is_cut = False

    def files(self, directory: SkillDirectory, bounds: Bounds) -> Iterator[FoundFile]:
        """Yield the skill files below `directory` that were not seen before, by path."""
        if not bounds.admit(Path(os.path.realpath(directory.path))):
            return
        walk = Walk(bounds, self._entries, MAX_WALK_DEPTH, self._deadline_s)
        for file in walk_files(self._disk, directory.path, walk):
            if file.path.name != FILE_NAME or file.real in self._seen:
                continue
            self._seen.add(file.real)
            if self._files == 0:
                self.is_cut = True
                return
            self._files -= 1
            yield file
        self._entries = max(0, walk.entries)
        self.is_cut |= walk.is_cut


def built_in_location(name: str) -> str:
    """Return where the file of the built-in skill `name` is, for `view`."""
    return f"{SCHEME}{name}/{FILE_NAME}"


@cache
def built_in_source(name: str) -> str:
    """Return the text of the built-in skill `name`."""
    source = resources.files("crush_kernel.prompt").joinpath("skilltexts", name, FILE_NAME)
    return source.read_text(encoding="utf-8")


@cache
def built_in_skills() -> tuple[Skill, ...]:
    """Return the skills that come with the program."""
    return tuple(_built_in(name) for name in BUILT_IN)


def _built_in(name: str) -> Skill:
    text = parse_skill(built_in_source(name), folder=name)
    if isinstance(text, tuple):
        raise TypeError(f"{name}: {', '.join(text)}")
    return Skill(text, "built-in", built_in_location(name))
