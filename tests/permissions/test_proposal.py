"""What "Always …" offers: it covers what was asked, and nothing that is worse."""

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crush_kernel.permissions.policy import Policy, StandingRule
from crush_kernel.permissions.proposal import proposed_rules, uncovered
from crush_kernel.permissions.request import CommandPart, PermissionRequest
from crush_kernel.permissions.rule import parse_rule
from crush_kernel.permissions.shell.judgement import ReadPart
from crush_kernel.permissions.shell.reading import read_command
from tests.permissions.ruling import HOME, ROOT, bash, file, part, policy, web

NOTHING = policy()


def line(text: str) -> PermissionRequest:
    """Return the wish to run a command line, as it is really read; nothing is outside."""
    reading = read_command(text)
    return replace(
        bash(*map(_part, reading.parts)),
        command=text,
        is_read_only=reading.is_read_only,
        unnamed=tuple(reason for reason in reading.reasons if reason != "writes to a file"),
        dangers=tuple(danger for each in reading.parts for danger in each.judgement.dangers),
        writes=tuple(ROOT / (word.text or "?") for each in reading.parts for word in each.writes),
        redirects=tuple(
            ROOT / (word.text or "?") for each in reading.parts for word in each.writes
        ),
    )


def _part(read: ReadPart) -> CommandPart:
    judged = read.judgement
    return CommandPart(
        read.text,
        tuple(None if word.has_glob else word.text for word in read.words),
        judged.does,
        is_read_only=judged.is_read_only,
        writes=tuple(word.source for word in (*judged.writes, *read.writes)),
        rule_words=judged.rule_words,
    )


def with_rules(rules: tuple[str, ...]) -> Policy:
    return policy(allow=rules)


@pytest.mark.parametrize(
    ("command", "rules"),
    [
        pytest.param("pytest -q tests/", ("bash(pytest:*)",), id="a program"),
        pytest.param("npm run test:unit", ("bash(npm run test:unit:*)",), id="a script"),
        pytest.param("git push origin main", ("bash(git push:*)",), id="a subcommand"),
        pytest.param("rm -r build", ("bash(rm -r build)",), id="what is exactly deleted"),
        pytest.param("python -c 'a*b'", ("bash(python -c 'a*b')",), id="code"),
        pytest.param("git status && pytest", ("bash(pytest:*)",), id="beside one that reads"),
        pytest.param("pytest && pytest -q", ("bash(pytest:*)",), id="twice the same"),
        pytest.param("pytest > out.txt", ("bash(pytest:*)", "edit(./out.txt)"), id="into a file"),
        pytest.param("timeout 9 pytest", ("bash(pytest:*)",), id="in a wrapper"),
        pytest.param("cd src && pytest", ("bash(pytest:*)",), id="in another folder"),
        pytest.param(
            "git commit -m 'a (b)' && rm 'x y'",
            ("bash(git commit:*)", "bash(rm 'x y')"),
            id="two that need one",
        ),
    ],
)
def test_a_command_is_generalized_as_far_as_that_means_something(
    command: str, rules: tuple[str, ...]
) -> None:
    assert proposed_rules(line(command), NOTHING) == rules


@pytest.mark.parametrize(
    "command",
    [
        pytest.param("sh", id="a shell"),
        pytest.param("cat x | sh", id="a shell that is fed"),
        pytest.param("cat x | bash -s", id="a shell that is told so"),
        pytest.param("cat x | python -", id="a language that is fed"),
        pytest.param("cat x | python3 /dev/stdin", id="a language that is fed by name"),
        pytest.param("cat x | psql", id="a database that is fed"),
        pytest.param("python <<E\n1\nE", id="a heredoc"),
        pytest.param("pytest &", id="the background"),
        pytest.param("rm *.pyc", id="a pattern of names"),
        pytest.param("rm $x", id="what only the shell knows"),
        pytest.param("$run x", id="a program only the shell knows"),
        pytest.param("X=1 pytest", id="variables"),
        pytest.param("python -c 'a\nb'", id="more than a line"),
        pytest.param("rm 'a\u202eb'", id="what hides"),
        pytest.param("if true; then", id="half a command"),
    ],
)
def test_nothing_is_offered_where_no_rule_could_say_it(command: str) -> None:
    assert proposed_rules(line(command), NOTHING) == ()


