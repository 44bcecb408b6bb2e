"""The fake provider refuses what the real APIs refuse, and takes what they take."""

import base64
from collections.abc import Mapping

import httpx2
import pytest

from crush_kernel.messages import Usage
from tests.fakes.provider.replies import Call, Reply, Say, Think, ThinkRedacted, say
from tests.fakes.provider.server import FakeProvider

PNG = base64.b64encode(b"\x89PNG\r\n\x1a\n rest").decode()
PDF = base64.b64encode(b"%PDF-1.7 rest").decode()
MARK = {"type": "ephemeral"}

Json = Mapping[str, object]


def user(*blocks: Json | str) -> Json:
    return {"role": "user", "content": [_text(block) for block in blocks]}


def assistant(*blocks: Json | str) -> Json:
    return {"role": "assistant", "content": [_text(block) for block in blocks]}


def _text(block: Json | str) -> Json:
    return {"type": "text", "text": block} if isinstance(block, str) else block


def use(call_id: str = "t1", **changes: object) -> Json:
    return {"type": "tool_use", "id": call_id, "name": "view", "input": {}, **changes}


def result(call_id: str = "t1", **changes: object) -> Json:
    return {"type": "tool_result", "tool_use_id": call_id, "content": "ok", **changes}


def image(data: str = PNG, media_type: str = "image/png") -> Json:
    source = {"type": "base64", "media_type": media_type, "data": data}
    return {"type": "image", "source": source}


TOOL: Json = {"name": "view", "input_schema": {"type": "object"}}


def anthropic_body(*messages: Json, **changes: object) -> dict[str, object]:
    body = {"model": "claude-sonnet-4-5", "max_tokens": 100, "stream": True, "tools": [TOOL]}
    return {**body, "messages": list(messages), **changes}


def ask_anthropic(provider: FakeProvider, body: Json) -> httpx2.Response:
    headers = {"x-api-key": "key", "anthropic-version": "2023-06-01"}
    return httpx2.post(f"{provider.url}/v1/messages", json=body, headers=headers)


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(anthropic_body(user("hi")), id="a prompt"),
        pytest.param(anthropic_body({"role": "user", "content": "hi"}), id="content as a string"),
        pytest.param(
            anthropic_body(user("hi"), assistant("ok", use()), user(result(), "and now")),
            id="a call and its result",
        ),
        pytest.param(
            anthropic_body(
                user("hi"),
                assistant(use("a"), use("b")),
                user(result("b", is_error=True), result("a", content=[image()])),
            ),
            id="parallel calls, an error and an image",
        ),
        pytest.param(
            anthropic_body(
                user({**_text("hi"), "cache_control": MARK}),
                system=[{**_text("be good"), "cache_control": MARK}],
                tools=[{**TOOL, "cache_control": MARK}],
            ),
            id="cache marks",
        ),
        pytest.param(
            anthropic_body(
                user({**_text("hi"), "cache_control": MARK}),
                tools=[{**TOOL, "cache_control": {**MARK, "ttl": "1h"}}],
            ),
            id="a longer cache mark before a shorter one",
        ),
    ],
)
def test_anthropic_takes(provider: FakeProvider, body: Json) -> None:
    provider.play(say("hello"))
    response = ask_anthropic(provider, body)
    assert (response.status_code, provider.requests[0].refusal) == (200, "")
    assert '"text": "hello"' in response.text


