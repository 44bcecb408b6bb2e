"""The saved notebook alone carries the session: to an empty folder, to an empty home.

One notebook in which everything happened that can is made per protocol, copied alone, and
gone on with by another kernel process: of a page, of a run without a browser, and of a front
end that tells nothing but the file's name.
"""

import copy
import json
import shutil
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from tests.fakes import clicks, eventful, headless
from tests.fakes.clicks import DENY
from tests.fakes.eventful import CELLS, COMMAND, DENIED, LAST, REFUSED, kernel_in, settings
from tests.fakes.headless import nbformat
from tests.fakes.media import encoded, noise
from tests.fakes.openpage import OpenPage
from tests.fakes.provider.replies import Answer, Call, Reply, Say, Think, call, say
from tests.fakes.provider.server import FakeProvider, Received, serving
from tests.fakes.runs import Place

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]

HISTORY = f"History from this file: {len(CELLS)} turns."


def sent(request: Received) -> str:
    """Return all that a request says but where it was made, byte for byte but white space."""
    body: Any = request.body
    messages = [message for message in body["messages"] if message["role"] != "system"]
    return json.dumps({**body, "messages": messages, "system": None})


@dataclass(frozen=True)
class Source:
    """A saved notebook, and what the last request said before it was saved."""

    protocol: str
    provider: FakeProvider
    path: Path
    told: str


