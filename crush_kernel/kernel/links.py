"""Link destinations in Markdown: found, decoded as any parser might, and encoded for all.

Pure. Only what leads to a page, a mail or a file of the project passes.
"""

import html
import re

from crush_kernel.kernel.plaintext import visible

_MAX_PARENTHESES = 32
"""How deep they nest in a destination at most, as in CommonMark's own parsers."""
_ENTITY = re.compile(r"&(?:#[0-9]{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z][A-Za-z0-9]{1,31});")
_URL_KEEPS = re.compile(r"[A-Za-z0-9\-._~:/?#@+,;=]|%[0-9A-Fa-f]{2}|[^\x00-\x7f]")


def destination(source: str, start: int) -> tuple[str, int] | None:
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


def safe_url(raw: str) -> str | None:
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
