"""The fixture `provider`: one server for all tests, forgetful between them."""

from collections.abc import Iterator

import pytest

from tests.fakes.provider.server import FakeProvider, serving


@pytest.fixture(scope="session")
def provider_server() -> Iterator[FakeProvider]:
    with serving() as provider:
        yield provider


@pytest.fixture
def provider(provider_server: FakeProvider) -> Iterator[FakeProvider]:
    """A strict provider with an empty script."""
    provider_server.reset()
    yield provider_server
    provider_server.reset()
