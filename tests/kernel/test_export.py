"""A conversation as a document: complete, readable and harmless."""

import json
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from crush_kernel.history.turn import Turn
from crush_kernel.kernel.export import FORMATS, as_html, as_json, as_markdown, export_name
from crush_kernel.messages import (
    Media,
    Message,
    Reasoning,
    ShellCommand,
    Text,
    ToolCall,
    ToolResult,
)

HOSTILE = (
    "<script>alert(1)</script> <img src=x onerror=alert(1)> </details></body> "
    "[click](javascript:alert(1)) ![](https://example.org/track.png) \u202eevil\u2066"
)


def turn(*messages: Message, **fields: object) -> Turn:
    return Turn("c", messages=messages, end="end_turn", **fields)  # pyright: ignore[reportArgumentType]


def conversation(words: str = "fine") -> list[Turn]:
    """Return turns in which `words` stand wherever somebody else can put them."""
    call = ToolCall("t", "bash", json.dumps({"command": words}))
    return [
        turn(
            Message("user", (Text(f"ask {words}"), Media("image/png", "aGk=", name=words))),
            Message("assistant", (Reasoning(words), Text(f"look {words}"), call), model=words),
            Message("tool", (ToolResult("t", f"out {words}", metadata={"diff": f"+{words}"}),)),
            Message("assistant", (Text(f"done {words}"),), model="m-1"),
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
    assert "m-1" in text
    assert "Started afresh" in text


def test_a_denied_and_an_interrupted_call_say_so() -> None:
    calls = (ToolCall("a", "bash", "{}"), ToolCall("b", "ls", "{}"))
    denied = ToolResult("a", "no", is_error=True, metadata={"permission": "denied"})
    text = as_markdown([turn(Message("assistant", calls), Message("tool", (denied,)))])
    assert re.search(r"<b>bash</b>.*denied", text)
    assert re.search(r"<b>ls</b>.*interrupted", text)


class Tags(HTMLParser):
    """Collects what a browser would act on."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[tuple[str, dict[str, str | None]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append((tag, dict(attrs)))


def test_nothing_that_others_wrote_is_markup_in_the_page() -> None:
    page = as_html(conversation(HOSTILE))
    tags = Tags()
    tags.feed(page)
    names = {name for name, _ in tags.seen}
    assert names <= {
        *("html", "head", "meta", "title", "style", "body", "h2", "p", "blockquote", "details"),
        *("summary", "b", "sub", "pre", "code", "span", "em", "strong", "br", "hr", "a"),
    }
    for _, attributes in tags.seen:
        assert not any(name.startswith("on") for name in attributes)
        assert not str(attributes.get("href", "")).lower().startswith(("javascript", "data"))
        assert "src" not in attributes
    assert page.count("</body>") == 1
    assert "default-src 'none'" in page
    assert "\u202e" not in page


def test_a_page_has_as_many_folds_as_the_conversation_has_results() -> None:
    tags = Tags()
    tags.feed(as_html(conversation(HOSTILE)))
    folds = [name for name, _ in tags.seen if name == "details"]
    assert len(folds) == 2  # the reasoning and the call


def test_the_json_holds_the_records() -> None:
    document = json.loads(as_json(conversation()))
    assert document["version"] == 1
    assert [record["end"] for record in document["turns"]] == ["end_turn"] * 3
    assert document["turns"][0]["messages"][0]["parts"][0]["text"] == "ask fine"


@pytest.mark.parametrize("wanted", FORMATS)
def test_the_file_is_called_like_the_notebook(wanted: str) -> None:
    assert export_name(Path("/work/plan.ipynb"), wanted) == f"plan.{wanted}"
    assert export_name(None, wanted) == f"conversation.{wanted}"
