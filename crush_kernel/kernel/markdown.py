"""Makes untrusted text safe inside `text/markdown`, whoever renders it.

JupyterLab does not sanitize the outputs of a running kernel, it cuts formulas out before it
parses and pastes them back unescaped, and other readers use other parsers. So nothing here
relies on how one parser reads a text: what could start a tag, an image, a script link or a
formula that reaches too far does not survive in any reading. Code blocks are the one place
for raw content: they stand at the margin between blank lines, and their opening line
carries a language, so that no parser can take it for the end of something else.

Source: CommonMark 0.31, GFM autolinks, JupyterLab `rendermime` (`removeMath`), nbconvert
`markdown_mistune`.
"""

import html
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal

_HIDDEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f"
    "\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\u3164\ufeff\uffa0\ufff0-\ufffb"
    "\ud800-\udfff\U000e0000-\U000e0fff]"
    # Joiners belong to emoji and some scripts; beside ASCII they only hide.
    "|(?<=[\x00-\x7f])[\u200c\u200d]|[\u200c\u200d](?=[\x00-\x7f])"
)
_TAG = re.compile(r"<(?=[A-Za-z/!?])")
_ENTITIES = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", "\n": " "})
_MARKUP = _ENTITIES | str.maketrans({char: f"&#{ord(char)};" for char in "\\`*[]$~|"})
_CODE = _MARKUP | str.maketrans({char: f"&#{ord(char)};" for char in "_{}:@.!()#\"'"})
_OUTER_UNDERSCORE = re.compile(r"(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])")
_PRE = str.maketrans({char: f"&#{ord(char)};" for char in "\\`$~@{}"}) | str.maketrans(
    {"&": "&amp;", "<": "&lt;", ">": "&gt;"}
)
_SPLIT_BY_JUPYTERLAB = re.compile(r"\\\\[()\[\]]|\\(?:begin|end)\{|@@\d")
"""What JupyterLab takes for a formula even in a code block, where highlighting ruins it."""


def visible(text: str) -> str:
    r"""Return `text` with line ends as `\n` and what hides or reorders shown as `⟨U+202E⟩`."""
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    return _HIDDEN.sub(lambda found: f"⟨U+{ord(found[0]):04X}⟩", text)


def escape(text: str) -> str:
    """Return plain `text` for the middle of a line of Markdown or HTML; line ends turn blank.

    Not for HTML attributes: quotes stay as they are.
    """
    text = _OUTER_UNDERSCORE.sub("&#95;", visible(text).translate(_MARKUP))
    # Looks like a placeholder of JupyterLab's, see there.
    return text.replace("@@", "&#64;@")


def code_span(text: str) -> str:
    """Return `text` as code for the middle of a line of Markdown."""
    return _code_span(visible(text)) if text.strip() else ""


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


# --- blocks -------------------------------------------------------------------------------

_FENCE = re.compile(
    r"(?P<indent>[ \t>]*(?:(?:[-*+]|\d{1,9}[.)])[ \t>]+)*)"
    r"(?P<mark>`{3,}(?=[^`]*$)|~{3,})(?P<info>.*)"
)
_NOT_INERT = re.compile(
    r"<[A-Za-z/!?]|[`$]|~~~|\\\\[()\[\]]|\\(?:begin|end)\{|\]\(|\]:|!\[|@@\d|ftp:|xmpp:"
)
"""What has a meaning outside of code that would have to be broken there."""
_INDENTED = re.compile(r" {4}| {0,3}\t")
_LIST_ITEM = re.compile(r"[ \t>]*(?:[-*+]|\d{1,9}[.)])(?:[ \t]|$)")


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
                return _Paragraph("\n".join(self.lines)).text()
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
        and not any(_NOT_INERT.search(line) for line in content)
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


# --- inside a paragraph -------------------------------------------------------------------

