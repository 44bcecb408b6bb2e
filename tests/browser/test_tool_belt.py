"""Every tool once, in a real notebook: what it shows, what the file says, and all undone."""

import json
import re
import subprocess
from collections.abc import Generator
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

import nbformat as untyped_nbformat
import pytest
from playwright.sync_api import Browser, Error, expect

from crush_kernel.messages import JsonObject
from tests.browser.jupyter import Notebook, jupyter_server, write_notebook
from tests.fakes.eventful import settings
from tests.fakes.provider.replies import Call, HttpReply, Reply, say
from tests.fakes.provider.server import FakeProvider, Received, serving
from tests.tools.undo.rewound import tree_of

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.timeout(300)]

nbformat: Any = untyped_nbformat

CELLS = ("look around", "change files", "run commands", "read the web", "ask others")

DENIED_PROXY = "http://127.0.0.1:9"
"""Where nobody listens: the way to servers of the internet."""

QUESTION: JsonObject = {
    "type": "yes_no",
    "question": "Is that all?",
    "description": "Then I stop here.",
}
ASKED = json.dumps({"questions": [QUESTION]})


def notebook_edit(path: str) -> Call:
    arguments: JsonObject = {
        "file_path": path,
        "action": "insert",
        "cell_type": "markdown",
        "source": "# Made",
    }
    return Call("notebook_edit", arguments)


def script(provider: FakeProvider) -> dict[str, list[Reply]]:
    """Return what is answered in each turn, and in each sub-agent, by how it begins."""
    page = f"{provider.url}/page"
    return {
        "look around": [
            Reply(
                (
                    Call("ls", {"path": "."}),
                    Call("glob", {"pattern": "**/*.py"}),
                    Call("grep", {"pattern": "def price"}),
                    Call("view", {"file_path": "shop.py"}),
                    Call("crush_info"),
                    Call("crush_logs", {"lines": 5}),
                    Call(
                        "todos",
                        {
                            "todos": [
                                {
                                    "content": "Look",
                                    "status": "completed",
                                    "active_form": "Looking",
                                }
                            ]
                        },
                    ),
                )
            ),
            say("I have looked."),
        ],
        "change files": [
            Reply(
                (
                    Call(
                        "edit",
                        {
                            "file_path": "shop.py",
                            "old_string": "return 1",
                            "new_string": "return 2",
                        },
                    ),
                    Call(
                        "multiedit",
                        {
                            "file_path": "shop.py",
                            "edits": [
                                {"old_string": "# first", "new_string": "# 1"},
                                {"old_string": "# second", "new_string": "# 2"},
                            ],
                        },
                    ),
                    Call("write", {"file_path": "made/new.txt", "content": "new\r\n"}),
                    notebook_edit("other.ipynb"),
                )
            ),
            say("It is changed."),
        ],
        "run commands": [
            Reply(
                (
                    Call(
                        "bash",
                        {
                            "command": "rm old.txt; printf side > side.txt; chmod +x run.sh; "
                            "ln -s shop.py link; echo done",
                            "description": "Change some files",
                        },
                    ),
                    Call(
                        "bash",
                        {
                            "command": "echo begun; sleep 600",
                            "description": "Wait",
                            "run_in_background": True,
                        },
                    ),
                )
            ),
            Reply((Call("job_output", {"shell_id": "JOB"}), Call("job_kill", {"shell_id": "JOB"}))),
            say("It has run."),
        ],
        "read the web": [
            Reply(
                (
                    Call("fetch", {"url": page, "format": "text"}),
                    Call("download", {"url": page, "file_path": "page.html"}),
                    Call("sourcegraph", {"query": "price"}),
                    Call("agentic_fetch", {"url": page, "prompt": "What does the page say?"}),
                )
            ),
            say("I have read."),
        ],
        "What does the page say?": [
            Reply((Call("web_fetch", {"url": page}), Call("web_search", {"query": "shop price"}))),
            say("The page says **hello**."),
        ],
        "ask others": [
            Reply(
                (
                    Call("agent", {"prompt": "Find the price", "description": "find the price"}),
                    Call("question", ASKED),
                )
            ),
            say("That was all."),
        ],
        "Find the price": [Reply((Call("grep", {"pattern": "price"}),)), say("It is in shop.py.")],
    }


class Script:
    """Answers each conversation by the prompt that it has begun with last."""

    def __init__(self, provider: FakeProvider) -> None:
        self.replies = script(provider)

    def __call__(self, received: Received) -> Reply:
        messages = cast("list[JsonObject]", received.body["messages"])
        said = json.dumps([each for each in messages if each["role"] == "user"])
        prompt = max(self.replies, key=said.rfind)
        reply = self.replies[prompt].pop(0)
        job = re.search(r"as job (\S+?):", received.raw.decode())
        return Reply(tuple(self._named(block, job[1] if job else "") for block in reply.blocks))

    @staticmethod
    def _named(block: Any, job: str) -> Any:  # noqa: ANN401 - blocks of all kinds
        if isinstance(block, Call) and isinstance(block.input, dict) and "shell_id" in block.input:
            return Call(block.name, {"shell_id": job})
        return block


