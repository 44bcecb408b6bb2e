"""Real scripts, asked as hooks."""

import json
from collections.abc import Mapping
from pathlib import Path

import anyio
import pytest

from crush_kernel.config.hooks import FailPolicy, Hook
from crush_kernel.hooks.hooks import Hooks
from crush_kernel.hooks.payload import Situation, ToolAnswer, ToolUse
from crush_kernel.hooks.verdict import Verdict
from crush_kernel.shell.runner import Shell
from tests.hooks.scripts import DENY_RM, FORMAT, script
from tests.shell.processes import wait_until

pytestmark = pytest.mark.anyio

USE = ToolUse("c1", "bash", {"command": "ls"})


def hooks_in(shell: Shell, folder: Path, *hooks: Hook) -> Hooks:
    def situation() -> Situation:
        return Situation("s1", str(folder), str(folder))

    return Hooks(shell, cwd=folder, situation=situation, hooks=hooks)


async def before(
    environ: Mapping[str, str], folder: Path, *hooks: Hook, use: ToolUse = USE
) -> Verdict:
    async with Shell(environ) as shell:
        with anyio.fail_after(30):
            return await hooks_in(shell, folder, *hooks).before(use)


def pre(command: str, *, timeout_s: float = 20, fail: FailPolicy = "open") -> Hook:
    return Hook("PreToolUse", command, timeout_s=timeout_s, fail=fail)


@pytest.mark.parametrize(
    ("command", "decision", "reason"),
    [
        pytest.param("true", None, "", id="silent"),
        pytest.param("cat >/dev/null; echo no >&2; exit 2", "deny", "no", id="exit 2"),
        pytest.param("echo no >&2; exit 49", "deny", "no", id="exit 49"),
        pytest.param("exit 1", None, "", id="exit 1"),
        pytest.param("nonsuch_hook", None, "", id="no such program"),
        pytest.param("kill -SEGV $$", None, "", id="crashes"),
        pytest.param("""echo '{"decision": "allow"}'""", "allow", "", id="allows"),
        pytest.param("""echo '{"decision": "ask", "reason": "?"}'""", "ask", "?", id="asks"),
        pytest.param("echo words", None, "", id="talks"),
        pytest.param("printf '\\xff\\xfe'", None, "", id="no UTF-8"),
        pytest.param("printf '\\xff' >&2; exit 2", "deny", "\ufffd", id="a reason of bytes"),
        pytest.param("yes", None, "", id="floods stdout"),
        pytest.param("yes >&2", None, "", id="floods stderr"),
        pytest.param("exec <&-; echo no >&2; exit 2", "deny", "no", id="closes stdin"),
        pytest.param("sleep 600 & echo no >&2; exit 2", "deny", "no", id="leaves a child"),
        pytest.param("[ $CRUSH_TOOL_INPUT_COMMAND = ls ] || exit 2", None, "", id="variables"),
    ],
)
async def test_a_hook_is_heard(
    environ: dict[str, str],
    tmp_path: Path,
    command: str,
    *,
    decision: str | None,
    reason: str,
) -> None:
    said = await before(environ, tmp_path, pre(command))
    assert (said.decision, said.reason) == (decision, reason)
    assert said.is_halt == ("49" in command)


@pytest.mark.parametrize(
    ("command", "why"),
    [
        pytest.param("exit 3", "exit 3", id="another exit code"),
        pytest.param("nonsuch_hook", "exit 127", id="no such program"),
        pytest.param("sleep 600", "longer than 0.3 s", id="slow"),
        pytest.param("yes", "without end", id="floods"),
        pytest.param("head -c 2000000 /dev/zero", "more than", id="prints too much"),
        pytest.param("""echo '{"decision": 1}'""", "wrong type", id="senseless"),
        pytest.param("echo \0", "NUL", id="no command"),
    ],
)
async def test_a_hook_that_fails_and_must_not_denies_and_says_why(
    environ: dict[str, str], tmp_path: Path, command: str, why: str
) -> None:
    timeout_s = 0.3 if "sleep" in command else 20
    said = await before(environ, tmp_path, pre(command, timeout_s=timeout_s, fail="closed"))
    assert said.decision == "deny"
    assert why in said.reason


