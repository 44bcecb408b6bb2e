"""The tools as models know them: the names, parameters and defaults of Crush."""

from collections.abc import Mapping
from typing import Any, cast

import anyio
import pytest

from crush_kernel.agent.toolsizes import spec_of
from crush_kernel.runtime import open_runtime
from crush_kernel.tools.base import AnyTool
from crush_kernel.tools.network import network_tools

ONE_EDIT = "old_string! new_string! replace_all=False"
ONE_TODO = "content! status! active_form!"
ONE_QUESTION = "label type! question! description! choices"

SOME = [{"old_string": "a", "new_string": "b"}]
LISTED = {"todos": [{"content": "a", "status": "pending", "active_form": "b"}]}
PROPOSED = {"questions": '[{"type": "yes_no", "question": "So?", "description": "It is."}]'}

ROWS: list[tuple[str, str, Mapping[str, object]]] = [
    ("agent", "prompt!", {"prompt": "find"}),
    ("agentic_fetch", "url prompt!", {"prompt": "find"}),
    (
        "bash",
        "description! command! working_dir run_in_background=False auto_background_after=60",
        {"command": "ls", "description": "List", "auto_background_after": 0},
    ),
    ("crush_info", "", {}),
    ("crush_logs", "lines=50", {"lines": 0}),
    ("download", "url! file_path! timeout", {"url": "http://x", "file_path": "x", "timeout": 601}),
    (
        "edit",
        "file_path! " + ONE_EDIT,
        {"file_path": "a", "old_string": "", "new_string": ""},
    ),
    ("fetch", "url! format timeout=30", {"url": "http://x", "format": "Text", "timeout": 121}),
    ("glob", "pattern! path", {"pattern": "*"}),
    ("grep", "pattern! path include literal_text=False", {"pattern": "x"}),
    ("job_kill", "shell_id!", {"shell_id": "001"}),
    ("job_output", "shell_id! wait", {"shell_id": "001", "wait": True}),
    ("ls", "path ignore depth", {"depth": 0}),
    ("multiedit", "file_path! edits!", {"file_path": "a", "edits": SOME}),
    ("question", "questions! confirm_title confirm_description", PROPOSED),
    (
        "sourcegraph",
        "query! count=10 context_window=10 timeout=30",
        {"query": "x", "count": 100, "timeout": 0},
    ),
    ("todos", "todos!", LISTED),
    ("view", "file_path! offset=0 limit=200", {"file_path": "a", "limit": 0}),
    ("web_fetch", "url!", {"url": "http://x"}),
    ("web_search", "query! max_results=10", {"query": "x", "max_results": 50}),
    ("write", "file_path! content!", {"file_path": "a", "content": ""}),
]
"""A tool, its parameters (`!` if required, `=` with the default), and a call that Crush takes."""

TYPES = {
    "run_in_background replace_all literal_text wait": "boolean",
    "auto_background_after timeout lines offset limit count context_window max_results": "integer",
    "depth": "integer",
    "edits ignore questions todos choices": "array",
}
"""Of the parameters that are no text."""


@pytest.fixture(scope="module")
def tools(tmp_path_factory: pytest.TempPathFactory) -> dict[str, AnyTool]:
    """Give all tools, those of the agent and those of its sub-agents, by name."""
    folder = tmp_path_factory.mktemp("project")

    async def collected() -> dict[str, AnyTool]:
        environ = {"PATH": "/usr/bin:/bin", "HOME": str(folder)}
        async with open_runtime(environ=environ, cwd=folder) as runtime:
            of_readers = network_tools(runtime.settings).for_reader(folder)
            return {tool.name: tool for tool in (*runtime.agent.tools, *of_readers)}

    return anyio.run(collected)


def type_of(parameter: dict[str, Any]) -> str:
    return parameter.get("type") or parameter["anyOf"][0]["type"]


def expected_type(name: str) -> str:
    return next((kind for names, kind in TYPES.items() if name in names.split()), "string")


def assert_has(schema: dict[str, Any], row: str) -> None:
    """Check what a row says of the parameters; there may be more, which nobody has to give."""
    properties = cast("dict[str, dict[str, Any]]", schema.get("properties", {}))
    required = [word.rstrip("!") for word in row.split() if word.endswith("!")]
    assert sorted(schema.get("required", ())) == sorted(required)
    for word in row.split():
        name, _, default = word.rstrip("!").partition("=")
        assert type_of(properties[name]) == expected_type(name), name
        if default:
            assert str(properties[name]["default"]) == default, name


