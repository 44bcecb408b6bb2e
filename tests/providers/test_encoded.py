"""Of a conversation that goes on, only what is new is encoded."""

from crush_kernel.messages import Message, Text
from crush_kernel.providers.encoded import EncodedHistory, Group, groups_of
from tests.fakes.histories import reply, results, user

A, B, C, D = (Text(letter) for letter in "abcd")


class Recorded:
    """Encodes a group as its letters and keeps what it was asked to encode."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.history = EncodedHistory(self._encode)

    def _encode(self, group: Group) -> bytes:
        parts = (part for message in group.messages for part in message.parts)
        letters = "".join(part.text for part in parts if isinstance(part, Text))
        self.asked.append(letters)
        return letters.encode()

    def chunks(self, *messages: Message) -> list[bytes]:
        """Return the chunks of `messages`, having forgotten what was asked before."""
        self.asked.clear()
        return self.history.chunks(messages)


def test_a_reply_goes_out_alone_and_all_else_up_to_the_next_one_together() -> None:
    messages = (user(A), user(B), reply(C), reply(D), results(A), user(B))
    groups = list(groups_of(messages))
    assert [(group.start, group.end, group.is_reply) for group in groups] == [
        (0, 2, False), (2, 3, True), (3, 4, True), (4, 6, False),
    ]  # fmt: skip
    assert [message for group in groups for message in group.messages] == list(messages)
    assert list(groups_of(messages, 2)) == groups[1:]


def test_what_was_sent_is_not_encoded_again() -> None:
    recorded = Recorded()
    first, answer, second = user(A), reply(B), user(C)
    assert recorded.chunks(first) == [b"a"]
    assert recorded.chunks(first, answer, second) == [b"a", b"b", b"c"]
    assert recorded.asked == ["b", "c"]
    assert recorded.chunks(first, answer, second) == [b"a", b"b", b"c"]
    assert recorded.asked == []


def test_a_group_that_grows_is_encoded_anew() -> None:
    recorded = Recorded()
    first, answer, second = user(A), reply(B), user(C)
    recorded.chunks(first, answer, second)
    assert recorded.chunks(first, answer, second, user(D)) == [b"a", b"b", b"cd"]
    assert recorded.asked == ["cd"]


def test_the_same_parts_in_new_messages_are_the_same() -> None:
    recorded = Recorded()
    recorded.chunks(user(A), reply(B), user(C))
    assert recorded.chunks(user(A), reply(B), user(C)) == [b"a", b"b", b"c"]
    assert recorded.asked == []


def test_what_moves_is_not_encoded_again() -> None:
    recorded = Recorded()
    first, answer, second = user(A), reply(B), user(C)
    recorded.chunks(first, answer, second, reply(D))
    assert recorded.chunks(answer, second, reply(D), first) == [b"b", b"c", b"d", b"a"]
    assert recorded.asked == []


def test_the_same_parts_of_another_model_are_encoded_anew() -> None:
    recorded = Recorded()
    recorded.chunks(reply(A))
    recorded.chunks(Message("assistant", (A,), "openai", "m"))
    assert recorded.asked == ["a"]


def test_what_is_no_longer_sent_is_forgotten() -> None:
    recorded = Recorded()
    first, answer = user(A), reply(B)
    recorded.chunks(first, answer)
    recorded.chunks(first)
    recorded.chunks(first, answer)
    assert recorded.asked == ["b"]
    recorded.history.forget()
    recorded.chunks(first, answer)
    assert recorded.asked == ["a", "b"]


def test_a_group_of_which_nothing_can_be_sent_leaves_no_gap() -> None:
    recorded = Recorded()
    assert recorded.chunks(user(A), reply(), user(C)) == [b"a", b"c"]


def test_the_chunks_are_the_callers_own() -> None:
    recorded = Recorded()
    chunks = recorded.chunks(user(A))
    chunks[0] = b"changed"
    assert recorded.chunks(user(A), reply(B)) == [b"a", b"b"]
