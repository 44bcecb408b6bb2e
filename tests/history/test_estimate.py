"""How tokens are estimated, and what corrects the estimates."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crush_kernel.history.estimate import (
    HIGHEST_RATIO,
    IMAGE_TOKENS,
    LOWEST_RATIO,
    Gauge,
    tokens_of,
    tokens_of_text,
)
from crush_kernel.messages import Media, Message, Part, Text, ToolCall, ToolResult, Usage

M = "p/m"


def user(text: str) -> Message:
    return Message("user", (Text(text),))


def reply(text: str, tokens: int = 0, model: str = "m", *, is_estimated: bool = False) -> Message:
    usage = Usage(input_tokens=tokens, is_estimated=is_estimated) if tokens else None
    return Message("assistant", (Text(text),), "p", model, "end_turn", usage)


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        pytest.param("", 0, id="nothing"),
        pytest.param("a", 1, id="a letter"),
        pytest.param("abcd", 1, id="four bytes"),
        pytest.param("abcde", 2, id="rounded up"),
        pytest.param("ä" * 4, 2, id="two bytes each"),
        pytest.param("漢字漢字", 3, id="three bytes each"),
        pytest.param("\ud800", 1, id="no character at all"),
    ],
)
def test_a_token_is_four_bytes(text: str, tokens: int) -> None:
    assert tokens_of_text(text) == tokens


def test_files_count_as_what_models_make_of_them() -> None:
    picture = Media("image/png", "A" * 4_000_000)
    assert IMAGE_TOKENS <= tokens_of(Message("user", (picture,))) < IMAGE_TOKENS + 10
    paper = Media("application/pdf", "A" * 4_000_000)
    assert 10_000 < tokens_of(Message("user", (paper,))) < 100_000


def test_calls_and_results_count_with_their_arguments_and_files() -> None:
    call = Message("assistant", (ToolCall("c", "write", '{"text": "' + "x" * 4_000 + '"}'),))
    result = Message("tool", (ToolResult("c", "y" * 4_000, media=(Media("image/png", "AA"),)),))
    assert tokens_of(call) > 1_000
    assert tokens_of(result) > 1_000 + IMAGE_TOKENS


@given(st.lists(st.text(max_size=50), max_size=6), st.integers(0, 6))
def test_counting_what_grew_comes_to_the_same_as_counting_anew(texts: list[str], cut: int) -> None:
    messages = tuple(map(user, texts))
    gauge = Gauge()
    gauge.count(messages)
    for part in (messages[:cut], messages, messages[cut:]):
        assert gauge.count(part) == Gauge().count(part) == sum(map(tokens_of, part))


def test_without_any_report_everything_is_estimated() -> None:
    assert Gauge().used(M, (user("x" * 400),), fixed=50) == (154, True)


def test_what_was_reported_counts_and_only_the_rest_is_estimated() -> None:
    messages = (user("x" * 400), reply("y", 500), user("z" * 40))
    assert Gauge().used(M, messages, fixed=50) == (514, False)


@pytest.mark.parametrize(
    "other",
    [
        pytest.param(reply("y", 500, model="n"), id="another model"),
        pytest.param(reply("y", 500, is_estimated=True), id="an estimate"),
        pytest.param(reply("y"), id="nothing reported"),
    ],
)
def test_what_says_nothing_of_this_model_is_no_report(other: Message) -> None:
    used, is_estimated = Gauge().used(M, (user("x" * 400), other), fixed=50)
    assert (used < 200, is_estimated) == (True, True)


def test_a_report_of_next_to_nothing_is_not_believed() -> None:
    # Some servers leave out what they had cached.
    used, _ = Gauge().used(M, (user("x" * 40_000), reply("y", 10)), fixed=0)
    assert used >= 10_000 * LOWEST_RATIO


@pytest.mark.parametrize(
    ("part", "reported", "believed"),
    [
        pytest.param(Text("x" * 400), 300, 300, id="more than estimated"),
        pytest.param(Text("x" * 400), 10**11, 104, id="a lie"),
        pytest.param(Media("image/png", "AAAA"), 10**11, 1_604, id="an image"),
        pytest.param(Media("application/pdf", "AAAA"), 90_000, 90_000, id="a document"),
    ],
)
def test_a_report_of_far_too_much_is_not_believed(part: Part, reported: int, believed: int) -> None:
    asked = Message("user", (part,))
    answer = reply("", reported)
    used, _ = Gauge().used(M, (asked, answer), fixed=0)
    assert believed <= used <= believed + tokens_of(answer)


def test_an_estimate_is_corrected_by_what_this_model_has_reported() -> None:
    gauge = Gauge()
    gauge.reported(M, counted=1_000, prompt=1_500)
    assert gauge.used(M, (user("x" * 400),), fixed=0)[0] == 156
    assert gauge.used("p/n", (user("x" * 400),), fixed=0)[0] == 104


@pytest.mark.parametrize(
    ("counted", "prompt", "ratio"),
    [
        pytest.param(1_000, 2_000, 2.0, id="believed"),
        pytest.param(1_000, 10_000, HIGHEST_RATIO, id="bounded"),
        pytest.param(1_000, 100_000, 1.0, id="a lie"),
        pytest.param(1_000, 10, 1.0, id="not of the whole request"),
        pytest.param(0, 10, 1.0, id="nothing counted"),
    ],
)
def test_what_a_report_teaches_is_bounded(counted: int, prompt: int, ratio: float) -> None:
    gauge = Gauge()
    gauge.reported(M, counted=counted, prompt=prompt)
    assert gauge.ratio(M) == ratio


@pytest.mark.parametrize(
    ("asked", "limit", "known", "window"),
    [
        pytest.param(9_000, 8_000, 0, 8_000, id="named"),
        pytest.param(9_000, 8_000, 32_000, 8_000, id="named, less than known"),
        pytest.param(0, 0, 0, 9_000, id="nothing named, nothing known"),
        pytest.param(0, 0, 32_000, 9_000, id="nothing named, more known"),
        pytest.param(9_000, 0, 0, 8_100, id="only what was asked"),
        pytest.param(40_000, 0, 32_000, 32_000, id="asked for more than known"),
        pytest.param(0, 5, 32_000, 9_000, id="a number that is no window"),
    ],
)
def test_what_did_not_fit_teaches_the_window(
    asked: int, limit: int, known: int, window: int
) -> None:
    gauge = Gauge()
    gauge.overflowed(M, asked=asked, limit=limit, counted=10_000, known=known)
    assert gauge.window(M, known) == window


def test_a_window_is_what_is_known_until_something_teaches_better() -> None:
    gauge = Gauge()
    assert gauge.window(M, 200_000) == 200_000
    gauge.overflowed(M, asked=0, limit=1_000_000, counted=1, known=200_000)
    assert gauge.window(M, 200_000) == 200_000
