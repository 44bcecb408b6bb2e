"""Permission cards in a real front end: every button, by mouse and keyboard, many at once."""

from collections.abc import Generator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Locator, expect

from crush_kernel.kernel.widgets import REASON_GRACE_S
from tests.browser.conftest import OpenNotebook
from tests.browser.jupyter import App, Notebook, Server, jupyter_server
from tests.browser.test_accessibility import THEMES, faults
from tests.fakes.offline import offline_script, turn, wants

pytestmark = [
    pytest.mark.browser,
    pytest.mark.slow,
    pytest.mark.timeout(180),
]

COMMAND = "mkdir made && echo 'a b' > made/out.txt; touch last"
RULES = "Always allow, as one rule a line:"
PLAN = "# Make it\n\n1. **write** new.txt\n\n<img src=x onerror=alert(1)>\n"


def looks(*names: str) -> dict[str, object]:
    """A reply that reads files outside the project, all at once."""
    calls = [{"name": "view", "input": {"file_path": f"../{name}.txt"}} for name in names]
    return {"tool_calls": calls}


DONE = [{"if_denied": True, "text": "As you like."}, {"text": "It is done."}]

SCRIPT = (
    turn("parts", wants("bash", command=COMMAND, description="x"), DONE),
    turn("again", wants("bash", command="touch again", description="x"), DONE),
    turn("three", looks("one", "two", "three"), {"text": "Seen."}),
    turn("same", looks("one", "one"), {"text": "Seen."}),
    turn("danger", wants("bash", command="rm -rf /srv/\u202ex", description="x"), DONE),
    turn(
        "plan",
        {"text": "I looked.", **wants("present_plan", plan=PLAN)},
        {"text": "I begin.", **wants("write", file_path="new.txt", content="made\n")},
        {"text": "It is made."},
    ),
)


@pytest.fixture(params=["lab"])
def app(request: pytest.FixtureRequest) -> App:
    """JupyterLab alone, where a test does not ask for more."""
    return request.param


@pytest.fixture(scope="module")
def server(
    browser: Browser,  # noqa: ARG001 - no server without a browser
    tmp_path_factory: pytest.TempPathFactory,
) -> Generator[Server]:
    home = tmp_path_factory.mktemp("jupyter")
    with jupyter_server(home, offline_script(home, *SCRIPT)) as running:
        for name in ("one", "two", "three"):
            (running.folder / f"{name}.txt").write_text(f"it is {name}\n", encoding="utf-8")
        yield running


def card(notebook: Notebook, text: str, index: int = 0) -> Locator:
    """Return the card that shows `text`."""
    return notebook.cell(index).locator(".crush-card").filter(has_text=text)


def button(card: Locator, label: str) -> Locator:
    return card.get_by_role("button", name=label, exact=True)


def folder(notebook: Notebook) -> Path:
    return notebook.path.parent


@pytest.mark.parametrize("app", ["lab", "notebook"], indirect=True)
@pytest.mark.parametrize(
    ("label", "is_run", "line"),
    [
        pytest.param("Allow once", True, "allowed once", id="once"),
        pytest.param("Allow for this session", True, "allowed for the session", id="session"),
        pytest.param("Deny", False, "denied", id="deny"),
    ],
)
def test_each_button_does_what_it_says(
    open_notebook: OpenNotebook, label: str, line: str, *, is_run: bool
) -> None:
    notebook = open_notebook("parts")
    notebook.start(0)
    shown = card(notebook, "bash wants to run")
    for text in ("mkdir made", "&&", "echo 'a b' > made/out.txt", "writes made/out.txt"):
        expect(shown).to_contain_text(text)
    button(shown, label).click()
    notebook.wait_done(0)
    assert (folder(notebook) / "made/out.txt").exists() is is_run
    assert (folder(notebook) / "last").exists() is is_run
    expect(notebook.output(0)).to_contain_text(line)
    expect(notebook.cell(0).locator(".crush-card")).to_have_count(0)
    assert notebook.complaints == []


