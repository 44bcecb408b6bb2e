"""`/permissions` and `/mode`: what holds is shown, is stored with the user, counts at once."""

import json
from collections.abc import Callable, Generator, Iterator
from pathlib import Path

import pytest

from crush_kernel.config.ruletexts import StoredRule
from crush_kernel.kernel.commands.permissions import grant_lines, rule_rows
from crush_kernel.kernel.commands.rulewords import grant_words, meaning
from crush_kernel.permissions.policy import Policy, StandingRule
from crush_kernel.permissions.request import Grant, PermissionRequest
from crush_kernel.permissions.rule import parse_rule
from crush_kernel.permissions.rulebook import Page
from tests.fakes.eventful import settings
from tests.fakes.kernel import RunningKernel, running_kernel
from tests.fakes.provider.replies import call, say
from tests.fakes.provider.server import FakeProvider
from tests.kernel.parsers import commonmark, jupyterlab, nbconvert

HOSTILE = "bash('<script>alert(1)</script> | [x](javascript:alert(1)) \u202e')"


@pytest.mark.parametrize(
    ("rule", "words"),
    [
        ("bash", "everything that `bash`, dangers aside, does"),
        ("mcp_x_*", "everything that `mcp_x_*`, dangers aside, does"),
        ("edit:write", "`write` by `edit`"),
        ("bash(git log:*)", "commands that begin with `git log`"),
        ("bash(py* x *)", "commands that begin with `py* x`, `*` for anything"),
        ("bash(git * x)", "commands such as `git * x`, `*` for anything"),
        ("bash(git commit -m 'a b')", "exactly this command: `git commit -m 'a b'`"),
        ("edit(src/**)", "changing `src/**`, with any tool or command"),
        ("grep(~/x)", "reading `~/x`, with any tool or command"),
        ("fetch(domain:a.b:81)", "the server `a.b`, port 81"),
        ("fetch(domain:*.a.b)", "servers below `a.b`"),
        ("fetch(domain:*)", "any server of the internet"),
    ],
)
def test_a_rule_is_told_in_words(rule: str, words: str) -> None:
    assert meaning(parse_rule(rule)) == words


@pytest.mark.parametrize(
    ("grant", "words"),
    [
        (Grant("bash", "execute", "/p\0make x"), "bash runs `make x` in `/p`"),
        (Grant("edit", "write", ""), "edit changes anything in the project"),
        (Grant("view", "read", "/a\0/b"), "view reads `/a`, `/b`"),
        (Grant("fetch", "fetch", "public\0a.b"), "fetch talks to `a.b`"),
        (Grant("download", "fetch", "public\0a.b\0/f"), "download talks to `a.b` into `/f`"),
    ],
)
def test_a_grant_is_told_in_words(grant: Grant, words: str) -> None:
    assert grant_words(grant) == words


def test_a_tool_without_a_command_is_granted_with_whatever_input() -> None:
    grant = PermissionRequest("c", "mcp_x_do", "execute", "do it").grant
    assert grant_words(grant) == "mcp_x_do, with whatever input"


def test_a_file_is_not_listed_beside_the_project_that_it_lies_in() -> None:
    wide, other = Grant("edit", "write", ""), Grant("write", "write", "/p/b")
    grants = frozenset((wide, Grant("edit", "write", "/p/a"), other))
    assert grant_lines(grants, str).splitlines() == [
        "- edit changes anything in the project",
        "- write changes `/p/b`",
    ]


def test_stored_rules_are_numbered_and_come_before_those_of_files() -> None:
    file, stored = parse_rule("bash(rm:*)"), parse_rule("edit(src/**)")
    rules = (StandingRule("deny", file, "crush.json", "project"), StandingRule("allow", stored))
    texts = (StoredRule("allow", "edit(src/**)", "project"), StoredRule("ask", "a b", "everywhere"))
    rows = list(rule_rows(Page(Policy(rules), texts, 1, ()), str))
    first, second, third = rows
    assert first.startswith("| 1 | allow | `edit(src/**)` | changing `src/**`, with any tool")
    assert first.endswith("| stored for this project |")
    assert second == "| 2 | ask | `a b` | nothing: it is no rule | stored for everywhere |"
    assert third == "| | deny | `bash(rm:*)` | commands that begin with `rm` | `crush.json` |"


@pytest.mark.parametrize("parser", [commonmark, jupyterlab, nbconvert])
def test_hostile_rules_stay_text(parser: Callable[[str], str]) -> None:
    rule = parse_rule(HOSTILE)
    page = Page(
        Policy((StandingRule("deny", rule, HOSTILE, "project"),)),
        (StoredRule("allow", HOSTILE, "project"),),
        1,
        (),
    )
    grants = grant_lines(frozenset((Grant("bash", "execute", f"/p\0{HOSTILE}"),)), str)
    html = parser("| | | | | |\n|---|---|---|---|---|\n" + "\n".join(rule_rows(page, str)))
    html += parser(grants)
    assert "<script" not in html
    assert 'href="javascript:' not in html
    assert "\u202e" not in html


@pytest.fixture(scope="module")
def kernel(
    tmp_path_factory: pytest.TempPathFactory, provider_server: FakeProvider
) -> Iterator[tuple[RunningKernel, Path]]:
    yield from _kernel(tmp_path_factory.mktemp("permissions"), provider_server)


