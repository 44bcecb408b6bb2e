"""The programs that command lines name and what they do with their arguments, mostly data.

Pure; imports nothing but what passes between it and the reading of command lines. A program that
only looks gets a line in `looking`, one that changes files in `changing`, one that runs what its
arguments say in `wrappers`, one that is dangerous in `dangers`; any other only its words for
people in `effects`. What no table can say is a function, which `judging` lists.
"""

from crush_kernel.permissions.shell.programs.judging import judge

__all__ = ["judge"]
