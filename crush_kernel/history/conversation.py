"""The one mutable owner of a conversation: the turns of the cells, and the running one.

A turn belongs to a cell; running the cell again replaces its turn. Without a front end
that tells the order of the cells, the order is that of execution (design §4), so a re-run
turn moves to the end. Exactly one task writes at a time: the one that runs the turn.
"""

from dataclasses import dataclass, replace

from crush_kernel.messages import Message, Usage, calls_of


@dataclass(frozen=True, slots=True)
class Turn:
    """What was said in one cell: its prompt, then replies and results, oldest first."""

    cell_id: str
    """The front end's id of the cell; empty where it tells none."""
    messages: tuple[Message, ...] = ()


class Conversation:
    """All turns so far, in the order in which the model reads them."""

    def __init__(self) -> None:
        self._turns: list[Turn] = []
        self._spent: dict[str, Usage] = {}

    @property
    def turns(self) -> tuple[Turn, ...]:
        """The turns, oldest first, the running one last."""
        return tuple(self._turns)

    @property
    def messages(self) -> tuple[Message, ...]:
        """Everything said so far, oldest first."""
        return tuple(message for turn in self._turns for message in turn.messages)

    @property
    def running(self) -> tuple[Message, ...]:
        """What was said in the turn that began last."""
        return self._turns[-1].messages if self._turns else ()

    @property
    def spent_by_model(self) -> dict[str, Usage]:
        """What all requests used, by `provider/model`; those of replaced turns count too."""
        return dict(self._spent)

    @property
    def context_tokens(self) -> int:
        """What the last request and its reply filled of the window; zero if unknown."""
        return context_tokens(self.messages)

    def begin(self, prompt: Message, *, cell_id: str = "") -> None:
        """Begin a turn with `prompt`; a former turn of the same cell goes."""
        if cell_id:
            self._turns = [turn for turn in self._turns if turn.cell_id != cell_id]
        self._turns.append(Turn(cell_id, (prompt,)))

    def append(self, message: Message) -> None:
        """Add `message` to the running turn and count what it used."""
        last = self._turns[-1]
        self._turns[-1] = replace(last, messages=(*last.messages, message))
        if message.usage:
            label = f"{message.provider}/{message.model}"
            self._spent[label] = self._spent.get(label, Usage()) + message.usage

    def drop_last(self) -> None:
        """Forget the last message of the running turn; what it used stays counted."""
        last = self._turns[-1]
        self._turns[-1] = replace(last, messages=last.messages[:-1])


def context_tokens(messages: tuple[Message, ...]) -> int:
    """Return what the last request and its reply filled of the window; zero if unknown."""
    return next((m.usage.context_tokens for m in reversed(messages) if m.usage), 0)


def count_calls(messages: tuple[Message, ...]) -> int:
    """Return how many tool calls the replies among `messages` made."""
    return sum(len(calls_of(message)) for message in messages if message.role == "assistant")
