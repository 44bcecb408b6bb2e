"""The commands about the notebook's own history, without a process."""

import threading
from collections.abc import Sequence
from pathlib import Path

import anyio
import pytest

from crush_kernel.history.turn import Turn
from crush_kernel.kernel.commands import notebook
from crush_kernel.kernel.commands.call import CommandCall
from crush_kernel.messages import Message, Text
from crush_kernel.runtime import open_runtime

pytestmark = pytest.mark.anyio


async def test_an_export_that_takes_long_can_be_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    has_begun, may_end = threading.Event(), threading.Event()

    def slow(turns: Sequence[Turn], wanted: str) -> str:
        has_begun.set()
        may_end.wait(10)
        return f"{wanted}: {len(turns)}"

    monkeypatch.setattr(notebook, "exported", slow)
    environ = {"HOME": str(tmp_path), "CRUSH_MODEL": "offline/offline"}
    async with open_runtime(environ=environ, cwd=tmp_path) as runtime:
        await runtime.begin("a", "ask")
        runtime.session.conversation.append(Message("user", (Text("ask"),)))
        runtime.session.conversation.end("end_turn")
        try:
            with anyio.fail_after(5):
                async with anyio.create_task_group() as tasks:
                    tasks.start_soon(notebook.export, CommandCall("", runtime, "b"))
                    await anyio.to_thread.run_sync(has_begun.wait)
                    tasks.cancel_scope.cancel()
        finally:
            may_end.set()
    assert not [path async for path in anyio.Path(tmp_path).glob("*.md")]
