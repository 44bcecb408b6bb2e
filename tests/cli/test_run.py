"""`run` as a user meets it: a real process with a real kernel, offline."""

import copy
import json
import re
import shutil
import signal
from pathlib import Path
from typing import Any, cast

import nbformat
import pytest

from tests.fakes import headless
from tests.fakes.eventful import REFUSED, settings
from tests.fakes.headless import markdown
from tests.fakes.offline import LONG, turn, wants
from tests.fakes.provider.replies import Call, Reply, Say, Think, say
from tests.fakes.provider.server import FakeProvider
from tests.fakes.runs import LIMIT_S, Done, Place, family, is_gone, kernel_of, wait_until

# A test takes a few seconds; on cores that many share, each of its processes takes ten.
pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]

HELLO = turn("say hello", {"text": "Hello **there**."})
LOOK = turn("look", {"text": "I look.", **wants("ls", path=".")}, {"text": "That is all."})
MAKE = turn(
    "make a file",
    wants("write", file_path="new.txt", content="made\n"),
    [{"if_denied": True, "text": "As you like."}, {"text": "It is made."}],
)
FAIL = turn("maybe", {"text": "So far so good.", "error": "authentication_failed"})
MEND = turn("maybe", {"text": "Now it works."})
WAIT = turn("maybe", {"text": "One moment.", "delay_s": LONG})
BYE = turn("say bye", {"text": "Bye."})


def sleep(seconds: int) -> dict[str, Any]:
    """Return a turn whose command sleeps; each test has its own number, to find it by."""
    command = f"echo begun; sleep {seconds}"
    return turn("maybe", {"text": "I wait."} | wants("bash", command=command, description="wait"))


@pytest.fixture
def place(tmp_path: Path) -> Place:
    made = Place(tmp_path / "home", tmp_path / "case")
    made.play(HELLO, LOOK, MAKE, FAIL, BYE)
    return made


FIRST = ("say hello", "look", "/status", "!echo out", "say bye")


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory) -> tuple[Place, Done]:
    """A notebook of all kinds of cells that was run once; nobody changes it."""
    folder = tmp_path_factory.mktemp("first")
    made = Place(folder / "home", folder / "case")
    made.play(HELLO, LOOK, BYE)
    made.write(*FIRST)
    return made, made.run()


@pytest.fixture
def ran(first: tuple[Place, Done], place: Place) -> Place:
    """A place to which the notebook was brought after its first run, without the journal."""
    shutil.copy(first[0].path, place.path)
    return place


def record_of(cell: Any) -> Any:  # noqa: ANN401 - nbformat carries no types
    return cell.metadata["crush"]


def assert_kept_well(notebook: Any) -> None:  # noqa: ANN401 - the same
    nbformat.validate(notebook)
    assert "widgets" not in notebook.metadata
    for cell in notebook.cells:
        assert "execution" not in cell.metadata
        kinds = {kind for output in cell.get("outputs", ()) for kind in output.get("data", {})}
        assert kinds <= {"text/markdown", "text/plain"}, "a widget, or a second record"


# A run from beginning to end


def test_a_fresh_notebook_is_run_and_keeps_its_session(first: tuple[Place, Done]) -> None:
    place, done = first

    assert done.exit_code == 0, done.err
    notebook = place.notebook
    assert_kept_well(notebook)
    assert notebook.metadata["crush"]["id"]
    assert notebook.metadata["language_info"]["name"] == "markdown"
    assert [cell.execution_count for cell in notebook.cells] == [1, 2, 3, 4, 5]
    for number in (0, 1, 3, 4):
        record = record_of(notebook.cells[number])
        assert (record["turn"], record["end"]) == (f"cell-{number}.1", "end_turn")
    assert "crush" not in notebook.cells[2].metadata, "a command has made a turn"
    assert "Hello **there**." in markdown(notebook.cells[0])
    assert "out" in markdown(notebook.cells[3])


