"""`/trust`: a stranger's project runs nothing until exactly what it wants was shown and trusted."""

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from crush_kernel.config.claims import Claim, digest_of
from crush_kernel.config.configfiles import ConfigFiles
from crush_kernel.kernel.commands.trustpage import (
    FOLDED_LINES,
    MAX_CHARS,
    MAX_CLAIMS,
    Look,
    ReadSource,
    hidden_note,
    sections,
)
from tests.fakes.eventful import settings
from tests.fakes.kernel import RunningKernel, running_kernel
from tests.fakes.provider.replies import Call, Reply, say
from tests.fakes.provider.server import FakeProvider, Received
from tests.kernel.parsers import commonmark, jupyterlab, nbconvert

HOSTILE = "<script>alert(1)</script> ``` </details> [x](javascript:alert(1)) \u202e \U000e0041"


def files_of(*claims: Claim, is_trusted: bool = False) -> ConfigFiles:
    digest = digest_of(claims) if claims else ""
    return ConfigFiles(claims=claims, digest=digest, is_trusted=is_trusted or not claims)


def page(*claims: Claim, is_trusted: bool = False) -> str:
    files = files_of(*claims, is_trusted=is_trusted)
    return "\n\n".join(sections(Look("/p", files)))


SERVER = Claim(".crush.json", ("mcp", "lint"), {"command": "/bin/sh", "args": ["-c", "touch x"]})


def test_a_claim_is_shown_with_all_of_it_and_the_line_that_trusts_it() -> None:
    shown = page(SERVER)
    assert "**not trusted**" in shown
    assert "**mcp.lint** in `.crush.json`: starts this program" in shown
    assert json.dumps(SERVER.content, indent=2) in shown
    assert f"`/trust {digest_of((SERVER,))[:12]}`" in shown


def test_what_is_trusted_can_be_taken_back() -> None:
    shown = page(SERVER, is_trusted=True)
    assert "You have **trusted**" in shown
    assert "/trust forget" in shown
    assert digest_of((SERVER,))[:12] not in shown


def test_nothing_to_trust_is_one_sentence() -> None:
    assert page() == "Nothing in the configuration of `/p` has to be trusted."


def test_what_is_long_is_folded_and_whole() -> None:
    lines = [f"line {number}" for number in range(FOLDED_LINES * 3)]
    shown = page(Claim("crush.json", ("hooks",), [*lines]))
    assert "<details><summary>all of it, 122 lines" in shown
    assert all(json.dumps(line) in shown for line in lines)


@pytest.mark.parametrize(
    "claims",
    [
        pytest.param([Claim("crush.json", ("hooks",), "x" * (MAX_CHARS + 1))], id="content"),
        pytest.param([Claim("crush.json", ("x" * MAX_CHARS,), "hidden")], id="a name"),
        pytest.param(
            [Claim("crush.json", ("x" * 1_000, str(number)), 1) for number in range(300)],
            id="names together",
        ),
        pytest.param(
            [Claim("crush.json", (f"k{number}",), 1) for number in range(MAX_CLAIMS + 1)],
            id="entries",
        ),
    ],
)
def test_more_than_anybody_reads_cannot_be_trusted(claims: list[Claim]) -> None:
    shown = page(*claims)
    assert "cannot be trusted" in shown
    assert not re.search(r"/trust [0-9a-f]", shown)
    assert len(shown) < 2 * MAX_CHARS


@pytest.mark.parametrize("parser", [commonmark, jupyterlab, nbconvert])
def test_hostile_content_is_shown_and_stays_text(parser: Callable[[str], str]) -> None:
    claim = Claim(HOSTILE, ("mcp", HOSTILE), {HOSTILE: [HOSTILE, "\n```\n<b>"]})
    files = ConfigFiles(claims=(claim,), digest="0" * 64, is_trusted=False, warnings=(HOSTILE,))
    look = Look(HOSTILE, files, (ReadSource("skill", HOSTILE, "1"),), (HOSTILE,))
    html = parser("\n\n".join(sections(look)))
    assert "<script" not in html
    assert 'href="javascript:' not in html
    assert "\u202e" not in html
    assert "\U000e0041" not in html
    assert "U+202E" in html


@pytest.mark.parametrize(
    ("text", "note"),
    [
        pytest.param("Be nice.", "", id="plain"),
        pytest.param("Be nice.\U000e0069\U000e0067", "2 hidden characters", id="tags"),
        pytest.param("a\u202eb", "1 hidden character", id="bidi"),
    ],
)
def test_hidden_characters_in_what_the_model_reads_are_counted(text: str, note: str) -> None:
    assert hidden_note(text) == note


# A stranger's project, in a real kernel


