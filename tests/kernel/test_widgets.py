"""The card of running calls, on real ipywidgets models."""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# ipywidgets carries no types.

from collections.abc import Iterator

import pytest

from crush_kernel.kernel.render import Row
from crush_kernel.kernel.widgets import LiveCard
from tests.kernel.widget_models import open_models, texts, with_class

pytestmark = pytest.mark.anyio


@pytest.fixture(autouse=True)
def no_model_stays_open() -> Iterator[None]:
    before = open_models()
    yield
    assert open_models() == before


async def test_a_running_call_can_be_stopped_on_its_own() -> None:
    stopped: list[str] = []
    live = LiveCard(stopped.append)
    live.show(
        [
            Row("a", "bash", "sleep 1", "running 1 s", is_running=True),
            Row("b", "bash", "sleep 2", "running 1 s", is_running=True),
        ],
        [],
    )
    with_class("crush-stop")[1].click()
    assert stopped == ["b"]
    live.close()


async def test_rows_change_in_place_and_the_view_stays() -> None:
    live = LiveCard(lambda _: None)
    live.show([Row("a", "bash", "make", "running 1 s", is_running=True)], [])
    view, models = live.view(), open_models()
    live.show([Row("a", "bash", "make", "running 2 s", is_running=True, tail="x\ny")], [])
    box = with_class("crush-live")[0]
    assert "running 2 s" in texts(box)
    assert "x\ny</pre>" in texts(box)
    live.show([Row("a", "bash", "make", "exit 0 2.1 s", is_running=False, tail="x\ny")], [])
    assert "exit 0 2.1 s" in texts(box)
    assert with_class("crush-stop")[0].layout.visibility == "hidden"
    assert live.view() == view
    assert open_models() == models
    live.close()
    live.close()
