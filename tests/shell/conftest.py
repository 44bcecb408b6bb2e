"""A clean environment for commands, and the proof that none of them is left."""

import os
import uuid
from collections.abc import Iterator

import pytest

from tests.shell.processes import running_with


@pytest.fixture
def environ() -> Iterator[dict[str, str]]:
    """Yield an environment for a shell; in the end nothing may run that inherited it."""
    token = uuid.uuid4().hex
    yield {"PATH": os.environ["PATH"], "HOME": os.environ["HOME"], "CRUSH_TEST": token}
    assert running_with(token) == []
