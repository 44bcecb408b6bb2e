"""What holds at the moment of a prompt: it is said behind the conversation and not kept.

In the system prompt it would change what providers have cached, and in the history it would be
wrong by the next turn.
"""

from datetime import datetime

from crush_kernel.config.settings import PermissionMode
from crush_kernel.prompt.delimited import delimited
from crush_kernel.prompt.gitfacts import GitFacts, describe_git

MAX_FRESH_S = 5.0
"""What is older has its age told."""


def describe_now(now: datetime, git: GitFacts | None, *, age_s: float = 0.0) -> str:
    """Return the date, how far its clock is from UTC, and the state of the work tree in words.

    Args:
        now: where the user is, with the offset of the clock there.
        git: what git said; `None` without a work tree.
        age_s: how long ago that was.
    """
    lines = [f"Date: {now:%Y-%m-%d, %A} (local time, {_offset(now)})"]
    if git is not None:
        if age_s > MAX_FRESH_S:
            lines.append(f"Git {age_s:.0f} s ago; it has not answered again yet:")
        lines.append(describe_git(git))
    return delimited("now", "\n".join(lines))


def describe_mode(mode: PermissionMode) -> str:
    """Return what the model has to know of the permission mode; nothing of most."""
    if mode != "plan":
        return ""
    return delimited(
        "plan_mode",
        "The session is in plan mode: look, but change nothing; calls that change something are "
        "denied. When you know what to do, call present_plan with the whole plan. Plan mode ends "
        "when the user approves it.",
    )


def _offset(now: datetime) -> str:
    """Return how far the clock of `now` is from UTC, such as `UTC+05:30`."""
    offset = f"{now:%z}"
    return f"UTC{offset[:3]}:{offset[3:5]}" if offset else "of unknown offset"
