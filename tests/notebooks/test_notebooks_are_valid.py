"""The bundled notebooks: well-formed, clean, and covered by the bundled script."""

import json
import re
from pathlib import Path
from typing import cast

import nbformat
import pytest

from crush_kernel.messages import Message, ToolResult, text_of
from crush_kernel.providers.base import ModelInfo
from crush_kernel.providers.offline.model import OfflineModel
from crush_kernel.providers.offline.script import Step, open_script
from tests.fakes.folder import Folder, play_turn

FOLDER = Path(__file__).parents[2] / "notebooks"
CELLS = {
    "tour": ["tour-ask", "tour-tool", "tour-edit", "tour-undo", "tour-reopen"],
    "fix-a-test": ["fix-the-test", "fix-put-back"],
    "persistence": [
        "keep-say",
        "keep-shell",
        "keep-recall",
        "keep-versions",
        "keep-replay",
        "keep-new",
        "keep-after",
    ],
}
"""The code cells by id; the ids are part of what a saved session refers to."""

each_notebook = pytest.mark.parametrize("name", CELLS)


def cells(name: str) -> list[dict[str, object]]:
    notebook = json.loads((FOLDER / f"{name}.ipynb").read_text(encoding="utf-8"))
    return cast("list[dict[str, object]]", notebook["cells"])


def prompts(name: str) -> list[str]:
    sources = ["".join(cast("list[str]", c["source"])) for c in cells(name) if is_code(c)]
    return [source for source in sources if not source.startswith(("/", "!"))]


def is_code(cell: dict[str, object]) -> bool:
    return cell["cell_type"] == "code"


def test_every_notebook_is_known_here() -> None:
    assert sorted(path.stem for path in FOLDER.glob("*.ipynb")) == sorted(CELLS)


@each_notebook
def test_a_notebook_is_valid_and_asks_for_the_kernel(name: str) -> None:
    notebook = json.loads((FOLDER / f"{name}.ipynb").read_text(encoding="utf-8"))

    nbformat.validate(notebook)
    assert notebook["metadata"]["kernelspec"] == {
        "display_name": "Crush",
        "language": "markdown",
        "name": "crush",
    }
    assert notebook["metadata"]["language_info"]["name"] == "markdown"


@each_notebook
def test_a_notebook_is_stored_without_a_trace_of_a_run(name: str) -> None:
    for cell in filter(is_code, cells(name)):
        assert cell["outputs"] == []
        assert cell["execution_count"] is None
        assert cell["metadata"] == {}


@each_notebook
def test_the_code_cells_keep_their_readable_ids(name: str) -> None:
    assert [cell["id"] for cell in cells(name) if is_code(cell)] == CELLS[name]
    assert all(re.fullmatch(r"[a-z][a-z-]+", cast("str", cell["id"])) for cell in cells(name))


@each_notebook
def test_a_text_stands_before_every_code_cell(name: str) -> None:
    kinds = [cell["cell_type"] for cell in cells(name)]

    assert "code,code" not in ",".join(map(str, kinds))
    assert kinds[0] == "markdown"


def test_the_script_is_written_for_exactly_the_cells_of_the_notebooks() -> None:
    written = [turn.prompt for turn in open_script({}).turns]

    assert len(set(written)) == len(written)
    assert set(written) == {prompt for name in CELLS for prompt in prompts(name)}


@each_notebook
def test_a_script_has_a_reply_to_whatever_comes_of_its_calls(name: str) -> None:
    for prompt in prompts(name):
        turn = open_script({}).find(prompt)
        assert turn is not None
        assert_ends(turn.steps)


def assert_ends(steps: tuple[Step, ...]) -> None:
    """Fail if some results lead to where nothing is written."""
    last = steps[0][-1]
    assert (last.if_denied, last.if_error, last.if_contains) == (False, False, "")
    for variant in steps[0]:
        if variant.tool_calls:
            assert_ends(variant.then or steps[1:])


