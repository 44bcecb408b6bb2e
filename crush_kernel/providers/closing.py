"""What a request says behind everything else: for this once, so that no cache holds it. Pure."""

from typing import Final

from crush_kernel.providers.base import ModelRequest

NO_CALLS: Final = "(Answer in text only: no tool can be called now.)"


def closing_words(request: ModelRequest, *, says_no_calls: bool) -> str:
    """Return the words that end `request`, empty if there are none.

    Args:
        request: what is asked.
        says_no_calls: whether that tools must not be called is said in words, and nowhere else.
    """
    needs_words = says_no_calls and request.forbids_tools and bool(request.tools)
    return "\n\n".join(filter(None, (request.reminder.strip(), NO_CALLS * needs_words)))
