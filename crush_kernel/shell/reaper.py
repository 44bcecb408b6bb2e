"""A watchdog process: when the kernel ends, however it ends, its commands end.

The watchdog is a small bash script in a session of its own. It sleeps on a pipe whose other
end only the kernel holds. When that closes without a farewell, the kernel has died: the
watchdog stops the process groups that the kernel had noted in a file without a name and, on
Linux, every process that carries the kernel's mark. Noting a group wakes nobody. Its own
environment is bare, so that no other watchdog takes it for a command.
"""

import logging
import os
import subprocess
import sys
import tempfile
from collections.abc import Set as AbstractSet
from contextlib import suppress
from pathlib import Path

import anyio

from crush_kernel.shell.processes import wait_for_exit

logger = logging.getLogger(__name__)

_FAREWELL = b"done\n"

_CLOSE_TIMEOUT_S = 0.3

_SCRIPT = r"""
trap '' HUP INT QUIT TERM
mark=$1
notes=$2
read -r word
[[ $word == done ]] && exit
read -r -a groups <&"$notes"
read -r -a orphaned <&"$notes"
for group in "${orphaned[@]}"; do
  # A process with that id is a stranger's: the group has ended and the id was used again.
  kill -0 "$group" || groups+=("$group")
done

find_marked() {
  marked=()
  for folder in /proc/[0-9]*; do
    while IFS= read -r -d '' entry; do
      if [[ $entry == "$mark"* ]]; then
        marked+=("${folder#/proc/}")
        break
      fi
    done <"$folder/environ"
  done
}

send() {
  for group in "${groups[@]}"; do
    kill -"$1" -- "-$group"
  done
  find_marked
  for process in "${marked[@]}"; do
    kill -"$1" "$process"
  done
}

send TERM
sleep 0.3
# What is forked while it is being looked for is found the next time.
for round in 1 2 3 4 5; do
  send KILL
  (( ${#marked[@]} )) || break
done
"""


class Watchdog:
    """The kernel's side of the watchdog; starts it with the first group, and anew if it died."""

    def __init__(self, bash: Path, mark: str) -> None:
        """Prepare the watchdog.

        Args:
            bash: the bash that runs it.
            mark: how the marking entry of the environment begins, `NAME=value`.
        """
        self._bash = bash
        self._mark = mark
        self._notes: int | None = None
        self._process: subprocess.Popen[bytes] | None = None

    def watch(self, groups: AbstractSet[int], orphaned: AbstractSet[int]) -> None:
        """Stop these process groups, and no others, if the kernel ends.

        Where the watchdog cannot be started, commands run without it.

        Args:
            groups: those whose leader runs.
            orphaned: those whose leader was reaped.
        """
        try:
            self._note(groups, orphaned)
        except OSError:
            logger.warning("there is no watchdog over the commands", exc_info=True)

    async def close(self) -> None:
        """Send the watchdog home without stopping anything; bounded, and safe to repeat."""
        notes, self._notes = self._notes, None
        if notes is not None:
            os.close(notes)
        process, self._process = self._process, None
        if process is None:
            return
        if process.stdin is not None:
            with suppress(BrokenPipeError):
                os.write(process.stdin.fileno(), _FAREWELL)
        _close_stdin(process)
        with anyio.move_on_after(_CLOSE_TIMEOUT_S, shield=True):
            await wait_for_exit(process)
        if process.poll() is None:
            process.kill()
            process.wait()

    def _note(self, groups: AbstractSet[int], orphaned: AbstractSet[int]) -> None:
        if self._notes is None:
            self._notes = _nameless_file()
        lines = (" ".join(map(str, sorted(line))) + "\n" for line in (groups, orphaned))
        os.pwrite(self._notes, "".join(lines).encode(), 0)
        if self._process is not None and self._process.poll() is not None:
            _close_stdin(self._process)
            self._process = None
        if self._process is None:
            self._process = self._start(self._notes)

    def _start(self, notes: int) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [self._bash, "-c", _SCRIPT, "crush-watchdog", self._mark, str(notes)],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            bufsize=0,
            cwd="/",
            env={"PATH": os.defpath, "LC_ALL": "C"},
            pass_fds=(notes,),
            start_new_session=True,
        )


def _close_stdin(process: subprocess.Popen[bytes]) -> None:
    if process.stdin is not None:
        process.stdin.close()


def _nameless_file() -> int:
    if sys.platform == "linux":
        return os.memfd_create("crush-groups")
    with tempfile.TemporaryFile() as file:
        return os.dup(file.fileno())
