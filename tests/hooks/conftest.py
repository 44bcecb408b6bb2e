"""A clean environment for hooks, and the proof that none of their processes is left."""

from tests.shell.conftest import environ

__all__ = ["environ"]
