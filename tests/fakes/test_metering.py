"""The fake provider counts tokens, keeps a cache and refuses what is too long, as told to."""

import json
from collections.abc import Mapping
from typing import Any

import httpx2
import pytest

from crush_kernel.messages import Usage
from tests.fakes.provider.metering import FILE_TOKENS
from tests.fakes.provider.overflows import OVERFLOWS, Asked
from tests.fakes.provider.replies import say
from tests.fakes.provider.server import FakeProvider, Received

MARK = {"cache_control": {"type": "ephemeral"}}
FOUR_TOKENS = "x" * 16
LONG = "y" * 400

Json = Mapping[str, Any]


def text(words: str, **more: object) -> Json:
    return {"type": "text", "text": words, **more}


def user(*blocks: Json) -> Json:
    return {"role": "user", "content": list(blocks)}


def ask(provider: FakeProvider, *messages: Json, **more: object) -> Received:
    """Return what became of a request in Anthropic's API."""
    body = {"model": "m", "max_tokens": 100, "stream": True, "messages": list(messages), **more}
    headers = {"x-api-key": "key", "anthropic-version": "2023-06-01"}
    httpx2.post(f"{provider.url}/v1/messages", json=body, headers=headers)
    return provider.requests[-1]


def ask_openai(provider: FakeProvider, *texts: str) -> Received:
    messages = [{"role": "user", "content": words} for words in texts]
    body = {"model": "m", "stream": True, "messages": messages}
    httpx2.post(f"{provider.openai_url}/chat/completions", json=body)
    return provider.requests[-1]


def used(provider: FakeProvider, *messages: Json, **more: object) -> tuple[int, int]:
    """Return what a request read from and wrote to the cache."""
    usage = ask(provider, *messages, **more).usage
    assert usage is not None
    return usage.cache_read_tokens, usage.cache_write_tokens


@pytest.fixture
def metered(provider: FakeProvider) -> FakeProvider:
    provider.meter.measures_usage = True
    provider.play(lambda _: say(FOUR_TOKENS))
    return provider


def test_what_is_asked_and_said_is_reported(metered: FakeProvider) -> None:
    request = ask(metered, user(text(LONG)))
    assert request.tokens == pytest.approx(100, abs=5)
    assert request.usage == Usage(input_tokens=request.tokens, output_tokens=4)


def test_without_measuring_the_script_says_what_was_used(provider: FakeProvider) -> None:
    provider.play(say("hi"))
    assert ask(provider, user(text(LONG))).usage == Usage(input_tokens=10, output_tokens=5)


def test_usage_can_be_left_out(metered: FakeProvider) -> None:
    metered.meter.reports_usage = False
    assert ask(metered, user(text(LONG))).usage is None


def test_an_image_has_as_many_tokens_as_any_other(metered: FakeProvider) -> None:
    source = {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo" + "A" * 9_997}
    request = ask(metered, user({"type": "image", "source": source}))
    assert request.refusal == ""
    assert request.tokens == FILE_TOKENS


def test_what_was_marked_is_read_by_the_next_request(metered: FakeProvider) -> None:
    first = user(text(LONG, **MARK))
    read, written = used(metered, first)
    assert (read, written) == (0, metered.requests[0].tokens)
    again, more = used(metered, user(text(LONG)), user(text(LONG, **MARK)))
    assert (again, again + more) == (written, metered.requests[1].tokens)


def test_what_follows_the_last_mark_is_not_cached(metered: FakeProvider) -> None:
    used(metered, user(text(LONG, **MARK), text("today")))
    read, _ = used(metered, user(text(LONG, **MARK), text("tomorrow")))
    assert 0 < read < metered.requests[1].tokens


@pytest.mark.parametrize(
    "changed",
    [
        pytest.param({"messages": [user(text("z" + LONG, **MARK))]}, id="another message"),
        pytest.param({"system": "Be good."}, id="another system prompt"),
        pytest.param({"tools": [{"name": "b", "input_schema": {"type": "object"}}]}, id="a tool"),
        pytest.param({"model": "n"}, id="another model"),
    ],
)
def test_what_has_changed_is_not_read(metered: FakeProvider, changed: Json) -> None:
    used(metered, user(text(LONG, **MARK)))
    messages = changed.get("messages", [user(text(LONG, **MARK))])
    rest = {key: value for key, value in changed.items() if key != "messages"}
    assert used(metered, *messages, **rest)[0] == 0


def test_another_tool_choice_keeps_only_what_comes_before_the_messages(
    metered: FakeProvider,
) -> None:
    tools = [{"name": "b", "description": LONG, "input_schema": {"type": "object"}, **MARK}]
    used(metered, user(text(LONG, **MARK)), tools=tools)
    read, _ = used(metered, user(text(LONG, **MARK)), tools=tools, tool_choice={"type": "none"})
    assert 100 <= read < 130


def test_an_old_mark_too_far_back_is_not_found(metered: FakeProvider) -> None:
    used(metered, user(text(LONG, **MARK)))
    near = [text("n")] * 19
    assert used(metered, user(text(LONG), *near, text("n", **MARK)))[0] == 0
    metered.meter.expire()
    used(metered, user(text(LONG, **MARK)))
    assert used(metered, user(text(LONG), *near[1:], text("n", **MARK)))[0] > 0


def test_the_cache_expires(metered: FakeProvider) -> None:
    used(metered, user(text(LONG, **MARK)))
    metered.meter.expire()
    assert used(metered, user(text(LONG, **MARK)))[0] == 0


def test_short_prompts_are_not_cached(metered: FakeProvider) -> None:
    metered.meter.min_cached_tokens = 1024
    assert used(metered, user(text(LONG, **MARK))) == (0, 0)
    assert used(metered, user(text(LONG, **MARK))) == (0, 0)


def test_openai_reads_what_earlier_requests_began_with_in_steps(metered: FakeProvider) -> None:
    ask_openai(metered, LONG, LONG)
    usage = ask_openai(metered, LONG, LONG, LONG).usage
    assert usage is not None
    assert (usage.cache_read_tokens, usage.cache_write_tokens) == (128, 0)


def test_a_request_that_does_not_fit_is_refused(provider: FakeProvider) -> None:
    provider.meter.window = 101
    provider.play(say("fits"))
    assert ask(provider, user(text("y" * 390))).refusal == ""
    assert ask(provider, user(text("y" * 450))).refusal != ""
    assert provider.unplayed == 0


def test_the_output_can_count_too(provider: FakeProvider) -> None:
    provider.meter.window = 150
    provider.meter.counts_output_limit = True
    assert ask(provider, user(text(LONG))).refusal != ""


@pytest.mark.parametrize("vendor", OVERFLOWS)
def test_every_vendor_refuses_with_an_error(vendor: str) -> None:
    refusal = OVERFLOWS[vendor](Asked(prompt=9_001, output=0, window=8_192))
    assert refusal.status >= 400
    assert "error" in json.dumps(refusal.body)
