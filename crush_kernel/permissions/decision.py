"""What is allowed, what is asked, what is refused: a pure function of values.

A tool describes what it is about to do as a `PermissionRequest`; `decide` answers from the
user's rules, the mode, what hooks said of the call, and what was granted in this session. Grants
live in memory only: they are never read from a notebook or a project. A sub-agent may have bounds
of its own, which no grant and no mode widens.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, TypeAlias

from crush_kernel.config.settings import PermissionMode
from crush_kernel.permissions.policy import Policy
from crush_kernel.permissions.request import Grant, PermissionRequest

By = Literal["built-in", "rule", "mode", "hook", "bounds", "grant", "person", "nobody"]
"""Who decided. `nobody`: a person would have had to, and none was there."""


@dataclass(frozen=True, slots=True)
class Allow:
    """Go ahead, by virtue of `rule`."""

    rule: str
    by: By = "built-in"
    kept: tuple[str, ...] = ()
    """The rules that are stored with it."""
    kept_scope: str = ""
    """Where those hold: `project` or `everywhere`."""
    kind: Literal["allow"] = "allow"


@dataclass(frozen=True, slots=True)
class Ask:
    """A person has to say."""

    rule: str = ""
    """What insists on it, if anything does."""
    kind: Literal["ask"] = "ask"


@dataclass(frozen=True, slots=True)
class Deny:
    """Do not, for `reason`, which the model reads."""

    reason: str
    rule: str
    by: By = "built-in"
    kind: Literal["deny"] = "deny"


Decision = Allow | Ask | Deny

Bounds: TypeAlias = Callable[[PermissionRequest], Allow | Deny | None]
"""What somebody may do without a question, and never; `None` leaves it to the rules."""

NO_POLICY = Policy()


def no_bounds(_: PermissionRequest) -> Allow | Deny | None:
    """Leave every request to the rules."""
    return None


def decide(
    request: PermissionRequest,
    *,
    mode: PermissionMode,
    grants: frozenset[Grant],
    policy: Policy = NO_POLICY,
    hook: Allow | Ask | Deny | None = None,
    bound: Allow | Deny | None = None,
) -> Decision:
    """Return what the rules say to `request`; the first that speaks wins.

    In this order: what is refused (rules, bounds, plan mode, hooks), what has to be asked (rules,
    hooks), what passes (mode, hooks, built-in, rules, grants), the question. What is dangerous
    passes by a rule that names it and by a grant of it, nothing else: a person has to say, in
    every mode.

    Args:
        request: what is wanted.
        mode: of the session. What it denies nobody allows.
        grants: what the user has allowed for the session.
        policy: the rules that the user, and to tighten them the project, has written.
        hook: what hooks said of this very call.
        bound: what the bounds of who asks say. A refusal goes before all that allows, an
            allowance only spares the question.

    Source: design §§2, 5; Crush, permissions, decision order.
    """
    return (
        _refused(request, mode, policy, hook=hook, bound=bound)
        or _asked(request, grants, policy, hook=hook)
        or _passed(request, mode, grants, policy, hook=hook, bound=bound)
        or Ask()
    )


def _refused(
    request: PermissionRequest,
    mode: PermissionMode,
    policy: Policy,
    *,
    hook: Decision | None,
    bound: Allow | Deny | None,
) -> Deny | None:
    if rule := policy.denies(request):
        return Deny(f"the rule {rule} forbids it", rule, "rule")
    if isinstance(bound, Deny):
        return bound
    if mode == "plan" and not _only_looks(request):
        return Deny(
            "plan mode allows looking only; present a plan with present_plan instead",
            "plan mode",
            "mode",
        )
    return hook if isinstance(hook, Deny) else None


def _asked(
    request: PermissionRequest,
    grants: frozenset[Grant],
    policy: Policy,
    *,
    hook: Decision | None,
) -> Ask | None:
    if request.exact_grant in grants:
        return None
    if rule := policy.asks(request):
        return Ask(rule)
    return hook if isinstance(hook, Ask) else None


def _passed(
    request: PermissionRequest,
    mode: PermissionMode,
    grants: frozenset[Grant],
    policy: Policy,
    *,
    hook: Decision | None,
    bound: Allow | Deny | None,
) -> Allow | None:
    if request.dangers:
        named = policy.allows(request, by_name=True)
        return Allow(named, "rule") if named else _granted(request, grants)
    if allowed := _by_mode(request, mode):
        return allowed
    if isinstance(hook, Allow):
        return hook
    if allowed := _built_in(request):
        return allowed
    if rule := policy.allows(request):
        return Allow(rule, "rule")
    return _granted(request, grants) or (bound if isinstance(bound, Allow) else None)


def _by_mode(request: PermissionRequest, mode: PermissionMode) -> Allow | None:
    is_elsewhere = request.is_outside or request.is_private or request.is_unsure
    if mode == "yolo" and not is_elsewhere:
        return None if _built_in(request) else Allow("yolo mode", "mode")
    if mode == "accept-edits" and request.action == "write" and not request.is_outside:
        return Allow("accept-edits mode", "mode")
    return None


def _built_in(request: PermissionRequest) -> Allow | None:
    if request.action == "use":
        return Allow("nothing but the conversation")
    if request.is_outside:
        return None
    if request.action in ("read", "list"):
        return Allow("reading inside the project")
    if request.action == "execute" and request.is_read_only:
        return Allow("a command that only reads")
    return None


def _granted(request: PermissionRequest, grants: frozenset[Grant]) -> Allow | None:
    return Allow("allowed for this session", "grant") if request.grant in grants else None


def _only_looks(request: PermissionRequest) -> bool:
    """Return whether `request` changes nothing, wherever it looks."""
    match request.action:
        case "execute":
            return request.is_read_only
        case "fetch":
            return not request.paths
        case action:
            return action != "write"
