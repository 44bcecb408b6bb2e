"""What is allowed, what is asked, what is refused: a pure function of values.

A tool describes what it is about to do as a `PermissionRequest`; `decide` answers from the
mode and from what the user has granted in this session. Grants live in memory only: they
are never read from a notebook or a project. A sub-agent may have bounds of its own, which no
grant and no mode widens.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

from crush_kernel.config.settings import PermissionMode

Action = Literal["read", "list", "write", "execute", "fetch"]


@dataclass(frozen=True, slots=True)
class PermissionRequest:
    """What a tool is about to do, in enough detail for a person to judge it."""

    call_id: str
    tool: str
    action: Action
    title: str
    """What is wanted, to go after "<tool> wants to": `run`, `edit src/price.py`."""
    paths: tuple[Path, ...] = ()
    """The real paths that are read or written, links resolved."""
    is_outside: bool = False
    """Whether a path lies outside the project."""
    command: str = ""
    """The command line, for `execute`."""
    cwd: Path | None = None
    diff: str = ""
    """Unified diff of what would change, for `write`."""
    notes: tuple[str, ...] = ()
    """Further facts a person should know, one line each."""
    server: str = ""
    """Who is talked to, for `fetch`; what is granted is granted for this server only."""
    is_private: bool = False
    """Whether that server is this machine or in a private network, where no stranger gets."""
    on_behalf: str = ""
    """Whose tool it is if not the agent's own, such as `agent: task`; what is granted is
    granted to all."""

    @property
    def grant(self) -> "Grant":
        """Return what "allow for this session" would allow.

        A command is granted as written, word for word, in its folder. An edit inside the
        project is granted with all other edits by the same tool inside it; outside, with
        that very file. A server is granted as public or as private, never as both, and with
        the file that is written, if one is.
        """
        if self.action == "execute":
            return Grant(tool=self.tool, action=self.action, scope=f"{self.cwd}\0{self.command}")
        if self.action == "fetch":
            reach = "private" if self.is_private else "public"
            scope = "\0".join((reach, self.server, *map(str, self.paths)))
            return Grant(tool=self.tool, action=self.action, scope=scope)
        scope = "\0".join(map(str, self.paths)) if self.is_outside else ""
        return Grant(tool=self.tool, action=self.action, scope=scope)


@dataclass(frozen=True, slots=True)
class Grant:
    """Something allowed for the rest of this kernel's life."""

    tool: str
    action: Action
    scope: str
    """What it is limited to; empty means the whole project."""


@dataclass(frozen=True, slots=True)
class Allow:
    """Go ahead, by virtue of `rule`."""

    rule: str
    kind: Literal["allow"] = "allow"


@dataclass(frozen=True, slots=True)
class Ask:
    """A person has to say."""

    kind: Literal["ask"] = "ask"


@dataclass(frozen=True, slots=True)
class Deny:
    """Do not, for `reason`, which the model reads."""

    reason: str
    rule: str
    kind: Literal["deny"] = "deny"


Decision = Allow | Ask | Deny

Bounds: TypeAlias = Callable[[PermissionRequest], Allow | Deny | None]
"""What somebody may do without a question, and never; `None` leaves it to the rules."""


def no_bounds(_: PermissionRequest) -> Allow | Deny | None:
    """Leave every request to the rules."""
    return None


def decide(
    request: PermissionRequest,
    *,
    mode: PermissionMode,
    grants: frozenset[Grant],
    bound: Allow | Deny | None = None,
) -> Decision:
    """Return what the rules say to `request`; the first rule that speaks wins.

    Args:
        request: what is wanted.
        mode: of the session. What it denies nobody allows.
        grants: what the user has allowed for the session.
        bound: what the bounds of who asks say. A refusal goes before all that allows, an
            allowance only spares the question.

    Source: design, "Permission, minimal but real"; Crush, permission modes.
    """
    is_reading = request.action in ("read", "list")
    if mode == "plan" and not is_reading:
        return Deny("plan mode allows reading only; present a plan instead", "plan mode")
    if isinstance(bound, Deny):
        return bound
    if is_reading and not request.is_outside:
        return Allow("reading inside the project")
    if request.grant in grants:
        return Allow("allowed for this session")
    if mode == "yolo" and not (request.is_outside or request.is_private):
        return Allow("yolo mode")
    if mode == "accept-edits" and request.action == "write" and not request.is_outside:
        return Allow("accept-edits mode")
    return bound or Ask()
