"""A conversation as a document: complete, readable and harmless."""

import json
import re
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crush_kernel.history.turn import Turn, TurnState
from crush_kernel.kernel.export import FORMATS, as_html, as_json, as_markdown, export_name
from crush_kernel.messages import (
    JsonObject,
    Media,
    Message,
    Opaque,
    Reasoning,
    ShellCommand,
    SummaryMark,
    Text,
    ToolCall,
    ToolResult,
    Usage,
)
from tests.kernel.parsers import commonmark, jupyterlab, nbconvert

HOSTILE = (
    "<script>alert(1)</script> <img src=x onerror=alert(1)> </details></body> "
    "[click](javascript:alert(1)) ![](https://example.org/track.png) \u202eevil\u2066"
)


PNG = "iVBORw0KGgo="


def turn(*messages: Message, end: TurnState = "end_turn", is_start: bool = False) -> Turn:
    return Turn("c", messages=messages, end=end, is_start=is_start)


def conversation(words: str = "fine") -> list[Turn]:
    """Return turns in which `words` stand wherever somebody else can put them."""
    call = ToolCall("t", "bash", json.dumps({"command": words}))
    facts: JsonObject = {"diff": f"+{words}", "summary": words, "permission": words}
    return [
        turn(
            Message("user", (Text(f"ask {words}"), Media("image/png", PNG, name=words))),
            Message("assistant", (Reasoning(words), Text(f"look {words}"), call), model=words),
            Message("tool", (ToolResult("t", f"out {words}", metadata=facts),)),
            Message(
                "assistant", (Text(f"done {words}"),), model="m-1", usage=Usage(1200, 0, 0, 64)
            ),
        ),
        turn(Message("user", (ShellCommand(words, f"printed {words}", 3),))),
        turn(is_start=True),
    ]


def test_everything_that_was_said_and_done_is_in_the_markdown() -> None:
    text = as_markdown(conversation())
    said = ("> ask fine", "look fine", "<b>bash</b> fine", "+fine", "done fine", "attached: fine")
    assert [part for part in said if part not in text] == []
    assert "$ fine\nprinted fine" in text
    assert "exit 3" in text
    assert "m-1 · 1.2 k in 64 out · 1 tool</sub>" in text
    assert "Started afresh" in text


def test_a_denied_and_an_interrupted_call_say_so() -> None:
    calls = (ToolCall("a", "bash", "{}"), ToolCall("b", "ls", "{}"))
    denied = ToolResult("a", "no", is_error=True, metadata={"permission": "denied"})
    text = as_markdown([turn(Message("assistant", calls), Message("tool", (denied,)))])
    assert re.search(r"<b>bash</b>.*denied", text)
    assert re.search(r"<b>ls</b>.*interrupted", text)


@pytest.mark.parametrize(
    ("end", "words"),
    [
        ("interrupted", "interrupted"),
        ("error", "ended with an error"),
        ("running", "still running"),
    ],
)
def test_a_turn_that_did_not_end_well_says_how(end: TurnState, words: str) -> None:
    assert f"<sub>{words}</sub>" in as_markdown([turn(Message("user", (Text("a"),)), end=end)])


def test_what_cannot_be_shown_is_named() -> None:
    parts = (SummaryMark("f"), Text("in short"), Opaque({"kind": "hologram"}))
    text = as_markdown([turn(Message("user", parts))])
    assert "The conversation so far was summarized" in text
    assert "in short" in text
    assert "Something that this version cannot show." in text


