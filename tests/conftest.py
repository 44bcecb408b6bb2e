"""Fixtures that any test may use."""

import hypothesis
import pytest

from tests.fakes.provider.fixtures import provider, provider_server

__all__ = ["anyio_backend", "provider", "provider_server"]

# How long one example takes says more about the machine than about the code.
hypothesis.settings.register_profile("crush", deadline=None)
hypothesis.settings.load_profile("crush")


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"
