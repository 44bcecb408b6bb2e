"""Summaries: when one is due, what it stands for, what is asked for it and what is kept of it.

A summary is a message of the user's inside a turn. It stands for everything before it: the
turns above, by their fingerprint, and what its own turn had said by then. As long as that is
unchanged, a context begins with the last summary; a summary of something else is ignored,
and the originals, which all stay where they are, are read again.

Pure. Source: Crush, context engineering (threshold, sections); design §4 "Summaries".
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from typing import Final, Literal, TypeAlias

from crush_kernel.history.estimate import Fill
from crush_kernel.history.turn import Turn, digest_of
from crush_kernel.messages import Media, Message, SummaryMark, Text

LARGE_WINDOW: Final = 200_000
LARGE_RESERVE: Final = 20_000
"""Tokens that are kept free of a window larger than `LARGE_WINDOW`."""

Room: TypeAlias = Literal["enough", "summarize", "explain"]

MAX_SUMMARY_TOKENS: Final = 10_000
MIN_SUMMARY_TOKENS: Final = 500
_WORTH: Final = 10
"""The part of the window that a summary has to leave for going on, as a divisor."""

MAX_REQUESTS: Final = 5
"""Prompts that a summary repeats at most."""

History: TypeAlias = tuple[tuple[Message, ...], tuple[Message, ...]]
"""What was said above the running turn, and in it."""


def reserve_of(window: int) -> int:
    """Return how many tokens of a context window are to stay free; zero if it is not known."""
    return LARGE_RESERVE if window > LARGE_WINDOW else max(0, window) // 5


def is_due(window: int, used: int) -> bool:
    """Return whether a context of `used` tokens is to be summarized; a window of 0 never asks."""
    return window > 0 and window - used <= reserve_of(window)


def budget_of(window: int, most: int, *, can_reason: bool = False) -> int:
    """Return how many tokens a summary may have.

    Args:
        window: of the model; zero if it is not known.
        most: what the model can write at all; zero if that is not known.
        can_reason: whether it may think first, which counts.
    """
    budget = min(MAX_SUMMARY_TOKENS, window // 8) if window else MAX_SUMMARY_TOKENS
    budget = max(MIN_SUMMARY_TOKENS, budget)
    if can_reason:
        budget *= 2
    return min(budget, most) if most else budget


def room_for(window: int, fill: Fill, *, budget: int) -> Room:
    """Return whether a request with this `fill` has room, or what to do about it.

    A summary that frees too little would be followed by the next one soon: then it is better
    to say what fills the window.
    """
    if not is_due(window, fill.total):
        return "enough"
    after = fill.fixed + fill.unseen + budget + window // _WORTH
    if is_due(window, after) or fill.new < window // (2 * _WORTH):
        return "explain"
    return "summarize"


def can_shrink(window: int, fill: Fill) -> bool:
    """Return whether a summary would make a request smaller that did not fit."""
    return fill.new >= max(MIN_SUMMARY_TOKENS, window // (4 * _WORTH))


# What a summary stands for


def is_summary(message: Message) -> bool:
    """Return whether `message` is a summary of what was said before it."""
    return message.role == "user" and any(isinstance(part, SummaryMark) for part in message.parts)


def covers_of(fingerprint: str, messages: Iterable[Message]) -> str:
    """Return what the mark of a summary says: 16 hex digits.

    Args:
        fingerprint: of the context that its turn runs in.
        messages: what the turn has said before it.
    """
    covered = f"{fingerprint}\n{digest_of(messages)}"
    return blake2b(covered.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()


def sealed(messages: tuple[Message, ...], fingerprint: str) -> tuple[Message, ...]:
    """Return `messages`, a whole turn in the form in which it is kept, with true marks.

    What is kept differs from what was said: secrets and large texts are taken out.
    """
    if not any(map(is_summary, messages)):
        return messages
    done: list[Message] = []
    for message in messages:
        mark = SummaryMark(covers_of(fingerprint, done)) if is_summary(message) else None
        done.append(message if mark is None else _marked(message, mark))
    return tuple(done)


def standing_in(messages: Sequence[Message], fingerprint: str) -> int | None:
    """Return where in a turn its last summary is that stands for what is before it.

    Args:
        messages: the turn in the form in which it is kept.
        fingerprint: of the context that it ran in.
    """
    for index in range(len(messages) - 1, -1, -1):
        if is_summary(message := messages[index]):
            covers = covers_of(fingerprint, messages[:index])
            if SummaryMark(covers) in message.parts:
                return index
    return None


def since_summary(context: tuple[Message, ...], running: tuple[Message, ...]) -> History:
    """Return what is to be sent: from the last summary in `running` on, if there is one.

    Args:
        context: what stands above the running turn; it begins with a summary itself if one
            stands there.
        running: what was said in the running turn, whose summaries all count.
    """
    for index in range(len(running) - 1, -1, -1):
        if is_summary(running[index]):
            return (), running[index:]
    return context, running


def split_unseen(running: tuple[Message, ...]) -> History:
    """Return `running` in two: what a model has answered, and what the user has said since."""
    end = len(running)
    while end and running[end - 1].role == "user" and not is_summary(running[end - 1]):
        end -= 1
    return running[:end], running[end:]


def _marked(message: Message, mark: SummaryMark) -> Message:
    parts = (part for part in message.parts if not isinstance(part, SummaryMark))
    return replace(message, parts=(mark, *parts))


# What a summary says

LEAD: Final = (
    "What was said here before has been replaced by this summary, which you wrote; the messages "
    "themselves are gone, and so are the contents of files that you had read."
)
OPEN_REQUEST: Final = (
    "What the user has asked for, word for word. You are in the middle of it: go on where the "
    "summary stops, neither start again nor tell the user about the summary."
)
DONE_REQUEST: Final = (
    "What the user has asked for last, word for word. That is over; what the user says next counts."
)
OPEN_TODOS: Final = "What is still open on your todo list; keep it up to date with the todos tool:"


@dataclass(frozen=True, slots=True)
class Kept:
    """What is kept beside the words of a summary."""

    requests: tuple[Message, ...] = ()
    """What the user had asked for, oldest first."""
    is_open: bool = False
    """Whether that is still being worked on."""
    todos: tuple[str, ...] = ()
    """What is still to do, one line each."""
    max_request_chars: int = 200_000
    """Of a longer request, only beginning and end are repeated."""


def summary_message(text: str, kept: Kept, *, covers: str = "") -> Message:
    """Return the message that `text` becomes, with what is kept word for word."""
    parts = [f"{LEAD}\n\n<summary>\n{text.strip()}\n</summary>"]
    if kept.requests:
        most = kept.max_request_chars // len(kept.requests)
        requests = (request_text(request, max_chars=most) for request in kept.requests)
        blocks = (f"<request>\n{request}\n</request>" for request in requests)
        parts.append("\n\n".join((OPEN_REQUEST if kept.is_open else DONE_REQUEST, *blocks)))
    if kept.todos:
        parts.append("\n".join((OPEN_TODOS, *kept.todos)))
    return Message("user", (SummaryMark(covers), *map(Text, parts)))


def summary_text(message: Message) -> str:
    """Return the words of a summary, as they were written."""
    first = next((part.text for part in message.parts if isinstance(part, Text)), "")
    _, lead, text = first.partition("<summary>\n")
    return text.removesuffix("\n</summary>") if lead else first


def requests_of(turns: Sequence[Turn]) -> tuple[Message, ...]:
    """Return what the user is waiting for: the last prompt of `turns`, oldest first.

    Before it come the prompts of the turns that did not come to their end, of which it may
    say no more than to go on.
    """
    found: list[Message] = []
    for turn in reversed(turns):
        if found and (turn.end == "end_turn" or len(found) == MAX_REQUESTS):
            break
        if (prompt := prompt_of(turn.messages)) is not None:
            found.insert(0, prompt)
    return tuple(found)


def prompt_of(messages: Iterable[Message]) -> Message | None:
    """Return the prompt of a turn: neither a summary nor a command that the user ran."""
    for message in messages:
        if message.role == "user" and not is_summary(message):
            return message if any(isinstance(part, Text) for part in message.parts) else None
    return None


def request_text(request: Message, *, max_chars: int) -> str:
    """Return the words of a request; files that came with it are named, not repeated."""
    texts = [part.text for part in request.parts if isinstance(part, Text)]
    words = shortened(texts[0], max_chars) if texts else ""
    names = [*map(_first_line, texts[1:])]
    names += [part.name or part.media_type for part in request.parts if isinstance(part, Media)]
    if names:
        files = "; ".join(names)
        words += f"\n\n(With it came: {files}. Read again what you still need of them.)"
    return words


def shortened(text: str, max_chars: int) -> str:
    """Return `text`, or its beginning and end with a note of how much is left out between.

    Never longer than `max_chars`.
    """
    if len(text) <= max_chars:
        return text
    room = max_chars - _NOTE_CHARS
    if room <= 0:
        return text[:max_chars]
    head, tail = room - room // 3, room // 3
    end = text[len(text) - tail :]
    return f"{text[:head]}\n[… {len(text) - room:,} characters left out …]\n{end}"


_NOTE_CHARS: Final = 48
"""Of the note in a text that is shortened, however much is left out."""


def _first_line(text: str) -> str:
    return text.lstrip().partition("\n")[0].rstrip(": ")[:200]


# What is asked for

_DUTIES: Final = {
    "Where things stand": "what the user wants, exactly; what is done, what is half done and what "
    "is left",
    "Files": "those you changed and how, those you read that matter and why, those still to "
    "change; with paths and line numbers",
    "Technical facts": "decisions and their reasons, conventions and libraries of this project, "
    "commands that worked and those that failed, what is special about the environment",
    "Approach": "the plan you follow, what you tried and gave up, what you found out, what you "
    "assume without having checked it, what may go wrong",
    "Next steps": "in order and concrete: which file, which function, which command",
}

_CALL: Final = (
    "Do not call a tool and do not go on with the work now. This conversation is about to be "
    "replaced by a summary, and you are the one to write it."
)
_MANNER: Final = (
    "Whoever goes on, which may be you, will have these words and nothing else: no earlier "
    "message, no file, no output. So be complete rather than brief, quote exact names, paths, "
    "numbers and error messages, and leave out what no longer matters. Write as to a teammate, "
    "in the language of the user, without an introduction and without emoji. Use these sections:"
)
_KEPT: Final = "The user's last request and the open todos are kept word for word beside it."
SHORTER: Final = (
    "A first attempt was cut off because it was too long. Use at most {words} words this time: "
    "say first what is needed to go on, and leave out the rest."
)


def instruction(*, wishes: str = "", max_words: int = 0) -> str:
    """Return what is said at the end of a conversation to have it summarized.

    Args:
        wishes: what the user wants of the summary, in the user's words.
        max_words: how long it may be, after one that was too long; zero sets no limit.
    """
    sections = "\n".join(f"## {name}\n({duty})" for name, duty in _DUTIES.items())
    said = [_CALL, _MANNER, sections, _KEPT]
    if wishes.strip():
        said.append(f"The user has a wish for this summary: {wishes.strip()}")
    if max_words:
        said.append(SHORTER.format(words=max_words))
    return "\n\n".join(said)
