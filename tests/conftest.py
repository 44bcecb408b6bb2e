"""Fixtures that any test may use."""

import pytest

from tests.fakes.provider.fixtures import provider, provider_server

__all__ = ["anyio_backend", "provider", "provider_server"]


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"
