"""The gate every tool call goes through: rules first, then one question at a time."""

from dataclasses import dataclass
from typing import Literal, Protocol

import anyio

from crush_kernel.permissions.rules import (
    Allow,
    Ask,
    Bounds,
    Decision,
    Deny,
    Grant,
    PermissionMode,
    PermissionRequest,
    decide,
    no_bounds,
)


@dataclass(frozen=True, slots=True)
class Answer:
    """What a person, or the policy in a person's place, said to a question."""

    kind: Literal["once", "session", "deny"]
    reason: str = ""
    """Why not, in the person's words; the model reads it."""


class Asker(Protocol):
    """Someone who can be asked: a card in the browser, a prompt in a console, or a policy."""

    async def ask(self, request: PermissionRequest) -> Answer:
        """Return the answer to `request`; cancelling withdraws the question."""
        ...


class DenyAll:
    """The policy where nobody can answer."""

    async def ask(self, request: PermissionRequest) -> Answer:
        """Refuse at once and say how to allow it."""
        return Answer(
            "deny",
            f"nobody can be asked here and nothing allows {request.tool}; set "
            "CRUSH_PERMISSION_MODE to accept-edits or yolo to let it run unattended",
        )


class Gate:
    """Answers every permission request, and remembers what was granted for the session."""

    def __init__(self, mode: PermissionMode = "default") -> None:
        self.mode: PermissionMode = mode
        self._grants: frozenset[Grant] = frozenset()
        self._question = anyio.Lock()

    async def settle(
        self, request: PermissionRequest, asker: Asker, *, bounds: Bounds = no_bounds
    ) -> Allow | Deny:
        """Return the final word on `request`, asking `asker` if the rules do not decide.

        Questions are put one at a time; what was granted while a request waited for its
        turn counts. Cancelling withdraws the question and grants nothing.

        Args:
            request: what is wanted.
            asker: who is asked.
            bounds: of who wants it, besides the rules for all.
        """
        decision = self._decide(request, bounds)
        if not isinstance(decision, Ask):
            return decision
        async with self._question:
            decision = self._decide(request, bounds)
            if not isinstance(decision, Ask):
                return decision
            return self._apply(request, await asker.ask(request))

    def _decide(self, request: PermissionRequest, bounds: Bounds) -> Decision:
        return decide(request, mode=self.mode, grants=self._grants, bound=bounds(request))

    def _apply(self, request: PermissionRequest, answer: Answer) -> Allow | Deny:
        match answer.kind:
            case "once":
                return Allow("allowed once")
            case "session":
                self._grants |= {request.grant}
                return Allow("allowed for the session")
            case "deny":
                return Deny(answer.reason, "denied")
