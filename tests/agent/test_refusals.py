"""A part of the conversation that the provider refuses is left out, and the turn goes on."""

import base64
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any, cast

import anyio
import pytest

from crush_kernel.agent.agent import Agent, Watcher
from crush_kernel.agent.events import Event, Notice, TurnFinished
from crush_kernel.errors import RequestRejected
from crush_kernel.history.conversation import CellRun
from crush_kernel.messages import Media, Message, Part, Reasoning, Text, text_of
from crush_kernel.permissions.gate import Answer, Gate
from crush_kernel.permissions.request import PermissionRequest
from crush_kernel.prompt.system import PromptPart, SystemPrompt
from crush_kernel.providers.anthropic import AnthropicModel
from crush_kernel.providers.base import Model, ModelInfo
from crush_kernel.providers.openai import OpenAIModel
from crush_kernel.tools.base import AnyTool, ToolContext, ToolOutput
from tests.fakes.provider.anthropic_api import AnthropicDialect
from tests.fakes.provider.replies import Answer as Played
from tests.fakes.provider.replies import HttpReply, Reply, Say, Think, call, say
from tests.fakes.provider.server import FakeProvider, Received
from tests.fakes.tools import EchoArguments, echo, tool

pytestmark = pytest.mark.anyio

PROTOCOLS = ["anthropic", "openai"]
POISON = base64.b64encode(b"\x89PNG\r\n\x1a\n but no picture").decode()
GOOD = base64.b64encode(b"\x89PNG\r\n\x1a\n a picture").decode()
BAD_PDF = base64.b64encode(b"%PDF-1.4 but no document").decode()

BAD_IMAGE = Media("image/png", POISON, "bad.png")
IMAGE = Media("image/png", GOOD, "good.png")
DOCUMENT = Media("application/pdf", BAD_PDF, "bad.pdf")


class Nobody:
    async def ask(self, request: PermissionRequest) -> Answer:
        raise AssertionError(request)


@dataclass
class Talk:
    """An agent that talks to the strict provider."""

    agent: Agent
    model: Model
    provider: FakeProvider
    events: list[Event] = field(default_factory=list[Event])

    async def say(self, *parts: Part, cell_id: str = "") -> None:
        with anyio.fail_after(10):
            self.agent.conversation.begin(CellRun(cell_id))
            await self.agent.prompt(
                Message("user", parts),
                model=self.model,
                watcher=Watcher(self.events.append, Nobody()),
            )

    @property
    def notices(self) -> list[str]:
        return [event.text for event in self.events if isinstance(event, Notice)]

    @property
    def refusals(self) -> list[bool]:
        """Whether each request was refused, oldest first."""
        return [received.refusal != "" for received in self.provider.requests]

    @property
    def last_body(self) -> str:
        return self.provider.requests[-1].raw.decode()

    @property
    def last_words(self) -> str:
        return text_of(self.agent.conversation.messages[-1])


@asynccontextmanager
async def talk(provider: FakeProvider, protocol: str, *tools: AnyTool) -> AsyncGenerator[Talk]:
    info = ModelInfo(protocol, "m", accepts_images=True, accepts_documents=True)

    async def system_prompt() -> SystemPrompt:
        return SystemPrompt((PromptPart("instructions", "be good"),))

    model: Model
    if protocol == "anthropic":
        model = AnthropicModel(info, api_key="k-123456", base_url=provider.url)
    else:
        model = OpenAIModel(info, api_key="k-123456", base_url=provider.openai_url)
    agent = Agent(tools=tools or (echo(),), gate=Gate(), system_prompt=system_prompt)
    try:
        yield Talk(agent, model, provider)
    finally:
        await model.aclose()


def showing(media: Media) -> AnyTool:
    """Return a tool that shows a file."""

    async def run(_: EchoArguments, __: ToolContext) -> ToolOutput:
        return ToolOutput("Here it is.", media=(media,))

    return tool("show", run)


@dataclass
class Refuser:
    """A script that refuses requests with `poison` in them, as the protocol does."""

    poison: str
    words: str
    then: list[Played]
    names_place: bool = True

    def __call__(self, received: Received) -> Played:
        place = _place(received.body, self.poison)
        if not place:
            return self.then.pop(0)
        received.refusal = self.words
        message = f"{place}: {self.words}" if self.names_place else self.words
        return HttpReply(400, {"error": {"type": "invalid_request_error", "message": message}})


def _place(body: object, poison: str) -> str:
    """Return where `poison` stands in a request, as providers write it."""
    messages = cast("dict[str, Any]", body)["messages"]
    for index, message in enumerate(cast("list[dict[str, Any]]", messages)):
        content = message.get("content")
        blocks = cast("list[Any]", content) if isinstance(content, list) else []
        for number, block in enumerate(blocks):
            if poison in str(block):
                return f"messages.{index}.content.{number}"
    return ""


