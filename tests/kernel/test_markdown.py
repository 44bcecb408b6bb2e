"""What `kernel.markdown` promises, checked with other people's parsers."""

import re
from collections.abc import Callable
from html import unescape
from html.parser import HTMLParser

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from crush_kernel.kernel.markdown import (
    code_span,
    escape,
    fenced,
    neutralize,
    open_fence,
    visible,
)
from tests.kernel.parsers import commonmark, jupyterlab, nbconvert

Parser = Callable[[str], str]

PARSERS = [
    pytest.param(commonmark, id="commonmark"),
    pytest.param(nbconvert, id="nbconvert"),
    pytest.param(jupyterlab, id="jupyterlab"),
]

# --- what may come out --------------------------------------------------------------------

ELEMENTS = re.compile(
    "p|h[1-6]|ul|ol|li|pre|code|blockquote|table|thead|tbody|tr|th|td|em|strong|s|del|a|br|hr"
    "|span|div|input|dl|dt|dd"
)
ATTRIBUTES = re.compile("href|title|class|id|start|style|align|type|checked|disabled")
SCHEMES = ("http", "https", "mailto")


class _Inspector(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.faults: list[str] = []
        self.text: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if not ELEMENTS.fullmatch(tag):
            self.faults.append(f"<{tag}>")
        for name, value in attrs:
            if not ATTRIBUTES.fullmatch(name):
                self.faults.append(f"{tag}@{name}")
            if name == "href":
                scheme = re.match(r"([^/?#]*?):", re.sub(r"[\x00-\x20]", "", value or ""))
                if scheme and scheme[1].lower() not in SCHEMES:
                    self.faults.append(f"href={value}")
            if name == "style" and not re.fullmatch(r"text-align: ?\w+;?", value or ""):
                self.faults.append(f"style={value}")

    def handle_comment(self, data: str) -> None:
        self.faults.append(f"comment {data}")

    def handle_decl(self, decl: str) -> None:
        self.faults.append(f"declaration {decl}")

    def handle_pi(self, data: str) -> None:
        self.faults.append(f"instruction {data}")

    def handle_data(self, data: str) -> None:
        self.text.append(data)


def inspected(html: str) -> _Inspector:
    inspector = _Inspector()
    inspector.feed(html)
    inspector.close()
    return inspector


def faults(markdown: str) -> list[tuple[str, str]]:
    return [
        (parser.__name__, fault)
        for parser in (commonmark, nbconvert, jupyterlab)
        for fault in inspected(parser(markdown)).faults
    ]


def text_of(html: str) -> str:
    return " ".join("".join(inspected(html).text).replace("¶", "").split())


# --- laws ---------------------------------------------------------------------------------

_FRAGMENTS = [
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "<b>",
    "</details>",
    "<!-- x -->",
    "<?php",
    "<![CDATA[",
    "<a href='javascript:alert(1)'>",
    "<http://a.b>",
    "<javascript:alert(1)>",
    "`",
    "``",
    "```",
    "```py\n",
    "~~~",
    "~~~\n",
    "\n```\n",
    "\n~~~\n",
    "$",
    "$$",
    "\\$",
    "\\",
    "\\\\",
    "\\(",
    "\\)",
    "\\\\(",
    "\\\\)",
    "\\[",
    "\\]",
    "\\\\[",
    "\\\\]",
    "\\begin{a}",
    "\\end{a}",
    "{",
    "}",
    '"',
    '"onmouseover="alert(1)',
    '"onx=1 y="',
    "\n",
    "\n\n",
    "  ",
    "    ",
    "\t",
    "- ",
    "1. ",
    "> ",
    "# ",
    "[a](",
    "[a]",
    "](",
    "]:",
    "[x]: ",
    "![",
    "![a](http://e/x.png)",
    "javascript:alert(1)",
    "&#x6a;avascript:alert(1)",
    "java&#10;script:alert(1)",
    "data:text/html,<script>",
    "vbscript:x",
    "file:///etc",
    "http://a.b/c",
    "https://a.b/$x$",
    "http://z$",
    "www.x.y",
    "ftp://x.y",
    "a@b.c",
    ")",
    "(",
    "!",
    "@@0@@",
    "@@1",
    "@@",
    "word",
    "x",
    "_",
    "*",
    "**",
    "<",
    ">",
    "&",
    "&lt;",
    "\u202e",
    "\x00",
    "\x1b",
    "\r",
    "===\n",
    "---\n",
    "<br>",
    "<<b>",
    "`<b>`",
    '``` "onx="1\n',
    '```x" onmouseover="alert(1)\n',
    "```mermaid\n",
    "   ```py\n",
    "- ```\n",
    "</code>",
    "<code>",
    "~~",
    "[^1]: ",
    'title"',
    "'",
    "[x][y]",
    "\ud800",
    "\u200d",
    "```\n$$ <script>x</script>\n```",
    "$5",
    "$x$",
    "`$`",
    "$a{b$",
    "$c}d$",
    "<p\n",
    "|",
    "| a | b |\n|---|---|\n",
]

hostile = st.lists(st.sampled_from(_FRAGMENTS), max_size=16).map("".join)


@pytest.mark.slow
@given(hostile)
@settings(max_examples=400, deadline=None)
@example('[x](http://a$"onmouseover=alert(1)"$b)')
@example('`a` \\\\`$` $http://a$"onmouseover="alert(1)$b$')
@example("a $$\n\n```\n$$ <script>alert(1)</script>\n```")
@example("- ```\n  x\n y\n  ```\n\n```\n<script>alert(1)</script>\n```")
@example("!![a](http://e/x.png)")
@example("!<http://a.b>")
@example("```mermaid\n<script>alert(1)</script>\n```")
def test_no_parser_finds_anything_harmful(text: str) -> None:
    assert faults(neutralize(text)) == []


@pytest.mark.slow
@given(st.text())
@settings(max_examples=200, deadline=None)
def test_any_text_at_all_is_harmless_and_encodable(text: str) -> None:
    safe = neutralize(text)
    safe.encode()
    assert faults(safe) == []


@pytest.mark.slow
@given(st.lists(hostile, min_size=2, max_size=4))
@settings(max_examples=150, deadline=None)
def test_results_can_be_joined_with_blank_lines(texts: list[str]) -> None:
    assert faults("\n\n".join(map(neutralize, texts))) == []


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("between $1 and $2", id="dollars"),
        pytest.param("$$1$$", id="two dollars"),
        pytest.param(r"\(a\) \[b\]", id="brackets"),
        pytest.param(r"\begin{equation}x\end{equation} \ref{x}", id="environment"),
    ],
)
@pytest.mark.parametrize("parser", PARSERS)
def test_plain_text_is_shown_and_holds_no_formula(parser: Parser, text: str) -> None:
    nodes = re.split(r"<[^>]*>", parser(escape(text)))
    assert unescape("".join(nodes)).strip() == text
    # MathJax reads what is shown, one run of text at a time.
    assert not [node for node in map(unescape, nodes) if re.search(r"[$\\].", node)]


