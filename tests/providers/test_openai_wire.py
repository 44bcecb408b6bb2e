"""What is sent to OpenAI-compatible servers is what the strictest of them takes."""

import json
import re
from typing import TypedDict, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crush_kernel.messages import (
    Media,
    Message,
    Part,
    Reasoning,
    Text,
    ToolCall,
    ToolResult,
    object_text,
    well_formed,
)
from crush_kernel.providers.base import ModelInfo, ModelRequest, ToolSpec
from crush_kernel.providers.openai_wire import (
    Dialect,
    RequestEncoder,
    adapted,
    dialect_of,
)

PLAIN = ModelInfo("openai", "plain")
SEEING = ModelInfo("openai", "seeing", accepts_images=True, accepts_documents=True)
PNG = Media("image/png", "iVBORw0KGgo=", name="plot.png")
PDF = Media("application/pdf", "JVBERi0=")
BEGINNING = "(The conversation begins here.)"


class Function(TypedDict):
    name: str
    arguments: str


class Call(TypedDict):
    id: str
    type: str
    function: Function


class Block(TypedDict, total=False):
    type: str
    text: str


class Said(TypedDict, total=False):
    role: str
    content: str | list[Block] | None
    tool_calls: list[Call]
    tool_call_id: str
    reasoning_content: str
    reasoning: str


def body(
    *messages: Message,
    system: str = "",
    tools: tuple[ToolSpec, ...] = (),
    max_output_tokens: int = 0,
    info: ModelInfo = PLAIN,
    dialect: Dialect | None = None,
) -> dict[str, object]:
    request = ModelRequest(system, messages, tools=tools, max_output_tokens=max_output_tokens)
    return json.loads(RequestEncoder(info).encode(request, dialect or Dialect()))


def wire(*messages: Message, info: ModelInfo = PLAIN, dialect: Dialect | None = None) -> list[Said]:
    return cast("list[Said]", body(*messages, info=info, dialect=dialect)["messages"])


def text_in(message: Said) -> str:
    content = message.get("content")
    assert isinstance(content, str)
    return content


def blocks_in(message: Said) -> list[Block]:
    content = message.get("content")
    assert isinstance(content, list)
    return content


def user(*parts: Part) -> Message:
    return Message("user", parts)


def reply(*parts: Part, provider: str = "openai", model: str = "plain") -> Message:
    return Message("assistant", parts, provider=provider, model=model)


def test_a_request_streams_and_asks_for_its_usage() -> None:
    sent = body(user(Text("hi")), system="Be brief.", max_output_tokens=100)
    assert sent == {
        "model": "plain",
        "stream": True,
        "stream_options": {"include_usage": True},
        "max_tokens": 100,
        "messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "hi"},
        ],
    }


def test_what_is_empty_is_not_sent() -> None:
    assert body(user(Text("hi")), dialect=Dialect(asks_usage=False)) == {
        "model": "plain",
        "stream": True,
        "messages": [{"role": "user", "content": "hi"}],
    }


def test_a_tool_is_a_function() -> None:
    tool = ToolSpec("ls", "List a folder.", {"type": "object", "properties": {}})
    assert body(user(Text("hi")), tools=(tool,))["tools"] == [
        {
            "type": "function",
            "function": {
                "name": "ls",
                "description": "List a folder.",
                "parameters": {"type": "object", "properties": {}},
            },
        }
    ]


def test_a_reply_with_calls_and_no_words_has_null_for_content() -> None:
    said = reply(ToolCall("c1", "ls", '{"path": "."}'))
    assert wire(user(Text("ls")), said, Message("tool", (ToolResult("c1", "a.py"),))) == [
        {"role": "user", "content": "ls"},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [
                {
                    "id": "c1",
                    "type": "function",
                    "function": {"name": "ls", "arguments": '{"path": "."}'},
                }
            ],
        },
        {"role": "tool", "tool_call_id": "c1", "content": "a.py"},
    ]


@pytest.mark.parametrize(
    "said",
    [
        pytest.param((), id="nothing"),
        pytest.param((Text(""),), id="an empty text"),
        pytest.param((Reasoning("hm"),), id="thinking alone"),
    ],
)
def test_a_reply_that_says_nothing_is_left_out(said: tuple[Part, ...]) -> None:
    assert wire(user(Text("hi")), reply(*said), user(Text("hello?"))) == [
        {"role": "user", "content": "hi"},
        {"role": "user", "content": "hello?"},
    ]


def arguments_sent(raw: str) -> str:
    (message,) = wire(reply(ToolCall("c1", "ls", raw)))
    (call,) = message.get("tool_calls", [])
    return call["function"]["arguments"]


