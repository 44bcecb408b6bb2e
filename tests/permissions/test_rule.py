"""Rules as people write them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crush_kernel.permissions.commandpattern import CommandPattern
from crush_kernel.permissions.hostpattern import HostPattern
from crush_kernel.permissions.match import BadRule
from crush_kernel.permissions.pathpattern import PathPattern
from crush_kernel.permissions.request import Action
from crush_kernel.permissions.rule import MAX_CHARACTERS, nearest_tool, parse_rule


@pytest.mark.parametrize(
    ("text", "tool", "action", "pattern"),
    [
        pytest.param("bash", "bash", None, None, id="tool"),
        pytest.param(" view ", "view", None, None, id="spaces around it"),
        pytest.param("Bash", "bash", None, None, id="another case"),
        pytest.param("mcp_x_Get-it", "mcp_x_Get-it", None, None, id="a tool of a server"),
        pytest.param("edit:write", "edit", "write", None, id="tool and action"),
        pytest.param("download:download", "download", "fetch", None, id="an action of Crush"),
        pytest.param("mcp_x_*", "mcp_x_*", None, None, id="several tools"),
        pytest.param("*", "*", None, None, id="all tools"),
        pytest.param("bash(*)", "bash", None, None, id="every command"),
        pytest.param("bash(git log:*)", "bash", None, CommandPattern, id="commands"),
        pytest.param("bash(echo ')')", "bash", None, CommandPattern, id="a parenthesis in it"),
        pytest.param("edit(src/**)", "edit", None, PathPattern, id="files to change"),
        pytest.param("view(a (b).md)", "view", None, PathPattern, id="parentheses in a path"),
        pytest.param("grep(~/x)", "grep", None, PathPattern, id="files to read"),
        pytest.param("download(x/**)", "download", None, PathPattern, id="where downloads go"),
        pytest.param("download(domain:a.b)", "download", None, HostPattern, id="whence they come"),
        pytest.param("fetch( domain:a.b )", "fetch", None, HostPattern, id="servers"),
        pytest.param("web_fetch(*)", "web_fetch", None, HostPattern, id="all servers"),
    ],
)
def test_a_rule_names_a_tool_and_what_it_is_limited_to(
    text: str, tool: str, action: Action | None, pattern: type | None
) -> None:
    rule = parse_rule(text)
    assert (rule.tool, rule.action, rule.text) == (tool, action, text.strip())
    assert rule.pattern is None if pattern is None else isinstance(rule.pattern, pattern)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        pytest.param("", "is no rule", id="nothing"),
        pytest.param("git log", "is no rule", id="a command"),
        pytest.param("bash(git log", "is no rule", id="an open parenthesis"),
        pytest.param("bash git log)", "is no rule", id="a closing parenthesis"),
        pytest.param("bash()x", "is no rule", id="more behind it"),
        pytest.param("bash(a\0b)", "is no rule", id="a character of no text"),
        pytest.param("bä", "is no rule", id="letters that no tool has"),
        pytest.param("bash()", "has to name one", id="empty parentheses"),
        pytest.param("edit()", "has to name some", id="empty parentheses for files"),
        pytest.param("edit:wrte", "no action 'wrte'; there are use, read", id="no such action"),
        pytest.param("fetch(https://a.b/c)", r"fetch\(domain:example.org\)", id="a URL"),
        pytest.param("todos(x)", "takes no pattern: write todos alone", id="no pattern to take"),
        pytest.param("mcp_x_y(z)", "takes no pattern", id="a tool of a server"),
        pytest.param("*(src/**)", "takes no pattern", id="all tools"),
        pytest.param("edti(src/**)", "no tool 'edti'; edit may be meant", id="no such tool"),
        pytest.param("qqqqqqqqqq(x)", "there is no tool 'qqqqqqqqqq'$", id="nothing like it"),
        pytest.param("x" * (MAX_CHARACTERS + 1), "at most 4,000 characters", id="far too long"),
    ],
)
def test_what_is_no_rule_is_explained(text: str, said: str) -> None:
    with pytest.raises(BadRule, match=said):
        parse_rule(text)


@pytest.mark.parametrize(
    ("rule", "tool", "action", "is_meant"),
    [
        pytest.param("mcp_git_*", "mcp_git_log", "execute", True, id="a star"),
        pytest.param("mcp_git_*", "mcp_github_log", "execute", False, id="a star, another server"),
        pytest.param("mcp_?_x", "mcp_a_x", "execute", True, id="a question mark"),
        pytest.param("mcp_.*", "mcp_x", "execute", False, id="a dot is itself"),
        pytest.param("view", "view_more", "read", False, id="a longer name"),
        pytest.param("view:read", "view", "read", True, id="its action"),
        pytest.param("view:list", "view", "read", False, id="another action"),
        pytest.param("*:read", "grep", "read", True, id="an action of any tool"),
    ],
)
def test_a_rule_without_a_pattern_is_about_tools(
    rule: str, tool: str, action: Action, *, is_meant: bool
) -> None:
    assert parse_rule(rule).is_about(tool, action) is is_meant


@pytest.mark.parametrize(
    ("name", "tool"), [("Edit", "edit"), ("edti", "edit"), ("web-fetch", "web_fetch"), ("zz", "")]
)
def test_the_tool_that_is_meant_is_found(name: str, tool: str) -> None:
    assert nearest_tool(name) == tool


@given(st.text(max_size=40) | st.from_regex(r"(bash|edit|fetch)\(.{0,20}\)", fullmatch=True))
def test_every_text_is_a_rule_or_is_refused_as_one(text: str) -> None:
    try:
        rule = parse_rule(text)
    except BadRule:
        return
    assert parse_rule(rule.text) == rule