def test_a_rule_is_made_by_keyboard_alone_and_counts_from_then_on(
    open_notebook: OpenNotebook,
) -> None:
    notebook = open_notebook("again", "again")
    notebook.start(0)
    shown = card(notebook, "bash wants to run")
    expect(shown).to_be_visible()
    keyboard = notebook.page.keyboard
    notebook.command("crush-kernel:focus-permission")
    expect(shown).to_be_focused()
    for label in ("What the buttons mean", "Allow once", "Allow for this session", "Always …"):
        keyboard.press("Tab")
        expect(button(shown, label)).to_be_focused()
    keyboard.press("Enter")
    field = shown.get_by_role("textbox", name=RULES)
    expect(field).to_be_focused()
    keyboard.press("Escape")
    expect(field).to_have_count(0)
    expect(button(shown, "Always …")).to_be_focused()
    keyboard.press("Enter")
    expect(field).to_be_focused()
    proposed = field.input_value()
    assert "touch" in proposed
    field.fill("bash(ls:*)")
    expect(shown.get_by_role("alert")).to_contain_text("not saved")
    save = button(shown, "Save")
    save.focus()
    keyboard.press("Enter")
    # Letters that come just after Save still count, so wait until they do not.
    notebook.page.wait_for_timeout(1000 * REASON_GRACE_S + 400)
    field.fill(proposed)
    expect(shown.get_by_role("alert")).to_have_count(0)
    field.press("Tab")
    # Each of ipywidgets' radio buttons is reached for itself.
    for scope in ("in this project", "everywhere"):
        expect(shown.get_by_role("radio", name=scope)).to_be_focused()
        keyboard.press("Tab")
    expect(save).to_be_focused()
    keyboard.press("Enter")
    notebook.wait_done(0)
    expect(notebook.output(0)).to_contain_text("always allowed in this project")
    (folder(notebook) / "again").unlink()
    notebook.run(1)
    expect(notebook.output(1)).to_contain_text("allowed by a rule: bash(touch")
    assert (folder(notebook) / "again").exists()


def test_three_cards_are_answered_in_any_order(open_notebook: OpenNotebook) -> None:
    notebook = open_notebook("three")
    notebook.start(0)
    cards = notebook.cell(0).locator(".crush-card")
    expect(cards).to_have_count(3)
    expect(card(notebook, "three.txt")).to_contain_text("outside the project")
    button(card(notebook, "three.txt"), "Allow once").click()
    expect(cards).to_have_count(2)
    button(card(notebook, "one.txt"), "Deny").click()
    expect(cards).to_have_count(1)
    button(card(notebook, "two.txt"), "Allow once").click()
    notebook.wait_done(0)
    summaries = notebook.output(0).locator("sub:has(b), summary")
    expect(summaries).to_have_count(3)
    expect(summaries.nth(0)).to_contain_text("one.txt · denied")
    expect(summaries.nth(1)).to_contain_text("allowed once")
    expect(summaries.nth(2)).to_contain_text("allowed once")


def test_a_double_click_answers_one_card_and_moves_nothing(open_notebook: OpenNotebook) -> None:
    notebook = open_notebook("three")
    notebook.start(0)
    cards = notebook.cell(0).locator(".crush-card")
    expect(cards).to_have_count(3)
    places = [cards.nth(place).bounding_box() for place in range(3)]
    allow = button(cards.nth(0), "Allow once")
    box = allow.bounding_box()
    assert box is not None
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    notebook.page.mouse.click(x, y)
    # It stands for half a second only: looked for at every frame.
    notebook.page.wait_for_function(
        "() => document.querySelector('.crush-settled')?.innerText.includes('allowed once')",
        polling="raf",
    )
    assert [cards.nth(place).bounding_box() for place in range(3)] == places
    notebook.page.mouse.click(x, y)
    expect(cards).to_have_count(2)
    expect(notebook.cell(0).locator(".crush-settled")).to_have_count(0)
    notebook.command("notebook:interrupt-kernel")
    notebook.wait_done(0)


def test_a_grant_settles_the_other_card_that_it_answers(open_notebook: OpenNotebook) -> None:
    notebook = open_notebook("same")
    notebook.start(0)
    cards = notebook.cell(0).locator(".crush-card")
    expect(cards).to_have_count(2)
    button(cards.nth(1), "Allow for this session").click()
    notebook.wait_done(0)
    expect(notebook.output(0)).to_contain_text("allowed for this session")
    expect(notebook.output(0)).to_contain_text("allowed for the session")


