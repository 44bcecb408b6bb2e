"""HTML as Markdown or as plain text, without what surrounds the content of a page.

Blocks for as long as the conversion takes, a second for 4 MB; call it in a worker thread.
"""

import re
from typing import Final, Literal

from crush_kernel.errors import ToolError

_SURROUNDINGS: Final = [
    *("script", "style", "template", "noscript", "iframe", "svg", "object", "embed"),
    *("nav", "aside", "header:not(article header, main header)"),
    "footer:not(article footer, main footer)",
]

_BLANK_LINES: Final = re.compile(r"\n{3,}")
_TRAILING: Final = re.compile(r"[ \t]+$", re.MULTILINE)


def convert_html(html: str, *, base_url: str, to: Literal["markdown", "text"]) -> str:
    """Return the content of a page; empty if it has none.

    Args:
        html: the page, however broken.
        base_url: what the links in it start from; they come out whole.
        to: `text` leaves out links and every mark.

    Raises:
        ToolError: the page cannot be converted.
    """
    import html_to_markdown as library  # noqa: PLC0415 - 20 MB that few turns need

    is_text = to == "text"
    options = library.ConversionOptions(
        extract_metadata=False,
        exclude_selectors=_SURROUNDINGS,
        base_url=base_url,
        skip_images=is_text,
        output_format=library.OutputFormat.PLAIN if is_text else library.OutputFormat.MARKDOWN,
    )
    try:
        content = library.convert(html, options).content or ""
    except library.ConversionError as error:
        raise ToolError(
            "The page cannot be converted. Ask for it with format=html instead."
        ) from error
    return _BLANK_LINES.sub("\n\n", _TRAILING.sub("", content)).strip()
