"""How a tool asks for permission: the gate settles it, everybody is told, a refusal is raised."""

from collections.abc import Callable
from dataclasses import replace

from crush_kernel.agent.callhooks import NO_WORD, HookWord
from crush_kernel.agent.events import PermissionSettled
from crush_kernel.errors import PermissionDenied
from crush_kernel.permissions.decision import Allow, Bounds, Deny, no_bounds
from crush_kernel.permissions.gate import Asker, Gate
from crush_kernel.permissions.request import PermissionRequest
from crush_kernel.tools.base import Permit


def permission(
    gate: Gate,
    asker: Asker,
    tell: Callable[[PermissionSettled], None],
    *,
    bounds: Bounds = no_bounds,
    on_behalf: str = "",
    hook: HookWord = NO_WORD,
) -> Permit:
    """Return a way to ask for permission that tells every answer and raises on a refusal.

    Args:
        gate: settles what may be done.
        asker: is asked.
        tell: takes the answers.
        bounds: of who asks, besides the rules for all.
        on_behalf: who that is, if not the agent itself.
        hook: what hooks say of the call.
    """

    async def permit(request: PermissionRequest) -> None:
        request = replace(request, on_behalf=on_behalf, notes=(*request.notes, *hook.notes))
        word = await gate.settle(request, asker, bounds=bounds, hook=hook.decision)
        settled = settlement(request, word)
        tell(settled)
        if not settled.is_allowed:
            raise PermissionDenied(_denial(settled.reason))

    return permit


def settlement(request: PermissionRequest, word: Allow | Deny) -> PermissionSettled:
    """Return the event that tells of `word`."""
    if isinstance(word, Deny):
        return PermissionSettled(
            request, is_allowed=False, rule=word.rule, reason=word.reason, by=word.by
        )
    return PermissionSettled(
        request,
        is_allowed=True,
        rule=word.rule,
        by=word.by,
        kept_rules=word.kept,
        kept_scope=word.kept_scope,
    )


def _denial(reason: str) -> str:
    if reason:
        return f"Permission denied: {reason}. Do not try to get the same result another way."
    return "Permission denied by the user. Do not try to get the same result another way."
