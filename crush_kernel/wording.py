"""Counts and clipped texts, as they stand in sentences for people and for the model. Pure."""


def counted(number: int, noun: str, plural: str = "", *, has_more: bool = False) -> str:
    """Return `1 file`, `3 files`, `100+ files`; `plural` where it takes more than an s."""
    is_one = number == 1 and not has_more
    return f"{number:,}{'+' if has_more else ''} {noun if is_one else plural or f'{noun}s'}"


def clipped(text: str, max_chars: int) -> str:
    """Return `text` in at most `max_chars` characters, with an ellipsis if it was longer."""
    return text if len(text) <= max_chars else f"{text[: max_chars - 1].rstrip()}…"
