"""The command line: `jupyter crush`, `crush-kernel` and `python -m crush_kernel` are one program.

May import everything. Each command is a module of its own with `run(arguments) -> exit code`,
imported only when it is asked for.
"""
