"""A reply that ends for a reason which nobody knows says so."""

import pytest

from crush_kernel.messages import Message, Text
from crush_kernel.providers.anthropic import AnthropicModel
from crush_kernel.providers.base import Model, ModelInfo, ModelRequest, Stop
from crush_kernel.providers.openai import OpenAIModel
from tests.fakes.provider.replies import Reply, Say
from tests.fakes.provider.server import FakeProvider

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("protocol", ["anthropic", "openai"])
@pytest.mark.parametrize(
    ("word", "unknown"),
    [
        pytest.param("moon_phase", "moon_phase", id="unknown"),
        pytest.param("x" * 500, "x" * 100, id="long"),
        pytest.param("", "", id="the usual one"),
    ],
)
async def test_the_word_of_an_unknown_reason_is_told(
    provider: FakeProvider, protocol: str, word: str, unknown: str
) -> None:
    provider.play(Reply((Say("hm"),), stop=word))
    info = ModelInfo(protocol, "m")
    model: Model = (
        AnthropicModel(info, api_key="k", base_url=provider.url)
        if protocol == "anthropic"
        else OpenAIModel(info, api_key="k", base_url=provider.openai_url)
    )
    request = ModelRequest("", (Message("user", (Text("go"),)),))
    async with model.stream(request) as events:
        last = [event async for event in events][-1]
    await model.aclose()
    assert last == Stop("end_turn", unknown)
