"""Which memory files are found, in which order, and what a hostile project cannot do."""

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from crush_kernel.prompt.diskcache import DiskCache
from crush_kernel.prompt.memory import (
    MAX_FILE_BYTES,
    MAX_FILES,
    MAX_GLOBAL_BYTES,
    MAX_PROJECT_BYTES,
    Memory,
    MemoryFiles,
    MemoryPlaces,
)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "project").mkdir()
    return tmp_path / "project"


def places(project: Path, *, cwd: str = ".") -> MemoryPlaces:
    return MemoryPlaces(
        cwd=project if cwd == "." else project / cwd,
        project_root=project,
        config=project.parent / "config/crush",
        home=project.parent / "home",
        environ={"DOCS": str(project / "docs"), "NAME": "docs"},
    )


def write(path: Path, text: str = "text") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def read(where: MemoryPlaces) -> Memory:
    return MemoryFiles(where, DiskCache()).read()


def paths(memory: Memory) -> list[str]:
    return [file.path for file in memory.files]


@pytest.mark.parametrize(
    "name",
    [
        "AGENTS.md",
        "agents.md",
        "Agents.md",
        "AGENTS.local.md",
        "CLAUDE.md",
        "CLAUDE.local.md",
        "Claude.MD",
        "CRUSH.md",
        "Crush.local.md",
        "crush.md",
        "GEMINI.md",
        "gemini.md",
        ".cursorrules",
        ".cursor/rules/style.mdc",
        ".cursor/rules/deep/er/style.mdc",
        ".github/copilot-instructions.md",
    ],
)
def test_a_memory_file_is_read(project: Path, name: str) -> None:
    write(project / name, "be good\n")
    memory = read(places(project))
    assert [(file.path, file.text) for file in memory.files] == [(name, "be good")]
    assert not memory.notices


@pytest.mark.parametrize("name", ["README.md", "agents.txt", "docs/AGENTS.md", ".github/other.md"])
def test_another_file_is_not(project: Path, name: str) -> None:
    write(project / name)
    assert not read(places(project)).files


def test_every_spelling_that_exists_is_read(project: Path) -> None:
    for name in ("agents.md", "AGENTS.md", "Agents.md"):
        write(project / name, name)
    assert paths(read(places(project))) == ["AGENTS.md", "Agents.md", "agents.md"]


def test_files_come_from_the_root_down_to_the_folder_then_the_users_own(project: Path) -> None:
    for name in ("AGENTS.md", ".cursorrules", "a/CRUSH.md", "a/b/AGENTS.md", "other/AGENTS.md"):
        write(project / name, name)
    (project / "a/b/c").mkdir()
    for name in ("config/crush/CRUSH.md", "config/AGENTS.md"):
        write(project.parent / name, name)
    memory = read(places(project, cwd="a/b/c"))
    assert [file.text for file in memory.files] == [
        ".cursorrules",
        "AGENTS.md",
        "a/CRUSH.md",
        "a/b/AGENTS.md",
        "config/crush/CRUSH.md",
        "config/AGENTS.md",
    ]
    assert paths(memory)[:2] == ["../../../.cursorrules", "../../../AGENTS.md"]
    assert [file.is_global for file in memory.files] == [False] * 4 + [True] * 2


@pytest.mark.parametrize("link", [os.symlink, os.link], ids=["symbolic", "hard"])
def test_a_file_with_two_names_is_read_once(
    project: Path, link: Callable[[Path, Path], None]
) -> None:
    write(project / "AGENTS.md")
    link(project / "AGENTS.md", project / "CLAUDE.md")
    memory = read(places(project))
    assert paths(memory) == ["AGENTS.md"]
    assert not memory.notices


@pytest.mark.parametrize(
    "text", ["docs", "docs/", "./docs/a.md", "$DOCS", "${DOCS}/a.md", "$NAME/a.md"]
)
def test_context_paths_name_files_and_folders(project: Path, text: str) -> None:
    write(project / "docs/a.md", "a")
    assert paths(read(replace(places(project), context_paths=(text,)))) == ["docs/a.md"]


@pytest.mark.parametrize("text", ["none.md", "$UNSET/a.md", "", "a\0b", "~x/a.md"])
def test_a_context_path_that_leads_nowhere_is_passed_over(project: Path, text: str) -> None:
    assert read(replace(places(project), context_paths=(text,))) == Memory()


def test_context_paths_in_full_may_lie_outside(project: Path) -> None:
    write(project.parent / "home/rules.md", "mine")
    memory = read(replace(places(project), context_paths=("~/rules.md",)))
    assert [file.text for file in memory.files] == ["mine"]