def test_programs_read_what_happened_in_order(first: tuple[Place, Done]) -> None:
    _, done = first

    told = [(event["event"], event.get("cell")) for event in done.events]
    assert told == [
        ("started", None),
        *((kind, "cell-0") for kind in ("cell_started", "text", "cell_finished")),
        ("cell_started", "cell-1"),
        *((kind, "cell-1") for kind in ("text", "tool_called", "tool_answered", "text")),
        ("cell_finished", "cell-1"),
        *((kind, "cell-2") for kind in ("cell_started", "output", "cell_finished")),
        *((kind, "cell-3") for kind in ("cell_started", "output", "cell_finished")),
        *((kind, "cell-4") for kind in ("cell_started", "text", "cell_finished")),
        ("finished", None),
    ]
    texts = [event["text"] for event in done.those("text")]
    assert texts == ["Hello **there**.", "I look.", "That is all.", "Bye."]
    (answered,) = done.those("tool_answered")
    assert (answered["tool"], answered["outcome"]) == ("ls", "ok")
    cells = done.those("cell_finished")
    assert [cell["model"] for cell in cells[:3]] == ["offline/offline", "offline/offline", ""]
    written = [cell["usage"]["output_tokens"] for cell in cells if cell["usage"]]
    assert len(written) == 3
    usage = done.those("finished")[0]["usage"]
    assert usage["output_tokens"] == sum(written) > 0
    assert usage["is_estimated"] is True


def test_what_is_up_to_date_is_left_alone(first: tuple[Place, Done]) -> None:
    place, _ = first
    before, when = place.path.read_bytes(), place.path.stat().st_mtime_ns

    done = place.run()

    assert (done.exit_code, done.ran) == (0, [])
    assert done.those("finished")[0]["up_to_date"] == 5
    assert (place.path.read_bytes(), place.path.stat().st_mtime_ns) == (before, when)


def without_volatile(value: Any) -> Any:  # noqa: ANN401 - JSON
    match value:
        case dict():
            items = cast("dict[str, Any]", value).items()
            return {key: without_volatile(each) for key, each in items if key != "volatile"}
        case list():
            return [without_volatile(each) for each in cast("list[Any]", value)]
        case _:
            return value


def comparable(place: Place) -> list[str]:
    """Return the lines of a notebook as they are the same in every place and at any time."""
    notebook = json.loads(place.path.read_text(encoding="utf-8"))
    text = json.dumps(without_volatile(notebook), indent=1, sort_keys=True)
    text = text.replace(str(place.folder), "…")
    return re.sub(r"\d+(\.\d+)? s\b", "… s", text).splitlines()


def test_two_copies_that_run_apart_stay_the_same_but_for_what_is_volatile(
    tmp_path: Path,
) -> None:
    # Paths of the same length, since the model reads them and the tokens count.
    one, two = (Place(tmp_path / name / "home", tmp_path / name / "case") for name in ("1", "2"))
    for place in (one, two):
        place.play(HELLO, LOOK)
        place.write("say hello", "look", "/status", "!echo out")
        assert place.run().exit_code == 0

    assert comparable(one) == comparable(two)


def test_people_read_answers_on_one_stream_and_progress_on_the_other(place: Place) -> None:
    place.write("look", "!echo out")

    done = place.done()

    assert done.exit_code == 0
    assert done.out == "That is all.\nout\n"
    rows = [re.sub(r"~?\d[\d.k ]* (s|in|out)\b", "…", row) for row in done.err.splitlines()]
    assert rows == [
        "work.ipynb: 2 cells, kernel crush",
        "[1/2] look",
        "  ● ls .",
        "  └ ls · 1 entry",
        "  ✓ · … · … …",
        "[2/2] !echo out",
        "  ✓ · …",
        "2 cells run · … · … …",
    ]


def test_what_happens_is_told_while_it_happens(place: Place) -> None:
    with begun(place, 640, "--json") as process:
        assert process.stdout is not None
        rows = iter(process.stdout.readline, "")
        told = next(event for row in rows if (event := json.loads(row))["event"] == "tool_called")
        wait_until(lambda: headless.is_running("640"))
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=LIMIT_S)

    assert (told["cell"], told["tool"]) == ("cell-1", "bash")


# What runs again


