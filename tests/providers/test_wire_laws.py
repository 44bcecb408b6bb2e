"""Whatever has happened to a history, what is sent of it is what the strictest servers take."""

import json
import re
from collections.abc import Iterator
from itertools import pairwise
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crush_kernel.errors import RequestRejected
from crush_kernel.history.quarantine import blamed, without
from crush_kernel.history.repair import repair
from crush_kernel.messages import (
    Media,
    Message,
    Part,
    Reasoning,
    Text,
    ToolCall,
    ToolResult,
)
from crush_kernel.providers import anthropic_wire, openai_wire
from crush_kernel.providers.base import ModelInfo, ModelRequest, ToolSpec
from crush_kernel.providers.openai_wire import Dialect, dialect_of
from crush_kernel.providers.places import WirePath, path_in
from tests.fakes.histories import (
    MODEL,
    PNG,
    PROVIDER,
    SOME,
    History,
    damaged_histories,
    reply,
    results,
    sound_histories,
    thinking,
    user,
)
from tests.fakes.provider import openai_rules
from tests.fakes.provider.anthropic_rules import SentThinking, check_body
from tests.fakes.provider.dialect import Refused

INFO = ModelInfo(PROVIDER, MODEL, accepts_images=True, accepts_documents=True)
TOOLS = (ToolSpec("view", "Shows a file.", {"type": "object"}),)
MISTRAL = dialect_of("mistral")

Json = dict[str, Any]


class AnyThinking(SentThinking):
    """Takes any thinking as its own."""

    def check(self, message: object, path: str) -> None:
        """Take it."""


def thoughts_of(history: History) -> SentThinking:
    """Return what a provider remembers that wrote the thinking of `history`."""
    sent = SentThinking()
    for message in history:
        blocks = [
            part.provider_data if isinstance(part, Reasoning) else {"type": "other"}
            for part in message.parts
        ]
        if message.role == "assistant":
            sent.remember(blocks)
    return sent


def anthropic_body(messages: History, *, use_cache: bool = True) -> Json:
    encoder = anthropic_wire.RequestEncoder(INFO, use_cache=use_cache)
    return parsed(encoder.encode(ModelRequest("Be good.", messages, TOOLS)))


def openai_body(messages: History, dialect: Dialect) -> Json:
    encoder = openai_wire.RequestEncoder(INFO)
    return parsed(encoder.encode(ModelRequest("Be good.", messages, TOOLS), dialect))


def parsed(body: bytes) -> Json:
    fields = json.loads(body.decode("utf-8"))
    json.dumps(fields, ensure_ascii=False).encode("utf-8")
    return fields


@SOME
@given(damaged_histories(), st.booleans())
def test_anthropic_takes_every_repaired_history(history: History, use_cache: bool) -> None:  # noqa: FBT001 - hypothesis
    check_body(anthropic_body(repair(history), use_cache=use_cache), AnyThinking())


@SOME
@given(damaged_histories(), sound_histories())
def test_anthropic_takes_every_history_once_refused_thinking_is_gone(
    history: History, written: History
) -> None:
    messages, known = repair(history), thoughts_of(written)
    try:
        check_body(anthropic_body(messages), known)
    except Refused as refused:
        blame = blamed(RequestRejected("refused", detail=refused.message), messages)
        assert blame is not None
        check_body(anthropic_body(without(messages, blame.keys)), known)


@SOME
@given(damaged_histories())
def test_openai_takes_every_repaired_history(history: History) -> None:
    openai_rules.check_body(openai_body(repair(history), Dialect()))


@SOME
@given(damaged_histories())
def test_mistral_takes_every_repaired_history(history: History) -> None:
    body = openai_body(repair(history), MISTRAL)
    openai_rules.check_body(body)
    calls = [call["id"] for m in body["messages"] for call in m.get("tool_calls", ())]
    assert len(set(calls)) == len(calls)
    assert all(re.fullmatch("[a-zA-Z0-9]{9}", call_id) for call_id in calls)
    roles = [message["role"] for message in body["messages"]]
    assert ("tool", "user") not in list(pairwise(roles))


@SOME
@given(damaged_histories(), st.data())
def test_what_is_kept_from_earlier_requests_changes_nothing(
    history: History, data: st.DataObject
) -> None:
    used = anthropic_wire.RequestEncoder(INFO, use_cache=True)
    used_too = openai_wire.RequestEncoder(INFO)
    for _ in range(4):
        start, end = (data.draw(st.integers(0, len(history))) for _ in range(2))
        request = ModelRequest("s", repair(history[:end] + history[start:]), TOOLS)
        dialect = data.draw(st.sampled_from([Dialect(), Dialect(replays_reasoning=True)]))
        fresh = anthropic_wire.RequestEncoder(INFO, use_cache=True)
        assert used.encode(request) == fresh.encode(request)
        fresh_too = openai_wire.RequestEncoder(INFO)
        assert used_too.encode(request, dialect) == fresh_too.encode(request, dialect)


@SOME
@given(damaged_histories())
def test_anthropics_places_lead_back_to_the_parts(history: History) -> None:
    messages = repair(history)
    encoder = anthropic_wire.RequestEncoder(INFO, use_cache=True)
    seen: list[tuple[int, int]] = []
    for index, message in enumerate(anthropic_body(messages, use_cache=False)["messages"]):
        for number, block in enumerate(message["content"]):
            for place in encoder.places(messages, WirePath(index, "content", number)):
                assert anthropic_looks(messages[place[0]].parts[place[1]]) == block["type"]
                seen.append(place)
    assert sorted(seen) == [place for place, part in placed(messages) if is_anthropics(part)]


