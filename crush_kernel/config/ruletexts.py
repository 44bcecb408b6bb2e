"""Rules as people have written them, before anybody knows what they mean. Pure."""

from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal, get_args

from crush_kernel.config.configfiles import Scope

Verdict = Literal["allow", "ask", "deny"]
VERDICTS: Final[tuple[Verdict, ...]] = get_args(Verdict)

RuleScope = Literal["project", "everywhere"]
"""Where a stored rule holds."""
SCOPES: Final[tuple[RuleScope, ...]] = get_args(RuleScope)


@dataclass(frozen=True, slots=True)
class StoredRule:
    """A rule that a person has stored."""

    verdict: Verdict
    text: str
    scope: RuleScope


@dataclass(frozen=True, slots=True)
class WrittenRule:
    """A rule in a configuration file."""

    verdict: Verdict
    text: str
    path: Path
    scope: Scope
    """Whose file it is."""