@pytest.mark.parametrize(
    ("body", "complaint"),
    [
        pytest.param(
            anthropic_body(user("hi"), assistant(use())),
            "without `tool_result` blocks immediately after: t1",
            id="call unanswered at the end",
        ),
        pytest.param(
            anthropic_body(user("hi"), assistant(use()), user("go on")),
            "without `tool_result`",
            id="call answered by text",
        ),
        pytest.param(
            anthropic_body(
                user("hi"), assistant(use()), user("wait"), assistant("ok"), user(result())
            ),
            "unexpected `tool_use_id`|without `tool_result`",
            id="call answered late",
        ),
        pytest.param(
            anthropic_body(user("hi"), assistant(use("a"), use("b")), user(result("a"))),
            "without `tool_result` blocks immediately after: b",
            id="one of two unanswered",
        ),
        pytest.param(
            anthropic_body(user("hi"), assistant(use()), user(result(), result())),
            "single result",
            id="answered twice",
        ),
        pytest.param(
            anthropic_body(user(result())), "unexpected `tool_use_id`", id="result without call"
        ),
        pytest.param(
            anthropic_body(user("hi"), assistant(use()), user("first", result())),
            "must come first",
            id="text before the results",
        ),
        pytest.param(
            anthropic_body(user("hi"), assistant(use(), use()), user(result())),
            "ids must be unique",
            id="one id twice in a message",
        ),
        pytest.param(
            anthropic_body(
                user("hi"), assistant(use()), user(result()), assistant(use()), user(result())
            ),
            "ids must be unique",
            id="one id twice in the history",
        ),
        pytest.param(
            anthropic_body(user("hi"), assistant(use("a:1")), user(result("a:1"))),
            "should match pattern",
            id="id outside the alphabet",
        ),
        pytest.param(
            anthropic_body(user("hi"), assistant(use("a" * 65)), user(result("a" * 65))),
            "at most 64",
            id="id too long",
        ),
        pytest.param(
            anthropic_body(user("hi"), assistant(use(input="{}")), user(result())),
            "valid dictionary",
            id="input is not an object",
        ),
        pytest.param(
            anthropic_body(user("hi"), assistant(use(name="a b")), user(result())),
            "should match pattern",
            id="call of an impossible name",
        ),
        pytest.param(anthropic_body(user("")), "must be non-empty", id="empty text"),
        pytest.param(anthropic_body(user(" \n")), "non-whitespace", id="blank text"),
        pytest.param(
            anthropic_body({"role": "user", "content": "  "}), "non-whitespace", id="blank string"
        ),
        pytest.param(
            anthropic_body(user("hi"), system=[_text("")]), "system: text", id="empty system"
        ),
        pytest.param(
            anthropic_body(user("hi"), assistant(use()), user(result(content=[_text("")]))),
            "must be non-empty",
            id="empty text in a result",
        ),
        pytest.param(anthropic_body(user()), "non-empty content", id="no blocks"),
        pytest.param(anthropic_body(), "at least one message", id="no messages"),
        pytest.param(
            anthropic_body(user("hi"), assistant("ok ")),
            "trailing whitespace",
            id="prefill ends in a space",
        ),
        pytest.param(
            anthropic_body(
                user(*({**_text(str(number)), "cache_control": MARK} for number in range(3))),
                system=[{**_text("be good"), "cache_control": MARK}],
                tools=[{**TOOL, "cache_control": MARK}],
            ),
            "maximum of 4 blocks",
            id="five cache marks",
        ),
        pytest.param(
            anthropic_body(
                user({**_text("hi"), "cache_control": {**MARK, "ttl": "1h"}}),
                system=[{**_text("be good"), "cache_control": MARK}],
            ),
            "ttl='1h' cache_control block must not come after",
            id="a longer cache mark after a shorter one",
        ),
        pytest.param(
            anthropic_body(
                user("hi"), assistant(use()), user(result(is_error=True, content=[image()]))
            ),
            "all content must be type `text` if `is_error` is true",
            id="an image in an error",
        ),
        pytest.param(anthropic_body(user("hi"), seed=1), "seed: Extra inputs", id="unknown field"),
        pytest.param(
            anthropic_body({**user("hi"), "name": "me"}), "Extra inputs", id="field of a message"
        ),
        pytest.param(
            anthropic_body(user({**_text("hi"), "x": 1})), "Extra inputs", id="field of a block"
        ),
        pytest.param(
            anthropic_body(user("hi"), tools=[{**TOOL, "x": 1}]),
            "Extra inputs",
            id="field of a tool",
        ),
        pytest.param(
            anthropic_body({"role": "tool", "content": "x"}), "role|tag", id="unknown role"
        ),
        pytest.param(anthropic_body(assistant("hi")), "first message", id="begins with assistant"),
        pytest.param(
            anthropic_body({"role": "system", "content": "x"}, user("hi")),
            "tag",
            id="system among the messages",
        ),
        pytest.param(anthropic_body(user(image("%%%"))), "invalid base64", id="broken Base64"),
        pytest.param(
            anthropic_body(user(image(PNG, "image/jpeg"))),
            "does not match the provided media type",
            id="PNG said to be JPEG",
        ),
        pytest.param(
            anthropic_body(user(image(PNG, "image/tiff"))), "media_type", id="unknown image type"
        ),
        pytest.param(
            anthropic_body(user("hi"), assistant(use()), user(result(content=[image(PDF)]))),
            "does not match",
            id="bad image in a result",
        ),
        pytest.param(
            anthropic_body(user("hi"), tools=[TOOL, TOOL]), "names must be unique", id="tool twice"
        ),
        pytest.param(
            anthropic_body(user("hi"), tools=[{**TOOL, "name": "a.b"}]),
            "should match pattern",
            id="bad tool name",
        ),
        pytest.param(
            anthropic_body(user("hi"), tools=[{**TOOL, "input_schema": {"type": "string"}}]),
            "object",
            id="schema not of an object",
        ),
        pytest.param(
            anthropic_body(user("hi"), assistant(use()), user(result()), tools=[]),
            "must define tools",
            id="calls in the history and no tools",
        ),
        pytest.param(
            {
                key: value
                for key, value in anthropic_body(user("hi")).items()
                if key != "max_tokens"
            },
            "max_tokens: Field required",
            id="no max_tokens",
        ),
        pytest.param(anthropic_body(user("hi"), max_tokens=0), "max_tokens", id="max_tokens of 0"),
        pytest.param(
            anthropic_body(
                user("hi"),
                assistant({"type": "thinking", "thinking": "x", "signature": "y"}, "ok"),
                user("go on"),
            ),
            "Invalid `signature`",
            id="thinking it never sent",
        ),
        pytest.param(
            anthropic_body(
                user("hi"),
                assistant({"type": "redacted_thinking", "data": "y"}, "ok"),
                user("go on"),
            ),
            "Invalid `data`",
            id="redacted thinking it never sent",
        ),
    ],
)
def test_anthropic_refuses(provider: FakeProvider, body: Json, complaint: str) -> None:
    provider.play(say("never said"))
    response = ask_anthropic(provider, body)
    assert response.status_code == 400
    error = response.json()["error"]
    assert error["type"] == "invalid_request_error"
    assert any(part in error["message"] for part in complaint.split("|")), error["message"]
    assert provider.requests[0].refusal == error["message"]
    assert provider.unplayed == 1