@pytest.fixture
def provider() -> Generator[FakeProvider]:
    with serving() as running:
        page = "<html><body><h1>Hello</h1><p>It costs 2.</p></body></html>"
        running.pages["/page"] = HttpReply(200, page)
        running.pages["/search"] = HttpReply(
            200, {"results": [{"title": "Shop", "url": f"{running.url}/page", "content": "price"}]}
        )
        running.play(Script(running))
        yield running


@pytest.fixture
def notebook(
    browser: Browser, provider: FakeProvider, tmp_path_factory: pytest.TempPathFactory
) -> Generator[Notebook]:
    home = tmp_path_factory.mktemp("belt")
    environ = settings("openai", provider) | {
        "CRUSH_PERMISSION_MODE": "yolo",
        "HTTPS_PROXY": DENIED_PROXY,
        "SEARCH_BACKEND": "searxng",
        "SEARCH_URL": provider.url,
    }
    with jupyter_server(home, environ) as server:
        fill(server.folder)
        write_notebook(server.folder / "belt.ipynb", *CELLS, "/diff all", *["/undo"] * 3)
        page = browser.new_page(viewport={"width": 1200, "height": 900})
        opened = Notebook(page, server, "lab", "belt.ipynb")
        opened.open()
        yield opened
        opened.command("kernelmenu:shutdown")


def fill(folder: Path) -> None:
    """Make the project: a repository with a few files."""
    (folder / "shop.py").write_bytes(b"# first\ndef price():\n    return 1\n# second\n")
    (folder / "old.txt").write_bytes(b"old\n")
    (folder / "run.sh").write_bytes(b"echo hi\n")
    subprocess.run(["git", "init", "-q"], cwd=folder, check=True)


def project(folder: Path) -> dict[str, Any]:
    """Return what there is beside the notebook."""
    return {name: what for name, what in tree_of(folder).items() if "belt" not in name}


def run(notebook: Notebook, index: int) -> None:
    """Run a cell to its end, allowing what it asks for."""
    notebook.start(index)
    answers = [notebook.button(index, name) for name in ("Allow for this session", "Yes")]

    def answer() -> bool:
        # One may vanish meanwhile: its card is replaced by what was answered.
        for button in answers:
            with suppress(Error):
                if button.is_visible() and button.is_enabled(timeout=1_000):
                    button.click(timeout=1_000)
        return notebook.is_done(index)

    notebook.wait_until(answer)


def test_every_tool_runs_reads_well_in_the_file_and_can_be_undone(notebook: Notebook) -> None:
    folder = notebook.server.folder
    trees = [project(folder)]
    for index, _ in enumerate(CELLS):
        run(notebook, index)
        trees.append(project(folder))
    notebook.run(len(CELLS))
    notebook.save()
    saved = nbformat.read(notebook.path, as_version=4)
    nbformat.validate(saved)
    shown = [text(cell) for cell in saved.cells]
    used = set(re.findall(r"<b>(\w+)</b>", "\n".join(shown)))
    assert used >= {
        *("agent", "agentic_fetch", "bash", "crush_info", "crush_logs", "download", "edit"),
        *("fetch", "glob", "grep", "job_kill", "job_output", "ls", "multiedit", "notebook_edit"),
        *("question", "sourcegraph", "todos", "view", "web_fetch", "web_search", "write"),
    }
    failed = re.findall(r"<b>(\w+)</b>[^\n]*>failed<", "\n".join(shown))
    assert failed == ["sourcegraph"], "which is on the internet"
    assert_changed(trees)
    assert "+    return 2" in shown[len(CELLS)]
    assert not any("widget" in kind for cell in saved.cells for kind in kinds(cell))
    for index, tree in zip(range(len(CELLS) + 1, len(CELLS) + 4), (3, 2, 1), strict=True):
        notebook.run(index)
        expect(notebook.output(index)).to_contain_text("Taken back")
        assert project(folder) == trees[tree]
    assert trees[1] == trees[0]


def assert_changed(trees: list[dict[str, Any]]) -> None:
    """Check what each turn has done to the files."""
    assert trees[1] == trees[0], "looking changes nothing"
    assert trees[2]["shop.py"] == ("file", b"# 1\ndef price():\n    return 2\n# 2\n")
    assert trees[2]["made/new.txt"] == ("file", b"new\r\n")
    assert "other.ipynb" in trees[2]
    assert "old.txt" not in trees[3]
    assert trees[3]["side.txt"] == ("file", b"side")
    assert trees[3]["run.sh"][0] == "program"
    assert trees[3]["link"] == ("link", "shop.py")
    assert b"It costs 2." in trees[4]["page.html"][1]
    assert trees[5] == trees[4]


def text(cell: Any) -> str:  # noqa: ANN401 - nbformat carries no types
    outputs = (output.get("data", {}).get("text/markdown", "") for output in cell.outputs)
    return "\n".join(outputs)


def kinds(cell: Any) -> list[str]:  # noqa: ANN401 - the same
    return [kind for output in cell.outputs for kind in output.get("data", {})]
