"""What "Always …" offers: rules that would allow a request for good, and what is wrong with others.

Pure. The rules are made of the request as it is, not as it is shown. A rule is stored as plain
text and shown as it is, so where it would hold a secret nothing is offered, and one that holds a
secret, or the mask of one, is refused.
"""

from collections.abc import Callable
from dataclasses import dataclass

from crush_kernel.history.redaction import Redactor
from crush_kernel.permissions.policy import Policy
from crush_kernel.permissions.proposal import proposed_rules, uncovered
from crush_kernel.permissions.request import PermissionRequest

MAX_RULES = 20
MAX_RULE_CHARS = 2000

MASK = "⟨secret: "
"""How what stands for a secret begins."""


@dataclass(frozen=True, slots=True)
class RuleOffer:
    """Rules that a person may store, changed or not."""

    proposed: tuple[str, ...]
    problem: Callable[[tuple[str, ...]], str]
    """Says in a sentence why rules cannot be stored in answer, nothing if they can."""


def rule_offer(request: PermissionRequest, policy: Policy, redactor: Redactor) -> RuleOffer | None:
    """Return what can be offered for `request`, `None` if nothing can.

    Args:
        request: as it is, with what is secret in it.
        policy: the rules that hold; new ones only have to cover what these do not.
        redactor: knows secrets.
    """
    if policy.asks(request):
        # Whatever is allowed, this rule has it asked again.
        return None
    proposed = proposed_rules(request, policy)

    def problem(rules: tuple[str, ...]) -> str:
        return _unfit(rules, redactor) or uncovered(rules, request, policy)

    return None if problem(proposed) else RuleOffer(proposed, problem)


def rules_in(text: str) -> tuple[str, ...]:
    """Return the rules in `text`, one a line, each once."""
    lines = (line.strip() for line in text.splitlines())
    return tuple(dict.fromkeys(filter(None, lines)))


def _unfit(rules: tuple[str, ...], redactor: Redactor) -> str:
    """Return why `rules` cannot be stored, whatever they mean."""
    if not rules:
        return "There is no rule. Write one on each line, such as bash(pytest:*)."
    if len(rules) > MAX_RULES or any(len(rule) > MAX_RULE_CHARS for rule in rules):
        return f"That is too much: {MAX_RULES} rules of {MAX_RULE_CHARS:,} characters at most."
    if any(MASK in rule or redactor.redact(rule) != rule for rule in rules):
        return "A rule is kept as plain text, and this one holds a secret. Put * in its place."
    return ""