def test_global_context_paths_replace_the_usual_ones(project: Path) -> None:
    write(project.parent / "config/crush/CRUSH.md", "usual")
    write(project.parent / "home/mine.md", "mine")
    memory = read(replace(places(project), global_context_paths=("~/mine.md",)))
    assert [(file.text, file.is_global) for file in memory.files] == [("mine", True)]


@pytest.mark.parametrize(
    ("data", "text"),
    [
        pytest.param(b"\xef\xbb\xbfgood\r\nday\r\n", "good\nday", id="utf-8 with mark"),
        pytest.param("\ufeffgüt".encode("utf-16-le"), "güt", id="utf-16"),
        pytest.param("größer und schöner".encode("latin-1"), "größer und schöner", id="latin-1"),
    ],
)
def test_text_is_decoded(project: Path, data: bytes, text: str) -> None:
    (project / "AGENTS.md").write_bytes(data)
    assert [file.text for file in read(places(project)).files] == [text]


def test_what_people_do_not_see_the_agent_does_not_get_and_it_is_said(project: Path) -> None:
    write(project / "AGENTS.md", "Be\u200b nice.\U000e006f\U000e006b\n")
    memory = read(places(project))
    assert [(file.text, file.hidden) for file in memory.files] == [("Be nice.", 3)]
    (notice,) = memory.notices
    assert notice.startswith("AGENTS.md holds 3 hidden characters, which the agent does not get")


def test_what_is_no_text_is_refused_with_a_notice(project: Path) -> None:
    (project / "AGENTS.md").write_bytes(b"\x7fELF\0\0\1")
    memory = read(places(project))
    assert not memory.files
    assert memory.notices == ("AGENTS.md is not read as memory: it is no text.",)


def test_a_binary_file_in_a_folder_of_rules_is_passed_over(project: Path) -> None:
    write(project / ".cursor/rules/a.mdc")
    (project / ".cursor/rules/b.png").write_bytes(b"\x89PNG\0\0")
    memory = read(places(project))
    assert paths(memory) == [".cursor/rules/a.mdc"]
    assert not memory.notices


# --- Limits ---


def test_a_long_file_is_cut_between_lines_and_says_so(project: Path) -> None:
    write(project / "AGENTS.md", "ein Satz über alles\n" * 10_000)
    (file,) = read(places(project)).files
    assert file.is_cut
    assert MAX_FILE_BYTES - 100 < len(file.text.encode()) <= MAX_FILE_BYTES
    assert file.text.endswith("ein Satz über alles")


def test_the_user_hears_of_a_cut(project: Path) -> None:
    write(project / "AGENTS.md", "x" * (MAX_FILE_BYTES + 1))
    (notice,) = read(places(project)).notices
    assert "AGENTS.md is too long" in notice
    assert f"its first {MAX_FILE_BYTES // 1000} kB" in notice


def test_a_file_of_exactly_the_limit_is_whole(project: Path) -> None:
    write(project / "AGENTS.md", "x" * MAX_FILE_BYTES)
    (file,) = read(places(project)).files
    assert not file.is_cut


def test_a_project_cannot_crowd_out_the_users_own_files(project: Path) -> None:
    for number in range(9):
        write(project / f".cursor/rules/{number}.md", "x\n" * 15_000)
    write(project.parent / "config/crush/CRUSH.md", "mine")
    memory = read(places(project))
    project_bytes = sum(len(file.text) for file in memory.files if not file.is_global)
    assert MAX_PROJECT_BYTES - 1_000 < project_bytes <= MAX_PROJECT_BYTES
    assert memory.files[-1].text == "mine"
    assert memory.left_out == tuple(f".cursor/rules/{number}.md" for number in range(4, 9))
    assert "5 memory files do not fit" in memory.notices[-1]


def test_the_users_own_files_have_a_limit_too(project: Path) -> None:
    for name in ("config/crush/CRUSH.md", "config/AGENTS.md"):
        write(project.parent / name, "x\n" * 20_000)
    memory = read(places(project))
    assert sum(len(file.text) for file in memory.files) <= MAX_GLOBAL_BYTES
    assert memory.files[-1].is_cut