FILES = [
    pytest.param(BAD_IMAGE, "image.source.base64.data: Could not process image", id="image"),
    pytest.param(DOCUMENT, "pdf.source.base64.data: The PDF specified was not valid.", id="PDF"),
]


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize(("media", "words"), FILES)
async def test_a_bad_file_in_a_prompt_is_left_out_at_once_and_for_good(
    provider: FakeProvider, protocol: str, media: Media, words: str
) -> None:
    provider.play(Refuser(media.data, words, [say("I see."), say("Still here.")]))
    async with talk(provider, protocol) as turn:
        await turn.say(Text("look"), IMAGE, media)
        assert turn.last_words == "I see."
        assert turn.refusals == [True, False]
        assert media.name in turn.last_body
        assert GOOD in turn.last_body
        kind = "image" if media is BAD_IMAGE else "file"
        assert turn.notices == [
            f"The provider refused the {kind} {media.name}, which is left out from now on."
        ]
        await turn.say(Text("and now?"))
        assert turn.refusals == [True, False, False]
        assert len(turn.notices) == 1
        assert media in turn.agent.conversation.context[0].parts


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize(("media", "words"), FILES)
async def test_a_bad_file_in_a_result_is_left_out_and_the_turn_goes_on(
    provider: FakeProvider, protocol: str, media: Media, words: str
) -> None:
    then: list[Played] = [call("show", {"text": "x"}), say("It is broken.")]
    provider.play(Refuser(media.data, words, then))
    async with talk(provider, protocol, showing(media)) as turn:
        await turn.say(Text("look"), IMAGE)
        assert turn.last_words == "It is broken."
        assert turn.refusals == [False, True, False]
        assert "Here it is." in turn.last_body
        assert media.name in turn.last_body
        assert GOOD in turn.last_body


@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_of_a_bad_image_that_is_not_named_the_new_ones_are_suspected(
    provider: FakeProvider, protocol: str
) -> None:
    then: list[Played] = [say("A picture."), say("I see nothing.")]
    provider.play(Refuser(POISON, "Could not process image", then, names_place=False))
    async with talk(provider, protocol) as turn:
        await turn.say(Text("look"), IMAGE)
        await turn.say(Text("and here"), BAD_IMAGE)
        assert turn.last_words == "I see nothing."
        assert turn.refusals == [False, True, False]
        assert GOOD in turn.last_body


async def test_thinking_whose_signature_no_longer_holds_is_left_out(
    provider: FakeProvider,
) -> None:
    provider.play(Reply((Think("Hm."), Say("Hello."))), say("Hello again."), say("And again."))
    async with talk(provider, "anthropic") as turn:
        await turn.say(Text("hi"))
        provider.anthropic = AnthropicDialect()
        await turn.say(Text("hi"))
        assert turn.last_words == "Hello again."
        assert turn.refusals == [False, True, False]
        assert "signature" not in turn.last_body
        assert "Hello." in turn.last_body
        assert turn.notices == [
            "The provider refused the thinking in earlier replies, which is left out from now on."
        ]
        await turn.say(Text("hi"))
        assert turn.refusals == [False, True, False, False]


async def test_thinking_that_was_changed_is_left_out(provider: FakeProvider) -> None:
    thoughts = (Think("First."), Think("Second."))
    provider.play(Reply((*thoughts, Say("Hello."))), say("Hello again."))
    async with talk(provider, "anthropic") as turn:
        await turn.say(Text("hi"), cell_id="a")
        conversation = turn.agent.conversation
        kept = conversation.turns["a"]
        prompt, reply = kept.messages
        changed = replace(reply, parts=reply.parts[1:])
        conversation.place("a", replace(kept, messages=(prompt, changed)))
        await turn.say(Text("hi"), cell_id="b")
        assert turn.last_words == "Hello again."
        assert turn.refusals == [False, True, False]
        assert isinstance(conversation.context[1].parts[0], Reasoning)


async def test_new_thinking_is_sent_back_after_old_was_left_out(provider: FakeProvider) -> None:
    again = Reply((Think("Hm again."), *call("echo", {"text": "x"}).blocks))
    provider.play(Reply((Think("Hm."), Say("Hello."))), again, say("Done."))
    async with talk(provider, "anthropic") as turn:
        await turn.say(Text("hi"))
        provider.anthropic = AnthropicDialect()
        await turn.say(Text("hi"))
        assert turn.last_words == "Done."
        assert '"thinking":"Hm again."' in turn.last_body
        assert '"thinking":"Hm."' not in turn.last_body


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize(
    "words",
    [
        pytest.param("temperature: must be at most 1", id="a setting"),
        pytest.param("messages.0.content.0.text: Input should be a string", id="the prompt"),
        pytest.param("messages.0.content.0.image: Could not process image", id="no such part"),
        pytest.param("messages: `tool_use` ids must be unique", id="how parts go together"),
    ],
)
async def test_a_refusal_of_something_else_is_told_as_usual(
    provider: FakeProvider, protocol: str, words: str
) -> None:
    provider.play(HttpReply(400, {"error": {"type": "invalid_request_error", "message": words}}))
    async with talk(provider, protocol) as turn:
        with pytest.raises(RequestRejected):
            await turn.say(Text("hi"))
        assert len(provider.requests) == 1
        assert turn.notices == []


@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_a_second_refusal_is_told_as_usual(provider: FakeProvider, protocol: str) -> None:
    refusal = HttpReply(400, {"error": {"message": "Could not process image"}})
    provider.play(refusal, refusal, say("Hello."))
    async with talk(provider, protocol) as turn:
        with pytest.raises(RequestRejected, match="Could not process image"):
            await turn.say(Text("hi"), BAD_IMAGE)
        assert len(provider.requests) == 2
        finished = turn.events[-1]
        assert isinstance(finished, TurnFinished)
        assert (finished.end, finished.retries) == ("error", 1)
        await turn.say(Text("hi"))
        assert turn.last_words == "Hello."
