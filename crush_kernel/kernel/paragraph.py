"""One paragraph of a model's Markdown, rewritten so that all parsers read the same.

Pure. Afterwards no `<` starts a tag but of ours, no image is left, every link is known to
be harmless, every backtick belongs to a code span of one line with single backticks, and
every dollar sign to a formula or to such a span.

Source: CommonMark 0.31, GFM autolinks, JupyterLab `rendermime` (`removeMath`), nbconvert
`markdown_mistune`.
"""

import re

from crush_kernel.kernel.links import destination, safe_url
from crush_kernel.kernel.plaintext import TAG, code_span, entities, escape

_TOKEN = re.compile(r"\\+|`+|\$+|<|!+(?=[\[<])|\]|~{3,}|@@(?=\d)|(?:ftp|xmpp):", re.IGNORECASE)
_BREAKS_CODE = re.compile(r"\n[ \t]*(?:[-*+#>|]|\d{1,9}[.)]|={2,})")
_AUTOLINK = re.compile(r"<(https?://[^\s<>\"]{1,2000})>", re.IGNORECASE)
_LINE_BREAK = re.compile(r"<br[ \t]{0,3}/?>", re.IGNORECASE)
_DEFINITION = re.compile(
    r"(?P<head>(?:^|\n)[ ]{0,3}\[[^\[\]\\`<>&$!\n]{1,200}\]):[ \t]+(?P<url>\S{1,2000})[ \t]*"
    r"(?:\"[^\"\n]*\"|'[^'\n]*'|\([^()\n]*\))?[ \t]*(?=\n|$)"
)
_TITLE = re.compile(r"[ \t]+(?:\"([^\"\n]{0,500})\"|'([^'\n]{0,500})'|\(([^()\n]{0,500})\))[ \t]*")


def neutral_paragraph(source: str) -> str:
    """Return `source`, lines without a blank one between them, made safe."""
    return _Paragraph(source).text()


class _Paragraph:
    """Reads from left to right and writes what each construct becomes."""

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
            if (url := safe_url(found["url"])) is not None
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
        self._out.append(code_span(content))
        return runs[-1] + length

    def _angle(self, start: int) -> int:
        if link := _AUTOLINK.match(self._source, start):
            url = safe_url(link[1])
            if url is not None:
                self._out.append(f"[{escape(link[1])}]({url})")
                return link.end()
        line_break = _LINE_BREAK.match(self._source, start)
        is_at_margin = not self._source[self._source.rfind("\n", 0, start) + 1 : start].strip()
        if line_break and not is_at_margin:
            self._out.append("<br>")
            return line_break.end()
        self._out.append("&lt;" if TAG.match(self._source, start) else "<")
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
        found = destination(self._source, start)
        url = safe_url(found[0]) if found else None
        if found is None or not url:
            return None
        title = _TITLE.match(self._source, found[1])
        end = title.end() if title else found[1]
        end += len(self._source[end : end + 9]) - len(self._source[end : end + 9].lstrip(" \t"))
        if self._source[end : end + 1] != ")":
            return None
        words = next((group for group in title.groups() if group), "") if title else ""
        quoted = entities(words).replace('"', "&quot;")
        name = f' "{quoted}"' if words else ""
        return f"]({url}{name})", end + 1


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
    body = TAG.sub("< ", body)
    body = re.sub(r"\](?=[(:])", "] ", body)
    body = re.sub(r"(ftp|xmpp):", r"\1 :", body, flags=re.IGNORECASE)
    return re.sub(r"!(?=\[)", "! ", body)