@pytest.mark.parametrize(
    "raw",
    [
        pytest.param("", id="empty"),
        pytest.param('{"path": "src"', id="cut off"),
        pytest.param("[1]", id="a list"),
        pytest.param('{"a": NaN}', id="not JSON by the letter"),
        pytest.param("null", id="null"),
        pytest.param('{"a":' * 5000, id="nested without end"),
    ],
)
def test_arguments_are_always_a_json_object(raw: str) -> None:
    assert arguments_sent(raw) == "{}"


@given(raw=st.text())
def test_arguments_that_are_an_object_go_out_as_they_came(raw: str) -> None:
    assert arguments_sent(raw) == (object_text(raw) or "{}")


def test_an_error_result_says_that_it_is_one() -> None:
    results = (
        ToolResult("c1", "no such file", is_error=True),
        ToolResult("c2", "Error: again", is_error=True),
        ToolResult("c3", ""),
    )
    assert [text_in(message) for message in wire(Message("tool", results))] == [
        "Error: no such file",
        "Error: again",
        "(no output)",
    ]


def test_images_and_documents_are_sent_to_a_model_that_sees() -> None:
    assert wire(user(Text("look"), PNG, PDF), info=SEEING) == [
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "look"},
                {
                    "type": "image_url",
                    "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="},
                },
                {
                    "type": "file",
                    "file": {
                        "filename": "document.pdf",
                        "file_data": "data:application/pdf;base64,JVBERi0=",
                    },
                },
            ],
        }
    ]


@pytest.mark.parametrize(
    ("media", "info"),
    [
        pytest.param(PNG, PLAIN, id="an image for a blind model"),
        pytest.param(PDF, PLAIN, id="a document for a blind model"),
        pytest.param(Media("image/tiff", "SUkqAA=="), SEEING, id="an image that nobody takes"),
    ],
)
def test_a_file_that_the_model_cannot_read_becomes_words(media: Media, info: ModelInfo) -> None:
    (message,) = wire(user(media), info=info)
    assert media.media_type in text_in(message)
    assert media.data not in text_in(message)


def test_files_of_results_go_into_a_message_after_all_results() -> None:
    calls = reply(ToolCall("c1", "view", "{}"), ToolCall("c2", "ls", "{}"))
    results = Message("tool", (ToolResult("c1", "An image.", media=(PNG,)), ToolResult("c2", "a")))
    sent = wire(calls, results, user(Text("and?")), info=SEEING)
    roles = [message.get("role") for message in sent]
    assert roles == ["assistant", "tool", "tool", "user", "user"]
    assert all(text_in(message) for message in sent[1:3])
    label, image = blocks_in(sent[3])
    assert "c1" in label.get("text", "")
    assert image.get("type") == "image_url"


def test_results_in_several_messages_stay_together_before_their_files() -> None:
    calls = reply(ToolCall("c1", "view", "{}"), ToolCall("c2", "ls", "{}"))
    first = Message("tool", (ToolResult("c1", "An image.", media=(PNG,)),))
    second = Message("tool", (ToolResult("c2", "a"),))
    roles = [message.get("role") for message in wire(calls, first, second, info=SEEING)]
    assert roles == ["assistant", "tool", "tool", "user"]


def test_files_of_results_become_words_for_a_blind_model() -> None:
    result = Message("tool", (ToolResult("c1", "An image.", media=(PNG,)),))
    (message,) = wire(result)
    assert message.get("role") == "tool"
    assert "plot.png" in text_in(message)


@pytest.mark.parametrize(
    ("media", "reason"),
    [
        pytest.param(Media("image/png", "iVBORw0KGgo%"), "damaged", id="damaged"),
        pytest.param(
            Media("image/png", "iVBORw0KGgoA" + "A" * 28_000_000), "too large", id="large"
        ),
        pytest.param(Media("text/csv", "YTti"), "cannot read", id="of no known type"),
    ],
)
def test_the_words_for_a_file_say_why_it_is_left_out(media: Media, reason: str) -> None:
    assert reason in text_in(wire(user(media), info=SEEING)[0])
    result = Message("tool", (ToolResult("c1", "A file.", media=(media,)),))
    (message,) = wire(result, info=SEEING)
    assert text_in(message).startswith("A file.")
    assert reason in text_in(message)


def test_all_files_of_the_results_come_in_one_message_each_with_whose_it_is() -> None:
    calls = reply(*(ToolCall(f"c{number}", "view", "{}") for number in (1, 2)))
    results = tuple(ToolResult(f"c{number}", "Seen.", media=(PNG, PDF)) for number in (1, 2))
    *_, files = wire(calls, Message("tool", results), info=SEEING)
    assert files.get("role") == "user"
    kinds = [block.get("type") for block in blocks_in(files)]
    assert kinds == ["text", "image_url", "text", "file"] * 2
    leads = [block.get("text", "") for block in blocks_in(files)[::2]]
    assert [[c for c in ("c1", "c2") if c in lead] for lead in leads] == [
        ["c1"], ["c1"], ["c2"], ["c2"],
    ]  # fmt: skip


