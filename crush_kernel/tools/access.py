"""How a reading tool gets at the place it was told: found, then allowed, in this order.

Nobody is asked about a typing error, and every tool that reads asks in the same words.
"""

import os
import time
from collections.abc import Callable
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Literal

import anyio.to_thread

from crush_kernel.errors import ToolError
from crush_kernel.files.names import printable
from crush_kernel.tools.base import ToolContext
from crush_kernel.tools.paths import PathPolicy, Target, reason

MAX_NEAR_NAMES = 3
MIN_LIKENESS = 60.0
"""Of 100: below it, names share little more than their ending."""
AT_ONCE_S = 0.05
"""Who has waited longer for an answer looks again whether the place is still the same."""
MAX_SIBLINGS = 10_000
"""Names that are compared with a missing one; a folder can hold millions."""


async def find_readable(
    paths: PathPolicy,
    text: str,
    context: ToolContext,
    *,
    tool: str,
    action: Literal["read", "list"],
    is_open: Callable[[Path], bool] | None = None,
) -> tuple[Target, os.stat_result]:
    """Return the existing place that `text` names and what it is, once reading it is allowed.

    Inside the project that is at once, but for what the user's rules say of it. A slow file
    system does not hold up a cancellation.

    Args:
        paths: where it may read.
        text: what the model wrote.
        context: of the call.
        tool: who wants to read.
        action: what it wants to do.
        is_open: whether a real path outside the project is open to it without a question.

    Raises:
        ToolError: no such place, or none that can be reached; the message says what is near.
            Or it has become another place while the question was open.
        PermissionDenied: a rule is against it, or it is outside the project and the answer was
            no.
    """
    target, status = await _find_in_thread(paths, text)
    request = paths.read_request(target, call_id=context.call_id, tool=tool, action=action)
    if target.is_outside and is_open is not None and is_open(target.path):
        request = replace(request, is_outside=False)
    began = time.monotonic()
    await context.permit(request)
    if request.is_outside or time.monotonic() - began > AT_ONCE_S:
        asked, (target, status) = target, await _find_in_thread(paths, text)
        if target != asked:
            raise ToolError(f"{asked.shown} was replaced while permission was asked. Try again.")
    return target, status


async def _find_in_thread(paths: PathPolicy, text: str) -> tuple[Target, os.stat_result]:
    return await anyio.to_thread.run_sync(_find, paths, text, abandon_on_cancel=True)


def _find(paths: PathPolicy, text: str) -> tuple[Target, os.stat_result]:
    target = paths.resolve(text)
    try:
        return target, target.path.lstat()
    except (FileNotFoundError, NotADirectoryError):
        raise ToolError(_missing(target)) from None
    except OSError as error:
        raise ToolError(f"{target.shown} cannot be read: {reason(error)}.") from error


def _missing(target: Target) -> str:
    """Return that `target` is not there, with what may be meant."""
    text = f"{target.shown} does not exist."
    # Outside the project a list of names would be read without permission.
    near = () if target.is_outside else _near_names(target)
    if near:
        return f"{text} Did you mean {' or '.join(near)}?"
    return f"{text} Find it with glob, or list the folder with ls."


def _near_names(target: Target) -> tuple[str, ...]:
    """Return what the siblings of `target` are called that resemble it, the nearest first."""
    from rapidfuzz import fuzz, process, utils  # noqa: PLC0415 - 25 ms that only a miss needs

    try:
        with os.scandir(target.path.parent) as entries:
            names = sorted(entry.name for entry in islice(entries, MAX_SIBLINGS))
    except OSError:
        return ()
    found = process.extract(
        target.path.name,
        names,
        scorer=fuzz.WRatio,
        processor=utils.default_process,
        limit=MAX_NEAR_NAMES,
        score_cutoff=MIN_LIKENESS,
    )
    folder = os.path.dirname(target.shown)  # noqa: PTH120 - a name for people, not a path
    return tuple(printable(os.path.join(folder, name)) for name, _, _ in found)  # noqa: PTH118