def test_an_edited_cell_runs_again_and_what_is_below_it(ran: Place) -> None:
    before = ran.notebook.cells

    ran.edit(lambda notebook: notebook.cells[1].update(source="say hello"))
    done = ran.run()

    assert done.exit_code == 0
    assert done.reasons == {"cell-1": "edited", "cell-2": "command", "cell-4": "context changed"}
    after = ran.notebook.cells
    assert (after[0], after[3]) == (before[0], before[3])
    assert [record_of(after[number])["run"] for number in (0, 1, 3, 4)] == [1, 2, 1, 2]


def test_a_new_cell_runs_and_the_commands_along_with_it(ran: Place) -> None:
    ran.edit(lambda notebook: notebook.cells.append(new_cell("look", "cell-5")))

    done = ran.run()

    assert done.reasons == {"cell-2": "command", "cell-5": "never run"}


def new_cell(text: str, cell_id: str) -> Any:  # noqa: ANN401 - nbformat carries no types
    return nbformat.v4.new_code_cell(text, id=cell_id)  # pyright: ignore[reportUnknownMemberType]


def test_history_that_was_not_made_here_is_told_as_a_warning(ran: Place) -> None:
    ran.edit(lambda notebook: notebook.cells.append(new_cell("look", "cell-5")))

    done = ran.run()

    (warning,) = done.those("warning")
    assert "History from this file" in warning["text"]


def test_all_runs_everything_anew(ran: Place) -> None:
    done = ran.run("--all")

    assert done.reasons == {f"cell-{number}": "asked for" for number in range(5)}
    assert [record_of(ran.cell(number))["run"] for number in (0, 1, 3, 4)] == [2, 2, 2, 2]


def test_texts_and_cells_that_are_to_be_skipped_stay_as_they_are(place: Place) -> None:
    place.write("# a title", "say hello", "fail for ever")

    def prepare(notebook: Any) -> None:  # noqa: ANN401 - nbformat carries no types
        title, _, skipped = notebook.cells
        for field in ("outputs", "execution_count"):
            del title[field]
        title.cell_type = "markdown"
        skipped.metadata["tags"] = ["skip-execution"]

    place.edit(prepare)
    before = place.notebook

    done = place.run()

    assert (done.exit_code, done.ran) == (0, ["cell-1"])
    assert (place.cell(0), place.cell(2)) == (before.cells[0], before.cells[2])


def test_a_notebook_that_another_program_has_run_is_gone_on_with(place: Place) -> None:
    place.write("say hello", "look")
    other = headless.PROGRAMS[0].run(
        place.path, place.path, headless.environment(place.home, **place.environ)
    )
    assert other.exit_code == 0, other.log
    before = place.notebook.cells
    place.edit(lambda notebook: notebook.cells.append(new_cell("say bye", "cell-2")))

    done = place.run()

    assert done.reasons == {"cell-2": "never run"}
    assert done.statuses == {"cell-2": "ok"}
    assert place.notebook.cells[:2] == before


# Denied, failed, late


def test_what_is_denied_is_told_by_the_exit_code_and_the_turn_goes_on(place: Place) -> None:
    place.write("make a file", "say hello")

    done = place.run()

    assert done.exit_code == 3
    assert done.ran == ["cell-0", "cell-1"]
    (denied,) = done.those("permission_denied")
    assert (denied["cell"], denied["tool"]) == ("cell-0", "write")
    assert "nobody can be asked" in denied["reason"]
    assert "As you like." in markdown(place.cell(0))
    assert not (place.folder / "new.txt").exists()
    assert_kept_well(place.notebook)


def test_what_nobody_could_allow_is_not_up_to_date(place: Place) -> None:
    place.write("say hello", "make a file")

    first, again = place.run(), place.run()
    allowed = place.run("--permission-mode", "accept-edits")
    done = place.run()

    assert [each.exit_code for each in (first, again, allowed, done)] == [3, 3, 0, 0]
    assert again.ran == allowed.ran == ["cell-1"]
    assert again.those("cell_started")[0]["reason"] == "nobody to ask"
    assert again.those("finished")[0]["unasked"] == [2]
    assert done.ran == []
    assert (place.folder / "new.txt").exists()


