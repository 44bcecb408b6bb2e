"""What hooks say of prompts before they are sent, and of the session before its first."""

from dataclasses import dataclass
from typing import Literal, Protocol

from crush_kernel.agent.events import Emit, HookTold
from crush_kernel.errors import PromptBlocked
from crush_kernel.hooks.report import lines
from crush_kernel.hooks.verdict import Verdict
from crush_kernel.prompt.delimited import delimited


class Asked(Protocol):
    """Can be asked about prompts and sessions. Being cancelled ends whatever it has started."""

    async def prompted(self, text: str) -> Verdict:
        """Return what is said of a prompt that is about to be sent."""
        ...

    async def began(self, source: Literal["startup", "resume"]) -> Verdict:
        """Return what is said of a session that begins."""
        ...


@dataclass(slots=True)
class PromptHooks:
    """Has hooks look at what the user says, and remembers what they want known all along."""

    hooks: Asked
    reminder: str = ""
    """What the model is to know with every turn."""
    _has_begun: bool = False

    async def let_pass(self, text: str, *, has_history: bool, emit: Emit) -> str:
        """Return what hooks add to a prompt, once they let it pass; may be nothing.

        Cancelled, it has not happened: the hooks of the session run again with the next prompt.

        Args:
            text: what the user says.
            has_history: whether anything was said before it.
            emit: is told what hooks do.

        Raises:
            PromptBlocked: a hook is against it.
        """
        if not self._has_begun:
            begun = await self.hooks.began("resume" if has_history else "startup")
            self._has_begun = True
            self.reminder = _enclosed("session_context", begun.context)
            _tell(begun, emit)
        said = await self.hooks.prompted(text)
        if said.is_refusal:
            why = said.reason.rstrip(".") or "it gave no reason"
            raise PromptBlocked(
                f'The prompt was not sent: the hook "{said.deciders}" stopped it: {why}.',
                hint="Change the prompt and run the cell again.",
            )
        _tell(said, emit)
        return prompt_context(said)


def prompt_context(said: Verdict) -> str:
    """Return what the model reads behind a prompt of which hooks have said this; often nothing."""
    return _enclosed("prompt_context", said.context)


def _tell(said: Verdict, emit: Emit) -> None:
    for line in lines(said):
        emit(HookTold(line))


def _enclosed(tag: str, text: str) -> str:
    return delimited(tag, text, {"by": "a hook of the user's"}) if text else ""