def _kernel(folder: Path, provider: FakeProvider) -> Generator[tuple[RunningKernel, Path]]:
    cwd, home = folder / "cwd", folder / "home"
    for path in (cwd, home / ".config/crush"):
        path.mkdir(parents=True)
    project = {
        "permissions": {"allow": ["bash"], "deny": ["edit(.env)"], "mode": "yolo", "dney": []},
        "options": {"disabled_tools": ["sourcegraph"]},
    }
    (cwd / "crush.json").write_text(json.dumps(project), encoding="utf-8")
    user = {"permissions": {"allowed_tools": ["bash(git log:*)", "bash(a && b)", "veiw"]}}
    (home / ".config/crush/crush.json").write_text(json.dumps(user), encoding="utf-8")
    with running_kernel(cwd=cwd, home=home, env=settings("anthropic", provider)) as kernel:
        yield kernel, home / ".local/share/crush/permissions.json"


@pytest.mark.slow
def test_the_page_shows_what_holds_and_whence(kernel: tuple[RunningKernel, Path]) -> None:
    page = kernel[0].run("/permissions").markdown
    assert "Mode **default**" in page
    assert "| | allow | `bash(git log:*)` | commands that begin with `git log` |" in page
    assert "`~/.config/crush/crush.json` |" in page
    assert "| | deny | `edit(.env)` |" in page
    assert "`crush.json` |" in page
    assert "turned off: `sourcegraph`" in page
    for warning in ("may ask and deny", "may not loosen", "is deny meant", "one simple command"):
        assert warning in page
    assert "is view meant?" in page


@pytest.mark.slow
def test_a_stored_rule_counts_at_once_and_is_forgotten(
    kernel: tuple[RunningKernel, Path], provider_server: FakeProvider
) -> None:
    front_end, store = kernel
    make = call("bash", {"command": "mkdir made", "description": "x"})
    denied = front_end.run("/permissions deny bash(mkdir:*)")
    assert denied.markdown == (
        "`bash(mkdir:*)` is denied from now on, stored for this project: "
        "commands that begin with `mkdir`."
    )
    assert json.loads(store.read_text(encoding="utf-8"))["projects"]
    provider_server.play(make, say("No."))
    front_end.run("make it")
    assert "the rule bash(mkdir:*) forbids it" in json.dumps(provider_server.requests[-1].body)
    front_end.run("/permissions allow bash(mkdir:*) everywhere")
    page = front_end.run("/permissions").markdown
    assert "| 1 | deny | `bash(mkdir:*)` |" in page
    assert "| 2 | allow | `bash(mkdir:*)` |" in page
    assert front_end.run("/permissions forget 1").status == "ok"
    provider_server.play(make, say("Done."))
    front_end.run("make it now")
    assert (Path(str(store)).parents[4] / "cwd/made").is_dir()
    assert front_end.run("/permissions forget 1").status == "ok"
    assert "stored for" not in front_end.run("/permissions").markdown


@pytest.mark.slow
@pytest.mark.parametrize(
    ("cell", "said"),
    [
        ("/permissions allow git log", "The rule is not stored: 'git log' is no rule"),
        ("/permissions allow", "The rule is not stored"),
        ("/permissions forget 9", "There is no stored rule"),
        ("/permissions forget", "There is no stored rule"),
        ("/permissions show", "knows no"),
        ("/permissions allow bash(curl sk-ant-api03-0123456789abcdefghijklmnop)", "holds a secret"),
        ("/mode fast", "There is no mode"),
    ],
)
def test_what_cannot_be_done_is_explained(
    kernel: tuple[RunningKernel, Path], cell: str, said: str
) -> None:
    refused = kernel[0].run(cell)
    assert refused.status == "error"
    assert said in refused.reply["content"]["evalue"]
    assert not kernel[1].exists() or "git log" not in kernel[1].read_text(encoding="utf-8")


@pytest.mark.slow
def test_a_file_that_is_not_understood_is_told_and_left_alone(
    kernel: tuple[RunningKernel, Path],
) -> None:
    front_end, store = kernel
    store.parent.mkdir(parents=True, exist_ok=True)
    before = store.read_bytes() if store.exists() else None
    store.write_text("{", encoding="utf-8")
    try:
        assert "is not valid JSON" in front_end.run("/permissions").markdown
        refused = front_end.run("/permissions allow bash(ls)")
        assert "The rule is not stored" in refused.reply["content"]["evalue"]
        assert store.read_text(encoding="utf-8") == "{"
    finally:
        store.unlink() if before is None else store.write_bytes(before)


@pytest.mark.slow
def test_the_mode_is_shown_and_set(kernel: tuple[RunningKernel, Path]) -> None:
    front_end = kernel[0]
    assert "**default** ←" in front_end.run("/mode").markdown
    assert "The mode is `accept-edits` now" in front_end.run("/mode accept_edits").markdown
    assert "⚠ Yolo mode" in front_end.run("/mode yolo").markdown
    assert "Mode **yolo**" in front_end.run("/permissions").markdown
    assert front_end.run("/mode default").status == "ok"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("code", "matches"),
    [
        ("/mode p", ["plan"]),
        ("/permissions fo", ["forget"]),
        ("/perm", ["/permissions"]),
    ],
)
def test_words_are_completed(
    kernel: tuple[RunningKernel, Path], code: str, matches: list[str]
) -> None:
    request = {"code": code, "cursor_pos": len(code)}
    assert kernel[0].shell_request("complete_request", request)["content"]["matches"] == matches
