"""What a conversation keeps, and in which order."""

from crush_kernel.history.conversation import CellRun, Conversation, count_calls
from crush_kernel.messages import Message, Text, ToolCall, Usage, text_of


def prompt(text: str) -> Message:
    return Message("user", (Text(text),))


def reply(text: str, tokens: int = 1, model: str = "m") -> Message:
    return Message(
        "assistant", (Text(text),), provider="p", model=model, usage=Usage(output_tokens=tokens)
    )


def test_turns_stand_in_the_order_in_which_they_last_ran() -> None:
    talk = Conversation()
    for cell in ("a", "b", "a"):
        talk.begin(CellRun(cell), prompt(f"in {cell}"))
        talk.append(reply(f"from {cell}"))
    assert [turn.cell_id for turn in talk.turns.values()] == ["b", "a"]
    assert [text_of(m) for m in talk.messages] == ["in b", "from b", "in a", "from a"]


def test_turns_without_a_cell_never_replace_each_other() -> None:
    talk = Conversation()
    for text in ("one", "two"):
        talk.begin(CellRun(), prompt(text))
    assert [text_of(m) for m in talk.messages] == ["one", "two"]


def test_what_was_spent_counts_replaced_and_dropped_replies_by_model() -> None:
    talk = Conversation()
    talk.begin(CellRun("a"), prompt("x"))
    talk.append(reply("one", 5))
    talk.drop_last()
    talk.begin(CellRun("a"), prompt("x"))
    talk.append(reply("two", 7))
    talk.append(reply("three", 1, model="n"))
    assert {label: used.output_tokens for label, used in talk.spent_by_model.items()} == {
        "p/m": 12,
        "p/n": 1,
    }


def test_the_running_turn_is_the_last_one() -> None:
    talk = Conversation()
    assert talk.running == ()
    talk.begin(CellRun(), prompt("one"))
    talk.begin(CellRun(), prompt("two"))
    talk.append(Message("assistant", (ToolCall("c", "ls", "{}"),)))
    assert len(talk.running) == 2
    assert count_calls(talk.running) == 1
