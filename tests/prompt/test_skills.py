"""Which skills are found, which one counts, and what is open to the model because of them."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from crush_kernel.config.skilldirectories import SkillDirectory
from crush_kernel.prompt.diskcache import DiskCache
from crush_kernel.prompt.headedfiles import Override
from crush_kernel.prompt.skills import (
    BUILT_IN,
    MAX_LISTED_BYTES,
    MAX_SKILL_BYTES,
    SkillFiles,
    built_in_location,
    built_in_skills,
    built_in_source,
)


class Place:
    """A project, and a user's directory of skills beside it."""

    def __init__(self, folder: Path) -> None:
        self.project = folder / "project"
        self.own = folder / "home/skills"
        self.theirs = self.project / ".claude/skills"
        for directory in (self.own, self.theirs):
            directory.mkdir(parents=True)

    def files(self, *disabled: str) -> SkillFiles:
        directories = (SkillDirectory(self.own, "global"), SkillDirectory(self.theirs, "project"))
        cwd = self.project / "sub"
        cwd.mkdir(exist_ok=True)
        return SkillFiles(
            directories, DiskCache(), cwd=cwd, project_root=self.project, disabled=disabled
        )


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def write(folder: Path, *more: str, description: str = "Does it.") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    header = "\n".join((f"name: {folder.name}", f"description: {description}", *more))
    (folder / "SKILL.md").write_text(f"---\n{header}\n---\nBody.\n", encoding="utf-8")
    return folder / "SKILL.md"


def own_names(files: SkillFiles) -> list[str]:
    return [skill.name for skill in files.read().active if skill.path is not None]


@pytest.mark.parametrize("name", BUILT_IN)
def test_a_built_in_skill_is_fit_for_use(name: str) -> None:
    (skill,) = [each for each in built_in_skills() if each.name == name]
    assert skill.text.is_model_invocable
    assert skill.text.is_user_invocable
    assert len(skill.text.body) > 1_000
    assert skill.location == f"crush://skills/{name}/SKILL.md"


def test_a_skill_is_found_at_any_depth_and_named_for_view(place: Place) -> None:
    write(place.own / "a/b/mine")
    write(place.theirs / "theirs")
    locations = {skill.name: skill.location for skill in place.files().read().active}
    assert locations["mine"] == str(place.own / "a/b/mine/SKILL.md")
    assert locations["theirs"] == "../.claude/skills/theirs/SKILL.md"


def test_the_later_skill_of_a_name_counts_and_that_is_said(place: Place) -> None:
    write(place.own / "jq")
    theirs = write(place.theirs / "jq")
    found = place.files().read()
    (skill,) = [each for each in found.active if each.name == "jq"]
    assert skill.path == theirs
    assert found.overrides == (
        Override("jq", str(place.own / "jq/SKILL.md"), built_in_location("jq")),
        Override("jq", "../.claude/skills/jq/SKILL.md", str(place.own / "jq/SKILL.md")),
    )
    assert all("The skill jq is the one in " in notice for notice in found.notices)


def test_a_faulty_skill_does_not_replace_a_good_one(place: Place) -> None:
    write(place.own / "notes")
    write(place.theirs / "notes", "user-invocable: maybe", description="")
    found = place.files().read()
    assert found.named("notes") is not None
    (faulty,) = found.faulty
    assert faulty.location == "../.claude/skills/notes/SKILL.md"
    assert len(faulty.faults) == 2
    assert "cannot be used: description is missing." in found.notices[0]


def test_disabled_skills_are_not_used(place: Place) -> None:
    write(place.own / "notes")
    found = place.files("notes", "jq").read()
    assert [skill.name for skill in found.active] == ["crush-config", "crush-hooks"]
    assert [skill.name for skill in found.disabled] == ["jq", "notes"]
    assert not {entry.name for entry in found.listed} & {"jq", "notes"}


def test_the_model_and_the_user_see_what_is_meant_for_them(place: Place) -> None:
    write(place.own / "both", "user-invocable: true")
    write(place.own / "model")
    write(place.own / "user", "user-invocable: true", "disable-model-invocation: true")
    found = place.files(*BUILT_IN).read()
    assert [entry.name for entry in found.listed] == ["both", "model"]
    assert [skill.name for skill in found.invocable] == ["both", "user"]


def test_a_change_is_seen_at_once(place: Place) -> None:
    files = place.files()
    assert not own_names(files)
    path = write(place.own / "notes")
    assert own_names(files) == ["notes"]
    write(place.own / "notes", description="Now this.")
    skill = files.read().named("notes")
    assert skill is not None
    assert skill.text.description == "Now this."
    path.unlink()
    assert not own_names(files)


