"""Which configuration files are read, in which order, and what of a project's counts."""

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from crush_kernel.config.configfiles import ConfigFiles, IsTrusted, read_config_files, trust_nothing
from crush_kernel.config.directories import Directories

HOOKS = {"hooks": {"Stop": [{"command": "touch pwned"}]}}


@dataclass(frozen=True)
class World:
    base: Path

    @property
    def root(self) -> Path:
        return self.base / "project"

    def write(self, path: str, document: Mapping[str, object] | str) -> Path:
        file = self.base / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(document if isinstance(document, str) else json.dumps(document))
        return file

    def read(self, cwd: str = "project", trust: IsTrusted = trust_nothing) -> ConfigFiles:
        (folder := self.base / cwd).mkdir(parents=True, exist_ok=True)
        return read_config_files(
            {},
            Directories(self.base / "config", self.base / "data", self.base / "cache"),
            cwd=folder,
            project_root=self.root,
            data_directory=self.root / ".crush",
            trust=trust,
            system_file=self.base / "etc/crush.json",
        )

    def names(self, files: ConfigFiles) -> list[str]:
        return [file.path.relative_to(self.base).as_posix() for file in files.files]


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(Path(os.path.realpath(tmp_path)))


def test_files_are_read_from_the_machine_to_the_nearest_folder(world: World) -> None:
    paths = (
        *("etc/crush.json", "data/crush.json", "config/crush.json"),
        *("project/crush.json", "project/.crush.json", "project/a/crush.json"),
        *("project/a/b/.crush.json", "project/.crush/crush.json"),
    )
    for path in (*paths, "crush.json", "project/other/crush.json", "project/a/b/c/crush.json"):
        world.write(path, {"options": {"disabled_tools": [path]}})
    files = world.read("project/a/b")
    assert world.names(files) == list(paths)
    assert [file.scope for file in files.files] == ["user"] * 3 + ["project"] * 5
    assert files.warnings == ()
    assert files.is_trusted


def test_the_user_counts_whole_and_the_project_without_its_claims(world: World) -> None:
    world.write("config/crush.json", HOOKS)
    world.write("project/crush.json", {**HOOKS, "permissions": {"deny": ["bash"]}})
    files = world.read()
    user, project = files.files
    assert user.document == HOOKS
    assert project.document == {"permissions": {"deny": ["bash"]}}
    assert [claim.keys for claim in files.claims] == [("hooks",)]
    assert not files.is_trusted


def test_a_trusted_project_counts_whole(world: World) -> None:
    world.write("project/crush.json", HOOKS)
    world.write("project/sub/.crush.json", {"env": {"A": "b"}})
    digest = world.read("project/sub").digest
    asked: list[tuple[Path, str]] = []

    def trust(project: Path, wanted: str) -> bool:
        asked.append((project, wanted))
        return wanted == digest

    files = world.read("project/sub", trust)
    assert asked == [(world.root, digest)]
    assert [file.document for file in files.files] == [HOOKS, {"env": {"A": "b"}}]
    assert files.is_trusted
    # From another folder other files count, which is another thing to trust.
    assert not world.read("project", trust).is_trusted


def test_one_bad_file_is_one_sentence(world: World) -> None:
    world.write("config/crush.json", {"options": {}})
    world.write("project/crush.json", "{ no")
    os.mkfifo(world.root / ".crush.json")
    files = world.read()
    assert world.names(files) == ["config/crush.json"]
    assert len(files.warnings) == 2
    assert "project/crush.json is not valid JSON" in files.warnings[0]
    assert "project/.crush.json cannot be read" in files.warnings[1]


def test_the_users_own_file_in_a_project_is_the_users(world: World) -> None:
    world.write("config/crush.json", HOOKS)
    world.root.mkdir()
    (world.root / "crush.json").symlink_to(world.base / "config/crush.json")
    files = world.read()
    assert [file.scope for file in files.files] == ["user"]
    assert files.is_trusted


def test_nothing_above_the_root_is_read(world: World) -> None:
    world.write("crush.json", HOOKS)
    world.write("elsewhere/crush.json", {"options": {}})
    assert world.names(world.read("elsewhere")) == ["elsewhere/crush.json"]
    assert world.names(world.read("project/x")) == []
