"""Makes untrusted text safe inside `text/markdown`, whoever renders it.

Pure. JupyterLab does not sanitize the outputs of a running kernel, it cuts formulas out
before it parses and pastes them back unescaped, and other readers use other parsers. So
nothing here relies on how one parser reads a text: what could start a tag, an image, a
script link or a formula that reaches too far does not survive in any reading. Code blocks
are the one place for raw content: they stand at the margin between blank lines, and their
opening line carries a language, so that no parser can take it for the end of something
else.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal

from crush_kernel.kernel.paragraph import neutral_paragraph
from crush_kernel.kernel.plaintext import NOT_INERT, code_span, escape, visible

__all__ = ["code_span", "escape", "fenced", "neutralize", "open_fence", "visible"]

_PRE = str.maketrans({char: f"&#{ord(char)};" for char in "\\`$~@{}"}) | str.maketrans(
    {"&": "&amp;", "<": "&lt;", ">": "&gt;"}
)
_SPLIT_BY_JUPYTERLAB = re.compile(r"\\\\[()\[\]]|\\(?:begin|end)\{|@@\d")
"""What JupyterLab takes for a formula even in a code block, where highlighting ruins it."""
_FENCE = re.compile(
    r"(?P<indent>[ \t>]*(?:(?:[-*+]|\d{1,9}[.)])[ \t>]+)*)"
    r"(?P<mark>`{3,}(?=[^`]*$)|~{3,})(?P<info>.*)"
)
_INDENTED = re.compile(r" {4}| {0,3}\t")
_LIST_ITEM = re.compile(r"[ \t>]*(?:[-*+]|\d{1,9}[.)])(?:[ \t]|$)")


def fenced(text: str, language: str = "") -> str:
    """Return a code block that shows `text` as it is; put blank lines around it."""
    text = visible(text)
    info = _language(language, text)
    if _SPLIT_BY_JUPYTERLAB.search(text):
        lines = text.translate(_PRE).replace("\n\n", "\n&#10;")
        return f"<pre><code>{lines}\n</code></pre>"
    runs = re.findall(r"`{3,}", text)
    fence = "`" * max(3, *(len(run) + 1 for run in runs)) if runs else "```"
    end = "" if text.endswith("\n") or not text else "\n"
    return f"{fence}{info}\n{text}{end}{fence}"


def neutralize(markdown: str) -> str:
    """Return a model's Markdown so that it means the same and can do no harm.

    The result is complete in itself: its code blocks are closed, and joining results with
    blank lines between is safe. Costs linear time; meant for some kilobytes at a time.
    """
    out: list[str] = []
    previous = "code"
    for block in _blocks(visible(markdown).split("\n")):
        is_close = not (block.is_apart or "code" in (block.kind, previous))
        out.append(("\n" if is_close else "\n\n") if out else "")
        out.append(block.text())
        previous = block.kind
    return "".join(out)


def open_fence(markdown: str, opener: str = "") -> str:
    """Return the line that opened the code block in which `markdown` ends, or nothing.

    Args:
        markdown: whole lines.
        opener: what this function returned for the text before.
    """
    fence = _FENCE.match(opener) if opener else None
    for line in markdown.split("\n"):
        if fence is None:
            fence = _FENCE.match(line)
        elif _closing(fence).match(line) or _leaves(line, fence["indent"]):
            fence = None
    return fence[0] if fence else ""


@dataclass(frozen=True, slots=True)
class _Block:
    """Lines that belong together: a run without a blank one, or code."""

    kind: Literal["text", "code", "nested"]
    """`nested` is a harmless code block in a list, passed on as it is."""
    lines: list[str]
    language: str = ""
    is_apart: bool = True
    """Whether a blank line stands before it."""

    def text(self) -> str:
        match self.kind:
            case "text":
                return neutral_paragraph("\n".join(self.lines))
            case "code":
                return fenced("\n".join(self.lines), self.language)
            case "nested":
                return "\n".join(self.lines)


def _blocks(lines: list[str]) -> Iterator[_Block]:
    number, is_apart, is_in_list = 0, True, False
    while number < len(lines):
        line = lines[number]
        if not line.strip():
            number, is_apart = number + 1, True
            continue
        if fence := _FENCE.match(line):
            block, number = _fenced_block(lines, number, fence)
        elif is_apart and not is_in_list and _INDENTED.match(line):
            block, number = _indented_block(lines, number)
        else:
            block, number = _text_block(lines, number)
            is_in_list = any(map(_LIST_ITEM.match, block.lines)) or (
                is_in_list and (not is_apart or line[0] in " \t>")
            )
        yield replace(block, is_apart=is_apart)
        is_apart = False


def _text_block(lines: list[str], number: int) -> tuple[_Block, int]:
    end = number + 1
    while end < len(lines) and lines[end].strip() and not _FENCE.match(lines[end]):
        end += 1
    return _Block("text", lines[number:end]), end


def _indented_block(lines: list[str], number: int) -> tuple[_Block, int]:
    end = number
    while end < len(lines) and (_INDENTED.match(lines[end]) or not lines[end].strip()):
        end += 1
    code = [_INDENTED.sub("", line, count=1) for line in lines[number:end]]
    while not code[-1].strip():
        code.pop()
    return _Block("code", code), end


def _fenced_block(lines: list[str], number: int, fence: re.Match[str]) -> tuple[_Block, int]:
    """Read the code block that `fence` opens in line `number`; return it and what follows."""
    mark, indent = fence["mark"], fence["indent"]
    closing = _closing(fence)
    end, is_closed = number + 1, False
    while end < len(lines) and not is_closed:
        if _leaves(lines[end], indent):
            break
        is_closed = bool(closing.match(lines[end]))
        end += 1
    content = lines[number + 1 : end - is_closed]
    info = _language(fence["info"], "\n".join(content))
    if indent and is_closed and _may_stay(indent, content, lines[end - 1]):
        return _Block("nested", [f"{indent}{mark}{info}", *content, lines[end - 1]]), end
    return _Block("code", [_outdented(line, len(indent)) for line in content], info), end


def _closing(fence: re.Match[str]) -> re.Pattern[str]:
    mark = fence["mark"]
    margin = r"[ \t>]*" if fence["indent"] else " {0,3}"
    return re.compile(rf"{margin}{mark[0]}{{{len(mark)},}}[ \t]*$")


def _leaves(line: str, indent: str) -> bool:
    """Tell whether `line` is outside of the list item that a code block is in."""
    return bool(indent) and ">" not in indent and bool(line) and not line[0].isspace()


def _may_stay(indent: str, content: list[str], last: str) -> bool:
    width = len(indent)
    return (
        not set(indent) & {">", "\t"}
        and not any(NOT_INERT.search(line) for line in content)
        and all(not line.strip() or not line[:width].strip(" ") for line in [*content, last])
    )


def _outdented(line: str, width: int) -> str:
    head = line[:width]
    return head.lstrip(" \t>") + line[width:]


def _language(info: str, content: str) -> str:
    """Return a name that fits anywhere: JupyterLab puts it into an attribute unescaped."""
    found = re.match(r"[ \t{.]*([A-Za-z0-9][A-Za-z0-9_+#.-]{0,31})", info)
    language = found[1] if found else "text"
    # nbconvert passes the source of diagrams on as raw HTML.
    is_diagram = language.lower().startswith("mermaid")
    return "text" if is_diagram and re.search(r"<(?!br ?/?>)[A-Za-z/!?]", content) else language
