"""`nbconvert --to crush-audit`: a true report of whatever notebook, which runs nothing."""

import io
import json
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from nbformat import NotebookNode

from crush_kernel.cli.auditexporter import AuditExporter, document_of
from crush_kernel.history.journal.journal import Journal
from crush_kernel.history.notebook import read_ipynb
from crush_kernel.history.record import SessionHeader, write_header, write_turn
from crush_kernel.history.turn import Turn
from crush_kernel.history.usermark import user_mark
from crush_kernel.kernel.audithtml import audit_html
from crush_kernel.messages import JsonObject, Message, Text, ToolCall, ToolResult, Usage

ALARM = "<script>alarm()</script><img src=x onerror=alarm()>\u202e"

SESSION = "session-1"


def answered(call_id: str, **metadata: Any) -> Message:  # noqa: ANN401 - JSON
    is_error = metadata.get("summary") == "denied"
    return Message("tool", (ToolResult(call_id, "", is_error=is_error, metadata=metadata),))


def called(call_id: str, name: str, **arguments: str) -> Message:
    return Message(
        "assistant",
        (ToolCall(call_id, name, json.dumps(arguments)),),
        provider="anthropic",
        model="claude-sonnet-4-5",
        usage=Usage(input_tokens=1_000_000),
    )


TURN = Turn(
    "a",
    1,
    messages=(
        Message("user", (Text("Make it."),)),
        called("c1", "view", file_path="a.py"),
        answered("c1", permission="reading inside the project", permission_by="built-in"),
        called("c2", "edit", file_path="b.py"),
        answered("c2", permission="allowed once", permission_by="person", diff="+b"),
        called("c3", "bash", command="rm -r build"),
        answered("c3", permission="denied", permission_by="nobody", summary="denied"),
    ),
    end="end_turn",
)


def notebook_of(*turns: Turn, session: str = SESSION, title: str = "A tour") -> dict[str, Any]:
    cells: list[JsonObject] = [
        {
            "id": turn.cell_id,
            "cell_type": "code",
            "source": "",
            "outputs": [],
            "execution_count": 1,
            "metadata": {"crush": dict(write_turn(turn))},
        }
        for turn in turns
    ]
    header = dict(write_header(SessionHeader(id=session, title=title)))
    return {"nbformat": 4, "nbformat_minor": 5, "metadata": {"crush": header}, "cells": cells}


def report_on(notebook: object) -> str:
    page, _ = AuditExporter().from_file(io.StringIO(json.dumps(notebook)))
    assert isinstance(page, str)
    return page


class Tags(HTMLParser):
    """Collects what a page would do in a browser."""

    def __init__(self) -> None:
        super().__init__()
        self.names: set[str] = set()
        self.attributes: set[str] = set()
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.names.add(tag)
        self.attributes |= {name for name, _ in attrs}

    def handle_data(self, data: str) -> None:
        self.text += data


def read(page: str) -> Tags:
    tags = Tags()
    tags.feed(page)
    return tags


def assert_harmless(page: str) -> None:
    tags = read(page)
    assert not tags.names & {"script", "img", "iframe", "object", "a", "link", "form", "svg"}
    assert not any(name.startswith("on") for name in tags.attributes)
    assert "default-src 'none'" in page
    assert "\u202e" not in page
    page.encode()


def test_the_notebook_alone_tells_every_call_and_says_that_it_proves_nothing() -> None:
    text = read(report_on(notebook_of(TURN))).text

    assert "Audit of A tour" in text
    assert "Calls3: 1 read in the project, 1 allowed by the user, 1 denied since nobody" in text
    assert "Turn 1 · “Make it.”" in text
    assert "rm -r build" in text
    assert "Changed files: b.py" in text
    assert "anthropic/claude-sonnet-4-5" in text
    assert "3.0 M tokens in" in text
    assert "$9.00" in text
    assert "the notebook alone" in text
    assert "anybody who can edit the file can change" in text


def write_journal(home: Path, project: Path, *facts: JsonObject) -> None:
    mark = user_mark(home / ".local" / "share" / "crush")
    journal = Journal.open(project / ".crush", mark=mark)
    journal.adopt(SESSION, str(project / "nb.ipynb"))
    for each in facts:
        journal.decided(SESSION, str(each.get("turn", TURN.id)), each)
    journal.close()


DECISION: JsonObject = {
    "call_id": "c2",
    "tool": "edit",
    "action": "write",
    "title": "edit secret.py",
    "is_allowed": True,
    "by": "person",
    "rule": "always allowed in this project",
    "kept_rules": ["edit(src/**)"],
    "kept_scope": "project",
    "at": "2025-01-02T03:04:05+00:00",
}


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    for name in ("CRUSH_GLOBAL_DATA", "XDG_DATA_HOME"):
        monkeypatch.delenv(name, raising=False)
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "nb.ipynb").write_text(json.dumps(notebook_of(TURN)))
    return folder


def test_the_users_journal_says_when_and_by_what_rule(project: Path, tmp_path: Path) -> None:
    lost: JsonObject = {**DECISION, "turn": "gone.1", "call_id": "c9", "title": "edit lost.py"}
    write_journal(tmp_path / "home", project, DECISION, lost)
    page, _ = AuditExporter().from_filename(str(project / "nb.ipynb"))
    text = read(page).text

    assert "2025-01-02 03:04:05 UTC" in text
    assert "from then on, in this project: edit(src/**)" in text
    assert "Runs that are not in the notebook" in text
    assert "edit lost.py" in text
    # The journal's word goes before that of the notebook, which says another file.
    assert "edit secret.py" in text
    assert str(project / ".crush" / "notebooks.db") in text


