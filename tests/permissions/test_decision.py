"""What the rules say, mode by mode."""

from dataclasses import replace
from pathlib import Path

import pytest

from crush_kernel.config.settings import PermissionMode
from crush_kernel.permissions.decision import Allow, Ask, Decision, Deny, decide
from crush_kernel.permissions.policy import Policy
from crush_kernel.permissions.request import Action, Grant, PermissionRequest
from tests.permissions.ruling import bash, policy

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
        pytest.param(request("fetch"), "ask ask ask allow", id="fetch"),
        pytest.param(request("fetch", paths=(SRC,)), "ask ask deny allow", id="download"),
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


ASKING = pytest.mark.parametrize(
    ("rules", "hook"),
    [
        pytest.param(policy(ask=("edit(keys/**)", "view(keys/**)")), None, id="rule"),
        pytest.param(policy(), Ask("a hook"), id="hook"),
    ],
)


@ASKING
@pytest.mark.parametrize("action", ["write", "read"])
@pytest.mark.parametrize("mode", ["default", "accept-edits", "yolo"])
def test_a_grant_of_the_project_answers_nobody_who_wants_to_be_asked_of_a_file(
    *, rules: Policy, hook: Decision | None, action: Action, mode: PermissionMode
) -> None:
    one, other = (request(action, paths=(Path(f"/p/keys/{name}"),)) for name in "ab")
    whole, exact = frozenset({one.grant}), frozenset({one.grant, one.exact_grant})

    def kind(wanted: PermissionRequest, grants: frozenset[Grant]) -> str:
        return decide(wanted, mode=mode, grants=grants, policy=rules, hook=hook).kind

    assert one.grant == other.grant
    assert kind(one, whole) == kind(other, whole) == kind(other, exact) == "ask"
    assert kind(one, exact) == "allow"


def test_a_grant_does_not_loosen_plan_mode() -> None:
    wanted = request("write", paths=(SRC,))
    assert decide(wanted, mode="plan", grants=frozenset({wanted.grant})).kind == "deny"


INSIDE, OUTSIDE, RUN = request("read"), request("read", is_outside=True), request("execute")


@pytest.mark.parametrize(
    ("wanted", "bound", "said"),
    [
        pytest.param(INSIDE, Deny("no", "bounds"), "deny deny deny deny", id="reading refused"),
        pytest.param(RUN, Deny("no", "bounds"), "deny deny deny deny", id="running refused"),
        pytest.param(RUN, Allow("bounds"), "allow allow deny allow", id="running allowed"),
        pytest.param(OUTSIDE, Allow("bounds"), "allow allow allow allow", id="reading allowed"),
        pytest.param(OUTSIDE, None, "ask ask ask ask", id="left to the rules"),
    ],
)
def test_bounds_speak_after_the_mode_and_before_all_that_allows(
    wanted: PermissionRequest, bound: Allow | Deny | None, said: str
) -> None:
    kinds = [decide(wanted, mode=mode, grants=frozenset(), bound=bound).kind for mode in MODES]
    assert kinds == said.split()


@pytest.mark.parametrize("mode", MODES)
def test_no_grant_widens_bounds(mode: PermissionMode) -> None:
    grants = frozenset({RUN.grant, OUTSIDE.grant, INSIDE.grant})
    for wanted in (RUN, OUTSIDE, INSIDE):
        assert decide(wanted, mode=mode, grants=grants, bound=Deny("no", "bounds")).kind == "deny"


def test_what_was_granted_is_told_as_granted_though_bounds_allow_it_too() -> None:
    grants = frozenset({RUN.grant})
    assert decide(RUN, mode="default", grants=grants, bound=Allow("bounds")) == Allow(
        "allowed for this session", "grant"
    )


def test_a_grant_is_the_same_whoever_asked_for_it() -> None:
    assert replace(RUN, on_behalf="agent: task").grant == RUN.grant


USED = request("use")
DELETES = replace(bash("rm -r build"), dangers=("It removes build.",))
FREE, CAREFUL, STRICT = Allow("h", "hook"), Ask("h"), Deny("no", "h", "hook")


