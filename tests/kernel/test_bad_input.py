"""What a front end, a person or a file may send that nobody would expect."""

import shutil
from collections.abc import Generator
from pathlib import Path

import psutil
import pytest

from crush_kernel.history.journal.journal import Journal
from tests.fakes.kernel import Cell, Msg, RunningKernel, running_kernel
from tests.fakes.offline import offline_script, turn

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def kernel(tmp_path_factory: pytest.TempPathFactory) -> Generator[RunningKernel]:
    home, cwd = tmp_path_factory.mktemp("home"), tmp_path_factory.mktemp("cwd")
    script = offline_script(home, turn("hello", {"text": "Hello."}), turn("*", {"text": "Heard."}))
    with running_kernel(cwd=cwd, home=home, env=script) as running:
        yield running


def assert_alive(kernel: RunningKernel) -> None:
    assert "Hello." in kernel.run("hello").markdown


def execute(kernel: RunningKernel, content: Msg, metadata: Msg | None = None) -> str:
    """Send an execute request with exactly this content."""
    message = kernel.client.session.msg("execute_request", content, metadata=metadata)
    kernel.client.shell_channel.send(message)
    return message["header"]["msg_id"]


def plain(code: object) -> Msg:
    return {"code": code, "silent": False, "store_history": True, "user_expressions": {}}


@pytest.mark.parametrize(
    "code",
    [
        pytest.param("a\0b", id="NUL"),
        pytest.param("\0", id="NUL alone"),
        pytest.param("a\x1b[31mb\x07\x08", id="control characters"),
        pytest.param("\u202egnp.exe", id="text that runs backwards"),
        pytest.param("\ufeffhello there", id="a byte order mark"),
        pytest.param("z" + "\u0301" * 5000, id="a letter under a tower"),
        pytest.param("👩‍👩‍👧‍👦" * 500, id="composed emoji"),
        pytest.param("$$ \\frac{1}{0} $$ <script>alert(1)</script>", id="markup"),
        pytest.param("@", id="an at sign"),
        pytest.param("@\0 @~nobody/x @" + "a/" * 3000, id="impossible files"),
        pytest.param('@"unfinished', id="an open quotation"),
        pytest.param("@a.py:99999999999999999999-1", id="impossible lines"),
        pytest.param("```\nopen fence", id="an open fence"),
        pytest.param("x" * 5_000_000, id="five million characters"),
        pytest.param("line\n" * 10_000, id="ten thousand lines"),
        pytest.param("@nowhere.txt " * 5_000, id="five thousand mentions"),
    ],
)
def test_any_text_is_a_prompt(kernel: RunningKernel, code: str) -> None:
    cell = kernel.run(code)
    assert cell.status == "ok"
    assert "Heard." in cell.markdown
    assert_alive(kernel)


@pytest.mark.parametrize(
    ("code", "name"),
    [
        pytest.param("/", "CommandError", id="no command"),
        pytest.param("/\0", "CommandError", id="NUL"),
        pytest.param("/" + "x" * 100_000, "CommandError", id="a very long command"),
        pytest.param("/model " + "y" * 100_000, "CommandError", id="a very long argument"),
        pytest.param("/model \x1b[31m\0", "CommandError", id="control characters"),
        pytest.param("/model ../../etc/passwd", "CommandError", id="a path"),
    ],
)
def test_a_senseless_command_is_refused_in_short(
    kernel: RunningKernel, code: str, name: str
) -> None:
    cell = kernel.run(code)
    assert cell.reply["content"]["ename"] == name
    assert len(str(cell.reply["content"])) < 5_000
    assert "\x1b" not in str(cell.reply["content"]["traceback"])
    assert_alive(kernel)


def test_half_a_character_in_a_cell_does_not_stop_the_kernel(kernel: RunningKernel) -> None:
    # As JSON escapes it: a browser may send what it has split in the middle.
    session = kernel.client.session
    message = session.serialize(session.msg("execute_request", plain("say HALF of it")))
    delimiter, _, *parts = [part.replace(b"HALF", rb"\ud83d") for part in message]
    kernel.client.shell_channel.socket.send_multipart([delimiter, session.sign(parts), *parts])

    cell = kernel.collect(str(session.unpack(parts[0])["msg_id"]))

    assert "Heard." in cell.markdown
    assert_alive(kernel)