_TOKEN = re.compile(r"\\+|`+|\$+|<|!+(?=[\[<])|\]|~{3,}|@@(?=\d)|(?:ftp|xmpp):", re.IGNORECASE)
_BREAKS_CODE = re.compile(r"\n[ \t]*(?:[-*+#>|]|\d{1,9}[.)]|={2,})")
_AUTOLINK = re.compile(r"<(https?://[^\s<>\"]{1,2000})>", re.IGNORECASE)
_LINE_BREAK = re.compile(r"<br[ \t]{0,3}/?>", re.IGNORECASE)
_DEFINITION = re.compile(
    r"(?P<head>(?:^|\n)[ ]{0,3}\[[^\[\]\\`<>&$!\n]{1,200}\]):[ \t]+(?P<url>\S{1,2000})[ \t]*"
    r"(?:\"[^\"\n]*\"|'[^'\n]*'|\([^()\n]*\))?[ \t]*(?=\n|$)"
)
_TITLE = re.compile(r"[ \t]+(?:\"([^\"\n]{0,500})\"|'([^'\n]{0,500})'|\(([^()\n]{0,500})\))[ \t]*")
_MAX_PARENTHESES = 32
"""How deep they nest in a destination at most, as in CommonMark's own parsers."""


class _Paragraph:
    """One run of lines without a blank one, read from left to right.

    Afterwards every backtick belongs to a code span of one line with single backticks, and
    every dollar sign to a formula or to such a span: on that all parsers agree.
    """

    def __init__(self, source: str) -> None:
        self._source = source
        self._out: list[str] = []
        self._dollars: list[int] = []
        """Where `_out` holds a dollar sign that is no formula."""
        self._has_math = False
        self._runs: dict[int, list[int]] = {}
        """Where runs of so many backticks start, last first; used up on the way."""
        for run in re.finditer("`+", source):
            self._runs.setdefault(len(run[0]), []).insert(0, run.start())
        self._definitions = {
            found.end("head"): (found.end(), url)
            for found in _DEFINITION.finditer(source)
            if (url := _safe_url(found["url"])) is not None
        }

    def text(self) -> str:
        position = 0
        while found := _TOKEN.search(self._source, position):
            self._out.append(self._source[position : found.start()])
            position = self._token(found)
        self._out.append(self._source[position:])
        dollar = "$" if self._source.count("$") == 1 else "<span>&#36;</span>"
        for index in self._dollars:
            self._out[index] = dollar
        return "".join(self._out)

    def _token(self, found: re.Match[str]) -> int:
        """Write what `found` becomes and return where to read on."""
        token = found[0]
        match token[0]:
            case "\\":
                return self._backslashes(found.start(), found.end())
            case "`":
                return self._code(found.start(), len(token))
            case "$":
                return self._dollar(found.start(), token)
            case "<":
                return self._angle(found.start())
            case "!":
                return self._image(found.end(), len(token))
            case "]":
                return self._bracket(found.end())
            case "~":
                self._out.append("&#126;" * len(token))
            case "@":
                self._out.append("&#64;@")
            case _:
                self._out.append(f"{token[:-1]}&#58;")
        return found.end()

    def _backslashes(self, start: int, end: int) -> int:
        pairs, is_escaping = divmod(end - start, 2)
        follower = self._source[end : end + 1]
        if not is_escaping and follower in ("(", "["):
            math_end = self._tex(
                end - 2, end, "\\\\" + (")" if follower == "(" else "]"), pairs - 1
            )
            if math_end:
                return math_end
        if is_escaping:
            return self._escaped(end, follower, pairs)
        self._backslash_pairs(pairs)
        return end

    def _backslash_pairs(self, count: int) -> None:
        self._out.append("&#92;" * count)

    def _escaped(self, end: int, follower: str, pairs: int) -> int:
        """Write `pairs` of backslashes and what one more does to the character at `end`."""
        if follower in ("(", "["):
            math_end = self._tex(end - 1, end, "\\" + (")" if follower == "(" else "]"), pairs)
            if math_end:
                return math_end
        self._backslash_pairs(pairs)
        match follower:
            case "`":
                self._out.append("&#96;")
            case "<":
                self._out.append("&lt;")
            case "!":
                self._out.append("&#33;")
            case "$":
                self._plain_dollars(1)
            case "]":
                is_like_link = self._source[end + 1 : end + 2] in ("(", ":")
                self._out.append("&#93;" if is_like_link else "\\]")
            case "[" | "\\" | "~" | "@":
                self._out.append(f"&#{ord(follower)};")
            case _:
                return self._environment(end)
        return end + 1

    def _environment(self, end: int) -> int:
        """Write the backslash before `end`, where LaTeX's `begin{…}` may follow."""
        opening = re.compile(r"(begin|end)\{([a-z]*\*?)\}", re.IGNORECASE).match(self._source, end)
        if opening is None:
            self._out.append("\\")
            return end
        closing = f"\\end{{{opening[2]}}}"
        stop = self._source.find(closing, opening.end())
        body = self._source[opening.end() : stop]
        if opening[1] == "begin" and stop >= 0 and _is_formula(body):
            self._out.append(f"\\begin{{{opening[2]}}}{_formula(body)}{closing}")
            return stop + len(closing)
        self._out.append(f"&#92;{opening[1]}&#123;")
        return opening.end(1) + 1

    def _tex(self, start: int, end: int, closing: str, pairs: int) -> int:
        r"""Write the formula between `\(` or `\[` and `closing`; 0 if it is none."""
        stop = self._source.find(closing, end + 1, end + 4000)
        body = self._source[end + 1 : stop]
        is_display = closing[-1] == "]"
        line_start = self._source.rfind("\n", 0, start) + 1
        if stop < 0 or not body.strip() or not _is_formula(body):
            return 0
        if is_display and self._source[line_start:start].strip(" \t>"):
            return 0
        if not is_display and "\n" in body:
            return 0
        self._backslash_pairs(pairs)
        dollars = "$$" if is_display else "$"
        self._out.append(f"{dollars}{_formula(body if is_display else body.strip())}{dollars}")
        return stop + len(closing)

    def _dollar(self, start: int, run: str) -> int:
        end = start + len(run)
        stop = self._source.find(run, end, end + 4000)
        body = self._source[end:stop]
        after = self._source[stop + len(run) : stop + len(run) + 1] if stop >= 0 else ""
        is_pair = (
            len(run) <= 2
            and stop >= 0
            and after != "$"
            and bool(body.strip())
            and _is_formula(body)
            and (len(run) == 2 or _is_inline_formula(body, after))
        )
        if not is_pair:
            self._plain_dollars(len(run))
            return end
        self._out.append(f"{run}{_formula(body)}{run}")
        return stop + len(run)

    def _plain_dollars(self, count: int) -> None:
        for _ in range(count):
            self._dollars.append(len(self._out))
            self._out.append("$")

    def _code(self, start: int, length: int) -> int:
        """Write the code span that opens at `start` with `length` backticks."""
        end = start + length
        runs = self._runs.get(length, [])
        while runs and runs[-1] < end:
            runs.pop()
        content = self._source[end : runs[-1]] if runs else ""
        if not runs or _BREAKS_CODE.search(content):
            self._out.append("&#96;" * length)
            return end
        self._out.append(_code_span(content))
        return runs[-1] + length

    def _angle(self, start: int) -> int:
        if link := _AUTOLINK.match(self._source, start):
            url = _safe_url(link[1])
            if url is not None:
                self._out.append(f"[{escape(link[1])}]({url})")
                return link.end()
        line_break = _LINE_BREAK.match(self._source, start)
        is_at_margin = not self._source[self._source.rfind("\n", 0, start) + 1 : start].strip()
        if line_break and not is_at_margin:
            self._out.append("<br>")
            return line_break.end()
        self._out.append("&lt;" if _TAG.match(self._source, start) else "<")
        return start + 1

    def _image(self, end: int, marks: int) -> int:
        """Write an image as a link, since merely showing it would call its server."""
        self._out.append("&#33;" * (marks - 1))
        if self._source[end] == "<":
            self._out.append("&#33;")
            return end
        end += 1
        alt = re.compile(r"([^\[\]`\\<$\n]{0,500})\]\(").match(self._source, end)
        link = self._link(alt.end()) if alt else None
        if alt is None or link is None:
            self._out.append("&#33;[")
            return end
        self._out.append(f"[{escape(alt[1].strip() or 'image')}{link[0]}")
        return link[1]

    def _bracket(self, end: int) -> int:
        if definition := self._definitions.get(end):
            self._out.append(f"]: {definition[1]}")
            return definition[0]
        match self._source[end : end + 1]:
            case "(":
                link = self._link(end + 1)
                self._out.append(link[0] if link else "]\\(")
                return link[1] if link else end + 1
            case ":":
                self._out.append("]\\:")
                return end + 1
            case _:
                self._out.append("]")
                return end

    def _link(self, start: int) -> tuple[str, int] | None:
        """Return `](destination "title")` for what follows the parenthesis, and its end."""
        found = _destination(self._source, start)
        url = _safe_url(found[0]) if found else None
        if found is None or not url:
            return None
        title = _TITLE.match(self._source, found[1])
        end = title.end() if title else found[1]
        end += len(self._source[end : end + 9]) - len(self._source[end : end + 9].lstrip(" \t"))
        if self._source[end : end + 1] != ")":
            return None
        words = next((group for group in title.groups() if group), "") if title else ""
        quoted = escape(words).replace('"', "&quot;")
        name = f' "{quoted}"' if words else ""
        return f"]({url}{name})", end + 1


