"""What a front end can rely on, message by message."""

import json
from pathlib import Path

import pytest

from tests.fakes.kernel import RunningKernel, running_kernel
from tests.fakes.offline import offline_script

pytestmark = pytest.mark.slow


def test_kernel_info_says_what_the_cells_are(shared_kernel: RunningKernel) -> None:
    info = shared_kernel.shell_request("kernel_info_request", {})["content"]
    assert (info["implementation"], info["language_info"]["name"]) == ("crush", "markdown")
    assert info["language_info"]["codemirror_mode"] == "markdown"
    assert "debugger" not in info["supported_features"]
    assert "kernel subshells" not in info["supported_features"]


def test_a_turn_is_busy_input_outputs_idle_and_one_reply(shared_kernel: RunningKernel) -> None:
    cell = shared_kernel.run("hello")
    assert cell.kinds[:2] == ["status", "execute_input"]
    assert cell.kinds[-1] == "status"
    states = [m["content"]["execution_state"] for m in cell.messages if m["msg_type"] == "status"]
    assert (states[0], states[-1]) == ("busy", "idle")
    assert cell.status == "ok"
    assert cell.reply["content"]["user_expressions"] == {}
    assert "Hello **there**." in cell.markdown


def test_every_update_names_its_display(shared_kernel: RunningKernel) -> None:
    cell = shared_kernel.run("look")
    for message in cell.messages:
        if message["msg_type"] == "update_display_data":
            assert message["content"]["transient"]["display_id"]


@pytest.mark.parametrize("code", ["", "  \n"])
def test_an_empty_cell_does_nothing(shared_kernel: RunningKernel, code: str) -> None:
    cell = shared_kernel.run(code)
    assert cell.status == "ok"
    assert cell.outputs == []


def test_a_silent_request_shows_nothing_and_counts_nothing(shared_kernel: RunningKernel) -> None:
    before = shared_kernel.run("hello").reply["content"]["execution_count"]
    silent = shared_kernel.collect(shared_kernel.execute("hello", silent=True))
    assert silent.outputs == []
    after = shared_kernel.run("hello").reply["content"]["execution_count"]
    assert after == before + 1


@pytest.mark.parametrize(
    ("code", "near"),
    [pytest.param("/", "/help", id="a slash alone"), pytest.param("/modle", "/model", id="a typo")],
)
def test_an_unknown_command_is_an_error_that_names_the_nearest(
    shared_kernel: RunningKernel, code: str, near: str
) -> None:
    cell = shared_kernel.run(code)
    content = cell.reply["content"]
    assert (content["status"], content["ename"]) == ("error", "CommandError")
    assert near in cell.markdown + content["evalue"]


@pytest.mark.parametrize("code", ["/help", "/status", "/cost", "/model"])
def test_commands_answer_in_markdown(shared_kernel: RunningKernel, code: str) -> None:
    cell = shared_kernel.run(code)
    assert cell.status == "ok"
    assert cell.markdown.strip()


def test_status_names_model_mode_folder_and_versions(shared_kernel: RunningKernel) -> None:
    shown = shared_kernel.run("/status").markdown
    for fact in ("offline", "default", "permission mode", "folder", "Python"):
        assert fact in shown


def test_a_failed_turn_names_its_error_in_reply_and_output(shared_kernel: RunningKernel) -> None:
    cell = shared_kernel.run("fail")
    content = cell.reply["content"]
    assert (content["status"], content["ename"]) == ("error", "AuthenticationFailed")
    errors = [m["content"] for m in cell.messages if m["msg_type"] == "error"]
    assert [(error["ename"], error["evalue"]) for error in errors] == [
        ("AuthenticationFailed", content["evalue"])
    ]
    assert content["evalue"].count("\n") == 0
    assert "Traceback" not in "\n".join(content["traceback"])


def test_a_shell_cell_runs_at_once_and_shows_what_it_printed(shared_kernel: RunningKernel) -> None:
    cell = shared_kernel.run("!echo out; echo err >&2; exit 3")
    assert cell.status == "ok"
    shown = cell.markdown + cell.stdout
    for text in ("out", "err", "3"):
        assert text in shown


