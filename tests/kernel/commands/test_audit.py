"""`/audit` in a real kernel: what was decided, by whom, and why."""

from collections.abc import Generator
from contextlib import ExitStack

import pytest

from tests.fakes.kernel import RunningKernel
from tests.fakes.provider.replies import call, say
from tests.fakes.provider.server import FakeProvider
from tests.fakes.tab import Tab
from tests.kernel.desk import Desk

pytestmark = [pytest.mark.slow, pytest.mark.timeout(180)]

SECRET = "ghp_" + "A1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6Q7r8"


@pytest.fixture(scope="module")
def unattended(
    tmp_path_factory: pytest.TempPathFactory, provider_server: FakeProvider
) -> Generator[tuple[Desk, RunningKernel, Tab]]:
    """Yield a notebook whose turn has read and written, and was refused a file and a command."""
    with ExitStack() as stack:
        desk = Desk(tmp_path_factory.mktemp("audit"), provider_server, stack)
        kernel = desk.start(CRUSH_PERMISSION_MODE="accept-edits")
        tab = desk.open(kernel, desk.page(*"abcdef", is_headless=True))
        provider_server.play(
            call("ls", {"path": "."}),
            call("write", {"file_path": "made.txt", "content": "made"}),
            call("bash", {"command": f"touch new | <b>{SECRET}", "description": "make"}),
            say("Done."),
        )
        tab.run_told("a", "Make | it *so* @/etc/hosts.")
        yield desk, kernel, tab


def shown(tab: Tab, text: str, cell: str = "b") -> str:
    return tab.run(cell, text).shown


def test_counts_come_first_then_who_decided_by_what(
    unattended: tuple[Desk, RunningKernel, Tab],
) -> None:
    _, _, tab = unattended
    page = shown(tab, "/audit")

    head, _, rest = page.partition("\n\n")
    assert head.startswith("**4 calls**: 1 read in the project, ")
    assert "1 allowed by accept-edits mode" in head
    assert head.endswith("2 denied since nobody could be asked")
    assert rest.index("Always allowed: ls × 1") > rest.index("<b>write</b>")
    assert "Make &#124; it &#42;so&#42; @/etc/hosts." in rest
    assert "<b>attach</b>" in rest


def test_what_is_shown_has_no_secret_and_no_markup_of_others(
    unattended: tuple[Desk, RunningKernel, Tab],
) -> None:
    _, _, tab = unattended
    page = shown(tab, "/audit turn 1")

    assert SECRET not in page
    assert "⟨secret: GitHub token⟩" in page
    assert "<b>⟨" not in page
    assert "&lt;b&gt;" in page


def test_refusals_are_listed_with_their_reasons(
    unattended: tuple[Desk, RunningKernel, Tab],
) -> None:
    _, _, tab = unattended
    page = shown(tab, "/audit denied")

    assert page.startswith("2 calls refused.")
    assert "nobody can be asked here" in page
    assert "made.txt" not in page


def test_the_whole_project_is_told_in_counts(
    unattended: tuple[Desk, RunningKernel, Tab],
) -> None:
    _, _, tab = unattended

    assert "nb.ipynb | 4 | 1 read" in shown(tab, "/audit all")


def test_a_run_that_was_replaced_is_still_told(
    unattended: tuple[Desk, RunningKernel, Tab],
) -> None:
    desk, _, tab = unattended
    desk.provider.play(call("ls", {"path": "."}), say("One."), say("Two."))
    tab.run_told("c", "List.")
    tab.run_told("c", "Say.")
    page = shown(tab, "/audit", "d")

    assert "**5 calls**" in page
    assert "a run that does not stand above" in page


@pytest.mark.parametrize(
    ("text", "words"),
    [
        pytest.param("/audit nonsense", "knows no 'nonsense'", id="an unknown word"),
        pytest.param("/audit turn", "There is no turn ''", id="no number"),
        pytest.param("/audit turn 99", "There is no turn '99'", id="too high"),
        pytest.param("/audit turn ²", "There is no turn", id="a digit that is no number"),
        pytest.param("/audit denied 3", "knows no", id="too much"),
    ],
)
def test_what_makes_no_sense_is_an_error_that_says_what_does(
    unattended: tuple[Desk, RunningKernel, Tab], text: str, words: str
) -> None:
    _, _, tab = unattended

    assert words in tab.refused("e", text)