def test_a_huge_folder_is_searched_in_part(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("crush_kernel.prompt.memory.MAX_WALK_ENTRIES", 20)
    rules = project / ".cursor/rules"
    rules.mkdir(parents=True)
    for number in range(20):
        (rules / f"{number:05}.md").touch()
    write(rules / "zzz.md")
    memory = read(places(project))
    assert not memory.files
    assert ".cursor/rules holds too much" in memory.notices[0]


def test_what_has_no_room_is_not_even_read(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("crush_kernel.prompt.diskcache.open_real", tried := Tried())
    for number in range(2 * MAX_FILES):
        write(project / f".cursor/rules/{number:05}.md")
    memory = read(places(project))
    assert len(memory.files) == len(tried.paths) == MAX_FILES
    assert len(memory.left_out) == MAX_FILES


class Tried:
    """Opens files and notes which."""

    def __init__(self) -> None:
        self.paths: list[Path] = []

    def __call__(self, path: Path) -> int:
        self.paths.append(path)
        return os.open(path, os.O_RDONLY)


# --- A hostile project ---


def test_many_rules_crowd_out_neither_files_by_name_nor_the_users_own(project: Path) -> None:
    for number in range(MAX_FILES + 1):
        write(project / f".cursor/rules/{number:05}.md")
    for path in ("CRUSH.md", "sub/AGENTS.md"):
        write(project / path)
    write(project.parent / "config/crush/CRUSH.md")
    found = paths(read(places(project, cwd="sub")))
    assert found[:2] == ["../CRUSH.md", "AGENTS.md"]
    assert found[-1].endswith("config/crush/CRUSH.md")


@pytest.mark.parametrize("name", ["AGENTS.md", ".cursor/rules", ".cursor/rules/a.md", ".cursor"])
def test_a_link_out_of_the_project_brings_nothing_in(project: Path, name: str) -> None:
    secret = write(project.parent / "home/rules/id.md", "SECRET")
    target = {"AGENTS.md": secret, ".cursor/rules/a.md": secret, ".cursor": secret.parent.parent}
    link = project / name
    link.parent.mkdir(parents=True, exist_ok=True)
    link.symlink_to(target.get(name, secret.parent))
    memory = read(places(project))
    assert not memory.files
    if name != ".cursor/rules/a.md":
        assert "leads to where agents read nothing unasked" in memory.notices[0]


def test_a_relative_context_path_does_not_leave_the_project(project: Path) -> None:
    write(project.parent / "secret.md", "SECRET")
    memory = read(replace(places(project), context_paths=("../secret.md",)))
    assert not memory.files


@pytest.mark.parametrize("text", [".ssh/id_rsa", "~/.ssh/id_rsa", ".ssh"])
def test_folders_for_keys_are_never_read(project: Path, text: str) -> None:
    write(project / ".ssh/id_rsa", "SECRET")
    write(project.parent / "home/.ssh/id_rsa", "SECRET")
    assert not read(replace(places(project), context_paths=(text,))).files
    assert not read(replace(places(project), global_context_paths=(text,))).files


def test_a_link_to_a_key_in_the_home_folder_is_not_followed(project: Path) -> None:
    write(project / ".ssh/id_rsa", "SECRET")
    (project / "AGENTS.md").symlink_to(".ssh/id_rsa")
    assert not read(places(project)).files


@pytest.mark.parametrize("name", ["AGENTS.md", ".cursor/rules/a.md"])
def test_a_pipe_is_not_waited_for(project: Path, name: str) -> None:
    (project / ".cursor/rules").mkdir(parents=True)
    os.mkfifo(project / name)
    assert not read(places(project)).files


def test_a_device_is_not_read(project: Path) -> None:
    memory = read(replace(places(project), context_paths=("/dev/zero",)))
    assert memory.notices == ("/dev/zero is not read as memory: it is no regular file.",)


def test_links_in_a_circle_end(project: Path) -> None:
    write(project / ".cursor/rules/a.md")
    (project / ".cursor/rules/again").symlink_to(project / ".cursor/rules")
    (project / "AGENTS.md").symlink_to("AGENTS.md")
    assert paths(read(places(project))) == [".cursor/rules/a.md"]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_that_may_not_be_read_is_told(project: Path) -> None:
    write(project / "AGENTS.md").chmod(0)
    assert "permission denied" in read(places(project)).notices[0]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_a_global_file_of_another_user_is_not_read(project: Path) -> None:
    os.chown(write(project.parent / "config/AGENTS.md"), 12345, 12345)
    memory = read(places(project))
    assert not memory.files
    assert "belongs to another user" in memory.notices[0]


# --- Again and again ---


def test_a_change_is_seen_at_once(project: Path) -> None:
    files = MemoryFiles(places(project), DiskCache())
    assert not files.read().files
    for text in ("one", "two"):
        write(project / "AGENTS.md", text)
        assert [file.text for file in files.read().files] == [text]
    (project / "AGENTS.md").unlink()
    assert not files.read().files
