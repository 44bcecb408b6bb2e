"""A permission request in words: nothing of a command is hidden, and nothing hides in it."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crush_kernel.agent.events import PermissionSettled
from crush_kernel.kernel import permissiontext
from crush_kernel.kernel.permissiontext import CommandView, PartRow
from crush_kernel.permissions.gate import Answer
from crush_kernel.permissions.request import CommandPart, PermissionRequest


def part(text: str, does: str = "runs it", *writes: str) -> CommandPart:
    return CommandPart(text, tuple(text.split()), does, writes=writes)


def request(command: str = "", *parts: CommandPart, **fields: Any) -> PermissionRequest:  # noqa: ANN401 - any field
    known: dict[str, Any] = {"call_id": "c", "tool": "bash", "action": "execute", "title": "run"}
    known |= {"command": command, "parts": parts, **fields}
    return PermissionRequest(**known)


def texts(view: CommandView) -> list[str]:
    return [*view.whole, *("\n".join(row.lines) for row in view.rows)]


@pytest.mark.parametrize(
    ("command", "parts", "view"),
    [
        pytest.param(
            "git stash && pytest > out.txt; ls &",
            (part("git stash"), part("pytest > out.txt", "runs code", "out.txt"), part("ls")),
            CommandView(
                whole=(),
                rows=(
                    PartRow(("git stash",), "runs it", 1, "&&"),
                    PartRow(("pytest > out.txt",), "runs code · writes out.txt", 2, ";"),
                    PartRow(("ls",), "runs it", 3, "&"),
                ),
                is_unread=False,
            ),
            id="parts that add up",
        ),
        pytest.param(
            " pytest ",
            (part("pytest"),),
            CommandView(whole=(), rows=(PartRow(("pytest",), "runs it"),), is_unread=False),
            id="a single one has no number",
        ),
        pytest.param(
            "echo $(rm x) | cat",
            (part("echo $(rm x)"), part("rm x"), part("cat")),
            CommandView(
                whole=(),
                rows=(
                    PartRow(("echo $(rm x)",), "runs it", 1, "|"),
                    PartRow(("rm x",), "runs it", 2),
                    PartRow(("cat",), "runs it", 3),
                ),
                is_unread=False,
            ),
            id="one inside another",
        ),
        pytest.param(
            "timeout 5 curl x | head",
            (
                part("timeout 5 curl x", "runs another command"),
                part("curl x", "talks to the network"),
                part("head"),
            ),
            CommandView(
                whole=(),
                rows=(
                    PartRow(("timeout 5 curl x",), "talks to the network", 1, "|"),
                    PartRow(("head",), "runs it", 2),
                ),
                is_unread=False,
            ),
            id="what only runs another one is one with it",
        ),
        pytest.param(
            "sudo env nice make > log",
            (
                CommandPart("sudo env nice make > log", ("sudo", "env", "nice", "make"), "acts"),
                part("env nice make", "runs another command"),
                part("nice make", "runs another command"),
                part("make", "runs code", "out"),
            ),
            CommandView(
                whole=(),
                rows=(PartRow(("sudo env nice make > log",), "acts · runs code · writes out"),),
                is_unread=False,
            ),
            id="one within one within one",
        ),
        pytest.param(
            "ls | xargs rm",
            (
                part("ls"),
                part("xargs rm", "runs another command"),
                CommandPart("rm ", ("rm", None), "deletes files", writes=("",)),
            ),
            CommandView(
                whole=(),
                rows=(
                    PartRow(("ls",), "runs it", 1, "|"),
                    PartRow(("xargs rm",), "deletes files", 2),
                ),
                is_unread=False,
            ),
            id="what xargs adds is no word",
        ),
        pytest.param(
            "for f in *; do rm $f; done",
            (part("rm $f"),),
            CommandView(
                whole=("for f in *; do rm $f; done",),
                rows=(PartRow(("rm $f",), "runs it"),),
                is_unread=False,
            ),
            id="parts that leave something out",
        ),
        pytest.param(
            "cat <<E\na\nE",
            (part("cat <<E\na\nE"),),
            CommandView(
                whole=(), rows=(PartRow(("cat <<E", "a", "E"), "runs it"),), is_unread=False
            ),
            id="several lines",
        ),
        pytest.param(
            "if [",
            (),
            CommandView(whole=("if [",), rows=(), is_unread=True),
            id="what could not be read",
        ),
    ],
)
def test_a_command_is_shown_by_its_parts(
    command: str, parts: tuple[CommandPart, ...], view: CommandView
) -> None:
    assert permissiontext.command_view(request(command, *parts)) == view


def test_hidden_characters_are_seen_everywhere() -> None:
    evil = "a\u202e\r\x1b"
    shown = "a⟨U+202E⟩⟨U+000D⟩⟨U+001B⟩"
    asked = request(
        evil,
        part(evil, evil, evil),
        tool=evil,
        title=evil,
        notes=(evil,),
        server=evil,
        paths=(Path(f"/{evil}\n"),),
        is_outside=True,
        on_behalf=f"agent: {evil}",
    )
    assert permissiontext.title_of(asked) == f"{shown} (sub-agent) · {shown} wants to {shown}"
    row = PartRow((shown,), f"{shown} · writes {shown}")
    assert permissiontext.command_view(asked).rows == (row,)
    assert permissiontext.outside_paths(asked) == (f"/{shown}⟨U+000A⟩",)
    assert permissiontext.notes_of(asked) == (shown,)


_PIECE = st.text(alphabet="ab $'\"(){}\n\r;&|>#", min_size=1, max_size=12)


@given(st.lists(_PIECE, min_size=1, max_size=6), st.data())
def test_whatever_the_parts_are_no_word_of_the_command_is_left_out(
    pieces: list[str], data: st.DataObject
) -> None:
    command = "".join(pieces)
    parts = [part(text) for text in data.draw(st.lists(st.sampled_from(pieces), max_size=5))]
    shown = "\n".join(texts(permissiontext.command_view(request(command, *parts))))
    for character in set(command) - set(" \n\r;&|"):
        assert shown.count(character) >= command.count(character)


@pytest.mark.parametrize(
    ("shown", "does"),
    [
        pytest.param(part("rm a b", "deletes files", "a", "b"), "deletes files: a, b", id="named"),
        pytest.param(
            part("rm a > b", "deletes files", "a", "b"),
            "deletes files · writes a, b",
            id="with a redirection",
        ),
        pytest.param(part("make", "runs code", "a"), "runs code · writes a", id="other words"),
        pytest.param(part("tee a", "", "a"), "writes a", id="no words"),
    ],
)
def test_what_is_done_to_files_is_said_in_the_word_for_it(shown: CommandPart, does: str) -> None:
    (row,) = permissiontext.command_view(request(shown.text, shown)).rows
    assert row.does == does


@pytest.mark.parametrize(
    ("title", "named"),
    [
        pytest.param("read /srv/a.csv", (), id="in the title"),
        pytest.param("read link", ("/srv/a.csv",), id="elsewhere than the title says"),
        pytest.param("read x/srv/a.csv", ("/srv/a.csv",), id="the end of another name"),
    ],
)
def test_a_path_outside_is_named_once(title: str, named: tuple[str, ...]) -> None:
    asked = request(title=title, action="read", paths=(Path("/srv/a.csv"),), is_outside=True)
    assert permissiontext.outside_paths(asked) == named


def test_of_many_files_that_are_written_some_are_named() -> None:
    (row,) = permissiontext.command_view(request("x", part("x", "", *"abcdefg"))).rows
    assert row.does == "writes a, b, c, d, e and 2 more"


LONG = request(
    "git stash push -m wip && pytest -q tests/ --maxfail 3 -x",
    part("git stash push -m wip"),
    part("pytest -q tests/ --maxfail 3 -x"),
)


@pytest.mark.parametrize(
    ("asked", "answer", "line"),
    [
        pytest.param(
            LONG,
            Answer("once"),
            "allowed once · bash git stash push -m wip && pytest -q tests/ …",
            id="once",
        ),
        pytest.param(
            request("make"),
            Answer("session"),
            "allowed for this session · bash make",
            id="session",
        ),
        pytest.param(
            request("make"),
            Answer("always", rules=("bash(make:*)", "bash(ls)")),
            "always allowed in this project: bash(make:*), bash(ls)",
            id="always here",
        ),
        pytest.param(
            request("make"),
            Answer("always", rules=("bash(make:*)",), scope="everywhere"),
            "always allowed everywhere: bash(make:*)",
            id="always everywhere",
        ),
        pytest.param(
            request("make"),
            Answer("deny", "use a branch\ninstead"),
            'denied: "use a branch instead"',
            id="denied with a reason",
        ),
        pytest.param(
            request(tool="edit", action="write", title="edit src/price.py"),
            Answer("deny"),
            "denied · edit src/price.py",
            id="denied",
        ),
    ],
)
def test_one_line_stays_of_an_answer(asked: PermissionRequest, answer: Answer, line: str) -> None:
    assert permissiontext.answer_line(asked, answer) == line


@pytest.mark.parametrize(
    ("event", "line"),
    [
        pytest.param(
            PermissionSettled(request("make"), is_allowed=True, rule="yolo mode", by="mode"),
            "no answer needed any more: yolo mode · bash make",
            id="allowed by a change of mode",
        ),
        pytest.param(
            PermissionSettled(request("make"), is_allowed=False, rule="plan mode", by="mode"),
            "no answer needed any more: denied by plan mode · bash make",
            id="denied by a change of mode",
        ),
    ],
)
def test_one_line_says_what_else_has_settled_a_question(
    event: PermissionSettled, line: str
) -> None:
    assert permissiontext.settled_line(event) == line


@pytest.mark.parametrize(
    ("path", "home", "shown"),
    [
        pytest.param("/home/ada/shop", "/home/ada", "~/shop", id="inside"),
        pytest.param("/home/ada", "/home/ada", "~", id="home itself"),
        pytest.param("/home/adam", "/home/ada", "/home/adam", id="a neighbour"),
        pytest.param("/srv", "/", "/srv", id="no home of one's own"),
    ],
)
def test_the_home_folder_is_a_tilde(path: str, home: str, shown: str) -> None:
    assert permissiontext.tilde(Path(path), home) == shown


def test_an_open_question_can_be_read_without_widgets() -> None:
    shown = permissiontext.waiting(request("rm -rf <b>", diff="+a"))
    assert shown.markdown == (
        "<sub><b>bash wants to run</b> · waiting for an answer</sub>\n\n"
        "```text\nrm -rf <b>\n```\n\n```diff\n+a\n```"
    )
    assert shown.plain == "bash wants to run: waiting for an answer"