@pytest.mark.slow
@given(hostile, hostile)
@settings(max_examples=150, deadline=None)
def test_escaped_and_fenced_text_is_harmless_in_a_fold(title: str, body: str) -> None:
    html = [f"<sub>{escape(title)}</sub>", fenced(body), fenced(body, "diff"), code_span(title)]
    found = [fault for fault in faults("\n\n".join(html)) if fault[1] != "<sub>"]
    assert found == []


@pytest.mark.slow
@given(hostile)
def test_a_code_block_shows_its_text_as_it_is(text: str) -> None:
    html = commonmark(fenced(text))
    expected = visible(text)
    shown = "".join(inspected(html).text)
    assert shown.rstrip("\n") == expected.rstrip("\n")


@pytest.mark.slow
@given(
    st.lists(st.sampled_from(("word", "It's", "done.", "a", "42", "(so)", "é", "—")), min_size=1)
)
def test_plain_prose_is_left_alone(words: list[str]) -> None:
    prose = " ".join(words)
    assert neutralize(prose) == prose


@pytest.mark.slow
@given(hostile)
@settings(max_examples=150, deadline=None)
def test_a_cut_at_a_blank_line_outside_of_code_does_no_harm(text: str) -> None:
    parts = text.split("\n\n")
    opener = ""
    for index, part in enumerate(parts[:-1]):
        opener = open_fence(part, opener)
        if not opener:
            head = "\n\n".join(parts[: index + 1])
            tail = "\n\n".join(parts[index + 1 :])
            assert faults(f"{neutralize(head)}\n\n{neutralize(tail)}") == []