def _code_span(content: str) -> str:
    text = content.replace("\n", " ")
    if not _NOT_INERT.search(text.replace("$", "", 1) if "$$" not in text else text) and (
        "\n" not in content
    ):
        return f"`{text}`"
    if text.startswith(" ") and text.endswith(" ") and text.strip():
        text = text[1:-1]
    return f"<code>{text.translate(_CODE)}</code>"


def _is_formula(body: str) -> bool:
    """Tell whether JupyterLab, nbconvert and we agree that a formula ends where `body` does.

    Quotes are excluded since JupyterLab would paste them into an attribute.
    """
    if re.search(r"[\"`$]|@@|~~~|\n[ \t]*\n|\\\Z", body):
        return False
    depth = 0
    for brace in re.findall(r"(?<!\\)[{}]", body):
        depth += 1 if brace == "{" else -1
        if depth < 0:
            return False
    return depth == 0


def _is_inline_formula(body: str, after: str) -> bool:
    """Tell a formula from two prices: no blank inside the signs, no digit after them."""
    return not (body[0].isspace() or body[-1].isspace() or after.isdigit() or "\n" in body)


def _formula(body: str) -> str:
    """Return `body` with blanks where other parsers might see a tag, a link or an image."""
    body = _TAG.sub("< ", body)
    body = re.sub(r"\](?=[(:])", "] ", body)
    body = re.sub(r"(ftp|xmpp):", r"\1 :", body, flags=re.IGNORECASE)
    return re.sub(r"!(?=\[)", "! ", body)


