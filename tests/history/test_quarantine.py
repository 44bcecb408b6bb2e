"""What a refusal is about, and the history without it."""

import pytest

from crush_kernel.errors import RequestRejected
from crush_kernel.history.quarantine import REFUSED_RESULT, blamed, without
from crush_kernel.messages import Media, Message, Part, Reasoning, Text, ToolCall, ToolResult
from tests.fakes.histories import reply, results, thinking, user

PNG = Media("image/png", "cG5n", "plot.png")
JPEG = Media("image/jpeg", "anBn", "photo.jpg")
PDF = Media("application/pdf", "cGRm", "paper.pdf")
HM, AHA = thinking("hm"), thinking("aha")
SHOW, READ = ToolCall("t1", "view", '{"a": 1}'), ToolCall("t2", "view", '{"a": 2}')
SHOWN, SHOWN_TOO = ToolResult("t1", "shown", media=(JPEG, PDF)), ToolResult("t2", "text")

HISTORY = (
    user(Text("look"), PNG),
    reply(HM, Text("a plot"), SHOW, READ),
    results(SHOWN, SHOWN_TOO),
    reply(AHA, Text("and a paper")),
    user(Text("now this"), PDF),
)

NOTHING: set[str] = set()

PAIRS = (
    "messages.2.content.0: unexpected `tool_use_id` found in `tool_result` blocks: t1. Each "
    "`tool_result` block must have a corresponding `tool_use` block in the previous message."
)
MODIFIED = (
    "messages.3.content.0: `thinking` or `redacted_thinking` blocks in the latest assistant "
    "message cannot be modified. These blocks must remain as they were in the original response."
)
MANY = (
    "messages.2.content.0.tool_result.content.1.image.source.base64.data: At least one of the "
    "image dimensions exceed max allowed size for many-image requests: 2000 pixels"
)
UNSUPPORTED = (
    "You uploaded an unsupported image. Please make sure your image has of one the following "
    "formats: ['png', 'jpeg', 'gif', 'webp']."
)


def refusal(words: str, *places: tuple[int, int], provider: str = "anthropic") -> RequestRejected:
    error = RequestRejected("It refused the request (400).", provider=provider, detail=words)
    error.places = places
    return error


def left_out(
    words: str, *places: tuple[int, int], history: tuple[Message, ...] = HISTORY
) -> set[str]:
    """Return the names of what is no longer sent after a refusal."""
    blame = blamed(refusal(words, *places), history)
    after = without(history, blame.keys) if blame else history
    return names(history) - names(after)


def names(history: tuple[Message, ...]) -> set[str]:
    return {name for message in history for part in message.parts for name in name_of(part)}


def name_of(part: Part) -> list[str]:
    match part:
        case Media(name=name):
            return [name]
        case Reasoning(text=text):
            return [text]
        case ToolCall(id=call_id, input=arguments):
            return [f"{call_id} {arguments}"]
        case ToolResult(content=content, media=media):
            return [content.splitlines()[0], *(file.name for file in media)]
        case _:
            return []


@pytest.mark.parametrize(
    ("words", "places", "gone"),
    [
        pytest.param("messages.0.content.1.image.source.base64: image exceeds 5 MB maximum",
                     [(0, 1)], {"plot.png"}, id="an image of a prompt"),
        pytest.param("messages.2.content.0.tool_result.content.1.image.source.base64.data: Image "
                     "format image/jpeg not supported", [(2, 0)], {"photo.jpg"},
                     id="an image of a result"),
        pytest.param("messages.4.content.1.pdf.source.base64.data: The PDF specified was not "
                     "valid.", [(4, 1)], {"paper.pdf"}, id="a document, wherever it is"),
        pytest.param("Could not process image", [], {"photo.jpg", "plot.png"},
                     id="some image, none of them new"),
        pytest.param("A maximum of 100 PDF pages may be provided.", [], {"paper.pdf"},
                     id="some document"),
        pytest.param(UNSUPPORTED, [], {"photo.jpg", "plot.png"}, id="OpenAI, some image"),
        pytest.param("Invalid 'messages[0].content[1].image_url.url'", [(0, 1)], {"plot.png"},
                     id="OpenAI, an image"),
        pytest.param("Invalid 'messages[4].content[1]': invalid base64 data.", [(4, 1)],
                     {"paper.pdf"}, id="nothing but a place with a file"),
        pytest.param(MANY, [(2, 0)], {"photo.jpg", "plot.png"}, id="each of many images"),
        pytest.param("messages.1.content.0: Invalid `signature` in `thinking` block", [(1, 0)],
                     {"hm", "aha"}, id="a signature"),
        pytest.param(MODIFIED, [(3, 0)], {"hm", "aha"}, id="changed thinking"),
        pytest.param("messages.1.content.0.type: Expected `thinking` or `redacted_thinking`, but "
                     "found `text`.", [(1, 1)], {"hm", "aha"}, id="thinking that is missing"),
        pytest.param("messages.3.content.0: When thinking is disabled, an `assistant` message in "
                     "the final position cannot contain `thinking`.", [(3, 0)], {"hm", "aha"},
                     id="thinking that is not wanted"),
        pytest.param("Invalid 'messages[1].tool_calls[0].function.arguments'", [(1, 2)],
                     {'t1 {"a": 1}'}, id="arguments"),
        pytest.param("invalid params, invalid function arguments json string, tool_call_id: t2 "
                     "(2013)", [], {'t2 {"a": 2}'}, id="arguments, by the id of the call"),
        pytest.param("messages.2.content.1.tool_result.content: Input should be a valid list",
                     [(2, 1)], {"text"}, id="a result"),
        pytest.param(PAIRS, [(2, 0)], NOTHING, id="how calls and results go together"),
        pytest.param("messages: `tool_use` ids must be unique", [], NOTHING, id="ids"),
        pytest.param("messages.0.content.0.text: Input should be a valid string", [(0, 0)], NOTHING,
                     id="a text"),
        pytest.param("max_tokens: 64000 > 32000, the maximum", [], NOTHING, id="a setting"),
        pytest.param("`max_tokens` must be greater than `thinking.budget_tokens`", [], NOTHING,
                     id="a setting about thinking"),
        pytest.param("messages.9.content.7: Could not be read", [(9, 7)], NOTHING, id="no place"),
        pytest.param("", [], NOTHING, id="nothing"),
    ],
)  # fmt: skip
def test_what_a_refusal_is_about_is_left_out(
    words: str, places: list[tuple[int, int]], gone: set[str]
) -> None:
    assert left_out(words, *places) == gone


