"""Our kernel with the fake provider behind it, in a folder of its own."""

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.fakes.kernel import RunningKernel, running_kernel
from tests.fakes.provider.server import FakeProvider

MODEL = "claude-sonnet-4-6"


@contextmanager
def anthropic_kernel(
    provider: FakeProvider, *, cwd: Path | None = None
) -> Generator[RunningKernel]:
    """Start a kernel that asks `provider`, and needs no permission for commands."""
    env = {
        "ANTHROPIC_API_KEY": "key",
        "ANTHROPIC_BASE_URL": provider.url,
        "CRUSH_MODEL": f"anthropic/{MODEL}",
        "CRUSH_PERMISSION_MODE": "yolo",
        "PYTHONWARNINGS": "default",
    }
    with TemporaryDirectory() as folder:
        work = cwd or Path(folder, "work")
        work.mkdir(exist_ok=True)
        with running_kernel(cwd=work, home=Path(folder), env=env) as kernel:
            yield kernel