def test_where_the_user_may_not_follow_results_a_reply_leads_over_to_the_files() -> None:
    calls = reply(ToolCall("c1", "view", "{}"))
    results = Message("tool", (ToolResult("c1", "Seen.", media=(PNG,)),))
    sent = wire(calls, results, info=SEEING, dialect=Dialect(answers_results=True))
    assert [message.get("role") for message in sent] == ["assistant", "tool", "assistant", "user"]
    assert "nterrupted" not in text_in(sent[2])


THOUGHT = Reasoning("I should list.", {"field": "reasoning_content"})


@pytest.mark.parametrize(
    ("said", "replayed"),
    [
        pytest.param(reply(THOUGHT, Text("a")), "I should list.", id="its own"),
        pytest.param(
            reply(THOUGHT, ToolCall("c", "ls", "{}")), "I should list.", id="its own, with a call"
        ),
        pytest.param(reply(THOUGHT, Text("a"), model="other"), None, id="another model's"),
        pytest.param(reply(THOUGHT, Text("a"), provider="x"), None, id="another provider's"),
        pytest.param(reply(Reasoning("sealed", {"signature": "s"}), Text("a")), None, id="foreign"),
        pytest.param(reply(ToolCall("c", "ls", "{}")), "", id="a call without any"),
    ],
)
def test_thinking_goes_back_to_the_model_that_wants_its_own(
    said: Message, replayed: str | None
) -> None:
    (message,) = wire(said, dialect=Dialect(replays_reasoning=True))
    assert message.get("reasoning_content") == replayed
    (message,) = wire(said)
    assert "reasoning_content" not in message


def test_thinking_goes_back_under_the_name_that_it_came_with() -> None:
    said = reply(Reasoning("hm", {"field": "reasoning"}), Text("a"))
    (message,) = wire(said, dialect=Dialect(replays_reasoning=True))
    assert message.get("reasoning") == "hm"


any_text = st.text(st.characters(exclude_categories=()))


@given(text=any_text, system=any_text)
def test_every_text_becomes_valid_utf8_json(text: str, system: str) -> None:
    request = ModelRequest(system=system, messages=(user(Text(text)), reply(Text(text))))
    document = json.loads(RequestEncoder(PLAIN).encode(request, Dialect()).decode("utf-8"))
    said = [message["content"] for message in document["messages"] if message["role"] != "system"]
    assert said == ([well_formed(text)] * 2 if text else [BEGINNING])


def test_a_message_that_was_sent_is_not_encoded_again() -> None:
    encoder = RequestEncoder(PLAIN)
    first, second = user(Text("one")), reply(Text("two"))
    before = encoder.encode(ModelRequest("", (first,)), Dialect())
    both = encoder.encode(ModelRequest("", (first, second)), Dialect())
    # The same parts in a new message, as repair makes them, count as the same.
    again = encoder.encode(ModelRequest("", (Message("user", first.parts), second)), Dialect())
    assert (
        both == again == RequestEncoder(PLAIN).encode(ModelRequest("", (first, second)), Dialect())
    )
    assert both.startswith(before[:-2])


def test_what_was_encoded_for_another_dialect_is_not_sent_again() -> None:
    encoder = RequestEncoder(PLAIN)
    request = ModelRequest("", (reply(THOUGHT, Text("a")),))
    plain = encoder.encode(request, Dialect())
    assert b"I should list." in encoder.encode(request, Dialect(replays_reasoning=True))
    assert encoder.encode(request, Dialect()) == plain


def test_equal_looking_parts_are_told_apart() -> None:
    encoder = RequestEncoder(PLAIN)
    for number in range(50):
        request = ModelRequest("", (user(Text(f"number {number}")),))
        assert f"number {number}".encode() in encoder.encode(request, Dialect())


def test_the_output_limit_has_the_name_that_the_provider_wants() -> None:
    sent = body(user(Text("hi")), max_output_tokens=5, dialect=dialect_of("openai"))
    assert sent["max_completion_tokens"] == 5
    assert "max_tokens" not in sent


OLD = Dialect()
NEW = Dialect(limit_field="max_completion_tokens")


