"""What rules say to requests: to deny and to ask one subject suffices, to allow all is covered."""

from dataclasses import replace
from pathlib import Path

import pytest

from crush_kernel.permissions.policy import Policy, StandingRule
from crush_kernel.permissions.request import PermissionRequest
from crush_kernel.permissions.rule import parse_rule
from tests.permissions.ruling import HOME, PLACE, ROOT, bash, file, part, policy, web

LOOK = part("git status", is_read_only=True)
GO = ("bash(go build *)", "bash(go vet *)")


@pytest.mark.parametrize(
    ("rules", "request_", "is_allowed"),
    [
        pytest.param(GO, bash("go build ./...", "go vet ./..."), True, id="all parts covered"),
        pytest.param(GO, bash("go build ./...", "curl x", "sh"), False, id="one part not covered"),
        pytest.param(GO, bash("go buildx"), False, id="a longer word"),
        pytest.param(GO, bash("go build", LOOK), True, id="a part that only reads"),
        pytest.param(GO, bash(part("go build", writes=("x",))), True, id="what its words write"),
        pytest.param(
            GO, bash("go build", part("x", is_read_only=True, writes=("f",))), False, id="a writer"
        ),
        pytest.param(
            GO,
            bash("go build", part("cat /etc/x", is_read_only=True, is_outside=True)),
            True,
            id="reads outside that are not known to be",
        ),
        pytest.param(("bash",), bash("anything"), True, id="a rule for every command"),
        pytest.param(("bash",), bash(), True, id="a line that cannot be read"),
        pytest.param(GO, bash(), False, id="a line that cannot be read, by a pattern"),
        pytest.param(("*",), bash("anything"), True, id="a rule for everything"),
        pytest.param(("bash:execute",), bash("anything"), True, id="a rule with its action"),
        pytest.param(("bash:read",), bash("anything"), False, id="a rule with another action"),
        pytest.param(GO, bash(LOOK), False, id="nothing that needs a rule"),
        pytest.param(("edit",), file("edit", "a"), True, id="a tool"),
        pytest.param(("edit",), file("write", "a"), False, id="another tool"),
        pytest.param(("edit",), file("edit", "/etc/x"), True, id="a tool, outside"),
        pytest.param(("edit(src/**)",), file("edit", "src/a"), True, id="a file"),
        pytest.param(("edit(src/**)",), file("write", "src/a"), True, id="by another tool"),
        pytest.param(("write(src/**)",), file("multiedit", "src/a"), True, id="by a third"),
        pytest.param(("edit(src/**)",), file("edit", "lib/a"), False, id="a file elsewhere"),
        pytest.param(("view(src/**)",), file("edit", "src/a"), False, id="a rule to read"),
        pytest.param(("edit(~/x)",), file("view", "/home/u/x", "read"), False, id="to write"),
        pytest.param(("view(~/x)",), file("view", "/home/u/x", "read"), True, id="to read"),
        pytest.param(("grep(~/x)",), file("ls", "/home/u/x", "list"), True, id="to list"),
        pytest.param(("fetch",), web("example.org"), True, id="any server"),
        pytest.param(("fetch",), web("a.b 10.0.0.1", is_private=True), False, id="but private"),
        pytest.param(("fetch(domain:a.b)",), web("a.b"), True, id="a server"),
        pytest.param(
            ("fetch(domain:a.b)",), web("a.b", "agentic_fetch"), True, id="read by others"
        ),
        pytest.param(("fetch(domain:a.b)",), web("x.a.b"), False, id="a server below"),
        pytest.param(("fetch(domain:a.b)",), web("a.b", "sourcegraph"), False, id="other tools"),
        pytest.param(
            ("fetch(domain:a.b)",), web("a.b", "download", path="x"), False, id="and a file"
        ),
        pytest.param(
            ("fetch(domain:a.b)", "edit(x)"), web("a.b", "download", path="x"), True, id="both"
        ),
        pytest.param(
            ("download(domain:a.b)",), web("a.b", "download", path="x"), True, id="downloads"
        ),
        pytest.param(
            ("download(domain:a.b)",), web("a.b", "download", path="/x"), False, id="but outside"
        ),
        pytest.param(("edit(x)",), web("a.b", "download", path="x"), False, id="a file alone"),
        pytest.param(("mcp_x_*",), file("mcp_x_do", "a", "execute"), True, id="a server's tool"),
    ],
)
def test_a_request_is_allowed_if_all_of_it_is(
    rules: tuple[str, ...], request_: PermissionRequest, *, is_allowed: bool
) -> None:
    assert bool(policy(allow=rules).allows(request_)) is is_allowed


def test_all_rules_that_it_takes_are_named() -> None:
    request = bash("go vet ./...", "go build ./...")
    assert policy(allow=GO).allows(request) == "bash(go build *), bash(go vet *)"


