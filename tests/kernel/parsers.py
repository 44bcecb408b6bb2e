"""Three ways of rendering Markdown: the standard, nbconvert, and JupyterLab.

JupyterLab cuts formulas out, has the rest parsed, and pastes them back without escaping.
`_without_math` does as `removeMath` of its `rendermime` package does.
"""

import re

from markdown_it import MarkdownIt
from nbconvert.filters.markdown_mistune import markdown2html_mistune

_COMMONMARK = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])


def _accept(url: str) -> bool:  # noqa: ARG001 - not all parsers look at the scheme
    return True


_COMMONMARK.validateLink = _accept


def commonmark(source: str) -> str:
    return _COMMONMARK.render(source)


def nbconvert(source: str) -> str:
    return markdown2html_mistune(source)


def jupyterlab(source: str) -> str:
    """Render as `renderMarkdown` of JupyterLab 4.6 does, with another parser in the middle."""
    text, math = _without_math(source)

    def put_back(found: re.Match[str]) -> str:
        return math[int(found[1])] if int(found[1]) < len(math) else found[0]

    return re.sub(r"@@(\d+)@@", put_back, commonmark(text))


_FENCED = re.compile(r"^(?P<f>`{3,}|(~T){3,})[^`\n]*\n([\s\S]*?)^(?P=f)`*$", re.MULTILINE)
_SPAN = re.compile(r"(^|[^\\])(`+)([^\n]*?[^`\n])\2(?!`)", re.MULTILINE)
_SPLIT = re.compile(
    r"(\$\$?|\\(?:begin|end)\{[a-z]*\*?\}|\\[{}$]|[{}]|(?:\n\s*)+|@@\d+@@|\\\\[()\[\]])",
    re.IGNORECASE,
)


def _without_math(  # noqa: C901, PLR0912, PLR0915 - kept in the shape of the original
    source: str,
) -> tuple[str, list[str]]:
    has_code = "`" in source or "~~~" in source
    if has_code:
        source = source.replace("~", "~T")
        for pattern in (_FENCED, _SPAN):
            source = pattern.sub(lambda found: found[0].replace("$", "~D"), source)

    def restored(text: str) -> str:
        return text.replace("~D", "$").replace("~T", "~") if has_code else text

    math: list[str] = []
    blocks = _SPLIT.split(source)
    start = last = -1
    closing, braces = "", 0

    def take(end: int) -> None:
        body = "".join(blocks[start : end + 1])
        for char, entity in (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;")):
            body = body.replace(char, entity)
        blocks[start : end + 1] = [f"@@{len(math)}@@"] + [""] * (end - start)
        math.append(restored(body))

    index = 1
    while index < len(blocks):
        block = blocks[index]
        if block.startswith("@"):
            blocks[index] = f"@@{len(math)}@@"
            math.append(block)
        elif start >= 0:
            if block == closing:
                if braces:
                    last = index
                else:
                    take(index)
                    start = last = -1
            elif re.search(r"\n.*\n", block):
                if last >= 0:
                    index = last
                    take(index)
                start = last = -1
                braces = 0
            elif block == "{":
                braces += 1
            elif block == "}" and braces:
                braces -= 1
        elif block in ("$", "$$", "\\\\(", "\\\\[") or block[1:6].lower() == "begin":
            start, braces = index, 0
            closing = {"\\\\(": "\\\\)", "\\\\[": "\\\\]"}.get(block, block)
            if block.startswith("\\b"):
                closing = "\\end" + block[6:]
        index += 2
    if start >= 0 and last >= 0:
        take(last)
    return restored("".join(blocks)), math