@pytest.mark.parametrize(
    ("dialect", "complaint", "better"),
    [
        pytest.param(
            OLD,
            "Unsupported parameter: 'max_tokens' is not supported with this model. "
            "Use 'max_completion_tokens' instead.",
            NEW,
            id="the new name is wanted",
        ),
        pytest.param(
            NEW, "Unrecognized request argument: max_completion_tokens", OLD, id="the old one is"
        ),
        pytest.param(NEW, '{"detail": "extra inputs: max_completion_tokens"}', OLD, id="FastAPI"),
        pytest.param(
            OLD,
            "Unknown parameter: 'stream_options'.",
            Dialect(asks_usage=False),
            id="usage cannot be asked for",
        ),
        pytest.param(
            OLD,
            "The `reasoning_content` in the thinking mode must be passed back to the API.",
            Dialect(replays_reasoning=True),
            id="thinking is wanted back",
        ),
        pytest.param(
            Dialect(replays_reasoning=True),
            "property 'reasoning_content' is unsupported",
            OLD,
            id="thinking is not wanted back",
        ),
        pytest.param(
            OLD,
            "Tool call id was call_1 but must be a-z, A-Z, 0-9, with a length of 9.",
            Dialect(id_length=9),
            id="ids are wanted in one form",
        ),
        pytest.param(
            OLD,
            "Tool call IDs should be alphanumeric strings with length 9!",
            Dialect(id_length=9),
            id="...in the words of a chat template",
        ),
        pytest.param(
            Dialect(id_length=9), "tool call id: must have a length of 9", None, id="...heeded"
        ),
        pytest.param(
            OLD,
            "Unexpected role 'user' after role 'tool'",
            Dialect(answers_results=True),
            id="a reply is wanted after results",
        ),
        pytest.param(
            OLD,
            "Invalid 'messages[1].tool_calls[0].id': string too long. Expected a string with "
            "maximum length 40, but instead got a string with length 90.",
            None,
            id="an id that is too long",
        ),
        pytest.param(OLD, "max_tokens is too large: 200000", None, id="a limit that is too high"),
        pytest.param(NEW, "'max_tokens' is not supported", None, id="what was not sent"),
        pytest.param(
            Dialect(asks_usage=False), "stream_options is unknown", None, id="heeded before"
        ),
        pytest.param(OLD, "This model's maximum context length is 8192 tokens", None, id="other"),
        pytest.param(OLD, "", None, id="nothing said"),
    ],
)
def test_a_refusal_that_names_a_parameter_teaches(
    dialect: Dialect, complaint: str, better: Dialect | None
) -> None:
    assert adapted(dialect, complaint) == better


def ids_sent(*call_ids: str, dialect: Dialect) -> tuple[list[str], list[str]]:
    """Return the ids of calls and of their results as they are sent."""
    calls = reply(*(ToolCall(call_id, "ls", "{}") for call_id in call_ids))
    results = Message("tool", tuple(ToolResult(call_id, "x") for call_id in call_ids))
    asked, *answered = wire(calls, results, dialect=dialect)
    called = [call["id"] for call in asked.get("tool_calls", [])]
    return called, [str(message.get("tool_call_id")) for message in answered]


@pytest.mark.parametrize(
    ("call_id", "sent"),
    [
        pytest.param("D681PevKs", "D681PevKs", id="one of its own"),
        pytest.param("toolu_01AbCdEf", None, id="another provider's"),
        pytest.param("call_1", None, id="a short one"),
        pytest.param("", None, id="none"),
    ],
)
def test_ids_fit_a_server_that_wants_them_in_one_form(call_id: str, sent: str | None) -> None:
    called, answered = ids_sent(call_id, dialect=dialect_of("mistral"))
    assert called == answered
    assert called == [sent] or (sent is None and re.fullmatch("[a-zA-Z0-9]{9}", called[0]))
    assert ids_sent(call_id, dialect=dialect_of("mistral")) == (called, answered)


@given(st.lists(st.text("ab1", max_size=9) | st.text(max_size=40), unique=True, max_size=30))
def test_ids_that_are_made_to_fit_stay_different(call_ids: list[str]) -> None:
    for length in (2, 9):
        called, answered = ids_sent(*call_ids, dialect=Dialect(id_length=length))
        assert called == answered
        assert len(set(called)) == len(call_ids)


def test_a_reply_stands_between_results_and_a_prompt_where_one_has_to() -> None:
    history = (
        user(Text("ls")),
        reply(ToolCall("c1", "ls", "{}")),
        Message("tool", (ToolResult("c1", "a.py"),)),
        user(Text("and now?")),
    )
    roles = [message.get("role") for message in wire(*history)]
    assert roles == ["user", "assistant", "tool", "user"]
    roles = [message.get("role") for message in wire(*history, dialect=dialect_of("mistral"))]
    assert roles == ["user", "assistant", "tool", "assistant", "user"]
    roles = [message.get("role") for message in wire(*history[:3], dialect=dialect_of("mistral"))]
    assert roles == ["user", "assistant", "tool"]