@pytest.mark.parametrize(
    "command",
    [
        pytest.param("!printf 'a\\0b'", id="NUL"),
        pytest.param("!printf '\\377\\376\\303'", id="no UTF-8"),
        pytest.param("!printf '\\033[2J\\033]0;title\\007'", id="control sequences"),
        pytest.param("!yes | head -c 20000000", id="twenty megabytes"),
        pytest.param("!head -c 3000000 /dev/urandom", id="noise"),
        pytest.param("!cat", id="a command that wants input"),
        pytest.param("!exit 3", id="nothing but an exit code"),
        pytest.param("!kill -9 $$", id="a shell that kills itself"),
        pytest.param("!(((", id="no shell grammar"),
    ],
)
def test_whatever_a_command_prints_the_cell_ends_with_bounded_output(
    kernel: RunningKernel, command: str
) -> None:
    cell = kernel.run(command)
    assert cell.status == "ok"
    assert len(str(cell.outputs)) < 500_000
    assert not set(cell.markdown) & set("\0\x1b\x07")
    assert_alive(kernel)


@pytest.mark.parametrize(
    ("command", "word"),
    [
        pytest.param("!echo a\0b", "NUL", id="NUL"),
        pytest.param("!" + "echo a;" * 20_000, "140000 bytes", id="longer than any that fits"),
    ],
)
def test_a_command_that_cannot_be_run_is_refused_in_words(
    kernel: RunningKernel, command: str, word: str
) -> None:
    cell = kernel.run(command)
    assert cell.status == "error"
    assert word in cell.reply["content"]["evalue"]
    assert len(str(cell.messages)) < 20_000 + len(command)
    assert_alive(kernel)


@pytest.mark.parametrize(
    "metadata",
    [
        pytest.param({"cellId": 7}, id="a number"),
        pytest.param({"cellId": None}, id="null"),
        pytest.param({"cellId": ["a"]}, id="a list"),
        pytest.param({"cellId": {"a": 1}}, id="an object"),
        pytest.param({"cellId": ""}, id="empty"),
        pytest.param({"cellId": "x" * 1_000_000}, id="a million characters"),
        pytest.param({"cellId": "a\0b\n"}, id="control characters"),
        pytest.param({"cellId": "vscode-notebook-cell:/p/x.ipynb#W0s"}, id="as VS Code says it"),
        pytest.param({"crush": "nonsense", "cellId": "a"}, id="a broken record"),
        pytest.param({"crush": {"version": 99, "messages": 1}, "cellId": "a"}, id="a later record"),
        pytest.param({"deletedCells": {"a": 1}, "trusted": "?", "cellId": "a"}, id="wrong fields"),
    ],
)
def test_odd_metadata_does_not_keep_a_cell_from_running(
    kernel: RunningKernel, metadata: Msg
) -> None:
    cell = kernel.collect(execute(kernel, plain("hello"), metadata))
    assert cell.status == "ok"
    assert "Hello." in cell.markdown


@pytest.mark.parametrize(
    "content",
    [
        pytest.param({}, id="nothing"),
        pytest.param({"silent": False}, id="no code"),
        pytest.param(plain(None), id="null"),
        pytest.param(plain(7), id="a number"),
        pytest.param(plain(["hello"]), id="a list"),
    ],
)
def test_a_request_without_code_is_answered_with_an_error(
    kernel: RunningKernel, content: Msg
) -> None:
    reply = kernel.reply(execute(kernel, content))["content"]
    assert (reply["status"], reply["ename"]) == ("error", "CommandError")
    assert_alive(kernel)


@pytest.mark.parametrize("msg_type", ["complete_request", "inspect_request"])
@pytest.mark.parametrize(
    "content",
    [
        pytest.param({"code": "/he", "cursor_pos": -5}, id="a cursor before the start"),
        pytest.param({"code": "/he", "cursor_pos": 10**9}, id="a cursor behind the end"),
        pytest.param({"code": "@\0", "cursor_pos": 2}, id="NUL"),
        pytest.param({"code": "@/proc/", "cursor_pos": 7}, id="a folder of the system"),
        pytest.param({"code": "@" + "a/" * 5000, "cursor_pos": 10_001}, id="an impossible path"),
        pytest.param({"code": "@" * 100_000, "cursor_pos": 50_000}, id="at signs"),
        pytest.param({"code": "/" * 100_000, "cursor_pos": 100_000}, id="slashes"),
        pytest.param({"code": "", "cursor_pos": 0}, id="nothing"),
    ],
)
def test_the_editor_gets_an_answer_to_any_question(
    kernel: RunningKernel, msg_type: str, content: Msg
) -> None:
    reply = kernel.shell_request(msg_type, {**content, "detail_level": 0})["content"]
    assert reply["status"] == "ok"