# --- links --------------------------------------------------------------------------------

_ENTITY = re.compile(r"&(?:#[0-9]{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z][A-Za-z0-9]{1,31});")
_URL_KEEPS = re.compile(r"[A-Za-z0-9\-._~:/?#@+,;=]|%[0-9A-Fa-f]{2}|[^\x00-\x7f]")


def _destination(source: str, start: int) -> tuple[str, int] | None:
    """Return the link destination at `start` and where it ends."""
    if pointed := re.compile(r"[ \t]{0,9}<([^<>\n]{0,2000})>").match(source, start):
        return pointed[1], pointed.end()
    found = re.compile(r"[ \t]{0,9}([^\s<>]{1,2000})").match(source, start)
    if found is None:
        return None
    depth = 0
    for index, char in enumerate(found[1]):
        depth += (char == "(") - (char == ")")
        if depth < 0:
            return found[1][:index], found.start(1) + index
        if depth > _MAX_PARENTHESES:
            return None
    return (found[1], found.end()) if depth == 0 else None


def _safe_url(raw: str) -> str | None:
    """Return `raw` encoded for any parser, or `None` if it does anything but lead to a page."""
    url = _decoded(raw.strip())
    bare = re.sub(r"\s", "", url)
    scheme = re.match(r"[^/?#]*?:", bare)
    if scheme is not None and scheme[0].lower() not in ("http:", "https:", "mailto:"):
        # `price.py:12` is a place in a file.
        if not re.fullmatch(r"[\w.+-]+\.\w+:\d+(?:[:-]\d+)?", bare):
            return None
        url = f"./{bare}"
    return _encoded(url) or None


def _decoded(url: str) -> str:
    """Undo escapes and entities, as often as any parser might."""
    for _ in range(3):
        once = _ENTITY.sub(_entity, re.sub(r"\\([!-/:-@\[-`{-~])", r"\1", url))
        if once == url:
            break
        url = once
    return visible(url)


def _entity(found: re.Match[str]) -> str:
    return html.unescape(found[0])


def _encoded(url: str) -> str:
    parts: list[str] = []
    position = 0
    while position < len(url):
        kept = _URL_KEEPS.match(url, position)
        if kept is not None:
            parts.append(kept[0])
        elif url[position] == "&":
            parts.append("&amp;" if _ENTITY.match(url, position) else "&")
        else:
            parts.append("".join(f"%{byte:02X}" for byte in url[position].encode()))
        position = kept.end() if kept else position + 1
    joined = "".join(parts).replace("@@", "@%40")
    return re.sub("(ftp|xmpp):", r"\1%3A", joined, flags=re.IGNORECASE)
