"""One kernel for the tests of a module, each of which opens a page with other cells."""

from collections.abc import Generator
from contextlib import ExitStack

import pytest

from tests.fakes.kernel import RunningKernel
from tests.fakes.provider.server import FakeProvider
from tests.kernel.desk import Desk


@pytest.fixture(scope="module")
def office(
    tmp_path_factory: pytest.TempPathFactory, provider_server: FakeProvider
) -> Generator[tuple[Desk, RunningKernel]]:
    with ExitStack() as stack:
        desk = Desk(tmp_path_factory.mktemp("commands"), provider_server, stack)
        yield desk, desk.start()
