"""A `ToolContext` whose permission answers are scripted and whose traffic is recorded."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import anyio.lowlevel

from crush_kernel.errors import PermissionDenied
from crush_kernel.permissions.request import PermissionRequest
from crush_kernel.tools.base import ToolContext


@dataclass(frozen=True, slots=True)
class FakeContext:
    """One call's context, and what the tool did with it."""

    context: ToolContext
    requests: list[PermissionRequest] = field(default_factory=list[PermissionRequest])
    """What was asked, oldest first."""
    passed: list[PermissionRequest] = field(default_factory=list[PermissionRequest])
    """What the engine lets pass without a question: reading inside the project."""
    progress: list[str] = field(default_factory=list[str])
    versions: list[tuple[Path, bytes | None, bytes | None]] = field(
        default_factory=list[tuple[Path, bytes | None, bytes | None]]
    )
    """Files before and after, as they were to be kept."""


def tool_context(
    *,
    allow: bool = True,
    reason: str = "not this one",
    meanwhile: Callable[[], None] = lambda: None,
    call_id: str = "call_1",
) -> FakeContext:
    """Return a context that gives every permission request the same answer.

    Args:
        allow: the answer.
        reason: why not, if the answer is no.
        meanwhile: what happens while the question is open, before the answer.
        call_id: the call's id.
    """
    requests: list[PermissionRequest] = []
    passed: list[PermissionRequest] = []
    progress: list[str] = []

    async def permit(request: PermissionRequest) -> None:
        if request.action in ("read", "list") and not request.is_outside:
            passed.append(request)
            return
        requests.append(request)
        await anyio.lowlevel.checkpoint()
        meanwhile()
        if not allow:
            raise PermissionDenied(f"The user denied this call: {reason}")

    versions: list[tuple[Path, bytes | None, bytes | None]] = []

    def keep_version(path: Path, before: bytes | None, after: bytes | None) -> None:
        versions.append((path, before, after))

    context = ToolContext(
        call_id=call_id,
        permit=permit,
        progress=progress.append,
        keep_version=keep_version,
    )
    return FakeContext(
        context, requests=requests, passed=passed, progress=progress, versions=versions
    )
