"""What the file of a custom agent may say, and how its faults are told."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crush_kernel.prompt.agenttext import (
    HANDED_OVER,
    MAX_DESCRIPTION_BYTES,
    AgentText,
    parse_agent,
)
from crush_kernel.toolnames import TOOLS

CLAUDES = (
    "---\n"
    "name: reviewer\n"
    "description: Use this agent when code was written. Examples:\\n\\n<example>\\nuser: done\n"
    "tools: Read, Grep, Bash\n"
    "model: haiku\n"
    "color: red\n"
    "---\n\n"
    "You review code.\n"
)


def agent(header: str, body: str = "Do it.", *, stem: str = "notes") -> AgentText:
    found = parse_agent(f"---\n{header}\n---\n{body}\n", stem=stem)
    assert isinstance(found, AgentText), found
    return found


def faults(header: str, body: str = "Do it.", *, stem: str = "notes") -> tuple[str, ...]:
    found = parse_agent(f"---\n{header}\n---\n{body}\n", stem=stem)
    assert isinstance(found, tuple), found
    return found


def test_a_description_is_all_that_a_header_needs() -> None:
    assert agent("description: Writes notes.") == AgentText("notes", "Writes notes.", "Do it.")


def test_an_agent_is_called_what_its_header_says() -> None:
    assert agent("name: On\ndescription: d").name == "On"


def test_what_claude_code_writes_is_read_though_it_is_no_yaml() -> None:
    assert parse_agent(CLAUDES, stem="reviewer") == AgentText(
        name="reviewer",
        description="Use this agent when code was written. Examples: <example> user: done",
        body="You review code.",
        tools=("view", "grep", "bash", "job_output", "job_kill"),
        model="small",
    )


@pytest.mark.parametrize(
    ("written", "tools"),
    [
        pytest.param("tools: view, grep", ("view", "grep"), id="commas"),
        pytest.param("tools: view grep", ("view", "grep"), id="blanks"),
        pytest.param("tools: [view, Grep]", ("view", "grep"), id="list on one line"),
        pytest.param("tools:\n- view\n- Read\n- grep", ("view", "grep"), id="list, one twice"),
        pytest.param("tools: Edit, MultiEdit, Write", ("edit", "multiedit", "write"), id="edits"),
        pytest.param("tools: LS, Glob, NotebookEdit", ("ls", "glob", "notebook_edit"), id="files"),
        pytest.param("tools: WebFetch, WebSearch", ("fetch", "web_search"), id="web"),
        pytest.param("tools: TodoWrite, Task", ("todos", "agent"), id="others"),
        pytest.param("tools: []", (), id="none at all"),
        pytest.param("tools:", None, id="nothing said"),
        pytest.param("tools: '*'", HANDED_OVER, id="all"),
        pytest.param("color: red", None, id="not mentioned"),
    ],
)
def test_tools_are_named_as_here_or_as_in_claude_code(
    written: str, tools: tuple[str, ...] | None
) -> None:
    found = agent(f"description: d\n{written}")
    assert found.tools == tools
    assert found.problems == ()
    assert TOOLS.issuperset(found.tools or ())


def test_what_people_do_not_see_is_not_in_an_agent_and_that_is_told() -> None:
    text = "---\ndescription: Looks\u200b.\n---\nDo\U000e006f\U000e006b it.\n"
    found = parse_agent(text, stem="looker")
    assert isinstance(found, AgentText)
    assert (found.description, found.body) == ("Looks.", "Do it.")
    assert found.problems == ("it holds 3 hidden characters, which it does not get",)


@pytest.mark.parametrize(
    ("written", "tools", "problem"),
    [
        ("tools: view, Reed", ("view",), "there is no tool 'Reed'"),
        ("tools: Bash(git:*)", (), "there is no tool 'Bash(git:*)'"),
        ("tools: [view, {a: b}]", (), "tools is no list of names"),
        ("tools: {view: yes}", (), "tools is no list of names"),
        ("tools: [view, '']", (), "tools is no list of names"),
        ("tools: a b c d e f g", (), "'a', 'b', 'c', 'd', 'e' and 2 more"),
        ('tools: "x\\u202e"', (), "'x\\u202e'"),
    ],
)
def test_an_agent_has_no_tool_that_nobody_meant(
    written: str, tools: tuple[str, ...], problem: str
) -> None:
    found = agent(f"description: d\n{written}")
    assert found.tools == tools
    (told,) = found.problems
    assert problem in told


@pytest.mark.parametrize(
    ("written", "model"),
    [
        ("color: red", "large"),
        ("model:", "large"),
        ("model: inherit", "large"),
        ("model: large", "large"),
        ("model: Opus", "large"),
        ("model: sonnet", "large"),
        ("model: small", "small"),
        ("model: haiku", "small"),
        ("model: acme/big-1", "acme/big-1"),
        ("model: openrouter/acme/big:free", "openrouter/acme/big:free"),
    ],
)
def test_the_model_is_named_in_words_or_by_its_label(written: str, model: str) -> None:
    found = agent(f"description: d\n{written}")
    assert (found.model, found.problems) == (model, ())


@pytest.mark.parametrize(
    "written", ["gpt-9", "a b/c", "[small]", "/x", f"a/{'x' * 999}", '"a/\\u202e"']
)
def test_of_a_model_that_makes_no_sense_the_large_one_takes_the_place(written: str) -> None:
    found = agent(f"description: d\nmodel: {written}")
    assert found.model == "large"
    assert "there is no model" in found.problems[0]


@pytest.mark.parametrize(
    ("header", "fault"),
    [
        pytest.param("name: notes", "description is missing", id="no description"),
        pytest.param("description: [a]", "description is no text", id="description is a list"),
        pytest.param(
            "description: " + "d" * (MAX_DESCRIPTION_BYTES + 1), "8,193 bytes", id="endless"
        ),
        pytest.param("name: a b\ndescription: d", "name is not made of", id="blank in the name"),
        pytest.param("name: ../x\ndescription: d", "name is not made of", id="path as the name"),
        pytest.param("name: [x]\ndescription: d", "name is no text", id="list as the name"),
        pytest.param("name: Task\ndescription: d", "built-in agent", id="name of the built-in"),
        pytest.param("- a", "no list of names and values", id="list"),
        pytest.param(
            "description: a: b\ntools:\n- Bash", "not YAML", id="lines that might mean more"
        ),
        pytest.param("description: &a d\ntools: *a", "aliases", id="aliases"),
        pytest.param("x: " + "[" * 50, "nested more than 10 deep", id="deep"),
        pytest.param("description: d\nx: " + "x" * 20_000, "longer than 16 KiB", id="long header"),
    ],
)
def test_faults_are_told(header: str, fault: str) -> None:
    assert fault in faults(header)[0]


def test_all_faults_are_told_at_once() -> None:
    assert len(faults("name: a b", "")) == 3


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("You review code.", "does not begin with a line of three hyphens"),
        ("---\ndescription: d\n", "is not ended"),
        ("", "does not begin"),
    ],
)
def test_a_file_without_a_header_is_no_agent(text: str, fault: str) -> None:
    found = parse_agent(text, stem="notes")
    assert isinstance(found, tuple)
    assert fault in found[0]


def test_a_file_whose_name_is_no_name_needs_one_in_its_header() -> None:
    assert "not made of letters" in faults("description: d", stem="my notes")[0]
    assert agent("name: notes\ndescription: d", stem="my notes").name == "notes"


def test_what_is_hidden_in_a_description_is_shown() -> None:
    assert agent('description: "a\\u202eb"').description == "a\\u202eb"


@given(st.text(), st.text(max_size=80))
def test_any_text_is_an_agent_or_has_faults(text: str, stem: str) -> None:
    found = parse_agent(f"---\n{text}", stem=stem)
    assert isinstance(found, AgentText) or (found and all(found))


@given(st.text(alphabet="ab:[]{}-\n,\"' ", max_size=60))
def test_an_agent_has_only_tools_that_are_known(written: str) -> None:
    found = parse_agent(f"---\ndescription: d\ntools: {written}\n---\nBody.", stem="notes")
    if isinstance(found, AgentText):
        assert TOOLS.issuperset(found.tools or ())