def test_stopping_with_three_cards_open_allows_nothing(open_notebook: OpenNotebook) -> None:
    notebook = open_notebook("three", "three")
    notebook.start(0)
    expect(notebook.cell(0).locator(".crush-card")).to_have_count(3)
    notebook.command("notebook:interrupt-kernel")
    notebook.wait_done(0)
    expect(notebook.cell(0).locator(".crush-card")).to_have_count(0)
    expect(notebook.output(0)).not_to_contain_text("it is one")
    notebook.start(1)
    expect(notebook.cell(1).locator(".crush-card")).to_have_count(3)
    notebook.command("notebook:interrupt-kernel")
    notebook.wait_done(1)


def test_a_reload_in_mid_question_brings_all_cards_back(open_notebook: OpenNotebook) -> None:
    notebook = open_notebook("three")
    notebook.start(0)
    cards = notebook.cell(0).locator(".crush-card")
    expect(cards).to_have_count(3)
    notebook.save()
    notebook.page.reload()
    notebook.open(is_ready=False)
    expect(cards).to_have_count(3)
    for name in ("two", "one", "three"):
        shown = card(notebook, f"{name}.txt")
        button(shown, "Allow once").click()
        expect(shown).to_have_count(0)
    notebook.wait_done(0)
    assert notebook.output(0).inner_text().count("allowed once") == 3


@pytest.mark.parametrize("theme", THEMES)
def test_cards_can_be_read_and_used_by_everyone(open_notebook: OpenNotebook, theme: str) -> None:
    notebook = open_notebook("danger", "again", "/mode plan", "plan")
    notebook.page.evaluate(
        "theme => window.jupyterapp.commands.execute('apputils:change-theme', { theme })", theme
    )
    notebook.start(0)
    shown = card(notebook, "bash wants to run")
    expect(shown).to_contain_text("dangerous")
    expect(shown).to_contain_text("outside the project")
    expect(shown).to_contain_text("/srv/⟨U+202E⟩x")
    button(shown, "What the buttons mean").click()
    expect(shown).to_contain_text("this call only")
    assert faults(notebook) == []
    shown.press("Escape")
    notebook.wait_done(0)
    expect(notebook.output(0)).to_contain_text("As you like.")
    notebook.start(1)
    shown = card(notebook, "bash wants to run", 1)
    button(shown, "Always …").click()
    expect(shown.get_by_role("radiogroup", name="Where it holds:")).to_be_visible()
    shown.get_by_role("textbox", name=RULES).fill("nonsense(")
    expect(shown.get_by_role("alert")).to_be_visible()
    assert faults(notebook) == []
    button(shown, "Deny").click()
    notebook.wait_done(1)
    notebook.run(2)
    notebook.start(3)
    expect(card(notebook, "Approve this plan?", 3)).to_be_visible()
    assert faults(notebook) == []
    button(card(notebook, "Approve this plan?", 3), "Keep planning").click()
    notebook.wait_done(3)


@pytest.mark.parametrize("app", ["lab", "notebook"], indirect=True)
def test_an_approved_plan_ends_plan_mode_and_stays_readable(open_notebook: OpenNotebook) -> None:
    notebook = open_notebook("/mode plan", "plan")
    notebook.run(0)
    notebook.start(1)
    shown = card(notebook, "Approve this plan?", 1)
    expect(shown.locator("strong", has_text="write")).to_be_visible()
    expect(shown.locator("img")).to_have_count(0)
    button(shown, "Approve, edits without asking").click()
    notebook.wait_done(1)
    output = notebook.output(1)
    expect(output).to_contain_text("It is made.")
    expect(output).to_contain_text("accept-edits mode")
    assert (folder(notebook) / "new.txt").read_text(encoding="utf-8") == "made\n"
    expect(output.locator("details[open] strong", has_text="write")).to_be_visible()
    saved = notebook.save()
    outputs = saved["cells"][1]["outputs"]
    markdown = "\n".join("".join(output["data"]["text/markdown"]) for output in outputs)
    assert "# Make it" in markdown
    assert "<img" not in markdown
    assert notebook.complaints == []


def test_a_plan_that_is_not_approved_leaves_plan_mode_on(open_notebook: OpenNotebook) -> None:
    notebook = open_notebook("/mode plan", "plan")
    notebook.run(0)
    notebook.start(1)
    shown = card(notebook, "Approve this plan?", 1)
    shown.get_by_role("textbox").fill("no new files")
    shown.press("Escape")
    notebook.wait_done(1)
    expect(notebook.output(1)).to_contain_text('keep planning: "no new files"')
    expect(notebook.output(1)).to_contain_text("plan mode")
    assert not (folder(notebook) / "new.txt").exists()