# --- what stays as it was meant -----------------------------------------------------------


@pytest.mark.parametrize(
    "markdown",
    [
        pytest.param("# Title\n\ntext", id="heading"),
        pytest.param("- a\n- b\n  - c", id="list"),
        pytest.param("| a | b |\n|---|---|\n| `x` | **y** |", id="table"),
        pytest.param("> quoted\n> more", id="quote"),
        pytest.param("a < b, c <= d, x <- y, <3", id="less-than"),
        pytest.param("[docs](https://x.y/a_b?q=1&r=2#f)", id="link"),
        pytest.param("[here](src/a.py)", id="relative link"),
        pytest.param("Run `make test` in `$HOME`, then `a_b*c`.", id="code spans"),
        pytest.param("It costs $5.", id="one price"),
        pytest.param("Let $x_1 + y^2$ be it.\n\n$$\nE = mc^2\n$$", id="formulas"),
        pytest.param("\\begin{align}\na &= b \\\\\n\\end{align}", id="environment"),
        pytest.param("```python\nprint('<b>')\n```", id="code block"),
        pytest.param("1. Do:\n   ```bash\n   make\n   ```\n2. Done", id="code block in a list"),
        pytest.param("[ref]: https://e.com/x", id="link definition"),
        pytest.param("👩\u200d👩\u200d👧 नी\u200dम", id="joiners where they belong"),
        pytest.param("a  \nb\\\nc", id="hard breaks"),
    ],
)
def test_harmless_markdown_is_left_alone(markdown: str) -> None:
    assert neutralize(markdown) == markdown


@pytest.mark.parametrize("parser", PARSERS)
@pytest.mark.parametrize(
    ("markdown", "text"),
    [
        pytest.param("Use `Vec<T>` and `a &lt; b`.", "Use Vec<T> and a &lt; b.", id="code span"),
        pytest.param("`` a`<b>`c ``", "a`<b>`c", id="backticks in code"),
        pytest.param("Write <details> here", "Write <details> here", id="tag"),
        pytest.param("\\<b> and \\`x` and \\![a]", "<b> and `x` and ![a]", id="escapes"),
        pytest.param("$5 and $10", "$5 and $10", id="prices"),
        pytest.param("```\n<b> & `x` $$\n", "<b> & `x` $$", id="unclosed block"),
        pytest.param("- ```html\n  <b>\n  ```", "<b>", id="block in a list"),
        pytest.param("> ```\n> <b>\n> ```", "<b>", id="block in a quote"),
        pytest.param("text\n\n    <b>indented</b>", "text <b>indented</b>", id="indented block"),
        pytest.param("````md\n```\n<b>\n```\n````", "``` <b> ```", id="block in a block"),
        pytest.param("`a\nb`", "a b", id="code over two lines"),
    ],
)
def test_what_looks_like_html_is_shown_as_text(parser: Parser, markdown: str, text: str) -> None:
    assert text_of(parser(neutralize(markdown))) == text


@pytest.mark.parametrize(
    ("markdown", "expected"),
    [
        pytest.param("\\(x^2\\)", "$x^2$", id="TeX inline"),
        pytest.param("\\[\nx\n\\]", "$$\nx\n$$", id="TeX display"),
        pytest.param("$a<b$", "$a< b$", id="a sign that could open a tag"),
        pytest.param("![cat](http://e.com/c.png)", "[cat](http://e.com/c.png)", id="image"),
        pytest.param("![](http://e.com/c.png)", "[image](http://e.com/c.png)", id="unnamed image"),
        pytest.param("<https://a.b/c>", "[https://a.b/c](https://a.b/c)", id="autolink"),
        pytest.param("[p.py:3](p.py:3)", "[p.py:3](./p.py:3)", id="place in a file"),
        pytest.param("[a](<http://x.y/a b>)", "[a](http://x.y/a%20b)", id="pointed destination"),
        pytest.param("| a<br>b |", "| a<br>b |", id="line break in a cell"),
        pytest.param("```\nx", "```text\nx\n```", id="unclosed block"),
        pytest.param('[a](http://x "t\\"")', '[a]\\(http://x "t\\"")', id="odd title"),
    ],
)
def test_unsafe_forms_become_safe_ones(markdown: str, expected: str) -> None:
    assert neutralize(markdown) == expected