class Tags(HTMLParser):
    """Collects what a browser would act on."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[tuple[str, dict[str, str | None]]] = []
        self.others: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append((tag, dict(attrs)))

    def handle_comment(self, data: str) -> None:
        self.others.append(data)

    def handle_decl(self, decl: str) -> None:
        self.others.append(decl)

    def handle_pi(self, data: str) -> None:
        self.others.append(data)


def tags_of(page: str) -> Tags:
    tags = Tags()
    tags.feed(page)
    tags.close()
    return tags


HARMLESS = frozenset(
    (
        *("h1", "h2", "h3", "h4", "h5", "h6", "p", "blockquote", "details", "summary", "b", "sub"),
        *("pre", "code", "span", "em", "strong", "del", "s", "br", "hr", "a", "ul", "ol", "li"),
        *("table", "thead", "tbody", "tr", "th", "td", "img", "div", "input"),
    )
)
STYLE = re.compile(r"color: var\(--jp-(?:error|warn)-color[01]\)|text-align: ?\w+;?")


def harm(page: str) -> list[str]:
    """Return what in the body of a page could run, load or lead somewhere it should not."""
    found: list[str] = []
    tags = tags_of(page)
    for tag, attributes in tags.seen:
        allowed = {"href", "title", "class", "id", "start", "style", "align", "alt", "src"}
        found += [tag] if tag not in HARMLESS else []
        found += [f"{tag}@{name}" for name in attributes.keys() - allowed - {"type", "checked"}]
        href = re.sub(r"[\x00-\x20]", "", attributes.get("href") or "").lower()
        if re.match(r"[^/?#]*:", href) and not href.startswith(("http:", "https:", "mailto:")):
            found.append(href)
        if not (attributes.get("src") or "data:image/png;base64,").startswith("data:image/png;"):
            found.append(str(attributes["src"]))
        if "style" in attributes and not STYLE.fullmatch(attributes["style"] or ""):
            found.append(str(attributes["style"]))
    return found + tags.others


def body_of(page: str) -> str:
    head, _, rest = page.partition("<body>")
    body, _, tail = rest.rpartition("</body>")
    assert "<body" not in body
    assert "</body" not in body
    assert [tag for tag, _ in tags_of(head + tail).seen] == [
        *("html", "head", "meta", "meta", "meta", "title", "style"),
    ]
    return body


def test_nothing_that_others_wrote_is_markup_in_the_page() -> None:
    page = as_html(conversation(HOSTILE))
    assert harm(body_of(page)) == []
    assert "default-src 'none'" in page
    assert "\u202e" not in page


def test_nothing_in_a_page_is_loaded_from_elsewhere() -> None:
    page = as_html(conversation(HOSTILE))
    sources = [attributes["src"] for _, attributes in tags_of(page).seen if "src" in attributes]
    assert sources == [f"data:image/png;base64,{PNG}"]
    assert not re.search(r"<(?:link|script|iframe|object)|url\(|@import", page)


@pytest.mark.parametrize(
    "media",
    [
        pytest.param(Media("image/svg+xml", "PHN2Zz4=", "a.svg"), id="may hold scripts"),
        pytest.param(Media("application/pdf", "JVBERg==", "a.pdf"), id="no image"),
        pytest.param(Media("image/png", '"><script>', "a.png"), id="no base64"),
    ],
)
def test_what_is_no_harmless_image_is_only_named(media: Media) -> None:
    page = as_html([turn(Message("user", (media,)))])
    assert "<img" not in page
    assert f"attached: {media.name}" in page


_FRAGMENTS = [
    *("<script>alert(1)</script>", "<img src=x onerror=alert(1)>", "</details>", "</pre>"),
    *("</body>", "<!--", "-->", "<?php", "<![CDATA[", "<a href='javascript:alert(1)'>"),
    *("[a](javascript:alert(1))", "[a]: javascript:alert(1)\n", "[a][a]", "![b](http://c/d)"),
    *("<http://a.b>", "<javascript:alert(1)>", "`", "```", "```py\n", "\n```\n", "~~~\n", "$"),
    *("$$", "\\", "\\(", "\n", "\n\n", "> ", "- ", "    ", "\t", "|", "\n|-|-|\n", "*", "_"),
    *("&lt;script&gt;", "&#60;script&#62;", "\u202e", "\x00", '"', "'", "{title}", "{{", "%s"),
]
fragments = st.lists(st.sampled_from(_FRAGMENTS) | st.text(max_size=3), max_size=10).map("".join)


@pytest.mark.slow
@settings(max_examples=50)
@given(fragments)
def test_no_words_can_do_harm_in_a_page(words: str) -> None:
    assert harm(body_of(as_html(conversation(words)))) == []


@pytest.mark.slow
@pytest.mark.parametrize("parse", [commonmark, nbconvert, jupyterlab])
@settings(max_examples=50)
@given(words=fragments)
def test_no_words_can_do_harm_in_the_markdown(parse: Callable[[str], str], words: str) -> None:
    assert harm(parse(as_markdown(conversation(words)))) == []


def test_a_page_has_as_many_folds_as_the_conversation_has_results() -> None:
    folds = [name for name, _ in tags_of(as_html(conversation(HOSTILE))).seen if name == "details"]
    assert len(folds) == 2  # the reasoning and the call


def test_the_json_holds_the_records() -> None:
    document = json.loads(as_json(conversation()))
    assert document["version"] == 1
    assert [record["end"] for record in document["turns"]] == ["end_turn"] * 3
    assert document["turns"][0]["messages"][0]["parts"][0]["text"] == "ask fine"


@pytest.mark.parametrize("wanted", FORMATS)
def test_the_file_is_called_like_the_notebook(wanted: str) -> None:
    assert export_name(Path("/home/ada/plan.ipynb"), wanted) == f"plan.{wanted}"
    assert export_name(None, wanted) == f"conversation.{wanted}"