def anthropic_looks(part: Part) -> str:
    match part:
        case ToolCall():
            return "tool_use"
        case ToolResult():
            return "tool_result"
        case Reasoning(provider_data=data):
            return str(data["type"])
        case Media(media_type=media_type, data=data) if not data.endswith("%"):
            return "image" if media_type == "image/png" else "document"
        case _:
            return "text"


def is_anthropics(part: Part) -> bool:
    return not isinstance(part, Reasoning) or "signature" in part.provider_data


@SOME
@given(damaged_histories())
def test_openais_places_lead_back_to_the_parts(history: History) -> None:
    messages = repair(history)
    request = ModelRequest("Be good.", messages, TOOLS)
    encoder = openai_wire.RequestEncoder(INFO)
    seen: set[tuple[int, int]] = set()
    for index, message in enumerate(openai_body(messages, Dialect())["messages"]):
        for number, call in enumerate(message.get("tool_calls", ())):
            ((i, j),) = encoder.places(request, WirePath(index, "tool_calls", number))
            assert cast("ToolCall", messages[i].parts[j]).id == call["id"]
        places = encoder.places(request, WirePath(index))
        for i, j in places:
            kind = {
                "assistant": (Text, ToolCall),
                "tool": ToolResult,
                "user": object,
            }
            assert isinstance(messages[i].parts[j], cast("Any", kind[message["role"]]))
        seen.update(places)
    said = {place for place, part in placed(messages) if not isinstance(part, Reasoning)}
    assert seen == said


def placed(messages: tuple[Message, ...]) -> Iterator[tuple[tuple[int, int], Part]]:
    for index, message in enumerate(messages):
        for number, part in enumerate(message.parts):
            yield (index, number), part


IMAGE = Media("image/png", PNG, "a.png")
TALK = (
    user(Text("look"), IMAGE),
    reply(Text("a"), ToolCall("t1", "view", "{}"), ToolCall("t2", "view", "{}")),
    results(ToolResult("t1", "shown", media=(IMAGE,)), ToolResult("t2", "text")),
    user(Text("and this"), IMAGE),
)


@pytest.mark.parametrize(
    ("refusal", "place"),
    [
        pytest.param("messages.0.content.1.image.source.base64: no", [(0, 1)], id="an image"),
        pytest.param("messages.2.content.0.tool_result.content.1.image: no", [(2, 0)],
                     id="an image of a result"),
        pytest.param("messages.2.content.3: no", [(3, 1)], id="what follows results"),
        pytest.param("messages.1.content.2.input: no", [(1, 2)], id="a call"),
        pytest.param("messages.2: no", [(2, 0), (2, 1), (3, 0), (3, 1)], id="a message"),
        pytest.param("messages.1.content.7: no", [], id="no block"),
        pytest.param("messages.7.content.1: no", [], id="no message"),
    ],
)  # fmt: skip
def test_anthropic_counts_blocks_after_results_came_first(
    refusal: str, place: list[tuple[int, int]]
) -> None:
    encoder = anthropic_wire.RequestEncoder(INFO, use_cache=True)
    path = path_in(refusal)
    assert path is not None
    assert list(encoder.places(TALK, path)) == place


def test_anthropic_counts_what_is_said_before_a_reply_that_comes_first() -> None:
    encoder = anthropic_wire.RequestEncoder(INFO, use_cache=True)
    assert encoder.places(TALK[1:], WirePath(0)) == ()
    assert encoder.places(TALK[1:], WirePath(1, "content", 0)) == ((0, 0),)


@pytest.mark.parametrize(
    ("refusal", "place"),
    [
        pytest.param("Invalid 'messages[1].content[1].image_url.url'", [(0, 1)], id="an image"),
        pytest.param("Invalid 'messages[5].content[1]'", [(2, 0)], id="an image of a result"),
        pytest.param("Invalid 'messages[2].tool_calls[1].function.arguments'", [(1, 2)],
                     id="arguments"),
        pytest.param('"param": "messages.[4].role"', [(2, 1)], id="a result"),
        pytest.param("body -> messages -> 6 -> content -> 1", [(3, 1)], id="as pydantic says it"),
        pytest.param("Invalid 'messages[0].content'", [], id="the system prompt"),
        pytest.param("Invalid 'messages[70].content'", [], id="no message"),
    ],
)  # fmt: skip
def test_openai_counts_the_system_prompt_and_each_result(
    refusal: str, place: list[tuple[int, int]]
) -> None:
    path = path_in(refusal)
    assert path is not None
    request = ModelRequest("Be good.", TALK, TOOLS)
    assert list(openai_wire.RequestEncoder(INFO).places(request, path)) == place


@pytest.mark.parametrize("refusal", ["", "no messages", "messages: at least one is required"])
def test_a_refusal_that_names_no_place_leads_nowhere(refusal: str) -> None:
    assert path_in(refusal) is None


@SOME
@given(damaged_histories())
def test_at_most_four_cache_marks_of_one_lifetime(history: History) -> None:
    marked = [thinking("hm"), Text("ok")]
    body = json.dumps(anthropic_body(repair((*history, reply(*marked), user(Text("go"))))))
    assert body.count('"cache_control"') == body.count('"cache_control": {"type": "ephemeral"}')
    assert 3 <= body.count('"cache_control"') <= 4
