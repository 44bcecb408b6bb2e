"""The gate every tool call goes through: rules first, then a question.

Questions that wait do not hold each other up. What is granted, or changed in mode or rules,
while one waits counts for it at once: it is withdrawn, and its card is dead.
"""

import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final, Literal, Protocol

import anyio

from crush_kernel.config.ruletexts import RuleScope
from crush_kernel.config.settings import PermissionMode
from crush_kernel.errors import ConfigError
from crush_kernel.permissions.decision import (
    NO_POLICY,
    Allow,
    Ask,
    Bounds,
    Decision,
    Deny,
    decide,
    no_bounds,
)
from crush_kernel.permissions.policy import Policy
from crush_kernel.permissions.request import BE_USED, Grant, PermissionRequest

logger = logging.getLogger(__name__)

AnswerKind = Literal["once", "session", "always", "deny"]


@dataclass(frozen=True, slots=True)
class Answer:
    """What a person, or the policy in a person's place, said to a question."""

    kind: AnswerKind
    reason: str = ""
    """Why not, in the person's words; the model reads it."""
    rules: tuple[str, ...] = ()
    """What is allowed from now on, with `always`, as the person has left or changed it."""
    scope: RuleScope = "project"
    """Where these rules hold."""
    is_nobody: bool = False
    """Whether no person has said it."""


NOBODY: Final = "nobody can be asked here"
"""How the reason for a refusal begins that no person has given."""


class Asker(Protocol):
    """Someone who can be asked: a card in the browser, a prompt in a console, or a policy."""

    async def ask(self, request: PermissionRequest) -> Answer:
        """Return the answer to `request`; cancelling withdraws the question."""
        ...


KeepRules = Callable[[tuple[str, ...], RuleScope], Awaitable[Policy]]
"""Stores rules in the user's state and returns what holds with them.

Raises `ConfigError` if they cannot be stored."""


class DenyAll:
    """The policy where nobody can answer."""

    async def ask(self, request: PermissionRequest) -> Answer:
        """Refuse at once and say how to allow it."""
        if request.dangers or request.is_outside or request.is_private:
            how = "no mode lets it run unattended, only a rule of the user that names it"
        else:
            modes = "accept-edits or yolo" if request.action == "write" else "yolo"
            how = (
                f"a rule of the user, or CRUSH_PERMISSION_MODE set to {modes}, lets it run "
                "unattended"
            )
        reason = f"{NOBODY} and nothing allows {request.tool}; {how}"
        return Answer("deny", reason, is_nobody=True)


class Gate:
    """Answers every permission request, and remembers what was granted for the session."""

    def __init__(
        self,
        mode: PermissionMode = "default",
        policy: Policy = NO_POLICY,
        *,
        keep_rules: KeepRules | None = None,
    ) -> None:
        """Begin without grants; without `keep_rules`, `always` counts for the session."""
        self._mode: PermissionMode = mode
        self._policy = policy
        self._keep_rules = keep_rules
        self._grants: frozenset[Grant] = frozenset()
        self._changed = anyio.Event()

    @property
    def mode(self) -> PermissionMode:
        """The mode of the session; setting it counts for questions that wait."""
        return self._mode

    @mode.setter
    def mode(self, mode: PermissionMode) -> None:
        self._mode = mode
        self._change()

    @property
    def policy(self) -> Policy:
        """The rules; setting them counts for questions that wait."""
        return self._policy

    @policy.setter
    def policy(self, policy: Policy) -> None:
        self._policy = policy
        self._change()

    @property
    def grants(self) -> frozenset[Grant]:
        """What was allowed for the session."""
        return self._grants

    def forget(self) -> None:
        """Take back all that was allowed for the session."""
        self._grants = frozenset()

    def decide(
        self,
        request: PermissionRequest,
        *,
        bounds: Bounds = no_bounds,
        hook: Decision | None = None,
    ) -> Decision:
        """Return what is to be said to `request` now, without asking anybody."""
        return decide(
            request,
            mode=self._mode,
            grants=self._grants,
            policy=self._policy,
            hook=hook,
            bound=bounds(request),
        )

    def refuses_tool(self, tool: str) -> bool:
        """Return whether a rule is against `tool` whatever it would do."""
        return bool(self._policy.denies(PermissionRequest("", tool, "use", BE_USED)))

    async def settle(
        self,
        request: PermissionRequest,
        asker: Asker,
        *,
        bounds: Bounds = no_bounds,
        hook: Decision | None = None,
    ) -> Allow | Deny:
        """Return the final word on `request`, asking `asker` if the rules do not decide.

        Several may wait at the same time. Cancelling withdraws the question and grants nothing.

        Args:
            request: what is wanted.
            asker: who is asked.
            bounds: of who wants it, besides the rules for all.
            hook: what hooks said of the call.
        """

        def rules_say() -> Decision:
            return self.decide(request, bounds=bounds, hook=hook)

        decision = rules_say()
        if not isinstance(decision, Ask):
            return decision
        said = await self._ask(request, asker, rules_say)
        return await self._apply(request, said) if isinstance(said, Answer) else said

    async def _ask(
        self, request: PermissionRequest, asker: Asker, rules_say: Callable[[], Decision]
    ) -> Answer | Allow | Deny:
        """Return what comes first: the answer, or a change by which the rules decide."""
        said: list[Answer | Allow | Deny] = []
        failures: list[Exception] = []
        async with anyio.create_task_group() as group:

            async def ask() -> None:
                try:
                    said.append(await asker.ask(request))
                except Exception as error:  # noqa: BLE001 - raised below, in no group
                    failures.append(error)
                group.cancel_scope.cancel()

            group.start_soon(ask)
            while isinstance(decision := rules_say(), Ask):
                await self._changed.wait()
            said.append(decision)
            group.cancel_scope.cancel()
        if said:
            return said[0]
        raise failures[0]

    async def _apply(self, request: PermissionRequest, answer: Answer) -> Allow | Deny:
        match answer.kind:
            case "once":
                return Allow("allowed once", "person")
            case "session":
                self._grant(request)
                return Allow("allowed for the session", "person")
            case "always":
                return await self._always(request, answer)
            case "deny":
                by = "nobody" if answer.is_nobody else "person"
                return Deny(answer.reason, "denied", by)

    async def _always(self, request: PermissionRequest, answer: Answer) -> Allow:
        if self._keep_rules is None or not answer.rules:
            self._grant(request)
            return Allow("allowed for the session", "person")
        try:
            self.policy = await self._keep_rules(answer.rules, answer.scope)
        except ConfigError:
            # The person has said yes all the same.
            logger.exception("rules cannot be stored")
            self._grant(request)
            return Allow("allowed for the session, since the rule cannot be stored", "person")
        where = "in this project" if answer.scope == "project" else "everywhere"
        rule = f"always allowed {where}"
        return Allow(rule, "person", kept=answer.rules, kept_scope=answer.scope)

    def _grant(self, request: PermissionRequest) -> None:
        self._grants |= {request.grant, request.exact_grant}
        self._change()

    def _change(self) -> None:
        """Have every question that waits look at the rules again."""
        self._changed.set()
        self._changed = anyio.Event()
