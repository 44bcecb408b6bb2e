"""Which custom agents are found, which one counts, and what the model sees of them."""

import os
from pathlib import Path

import pytest

from crush_kernel.config.skilldirectories import SkillDirectory
from crush_kernel.prompt.agents import (
    MAX_AGENT_BYTES,
    MAX_AGENTS,
    MAX_LISTED_BYTES,
    AgentFiles,
    CustomAgent,
    CustomAgents,
)
from crush_kernel.prompt.diskcache import DiskCache
from crush_kernel.prompt.headedfiles import MAX_NOTICES, FaultyFile, Override


class Place:
    """A project, and a user's directory of agents beside it."""

    def __init__(self, folder: Path) -> None:
        self.project = Path(os.path.realpath(folder)) / "project"
        self.cwd = self.project / "sub"
        self.own = self.project.parent / "home/.claude/agents"
        self.root = self.project / ".claude/agents"
        self.near = self.cwd / ".crush/agents"
        for directory in (self.own, self.root, self.near):
            directory.mkdir(parents=True)

    def files(self) -> AgentFiles:
        directories = (
            SkillDirectory(self.own, "global"),
            SkillDirectory(self.root, "project"),
            SkillDirectory(self.near, "project"),
        )
        return AgentFiles(directories, DiskCache(), cwd=self.cwd, project_root=self.project)

    def read(self) -> CustomAgents:
        return self.files().read()


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def write(
    directory: Path, name: str, *more: str, description: str = "Does it.", body: str = "Body."
) -> Path:
    path = directory / f"{name}.md"
    header = "\n".join((f"description: {description}", *more))
    path.write_text(f"---\n{header}\n---\n{body}\n", encoding="utf-8")
    return path


def names(agents: CustomAgents) -> list[str]:
    return [agent.name for agent in agents.active]


def test_an_agent_is_what_its_file_says(place: Place) -> None:
    write(place.root, "reviewer", "tools: Read", "model: haiku", description="Reviews.", body="Go.")
    assert place.read().active == (
        CustomAgent(
            name="reviewer",
            description="Reviews.",
            tools=("view",),
            model="small",
            text="Go.",
            location="../.claude/agents/reviewer.md",
        ),
    )


def test_agents_are_found_in_all_directories_in_order_of_their_names(place: Place) -> None:
    write(place.near, "b")
    write(place.own, "c")
    write(place.root, "a")
    found = place.read()
    assert names(found) == ["a", "b", "c"]
    assert [agent.location for agent in found.active] == [
        "../.claude/agents/a.md",
        ".crush/agents/b.md",
        str(place.own / "c.md"),
    ]
    assert found.named("b") is found.active[1]
    assert found.named("d") is None


def test_the_nearer_agent_of_a_name_counts_and_that_is_said(place: Place) -> None:
    write(place.own, "x")
    write(place.root, "x")
    write(place.near, "y", "name: x")
    found = place.read()
    (agent,) = found.active
    assert agent.location == ".crush/agents/y.md"
    assert found.overrides == (
        Override("x", "../.claude/agents/x.md", str(place.own / "x.md")),
        Override("x", ".crush/agents/y.md", "../.claude/agents/x.md"),
    )
    assert "The agent x is the one in .crush/agents/y.md" in found.notices[1]


def test_a_faulty_file_does_not_take_the_place_of_a_good_one(place: Place) -> None:
    write(place.root, "x")
    write(place.near, "x", description="")
    found = place.read()
    assert names(found) == ["x"]
    assert found.faulty == (FaultyFile(".crush/agents/x.md", ("description is missing",)),)
    assert found.notices == (
        "The agent .crush/agents/x.md cannot be used: description is missing.",
    )


def test_what_is_wrong_with_an_agent_that_can_be_used_is_told(place: Place) -> None:
    write(place.near, "x", "tools: Fly")
    assert place.read().notices == ("The agent .crush/agents/x.md: there is no tool 'Fly'.",)


@pytest.mark.parametrize("name", ["README.md", "readme.md", ".hidden.md", "notes.txt", "x.md~"])
def test_what_is_no_agent_is_passed_over(place: Place, name: str) -> None:
    (place.near / name).write_text("About the agents here.", encoding="utf-8")
    (place.near / "folder.md").mkdir()
    assert place.read() == CustomAgents()