def test_a_permission_mode_lets_it_pass(place: Place) -> None:
    place.write("make a file")

    done = place.run("--permission-mode", "accept-edits")

    assert done.exit_code == 0
    assert (place.folder / "new.txt").read_text(encoding="utf-8") == "made\n"


def test_a_failed_cell_ends_the_run_and_the_next_run_goes_on_there(place: Place) -> None:
    place.write("say hello", "maybe", "say bye")

    done = place.run()

    assert done.exit_code == 1
    assert done.statuses == {"cell-0": "ok", "cell-1": "failed"}
    assert done.those("cell_finished")[1]["error"] == "AuthenticationFailed"
    first, failed, never = place.notebook.cells
    assert record_of(failed)["end"] == "error"
    assert "So far so good." in markdown(failed)
    assert [output.ename for output in failed.outputs if "ename" in output] == [
        "AuthenticationFailed"
    ]
    assert (never.outputs, never.execution_count) == ([], None)

    place.play(MEND, BYE)
    done = place.run()

    assert done.exit_code == 0
    assert done.reasons == {"cell-1": "failed", "cell-2": "never run"}
    assert place.cell(0) == first


def test_errors_can_be_allowed_and_are_told_all_the_same(place: Place) -> None:
    place.write("maybe", "say bye")

    done = place.run("--allow-errors")

    assert done.exit_code == 1
    assert done.statuses == {"cell-0": "failed", "cell-1": "ok"}


def test_a_cell_that_takes_too_long_is_interrupted_and_fails(place: Place) -> None:
    place.play(sleep(641))
    place.write("maybe", "say hello")

    done = place.run("--timeout", "3", "--permission-mode", "yolo")

    assert done.exit_code == 1
    assert done.statuses == {"cell-0": "timed_out"}
    assert record_of(place.cell(0))["end"] == "interrupted"
    assert "begun" in markdown(place.cell(0))
    assert not headless.is_running("641")


# Stopped and killed


def begun(place: Place, number: int, *options: str) -> Any:  # noqa: ANN401 - a context manager
    """Start a run whose last cell is a sleep of `number` seconds."""
    place.play(HELLO, sleep(number))
    place.write("say hello", "maybe")
    return place.running("--permission-mode", "yolo", *options)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=lambda each: each.name)
def test_a_stop_interrupts_the_cell_saves_and_leaves_nothing_behind(
    place: Place, number: signal.Signals
) -> None:
    with begun(place, 642) as process:
        wait_until(lambda: headless.is_running("642"))
        started = family(process)
        process.send_signal(number)
        _, err = process.communicate(timeout=LIMIT_S)

    assert process.returncode == 130, err
    assert "interrupted" in err
    assert all(map(is_gone, started))
    assert not headless.is_running("642")
    first, cut = place.notebook.cells
    assert (record_of(first)["end"], record_of(cut)["end"]) == ("end_turn", "interrupted")
    assert "begun" in markdown(cut)
    assert_kept_well(place.notebook)


def test_a_stop_before_the_kernel_is_there_ends_at_once(place: Place) -> None:
    before = place.write("say hello").read_bytes()
    with place.running("--json") as process:
        assert process.stdout is not None
        assert json.loads(process.stdout.readline())["event"] == "started"
        wait_until(lambda: len(family(process)) > 1)
        started = family(process)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=LIMIT_S)

    assert process.returncode == 130
    assert all(map(is_gone, started))
    assert place.path.read_bytes() == before


def test_a_second_stop_does_not_wait_for_a_kernel_that_hangs(place: Place) -> None:
    with begun(place, 643) as process:
        wait_until(lambda: headless.is_running("643"))
        kernel_of(process).suspend()
        process.send_signal(signal.SIGINT)
        assert process.stderr is not None
        wait_until(lambda: "once more" in process.stderr.readline())
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=LIMIT_S)

    assert process.returncode == 130
    wait_until(lambda: not headless.is_running("643"))
    assert record_of(place.cell(0))["end"] == "end_turn"


