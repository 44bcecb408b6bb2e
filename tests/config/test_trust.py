"""Trust holds for one content in one folder, and comes from the user's state alone."""

import json
import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from crush_kernel.config.configfiles import ConfigFiles, read_config_files
from crush_kernel.config.directories import Directories
from crush_kernel.config.trust import ProjectTrust, TrustStore, untrusted_notice
from crush_kernel.errors import ConfigError

SERVER = {"command": "echo", "args": ["a"], "env": {"A": "b"}, "url": "http://a", "headers": {}}


@dataclass(frozen=True)
class World:
    base: Path

    @property
    def store(self) -> TrustStore:
        return TrustStore(self.base / "data")

    def project(self, name: str = "project", **document: object) -> Path:
        (root := self.base / name).mkdir(exist_ok=True)
        (root / "crush.json").write_text(json.dumps(document or {"mcp": {"x": SERVER}}))
        return root

    def open(self, root: Path) -> ProjectTrust:
        directories = Directories(self.base / "config", self.base / "data", self.base / "cache")

        def read(trust: Callable[[Path, str], bool]) -> ConfigFiles:
            return read_config_files(
                {},
                directories,
                cwd=root,
                project_root=root,
                data_directory=root / ".crush",
                trust=trust,
                system_file=self.base / "none",
            )

        return ProjectTrust(read, self.store, root=root)


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(Path(os.path.realpath(tmp_path)))


def test_what_is_trusted_counts_at_once_and_in_the_next_kernel(world: World) -> None:
    root = world.project()
    trust = world.open(root)
    heard: list[ConfigFiles] = []
    trust.on_change = heard.append
    assert not trust.files.is_trusted
    taken = trust.trust(trust.look())
    assert taken.is_trusted
    assert trust.files is taken
    assert heard == [taken]
    assert taken.files[0].document == {"mcp": {"x": SERVER}}
    assert world.open(root).files.is_trusted


@pytest.mark.parametrize(
    "change",
    [
        {"command": "sh"},
        {"args": ["-c", "id"]},
        {"args": []},
        {"env": {"A": "c"}},
        {"url": "http://b"},
        {"headers": {"a": "b"}},
        {"disabled": True},
    ],
    ids=lambda change: next(iter(change)),
)
def test_any_change_asks_again(world: World, change: dict[str, object]) -> None:
    root = world.project()
    trust = world.open(root)
    trust.trust(trust.look())
    world.project(mcp={"x": {**SERVER, **change}})
    assert not world.open(root).files.is_trusted
    assert not trust.look().is_trusted


def test_a_change_of_what_is_harmless_does_not(world: World) -> None:
    root = world.project()
    trust = world.open(root)
    trust.trust(trust.look())
    world.project(mcp={"x": SERVER}, permissions={"deny": ["bash"]})
    assert world.open(root).files.is_trusted


def test_what_changes_after_it_was_shown_is_not_trusted(world: World) -> None:
    root = world.project()
    trust = world.open(root)
    shown = trust.look()
    world.project(hooks={"Stop": [{"command": "touch pwned"}]})
    taken = trust.trust(shown)
    assert not taken.is_trusted
    assert taken.files[0].document == {}


@pytest.mark.parametrize("way", ["copied", "moved", "linked"])
def test_trust_is_for_a_folder(world: World, way: str) -> None:
    root = world.project()
    trust = world.open(root)
    trust.trust(trust.look())
    other = world.base / "other"
    match way:
        case "copied":
            shutil.copytree(root, other)
        case "moved":
            root.rename(other)
        case _:
            other.symlink_to(root)
    real = Path(os.path.realpath(other))
    assert world.open(real).files.is_trusted == (way == "linked")


def test_a_project_cannot_say_that_it_is_trusted(world: World) -> None:
    root = world.project()
    digest = world.open(root).files.digest
    said = json.dumps({"projects": {str(root): digest}})
    for place in (root / "trust.json", root / ".crush/trust.json"):
        place.parent.mkdir(exist_ok=True)
        place.write_text(said)
    assert not world.open(root).files.is_trusted


def test_what_is_forgotten_is_out_of_force(world: World) -> None:
    root = world.project()
    trust = world.open(root)
    trust.trust(trust.look())
    assert not trust.forget().is_trusted
    assert trust.files.files[0].document == {"mcp": {}}
    assert not world.open(root).files.is_trusted


def test_other_projects_stay_trusted(world: World) -> None:
    one, other = world.project("one"), world.project("other")
    for root in (one, other):
        trust = world.open(root)
        trust.trust(trust.look())
    world.store.forget(one)
    assert [world.open(root).files.is_trusted for root in (one, other)] == [False, True]


@pytest.mark.parametrize("content", ["{ no", "[]", '{"projects": 1}', '{"projects": {"x": []}}'])
def test_a_store_that_makes_no_sense_trusts_nothing(world: World, content: str) -> None:
    root = world.project()
    (world.base / "data").mkdir()
    (world.base / "data/trust.json").write_text(content)
    assert not world.open(root).files.is_trusted


def test_what_cannot_be_kept_is_not_trusted(world: World) -> None:
    root = world.project()
    (world.base / "data").write_text("a file where the folder should be")
    trust = world.open(root)
    with pytest.raises(ConfigError):
        trust.trust(trust.look())
    assert not trust.files.is_trusted


def test_the_users_own_files_stay_as_they_were_at_the_start(world: World) -> None:
    root = world.project()
    (world.base / "config").mkdir()
    (mine := world.base / "config/crush.json").write_text('{"options": {}}')
    trust = world.open(root)
    mine.write_text(json.dumps({"hooks": {"Stop": [{"command": "an agent wrote this"}]}}))
    taken = trust.trust(trust.look())
    assert [file.document for file in taken.of("user")] == [{"options": {}}]


def test_the_notice_is_one_sentence_that_says_what_and_where(world: World) -> None:
    odd: dict[str, object] = {"\x1b[2J": 1, "a" * 90: 1}
    (root := world.project()).joinpath("crush.json").write_text(json.dumps({"mcp": SERVER, **odd}))
    trust = world.open(root)
    notice = untrusted_notice(trust.files)
    assert "mcp" in notice
    assert "in crush.json" in notice
    assert "/trust" in notice
    assert "\x1b" not in notice
    assert "a" * 50 not in notice
    trust.trust(trust.look())
    assert untrusted_notice(trust.files) == ""


@pytest.mark.parametrize(
    "document",
    [
        pytest.param({"version": 2}, id="a newer version"),
        pytest.param({"version": "1"}, id="a version that is none"),
        pytest.param({"version": None}, id="a version of nothing"),
        pytest.param({"projects": ["a", "b"]}, id="a list of projects"),
        pytest.param({"projects": None}, id="no projects"),
    ],
)
def test_what_another_version_says_is_neither_trusted_nor_overwritten(
    world: World, document: dict[str, object]
) -> None:
    root = world.project()
    digest = world.open(root).files.digest
    content = json.dumps({"projects": {str(root): digest}, **document})
    (world.base / "data").mkdir()
    (world.base / "data/trust.json").write_text(content)

    assert not world.store.is_trusted(root, digest)
    with pytest.raises(ConfigError, match="not understood"):
        world.store.trust(root, digest)
    with pytest.raises(ConfigError, match="not understood"):
        world.store.forget(root)
    assert (world.base / "data/trust.json").read_text() == content


def test_nothing_in_particular_is_never_trusted(tmp_path: Path) -> None:
    store = TrustStore(tmp_path / "data")
    store.trust(tmp_path, "")
    assert not store.is_trusted(tmp_path, "")