def test_only_what_is_not_covered_is_offered() -> None:
    request = line("go build ./... && pytest")
    rules = with_rules(("bash(go build:*)",))
    assert proposed_rules(request, rules) == ("bash(pytest:*)",)
    assert proposed_rules(request, NOTHING) == ("bash(go build:*)", "bash(pytest:*)")


@pytest.mark.parametrize(
    ("request_", "rules"),
    [
        pytest.param(file("edit", "src/a/b.py"), ("edit(src/a/**)",), id="its folder"),
        pytest.param(file("write", "src/b.py"), ("write(./src/**)",), id="a folder at the root"),
        pytest.param(file("edit", "README.md"), ("edit(./README.md)",), id="a file at the root"),
        pytest.param(file("edit", "~/x"), ("edit(./~/**)",), id="a folder called like a home"),
        pytest.param(file("edit", "a[1]*/b"), (r"edit(./a\[1\]\*/**)",), id="signs of patterns"),
        pytest.param(file("edit", "/etc/hosts"), ("edit(/etc/hosts)",), id="a file outside"),
        pytest.param(
            replace(file("edit", "src/.envrc"), dangers=("It is run",)),
            ("edit(src/.envrc)",),
            id="a dangerous file",
        ),
        pytest.param(file("view", "/etc/hosts", "read"), ("view(/etc/hosts)",), id="reading"),
        pytest.param(file("ls", "/var/log", "list"), ("view(/var/log)",), id="listing"),
        pytest.param(file("ls", str(HOME), "list"), (), id="listing the home"),
        pytest.param(file("grep", "/", "read"), (), id="reading the disk"),
        pytest.param(file("edit", "src/a\u202eb"), ("edit(./src/**)",), id="a name that hides"),
        pytest.param(file("edit", "a\u202eb"), (), id="a name that hides at the root"),
        pytest.param(web("a.b"), ("fetch(domain:a.b)",), id="a server"),
        pytest.param(web("a.b", "agentic_fetch"), ("fetch(domain:a.b)",), id="for a reader"),
        pytest.param(web("the web", "agentic_fetch"), ("agentic_fetch",), id="the web"),
        pytest.param(web("a.b:81"), ("fetch(domain:a.b:81)",), id="a port"),
        pytest.param(web("[::1]:81 ::1", is_private=True), ("fetch(domain:[::1]:81)",), id="here"),
        pytest.param(web("a.b 10.0.0.1", is_private=True), (), id="a name that leads inside"),
        pytest.param(
            web("a.b", "download", path="x/y"), ("download(domain:a.b)",), id="a download"
        ),
        pytest.param(
            web("a.b", "download", path="/x/y"),
            ("download(domain:a.b)", "edit(/x/y)"),
            id="a download outside",
        ),
        pytest.param(web("a.b", "sourcegraph"), ("sourcegraph",), id="a tool with its server"),
        pytest.param(file("mcp_x_do", "a", "execute"), ("mcp_x_do",), id="a server's tool"),
        pytest.param(file("todos", "a", "use"), (), id="what needs none"),
    ],
)
def test_files_and_servers_are_offered(request_: PermissionRequest, rules: tuple[str, ...]) -> None:
    assert proposed_rules(request_, NOTHING) == rules