async def test_hooks_run_at_the_same_time_and_are_heard_in_their_order(
    environ: dict[str, str], tmp_path: Path
) -> None:
    meet = "touch {me}; until [ -e {other} ]; do sleep 0.01; done; echo {me} >&2; exit 2"
    said = await before(
        environ,
        tmp_path,
        pre(meet.format(me="a", other="b")),
        pre(meet.format(me="b", other="a")),
    )
    assert said.reason == "a\nb"


async def test_a_hook_runs_in_the_folder_and_reads_the_call(
    environ: dict[str, str], tmp_path: Path
) -> None:
    await before(environ, tmp_path, pre("cat > told.json"))
    told = json.loads((tmp_path / "told.json").read_text(encoding="utf-8"))
    assert told["tool_input"] == {"command": "ls"}
    assert told["cwd"] == str(tmp_path)


async def test_cancelling_ends_all_hooks(environ: dict[str, str], tmp_path: Path) -> None:
    slow = [pre(f"touch begun{n}; setsid sleep 600 & sleep 600") for n in range(3)]
    async with Shell(environ) as shell, anyio.create_task_group() as tasks:
        tasks.start_soon(hooks_in(shell, tmp_path, *slow).before, USE)
        await wait_until(lambda: len(list(tmp_path.glob("begun*"))) == 3)
        tasks.cancel_scope.cancel()
    # The environment's fixture looks for what is left.


async def test_a_folder_that_is_gone_is_a_failure_of_the_hook(
    environ: dict[str, str], tmp_path: Path
) -> None:
    said = await before(environ, tmp_path / "gone", pre("true"))
    assert said.decision is None
    assert "gone" in said.runs[0].outcome.failure


async def test_input_that_cannot_be_written_down_is_a_failure_of_the_hook(
    environ: dict[str, str], tmp_path: Path
) -> None:
    deep: dict[str, object] = {}
    for _ in range(100_000):
        deep = {"a": deep}
    use = ToolUse("c1", "bash", deep)  # pyright: ignore[reportArgumentType] - as JSON may be
    said = await before(environ, tmp_path, pre("true", fail="closed"), use=use)
    assert said.decision == "deny"
    assert "too deeply" in said.reason


@pytest.mark.parametrize(
    ("command", "decision"),
    [
        pytest.param("rm -rf build", "deny", id="rm -rf"),
        pytest.param("ls -la", None, id="ls"),
    ],
)
async def test_a_script_for_claude_code_denies_by_its_own_names(
    environ: dict[str, str], tmp_path: Path, command: str, decision: str | None
) -> None:
    path = script(tmp_path, "deny_rm.py", DENY_RM)
    hook = Hook("PreToolUse", str(path), "Bash", is_nested=True)
    said = await before(environ, tmp_path, hook, use=ToolUse("c1", "bash", {"command": command}))
    assert said.decision == decision
    assert said.reason == ("Removing folders is not done here." if decision else "")


async def test_a_script_for_claude_code_formats_what_was_edited(
    environ: dict[str, str], tmp_path: Path
) -> None:
    path = script(tmp_path, "format.sh", FORMAT)
    (tmp_path / "a b.py").write_text("x = 1  \n", encoding="utf-8")
    hook = Hook("PostToolUse", str(path), "Edit|Write", is_nested=True)
    async with Shell(environ) as shell:
        hooks = hooks_in(shell, tmp_path, hook)
        use = ToolUse("c1", "edit", {"file_path": "a b.py"})
        said = await hooks.after(use, ToolAnswer("done", {}))
    assert said.context == "Formatted."
    assert (tmp_path / "a b.py").read_text(encoding="utf-8") == "x = 1\n"


async def test_other_hooks_count_from_the_next_event_on(
    environ: dict[str, str], tmp_path: Path
) -> None:
    async with Shell(environ) as shell:
        hooks = hooks_in(shell, tmp_path, pre("exit 2"))
        assert hooks.has_any_for("bash")
        hooks.hooks = ()
        assert not hooks.has_any_for("bash")
        assert (await hooks.before(USE)).runs == ()


async def test_a_shell_that_cannot_run_anything_is_a_failure_of_the_hook(tmp_path: Path) -> None:
    closed = Shell({})
    said = await hooks_in(closed, tmp_path, pre("true", fail="closed")).before(USE)
    assert said.decision == "deny"
    assert "could not be asked" in said.reason


async def test_without_bash_a_hook_has_failed(tmp_path: Path) -> None:
    said = await before({"PATH": str(tmp_path)}, tmp_path, pre("true", fail="closed"))
    assert said.decision == "deny"
    assert "bash is not installed" in said.reason
