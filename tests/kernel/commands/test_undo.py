"""`/diff`, `/undo` and `/redo` in a real kernel, over real tools and commands."""

import resource
from collections.abc import Generator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.fakes.kernel import RunningKernel
from tests.fakes.provider.replies import call, say
from tests.fakes.provider.server import FakeProvider
from tests.fakes.runs import wait_until
from tests.kernel.desk import Desk, kill
from tests.tools.undo.rewound import Tree, tree_of

pytestmark = [pytest.mark.slow, pytest.mark.timeout(180)]

PRICE = b"price = 1\r\nold = True\r\n"


@pytest.fixture
def desk(tmp_path: Path, provider: FakeProvider) -> Generator[Desk]:
    with ExitStack() as stack:
        desk = Desk(tmp_path, provider, stack)
        (desk.cwd / "src").mkdir()
        (desk.cwd / "src" / "price.py").write_bytes(PRICE)
        (desk.cwd / "run.sh").write_bytes(b"echo run\n")
        yield desk


def start(desk: Desk) -> RunningKernel:
    return desk.start(CRUSH_PERMISSION_MODE="yolo")


def tree(desk: Desk) -> Tree:
    return tree_of(desk.cwd, without=(".crush",))


def test_turns_are_taken_back_to_the_same_bytes_and_the_model_knows(desk: Desk) -> None:
    tab = desk.open(start(desk), desk.page(*"abcdefghij"))
    trees = [tree(desk)]
    desk.provider.play(
        call("bash", {"command": "chmod +x run.sh; mkdir -p a/b; echo x > a/b/c; ln -s a l"}),
        call("write", {"file_path": "new.txt", "content": "new\n"}),
        say("Made."),
    )
    tab.run_told("a", "Make it.")
    trees.append(tree(desk))
    shown = tab.run_told("b", "!rm -r src; printf '\\0' > zero").shown
    assert "error" not in shown
    trees.append(tree(desk))
    assert trees[0] != trees[1] != trees[2]

    cell = tab.run_told("c", "/undo")
    assert "src/price.py" in cell.shown
    assert "brought back" in cell.shown
    assert tree(desk) == trees[1]
    assert cell.turn is not None
    cell = tab.run_told("d", "/undo")
    assert "Make it." in cell.shown
    assert tree(desk) == trees[0]
    cell = tab.run_told("e", "/undo")
    assert "taken back already" in cell.shown
    assert cell.turn is None

    desk.provider.play(say("I see."))
    tab.run_told("f", "What now?")
    assert "I have taken back what was done to files in the turn 'Make it.'" in desk.sent
    assert "- new.txt: deleted" in desk.sent

    tab.run_told("g", "/redo")
    assert tree(desk) == trees[1]
    tab.run_told("h", "/redo")
    assert tree(desk) == trees[2]
    assert "no `/undo` to take back" in tab.run_told("i", "/redo").shown


def test_an_undo_outlives_the_kernel(desk: Desk) -> None:
    kernel = start(desk)
    tab = desk.open(kernel, desk.page(*"abcdef"))
    before = tree(desk)
    tab.run_told("a", "!echo 2 > src/price.py; echo 3 > three")
    after = tree(desk)
    tab.save(desk.path)
    kill(kernel)
    tab = desk.open(start(desk), tab.page.reloaded())
    tab.run_told("b", "/undo")
    desk.path.unlink()
    assert tree(desk) == before
    tab.run_told("c", "/redo")
    assert tree(desk) == after


def test_what_the_disk_refuses_is_told_and_tried_again(desk: Desk) -> None:
    (desk.cwd / "large").write_bytes(b"0123456789abcde\n" * 200_000)
    before = tree(desk)
    kernel = start(desk)
    tab = desk.open(kernel, desk.page(*"abcdef"))
    tab.run_told("a", "!echo small > large")
    after = tree(desk)
    _, most = resource.prlimit(kernel.pid, resource.RLIMIT_FSIZE)
    resource.prlimit(kernel.pid, resource.RLIMIT_FSIZE, (2_000_000, most))
    shown = tab.run_told("b", "/undo").shown
    assert "Nothing could be taken back" in shown
    assert "/undo tries it again" in shown
    assert tree(desk) == after
    desk.provider.play(say("I see."))
    tab.run_told("c", "What now?")
    assert "but it failed" in desk.sent
    assert "I have taken back" not in desk.sent
    resource.prlimit(kernel.pid, resource.RLIMIT_FSIZE, (most, most))
    assert "Taken back: " in tab.run_told("d", "/undo").shown
    assert tree(desk) == before


