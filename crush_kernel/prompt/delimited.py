"""Text of strangers between marks that it cannot imitate.

A file that is put into a prompt may hold anything, also what looks like the end of the file
and the beginning of something else. So the closing mark carries a digest that does not occur
in the text. It is made from the text alone: the same text has the same marks, and the
provider's cache of the prompt stays good.
"""

from collections.abc import Mapping
from hashlib import blake2b
from itertools import count
from xml.sax.saxutils import escape

from crush_kernel.files.names import printable

_DIGEST_BYTES = 4


def delimited(tag: str, text: str, attributes: Mapping[str, str] | None = None) -> str:
    """Return `text` between an opening and a closing mark, each on a line of its own.

    Args:
        tag: what the text is, such as `memory`.
        text: anything.
        attributes: what to say of it in the opening mark.
    """
    mark = _mark_for(text)
    words = "".join(f' {name}="{attribute(value)}"' for name, value in (attributes or {}).items())
    return f'<{tag}{words} mark="{mark}">\n{text}\n</{tag} {mark}>'


def attribute(value: str) -> str:
    """Return `value` on one line, fit to stand between double quotes in a mark."""
    return escape(printable(value), {'"': "&quot;"})


def _mark_for(text: str) -> str:
    """Return a short word that does not occur in `text`."""
    data = text.encode("utf-8", "surrogatepass")
    for attempt in count():
        mark = blake2b(data, digest_size=_DIGEST_BYTES, salt=attempt.to_bytes(8)).hexdigest()
        if mark not in text:
            return mark
    raise AssertionError("unreachable")  # a text has fewer words than there are marks