OUT = ROOT / "out.txt"
ELSEWHERE = Path("/elsewhere/out.txt")
BUILD = bash("go build")


@pytest.mark.parametrize(
    ("rules", "request_", "is_allowed"),
    [
        pytest.param(
            GO, replace(BUILD, writes=(OUT,), redirects=(OUT,)), False, id="written inside"
        ),
        pytest.param(
            (*GO, "edit(*.txt)"),
            replace(BUILD, writes=(OUT,), redirects=(OUT,)),
            True,
            id="written inside, with a rule for it",
        ),
        pytest.param(
            (*GO, "edit(*.txt)"),
            replace(BUILD, writes=(ELSEWHERE,), redirects=(ELSEWHERE,), paths=(ELSEWHERE,)),
            False,
            id="written outside",
        ),
        pytest.param(GO, replace(BUILD, reads=(OUT,), redirects=(OUT,)), True, id="read inside"),
        pytest.param(
            GO,
            replace(BUILD, reads=(ELSEWHERE,), redirects=(ELSEWHERE,), paths=(ELSEWHERE,)),
            False,
            id="read outside",
        ),
        pytest.param(
            (*GO, "view(/elsewhere/**)"),
            replace(BUILD, reads=(ELSEWHERE,), redirects=(ELSEWHERE,), paths=(ELSEWHERE,)),
            True,
            id="read outside, with a rule for it",
        ),
        pytest.param(
            GO, replace(BUILD, unnamed=("goes on in the background",)), False, id="background"
        ),
        pytest.param(
            ("bash",),
            replace(BUILD, unnamed=("goes on in the background",)),
            True,
            id="background, any command",
        ),
        pytest.param(
            GO,
            replace(BUILD, cwd=Path("/elsewhere"), paths=(Path("/elsewhere"),)),
            False,
            id="in a folder outside",
        ),
        pytest.param(
            GO,
            replace(
                bash("go build", part("cat x", is_read_only=True, is_outside=True)),
                reads=(ELSEWHERE,),
                paths=(ELSEWHERE,),
            ),
            False,
            id="a part that reads outside",
        ),
        pytest.param(
            (*GO, "view(/elsewhere/**)"),
            replace(
                bash("go build", part("cat x", is_read_only=True, is_outside=True)),
                reads=(ELSEWHERE,),
                paths=(ELSEWHERE,),
            ),
            True,
            id="a part that reads outside, with a rule for it",
        ),
        pytest.param(
            GO,
            replace(
                bash(part("go build /elsewhere/x", is_outside=True)),
                reads=(ELSEWHERE,),
                paths=(ELSEWHERE,),
            ),
            True,
            id="outside by words that are covered",
        ),
    ],
)
def test_a_pattern_of_commands_covers_words_and_nothing_around_them(
    rules: tuple[str, ...], request_: PermissionRequest, *, is_allowed: bool
) -> None:
    assert bool(policy(allow=rules).allows(request_)) is is_allowed


@pytest.mark.parametrize(
    ("rules", "request_", "is_allowed"),
    [
        pytest.param(("bash",), bash("curl x"), False, id="a tool"),
        pytest.param(("*",), bash("curl x"), False, id="everything"),
        pytest.param(("bash(*)",), bash("curl x"), False, id="every command"),
        pytest.param(("bash(curl:*)",), bash("curl x"), True, id="the program"),
        pytest.param(("bash(cur*:*)",), bash("curl x"), False, id="some programs"),
        pytest.param(("bash(rm:*)",), bash(part("rm -r b", writes=("b",))), False, id="not what"),
        pytest.param(("bash(rm:*)",), bash("rm -r $b"), False, id="what is not known"),
        pytest.param(("bash(rm -r b)",), bash(part("rm -r b", writes=("b",))), True, id="what"),
        pytest.param(("bash(rm -r b*)",), bash(part("rm -r b", writes=("b",))), False, id="a star"),
        pytest.param(("bash(rm -r b)",), bash(LOOK, "rm -r b"), True, id="beside one that reads"),
        pytest.param(("edit(.bashrc)",), file("edit", ".bashrc"), True, id="the file"),
        pytest.param(("edit(**)",), file("edit", ".bashrc"), False, id="some files"),
        pytest.param(("edit(.git)",), file("edit", ".git/hooks/x"), False, id="its folder"),
        pytest.param(("edit",), file("edit", ".bashrc"), False, id="the tool for files"),
        pytest.param(("fetch(domain:a.b)",), web("a.b"), True, id="the server"),
        pytest.param(("fetch(domain:*.b)",), web("a.b"), False, id="some servers"),
        pytest.param(
            ("download(domain:a.b)",), web("a.b", "download", path=".bashrc"), False, id="whence"
        ),
        pytest.param(
            ("download(domain:a.b)", "edit(.bashrc)"),
            web("a.b", "download", path=".bashrc"),
            True,
            id="whence and where",
        ),
    ],
)
def test_what_is_dangerous_is_allowed_by_name_only(
    rules: tuple[str, ...], request_: PermissionRequest, *, is_allowed: bool
) -> None:
    assert bool(policy(allow=rules).allows(request_, by_name=True)) is is_allowed