def test_a_journal_that_came_with_a_repository_is_not_believed(
    project: Path, tmp_path: Path
) -> None:
    write_journal(tmp_path / "stranger", project, DECISION)
    user_mark(tmp_path / "home" / ".local" / "share" / "crush")
    before = sorted(path.name for path in (project / ".crush").iterdir())
    page, _ = AuditExporter().from_filename(str(project / "nb.ipynb"))
    text = read(page).text

    assert "another user" in text
    assert "secret.py" not in text
    assert sorted(path.name for path in (project / ".crush").iterdir()) == before


@pytest.mark.parametrize(
    "damage",
    [
        pytest.param(b"", id="empty"),
        pytest.param(b"no database at all", id="no database"),
        pytest.param(b"SQLite format 3\0" + b"\xff" * 5000, id="damaged"),
    ],
)
def test_a_journal_that_cannot_be_read_is_left_alone(
    project: Path, tmp_path: Path, damage: bytes
) -> None:
    user_mark(tmp_path / "home" / ".local" / "share" / "crush")
    journal = project / ".crush" / "notebooks.db"
    journal.parent.mkdir()
    journal.write_bytes(damage)
    page, _ = AuditExporter().from_filename(str(project / "nb.ipynb"))

    assert "the notebook alone" in page
    assert journal.read_bytes() == damage
    assert [path.name for path in journal.parent.iterdir()] == ["notebooks.db"]


HOSTILE = Turn(
    "a",
    1,
    messages=(
        Message("user", (Text(ALARM),)),
        called("c1", ALARM, command=ALARM),
        answered("c1", permission=ALARM, permission_by=ALARM, summary=ALARM, diff=ALARM),
        called("c1", "view", file_path=ALARM),
        answered("nobody", permission={}, permission_by=3, summary=[], subagent="x"),
    ),
    volatile={"ended": ALARM},
    end="end_turn",
)


def test_nothing_in_a_notebook_is_more_than_text() -> None:
    page = report_on(notebook_of(HOSTILE, session=ALARM, title=ALARM))

    assert_harmless(page)
    assert "⟨U+202E⟩" in page
    assert "&lt;script&gt;alarm()" in page


def test_nothing_in_a_journal_is_more_than_text(project: Path, tmp_path: Path) -> None:
    loud: JsonObject = {
        **dict.fromkeys(DECISION, ALARM),
        "is_allowed": False,
        "kept_rules": [ALARM, 3],
        "parts": [ALARM],
        "effective_input": ALARM,
        "call_id": "c2",
        "tool": "edit",
    }
    write_journal(tmp_path / "home", project, loud)
    page, _ = AuditExporter().from_filename(str(project / "nb.ipynb"))

    assert "notebooks.db" in page
    assert_harmless(page)


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(b"", id="nothing"),
        pytest.param(b"\xff\xfe", id="no text"),
        pytest.param(b"{", id="no JSON"),
        pytest.param(b"[]", id="no object"),
        pytest.param(b"[" * 100_000, id="nested"),
        pytest.param(b'{"nbformat": 3, "worksheets": []}', id="another version"),
        pytest.param(b'{"nbformat": 4, "metadata": 3, "cells": {}}', id="cells that are none"),
        pytest.param(b'{"nbformat": 4, "cells": [3, {"metadata": {"crush": []}}]}', id="odd cells"),
    ],
)
def test_what_is_no_notebook_makes_a_report_that_says_so(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "odd.ipynb"
    path.write_bytes(data)
    page, resources = AuditExporter().from_filename(str(path))

    assert "Audit of odd" in page
    assert resources["output_extension"] == ".html"
    assert_harmless(page)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner),
    max_leaves=8,
)
RECORDS = st.fixed_dictionaries(
    {"version": st.just(1), "turn": st.just("a.1"), "run": st.just(1)},
    optional={
        "messages": st.lists(
            st.fixed_dictionaries({"role": st.sampled_from(("assistant", "tool")), "parts": JSON})
        ),
        "volatile": JSON,
        "end": JSON,
    },
)


@given(record=RECORDS, header=JSON)
def test_no_record_makes_the_report_fail(record: object, header: object) -> None:
    notebook = notebook_of()
    notebook["metadata"]["crush"] = header
    notebook["cells"] = [{"cell_type": "code", "id": "a", "metadata": {"crush": record}}]

    assert_harmless(audit_html(document_of(read_ipynb(json.dumps(notebook)), "nb", None)))


def test_a_notebook_in_memory_makes_the_same_report() -> None:
    node = NotebookNode(notebook_of(TURN))
    page, _ = AuditExporter().from_notebook_node(node)

    assert page == report_on(notebook_of(TURN))


@pytest.mark.slow
def test_nbconvert_knows_the_format_and_runs_nothing(project: Path, tmp_path: Path) -> None:
    notebook = notebook_of(TURN)
    notebook["cells"][0]["source"] = f"open({str(tmp_path / 'run')!r}, 'w')"
    (project / "nb.ipynb").write_text(json.dumps(notebook))
    write_journal(tmp_path / "home", project, DECISION)
    command = [sys.executable, "-m", "nbconvert", "--to", "crush-audit", "--execute", "nb.ipynb"]
    done = subprocess.run(command, cwd=project, capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stderr
    text = read((project / "nb.html").read_text(encoding="utf-8")).text
    assert "Audit of A tour" in text
    assert re.search(r"made from the notebook and from the journal", text)
    assert not (tmp_path / "run").exists()
