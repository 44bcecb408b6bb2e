"""The community's own checks of a kernel, as far as they fit a kernel of prose."""

import os
import tempfile
from pathlib import Path

import jupyter_kernel_test  # pyright: ignore[reportMissingTypeStubs] - it has none
import pytest

from tests.fakes.kernel import clean_environment, kernel_specs

pytestmark = pytest.mark.slow


class CrushKernelTests(jupyter_kernel_test.KernelTests):
    kernel_name = "crush"
    language_name = "markdown"
    file_extension = ".md"
    completion_samples = [{"text": "/he", "matches": {"/help"}}]  # noqa: RUF012 - read only
    complete_code_samples = ["hello"]  # noqa: RUF012
    incomplete_code_samples = ["go on \\"]  # noqa: RUF012
    code_inspect_sample = "bash"
    code_history_pattern = "he*"
    supported_history_operations = ("tail", "range", "search")
    code_generate_error = "/no-such-command"
    code_hello_world = "!echo hello, world"

    @classmethod
    def setUpClass(cls) -> None:
        folder = tempfile.TemporaryDirectory(prefix="crush-kernel-test-")
        cls.addClassCleanup(folder.cleanup)
        home = Path(folder.name)
        kernel_specs(home / "jupyter" / "kernels")
        cls._environ = dict(os.environ)
        os.environ.update(
            clean_environment(home),
            JUPYTER_PATH=str(home / "jupyter"),
            CRUSH_MODEL="offline/offline",
        )
        super().setUpClass()

    @classmethod
    def tearDownClass(cls) -> None:
        super().tearDownClass()
        os.environ.clear()
        os.environ.update(cls._environ)