ENV = ROOT / ".env"


@pytest.mark.parametrize(
    ("rule", "request_", "is_denied"),
    [
        pytest.param("bash", bash("ls"), True, id="a tool"),
        pytest.param("*", file("todos", "x", "use"), True, id="everything"),
        pytest.param("bash(curl:*)", bash("ls", "curl x", "sh"), True, id="one part"),
        pytest.param("bash(curl:*)", bash("timeout 5 curl x", "curl x"), True, id="in a wrapper"),
        pytest.param("bash(curl:*)", bash("/opt/curl x"), True, id="from a folder"),
        pytest.param("bash(curl:*)", bash("curlie x"), False, id="a longer name"),
        pytest.param("edit(.env)", file("edit", "a/.env"), True, id="a file"),
        pytest.param("edit(.env)", file("write", ".env"), True, id="by another tool"),
        pytest.param("multiedit(.env)", file("notebook_edit", ".env"), True, id="by a third"),
        pytest.param("edit(.env)", file("lsp_rename", ".env"), True, id="by a language server"),
        pytest.param("edit(.env)", web("a.b", "download", path=".env"), True, id="by download"),
        pytest.param("download(.env)", file("write", ".env"), True, id="by all that write"),
        pytest.param("edit(.env)", replace(bash("x"), writes=(ENV,)), True, id="by a command"),
        pytest.param("edit(.env)", replace(bash("x"), reads=(ENV,)), False, id="read by a command"),
        pytest.param("edit(.env)", file("view", ".env", "read"), False, id="reading it"),
        pytest.param("view(.env)", file("view", ".env", "read"), True, id="a file to read"),
        pytest.param("view(.env)", file("grep", ".env", "read"), True, id="by another reader"),
        pytest.param("view(key/)", file("ls", "key", "list"), True, id="a folder to list"),
        pytest.param("view(.env)", replace(bash("x"), reads=(ENV,)), True, id="by a command"),
        pytest.param("view(.env)", file("ls", ".", "list"), False, id="a folder around it"),
        pytest.param("view(.env)", file("edit", ".env"), False, id="changing it"),
        pytest.param("edit", file("write", ".env"), False, id="a tool alone is that tool"),
        pytest.param("fetch(domain:a.b)", web("a.b"), True, id="a server"),
        pytest.param("fetch(domain:a.b)", web("x.a.b", "download"), True, id="below, by another"),
        pytest.param("fetch(domain:a.b)", web("a.b", "sourcegraph"), True, id="by any tool"),
        pytest.param("fetch(domain:a.b)", web("a.b 10.0.0.1", is_private=True), True, id="private"),
        pytest.param("fetch(domain:a.b)", web("b"), False, id="above it"),
    ],
)
def test_one_subject_is_enough_to_deny_or_ask(
    rule: str, request_: PermissionRequest, *, is_denied: bool
) -> None:
    assert policy(deny=(rule,)).denies(request_) == (rule if is_denied else "")
    assert policy(ask=(rule,)).asks(request_) == (rule if is_denied else "")


@pytest.mark.parametrize(
    ("rule", "request_"),
    [
        pytest.param("bash(git push:*)", bash("git -C . push"), id="options between"),
        pytest.param("bash(rm:*)", bash("$run x"), id="a program only the shell knows"),
        pytest.param("bash(rm:*)", bash(), id="a line that cannot be read"),
        pytest.param(
            "edit(src/key/**)", replace(bash("x"), writes=(ROOT / "src",)), id="a folder around it"
        ),
    ],
)
def test_what_may_be_denied_is_asked(rule: str, request_: PermissionRequest) -> None:
    assert policy(deny=(rule,)).denies(request_) == ""
    assert policy(deny=(rule,)).asks(request_) == rule


def test_a_project_may_tighten_and_not_loosen() -> None:
    def of_project(verdict: str, rule: str) -> Policy:
        assert verdict in ("allow", "ask", "deny")
        return Policy((StandingRule(verdict, parse_rule(rule), scope="project"),), PLACE)

    assert not of_project("allow", "bash").allows(bash("ls"))
    assert of_project("ask", "bash").asks(bash("ls"))
    assert of_project("deny", "bash").denies(bash("ls"))


def test_patterns_begin_where_they_say() -> None:
    rules = policy(allow=("view(~/notes/**)", "edit(/p/src/**)"))
    assert rules.allows(file("view", str(HOME / "notes/a"), "read"))
    assert rules.allows(file("edit", "src/a"))
    assert not rules.allows(file("view", "/root/notes/a", "read"))