THINKING: Json = {"type": "thinking", "thinking": "hm\u00a0…", "signature": "s+/="}
REDACTED: Json = {"type": "redacted_thinking", "data": "EncRypted"}


def _after_thinking(provider: FakeProvider, *blocks: Json | str) -> httpx2.Response:
    """Ask with a history whose reply is `blocks`, after the provider has said THINKING."""
    provider.play(
        Reply((Think("hm\u00a0…", "s+/="), ThinkRedacted("EncRypted"), Say("ok"), Call("view", {})))
    )
    provider.play(say("and?"))
    assert ask_anthropic(provider, anthropic_body(user("hi"))).status_code == 200
    history = (user("hi"), assistant(*blocks, use()), user(result()))
    return ask_anthropic(provider, anthropic_body(*history))


def test_anthropic_takes_thinking_back_unchanged(provider: FakeProvider) -> None:
    assert _after_thinking(provider, THINKING, REDACTED, "ok").status_code == 200


def test_anthropic_takes_a_reply_back_without_its_thinking(provider: FakeProvider) -> None:
    assert _after_thinking(provider, "ok").status_code == 200


@pytest.mark.parametrize(
    "blocks",
    [
        pytest.param(({**THINKING, "thinking": "hm …"}, REDACTED, "ok"), id="text altered"),
        pytest.param(({**THINKING, "signature": "s-_="}, REDACTED, "ok"), id="signature altered"),
        pytest.param((THINKING, {**REDACTED, "data": "encrypted"}, "ok"), id="data altered"),
        pytest.param((REDACTED, THINKING, "ok"), id="order altered"),
        pytest.param((REDACTED, "ok"), id="one left out"),
        pytest.param(("ok", THINKING, REDACTED), id="after the text"),
        pytest.param(({**THINKING, "cache_control": MARK}, REDACTED, "ok"), id="marked"),
    ],
)
def test_anthropic_refuses_thinking_that_came_back_changed(
    provider: FakeProvider, blocks: tuple[Json | str, ...]
) -> None:
    assert _after_thinking(provider, *blocks).status_code == 400


def test_anthropic_wants_a_key_and_a_version(provider: FakeProvider) -> None:
    url = f"{provider.url}/v1/messages"
    body = anthropic_body(user("hi"))
    assert httpx2.post(url, json=body).status_code == 401
    assert httpx2.post(url, json=body, headers={"x-api-key": "key"}).status_code == 400


