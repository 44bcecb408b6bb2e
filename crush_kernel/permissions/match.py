"""What all patterns of rules share: how far one is met, and that one makes no sense. Pure."""

from enum import IntEnum

from crush_kernel.errors import ConfigError


class BadRule(ConfigError):
    """A rule that makes no sense; the message is one sentence."""


class Match(IntEnum):
    """Whether something is what a rule means to forbid."""

    NO = 0
    MAYBE = 1
    """What only the shell knows, what options may hide, or what is in a folder, can make it so."""
    YES = 2
