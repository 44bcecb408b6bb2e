"""A kernel that writes a scripted session and is killed in it, again and again.

Usage: `python -m tests.history.killed_kernel FOLDER before|after`. Each death is that of a
process of its own, with a journal of its own in `FOLDER/<n>`: killed `before` the n-th SQL
statement is carried out, or `after` the n-th call has returned. How many calls had returned
is left in `FOLDER/<n>/returned`. Ends with the first n that is survived.
"""

import os
import signal
import sqlite3
import sys
from pathlib import Path
from typing import Any

from crush_kernel.history.journal import database
from crush_kernel.history.journal.journal import Journal
from tests.history.scripted_session import play, script


def main(folder: Path, moment: str) -> None:
    """Run the session until it is not killed any more."""
    number, is_killed = 0, True
    while is_killed:
        number += 1
        kernel = os.fork()
        if kernel == 0:
            live(folder / str(number), moment, number)
            os._exit(0)
        is_killed = os.WIFSIGNALED(os.waitpid(kernel, 0)[1])


def live(folder: Path, moment: str, number: int) -> None:
    """Write the session and die of the `number`-th event."""
    folder.mkdir()
    if moment == "before":
        _die_before_statement(number)
    returned = os.open(folder / "returned", os.O_WRONLY | os.O_CREAT)
    for count, _ in enumerate(play(Journal.open(folder / ".crush"), script()), start=1):
        os.pwrite(returned, b"%d" % count, 0)
        if moment == "after" and count == number:
            die()


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def _die_before_statement(number: int) -> None:
    seen = 0

    def on_statement(_: str) -> None:
        nonlocal seen
        seen += 1
        if seen == number:
            die()

    connect = sqlite3.connect

    def traced(*args: Any, **kwargs: Any) -> sqlite3.Connection:  # noqa: ANN401 - as it comes
        connection = connect(*args, **kwargs)
        connection.set_trace_callback(on_statement)
        return connection

    database.sqlite3.connect = traced  # pyright: ignore[reportAttributeAccessIssue]


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
