"""Kernels for the tests: one shared per module where a test leaves no trace, else its own."""

from collections.abc import Generator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.fakes.kernel import RunningKernel, running_kernel
from tests.fakes.offline import offline_script
from tests.fakes.provider.server import FakeProvider
from tests.kernel.desk import Desk


@pytest.fixture(scope="module")
def shared_kernel(tmp_path_factory: pytest.TempPathFactory) -> Generator[RunningKernel]:
    """A kernel with the offline provider, for tests that leave it as it was."""
    home, cwd = tmp_path_factory.mktemp("home"), tmp_path_factory.mktemp("cwd")
    with running_kernel(cwd=cwd, home=home, env=offline_script(home)) as kernel:
        yield kernel


@pytest.fixture
def kernel(tmp_path: Path) -> Generator[RunningKernel]:
    """A kernel of its own with the offline provider; it works in `tmp_path/cwd`."""
    home, cwd = tmp_path / "home", tmp_path / "cwd"
    home.mkdir()
    cwd.mkdir()
    with running_kernel(cwd=cwd, home=home, env=offline_script(home)) as running:
        yield running


@pytest.fixture
def desk(tmp_path: Path, provider: FakeProvider) -> Generator[Desk]:
    """A desk whose kernels, in the end, have logged no failure."""
    with ExitStack() as stack:
        yield Desk(tmp_path, provider, stack)
    for log in tmp_path.rglob("kernel.log"):
        assert "Traceback" not in log.read_text(encoding="utf-8")
