"""A part of the file system that does not answer, as a network drive without its network."""

import os
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any

import anyio
import pytest

_CALLS = ("open", "stat", "lstat", "scandir", "listdir", "access", "readlink")

_GIVE_UP_S = 30.0


class HungDisk:
    """Holds up whoever asks the system about a path with a certain name, until it is let go."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._loop = threading.get_ident()
        self._answers = threading.Event()
        self.is_asked = False
        """Whether somebody is held up."""
        self.held_the_loop = False
        """Whether it was the thread that made the disk, which nobody may hold up."""

    async def asked(self) -> None:
        """Return once somebody is held up."""
        while not self.is_asked:  # noqa: ASYNC110 - other threads tell nobody
            await anyio.sleep(0.005)

    def hold(self, path: object) -> None:
        """Hold up the caller if it asks about a path on this disk."""
        if not isinstance(path, (str, bytes, os.PathLike)):
            return
        if self._name not in os.fsdecode(os.fspath(path)).split("/"):
            return
        self.is_asked = True
        if threading.get_ident() == self._loop:
            self.held_the_loop = True
        else:
            self._answers.wait(_GIVE_UP_S)

    def let_go(self) -> None:
        """Answer everybody."""
        self._answers.set()


@contextmanager
def hung_disk(monkeypatch: pytest.MonkeyPatch, name: str) -> Generator[HungDisk]:
    """Have what is called `name`, and all below it, answer nobody until the end."""
    disk = HungDisk(name)
    with monkeypatch.context() as patch:
        for call in _CALLS:
            patch.setattr(os, call, _held(disk, getattr(os, call)))
        try:
            yield disk
        finally:
            disk.let_go()


def _held(disk: HungDisk, call: Callable[..., Any]) -> Callable[..., Any]:
    def held(path: object = ".", *arguments: object, **more: object) -> object:
        disk.hold(path)
        return call(path, *arguments, **more)

    return held
