"""What Tab offers."""

from pathlib import Path

import pytest

from crush_kernel.kernel.completion import MAX_MATCHES, Match, file_matches, reply, wanted_at
from crush_kernel.tools.attachments import Mention, mentions


@pytest.mark.parametrize(
    ("code", "wanted"),
    [
        pytest.param("/", ("command", "", 0), id="a slash"),
        pytest.param("  /he", ("command", "he", 2), id="a command in the making"),
        pytest.param("/model gp", ("argument", "gp", 7), id="an argument"),
        pytest.param("/model ", ("argument", "", 7), id="an empty argument"),
        pytest.param("see @", ("file", "", 4), id="an at sign"),
        pytest.param("see @src/m", ("file", "src/m", 4), id="a path"),
        pytest.param('see @"my f', ("file", "my f", 4), id="a quoted path with a blank"),
        pytest.param("ünï @a", ("file", "a", 4), id="positions are code points"),
        pytest.param("one\ntwo @x", ("file", "x", 8), id="on the second line"),
    ],
)
def test_what_is_wanted_at_the_cursor(code: str, wanted: tuple[str, str, int]) -> None:
    found = wanted_at(code, len(code))
    assert found is not None
    assert (found.kind, found.word, found.start) == wanted


@pytest.mark.parametrize(
    "code",
    [
        pytest.param("", id="nothing"),
        pytest.param("what is this", id="plain words"),
        pytest.param("me@example", id="an address"),
        pytest.param("use a/b", id="a slash inside"),
        pytest.param("@a b", id="after the word has ended"),
    ],
)
def test_nothing_is_offered_for_plain_text(code: str) -> None:
    assert wanted_at(code, len(code)) is None


def test_files_are_offered_folders_first_with_their_types(tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    for name in ("setup.py", "Space bar.md", ".hidden", "other"):
        (tmp_path / name).touch()
    assert file_matches("s", tmp_path) == [
        Match("@src/", "folder"),
        Match('@"Space bar.md"', "file"),
        Match("@setup.py", "file"),
    ]


@pytest.mark.parametrize(
    ("name", "offered"),
    [
        pytest.param("a`b.txt", '@"a`b.txt"', id="a backtick"),
        pytest.param("a,b.txt", '@"a,b.txt"', id="a comma"),
        pytest.param("a<b>.txt", '@"a<b>.txt"', id="a tag"),
        pytest.param('a"b', None, id="a quote"),
        pytest.param("a\nb", None, id="a line break"),
        pytest.param("a\tb", '@"a\tb"', id="a tab"),
        pytest.param("a:3", None, id="what would be a line"),
        pytest.param("a\x1b[31m", None, id="an escape"),
        pytest.param("a\u202egpj.exe", None, id="text that runs backwards"),
        pytest.param("a\udcff", None, id="a byte that is no text"),
    ],
)
def test_what_is_offered_is_what_a_prompt_can_mention(
    tmp_path: Path, name: str, offered: str | None
) -> None:
    (tmp_path / name).touch()
    matches = [match.text for match in file_matches("a", tmp_path)]
    assert matches == ([offered] if offered else [])
    assert all(mentions(text) == (Mention(name),) for text in matches)


def test_hidden_files_are_offered_only_when_asked_for(tmp_path: Path) -> None:
    (tmp_path / ".env").touch()
    assert file_matches("", tmp_path) == []
    assert file_matches(".", tmp_path) == [Match("@.env", "file")]


@pytest.mark.parametrize("word", ["nowhere/x", "\0", "~nobody-here/x"])
def test_a_folder_that_cannot_be_listed_offers_nothing(word: str, tmp_path: Path) -> None:
    assert file_matches(word, tmp_path) == []


def test_a_reply_names_types_and_is_bounded() -> None:
    wanted = wanted_at("/h", 2)
    content = reply("/h", 2, wanted, [Match(f"/{n}", "command") for n in range(500)])
    assert len(content["matches"]) == MAX_MATCHES
    assert (content["cursor_start"], content["cursor_end"]) == (0, 2)
    assert content["metadata"]["_jupyter_types_experimental"][0] == {
        "start": 0,
        "end": 2,
        "text": "/0",
        "type": "command",
    }