def test_anthropic_refuses_a_body_that_is_not_json(provider: FakeProvider) -> None:
    headers = {"x-api-key": "k", "anthropic-version": "1", "content-type": "application/json"}
    for body in (b"{", b"[]", b'"\\ud800"', b'{"model": "\xff"}'):
        response = httpx2.post(f"{provider.url}/v1/messages", content=body, headers=headers)
        assert response.status_code == 400
        assert response.json()["error"]["type"] == "invalid_request_error"


def openai_call(call_id: str = "c1", **function: object) -> Json:
    body = {"name": "view", "arguments": "{}", **function}
    return {"id": call_id, "type": "function", "function": body}


def openai_calls(*calls: Json, **changes: object) -> Json:
    return {"role": "assistant", "content": None, "tool_calls": list(calls), **changes}


def answer(call_id: str = "c1", content: object = "ok") -> Json:
    return {"role": "tool", "tool_call_id": call_id, "content": content}


def said(content: object, role: str = "user") -> Json:
    return {"role": role, "content": content}


def picture(url: str) -> Json:
    return said([{"type": "image_url", "image_url": {"url": url}}])


def openai_body(*messages: Json, **changes: object) -> dict[str, object]:
    return {"model": "qwen3", "stream": True, "messages": list(messages), **changes}


def ask_openai(provider: FakeProvider, body: Json) -> httpx2.Response:
    return httpx2.post(f"{provider.openai_url}/chat/completions", json=body)


OPENAI_TOOL: Json = {
    "type": "function",
    "function": {"name": "view", "parameters": {"type": "object"}},
}


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(openai_body(said("hi")), id="a prompt"),
        pytest.param(
            openai_body(said("be good", "system"), said("hi"), said("ok", "assistant")),
            id="system and reply",
        ),
        pytest.param(
            openai_body(
                said("hi"),
                openai_calls(openai_call("a"), openai_call("b"), content="look"),
                answer("b"),
                answer("a", [{"type": "text", "text": "ok"}]),
                tools=[OPENAI_TOOL],
                stream_options={"include_usage": True},
            ),
            id="parallel calls",
        ),
        pytest.param(openai_body(picture(f"data:image/png;base64,{PNG}")), id="an image"),
    ],
)
def test_openai_takes(provider: FakeProvider, body: Json) -> None:
    provider.play(say("hello"))
    response = ask_openai(provider, body)
    assert (response.status_code, provider.requests[0].refusal) == (200, "")
    assert '"content": "hello"' in response.text
    assert response.text.endswith("data: [DONE]\n\n")


