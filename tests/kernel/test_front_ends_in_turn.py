"""A kernel is killed at a question in one front end, and the session goes on in another one."""

import json
import subprocess
import sys
from collections.abc import Callable

import pytest

from crush_kernel.history.outputs import saved_outputs
from tests.fakes import headless
from tests.fakes.eventful import settings
from tests.fakes.kernel import WAIT_S
from tests.fakes.page import Page
from tests.fakes.provider.replies import Reply, Say, call, say
from tests.fakes.runs import LIMIT_S
from tests.kernel.desk import Desk, kill

pytestmark = [pytest.mark.slow, pytest.mark.timeout(180)]

WRITE = call("write", {"file_path": "new.txt", "content": "made\n"})

ASK = Reply((Say("I make it."), *WRITE.blocks))

FILE_CELL = "b"
"""The cell in which the kernel is killed, as the file calls it."""


def save(desk: Desk, page: Page) -> None:
    """Write the notebook as front ends do, without what is for the screen alone."""
    page.save()
    for cell in page.file["cells"]:
        cell["outputs"] = saved_outputs(cell["outputs"])
    desk.path.write_text(page.ipynb, encoding="utf-8")


# Killed at a question


def in_a_page(desk: Desk) -> None:
    """In JupyterLab with our extension, saved while the question is open."""
    kernel = desk.start()
    tab = desk.open(kernel)
    desk.provider.play(say("Before."), ASK)
    tab.run("a", "Ask before.")
    tab.start(FILE_CELL, "Make it.")
    tab.button("Allow once")
    tab.wait(lambda: "I make it." in tab.page[FILE_CELL].shown)
    tab.say({"method": "saving"})
    save(desk, tab.page)
    tab.say({"method": "saved"})
    tab.settle()
    kill(kernel)


def in_a_page_without_our_extension(desk: Desk) -> None:
    """In a front end that writes no metadata, saved before the cell was run."""
    kernel = desk.start(JPY_SESSION_NAME=str(desk.path))
    tab = desk.tab(kernel, desk.page())
    desk.provider.play(say("Before."), ASK)
    tab.run("a", "Ask before.")
    tab.page[FILE_CELL].source = "Make it."
    save(desk, tab.page)
    tab.start(FILE_CELL, "Make it.")
    tab.button("Allow once")
    kill(kernel)


def in_a_console(desk: Desk) -> None:
    """At a question on the keyboard, which no cell of a file has asked."""
    kernel = desk.start(JPY_SESSION_NAME=str(desk.path))
    desk.provider.play(say("Before."), ASK)
    kernel.run("Ask before.", cell_id=None, allow_stdin=True)
    kernel.execute("Make it.", cell_id=None, allow_stdin=True)
    assert kernel.client.get_stdin_msg(timeout=WAIT_S)["msg_type"] == "input_request"
    kill(kernel)


# Gone on with


def by_a_page(desk: Desk) -> str:
    page = Page(path="nb.ipynb")
    if desk.path.exists():
        page.file = json.loads(desk.path.read_text(encoding="utf-8"))
        page.revert()
    kernel = desk.start()
    tab = desk.open(kernel, desk.page("z") if not page.cells else page)
    last = tab.page.cells[-1].id
    return tab.run(last, "Go on.").shown


def by_a_program(desk: Desk) -> str:
    kernel = desk.start(JPY_SESSION_NAME=str(desk.path))
    return kernel.run("Go on.", cell_id=None).markdown


def by_a_console(desk: Desk) -> str:
    kernel = desk.start(JPY_SESSION_NAME=str(desk.path))
    return kernel.run("Go on.", cell_id=None, allow_stdin=True).stdout


def by_vs_code(desk: Desk) -> str:
    kernel = desk.start()
    return kernel.run("Go on.", cell_id=f"vscode-notebook-cell:{desk.path}#W0").markdown


def by_our_runner(desk: Desk) -> str:
    notebook = headless.read(desk.path)
    notebook.cells[-1].source = "Go on."
    headless.nbformat.write(notebook, desk.path)
    environ = headless.environment(desk.home, **settings("openai", desk.provider))
    command = [sys.executable, "-P", "-m", "crush_kernel", "run", desk.path.name]
    done = subprocess.run(
        command,
        cwd=desk.cwd,
        env=environ,
        check=False,
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
    )
    assert done.returncode == 3, done.stderr
    return headless.markdown(headless.read(desk.path).cells[-1])


@pytest.mark.parametrize(
    ("killed", "gone_on"),
    [
        *(
            pytest.param(killed, gone_on, id=f"{killed.__name__}, {gone_on.__name__}")
            for killed in (in_a_page, in_a_page_without_our_extension)
            for gone_on in (by_a_page, by_a_program, by_a_console, by_vs_code, by_our_runner)
        ),
        # What a keyboard has said stands in no cell of a page.
        *(
            pytest.param(in_a_console, gone_on, id=f"in_a_console, {gone_on.__name__}")
            for gone_on in (by_a_program, by_a_console, by_vs_code)
        ),
    ],
)
def test_another_front_end_goes_on_after_a_kill_at_a_question(
    desk: Desk, killed: Callable[[Desk], None], gone_on: Callable[[Desk], str]
) -> None:
    killed(desk)
    if gone_on is by_our_runner:  # it begins with the cell that was cut short
        desk.provider.play(ASK, say("As you like."))
    desk.provider.play(say("Going on."))
    assert "Going on." in gone_on(desk)
    for text in ("Ask before.", "Before.", "Make it.", "I make it.", "Go on."):
        assert desk.sent.count(text) == 1, text
    assert not (desk.cwd / "new.txt").exists(), "nobody has allowed it"
