"""What a diff shows of a notebook that was run again: what has changed, and nothing else."""

import json
import re
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import pytest

from tests.fakes import headless
from tests.fakes.clicks import ALLOW
from tests.fakes.eventful import kernel_in
from tests.fakes.offline import Step, offline_script, turn, wants
from tests.fakes.openpage import OpenPage
from tests.fakes.runs import Place

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]

PARAGRAPHS = "Words of a paragraph.\n\n\nAnd:\n\n- a\n- b\n\n```\ncode\n\n\ncode\n```\n\n" * 60
CELLS = ("look", "make a file", "tell a story", "!echo out", "say hello")
STORY, HELLO = 2, 4


def script(pace_s: float = 0.0) -> tuple[Step, ...]:
    """Return what is said: the same words at any pace."""
    pieces: Step = {"text": PARAGRAPHS[:70], "repeat": 40, "pace_s": pace_s}
    return (
        turn(
            "look",
            {"text": "I look.", **wants("ls", path="."), "reasoning": "Where?"},
            wants("grep", pattern="bread", path="plan.md"),
            {"text": "It is **bread**."},
        ),
        turn(
            "make a file",
            wants("write", file_path="new.txt", content="made\n"),
            [{"if_denied": True, "text": "As you like."}, {"text": "It is made."}],
        ),
        turn("tell a story", pieces),
        turn("say hello", {"text": "Hello **there**."}),
    )


def prepared(place: Place) -> Path:
    (place.folder / "plan.md").write_text("buy bread\n", encoding="utf-8")
    return place.write(*CELLS)


def by_page(place: Place, pace_s: float = 0.0) -> Path:
    """Run all cells in a page, with a person who allows."""
    path = prepared(place)
    with kernel_in(place.folder, place.home, offline_script(place.home, *script(pace_s))) as kernel:
        page = OpenPage(kernel, path).open()
        for index, cell in enumerate(CELLS):
            assert page.run(index, [ALLOW] if cell == "make a file" else []).status == "ok"
        return page.save()


def by_run(place: Place, pace_s: float = 0.0) -> Path:
    """Run all cells without a browser; what asks is denied."""
    path = prepared(place)
    place.play(*script(pace_s))
    assert place.run().exit_code == 3
    return path


EACH_WAY = pytest.mark.parametrize("run", [by_page, by_run], ids=["page", "run"])


def place_in(folder: Path) -> Place:
    return Place(folder / "home", folder / "case")


def without_volatile(value: Any) -> Any:  # noqa: ANN401 - JSON
    match value:
        case dict():
            items = cast("dict[str, Any]", value).items()
            return {key: without_volatile(each) for key, each in items if key != "volatile"}
        case list():
            return [without_volatile(each) for each in cast("list[Any]", value)]
        case _:
            return value


@EACH_WAY
def test_two_runs_of_the_same_are_the_same_but_for_what_is_volatile(
    run: Callable[[Place, float], Path], tmp_path: Path
) -> None:
    fast = run(place_in(tmp_path / "fast"), 0.0).read_text(encoding="utf-8")
    slow = run(place_in(tmp_path / "slow"), 0.01).read_text(encoding="utf-8")

    lasting = [json.dumps(without_volatile(json.loads(text)), indent=1) for text in (fast, slow)]
    assert lasting[0].splitlines() == lasting[1].splitlines()
    volatile = [line for line in fast.splitlines() if '"volatile"' in line]
    assert len(volatile) == len(CELLS), "the header has nothing that is"


# What git shows


@dataclass(frozen=True)
class Change:
    """A line that git shows as changed."""

    part: str
    """`cell 3`, or `header`."""
    key: str
    """Of the value that stands on it."""


