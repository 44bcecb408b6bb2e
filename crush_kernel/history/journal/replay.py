"""Make a turn of what was noted of it, when the kernel that ran it is gone.

Pure and total: whatever entries there are, in whatever order, they add up to a turn. What
was said stays as it was said and where; what was about to be said is added after it.

Source: design §§2, 5.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Final, assert_never

from crush_kernel.history.journal.entries import (
    Answered,
    Began,
    Drafted,
    Dropped,
    Entry,
    Published,
    Said,
    Unsaid,
)
from crush_kernel.history.outputs import Output, apply_output, saved_outputs, without_widgets
from crush_kernel.history.subagentmessages import Nested, cut_short
from crush_kernel.history.summary import sealed, standing_in
from crush_kernel.history.turn import Turn, digest_of
from crush_kernel.messages import (
    Message,
    Part,
    Reasoning,
    ShellCommand,
    Text,
    ToolResult,
    calls_of,
)

CUT_SHORT: Final = "[the kernel stopped while this ran]"
"""What is kept as the output of a command while it runs."""


@dataclass(frozen=True, slots=True)
class Replayed:
    """An interrupted turn and what its cell shows."""

    turn: Turn
    """Without a record."""
    outputs: list[Output]
    """As nbformat has them, without widgets."""


def fold(turn_id: str, entries: Iterable[Entry]) -> Replayed:
    """Return the turn that `entries` tell of, ended as interrupted.

    Args:
        turn_id: names the turn if nothing tells how it began.
        entries: of this turn, oldest first.

    Calls that have no result stay without; `history.repair` answers them. Those of sub-agents
    have one that tells what the sub-agent had done. Results that came one by one stand in the
    order of the calls. Of a reply that was being written, the text
    of its last attempt is kept.
    """
    state = _State(_named(turn_id))
    for entry in entries:
        state.feed(entry)
    return state.replayed()


@dataclass(slots=True)
class _State:
    """A turn as far as it has come."""

    turn: Turn
    messages: list[Message] = field(default_factory=list[Message])
    answers: dict[str, ToolResult] = field(default_factory=dict[str, ToolResult])
    """The results that no message holds yet, by call; the first of a call counts."""
    answered: set[str] = field(default_factory=set[str])
    """The calls of the last reply whose results messages hold."""
    nested: dict[str, list[Nested]] = field(default_factory=dict[str, list[Nested]])
    """What sub-agents of the last reply have said, by the call that started them."""
    drafts: list[Drafted] = field(default_factory=list[Drafted])
    """Of one attempt, the latest."""
    replies: int = 0
    """How many requests were answered in full, also if the answer was taken back."""
    outputs: list[Output] = field(default_factory=list[Output])
    changes: int = 0

    def feed(self, entry: Entry) -> None:
        """Take in the next entry."""
        match entry:
            case Began(turn=turn):
                self._begin(turn)
            case Said(message=message):
                self._say(message)
            case Unsaid():
                self._unsay()
            case Answered(result=result):
                self._answer(result)
            case Nested(call_id=call_id):
                self.nested.setdefault(call_id, []).append(entry)
            case Drafted():
                self._draft(entry)
            case Dropped(step=step, attempt=attempt):
                if self.drafts and _attempt(self.drafts[0]) == (step, attempt):
                    self.drafts = []
            case Published(msg_type=msg_type, content=content):
                apply_output(self.outputs, msg_type, content)
            case _:
                assert_never(entry)

    def replayed(self) -> Replayed:
        """Return the turn, with what was about to be said."""
        outputs = without_widgets(saved_outputs(self.outputs))
        messages = list(self.messages)
        if messages:
            messages[-1] = _with_printed(messages[-1], outputs)
        for call_id, said in self.nested.items():
            if call_id in self._called():
                self._answer(cut_short(call_id, said))
        if self.answers:
            messages.append(self._results())
        if parts := tuple(_parts(self.drafts)):
            messages.append(self._partial_reply(parts))
        added = len(messages) - len(self.messages)
        # What was kept lacks its secrets, and may lack a message that was taken back.
        kept = sealed(tuple(messages), self.turn.fingerprint)
        turn = replace(
            self.turn,
            messages=kept,
            revision=self.turn.revision + self.changes + added + 1,
            end="interrupted",
            digest=digest_of(kept),
            summary=standing_in(kept, self.turn.fingerprint),
            record=None,
        )
        return Replayed(turn, outputs)

    def _begin(self, turn: Turn) -> None:
        self.turn = turn
        self.messages = list(turn.messages)
        self.answers, self.answered, self.nested = {}, set(), {}
        self.drafts, self.outputs = [], []
        self.replies, self.changes = 0, 0

    def _say(self, message: Message) -> None:
        if message.role == "assistant":
            if self.answers:
                self.messages.append(self._results())
            self.answers, self.answered, self.nested = {}, set(), {}
            self.drafts = []
            self.replies += 1
        for part in message.parts:
            if isinstance(part, ToolResult):
                self.answers.pop(part.call_id, None)
                self.answered.add(part.call_id)
        self.messages.append(message)
        self.changes += 1

    def _answer(self, result: ToolResult) -> None:
        if result.call_id not in self.answered:
            self.answers.setdefault(result.call_id, result)

    def _unsay(self) -> None:
        if self.messages:
            self.messages.pop()
        self.changes += 1

    def _draft(self, draft: Drafted) -> None:
        # Drafts come by another way than replies and may be late: the n-th reply that was
        # said is that of the n-th step.
        if draft.step <= self.replies:
            return
        if self.drafts and _attempt(self.drafts[0]) != _attempt(draft):
            if _attempt(draft) < _attempt(self.drafts[0]):
                return
            self.drafts = []
        self.drafts.append(draft)

    def _called(self) -> list[str]:
        """Return the calls of the last reply, in its order."""
        reply = next((m for m in reversed(self.messages) if m.role == "assistant"), None)
        return [call.id for call in calls_of(reply)] if reply else []

    def _results(self) -> Message:
        """Return the message of the results that came one by one."""
        order = self._called()
        known = [
            self.answers[call_id] for call_id in dict.fromkeys(order) if call_id in self.answers
        ]
        rest = [result for call_id, result in self.answers.items() if call_id not in order]
        return Message("tool", (*known, *rest))

    def _partial_reply(self, parts: tuple[Part, ...]) -> Message:
        former = next((m for m in reversed(self.messages) if m.role == "assistant"), None)
        return Message(
            "assistant",
            parts,
            provider=former.provider if former else "",
            model=former.model if former else "",
            stop="interrupted",
        )


def _with_printed(message: Message, outputs: Iterable[Output]) -> Message:
    """Return `message`; if it is a command that was running, with what its cell shows of it."""
    match message.parts:
        case (ShellCommand(output=output) as command,) if output == CUT_SHORT:
            shown = [each["data"].get("text/plain", "") for each in outputs if "data" in each]
            texts = [text for text in shown if isinstance(text, str) and text]
            printed = replace(command, output="\n".join((*texts, CUT_SHORT)))
            return replace(message, parts=(printed,))
        case _:
            return message


def _named(turn_id: str) -> Turn:
    """Return a turn of which nothing is known but its id."""
    cell_id, dot, run = turn_id.rpartition(".")
    if dot and run.isascii() and run.isdigit() and len(run) < 10:
        return Turn(cell_id, int(run))
    return Turn(turn_id)


def _attempt(entry: Drafted) -> tuple[int, int]:
    return entry.step, entry.attempt


def _parts(drafts: Iterable[Drafted]) -> Iterable[Part]:
    """Yield what was drafted, neighbors of one kind as one part; blank text is no part."""
    kinds: list[str] = []
    texts: list[list[str]] = []
    for draft in drafts:
        if not kinds or kinds[-1] != draft.part:
            kinds.append(draft.part)
            texts.append([])
        texts[-1].append(draft.text)
    for kind, pieces in zip(kinds, texts, strict=True):
        if text := "".join(pieces):
            yield Text(text) if kind == "text" else Reasoning(text)
