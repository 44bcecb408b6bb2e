"""Makes plain text safe: hidden characters shown, and nothing in it taken for markup.

Pure. What came from a model, a tool or a file goes through here before it stands between
markup of our own.
"""

import re

_HIDDEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f"
    "\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\u3164\ufeff\uffa0\ufff0-\ufffb"
    "\ud800-\udfff\U000e0000-\U000e0fff]"
    # Joiners belong to emoji and some scripts; beside ASCII they only hide.
    "|(?<=[\x00-\x7f])[\u200c\u200d]|[\u200c\u200d](?=[\x00-\x7f])"
)
TAG = re.compile(r"<(?=[A-Za-z/!?])")
"""What may start a tag, a comment or a declaration."""

NOT_INERT = re.compile(
    r"<[A-Za-z/!?]|[`$]|~~~|\\\\[()\[\]]|\\(?:begin|end)\{|\]\(|\]:|!\[|@@\d|ftp:|xmpp:"
)
"""What has a meaning outside of code that would have to be broken there."""

_ENTITIES = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", "\n": " "})
_MARKUP = _ENTITIES | str.maketrans({char: f"&#{ord(char)};" for char in "\\`*[]$~|"})
_CODE = _MARKUP | str.maketrans({char: f"&#{ord(char)};" for char in "_{}:@.!()#\"'"})
_OF_FORMULA = re.compile("&#36;|&#92;")
_OUTER_UNDERSCORE = re.compile(r"(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])")


def visible(text: str) -> str:
    r"""Return `text` with line ends as `\n` and what hides or reorders shown as `⟨U+202E⟩`."""
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    return _HIDDEN.sub(lambda found: f"⟨U+{ord(found[0]):04X}⟩", text)


def escape(text: str) -> str:
    """Return plain `text` for the middle of a line of Markdown or HTML; line ends turn blank.

    Not for HTML attributes and titles of links, since there may be elements in it.
    """
    # JupyterLab looks for formulas in what is shown, where an entity is a sign again. What
    # begins or ends one is told by its signs together, which an element keeps apart.
    return _OF_FORMULA.sub(r"<span>\g<0></span>", entities(text))


def entities(text: str) -> str:
    """Return plain `text` without elements, for the title of a link; quotes stay as they are."""
    text = _OUTER_UNDERSCORE.sub("&#95;", visible(text).translate(_MARKUP))
    # Looks like a placeholder of JupyterLab's, see there.
    return text.replace("@@", "&#64;@")


def code_span(text: str) -> str:
    """Return `text` as code for the middle of a line of Markdown.

    In backticks where all parsers agree what they do; else as an element.
    """
    shown = visible(text)
    line = shown.replace("\n", " ")
    is_inert = not NOT_INERT.search(line if "$$" in line else line.replace("$", ""))
    if is_inert and line.strip() and "\n" not in shown:
        return f"`{line}`"
    if line.startswith(" ") and line.endswith(" ") and line.strip():
        line = line[1:-1]
    return f"<code>{line.translate(_CODE)}</code>"