def test_links_out_of_the_project_and_to_keys_lead_nowhere(place: Place) -> None:
    write(place.own, "x")
    outside = write(place.project.parent, "out")
    keys = place.project / ".ssh"
    keys.mkdir()
    (place.near / "out.md").symlink_to(outside)
    (place.near / "keys.md").symlink_to(write(keys, "k"))
    (place.near / "gone.md").symlink_to(place.near / "nowhere")
    (place.near / "loop.md").symlink_to(place.near / "loop.md")
    (place.near / "within.md").symlink_to(write(place.project, "w"))
    found = place.read()
    assert names(found) == ["within", "x"]
    assert {faulty.location.rpartition("/")[2]: faulty.faults[0] for faulty in found.faulty} == {
        "gone.md": "it cannot be read",
        "keys.md": "it leads out of the project",
        "loop.md": "it cannot be read",
        "out.md": "it leads out of the project",
    }


def test_a_directory_that_is_a_link_out_of_the_project_is_not_read(place: Place) -> None:
    write(place.own, "x")
    place.near.rmdir()
    place.near.symlink_to(place.own)
    files = AgentFiles(
        (SkillDirectory(place.near, "project"),),
        DiskCache(),
        cwd=place.cwd,
        project_root=place.project,
    )
    assert files.read() == CustomAgents()


@pytest.mark.parametrize(
    ("data", "fault"),
    [
        pytest.param(b"\x00\x01\x02" * 99, "it is no text", id="no text"),
        pytest.param(b"---\n", "is not ended", id="cut off"),
        pytest.param(b"x" * (MAX_AGENT_BYTES + 1), "it is longer than 100 kB", id="too long"),
        pytest.param(b"", "does not begin", id="empty"),
    ],
)
def test_a_broken_file_is_told_and_harms_nothing(place: Place, data: bytes, fault: str) -> None:
    write(place.near, "good")
    (place.near / "bad.md").write_bytes(data)
    found = place.read()
    assert names(found) == ["good"]
    assert fault in found.faulty[0].faults[0]


def test_a_pipe_is_not_waited_for(place: Place) -> None:
    os.mkfifo(place.near / "pipe.md")
    assert place.read() == CustomAgents()


def test_a_name_that_hides_something_is_told_in_escapes(place: Place) -> None:
    write(place.near, "a\u202eb", "name: a")
    found = place.read()
    assert found.active == ()
    assert found.faulty[0].location == ".crush/agents/a\\u202eb.md"


def test_a_change_is_seen_at_once(place: Place) -> None:
    files = place.files()
    assert files.read() == CustomAgents()
    path = write(place.near, "x")
    assert names(files.read()) == ["x"]
    write(place.near, "x", description="Other.")
    assert files.read().active[0].description == "Other."
    path.unlink()
    assert files.read() == CustomAgents()


def test_a_flood_of_agents_is_bounded_and_told(place: Place) -> None:
    for number in range(MAX_AGENTS + 20):
        write(place.near, f"a{number}", description="d" * 7_000)
    found = place.read()
    assert len(found.active) == MAX_AGENTS
    assert found.is_cut
    listed = sum(len(f"{e.name}{e.description}{e.location}".encode()) for e in found.listed)
    assert listed <= MAX_LISTED_BYTES
    assert all(entry.description.endswith("…") for entry in found.listed)
    assert found.notices == (
        f"{MAX_AGENTS - len(found.listed)} agents are more than the agent is told of.",
    )


def test_the_users_own_agents_have_room_before_the_projects(place: Place) -> None:
    write(place.own, "zz")
    for number in range(60):
        write(place.near, f"a{number}", description="d" * 7_000)
    assert place.read().listed[-1].name == "zz"


def test_many_faults_are_told_in_short(place: Place) -> None:
    for number in range(9):
        write(place.near, f"a{number}", description="")
    notices = place.read().notices
    assert len(notices) == MAX_NOTICES + 1
    assert notices[-1] == "6 more to say about agents: /agents tells it."
