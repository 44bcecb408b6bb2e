"""A sub-agent in a real front end: its steps, its question, its card, and what is left of it."""

from collections.abc import Generator

import pytest
from playwright.sync_api import Browser, expect

from tests.browser.conftest import OpenNotebook
from tests.browser.jupyter import Server, jupyter_server
from tests.fakes.offline import offline_script, turn, wants

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.timeout(180)]

TASK = "Find out where prices are rounded.\nTell the file and the line."
LINE = "agent tester · where prices are rounded · 2 calls"

SCRIPT = (
    turn(
        "who rounds",
        wants("agent", prompt=TASK, agent="tester", description="where prices are rounded"),
        {"text": "Now I know."},
    ),
    turn(
        TASK,
        wants("grep", pattern="round"),
        wants("bash", command="touch run; exit 3"),
        {"text": "It is **price.py**, line 2. <img src=x>"},
    ),
)


@pytest.fixture(scope="module")
def server(
    browser: Browser,  # noqa: ARG001 - no server without a browser
    tmp_path_factory: pytest.TempPathFactory,
) -> Generator[Server]:
    home = tmp_path_factory.mktemp("jupyter")
    with jupyter_server(home, offline_script(home, *SCRIPT)) as running:
        own = home / ".config/crush/agents"
        own.mkdir(parents=True)
        text = "---\ndescription: Runs tests.\ntools: Bash, Grep\n---\nYou test.\n"
        (own / "tester.md").write_text(text, encoding="utf-8")
        yield running


def test_its_question_says_who_asks_and_its_card_opens_by_keyboard_also_after_a_reload(
    open_notebook: OpenNotebook,
) -> None:
    notebook = open_notebook("who rounds")
    notebook.start(0)
    card = notebook.cell(0).get_by_role("group", name="tester (sub-agent) · bash wants to run")
    expect(card).to_be_visible()
    row = notebook.cell(0).locator(".crush-call")
    expect(row).to_contain_text("waiting for you")
    expect(row).to_contain_text("grep")
    notebook.button(0, "Allow once").click()
    notebook.wait_done(0)

    output = notebook.output(0)
    for _ in range(2):
        details = output.locator("details")
        expect(details).to_have_count(1)
        summary = details.locator("summary")
        expect(summary).to_contain_text(LINE)
        answer = details.locator("strong", has_text="price.py")
        expect(answer).not_to_be_visible()
        summary.focus()
        notebook.page.keyboard.press("Space")
        expect(answer).to_be_visible()
        expect(details).to_contain_text("Tell the file and the line.")
        expect(details).to_contain_text("bash touch run; exit 3 · allowed once · exit 3")
        expect(details.locator("img")).to_have_count(0)
        expect(output).to_contain_text("Now I know.")
        notebook.save()
        notebook.open()
    assert notebook.complaints == []