class Repository:
    """A folder under version control, with a notebook in it."""

    def __init__(self, place: Place) -> None:
        self.place = place
        self._git("init", "--quiet")
        (place.folder / ".gitignore").write_text(".crush\n", encoding="utf-8")

    def commit(self) -> None:
        self._git("add", "--all")
        self._git("commit", "--quiet", "--message", "x")

    def changes(self) -> set[Change]:
        """Return what has changed in the notebook since it was committed."""
        found: set[Change] = set()
        for marks, text in (("-", self._git("show", "HEAD:work.ipynb")), ("+", self._now())):
            places = _places(text)
            for hunk in re.finditer(
                r"^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@",
                self._git("diff", "--unified=0", "work.ipynb"),
                re.MULTILINE,
            ):
                first, count = (hunk[1], hunk[2]) if marks == "-" else (hunk[3], hunk[4])
                found |= set(places[int(first) - 1 :][: int(count or 1)])
        return found

    def _now(self) -> str:
        return self.place.path.read_text(encoding="utf-8")

    def _git(self, *arguments: str) -> str:
        identity = ("-c", "user.name=a", "-c", "user.email=a@example.org")
        command = ["git", *identity, "-C", str(self.place.folder), *arguments]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def _places(text: str) -> list[Change]:
    """Return where each line of a notebook belongs."""
    places: list[Change] = []
    part, cell = "", -1
    for line in text.splitlines():
        if line == "  {":
            cell += 1
            part = f"cell {cell}"
        elif line.startswith(' "'):
            part = "header"
        key = re.match(r' *"(\w+)":', line)
        places.append(Change(part, key[1] if key else line.strip()))
    return places


TOTALS = {Change("header", "input_tokens"), Change("header", "output_tokens")}
"""What was used counts with every run."""


def rerun(index: int, *, count: bool = True) -> set[Change]:
    """Return what changes if a cell runs again and nothing else is other than before."""
    keys = {"run", "turn", "ended", *(["execution_count"] if count else [])}
    return {Change(f"cell {index}", key) for key in keys}


def test_a_cell_that_runs_again_in_a_page_changes_its_number_and_the_totals(
    tmp_path: Path,
) -> None:
    place = place_in(tmp_path)
    repository = Repository(place)
    by_page(place)
    repository.commit()
    with kernel_in(place.folder, place.home, offline_script(place.home, *script())) as kernel:
        page = OpenPage(kernel, place.path).open()
        page.save()
        assert repository.changes() == set()

        page.run(STORY)
        page.save()
        assert repository.changes() <= rerun(STORY) | TOTALS
        assert repository.changes() >= {Change(f"cell {STORY}", "run")}
        assert page.stale == ()

        repository.commit()
        page.notebook.cells[HELLO].source = "say hello, please"
        page.run(HELLO)
        page.save()
        parts = {change.part for change in repository.changes()}
        assert parts == {f"cell {HELLO}", "header"}


def test_all_cells_that_run_again_without_a_browser_change_their_number_and_the_totals(
    tmp_path: Path,
) -> None:
    place = place_in(tmp_path)
    repository = Repository(place)
    by_run(place)
    repository.commit()

    assert place.run("--all").exit_code == 3

    durations = {each for each in repository.changes() if each.key.startswith("call_")}
    expected = {each for index in range(len(CELLS)) for each in rerun(index, count=False)}
    assert repository.changes() - durations <= expected | TOTALS
    assert {Change(f"cell {index}", "run") for index in range(len(CELLS))} <= repository.changes()


@EACH_WAY
def test_opening_and_saving_changes_nothing_with_or_without_the_journal(
    run: Callable[[Place], Path], tmp_path: Path
) -> None:
    place = place_in(tmp_path)
    repository = Repository(place)
    run(place)
    repository.commit()
    for _ in ("with it", "without it"):
        with kernel_in(place.folder, place.home, {}) as kernel:
            OpenPage(kernel, place.path).open().save()
        assert repository.changes() == set()
        assert place.path.read_bytes() == headless.nbformat.writes(place.notebook).encode() + b"\n"
        shutil.rmtree(place.folder / ".crush", ignore_errors=True)
