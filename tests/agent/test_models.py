"""The models of sub-agents: which one is opened, and what of it is noted."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from crush_kernel.agent.models import Models
from crush_kernel.config.settings import read_settings
from crush_kernel.config.state import State
from crush_kernel.errors import CommandError
from crush_kernel.messages import Message, Text
from crush_kernel.providers.base import ModelRequest
from crush_kernel.providers.selection import Providers

pytestmark = pytest.mark.anyio


@asynccontextmanager
async def offline(folder: Path) -> AsyncGenerator[Models]:
    settings = read_settings({"HOME": str(folder), "CRUSH_MODEL": "offline/offline"})
    models = Models(Providers(settings, State(folder / "state.json")))
    yield models
    await models.aclose()


async def test_the_large_model_is_asked_over_its_own_connections_and_noted_by_nobody(
    tmp_path: Path,
) -> None:
    async with offline(tmp_path) as models:
        large = await models.in_use()
        async with (
            models.beside("large", large.info) as first,
            models.beside("large", large.info) as second,
        ):
            assert first is second
            assert first is not large
            request = ModelRequest("", (Message("user", (Text("hello"),)),))
            async with first.stream(request) as events:
                assert [event async for event in events]
        assert (await models.in_use()) is large


@pytest.mark.parametrize("name", ["small", "offline/offline"])
async def test_other_models_are_opened_for_the_block(tmp_path: Path, name: str) -> None:
    async with offline(tmp_path) as models:
        large = await models.in_use()
        async with models.beside(name, large.info) as model:
            assert model.info.label == "offline/offline"
            assert model is not large


async def test_a_model_that_is_not_there_is_said(tmp_path: Path) -> None:
    async with offline(tmp_path) as models:
        large = await models.in_use()
        with pytest.raises(CommandError, match="nowhere"):
            async with models.beside("nowhere/none", large.info):
                raise AssertionError
