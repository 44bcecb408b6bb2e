"""PDF documents: opened before they are sent, since a provider refuses a bad one for ever.

The only module that knows PDFium; import it where the first document comes, not before.
"""

from collections.abc import Callable
from dataclasses import dataclass
from threading import Lock
from typing import Final

import pypdfium2 as pdfium  # pyright: ignore[reportMissingTypeStubs] - it has none
from pypdfium2 import raw  # pyright: ignore[reportMissingTypeStubs] - it has none

MAX_PAGES: Final = 100
"""Source: Anthropic, PDF support; with more pages the whole request is refused."""

_END_BYTES: Final = 2_048
"""How far before the end of the file the end of the document is looked for."""

_ENCRYPTED: Final = "it is encrypted"

_PDFIUM: Final = Lock()  # no two threads may be in it, whatever their documents


class BadDocument(ValueError):
    """The document cannot be used; says why, as the second half of a sentence."""


@dataclass(frozen=True, slots=True)
class PageTexts:
    """The text of some pages of a document."""

    texts: tuple[str, ...]
    total: int
    """How many pages the document has."""


def read_pages(
    data: bytes, *, offset: int, limit: int, max_characters: int, check: Callable[[], object]
) -> PageTexts:
    """Return the text of the pages `offset` to `offset + limit` of the PDF `data`.

    Ends early after the page by which there are more than `max_characters`; a page alone is
    cut there.

    Args:
        data: the whole file.
        offset: pages to skip.
        limit: how many pages, at most.
        max_characters: about how much text is wanted.
        check: called between pages; what it raises ends the reading.

    Raises:
        BadDocument: it is damaged or encrypted.
    """
    with _PDFIUM:
        try:
            return _read_pages(data, offset, limit, max_characters, check)
        except pdfium.PdfiumError as error:
            if getattr(error, "err_code", None) == raw.FPDF_ERR_PASSWORD:
                raise BadDocument(_ENCRYPTED) from error
            raise BadDocument("it cannot be opened, so it is damaged or no PDF") from error


def _read_pages(
    data: bytes, offset: int, limit: int, max_characters: int, check: Callable[[], object]
) -> PageTexts:
    texts: list[str] = []
    with pdfium.PdfDocument(data) as document:
        total = len(document)
        for index in range(offset, min(total, offset + limit)):
            check()
            page = document[index]
            try:
                reader = page.get_textpage()
                try:
                    text = str(reader.get_text_range(0, min(reader.count_chars(), max_characters)))
                finally:
                    reader.close()
            finally:
                page.close()
            texts.append(text.replace("\r\n", "\n"))
            max_characters -= len(text)
            if max_characters <= 0:
                break
    return PageTexts(tuple(texts), total)


def count_pages(data: bytes) -> int:
    """Return how many pages the PDF `data` has: at least one, at most `MAX_PAGES`.

    Raises:
        BadDocument: it is damaged, cut off, encrypted, empty or too long.
    """
    # PDFium mends a document that is cut off; providers do not.
    if b"%%EOF" not in data[-_END_BYTES:]:
        raise BadDocument("its end is missing, so it is cut off or no PDF")
    with _PDFIUM:
        try:
            return _count_pages(data)
        except pdfium.PdfiumError as error:
            if getattr(error, "err_code", None) == raw.FPDF_ERR_PASSWORD:
                raise BadDocument(_ENCRYPTED) from error
            raise BadDocument("it cannot be opened, so it is damaged or no PDF") from error


def _count_pages(data: bytes) -> int:
    with pdfium.PdfDocument(data) as document:
        if raw.FPDF_GetSecurityHandlerRevision(document.raw) != -1:  # pyright: ignore[reportUnknownMemberType]
            raise BadDocument(_ENCRYPTED)
        pages = len(document)
        if not 1 <= pages <= MAX_PAGES:
            raise BadDocument(f"it has {pages:,} pages, and 1 to {MAX_PAGES} can be read")
        for index in range(pages):  # a damaged document may claim more than it has
            document.get_page_size(index)  # pyright: ignore[reportUnknownMemberType]
        return pages