def test_completion_offers_commands_and_files_with_types(shared_kernel: RunningKernel) -> None:
    content = shared_kernel.shell_request("complete_request", {"code": "/he", "cursor_pos": 3})[
        "content"
    ]
    assert content["matches"] == ["/help"]
    assert content["metadata"]["_jupyter_types_experimental"][0]["type"] == "command"


def test_inspection_explains_commands_and_tools(shared_kernel: RunningKernel) -> None:
    for code in ("/model", "bash"):
        content = shared_kernel.shell_request(
            "inspect_request", {"code": code, "cursor_pos": 2, "detail_level": 0}
        )["content"]
        assert content["found"]
        assert content["data"]["text/markdown"]


def test_history_returns_the_inputs(shared_kernel: RunningKernel) -> None:
    shared_kernel.run("hello")
    content = shared_kernel.shell_request(
        "history_request",
        {"hist_access_type": "tail", "n": 1, "output": False, "raw": True},
    )["content"]
    assert content["history"][-1][2] == "hello"


@pytest.mark.parametrize(
    ("code", "status"),
    [("hello", "complete"), ("first \\", "incomplete"), ("```py\nx", "incomplete")],
)
def test_a_console_knows_when_to_send(shared_kernel: RunningKernel, code: str, status: str) -> None:
    reply = shared_kernel.shell_request("is_complete_request", {"code": code})
    assert reply["content"]["status"] == status


def test_malformed_messages_do_not_harm_the_kernel(shared_kernel: RunningKernel) -> None:
    channel = shared_kernel.client.shell_channel
    channel.socket.send_multipart([b"<IDS|MSG>", b"", b"{", b"{", b"{", b"{"])
    channel.socket.send_multipart([b"nonsense"])
    message = shared_kernel.client.session.msg("no_such_request", {})
    channel.send(message)
    assert shared_kernel.run("hello").status == "ok"


@pytest.mark.parametrize(
    "code",
    [
        pytest.param("hello \ud800", id="half a character"),
        pytest.param("/\udcff", id="a byte that is no text"),
        pytest.param(5, id="no text at all"),
    ],
)
def test_whatever_a_cell_holds_it_gets_one_reply(shared_kernel: RunningKernel, code: str) -> None:
    body = {"code": code, "silent": False, "allow_stdin": False, "stop_on_error": True}
    # As a browser sends it: escaped.
    session = shared_kernel.client.session
    message = session.msg("execute_request", body)
    ascii_frames = session.serialize({**message, "content": json.dumps(body).encode()})
    shared_kernel.client.shell_channel.socket.send_multipart(ascii_frames)
    assert shared_kernel.reply(message["header"]["msg_id"])["content"]["status"] in ("ok", "error")
    assert shared_kernel.run("hello").status == "ok"


@pytest.mark.parametrize("code", ["/mod\x1b]8;;http://x\x07el", "/model \x1b[2J\u202e"])
def test_an_error_is_one_line_that_cannot_steer_a_terminal(
    shared_kernel: RunningKernel, code: str
) -> None:
    content = shared_kernel.run(code).reply["content"]
    assert content["status"] == "error"
    assert all(text.isprintable() for text in (content["evalue"], *content["traceback"]))


def test_a_kernel_whose_folder_is_deleted_goes_on(tmp_path: Path) -> None:
    home, cwd = tmp_path / "home", tmp_path / "cwd"
    home.mkdir()
    cwd.mkdir()
    with running_kernel(cwd=cwd, home=home, env=offline_script(home)) as kernel:
        cwd.rmdir()
        assert "does not exist" in kernel.run("look").markdown
        command = kernel.run("!pwd")
        assert (command.status, command.reply["content"]["ename"]) == ("error", "ToolError")
        cwd.mkdir()
        assert kernel.run("!pwd").status == "ok"


def test_a_request_that_makes_no_sense_is_answered(shared_kernel: RunningKernel) -> None:
    for kind in ("complete", "inspect"):
        content = {"code": 5, "cursor_pos": "x", "detail_level": 0}
        assert (
            shared_kernel.shell_request(f"{kind}_request", content)["content"]["status"] == "error"
        )
