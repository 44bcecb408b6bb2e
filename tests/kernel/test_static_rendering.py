"""A saved session as nbconvert renders it: it reads well, and nothing of it runs."""

import subprocess
import sys
from collections.abc import Generator
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path

import pytest

from crush_kernel.history.notebook import RECORD_MIME_TYPE
from tests.fakes import eventful, headless
from tests.fakes.eventful import CELLS, kernel_in, settings
from tests.fakes.provider.server import serving

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]

READ = (
    *("look around", "I look.", "ls", "4 entries", "buy <b>bread</b>", "Two things."),
    *("make a file", "write", 'denied: "still not"', "As you like."),
    *("!echo out; exit 3", "out", "exit 3"),
    *("What is on @attached.png?", "A dark square."),
    *("view the other one", "image/png", "Soft blots & colors", "<script>alert('said')</script>"),
    *("tell a story", "Once upon a time", "interrupted"),
    *("run it", "bash", "allowed for the session", "interrupted", "begun"),
    *("fail", "refused the key (401)", "Check ANTHROPIC_API_KEY"),
    *("go on", "refused the key (401)"),
)
"""What a reader of the page finds, from top to bottom."""


@dataclass
class Seen(HTMLParser):
    """What a browser makes of a page, as far as it matters here."""

    words: str = ""
    scripts: list[str] = field(default_factory=list[str])
    images: list[str] = field(default_factory=list[str])
    handlers: list[str] = field(default_factory=list[str])
    links: list[str] = field(default_factory=list[str])
    _inside: str = ""

    def __post_init__(self) -> None:
        super().__init__()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        facts = dict(attrs)
        self.handlers += [name for name in facts if name.startswith("on")]
        self.links += [facts["href"] or ""] if "href" in facts else []
        self.images += [facts.get("src") or ""] if tag == "img" else []
        if tag in ("script", "style"):
            self._inside = tag
            self.scripts += [""] if tag == "script" else []

    def handle_endtag(self, tag: str) -> None:
        self._inside = "" if tag == self._inside else self._inside

    def handle_data(self, data: str) -> None:
        if not self._inside:
            self.words += data
        elif self._inside == "script":
            self.scripts[-1] += data


def converted(notebook: Path, target: str, *options: str) -> str:
    """Return what nbconvert makes of the notebook."""
    name = f"{notebook.stem}{'-'.join(options)}"
    arguments = ["--to", target, *options, "--output", name, str(notebook)]
    done = subprocess.run(
        [sys.executable, "-m", "jupyter", "nbconvert", *arguments],
        check=False,
        capture_output=True,
        text=True,
        timeout=headless.LIMIT_S,
    )
    assert done.returncode == 0, done.stderr
    suffix = {"html": ".html", "markdown": ".md"}[target]
    return notebook.with_name(f"{name}{suffix}").read_text(encoding="utf-8")


@pytest.fixture(scope="module", params=[True, False], ids=["in metadata", "in outputs"])
def notebook(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Generator[Path]:
    """A notebook in which everything happened that can; its turns are kept here or there."""
    base = tmp_path_factory.mktemp("static")
    path = base / "case" / "work.ipynb"
    with (
        serving() as provider,
        kernel_in(path.parent, base / "home", settings("anthropic", provider)) as kernel,
    ):
        yield eventful.play(kernel, provider, path, has_writer=request.param).save()


def assert_in_order(text: str, facts: tuple[str, ...]) -> None:
    position = 0
    for fact in facts:
        found = text.find(fact, position)
        assert found >= 0, f"{fact!r} is not in {text[position:][:500]!r}"
        position = found


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_a_page_shows_the_session_and_runs_nothing_of_it(notebook: Path, theme: str) -> None:
    empty = headless.write(notebook.with_name("empty.ipynb"), [])
    plain, seen = Seen(), Seen()
    plain.feed(converted(empty, "html", "--theme", theme))
    page = converted(notebook, "html", "--theme", theme)
    seen.feed(page)

    assert_in_order(" ".join(seen.words.split()), READ)
    assert seen.scripts == plain.scripts, "a script that the template does not bring"
    assert seen.handlers == []
    assert not any("script:" in link for link in seen.links)
    (viewed,) = seen.images
    assert viewed.startswith("data:image/png;base64,")
    for trace in ("widget", "Loading", RECORD_MIME_TYPE, "fingerprint"):
        assert trace not in seen.words
    assert "application/vnd.jupyter.widget" not in page


def test_markdown_shows_the_session(notebook: Path) -> None:
    text = converted(notebook, "markdown")

    assert_in_order(
        text.replace("**", "").replace("`", "").replace("&lt;", "<").replace("&gt;", ">"), READ
    )
    for trace in ("widget", "Loading", RECORD_MIME_TYPE, "fingerprint"):
        assert trace not in text
    assert text.count("```markdown\n") == len(CELLS)
