"""What the rules say, mode by mode."""

from pathlib import Path

import pytest

from crush_kernel.config.settings import PermissionMode
from crush_kernel.permissions.rules import Action, PermissionRequest, decide

SRC = Path("/p/src.py")


def request(
    action: Action,
    *,
    paths: tuple[Path, ...] = (),
    is_outside: bool = False,
    command: str = "",
    cwd: Path | None = None,
) -> PermissionRequest:
    return PermissionRequest(
        call_id="c",
        tool={"execute": "bash", "write": "edit"}.get(action, "view"),
        action=action,
        title="go",
        paths=paths,
        is_outside=is_outside,
        command=command,
        cwd=cwd,
    )


MODES: tuple[PermissionMode, ...] = ("default", "accept-edits", "plan", "yolo")


@pytest.mark.parametrize(
    ("wanted", "said"),
    [
        pytest.param(request("read"), "allow allow allow allow", id="read inside"),
        pytest.param(request("read", is_outside=True), "ask ask ask ask", id="read outside"),
        pytest.param(request("list", is_outside=True), "ask ask ask ask", id="list outside"),
        pytest.param(request("write"), "ask allow deny allow", id="write inside"),
        pytest.param(request("write", is_outside=True), "ask ask deny ask", id="write outside"),
        pytest.param(request("execute"), "ask ask deny allow", id="execute inside"),
        pytest.param(request("execute", is_outside=True), "ask ask deny ask", id="execute outside"),
        pytest.param(request("fetch"), "ask ask deny allow", id="fetch"),
    ],
)
def test_modes_decide(wanted: PermissionRequest, said: str) -> None:
    kinds = [decide(wanted, mode=mode, grants=frozenset()).kind for mode in MODES]
    assert kinds == said.split()


@pytest.mark.parametrize(
    ("granted", "wanted", "kind"),
    [
        pytest.param(
            request("execute", command="ls", cwd=Path("/p")),
            request("execute", command="ls", cwd=Path("/p")),
            "allow",
            id="the same command",
        ),
        pytest.param(
            request("execute", command="ls", cwd=Path("/p")),
            request("execute", command="ls; rm -rf .", cwd=Path("/p")),
            "ask",
            id="a longer command",
        ),
        pytest.param(
            request("execute", command="ls", cwd=Path("/p")),
            request("execute", command="ls", cwd=Path("/q")),
            "ask",
            id="the same command elsewhere",
        ),
        pytest.param(
            request("write", paths=(SRC,)),
            request("write", paths=(Path("/p/other.py"),)),
            "allow",
            id="another edit inside the project",
        ),
        pytest.param(
            request("write", paths=(SRC,)),
            request("write", paths=(Path("/etc/hosts"),), is_outside=True),
            "ask",
            id="an edit outside after one inside",
        ),
        pytest.param(
            request("write", paths=(Path("/a"),), is_outside=True),
            request("write", paths=(Path("/b"),), is_outside=True),
            "ask",
            id="another file outside",
        ),
        pytest.param(
            request("read", paths=(Path("/a"),), is_outside=True),
            request("read", paths=(Path("/a"),), is_outside=True),
            "allow",
            id="the same file outside",
        ),
    ],
)
def test_a_grant_covers_what_was_shown_and_no_more(
    granted: PermissionRequest, wanted: PermissionRequest, kind: str
) -> None:
    assert decide(wanted, mode="default", grants=frozenset({granted.grant})).kind == kind


def test_a_grant_does_not_loosen_plan_mode() -> None:
    wanted = request("write", paths=(SRC,))
    assert decide(wanted, mode="plan", grants=frozenset({wanted.grant})).kind == "deny"