@pytest.mark.parametrize(("name", "row", "call"), [pytest.param(*row, id=row[0]) for row in ROWS])
def test_a_tool_is_called_as_in_crush(
    tools: dict[str, AnyTool], name: str, row: str, call: Mapping[str, object]
) -> None:
    tool = tools[name]
    assert_has(dict(spec_of(tool).input_schema), row)
    tool.arguments.model_validate(call)


@pytest.mark.parametrize(
    ("name", "parameter", "row"),
    [
        pytest.param("multiedit", "edits", ONE_EDIT, id="an edit"),
        pytest.param("todos", "todos", ONE_TODO, id="an entry of the list"),
        pytest.param("question", "questions", ONE_QUESTION, id="a question"),
    ],
)
def test_what_is_in_a_list_is_called_as_in_crush(
    tools: dict[str, AnyTool], name: str, parameter: str, row: str
) -> None:
    properties = cast("dict[str, Any]", spec_of(tools[name]).input_schema["properties"])
    assert_has(properties[parameter]["items"], row)


@pytest.mark.parametrize(
    ("name", "given", "taken"),
    [
        pytest.param("bash", {"timeout": 0}, {"timeout": None}, id="no time for a command"),
        pytest.param("bash", {"timeout": 120_000}, {"timeout": 86_400}, id="in milliseconds"),
        pytest.param("bash", {"timeout": "120000"}, {"timeout": 86_400}, id="as a string"),
        pytest.param(
            "bash",
            {"auto_background_after": 100_000},
            {"auto_background_after": 86_400},
            id="patience",
        ),
        pytest.param("download", {"timeout": 601}, {"timeout": 600}, id="download, long"),
        pytest.param("download", {"timeout": -1}, {"timeout": 300}, id="download, no time"),
        pytest.param("fetch", {"timeout": 121}, {"timeout": 120}, id="fetch, long"),
        pytest.param("fetch", {"timeout": 0}, {"timeout": 30}, id="fetch, no time"),
        pytest.param("grep", {"context": 21}, {"context": 20}, id="context"),
        pytest.param("grep", {"context": -1}, {"context": 0}, id="no context"),
        pytest.param("job_output", {"timeout": 601}, {"timeout": 600}, id="job_output, long"),
        pytest.param("job_output", {"timeout": 0}, {"timeout": 60}, id="job_output, no time"),
        pytest.param("job_output", {"tail": 1_001}, {"tail": 1_000}, id="tail"),
        pytest.param("job_output", {"tail": 0}, {"tail": None}, id="no tail"),
        pytest.param("ls", {"depth": 0}, {"depth": None}, id="all levels"),
        pytest.param("ls", {"depth": -1}, {"depth": None}, id="less than no level"),
        pytest.param("sourcegraph", {"count": 21}, {"count": 20}, id="many files"),
        pytest.param("sourcegraph", {"count": 0}, {"count": 10}, id="no files"),
        pytest.param("sourcegraph", {"context_window": 51}, {"context_window": 50}, id="window"),
        pytest.param("sourcegraph", {"timeout": 121}, {"timeout": 120}, id="sourcegraph, long"),
        pytest.param("view", {"limit": 0}, {"limit": 200}, id="no lines"),
        pytest.param("view", {"limit": -1}, {"limit": 200}, id="less than no lines"),
        pytest.param("web_search", {"max_results": 21}, {"max_results": 20}, id="many results"),
        pytest.param("web_search", {"max_results": 0}, {"max_results": 10}, id="no results"),
    ],
)
def test_a_wish_beyond_its_range_costs_no_other_call(
    tools: dict[str, AnyTool], name: str, given: dict[str, object], taken: dict[str, object]
) -> None:
    needed = {
        name: "http://x"
        for name, field in tools[name].arguments.model_fields.items()
        if field.is_required()
    }
    arguments = tools[name].arguments.model_validate({**needed, **given}).model_dump()
    assert {key: arguments[key] for key in taken} == taken


@pytest.mark.parametrize(
    ("name", "parameter"),
    [
        pytest.param(name, word.rstrip("!"), id=f"{name} without {word.rstrip('!')}")
        for name, row, _ in ROWS
        for word in row.split()
        if word.endswith("!") and word not in {"description!", "format!"}
    ],
)
def test_what_is_missing_is_named(tools: dict[str, AnyTool], name: str, parameter: str) -> None:
    [call] = (call for each, _, call in ROWS if each == name)
    needed = {"old_string": "a", "new_string": "b", "content": "c", "format": "text"}
    fields = tools[name].arguments.model_fields
    complete: dict[str, object] = {
        **{key: value for key, value in needed.items() if key in fields},
        **call,
    }
    complete.pop(parameter)
    with pytest.raises(ValueError, match=f"(?m)^{parameter}$\n +Field required"):
        tools[name].arguments.model_validate(complete)