@pytest.fixture
def model() -> OfflineModel:
    return OfflineModel(ModelInfo("offline", "offline"), script=open_script({}))


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A copy of the sample projects that a test may change."""
    for source in (*FOLDER.glob("tour/*.py"), *FOLDER.glob("shop/*.py")):
        target = tmp_path / source.relative_to(FOLDER)
        target.parent.mkdir(exist_ok=True)
        target.write_bytes(source.read_bytes())
    return tmp_path


async def play(
    model: OfflineModel, folder: Folder, prompts: list[str]
) -> tuple[list[str], tuple[Message, ...]]:
    """Return the last words of every turn, and the whole conversation."""
    history: tuple[Message, ...] = ()
    endings: list[str] = []
    for prompt in prompts:
        history = await play_turn(model, folder, prompt, history)
        endings.append(text_of(history[-1]))
    return endings, history


@pytest.mark.anyio
async def test_the_tour_reads_and_edits(model: OfflineModel, project: Path) -> None:
    before = (project / "tour/price.py").read_text(encoding="utf-8")
    folder = Folder(project)

    endings, _ = await play(model, folder, prompts("tour"))

    assert [name for name, _ in folder.calls] == ["view", "view", "edit"]
    assert "0.25 now" in endings[2]
    after = (project / "tour/price.py").read_text(encoding="utf-8")
    assert after == before.replace("0.20", "0.25") != before
    assert "edited `tour/price.py`" in endings[3]


@pytest.mark.anyio
async def test_the_tour_goes_on_sensibly_where_every_edit_is_denied(
    model: OfflineModel, project: Path
) -> None:
    before = (project / "tour/price.py").read_text(encoding="utf-8")

    endings, _ = await play(model, Folder(project, allow=False), prompts("tour"))

    assert "denied" in endings[2]
    assert "asked for `edit` `tour/price.py` (denied)" in endings[3]
    assert (project / "tour/price.py").read_text(encoding="utf-8") == before


@pytest.mark.anyio
async def test_the_tour_says_what_is_missing_where_its_folder_is(
    model: OfflineModel, tmp_path: Path
) -> None:
    endings, _ = await play(model, Folder(tmp_path), prompts("tour"))

    assert all("folder `tour` belongs beside" in ending for ending in endings[1:3])


@pytest.mark.anyio
async def test_run_twice_without_an_undo_the_tour_has_nothing_left_to_change(
    model: OfflineModel, project: Path
) -> None:
    folder = Folder(project)
    await play(model, folder, prompts("tour"))
    endings, _ = await play(model, folder, prompts("tour"))

    assert "0.25 already" in endings[2]
    assert [name for name, _ in folder.calls] == ["view", "view", "edit", "view", "view"]


@pytest.mark.anyio
async def test_only_the_first_reply_of_a_conversation_introduces_the_provider(
    model: OfflineModel, project: Path
) -> None:
    _, history = await play(model, Folder(project), prompts("tour"))

    texts = [text_of(message) for message in history if message.role == "assistant"]
    assert ["not a language model" in text for text in texts] == [True] + [False] * (len(texts) - 1)


def test_the_sample_shop_has_the_bug_that_its_notebook_tells_of(project: Path) -> None:
    source = (project / "shop/price.py").read_text(encoding="utf-8")

    assert pay(source, 19.99, 0.15) != 16.99
    fixed = source.replace("round(amount, 2) * (1 - discount)", "round(amount * (1 - discount), 2)")
    assert pay(fixed, 19.99, 0.15) == 16.99


def pay(source: str, amount: float, discount: float) -> float:
    """Return what the function in `source` asks a customer to pay."""
    names: dict[str, object] = {}
    exec(source, names)  # noqa: S102 - our own sample, with the bug and without
    function = names["price"]
    assert callable(function)
    return cast("float", function(amount, discount))


OK = {"python3 -m unittest discover -s shop": "Ran 2 tests in 0.001s\n\nOK"}


@pytest.mark.anyio
async def test_the_test_is_fixed_and_run(model: OfflineModel, project: Path) -> None:
    folder = Folder(project, printed=results(OK))

    endings, _ = await play(model, folder, prompts("fix-a-test")[:1])

    assert [name for name, _ in folder.calls] == ["view", "view", "edit", "bash"]
    assert endings == ["The test passes now: rounding happened before the discount."]
    assert pay((project / "shop/price.py").read_text(encoding="utf-8"), 19.99, 0.15) == 16.99


@pytest.mark.anyio
async def test_a_second_run_finds_nothing_left_to_fix(model: OfflineModel, project: Path) -> None:
    folder = Folder(project, printed=results(OK))
    fix = prompts("fix-a-test")[0]

    endings, _ = await play(model, folder, [fix, fix])

    assert [name for name, _ in folder.calls][4:] == ["view", "view", "bash"]
    assert "nothing left to fix" in endings[1]


@pytest.mark.anyio
async def test_the_bug_can_be_put_back(model: OfflineModel, project: Path) -> None:
    before = (project / "shop/price.py").read_text(encoding="utf-8")
    folder = Folder(project, printed=results(OK))

    endings, _ = await play(model, folder, prompts("fix-a-test"))

    assert "bug is back" in endings[1]
    assert (project / "shop/price.py").read_text(encoding="utf-8") == before


@pytest.mark.anyio
async def test_without_permission_the_fix_is_only_described(
    model: OfflineModel, project: Path
) -> None:
    folder = Folder(project, allow=False)

    endings, _ = await play(model, folder, prompts("fix-a-test")[:1])

    assert [name for name, _ in folder.calls] == ["view", "view", "edit"]
    assert "denied" in endings[0]
    assert "round(amount * (1 - discount), 2)" in endings[0]


@pytest.mark.anyio
async def test_tests_that_still_fail_are_not_said_to_pass(
    model: OfflineModel, project: Path
) -> None:
    failing = dict.fromkeys(OK, "No module named unittest\nexit code 1")
    folder = Folder(project, printed=results(failing, is_error=True))

    endings, _ = await play(model, folder, prompts("fix-a-test")[:1])

    assert "do not pass" in endings[0]
    assert "No module named unittest" in endings[0]


def results(printed: dict[str, str], *, is_error: bool = False) -> dict[str, ToolResult]:
    return {command: ToolResult("", text, is_error) for command, text in printed.items()}
