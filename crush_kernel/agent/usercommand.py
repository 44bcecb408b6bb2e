"""The user's own shell command, which is a turn: run at once, and remembered with its output."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import anyio

from crush_kernel.errors import CrushKernelError
from crush_kernel.history.conversation import Conversation
from crush_kernel.history.journal.replay import CUT_SHORT
from crush_kernel.history.redaction import Redactor
from crush_kernel.history.turn import TurnState
from crush_kernel.messages import Message, ShellCommand
from crush_kernel.shell.runner import CommandResult, Shell
from crush_kernel.tools.text.encoded import without_base64
from crush_kernel.tools.undo.rewind import Rewind

INTERRUPTED_EXIT = 130
"""What a shell reports of a command that the user stopped."""

FAILED_EXIT = 127
"""What a shell reports of a command that it cannot start."""


@dataclass(frozen=True, slots=True)
class UserCommands:
    """Runs what users write behind `!`; nobody is asked about it, since they have said it."""

    conversation: Conversation
    shell: Shell
    rewind: Rewind
    redactor: Redactor
    cwd: Path

    async def run(self, command: str, *, on_output: Callable[[str], None]) -> CommandResult:
        """Run `command`; it and its output are the turn that was begun.

        Cancelling stops it; what it has printed is kept.

        Raises:
            CrushKernelError: it could not be run, which is kept too.
        """
        tail = ""
        # Kept before it runs, so that the command is on record whatever happens meanwhile.
        self._say(command, CUT_SHORT, INTERRUPTED_EXIT)

        def watch(text: str) -> None:
            nonlocal tail
            tail = text
            on_output(text)

        try:
            async with self.rewind.turn(), self.rewind.worktree.command():
                result = await self.shell.run(
                    command, cwd=self.cwd, timeout_s=None, on_output=watch
                )
        except anyio.get_cancelled_exc_class():
            output = f"{tail}\n[interrupted]".lstrip()
            self._end(command, output, INTERRUPTED_EXIT, "interrupted")
            raise
        except CrushKernelError as error:
            self._end(command, str(error), FAILED_EXIT, "error")
            raise
        self._end(command, without_base64(result.output), result.exit_code, "end_turn")
        return result

    def _end(self, command: str, output: str, exit_code: int, end: TurnState) -> None:
        self.conversation.drop_last()
        self._say(command, output, exit_code)
        self.conversation.end(end)

    def _say(self, command: str, output: str, exit_code: int) -> None:
        said = Message("user", (ShellCommand(command, output, exit_code),))
        (message,) = self.redactor.redact_messages((said,))
        self.conversation.append(message)
