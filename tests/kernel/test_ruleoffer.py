"""What can be allowed for good: nothing that holds a secret, nothing that another rule forbids."""

from pathlib import Path

import pytest

from crush_kernel.history.redaction import Redactor
from crush_kernel.kernel.redactedevent import redacted_request
from crush_kernel.kernel.ruleoffer import MAX_RULES, rule_offer, rules_in
from crush_kernel.permissions.policy import Policy, StandingRule
from crush_kernel.permissions.request import CommandPart, PermissionRequest
from crush_kernel.permissions.rule import parse_rule

REDACTOR = Redactor({"API_TOKEN": "tr0ub4dor-and-3-horses"})
KEY = "ghp_" + "a1B2" * 9


def command(*argv: str, dangers: tuple[str, ...] = ()) -> PermissionRequest:
    text = " ".join(argv)
    part = CommandPart(text, argv, "runs it", rule_words=1)
    return PermissionRequest(
        "c", "bash", "execute", "run", command=text, cwd=Path("/p"), parts=(part,), dangers=dangers
    )


def policy(*rules: str) -> Policy:
    return Policy(tuple(StandingRule("ask", parse_rule(rule)) for rule in rules))


def test_what_is_proposed_can_be_kept() -> None:
    offer = rule_offer(command("pytest", "-q"), Policy(), REDACTOR)
    assert offer is not None
    assert offer.proposed
    assert offer.problem(offer.proposed) == ""


@pytest.mark.parametrize(
    "secret",
    [pytest.param(KEY, id="by its form"), pytest.param("tr0ub4dor-and-3-horses", id="known")],
)
@pytest.mark.parametrize("words", [("deploy", "--to={}"), ("./{}", "now")])
def test_no_rule_that_is_offered_holds_a_secret_or_its_mask(
    secret: str, words: tuple[str, ...]
) -> None:
    request = command(*(word.format(secret) for word in words))
    offer = rule_offer(request, Policy(), REDACTOR)
    proposed = () if offer is None else offer.proposed
    assert not any(secret in rule or "⟨secret" in rule for rule in proposed)


def test_a_rule_with_a_secret_or_a_mask_is_not_kept() -> None:
    request = command("deploy", f"--to={KEY}")
    offer = rule_offer(request, Policy(), REDACTOR)
    assert offer is not None
    masked = redacted_request(request, REDACTOR).command
    for text in (f"bash({request.command})", f"bash({masked})"):
        assert "holds a secret" in offer.problem((text,))


def test_what_a_rule_has_asked_cannot_be_allowed_for_good() -> None:
    assert rule_offer(command("pytest"), policy("bash(pytest:*)"), REDACTOR) is None
    assert rule_offer(command("pytest"), policy("bash(make:*)"), REDACTOR) is not None


def test_what_could_not_be_read_cannot_be_allowed_for_good() -> None:
    request = PermissionRequest("c", "bash", "execute", "run", command="if [", cwd=Path("/p"))
    assert rule_offer(request, Policy(), REDACTOR) is None


@pytest.mark.parametrize(
    ("rules", "says"),
    [
        pytest.param((), "There is no rule", id="none"),
        pytest.param(("bash(",), "no rule", id="what is no rule"),
        pytest.param(("bash(ls:*)",), "do not allow", id="something else"),
        pytest.param(("bash(pytest:*)",) * (MAX_RULES + 1), "too much", id="too many"),
        pytest.param(("bash(pytest " + "x" * 3000 + ")",), "too much", id="too long"),
    ],
)
def test_what_cannot_be_kept_is_said(rules: tuple[str, ...], says: str) -> None:
    offer = rule_offer(command("pytest", "-q"), Policy(), REDACTOR)
    assert offer is not None
    assert says in offer.problem(rules)


def test_rules_are_written_one_a_line() -> None:
    assert rules_in(" bash(a b) \n\nview\nbash(a b)\n") == ("bash(a b)", "view")
