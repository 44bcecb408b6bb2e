"""What more rules can do, and what they cannot."""

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from crush_kernel.config.ruletexts import VERDICTS, Verdict
from crush_kernel.config.settings import PermissionMode
from crush_kernel.permissions.decision import decide
from crush_kernel.permissions.policy import Policy, StandingRule
from crush_kernel.permissions.request import CommandPart, PermissionRequest
from crush_kernel.permissions.rule import parse_rule
from tests.permissions.ruling import PLACE, ROOT, file, web

WORDS = st.sampled_from(["git", "log", "push", "-C", "*", "a b", "rm", "--", "x=1"])
PATHS = st.sampled_from(["src/a.py", "src", ".env", "a/.env", "/etc/hosts", "/home/u/x", "."])
RULES = st.sampled_from(
    [
        *("bash", "*", "bash(git:*)", "bash(git log:*)", "bash(git log)", "bash(rm *)"),
        *("bash(git * '*')", "bash('*' x)", "edit", "view", "edit(src/**)", "edit(.env)"),
        *("write(**)", "view(/etc/**)", "view(~/x)", "view(.env)", "edit(./src)", "edit:write"),
        *("fetch", "fetch(domain:a.b)", "fetch(domain:*.a.b)", "download(domain:a.b)", "*:read"),
    ]
)


def standing(verdict: Verdict, text: str) -> StandingRule:
    return StandingRule(verdict, parse_rule(text))


STANDING = st.builds(standing, st.sampled_from(VERDICTS), RULES)
MODES: st.SearchStrategy[PermissionMode] = st.sampled_from(
    ["default", "accept-edits", "plan", "yolo"]
)


@st.composite
def parts(draw: st.DrawFn) -> CommandPart:
    argv = tuple(draw(st.lists(st.one_of(st.none(), WORDS), max_size=4)))
    return CommandPart(
        " ".join(word or "$x" for word in argv),
        argv,
        "does",
        is_read_only=draw(st.booleans()),
        is_outside=draw(st.booleans()),
    )


def real(paths: list[str]) -> tuple[Path, ...]:
    return tuple(ROOT / path for path in paths)


@st.composite
def commands(draw: st.DrawFn) -> PermissionRequest:
    reads = real(draw(st.lists(PATHS, max_size=2)))
    writes = real(draw(st.lists(PATHS, max_size=2)))
    outside = tuple(path for path in (*reads, *writes) if not path.is_relative_to(ROOT))
    return PermissionRequest(
        "c",
        "bash",
        "execute",
        "run",
        command="x",
        cwd=ROOT,
        paths=outside,
        is_outside=bool(outside),
        parts=tuple(draw(st.lists(parts(), max_size=3))),
        reads=reads,
        writes=writes,
        redirects=tuple(draw(st.lists(st.sampled_from((*reads, *writes)))) if reads else ()),
        unnamed=draw(st.sampled_from([(), (), ("goes on in the background",)])),
        dangers=draw(st.sampled_from([(), ("It is banned",)])),
    )


def reading(path: str) -> PermissionRequest:
    return file("view", path, "read")


def download(server: str, path: str) -> PermissionRequest:
    return web(server, "download", path=path)


REQUESTS = st.one_of(
    commands(),
    st.builds(file, st.sampled_from(["edit", "write"]), PATHS),
    PATHS.map(reading),
    st.builds(web, st.sampled_from(["a.b", "x.a.b", "c.d"])),
    st.builds(download, st.sampled_from(["a.b", "x.a.b"]), PATHS),
)


def kind(request: PermissionRequest, rules: list[StandingRule], mode: PermissionMode) -> str:
    policy = Policy(tuple(rules), PLACE)
    return decide(request, mode=mode, grants=frozenset(), policy=policy).kind


def orders(
    rules: list[StandingRule],
) -> st.SearchStrategy[tuple[list[StandingRule], list[StandingRule]]]:
    return st.tuples(st.just(rules), st.permutations(rules))


STRICTNESS = ("allow", "ask", "deny")


@given(REQUESTS, st.lists(STANDING, max_size=5), STANDING, MODES)
def test_one_more_rule_moves_a_decision_only_its_own_way(
    request: PermissionRequest, rules: list[StandingRule], more: StandingRule, mode: PermissionMode
) -> None:
    before, after = kind(request, rules, mode), kind(request, [*rules, more], mode)
    change = STRICTNESS.index(after) - STRICTNESS.index(before)
    assert change <= 0 if more.verdict == "allow" else change >= 0
    if more.verdict == "allow" and before != "allow":
        assert after in (before, "allow")


@given(REQUESTS, st.lists(STANDING, max_size=5).flatmap(orders), MODES)
def test_the_order_of_rules_does_not_matter(
    request: PermissionRequest,
    orders: tuple[list[StandingRule], list[StandingRule]],
    mode: PermissionMode,
) -> None:
    one, other = (
        decide(request, mode=mode, grants=frozenset(), policy=Policy(tuple(rules), PLACE))
        for rules in orders
    )
    assert one == other


@given(REQUESTS, RULES)
def test_what_a_rule_allows_it_can_also_forbid(request: PermissionRequest, text: str) -> None:
    def one(verdict: Verdict) -> Policy:
        return Policy((standing(verdict, text),), PLACE)

    if one("allow").allows(request):
        assert one("deny").denies(request) or one("deny").asks(request)
        assert one("ask").asks(request)


@given(commands(), st.lists(RULES, max_size=5))
def test_a_command_is_allowed_only_with_each_part_alone(
    request: PermissionRequest, texts: list[str]
) -> None:
    policy = Policy(tuple(standing("allow", text) for text in texts), PLACE)
    if policy.allows(request) and "bash" not in texts and "*" not in texts:
        assert request.parts
        assert not request.unnamed
        for part in request.parts:
            assert part.is_read_only or any(
                parse_rule(text).pattern is not None and _covers(text, part) for text in texts
            )


def _covers(text: str, part: CommandPart) -> bool:
    alone = PermissionRequest("c", "bash", "execute", "run", command="x", cwd=ROOT, parts=(part,))
    return bool(Policy((standing("allow", text),), PLACE).allows(alone))
