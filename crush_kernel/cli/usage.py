"""What is wrong with a command line before anything was done, and the exit codes of errors."""

from typing import Final

from crush_kernel.errors import CrushKernelError

FAILED: Final = 1
WRONG_USAGE: Final = 2


class UsageError(CrushKernelError):
    """The command cannot be carried out as it was given; its exit code is `WRONG_USAGE`."""


def exit_code_of(error: CrushKernelError) -> int:
    """Return what the process says of `error`."""
    return WRONG_USAGE if isinstance(error, UsageError) else FAILED
