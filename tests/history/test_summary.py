"""When a summary is due, what it stands for, and what is said in it."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crush_kernel.history.context import messages_of
from crush_kernel.history.conversation import CellRun, Conversation
from crush_kernel.history.estimate import Fill
from crush_kernel.history.summary import (
    Kept,
    Room,
    budget_of,
    instruction,
    is_due,
    is_summary,
    request_text,
    requests_of,
    reserve_of,
    room_for,
    sealed,
    shortened,
    since_summary,
    split_unseen,
    standing_in,
    summary_message,
    summary_text,
)
from crush_kernel.history.turn import Turn
from crush_kernel.messages import Media, Message, ShellCommand, SummaryMark, Text, ToolCall, text_of


def user(text: str) -> Message:
    return Message("user", (Text(text),))


def by(text: str = "") -> Message:
    return Message("assistant", (Text(text),), "p", "m", "end_turn")


SUMMARY = summary_message("in short", Kept())


@pytest.mark.parametrize(
    ("window", "reserve"),
    [
        pytest.param(0, 0, id="not known"),
        pytest.param(4, 0, id="tiny"),
        pytest.param(4_099, 819, id="rounded down"),
        pytest.param(32_000, 6_400, id="32k"),
        pytest.param(128_000, 25_600, id="128k"),
        pytest.param(200_000, 40_000, id="exactly 200k"),
        pytest.param(200_001, 20_000, id="more than 200k"),
        pytest.param(1_000_000, 20_000, id="1M"),
    ],
)
def test_a_part_of_the_window_is_kept_free(window: int, reserve: int) -> None:
    assert reserve_of(window) == reserve
    if window:
        assert is_due(window, window - reserve)
        assert not is_due(window, window - reserve - 1)
        assert is_due(window, 2 * window)


@pytest.mark.parametrize(
    ("window", "used"),
    [
        pytest.param(192_000, 160_000, id="a local server at its end"),
        pytest.param(202_752, 202_700, id="one token less than it takes"),
        pytest.param(400_000, 380_000, id="a large one"),
    ],
)
def test_a_summary_is_due_well_before_the_window_is_full(window: int, used: int) -> None:
    assert is_due(window, used)
    assert not is_due(window, used // 2)


def test_without_a_known_window_nothing_is_ever_due() -> None:
    assert not is_due(0, 10**9)


@pytest.mark.parametrize(
    ("fill", "room"),
    [
        pytest.param(Fill(total=25_599, fixed=5_000, new=20_599), "enough", id="below"),
        pytest.param(Fill(total=25_600, fixed=5_000, new=20_600), "summarize", id="at it"),
        pytest.param(Fill(total=90_000, fixed=5_000, new=85_000), "summarize", id="far beyond"),
        pytest.param(Fill(total=26_000, fixed=25_000, new=1_000), "explain", id="overhead"),
        pytest.param(
            Fill(total=26_000, fixed=19_000, new=7_000), "explain", id="soon due again anyway"
        ),
        pytest.param(
            Fill(total=26_000, fixed=5_000, new=1_000, unseen=20_000), "explain", id="huge prompt"
        ),
        pytest.param(
            Fill(total=26_000, fixed=5_000, opening=20_000, new=1_000), "explain", id="just made"
        ),
    ],
)
def test_what_to_do_about_a_window_of_32k(fill: Fill, room: Room) -> None:
    assert room_for(32_000, fill, budget=budget_of(32_000, 0)) == room


@given(st.integers(1_000, 2_000_000), st.integers(0, 3_000_000), st.integers(0, 3_000_000))
def test_a_summary_is_only_made_where_it_leaves_room(window: int, fixed: int, new: int) -> None:
    budget = budget_of(window, 0)
    room = room_for(window, Fill(total=fixed + new, fixed=fixed, new=new), budget=budget)
    if room == "summarize":
        after = Fill(total=fixed + budget, fixed=fixed, opening=budget)
        assert room_for(window, after, budget=budget) == "enough"
    else:
        assert (room == "enough") is not is_due(window, fixed + new)


@pytest.mark.parametrize(
    ("window", "most", "can_reason", "budget"),
    [
        pytest.param(0, 0, False, 10_000, id="nothing known"),
        pytest.param(32_000, 0, False, 4_000, id="an eighth"),
        pytest.param(200_000, 0, False, 10_000, id="enough is enough"),
        pytest.param(200_000, 4_096, False, 4_096, id="the model's own limit"),
        pytest.param(32_000, 0, True, 8_000, id="with room to think"),
        pytest.param(2_000, 0, False, 500, id="not less than makes sense"),
    ],
)
def test_a_summary_has_a_budget(
    window: int,
    most: int,
    can_reason: bool,  # noqa: FBT001 - a table
    budget: int,
) -> None:
    assert budget_of(window, most, can_reason=can_reason) == budget


# What it stands for


def test_what_is_sent_begins_with_the_last_summary_of_the_turn() -> None:
    above, running = (user("a"), by("b")), (user("c"), by("d"), SUMMARY, by("e"))
    assert since_summary(above, running[:2]) == (above, running[:2])
    assert since_summary(above, running) == ((), running[2:])
    assert since_summary(above, (*running, SUMMARY, user("f"))) == ((), (SUMMARY, user("f")))


def test_a_summary_of_the_turn_stands_until_what_is_before_it_changes() -> None:
    messages = sealed((user("a"), by("b"), SUMMARY, by("c")), "f")
    assert standing_in(messages, "f") == 2
    assert standing_in((*messages, by("d")), "f") == 2
    assert standing_in((user("x"), *messages[1:]), "f") is None
    assert standing_in(messages[1:], "f") is None
    assert standing_in(messages, "g") is None


def test_of_two_summaries_the_last_one_that_stands_counts() -> None:
    messages = sealed((user("a"), SUMMARY, by("b"), SUMMARY), "f")
    assert standing_in(messages, "f") == 3
    edited = (*messages[:2], by("x"), messages[3])
    assert standing_in(edited, "f") == 1


def test_sealing_twice_is_sealing_once() -> None:
    messages = sealed((user("a"), SUMMARY, by("b"), SUMMARY), "f")
    assert sealed(messages, "f") == messages
    assert sealed((user("a"),), "f") == (user("a"),)


def talk_with_summary() -> Conversation:
    """Cells a, b and c; in b a summary was made half-way."""
    talk = Conversation()
    for cell in "abc":
        talk.begin(CellRun(cell), user(f"ask {cell}"))
        talk.append(by(f"half {cell}"))
        if cell == "b":
            talk.summarize("in short", todos=(), max_request_chars=1_000, reply=by())
        talk.append(by(f"all {cell}"))
        talk.end("end_turn")
    return talk


def seen(talk: Conversation, *cells: str) -> list[str]:
    messages = messages_of([talk.turns[cell] for cell in cells])
    return ["summary" if is_summary(message) else text_of(message) for message in messages]


@pytest.mark.parametrize(
    ("cells", "said"),
    [
        pytest.param("a", ["ask a", "half a", "all a"], id="above the summary"),
        pytest.param("ab", ["summary", "all b"], id="below it"),
        pytest.param("abc", ["summary", "all b", "ask c", "half c", "all c"], id="far below it"),
        pytest.param("b", ["ask b", "half b", "all b"], id="a cell above was deleted"),
        pytest.param(
            "acb",
            ["ask a", "half a", "all a", "ask c", "half c", "all c", "ask b", "half b", "all b"],
            id="a cell was moved above it",
        ),
    ],
)
def test_a_context_begins_with_a_summary_of_what_is_above(cells: str, said: list[str]) -> None:
    assert seen(talk_with_summary(), *cells) == said


def test_a_summary_goes_with_the_run_that_made_it() -> None:
    talk = talk_with_summary()
    talk.begin(CellRun("b"), user("ask b"))
    talk.append(by("anew"))
    talk.end("end_turn")
    assert seen(talk, "a", "b") == ["ask a", "half a", "all a", "ask b", "anew"]


def test_everything_is_still_there() -> None:
    talk = talk_with_summary()
    talk.begin(CellRun("d"), user("ask d"))
    assert [text_of(m) for m in talk.context][1:] == ["all b", "ask c", "half c", "all c"]
    assert "ask a" in [text_of(m) for m in talk.everything]


def test_what_the_user_has_said_since_the_last_reply_stays_behind_the_summary() -> None:
    assert split_unseen((user("a"), by("b"), user("c"), user("d"))) == (
        (user("a"), by("b")),
        (user("c"), user("d")),
    )
    assert split_unseen((SUMMARY, user("c"))) == ((SUMMARY,), (user("c"),))
    assert split_unseen((user("c"),)) == ((), (user("c"),))
    assert split_unseen((by("b"),)) == ((by("b"),), ())


@given(st.lists(st.sampled_from((user("u"), by("r"), SUMMARY)), max_size=8).map(tuple))
def test_nothing_is_lost_when_it_is_split(running: tuple[Message, ...]) -> None:
    answered, unseen = split_unseen(running)
    assert answered + unseen == running
    assert not any(map(is_summary, unseen))


# What is said in it


def test_a_summary_says_what_was_asked_and_what_is_open() -> None:
    kept = Kept((user("port it"),), is_open=True, todos=("- [ ] test it",))
    message = summary_message("half done", kept, covers="c")
    assert message.parts[0] == SummaryMark("c")
    text = text_of(message)
    assert "<request>\nport it\n</request>" in text
    assert "You are in the middle of it" in text
    assert "- [ ] test it" in text
    assert summary_text(message) == "half done"


def test_a_request_that_is_over_is_not_worked_on_again() -> None:
    text = text_of(summary_message("done", Kept((user("port it"),))))
    assert "That is over" in text
    assert "You are in the middle of it" not in text


@given(st.text(min_size=1))
def test_the_words_of_a_summary_come_back_as_they_were(text: str) -> None:
    assert summary_text(summary_message(text, Kept((user("a"),)))) == text.strip()


def turn(prompt: Message | None, *, end: str = "end_turn", first: Message | None = None) -> Turn:
    messages = tuple(m for m in (first, prompt) if m is not None)
    return replace(Turn("a", messages=messages), end=end)  # pyright: ignore[reportArgumentType] - one of its states


SHELL = Message("user", (ShellCommand("ls", "", 0),))


@pytest.mark.parametrize(
    ("turns", "requests"),
    [
        pytest.param([], [], id="nothing"),
        pytest.param([turn(user("a"))], ["a"], id="one"),
        pytest.param([turn(user("a")), turn(user("b"))], ["b"], id="the last one"),
        pytest.param(
            [turn(user("a"), end="interrupted"), turn(user("go on"), end="running")],
            ["a", "go on"],
            id="and the one that was interrupted",
        ),
        pytest.param(
            [turn(user("a")), turn(user("b"), end="error"), turn(user("go on"), end="running")],
            ["b", "go on"],
            id="but not the one before",
        ),
        pytest.param([turn(user("a")), turn(SHELL)], ["a"], id="no command"),
        pytest.param([turn(user("a")), turn(None, first=SUMMARY)], ["a"], id="no summary"),
        pytest.param([turn(user("a"), first=SUMMARY)], ["a"], id="behind a summary"),
    ],
)
def test_what_the_user_waits_for_is_the_last_prompt_and_what_it_goes_on_from(
    turns: list[Turn], requests: list[str]
) -> None:
    assert [text_of(message) for message in requests_of(turns)] == requests


def test_files_of_a_request_are_named() -> None:
    parts = (Text("look"), Text("The file a.py:\n```\nx\n```"), Media("image/png", "AA", "b.png"))
    text = request_text(Message("user", parts), max_chars=1_000)
    assert text.startswith("look\n\n")
    assert "The file a.py; b.png" in text
    assert "```" not in text


@given(st.text(max_size=400), st.integers(0, 200))
def test_a_shortened_text_fits_and_is_not_shortened_again(text: str, most: int) -> None:
    short = shortened(text, most)
    assert len(short) <= max(most, 0)
    assert shortened(short, most) == short
    assert short == text or len(text) > most


def test_what_is_left_out_of_a_text_is_counted() -> None:
    short = shortened("a" * 1_000 + "b" * 1_000, 248)
    assert short.startswith("a" * 100)
    assert short.endswith("b" * 50)
    assert "1,800 characters left out" in short


def test_the_instruction_asks_for_all_sections_and_for_the_wishes_of_the_user() -> None:
    text = instruction(wishes="keep the numbers", max_words=300)
    for section in ("Where things stand", "Files", "Technical facts", "Approach", "Next steps"):
        assert f"## {section}" in text
    assert "keep the numbers" in text
    assert "at most 300 words" in text
    assert "at most" not in instruction()
    assert "Do not call a tool" in instruction()


def test_a_summary_stands_before_a_prompt_that_was_not_answered_yet() -> None:
    talk = Conversation()
    talk.begin(CellRun("a"), user("one"))
    talk.append(by("two"))
    talk.end("end_turn")
    talk.begin(CellRun("b"), user("three"))
    talk.summarize("in short", todos=(), max_request_chars=1_000, reply=by())
    assert [is_summary(message) for message in talk.running] == [True, False]
    assert "<request>\none\n</request>" in text_of(talk.running[0])
    assert "three" not in text_of(talk.running[0])


def test_a_summary_in_the_midst_of_calls_is_of_an_open_request() -> None:
    talk = Conversation()
    talk.begin(CellRun("a"), user("one"))
    talk.append(Message("assistant", (ToolCall("c", "ls", "{}"),)))
    talk.summarize("in short", todos=(), max_request_chars=1_000, reply=by())
    assert "You are in the middle of it" in text_of(talk.running[-1])