@pytest.fixture(scope="module", params=["anthropic", "openai"])
def sources(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Generator[dict[str, Source]]:
    """The notebook as it was played; after a cell in its midst was run again; without a writer."""
    base = tmp_path_factory.mktemp("source")
    with serving() as provider:
        environ = settings(request.param, provider)
        made: dict[str, Source] = {}

        def keep(name: str, page: OpenPage) -> None:
            path = Path(shutil.copy(page.save(), base / f"{name}.ipynb"))
            made[name] = Source(request.param, provider, path, sent(provider.requests[-1]))

        with kernel_in(base / "case", base / "home", environ) as kernel:
            page = eventful.play(kernel, provider, base / "case" / "work.ipynb")
            keep("as played", page)
            provider.play(say("I did nothing."))
            page.run(DENIED)
            provider.play(REFUSED)
            page.run(LAST)
            keep("changed above", page)
        with kernel_in(base / "plain", base / "home", environ) as kernel:
            path = base / "plain" / "work.ipynb"
            keep("kept in outputs", eventful.play(kernel, provider, path, has_writer=False))
        yield made


@pytest.fixture
def source(request: pytest.FixtureRequest, sources: dict[str, Source]) -> Generator[Source]:
    chosen = sources[request.param]
    already = len(chosen.provider.requests)
    yield chosen
    refused = [each.refusal for each in chosen.provider.requests[already:] if each.refusal]
    assert not refused


Run = Callable[..., str]
"""Runs the cell at an index with the provider's answers, and returns what the cell shows."""


@contextmanager
def page_of(source: Source, place: Place) -> Generator[Run]:
    """Open the notebook in a page, with a person who denies."""
    with kernel_in(place.folder, place.home, settings(source.protocol, source.provider)) as kernel:
        page = OpenPage(kernel, place.path).open()

        def run(index: int, *answers: Answer, asks: bool = False) -> str:
            source.provider.play(*answers)
            cell = page.run(index, [DENY] if asks else [])
            assert cell.status == "ok"
            return headless.markdown(page.notebook.cells[index])

        yield run
        page.save()


@contextmanager
def run_of(source: Source, place: Place) -> Generator[Run]:
    """Run the notebook without a browser, up to one cell; what was cut short stays so."""

    def run(index: int, *answers: Answer, asks: bool = False) -> str:
        def skip(notebook: Any) -> None:  # noqa: ANN401 - nbformat carries no types
            for number, cell in enumerate(notebook.cells):
                cell.metadata["tags"] = [] if number == index else ["skip-execution"]

        place.edit(skip)
        place.environ = settings(source.protocol, source.provider)
        source.provider.play(*answers)
        done = place.run()
        assert done.exit_code == (3 if asks else 0), done.err
        assert done.ran == [place.cell(index).id]
        return headless.markdown(place.cell(index))

    yield run


@contextmanager
def file_of(source: Source, place: Place) -> Generator[Run]:
    """Run cells in a front end that knows cells, and of which only the server tells the file."""
    environ = settings(source.protocol, source.provider) | {"JPY_SESSION_NAME": str(place.path)}
    with kernel_in(place.folder, place.home, environ) as kernel:

        def run(index: int, *answers: Answer, asks: bool = False) -> str:
            source.provider.play(*answers)
            cell = place.cell(index)
            done = clicks.run(kernel, cell.source, [DENY] if asks else [], cell_id=cell.id)
            assert done.status == "ok"
            return done.markdown

        yield run


@pytest.fixture
def place(tmp_path: Path, source: Source) -> Place:
    """An empty home, and a folder with nothing but the notebook."""
    made = Place(tmp_path / "elsewhere" / "home", tmp_path / "elsewhere" / "empty")
    shutil.copy(source.path, made.path)
    new: Any = nbformat.v4.new_code_cell("run it again", id="cell-new")
    made.edit(lambda notebook: notebook.cells.append(new))
    return made


@pytest.mark.parametrize(
    ("source", "front_end"),
    [
        pytest.param("as played", page_of, id="by a page"),
        pytest.param("as played", run_of, id="by a run"),
        pytest.param("as played", file_of, id="by the file's name"),
        pytest.param("changed above", page_of, id="by a page, changed above"),
        pytest.param("kept in outputs", page_of, id="by a page, kept in outputs"),
    ],
    indirect=["source"],
)
def test_the_notebook_alone_carries_the_session(
    source: Source, place: Place, front_end: Callable[[Source, Place], Any]
) -> None:
    assert [path.name for path in place.folder.iterdir()] == ["work.ipynb"]
    requests = source.provider.requests
    with front_end(source, place) as run:
        thought = Reply((Think("Where were we?"), Say("Here we are.")))
        shown = run(LAST, thought)
        assert sent(requests[-1]) == source.told
        assert shown.count("History from this file") == 1
        assert shown.index(HISTORY) < shown.index("Here we are.")

        shown = run(LAST + 1, call("bash", COMMAND), say("As you like."), asks=True)
        assert "History from this file" not in shown
        assert "denied" in shown
        assert "begun" not in shown
        assert "Here we are." in sent(requests[-1])
        # OpenAI's own API takes no thoughts back.
        assert ("Where were we?" in sent(requests[-1])) == (source.protocol == "anthropic")


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


def used(path: Path) -> int:
    """Return the tokens that all requests of the session have sent, replaced turns included."""
    by_model = headless.read(path).metadata.crush.totals.usage_by_model
    return sum(usage.input_tokens for usage in by_model.values())


def shuffled(cells: list[Any]) -> None:
    """Move a cell up, delete one, and paste one twice under other ids."""
    cells.insert(0, cells.pop(3))
    del cells[3]
    for number in range(2):
        pasted = copy.deepcopy(cells[1])
        pasted.id = f"pasted-{number}"
        cells.insert(4, pasted)


@pytest.mark.parametrize("source", ["as played"], indirect=True)
def test_cells_that_were_moved_deleted_and_pasted_go_along(source: Source, place: Place) -> None:
    provider, environ = source.provider, settings(source.protocol, source.provider)
    place.edit(lambda notebook: notebook.cells.pop())
    with kernel_in(place.folder, place.home, environ) as kernel:
        page = OpenPage(kernel, place.path).open()
        page.edit(shuffled)
        last = len(page.notebook.cells) - 1
        provider.play(REFUSED)
        page.run(last)
        path = page.save()
    told = sent(provider.requests[-1])
    assert told.count("I look.") == 3
    assert "As you like." in told
    assert "out\\n" not in told, "the deleted cell"

    assert used(path) == used(source.path)

    other = Place(place.home.with_name("home-2"), place.folder.with_name("empty-2"))
    shutil.copy(path, other.path)
    with page_of(source, other) as run:
        run(last, say("Here we are."))
        assert sent(provider.requests[-1]) == told
    assert used(other.path) == used(path) + 10


@pytest.mark.parametrize("source", ["as played"], indirect=True)
def test_another_provider_goes_on_with_it(source: Source, place: Place) -> None:
    other = "openai" if source.protocol == "anthropic" else "anthropic"
    with page_of(replace(source, protocol=other), place) as run:
        assert "Here we are." in run(LAST, say("Here we are."))
    told = text_of(source.provider.requests[-1].body["messages"])
    for said in ("I look.", "still not", "A dark square.", "Once upon a time", "begun", "out"):
        assert said in told
    assert "Where am I?" not in told, "what one provider has thought is nothing for another"


def text_of(messages: Any) -> str:  # noqa: ANN401 - JSON
    return json.dumps(messages, ensure_ascii=False)


def gone_on_elsewhere(path: Path, folder: Path, provider: FakeProvider) -> Any:  # noqa: ANN401
    """Run the last cell of a copy of the notebook in `folder`, and return what was sent."""
    with kernel_in(folder, folder.parent / "other", settings("anthropic", provider)) as kernel:
        shutil.copy(path, folder / "work.ipynb")
        page = OpenPage(kernel, folder / "work.ipynb").open()
        provider.play(say("Yes."))
        assert page.run(len(page.notebook.cells) - 1).status == "ok"
    assert not [each.refusal for each in provider.requests if each.refusal]
    return provider.requests[-1].body["messages"]


def test_a_secret_that_the_model_has_seen_stays_behind(
    provider: FakeProvider, home: Path, tmp_path: Path
) -> None:
    folder, secret = tmp_path / "case", "hunter2-hunter2-hunter2"
    environ = settings("anthropic", provider) | {"DEPLOY_TOKEN": secret}
    with kernel_in(folder, home, environ) as kernel:
        (folder / "deploy.sh").write_text(f"login --token {secret}\n", encoding="utf-8")
        path = headless.write(folder / "work.ipynb", ["look", f"is it {secret}?", "go on"])
        page = OpenPage(kernel, path).open()
        view = Call("view", {"file_path": "deploy.sh"})
        provider.play(Reply((Think("Look."), view)), say(f"It says {secret}."), say("Yes."))
        page.run(0)
        page.run(1)
        provider.play(REFUSED)
        page.run(2)
        page.save()
    before = text_of(provider.requests[-1].body["messages"])
    assert secret in before

    # The text of a cell is the user's own; what we write is not.
    assert path.read_text(encoding="utf-8").count(secret) == 1
    told = text_of(gone_on_elsewhere(path, tmp_path / "empty", provider))

    assert told == before.replace(secret, "⟨secret: DEPLOY_TOKEN⟩")


def test_what_was_too_large_for_the_notebook_is_told_as_left_behind(
    provider: FakeProvider, home: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "case"
    with kernel_in(folder, home, settings("anthropic", provider)) as kernel:
        (folder / "noise.png").write_bytes(encoded(noise((400, 300)), "PNG"))
        words = "\n".join(f"a line of {number}" for number in range(20_000))
        (folder / "long.txt").write_text(words, encoding="utf-8")
        cells = ["view it", "see @noise.png and @long.txt", "go on"]
        page = OpenPage(kernel, headless.write(folder / "work.ipynb", cells)).open()
        provider.play(call("view", {"file_path": "noise.png"}), say("Noise."), say("Long."))
        page.run(0)
        page.run(1)
        path = page.save()
    assert path.stat().st_size < 600_000

    told = text_of(gone_on_elsewhere(path, tmp_path / "empty", provider))

    assert told.count("only this small preview is left") == 2
    assert "only its two ends are left" in told
    assert len(told) < 200_000
