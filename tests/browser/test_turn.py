"""A turn in a real front end: streaming, permission, stop, completion, reload."""

import re

import pytest
from playwright.sync_api import Route, expect

from tests.browser.conftest import OpenNotebook

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.timeout(180)]


def test_a_reply_is_rendered_with_its_footer(open_notebook: OpenNotebook) -> None:
    notebook = open_notebook("hello")
    notebook.run(0)
    output = notebook.output(0)
    expect(output.locator("strong", has_text="there")).to_be_visible()
    expect(output).to_contain_text("offline")
    assert notebook.complaints == []


def test_text_streams_in_while_the_cell_runs_and_stop_keeps_it(open_notebook: OpenNotebook) -> None:
    notebook = open_notebook("stream for ever", "hello")
    notebook.start(0)
    expect(notebook.output(0)).to_contain_text("word word word")
    notebook.start(1)
    notebook.command("notebook:interrupt-kernel")
    notebook.wait_done(0)
    expect(notebook.output(0)).to_contain_text("interrupted")
    expect(notebook.output(0)).to_contain_text("word word word")
    expect(notebook.cell(0).locator(".jp-RenderedText[data-mime-type*=stderr]")).to_have_count(0)
    expect(notebook.cell(1).locator(".jp-InputPrompt")).to_have_text("[ ]:")


def test_allow_runs_the_tool_while_the_cell_is_running(open_notebook: OpenNotebook) -> None:
    notebook = open_notebook("make a file")
    notebook.start(0)
    allow = notebook.button(0, "Allow once")
    expect(allow).to_be_visible()
    expect(notebook.output(0)).to_contain_text("new.txt")
    allow.click()
    notebook.wait_done(0)
    assert (notebook.path.parent / "new.txt").read_text() == "made\n"
    expect(notebook.output(0)).to_contain_text("It is made.")
    expect(notebook.output(0)).to_contain_text("allowed once")
    expect(notebook.button(0, "Allow once")).to_have_count(0)


def test_deny_with_a_reason_that_is_typed_while_the_cell_runs(open_notebook: OpenNotebook) -> None:
    notebook = open_notebook("make a file")
    notebook.start(0)
    reason = notebook.cell(0).locator(".crush-reason input")
    reason.fill("use a branch instead")
    notebook.button(0, "Deny").click()
    notebook.wait_done(0)
    assert not (notebook.path.parent / "new.txt").exists()
    expect(notebook.output(0)).to_contain_text("use a branch instead")
    expect(notebook.output(0)).to_contain_text("As you like.")


def test_the_card_answers_to_the_keyboard(open_notebook: OpenNotebook) -> None:
    notebook = open_notebook("make a file")
    notebook.start(0)
    allow = notebook.button(0, "Allow once")
    expect(allow).to_be_visible()
    allow.focus()
    for label in ("Allow for this session", "Always …", "Deny"):
        notebook.page.keyboard.press("Tab")
        expect(notebook.button(0, label)).to_be_focused()
    notebook.page.keyboard.press("Enter")
    notebook.wait_done(0)
    expect(notebook.output(0)).to_contain_text("As you like.")


def test_stop_at_a_permission_prompt_withdraws_it(open_notebook: OpenNotebook) -> None:
    notebook = open_notebook("make a file")
    notebook.start(0)
    expect(notebook.button(0, "Allow once")).to_be_visible()
    notebook.command("notebook:interrupt-kernel")
    notebook.wait_done(0)
    expect(notebook.button(0, "Allow once")).to_have_count(0)
    assert not (notebook.path.parent / "new.txt").exists()


def test_stop_this_tool_lets_the_turn_go_on(open_notebook: OpenNotebook) -> None:
    notebook = open_notebook("sleep")
    notebook.start(0)
    expect(notebook.output(0)).to_contain_text("begun")
    notebook.cell(0).locator("button.crush-stop").click()
    notebook.wait_done(0)
    expect(notebook.output(0)).to_contain_text("stopped")


def test_a_language_that_loads_late_does_not_bring_back_what_was_shown(
    open_notebook: OpenNotebook,
) -> None:
    notebook = open_notebook("make a file")
    notebook.start(0)
    allow = notebook.button(0, "Allow once")
    expect(allow).to_be_visible()
    held: list[Route] = []

    def hold(route: Route) -> None:
        held.append(route)

    notebook.page.route(re.compile(r"\.js(\?|$)"), hold)
    allow.click()
    notebook.wait_done(0)
    notebook.wait_until(lambda: bool(held))
    for route in held:
        route.continue_()
    notebook.page.unroute_all()
    expect(notebook.output(0)).to_contain_text("It is made.")
    expect(notebook.output(0).locator("summary")).to_have_count(1)


def test_tab_offers_commands_and_files(open_notebook: OpenNotebook) -> None:
    notebook = open_notebook("/he")
    editor = notebook.cell(0).locator(".cm-content")
    editor.click()
    expect(notebook.cell(0).locator(".jp-mod-completer-enabled")).to_be_visible()
    notebook.page.keyboard.press("End")
    offers = notebook.page.locator(".jp-Completer")

    def has_offers() -> bool:
        # JupyterLab waits a second for them, and a busy machine may take longer.
        notebook.page.keyboard.press("Tab")
        notebook.page.wait_for_timeout(1500)
        return offers.is_visible()

    notebook.wait_until(has_offers)
    expect(offers).to_contain_text("/help")
    expect(offers).to_contain_text("command")
    notebook.page.keyboard.press("Enter")
    expect(editor).to_have_text("/help")


def test_a_reload_at_a_prompt_brings_working_buttons_back(open_notebook: OpenNotebook) -> None:
    notebook = open_notebook("make a file")
    notebook.start(0)
    expect(notebook.button(0, "Allow once")).to_be_visible()
    notebook.save()
    notebook.page.reload()
    notebook.open(is_ready=False)
    notebook.button(0, "Allow once").click()
    made = notebook.path.parent / "new.txt"
    notebook.wait_until(made.exists)
    assert made.read_text() == "made\n"


def test_a_saved_notebook_holds_no_widget_and_reads_well(open_notebook: OpenNotebook) -> None:
    notebook = open_notebook("make a file")
    notebook.start(0)
    notebook.button(0, "Allow for this session").click()
    notebook.wait_done(0)
    saved = notebook.save()
    outputs = saved["cells"][0]["outputs"]
    assert not any("widget-view" in mime for output in outputs for mime in output["data"])
    markdown = "\n".join("".join(output["data"]["text/markdown"]) for output in outputs)
    assert re.search(r"<summary><b>write</b> new\.txt .*allowed for the session", markdown)


def test_cells_wrap_their_lines_and_are_markdown(open_notebook: OpenNotebook) -> None:
    notebook = open_notebook("A prompt with **weight**. " * 20)
    content = notebook.cell(0).locator(".cm-content")
    expect(content).to_have_class(re.compile("cm-lineWrapping"))
