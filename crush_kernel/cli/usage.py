"""What is wrong with a command line before anything was done."""

from crush_kernel.errors import CrushKernelError


class UsageError(CrushKernelError):
    """The command cannot be carried out as it was given; its exit code is 2."""
