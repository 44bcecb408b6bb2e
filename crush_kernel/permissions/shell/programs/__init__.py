"""The programs that command lines name and what they do with their arguments, mostly data.

Pure; imports nothing but what passes between it and the reading of command lines.
"""

from crush_kernel.permissions.shell.programs.judging import judge

__all__ = ["judge"]