def test_what_is_not_there_is_not_to_blame() -> None:
    for words in ("Invalid `signature` in `thinking` block", "Could not process image", "pdf"):
        assert blamed(refusal(words), (user(Text("hi")), reply(Text("hello")))) is None


def test_what_was_answered_before_is_not_suspected_first() -> None:
    history = (*HISTORY[:4], user(Text("now this"), replace_name(PNG, "new.png")))
    assert left_out("Could not process image", history=history) == {"new.png"}


def replace_name(media: Media, name: str) -> Media:
    return Media(media.media_type, f"{media.data}{name}", name)


def test_what_another_provider_answered_is_suspected_like_all_else() -> None:
    history = (user(PNG), reply(Text("a plot")), user(replace_name(JPEG, "new.jpg")))
    blame = blamed(refusal("Could not process image", provider="openai"), history)
    assert blame is not None
    assert names(without(history, blame.keys)) == set()


@pytest.mark.parametrize(
    ("part", "note"),
    [
        pytest.param(PNG, "[The image plot.png is left out: the provider refused it.]",
                     id="an image"),
        pytest.param(Media("application/pdf", "cGRm"),
                     "[The file is left out: the provider refused it.]", id="one without a name"),
    ],
)  # fmt: skip
def test_a_file_is_replaced_by_a_note(part: Media, note: str) -> None:
    history = (user(Text("look"), part), results(ToolResult("t", "shown", media=(JPEG, part))))
    blame = blamed(refusal("it", (0, 1)), history)
    assert blame is not None
    assert without(history, blame.keys) == (
        user(Text("look"), Text(note)),
        results(ToolResult("t", f"shown\n\n{note}", media=(JPEG,))),
    )


def test_a_result_is_replaced_by_a_note_and_a_call_keeps_its_name() -> None:
    blame = blamed(refusal("it", (2, 1)), HISTORY)
    assert blame is not None
    assert without(HISTORY, blame.keys)[2].parts[1] == ToolResult("t2", REFUSED_RESULT)


@pytest.mark.parametrize(
    ("words", "places", "notice"),
    [
        pytest.param("image", [(0, 1)],
                     "The provider refused the image plot.png, which is left out from now on.",
                     id="an image"),
        pytest.param("many-image", [], "The provider refused 2 images, which are left out from "
                     "now on.", id="images"),
        pytest.param("pdf", [],
                     "The provider refused the file paper.pdf, which is left out from now on.",
                     id="a document"),
        pytest.param("signature of thinking", [], "The provider refused the thinking in earlier "
                     "replies, which is left out from now on.", id="thinking"),
    ],
)  # fmt: skip
def test_the_user_is_told_in_one_sentence(
    words: str, places: list[tuple[int, int]], notice: str
) -> None:
    blame = blamed(refusal(words, *places), HISTORY)
    assert blame is not None
    assert blame.notice == notice


def test_a_history_without_refusals_is_given_back_as_it_is() -> None:
    assert without(HISTORY, frozenset()) is HISTORY
    assert all(map(lambda one, other: one is other, without(HISTORY, frozenset({("x",)})), HISTORY))
