"""A program in ripgrep's place, for what the real one does only on a bad day."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

import anyio.to_thread


def fake_ripgrep(folder: Path, script: str) -> Callable[[], Path]:
    """Return a way to find a program in `folder` that runs `script` under sh."""
    program = folder / "rg"
    program.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
    program.chmod(0o755)
    return lambda: program


class EndlessRipgrep:
    """A program that starts a child and never ends, held by a pipe that it keeps open."""

    def __init__(self, folder: Path) -> None:
        self._pipe = folder / "alive"
        os.mkfifo(self._pipe)
        script = f"exec 3> '{self._pipe}'; sleep 600 & echo begun >&3; wait"
        self.find = fake_ripgrep(folder, script)
        self._reader: BinaryIO | None = None

    async def begun(self) -> None:
        """Return once the program runs."""

        def read() -> BinaryIO:
            reader = self._pipe.open("rb")
            reader.readline()
            return reader

        self._reader = await anyio.to_thread.run_sync(read, abandon_on_cancel=True)

    async def ended(self) -> None:
        """Return once the program and its child are gone."""
        assert self._reader is not None
        with self._reader as reader:
            await anyio.to_thread.run_sync(reader.read, abandon_on_cancel=True)
