"""Permission questions on a keyboard: what is printed, and how a line is understood."""

from pathlib import Path
from typing import Any

import pytest

from crush_kernel.kernel import permissionconsole
from crush_kernel.permissions.gate import Answer
from crush_kernel.permissions.request import CommandPart, PermissionRequest

PARTS = (
    CommandPart("git stash", ("git", "stash"), "changes the repository"),
    CommandPart("cat <<E > o\na\nE", ("cat",), "prints files", writes=("o",)),
)


def request(**fields: Any) -> PermissionRequest:  # noqa: ANN401 - any field
    known: dict[str, Any] = {"call_id": "c", "tool": "bash", "action": "execute", "title": "run"}
    return PermissionRequest(**{**known, **fields})


def test_a_question_says_what_where_and_what_is_unusual() -> None:
    asked = request(
        command="git stash && cat <<E > o\na\nE",
        parts=PARTS,
        dangers=("it cannot be undone\u202e",),
        paths=(Path("/etc/hosts"), Path("/x\n")),
        is_outside=True,
        notes=("goes on in the background",),
        cwd=Path("/srv"),
    )
    assert list(permissionconsole.question(asked)) == [
        "bash wants to run",
        "  1  git stash &&   (changes the repository)",
        "  2  cat <<E > o",
        "     a",
        "     E   (prints files · writes o)",
        "  dangerous: it cannot be undone⟨U+202E⟩",
        "  outside the project: /etc/hosts",
        "  outside the project: /x⟨U+000A⟩",
        "  goes on in the background",
        "  in /srv",
    ]


@pytest.mark.parametrize("path", ["/srv/a", "/srv/linked"])
def test_what_is_outside_is_said_once(path: str) -> None:
    asked = request(action="read", title=f"read {path}", paths=(Path("/srv/a"),), is_outside=True)
    _, said = permissionconsole.question(asked)
    assert said == "  outside the project" + (": /srv/a" if path != "/srv/a" else "")


@pytest.mark.parametrize(
    ("line", "answer"),
    [
        pytest.param("y", Answer("once"), id="yes"),
        pytest.param("S", Answer("session"), id="session"),
        pytest.param("a", "always", id="always"),
        pytest.param("a bit later", Answer("deny", "a bit later"), id="words with a"),
        pytest.param("n no", Answer("deny", "no"), id="no"),
        pytest.param("", Answer("deny"), id="nothing"),
    ],
)
def test_a_line_is_an_answer(line: str, answer: Answer | str) -> None:
    assert permissionconsole.answer_in(line, has_offer=True) == answer


def test_always_means_nothing_where_it_is_not_offered() -> None:
    assert permissionconsole.answer_in("a", has_offer=False) == Answer("deny", "a")
    assert "always" not in permissionconsole.prompt(None)


@pytest.mark.parametrize(
    ("line", "scope"),
    [
        ("p", "project"),
        ("Everywhere", "everywhere"),
        ("", "back"),
        ("n", "back"),
        ("bash(x)", None),
    ],
)
def test_where_rules_hold_is_said_by_a_letter(line: str, scope: str | None) -> None:
    assert permissionconsole.scope_in(line) == scope


@pytest.mark.parametrize(
    ("line", "rules"),
    [
        pytest.param("bash(git log:*) view", ("bash(git log:*)", "view"), id="two"),
        pytest.param("bash(a (b) c)  ", ("bash(a (b) c)",), id="nested"),
        pytest.param("view view", ("view",), id="twice"),
        pytest.param("bash(a b", ("bash(a b",), id="not closed"),
        pytest.param(") view", (")", "view"), id="closed too often"),
    ],
)
def test_rules_are_written_with_blanks_between(line: str, rules: tuple[str, ...]) -> None:
    assert permissionconsole.rules_in(line) == rules
