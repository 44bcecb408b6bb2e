"""One notebook in two kernels: each keeps what it has run, and nothing of one is in the other."""

import pytest

from tests.fakes.provider.replies import say
from tests.kernel.desk import Desk, kill

pytestmark = [pytest.mark.slow, pytest.mark.timeout(180)]

APART = "This notebook is open in another kernel too."


def test_two_kernels_on_one_notebook_keep_apart_and_lose_nothing(desk: Desk) -> None:
    desk.provider.play(lambda _: say("Heard."))
    one, two = desk.start(), desk.start()
    first = desk.open(one)
    first.run("a", "Ask from both.")
    first.save(desk.path)
    second = desk.open(two, first.page.reloaded())

    assert APART in second.run("b", "Ask from two.").shown
    assert APART not in first.run("b", "Ask from one.").shown
    assert "Ask from both." in desk.sent
    assert "Ask from two." not in desk.sent
    second.run("c", "Ask last.")
    assert "Ask from both." in desk.sent
    assert "Ask from two." in desk.sent
    assert "Ask from one." not in desk.sent
    kill(one)
    kill(two)

    for page, asked, unasked in (
        (second.page, "Ask from two.", "Ask from one."),
        (first.page, "Ask from one.", "Ask from two."),
    ):
        page.save()
        again = desk.open(desk.start(), page.reloaded())
        again.run("c", "Go on.")
        assert asked in desk.sent
        assert unasked not in desk.sent


def test_two_kernels_without_pages_keep_apart(desk: Desk) -> None:
    desk.provider.play(lambda _: say("Heard."))
    one, two = (desk.start(JPY_SESSION_NAME=str(desk.path)) for _ in range(2))
    one.run("Ask from one.", cell_id="a")
    assert APART in two.run("Ask from two.", cell_id="b").markdown
    assert "Ask from one." not in desk.sent
    assert APART not in one.run("Go on.", cell_id="c").markdown
    assert "Ask from one." in desk.sent
    assert "Ask from two." not in desk.sent


def test_two_notebooks_in_one_folder_know_nothing_of_each_other(desk: Desk) -> None:
    desk.provider.play(lambda _: say("Heard."))
    # Copies: their cells have the same ids.
    paths = [desk.path, desk.path.with_name("other.ipynb")]
    for path in paths:
        path.write_text(desk.page().ipynb, encoding="utf-8")
    one, two = (desk.start(JPY_SESSION_NAME=str(path)) for path in paths)
    one.run("Ask in one.", cell_id="a")
    assert APART not in two.run("Ask in the other.", cell_id="a").markdown
    assert "Ask in one." not in desk.sent
    one.run("Go on.", cell_id="b")
    assert "Ask in the other." not in desk.sent