def test_a_kernel_that_dies_is_told_and_what_was_shown_is_saved(place: Place) -> None:
    with begun(place, 644, "--json") as process:
        wait_until(lambda: headless.is_running("644"))
        kernel_of(process).kill()
        out, err = process.communicate(timeout=LIMIT_S)

    assert process.returncode == 1, err
    ended = [json.loads(row) for row in out.splitlines()][-2]
    assert (ended["cell"], ended["status"]) == ("cell-1", "died")
    assert record_of(place.cell(0))["end"] == "end_turn"
    assert_goes_on(place)


def test_a_run_that_is_killed_has_lost_the_running_cell_at_most(place: Place) -> None:
    with begun(place, 645) as process:
        wait_until(lambda: headless.is_running("645"))
        kernel = kernel_of(process)
        process.kill()
        wait_until(lambda: is_gone(kernel) and not headless.is_running("645"))

    assert record_of(place.cell(0))["end"] == "end_turn"
    assert_goes_on(place)


def assert_goes_on(place: Place) -> None:
    """Check that the next run carries out the second cell only, on top of the first."""
    first = copy.deepcopy(place.cell(0))
    place.play(HELLO, MEND)

    done = place.run()

    assert done.exit_code == 0
    assert done.reasons == {"cell-1": "interrupted"}
    assert place.cell(0) == first
    second = place.cell(1)
    assert record_of(second)["end"] == "end_turn"
    assert "Now it works." in markdown(second)
    assert "begun" not in markdown(second)
    assert_kept_well(place.notebook)


@pytest.mark.parametrize(
    ("protocol", "has_journal"),
    [
        pytest.param("anthropic", False, id="anthropic, by the notebook alone"),
        pytest.param("openai", True, id="openai"),
    ],
)
def test_a_resumed_run_sends_what_was_said_before_byte_for_byte(
    place: Place,
    provider: FakeProvider,
    protocol: str,
    has_journal: bool,  # noqa: FBT001 - a case
) -> None:
    place.environ = settings(protocol, provider)
    place.write("look around", "and now", "go on")
    look = Reply((Think("Where am I?"), Say("I look."), Call("ls", {"path": "."})))
    provider.play(look, say("Two files."), say("Fine."), REFUSED)
    assert place.run().exit_code == 1
    before = provider.requests[-1].raw
    if not has_journal:
        shutil.rmtree(place.folder / ".crush")

    provider.play(say("Done."))
    done = place.run()

    assert done.exit_code == 0, done.err
    assert done.reasons == {"cell-2": "failed"}
    assert provider.requests[-1].raw == before
    assert not any(request.refusal for request in provider.requests)


# Where it reads and writes


def test_another_file_is_written_and_the_notebook_left_alone(place: Place) -> None:
    before = place.write("say hello").read_bytes()
    (place.folder / "out").mkdir()

    done = place.run("--output", "out/done.ipynb")

    assert done.exit_code == 0
    assert place.path.read_bytes() == before
    written = headless.read(place.folder / "out" / "done.ipynb")
    assert "Hello **there**." in markdown(written.cells[0])
    assert done.events[0]["output"] == "out/done.ipynb"


def test_a_link_to_a_notebook_is_run_and_stays_a_link(place: Place) -> None:
    place.write("say hello")
    (place.folder / "link.ipynb").symlink_to("work.ipynb")

    done = place.run(notebook="link.ipynb")

    assert done.exit_code == 0
    assert (place.folder / "link.ipynb").is_symlink()
    assert record_of(place.cell(0))["end"] == "end_turn"


def test_a_notebook_that_somebody_else_saves_meanwhile_is_not_overwritten(place: Place) -> None:
    with begun(place, 646) as process:
        wait_until(lambda: headless.is_running("646"))
        place.edit(lambda notebook: notebook.metadata.update(title="mine"))
        theirs = place.path.read_bytes()
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=LIMIT_S)

    assert process.returncode == 1
    assert "changed by somebody else" in err
    assert place.path.read_bytes() == theirs
    (aside,) = place.folder.glob("work-*.ipynb")
    assert record_of(headless.read(aside).cells[1])["end"] == "interrupted"


def test_a_place_that_cannot_be_written_is_told_before_any_cell_runs(place: Place) -> None:
    place.write("!touch ran.txt")

    done = place.run("--output", "/proc/done.ipynb")

    assert done.exit_code == 1
    assert "cannot be written" in done.err
    assert "cannot be written" in done.those("finished")[0]["message"]
    assert not (place.folder / "ran.txt").exists()