@pytest.mark.parametrize(
    ("body", "complaint"),
    [
        pytest.param(
            openai_body(said("hi"), openai_calls(openai_call()), said("go on")),
            "did not have response messages: c1",
            id="call answered by text",
        ),
        pytest.param(
            openai_body(said("hi"), openai_calls(openai_call())),
            "did not have response messages",
            id="call unanswered at the end",
        ),
        pytest.param(
            openai_body(said("hi"), openai_calls(openai_call("a"), openai_call("b")), answer("a")),
            "did not have response messages: b",
            id="one of two unanswered",
        ),
        pytest.param(
            openai_body(said("hi"), openai_calls(openai_call()), answer(), answer()),
            "must be a response to a preceding message",
            id="answered twice",
        ),
        pytest.param(
            openai_body(said("hi"), answer()),
            "must be a response to a preceding message",
            id="result without call",
        ),
        pytest.param(
            openai_body(said("hi"), openai_calls(openai_call(), openai_call()), answer()),
            "Duplicate value",
            id="one id twice",
        ),
        pytest.param(
            openai_body(said("hi"), openai_calls(openai_call("c" * 41)), answer("c" * 41)),
            "maximum length 40",
            id="id too long",
        ),
        pytest.param(
            openai_body(said("hi"), openai_calls(openai_call(arguments="")), answer()),
            "function arguments",
            id="empty arguments",
        ),
        pytest.param(
            openai_body(said("hi"), openai_calls(openai_call(arguments='{"a":')), answer()),
            "function arguments",
            id="arguments cut off",
        ),
        pytest.param(
            openai_body(said("hi"), openai_calls(openai_call(arguments="[]")), answer()),
            "function arguments",
            id="arguments not an object",
        ),
        pytest.param(
            openai_body(said("hi"), openai_calls(openai_call(name="a b")), answer()),
            "does not match pattern",
            id="call of an impossible name",
        ),
        pytest.param(
            openai_body(said("hi"), openai_calls()), "empty array", id="no calls in tool_calls"
        ),
        pytest.param(openai_body(said("hi"), x=1), "Unknown parameter: 'x'", id="unknown field"),
        pytest.param(
            openai_body({**said("hi"), "x": 1}), "Unknown parameter", id="field of a message"
        ),
        pytest.param(
            openai_body({**said("ok", "assistant"), "reasoning_content": "hm"}, said("hi")),
            "reasoning_content",
            id="reasoning sent back",
        ),
        pytest.param(openai_body(said("hi", "human")), "messages[0]", id="unknown role"),
        pytest.param(openai_body(), "too short", id="no messages"),
        pytest.param(openai_body(said("")), "must not be empty", id="empty text"),
        pytest.param(openai_body(said([])), "must not be empty", id="no parts"),
        pytest.param(
            openai_body(said([{"type": "text", "text": " "}])), "must not be empty", id="blank part"
        ),
        pytest.param(
            openai_body(said("hi"), said(None, "assistant")),
            "must not be empty",
            id="reply without anything",
        ),
        pytest.param(openai_body(said("hi"), tools=[]), "too short", id="empty list of tools"),
        pytest.param(
            openai_body(said("hi"), tool_choice="auto"), "tool_choice", id="choice without tools"
        ),
        pytest.param(
            openai_body(said("hi"), tools=[{"type": "function", "function": {"name": "a" * 65}}]),
            "longer than 64",
            id="tool name too long",
        ),
        pytest.param(
            openai_body(picture("data:image/png;base64,%%")), "invalid base64", id="broken Base64"
        ),
        pytest.param(
            openai_body(picture(f"data:image/jpeg;base64,{PNG}")),
            "does not match",
            id="PNG said to be JPEG",
        ),
        pytest.param(
            openai_body(
                said("hi"),
                openai_calls(openai_call()),
                answer(content=[{"type": "image_url", "image_url": {"url": "x"}}]),
            ),
            "messages[2]",
            id="image in a tool message",
        ),
        pytest.param(
            openai_body(said("hi"), model="gpt-5-mini", max_tokens=5),
            "max_completion_tokens",
            id="max_tokens for a reasoning model",
        ),
    ],
)
def test_openai_refuses(provider: FakeProvider, body: Json, complaint: str) -> None:
    provider.play(say("never said"))
    response = ask_openai(provider, body)
    assert response.status_code == 400
    error = response.json()["error"]
    assert complaint in error["message"]
    assert set(error) == {"message", "type", "param", "code"}
    assert provider.unplayed == 1


def test_an_allowed_extension_is_taken(provider: FakeProvider) -> None:
    provider.openai.assistant_extras = frozenset({"reasoning_content"})
    provider.play(say("hello"))
    body = openai_body(
        said("a"), {**said("ok", "assistant"), "reasoning_content": "hm"}, said("hi")
    )
    assert ask_openai(provider, body).status_code == 200


def test_usage_is_streamed_only_if_asked_for(provider: FakeProvider) -> None:
    reply = Reply((Say("hi"),), usage=Usage(input_tokens=3, cache_read_tokens=4, output_tokens=1))
    provider.play(reply, reply)
    plain = ask_openai(provider, openai_body(said("hi")))
    asked = ask_openai(provider, openai_body(said("hi"), stream_options={"include_usage": True}))
    assert "usage" not in plain.text
    assert '"prompt_tokens": 7' in asked.text
    assert '"cached_tokens": 4' in asked.text


def test_a_wrong_key_and_an_unknown_model_are_refused(provider: FakeProvider) -> None:
    provider.keys = frozenset({"right"})
    body = openai_body(said("hi"))
    assert ask_openai(provider, body).status_code == 401
    assert ask_anthropic(provider, anthropic_body(user("hi"))).status_code == 401
    assert httpx2.get(f"{provider.openai_url}/models").status_code == 401
    provider.keys = frozenset()
    provider.refuses_other_models = True
    assert ask_openai(provider, body).status_code == 404


def test_models_are_listed_in_both_dialects(provider: FakeProvider) -> None:
    provider.models = ("m1", "m2")
    openai = httpx2.get(f"{provider.openai_url}/models").json()
    headers = {"x-api-key": "k", "anthropic-version": "2023-06-01"}
    anthropic = httpx2.get(f"{provider.url}/v1/models", headers=headers).json()
    assert [model["id"] for model in openai["data"]] == ["m1", "m2"]
    assert [model["id"] for model in anthropic["data"]] == ["m1", "m2"]
    assert [visit.path for visit in provider.visits] == ["/v1/models", "/v1/models"]