@pytest.mark.parametrize("parser", PARSERS)
@pytest.mark.parametrize(
    "destination",
    [
        "javascript:alert(1)",
        "JaVaScRiPt:alert(1)",
        "&#x6a;avascript:alert(1)",
        "&#106;avascript&colon;alert(1)",
        "&amp;#106;avascript:alert(1)",
        "java&Tab;script:alert(1)",
        "java&NewLine;script:alert(1)",
        "javascript\\:alert(1)",
        "<javascript:alert(1)>",
        "< javascript:alert(1)>",
        "\x01javascript:alert(1)",
        "vbscript:msgbox(1)",
        "data:text/html;base64,PHNjcmlwdD4=",
        "file:///etc/passwd",
        "ftp://x.y/z",
        "blob:x",
    ],
)
@pytest.mark.parametrize("form", ["[a]({})", "![a]({})", "[a]\n\n[a]: {}", "[a]:\n {}\n\n[a]"])
def test_a_link_never_leads_anywhere_but_to_a_page(
    parser: Parser, destination: str, form: str
) -> None:
    html = parser(neutralize(form.format(destination)))
    hrefs = re.findall(r'href="([^"]*)"', html)
    assert not [href for href in hrefs if not href.startswith("#")]
    assert inspected(html).faults == []


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        pytest.param("a\u202egnp.exe", "a⟨U+202E⟩gnp.exe", id="right-to-left override"),
        pytest.param("a\x1b[31mb", "a⟨U+001B⟩[31mb", id="escape sequence"),
        pytest.param("a\u200bb\ufeff", "a⟨U+200B⟩b⟨U+FEFF⟩", id="zero width"),
        pytest.param("rm\u200d -rf", "rm⟨U+200D⟩ -rf", id="joiner beside ASCII"),
        pytest.param("x\U000e0041", "x⟨U+E0041⟩", id="tag character"),
        pytest.param("\ud800", "⟨U+D800⟩", id="lone surrogate"),
        pytest.param("a\r\nb\rc\td", "a\nb\nc\td", id="line ends and tabs"),
        pytest.param("naïve 日本 👍🏽", "naïve 日本 👍🏽", id="ordinary text"),
    ],
)
def test_hidden_characters_are_made_visible(text: str, shown: str) -> None:
    assert visible(text) == shown
    assert visible(shown) == shown


@pytest.mark.parametrize(
    ("info", "language"),
    [
        pytest.param("python", "python", id="name"),
        pytest.param("c++ title=x", "c++", id="name and more"),
        pytest.param("{.js}", "js", id="pandoc"),
        pytest.param('x" onmouseover="alert(1)', "x", id="attribute"),
        pytest.param('"><img src=x>', "text", id="element"),
        pytest.param("", "text", id="none"),
    ],
)
def test_the_language_of_a_block_is_a_plain_name(info: str, language: str) -> None:
    assert neutralize(f"~~~{info}\nx\n~~~") == f"```{language}\nx\n```"


@pytest.mark.parametrize(
    "text",
    [
        pytest.param('\\\\("x"\\\\)', id="TeX delimiters"),
        pytest.param("\\begin{x}", id="environment"),
        pytest.param("@@1@@2@@\n\n<b>", id="placeholders"),
    ],
)
def test_code_that_jupyterlab_would_take_apart_is_shown_all_the_same(text: str) -> None:
    for parser in (commonmark, nbconvert, jupyterlab):
        assert text_of(parser(fenced(text))) == " ".join(text.split())


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("](" * 10_000, id="links"),
        pytest.param("`" * 20_000, id="one run of backticks"),
        pytest.param("`a" * 10_000, id="backticks"),
        pytest.param("$a " * 7000, id="dollars"),
        pytest.param(" " * 20_000 + "x", id="blanks"),
        pytest.param("> " * 10_000 + "```", id="quotes"),
        pytest.param("- ```\n" * 3000, id="blocks"),
        pytest.param("\\(a " * 5000, id="TeX"),
    ],
)
@pytest.mark.timeout(10)
def test_no_input_takes_long(text: str) -> None:
    assert neutralize(text)
