"""Run the hooks that something concerns, all at the same time, and hear what each says."""

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

import anyio

from crush_kernel.config.hooks import Hook, HookEvent
from crush_kernel.errors import ToolError
from crush_kernel.hooks.matcher import MatchedHook
from crush_kernel.hooks.outcome import HookExit, Outcome, outcome
from crush_kernel.hooks.payload import Situation, payload, variables
from crush_kernel.hooks.verdict import HookRun
from crush_kernel.messages import JsonObject
from crush_kernel.shell.exchange import MAX_KEPT_BYTES, Answer
from crush_kernel.shell.runner import Shell

logger = logging.getLogger(__name__)

_UNTOLD: Final = "what it has to know is nested too deeply to be written down"


@dataclass(frozen=True, slots=True)
class Runner:
    """Runs hooks in a folder."""

    shell: Shell
    cwd: Path

    async def run(
        self,
        hooks: Sequence[MatchedHook],
        event: HookEvent,
        situation: Situation,
        facts: Callable[[str], JsonObject],
    ) -> tuple[HookRun, ...]:
        """Run `hooks` and return what they say, in their order; a hook that fails is told so.

        Cancelling stops them, and all that they started, within a second.

        Args:
            hooks: which.
            event: what happens.
            situation: where.
            facts: what is told of it, by the name that the tool has for a hook.
        """
        said: dict[int, Outcome] = {}

        @cache
        def told(tool: str) -> tuple[bytes, dict[str, str]]:
            known = facts(tool)
            return payload(event, situation, known), variables(event, situation, known)

        async def ask(index: int, matched: MatchedHook) -> None:
            said[index] = await self._ask(matched, told)

        async with anyio.create_task_group() as group:
            for index, matched in enumerate(hooks):
                group.start_soon(ask, index, matched)
        return tuple(HookRun(matched, said[index]) for index, matched in enumerate(hooks))

    async def _ask(
        self, matched: MatchedHook, told: Callable[[str], tuple[bytes, dict[str, str]]]
    ) -> Outcome:
        hook = matched.hook
        started = anyio.current_time()
        try:
            given, env = told(matched.tool)
            answer = await self.shell.exchange(
                hook.command, given, cwd=self.cwd, timeout_s=hook.timeout_s, env=env
            )
        except (ToolError, OSError) as error:
            ran = HookExit(trouble=str(error).removesuffix("."))
        except RecursionError:
            ran = HookExit(trouble=_UNTOLD)
        except Exception as error:
            # A hook is asked on the way of every call: what goes wrong with it ends no turn.
            logger.exception("hook %r failed unexpectedly", hook.label)
            ran = HookExit(trouble=f"it could not be asked ({type(error).__name__})")
        else:
            ran = HookExit(answer.exit_code, answer.stdout, answer.stderr, _trouble(hook, answer))
        said = outcome(hook, ran)
        logger.info(
            "hook %r of %s ended after %.3f s with exit %d: %s",
            hook.label,
            hook.event,
            anyio.current_time() - started,
            ran.exit_code,
            said.failure or ("halt" if said.is_halt else said.opinion or "no opinion"),
        )
        return said


def _trouble(hook: Hook, answer: Answer) -> str:
    """Return why an answer cannot be judged, if it cannot."""
    if answer.is_timed_out:
        return f"it took longer than {hook.timeout_s:g} s"
    if answer.is_flood:
        return "it printed without end"
    if answer.is_cut and answer.exit_code == 0:
        return f"it printed more than {MAX_KEPT_BYTES:,} bytes"
    return ""