@pytest.mark.parametrize(
    ("wanted", "hook", "said"),
    [
        pytest.param(USED, None, "allow allow allow allow", id="nothing but the conversation"),
        pytest.param(USED, CAREFUL, "ask ask ask ask", id="even that if a hook wants it"),
        pytest.param(INSIDE, STRICT, "deny deny deny deny", id="a hook refuses reading"),
        pytest.param(RUN, STRICT, "deny deny deny deny", id="a hook refuses running"),
        pytest.param(INSIDE, CAREFUL, "ask ask ask ask", id="a hook has reading asked"),
        pytest.param(RUN, CAREFUL, "ask ask deny ask", id="a hook has running asked"),
        pytest.param(RUN, FREE, "allow allow deny allow", id="a hook allows running"),
        pytest.param(OUTSIDE, FREE, "allow allow allow allow", id="a hook allows reading outside"),
        pytest.param(DELETES, None, "ask ask deny ask", id="a danger"),
        pytest.param(DELETES, FREE, "ask ask deny ask", id="no hook allows a danger"),
        pytest.param(DELETES, STRICT, "deny deny deny deny", id="a hook refuses a danger"),
    ],
)
def test_hooks_refuse_and_ask_in_every_mode_and_allow_no_danger(
    wanted: PermissionRequest, hook: Decision | None, said: str
) -> None:
    kinds = [decide(wanted, mode=mode, grants=frozenset(), hook=hook).kind for mode in MODES]
    assert kinds == said.split()


@pytest.mark.parametrize(
    ("rules", "hook", "is_granted", "said"),
    [
        pytest.param(policy(), None, True, "allow allow deny allow", id="granted"),
        pytest.param(policy(allow=("bash",)), FREE, False, "ask ask deny ask", id="bare rule"),
        pytest.param(policy(allow=("bash(rm:*)",)), None, False, "allow allow deny allow", id="rm"),
        pytest.param(
            policy(allow=("bash(rm -r build)",)), None, False, "allow allow deny allow", id="named"
        ),
        pytest.param(
            policy(allow=("bash(rm -r build)",), ask=("bash(rm:*)",)),
            FREE,
            False,
            "ask ask deny ask",
            id="asked before it is allowed",
        ),
        pytest.param(
            policy(ask=("bash",)), CAREFUL, True, "allow allow deny allow", id="asked and granted"
        ),
        pytest.param(
            policy(allow=("bash(rm -r build)",), deny=("bash(rm:*)",)),
            FREE,
            True,
            "deny deny deny deny",
            id="denied before all else",
        ),
    ],
)
def test_a_danger_passes_by_name_or_grant_and_never_past_a_refusal(
    *, rules: Policy, hook: Decision | None, is_granted: bool, said: str
) -> None:
    grants = frozenset({DELETES.grant} if is_granted else ())
    kinds = [
        decide(DELETES, mode=mode, grants=grants, policy=rules, hook=hook).kind for mode in MODES
    ]
    assert kinds == said.split()


@pytest.mark.parametrize(
    ("rules", "hook", "bound", "who"),
    [
        pytest.param(policy(deny=("bash",)), STRICT, Deny("b", "b", "bounds"), "rule", id="rule"),
        pytest.param(policy(), STRICT, Deny("b", "b", "bounds"), "bounds", id="bounds"),
        pytest.param(policy(), STRICT, None, "mode", id="mode"),
    ],
)
def test_of_several_refusals_the_first_is_told(
    rules: Policy, hook: Deny, bound: Deny | None, who: str
) -> None:
    word = decide(RUN, mode="plan", grants=frozenset(), policy=rules, hook=hook, bound=bound)
    assert isinstance(word, Deny)
    assert word.by == who


@pytest.mark.parametrize(
    ("mode", "rules", "hook", "is_granted", "who"),
    [
        pytest.param("yolo", policy(allow=("bash",)), FREE, True, "mode", id="mode"),
        pytest.param("default", policy(allow=("bash",)), FREE, True, "hook", id="hook"),
        pytest.param("default", policy(allow=("bash",)), None, True, "rule", id="rule"),
        pytest.param("default", policy(), None, True, "grant", id="grant"),
    ],
)
def test_of_several_allowances_the_first_is_told(
    *, mode: PermissionMode, rules: Policy, hook: Allow | None, is_granted: bool, who: str
) -> None:
    grants = frozenset({RUN.grant} if is_granted else ())
    word = decide(RUN, mode=mode, grants=grants, policy=rules, hook=hook)
    assert isinstance(word, Allow)
    assert word.by == who


def test_what_is_allowed_anyway_is_not_told_as_the_merit_of_yolo_mode() -> None:
    assert decide(INSIDE, mode="yolo", grants=frozenset()) == Allow("reading inside the project")


@pytest.mark.parametrize("mode", MODES)
def test_a_private_server_is_asked_in_every_mode_that_may_ask(mode: PermissionMode) -> None:
    wanted = replace(request("fetch"), server="10.0.0.1", is_private=True)
    assert decide(wanted, mode=mode, grants=frozenset()).kind == "ask"