def test_a_notebook_without_ids_and_kernelspec_gets_both(place: Place) -> None:
    place.write("say hello")
    raw = json.loads(place.path.read_text(encoding="utf-8"))
    del raw["cells"][0]["id"], raw["metadata"]["kernelspec"]
    raw["nbformat_minor"] = 4
    place.path.write_text(json.dumps(raw), encoding="utf-8")

    assert place.run().exit_code == 0

    assert_kept_well(place.notebook)
    assert place.notebook.metadata["kernelspec"]["name"] == "crush"


def test_the_notebook_that_a_run_is_started_from_is_not_taken_for_its_own(ran: Place) -> None:
    outer = ran.path.rename(ran.folder / "outer.ipynb")
    ran.environ["JPY_SESSION_NAME"] = str(outer)
    ran.write("say hello")

    assert ran.run().reasons == {"cell-0": "never run"}


def test_modules_in_the_folder_of_a_notebook_are_not_run(place: Place) -> None:
    for name in ("anyio", "httpx2", "ipywidgets", "json", "pydantic", "sitecustomize"):
        trap = f"open({str(place.home / 'sprung')!r}, 'w').write({name!r})\n"
        (place.folder / f"{name}.py").write_text(trap, encoding="utf-8")
    place.write("say hello", "!echo out")

    assert place.run().exit_code == 0

    assert not (place.home / "sprung").exists()


# Which kernel


def test_a_notebook_of_another_kernel_is_refused(place: Place) -> None:
    place.write("print('hello')")
    python = {"name": "python3", "display_name": "Python 3", "language": "python"}
    place.edit(lambda notebook: notebook.metadata.update(kernelspec=python))

    done = place.run()

    assert done.exit_code == 2
    assert "is for the kernel 'python3', not for Crush" in done.err
    assert "--kernel crush" in done.err
    assert done.those("cell_started") == []


def test_a_kernel_that_keeps_no_turns_runs_every_cell(place: Place) -> None:
    place.write("print('hello')", "print('bye')")

    done = place.run("--kernel", "python3")

    assert done.exit_code == 0
    assert [event["text"] for event in done.those("output")] == ["hello", "bye"]
    assert len(done.those("warning")) == 1


DEAF = """
from crush_kernel.kernel.app import CrushApp
from crush_kernel.kernel.kernel import CrushKernel
class Deaf(CrushKernel):
    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.comm_manager.targets.clear()
CrushApp.kernel_class = Deaf
CrushApp.launch_instance()
"""


def test_a_kernel_of_ours_that_knows_no_comm_runs_every_cell(place: Place) -> None:
    install(place, "deaf", "-c", DEAF, "-f", "{connection_file}")
    place.write("say hello", "look")

    done = place.run("--kernel", "deaf")

    assert done.exit_code == 0, done.err
    assert done.statuses == {"cell-0": "ok", "cell-1": "ok"}
    assert ["That is all." in event["text"] for event in done.those("output")] == [False, True]
    assert len(done.those("warning")) == 1
    nbformat.validate(place.notebook)


def install(place: Place, name: str, *argv: str) -> None:
    """Install a kernelspec that starts Python with `argv`."""
    folder = place.home / "jupyter" / "kernels" / name
    folder.mkdir(parents=True)
    spec = {"argv": ["python", *argv], "display_name": name, "language": "x"}
    (folder / "kernel.json").write_text(json.dumps(spec), encoding="utf-8")


def test_a_kernel_that_does_not_start_is_told(place: Place) -> None:
    install(place, "broken", "-c", "exit(3)")
    place.write("say hello")

    done = place.run("--kernel", "broken")

    assert done.exit_code == 1
    assert "the kernel does not start" in done.those("finished")[0]["message"]
    assert "Traceback" not in done.err


def test_a_model_that_does_not_exist_fails_the_cell(place: Place) -> None:
    place.write("say hello")

    done = place.run("--model", "no-such-model")

    assert done.exit_code == 1
    assert "no-such-model" in done.those("cell_finished")[0]["message"]