def test_what_was_changed_since_is_not_overwritten_unasked(desk: Desk) -> None:
    tab = desk.open(start(desk), desk.page(*"abcdef"))
    before = tree(desk)
    tab.run_told("a", "!echo 2 > src/price.py; echo 3 > three")
    (desk.cwd / "src" / "price.py").write_bytes(b"mine\n")
    mine = tree(desk)
    shown = tab.refused("b", "/undo")
    assert "src/price.py" in shown
    assert "has changed since" in shown
    assert "/undo force" in shown
    assert tree(desk) == mine
    tab.run_told("c", "/undo force")
    assert tree(desk) == before
    tab.run_told("d", "/redo")
    assert tree(desk) == mine


def test_a_diff_shows_a_turn_or_all_of_them(desk: Desk) -> None:
    tab = desk.open(start(desk), desk.page(*"abcdefg"))
    assert "No file has changed." in tab.run_told("a", "/diff").shown
    desk.provider.play(
        call("view", {"file_path": "run.sh"}),
        call("edit", {"file_path": "run.sh", "old_string": "run", "new_string": "walk"}),
        say("Done."),
    )
    tab.run_told("b", "Edit it.")
    tab.run_told("c", "!rm src/price.py; echo 1 > made; printf '\\0\\1' > bytes; chmod +x run.sh")
    last = tab.run_told("d", "/diff").shown
    assert "4 files changed, +1 −2, in the last turn that changed any: “!rm src/price.py;" in last
    assert "-price = 1" in last
    assert "+++ /dev/null" in last
    assert "+1" in last
    assert "executable now" in last
    assert "walk" not in last
    first = tab.run_told("e", "/diff 1").shown
    assert "-echo run" in first
    assert "+echo walk" in first
    assert "price" not in first
    everything = tab.run_told("f", "/diff all").shown
    assert "+echo walk" in everything
    assert "-price = 1" in everything
    assert "no turn" in tab.refused("g", "/diff 9")


def test_a_diff_counts_folders_apart_and_names_what_was_brought_back_by_its_command(
    desk: Desk,
) -> None:
    tab = desk.open(start(desk), desk.page(*"abcd"))
    tab.run_told("a", "!mkdir made; echo 1 > made/one")
    tab.run_told("b", "/undo")
    tab.run_told("c", "/redo")
    shown = tab.run_told("d", "/diff").shown
    assert "1 file and 1 folder changed, +1 −0, in the last turn that changed any: “/redo”" in shown


def test_what_is_not_covered_is_told_once_and_with_everything(desk: Desk) -> None:
    with (desk.cwd / "large").open("wb") as file:
        file.truncate(10_000_001)
    tab = desk.open(start(desk), desk.page(*"abcde"))
    note = "1 file is too large or cannot be read: what commands do to it is not covered."
    tab.run_told("a", "!echo x >> large; echo 1 > one")
    assert note in tab.run_told("b", "/diff").shown
    shown = tab.run_told("c", "/undo").shown
    assert note not in shown
    assert "it is larger than 10 MB" in shown
    shown = tab.run_told("d", "/diff all").shown
    assert note in shown
    assert "changed, it is larger than 10 MB" in shown


def test_what_a_killed_kernel_had_begun_counts_to_the_turn_that_was_cut_short(desk: Desk) -> None:
    kernel = start(desk)
    tab = desk.open(kernel, desk.page(*"abcdef"))
    before = tree(desk)
    tab.run_told("a", "!true")
    tab.start("b", "!echo half > src/price.py; echo x > reached; sleep 30")
    wait_until((desk.cwd / "reached").exists)
    kill(kernel)
    tab = desk.open(start(desk), tab.page.reloaded())
    assert "src/price.py" in tab.run_told("c", "/undo").shown
    assert tree(desk) == before


def test_what_a_stopped_command_has_done_is_taken_back(desk: Desk) -> None:
    tab = desk.open(start(desk), desk.page(*"abcdef"))
    before = tree(desk)
    request = tab.start("a", "!echo half > src/price.py; echo x > reached; sleep 30")
    wait_until((desk.cwd / "reached").exists)
    tab.interrupt()
    tab.finish(request)
    tab.run_told("b", "/undo")
    assert tree(desk) == before


def test_two_notebooks_do_not_take_back_each_others_work(desk: Desk) -> None:
    one, two = (
        desk.start(CRUSH_PERMISSION_MODE="yolo", JPY_SESSION_NAME=str(desk.cwd / name))
        for name in ("one.ipynb", "two.ipynb")
    )
    one.run("!echo one > shared; echo 1 > first", cell_id="a")
    two.run("!echo two > shared; echo 2 > second", cell_id="a")
    left = tree(desk)
    cell = one.run("/undo", cell_id="c")
    assert "shared has changed since" in cell.markdown
    assert tree(desk) == left
    two.run("/undo", cell_id="b")
    assert (desk.cwd / "shared").read_text() == "one\n"
    assert not (desk.cwd / "second").exists()
    one.run("/undo", cell_id="d")
    assert not (desk.cwd / "shared").exists()