def test_the_list_in_the_prompt_has_a_limit_that_the_project_meets_first(place: Place) -> None:
    for number in range(40):
        write(place.theirs / f"a{number}", description="x" * 1_000)
    write(place.own / "zebra")
    found = place.files().read()
    names = {entry.name for entry in found.listed}
    assert {*BUILT_IN, "zebra"} <= names
    assert sum(len(entry.description) for entry in found.listed) <= MAX_LISTED_BYTES
    assert "skills are more than the agent is told of" in found.notices[-1]


def test_many_faults_are_summed_up(place: Place) -> None:
    for number in range(9):
        write(place.own / f"bad{number}", description="")
    assert found_last(place) == "6 more to say about skills: /skills tells it."


def found_last(place: Place) -> str:
    notices = place.files().read().notices
    assert len(notices) == 4
    return notices[-1]


# --- Links, and what a stranger's project may try ---


def test_links_of_the_user_are_followed_and_circles_end(place: Place) -> None:
    write(place.own.parent / "elsewhere/notes")
    (place.own / "linked").symlink_to(place.own.parent / "elsewhere")
    (place.own / "again").symlink_to(place.own)
    assert own_names(place.files()) == ["notes"]


def test_one_file_by_two_ways_is_one_skill(place: Place) -> None:
    write(place.own / "notes")
    (place.own / "zz").symlink_to(place.own / "notes")
    assert not place.files().read().overrides


def _folder_out(place: Place) -> None:
    write(place.own.parent / "private/notes")
    (place.theirs / "notes").symlink_to(place.own.parent / "private/notes")


def _file_out(place: Place) -> None:
    secret = write(place.own.parent / "private/notes")
    (place.theirs / "notes").mkdir()
    (place.theirs / "notes/SKILL.md").symlink_to(secret)


def _directory_out(place: Place) -> None:
    write(place.own.parent / "private/notes")
    place.theirs.rmdir()
    place.theirs.symlink_to(place.own.parent / "private")


def _pipe(place: Place) -> None:
    (place.theirs / "notes").mkdir()
    os.mkfifo(place.theirs / "notes/SKILL.md")


def _keys(place: Place) -> None:
    write(place.project / ".ssh/notes")
    (place.theirs / "notes").symlink_to(place.project / ".ssh/notes")


def _huge(place: Place) -> None:
    with write(place.theirs / "notes").open("a", encoding="utf-8") as file:
        file.write("x" * MAX_SKILL_BYTES)


def _binary(place: Place) -> None:
    write(place.theirs / "notes").write_bytes(b"---\nname: notes\0")


def _hiding(place: Place) -> None:
    write(place.theirs / "\u202enotes")


@pytest.mark.parametrize(
    "prepare", [_folder_out, _file_out, _directory_out, _pipe, _keys, _huge, _binary, _hiding]
)
def test_a_project_brings_no_such_skill(place: Place, prepare: Callable[[Place], None]) -> None:
    prepare(place)
    assert not own_names(place.files())


def test_a_folder_without_end_is_searched_in_part(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("crush_kernel.prompt.skills.MAX_WALK_ENTRIES", 20)
    for number in range(20):
        (place.theirs / f"{number:04}").touch()
    write(place.theirs / "zz")
    found = place.files().read()
    assert found.is_cut
    assert found.named("zz") is None


# --- What view may read ---


def test_the_folder_of_a_skill_in_use_is_open(place: Place) -> None:
    path = write(place.own / "notes")
    files = place.files()
    assert not files.covers(path)
    files.read()
    assert files.covers(path.parent / "references/more.md")
    assert files.name_of(path) == "notes"
    assert not files.name_of(path.parent / "references/more.md")
    for other in (place.own, place.own / "other/x", path.parent / ".ssh/id", path.parent.parent):
        assert not files.covers(other)


def test_the_folder_of_a_disabled_or_faulty_skill_is_not(place: Place) -> None:
    off, bad = write(place.own / "off"), write(place.own / "bad", description="")
    files = place.files("off")
    files.read()
    assert not files.covers(off)
    assert not files.covers(bad)


@pytest.mark.parametrize(
    "location",
    [
        "crush://skills/none/SKILL.md",
        "crush://skills/jq",
        "crush://skills/jq/other.md",
        "crush://skills/../skills/jq/SKILL.md",
        "crush://skills//SKILL.md",
        "jq",
        "",
    ],
)
def test_only_the_files_of_built_in_skills_are_behind_their_scheme(
    place: Place, location: str
) -> None:
    assert place.files().built_in(location) is None
    assert place.files().built_in("crush://skills/jq/SKILL.md") == built_in_source("jq")