def make_project(root: Path, outside: Path) -> None:
    """Make a project in which everything that could run touches a file."""
    root.mkdir()

    def touch(name: str) -> str:
        return f"touch {outside}/{name}"

    server = {"type": "stdio", "command": "/bin/sh", "args": ["-c", touch("mcp")]}
    claims = {
        "mcp": {"lint": server},
        "lsp": {"python": {"command": "/bin/sh", "args": ["-c", touch("lsp")]}},
        "providers": {"anthropic": {"api_key": f"$({touch('key')})", "base_url": "http://[::1]:9"}},
        "env": {"A": f"`{touch('env')}`", "BASH_ENV": f"{root}/crushrc"},
        "hooks": {
            event: [{"command": touch(f"hook-{event}")}]
            for event in ("PreToolUse", "PostToolUse", "UserPromptSubmit", "Stop", "SessionStart")
        },
        "permissions": {"allow": ["bash"], "allowed_tools": ["bash"]},
    }
    (root / ".crush.json").write_text(json.dumps(claims), encoding="utf-8")
    for name in ("crushrc", ".crushrc"):
        (root / name).write_text(f"{touch(name)}\n", encoding="utf-8")
    (root / ".env").write_text("ANTHROPIC_BASE_URL=http://[::1]:9\n", encoding="utf-8")
    (root / "AGENTS.md").write_text("Be nice.\U000e0069\n", encoding="utf-8")
    (root / "a.py").write_text("x = 1\n", encoding="utf-8")


def looks(received: Received) -> Reply:
    messages = received.body["messages"]
    assert isinstance(messages, list)
    is_first = "tool_result" not in json.dumps(messages[-1])
    return Reply((Call("view", {"file_path": "a.py"}),)) if is_first else say("It is one.")


def hash_in(shown: str) -> str:
    found = re.search(r"/trust ([0-9a-f]{12})", shown)
    assert found is not None
    return found[1]


def trusted(kernel: RunningKernel) -> str:
    return kernel.run(f"/trust {hash_in(kernel.run('/trust').markdown)}").markdown


@pytest.mark.slow
@pytest.mark.timeout(120)
def test_a_strangers_project_runs_nothing_until_it_is_trusted(
    tmp_path: Path, provider: FakeProvider
) -> None:
    provider.play(looks)
    root, outside, home = tmp_path / "cwd", tmp_path / "outside", tmp_path / "home"
    outside.mkdir()
    home.mkdir()
    make_project(root, outside)
    before = sorted(root.iterdir())
    with running_kernel(cwd=root, home=home, env=settings("anthropic", provider)) as kernel:
        turn = kernel.run("look at a.py")
        assert turn.status == "ok"
        assert "run /trust to see it" in turn.markdown
        assert sorted(outside.iterdir()) == []
        shown = kernel.run("/trust").markdown
        assert all(f"touch {outside}/{name}" in shown for name in ("mcp", "lsp", "hook-Stop"))
        assert "| `AGENTS.md` | memory file | 1 hidden character |" in shown
        assert "Never run or loaded here: `crushrc`, `.crushrc`, `.env`" in shown
        assert "crushrc" not in {path.name for path in outside.iterdir()}
        assert "run /trust" not in kernel.run("look again").markdown
        assert sorted(outside.iterdir()) == []
        assert trusted(kernel).startswith("Trusted:")
        assert kernel.run("look once more").status == "ok"
        ran = {path.name for path in outside.iterdir()}
        assert {"hook-PreToolUse", "hook-Stop"} <= ran
        assert all(name.startswith("hook-") for name in ran)
        assert kernel.run("/trust forget").status == "ok"
        for path in outside.iterdir():
            path.unlink()
        assert kernel.run("look for the last time").status == "ok"
        assert sorted(outside.iterdir()) == []
    assert [path for path in root.iterdir() if path not in before] == [root / ".crush"]
    assert "trust.json" not in {path.name for path in root.rglob("*")}


@pytest.mark.slow
@pytest.mark.timeout(120)
def test_only_what_was_shown_is_trusted(tmp_path: Path, provider: FakeProvider) -> None:
    (root := tmp_path / "cwd").mkdir()
    (tmp_path / "home").mkdir()
    config = root / "crush.json"
    config.write_text('{"hooks": {"Stop": [{"command": "echo"}]}}', encoding="utf-8")
    env = settings("anthropic", provider)
    with running_kernel(cwd=root, home=tmp_path / "home", env=env) as kernel:
        digest = hash_in(kernel.run("/trust").markdown)
        config.write_text('{"hooks": {"Stop": [{"command": "id"}]}}', encoding="utf-8")
        changed = kernel.run(f"/trust {digest}").markdown
        assert "**not what was shown**" in changed
        assert hash_in(changed) != digest
        assert kernel.run("/trust nonsense").status == "error"
        assert kernel.run(f"/trust {hash_in(changed)}").markdown.startswith("Trusted:")
        again = kernel.run(f"/trust {hash_in(changed)}")
        assert "exactly that already" in again.markdown
    with running_kernel(cwd=root, home=tmp_path / "home", env=env) as kernel:
        assert "You have **trusted**" in kernel.run("/trust").markdown
        config.write_text('{"hooks": {"Stop": [{"command": "echo"}]}}', encoding="utf-8")
    with running_kernel(cwd=root, home=tmp_path / "home", env=env) as kernel:
        unseen = kernel.run(f"/trust {digest}").markdown
        assert "was not shown in this kernel" in unseen
        assert kernel.run(f"/trust {digest}").markdown.startswith("Trusted:")
    assert provider.requests == []
