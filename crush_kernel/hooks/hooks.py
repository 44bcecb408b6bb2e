"""The hooks of one kernel, by what happens: a call, its result, a prompt, an end, a beginning."""

from collections.abc import Callable
from pathlib import Path
from typing import Final, Literal

from crush_kernel.config.hooks import Hook, HookEvent
from crush_kernel.hooks.matcher import MatchedHook, matched_hooks
from crush_kernel.hooks.payload import (
    Situation,
    ToolAnswer,
    ToolUse,
    answer_facts,
    use_facts,
)
from crush_kernel.hooks.runner import Runner
from crush_kernel.hooks.verdict import SILENCE, Verdict, verdict
from crush_kernel.messages import JsonObject
from crush_kernel.shell.runner import Shell

Source = Literal["startup", "resume"]
"""Whether a notebook begins, or goes on in another kernel."""


class Hooks:
    """Asks the hooks that there are now; one who asks is answered by all or cancelled."""

    def __init__(
        self,
        shell: Shell,
        *,
        cwd: Path,
        situation: Callable[[], Situation],
        hooks: tuple[Hook, ...] = (),
    ) -> None:
        """Begin with `hooks`; nothing runs yet.

        Args:
            shell: runs them; they end with it at the latest.
            cwd: the folder they run in.
            situation: what every hook is told, as it is now.
            hooks: in the order in which they are configured.
        """
        self._runner: Final = Runner(shell, cwd)
        self._situation = situation
        self._by_event: dict[HookEvent, tuple[Hook, ...]] = {}
        self.hooks = hooks

    @property
    def hooks(self) -> tuple[Hook, ...]:
        """The hooks; others count from the next event on."""
        return self._hooks

    @hooks.setter
    def hooks(self, hooks: tuple[Hook, ...]) -> None:
        self._hooks = hooks
        self._by_event = {}
        for hook in hooks:
            self._by_event[hook.event] = (*self._by_event.get(hook.event, ()), hook)

    def has_any_for(self, tool: str) -> bool:
        """Return whether a call of `tool` is of interest to any."""
        return bool(self._by_event) and any(
            self._matched(event, tool) for event in ("PreToolUse", "PostToolUse")
        )

    async def before(self, use: ToolUse) -> Verdict:
        """Return what hooks say of a call that is about to be made."""
        hooks = self._matched("PreToolUse", use.tool)
        return await self._ask(
            hooks, "PreToolUse", lambda name: use_facts(use, name), given=use.input
        )

    async def after(self, use: ToolUse, answer: ToolAnswer) -> Verdict:
        """Return what hooks say of what a call has come to."""
        hooks = self._matched("PostToolUse", use.tool)

        def facts(name: str) -> JsonObject:
            return {**use_facts(use, name), **answer_facts(use, answer)}

        return await self._ask(hooks, "PostToolUse", facts)

    async def prompted(self, text: str) -> Verdict:
        """Return what hooks say of a prompt that is about to be sent."""
        return await self._ask_all("UserPromptSubmit", {"prompt": text})

    async def stopping(self, *, is_again: bool) -> Verdict:
        """Return what hooks say of a turn that is about to end.

        Args:
            is_again: whether they have had it go on before.
        """
        return await self._ask_all("Stop", {"stop_hook_active": is_again})

    async def began(self, source: Source) -> Verdict:
        """Return what hooks say of a session that begins."""
        return await self._ask_all("SessionStart", {"source": source})

    def _matched(self, event: HookEvent, tool: str) -> tuple[MatchedHook, ...]:
        hooks = self._by_event.get(event)
        return matched_hooks(hooks, tool) if hooks else ()

    async def _ask_all(self, event: HookEvent, facts: JsonObject) -> Verdict:
        hooks = tuple(MatchedHook(hook, "") for hook in self._by_event.get(event, ()))
        return await self._ask(hooks, event, lambda _: facts)

    async def _ask(
        self,
        hooks: tuple[MatchedHook, ...],
        event: HookEvent,
        facts: Callable[[str], JsonObject],
        *,
        given: JsonObject | None = None,
    ) -> Verdict:
        if not hooks:
            return SILENCE
        runs = await self._runner.run(hooks, event, self._situation(), facts)
        return verdict(runs, given)