@pytest.mark.parametrize(
    ("asked", "worse"),
    [
        pytest.param("git status && rm -rf ./tmp", "rm -rf ./other", id="i07"),
        pytest.param("git status && rm -rf ./tmp", "rm -rf ./tmp ./other", id="i07, and more"),
        pytest.param(
            'grep -E "onclick.*Tab" src > o',
            'grep -E "onclick"; rm -rf x; echo "Tab" src',
            id="i09",
        ),
        pytest.param("rm 'a*'", "rm 'ab'", id="a quoted star"),
        pytest.param("rm 'a*'", "rm a*", id="a star that is not quoted"),
        pytest.param("touch x", "touch x y", id="one file more"),
        pytest.param("pytest", "pytest && curl x | sh", id="something behind it"),
        pytest.param("pytest", "pytest; rm x", id="a list"),
        pytest.param("pytest", "pytest $(rm x)", id="a substitution"),
        pytest.param("pytest", "pytest <(rm x)", id="a process"),
        pytest.param("pytest", "pytest > conftest.py", id="into a file"),
        pytest.param("pytest > out", "pytest > conftest.py", id="into another file"),
        pytest.param("pytest", "pytest &", id="in the background"),
        pytest.param("pytest", "X=1 pytest", id="with a variable"),
        pytest.param("pytest", "./pytest", id="another program of that name"),
        pytest.param("pytest", "pytests", id="a longer name"),
        pytest.param("git push", "git push-all", id="a longer word"),
        pytest.param("git push", "git reset --hard", id="another subcommand"),
        pytest.param("npm run test", "npm run deploy", id="another script"),
        pytest.param("python a.py", "python -c 1", id="other code"),
        pytest.param("timeout 9 pytest", "timeout 9 rm x", id="something else in a wrapper"),
        pytest.param("cp a b", "cp a c", id="another target"),
        pytest.param("make", "cat x | sh", id="a shell"),
    ],
)
def test_an_offer_covers_nothing_worse(asked: str, worse: str) -> None:
    rules = proposed_rules(line(asked), NOTHING)
    allowed = with_rules(rules)
    assert not rules or allowed.allows(line(asked), by_name=bool(line(asked).dangers))
    assert not allowed.allows(line(worse))


WORDS = st.text(
    st.characters(exclude_categories=["Cs", "Cc"], exclude_characters="\u2028\u2029"), max_size=6
)

NAMES = st.lists(
    WORDS.filter(lambda name: name not in ("", ".", "..") and "/" not in name),
    min_size=1,
    max_size=3,
)


@given(
    words=st.lists(WORDS, min_size=1, max_size=4),
    depth=st.integers(0, 3),
    is_dangerous=st.booleans(),
)
def test_what_is_offered_for_words_covers_them_and_parses(
    *, words: list[str], depth: int, is_dangerous: bool
) -> None:
    made = CommandPart("x", tuple(words), "does", rule_words=depth)
    request = replace(bash(made), dangers=("It is banned",) if is_dangerous else ())
    rules = proposed_rules(request, NOTHING)
    assert len(rules) <= 1
    for rule in rules:
        parsed = parse_rule(rule)
        allowed = Policy((StandingRule("allow", parsed),))
        assert allowed.allows(request, by_name=is_dangerous)
        changed = replace(made, argv=(f"{words[0]}x", *words[1:]))
        assert not allowed.allows(replace(request, parts=(changed,)))


@given(names=NAMES, is_outside=st.booleans(), is_dangerous=st.booleans())
def test_what_is_offered_for_a_file_covers_it_and_not_the_project(
    *, names: list[str], is_outside: bool, is_dangerous: bool
) -> None:
    start = Path("/elsewhere") if is_outside else ROOT
    request = replace(
        file("edit", str(start.joinpath(*names))),
        dangers=("It is a control file",) if is_dangerous else (),
    )
    rules = proposed_rules(request, NOTHING)
    allowed = with_rules(rules)
    assert not rules or allowed.allows(request, by_name=is_dangerous)
    assert not allowed.allows(file("edit", "some/other.file"))
    assert not allowed.allows(file("edit", "/etc/hosts"))


@pytest.mark.parametrize(
    ("rules", "request_", "said"),
    [
        pytest.param(("bash(pytest:*)",), line("pytest"), "", id="covered"),
        pytest.param(("bash(ls:*)",), line("pytest"), "do not allow all", id="something else"),
        pytest.param((), line("pytest"), "do not allow all", id="none"),
        pytest.param(("bash(a; b)",), line("pytest"), "A rule is for one simple", id="no rule"),
        pytest.param(
            ("bash",), replace(bash("curl x"), dangers=("It is banned",)), "names it", id="unnamed"
        ),
    ],
)
def test_why_changed_rules_do_not_do_is_told(
    rules: tuple[str, ...], request_: PermissionRequest, said: str
) -> None:
    told = uncovered(rules, request_, NOTHING)
    assert said in told
    assert bool(told) is bool(said)


def test_reading_outside_beside_a_command_is_offered_too() -> None:
    secret = Path("/elsewhere/x")
    request = replace(
        bash(
            part("make", rule_words=1), part("cat /elsewhere/x", is_read_only=True, is_outside=True)
        ),
        paths=(secret,),
        reads=(secret,),
        is_outside=True,
    )
    assert proposed_rules(request, NOTHING) == ("bash(make:*)", "view(/elsewhere/x)")