@pytest.mark.parametrize(
    ("msg_type", "content"),
    [
        pytest.param("complete_request", {}, id="completion of nothing"),
        pytest.param("inspect_request", {"code": 3, "cursor_pos": "x"}, id="inspection"),
        pytest.param("is_complete_request", {"code": None}, id="completeness"),
        pytest.param("history_request", {"hist_access_type": "?"}, id="history"),
        pytest.param("comm_info_request", {"target_name": 3}, id="comms"),
        pytest.param("comm_open", {"target_name": "nobody", "data": 3}, id="an unknown comm"),
        pytest.param("comm_msg", {"comm_id": "gone", "data": {}}, id="a message to a gone comm"),
        pytest.param("comm_close", {}, id="the end of no comm"),
        pytest.param("comm_open", {"comm_id": "x", "target_name": "jupyter.widget"}, id="a widget"),
    ],
)
def test_a_malformed_message_harms_nobody(
    kernel: RunningKernel, msg_type: str, content: Msg
) -> None:
    kernel.client.shell_channel.send(kernel.client.session.msg(msg_type, content))
    assert_alive(kernel)


def test_fifty_queued_cells_run_in_order_with_one_reply_each(kernel: RunningKernel) -> None:
    sent = [kernel.execute("hello", cell_id=f"cell-{number}") for number in range(50)]

    counts, outputs = list[int](), list[str]()
    for msg_id in sent:
        cell = kernel.collect(msg_id)
        assert cell.status == "ok"
        counts.append(cell.reply["content"]["execution_count"])
        outputs.append(cell.markdown)

    assert counts == list(range(counts[0], counts[0] + 50))
    assert all(output.count("Hello.") == 1 for output in outputs)


N_QUEUED = 200
STOPPED = 100
"""The cell among them that is interrupted."""


def test_two_hundred_queued_cells_are_run_up_to_the_one_that_is_stopped(tmp_path: Path) -> None:
    home, cwd = tmp_path / "home", tmp_path / "cwd"
    home.mkdir()
    cwd.mkdir()
    turns = [turn(f"ask {n}.", {"text": f"answer {n}."}) for n in range(N_QUEUED)]
    turns[STOPPED] = turn(f"ask {STOPPED}.", {"text": "word ", "repeat": 100_000, "pace_s": 0.02})
    env = {**offline_script(home, *turns), "JPY_SESSION_NAME": str(cwd / "nb.ipynb")}
    with running_kernel(cwd=cwd, home=home, env=env) as kernel:
        kernel.run("/help")
        before = psutil.Process(kernel.pid).memory_info().rss
        sent = [kernel.execute(f"ask {n}.", cell_id=f"cell-{n}") for n in range(N_QUEUED)]
        cells = [kernel.collect(msg_id) for msg_id in sent[:STOPPED]]
        kernel.wait_for(lambda message: "word word" in str(message["content"].get("data")))
        kernel.interrupt()
        rest = [kernel.collect(msg_id) for msg_id in sent[STOPPED:]]
        grown = psutil.Process(kernel.pid).memory_info().rss - before
        later = kernel.run("ask 150.", cell_id="cell-150")

    assert [f"answer {n}." in cell.markdown for n, cell in enumerate(cells)] == [True] * STOPPED
    assert {cell.status for cell in cells} == {"ok"}
    assert [cell.status for cell in rest] == ["error", *["aborted"] * (N_QUEUED - STOPPED - 1)]
    assert [cell.kinds for cell in rest[1:]] == [["status", "status"]] * len(rest[1:])
    assert "answer 150." in later.markdown
    assert grown < 60_000_000
    kept = Journal.open(cwd / ".crush")
    session = kept.find(str(cwd / "nb.ipynb"), None)
    assert session is not None
    ran = [*range(STOPPED + 1), 150]
    assert [stored.cell_id for stored in kept.turns(session)] == [f"cell-{n}" for n in ran]
    kept.close()


def failed_clearly(cell: Cell) -> bool:
    content = cell.reply["content"]
    return content["ename"] != "CrushKernelError" and content["evalue"].endswith(".")


CODES_WITHOUT_FOLDER = ("look", "!pwd", "/status", "make a file", "@plan.md", "hello")


def test_a_kernel_works_in_a_folder_that_goes_away(tmp_path: Path) -> None:
    home, cwd = tmp_path / "home", tmp_path / "cwd"
    home.mkdir()
    cwd.mkdir()
    with running_kernel(cwd=cwd, home=home, env=offline_script(home)) as kernel:
        assert kernel.run("hello").status == "ok"
        shutil.rmtree(cwd)
        cells = [kernel.run(code, cell_id=None) for code in CODES_WITHOUT_FOLDER]
    assert not cwd.exists()
    assert all(cell.status == "ok" or failed_clearly(cell) for cell in cells)
    assert "Hello **there**." in cells[-1].markdown
