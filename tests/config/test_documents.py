"""One configuration file is read whatever it is: comments forgiven, everything else a sentence."""

import json
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crush_kernel.config.documents import MAX_BYTES, MAX_DEPTH, parse_document, read_source
from crush_kernel.errors import ConfigError

HERE = Path("crush.json")

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@pytest.mark.parametrize(
    ("text", "document"),
    [
        pytest.param("", {}, id="nothing"),
        pytest.param(' \n{"a": 1}', {"a": 1}, id="JSON"),
        pytest.param('{"a": 1, // why\n}', {"a": 1}, id="line comment and trailing comma"),
        pytest.param('{/* one\ntwo */"a": [1, 2,],}', {"a": [1, 2]}, id="block comment"),
        pytest.param('{"a": "x // y /* z */ ,]",}', {"a": "x // y /* z */ ,]"}, id="in a string"),
        pytest.param('{"a": "\\"// x",}', {"a": '"// x'}, id="behind an escaped quote"),
        pytest.param('{"a": 1, /* last */ }', {"a": 1}, id="comma, comment, end"),
    ],
)
def test_a_document_is_read(text: str, document: object) -> None:
    assert parse_document(text, HERE) == document


@pytest.mark.parametrize(
    ("text", "why"),
    [
        pytest.param("{", "not valid JSON", id="cut off"),
        pytest.param("[1]", "not a JSON object", id="a list"),
        pytest.param('"x"', "not a JSON object", id="a text"),
        pytest.param('{"a": 1 /* no end', "not valid JSON", id="a comment without an end"),
        pytest.param('{"a":' * 100_000, "too deeply", id="deeper than Python goes"),
        pytest.param(
            '{"a":' * (MAX_DEPTH + 1) + "1" + "}" * (MAX_DEPTH + 1), "too deeply", id="deep"
        ),
        pytest.param('{"a": ' + "9" * 5000 + "}", "not valid JSON", id="a huge number"),
    ],
)
def test_what_is_no_document_is_told(text: str, why: str) -> None:
    with pytest.raises(ConfigError, match=why) as error:
        parse_document(text, HERE)
    assert "crush.json" in str(error.value)


@given(st.dictionaries(st.text(), JSON, max_size=4))
def test_comments_change_nothing(document: dict[str, object]) -> None:
    text = json.dumps(document, indent=1)
    assert parse_document(f"// x\n{text}\n/* y */", HERE) == document
    assert parse_document(text, HERE) == document


@pytest.mark.slow
@pytest.mark.timeout(20)
@pytest.mark.parametrize("piece", ["/*", '"', ", ", "/", '"\\', '"a', '/* "', '//"', '[{"a":'])
def test_hostile_text_costs_linear_time(piece: str) -> None:
    with pytest.raises(ConfigError):
        parse_document("{" + piece * (MAX_BYTES // len(piece)), HERE)


def test_a_file_is_read_with_its_digest(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b'\xef\xbb\xbf{"a": 1}')
    source = read_source(tmp_path / "a")
    assert source is not None
    assert source.text == '{"a": 1}'
    assert len(source.digest) == 64


def test_what_is_not_there_or_of_others_is_nothing(tmp_path: Path) -> None:
    assert read_source(tmp_path / "none") is None
    (tmp_path / "a").write_text("{}")
    assert read_source(tmp_path / "a" / "below") is None
    assert read_source(tmp_path / "a", owners=(os.getuid() + 1,)) is None
    assert read_source(tmp_path / "a", owners=(os.getuid(),)) is not None


@pytest.mark.timeout(10)
@pytest.mark.parametrize("kind", ["pipe", "folder", "device", "huge", "binary", "loop"])
def test_odd_files_are_told_and_never_waited_for(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "crush.json"
    match kind:
        case "pipe":
            os.mkfifo(path)
        case "folder":
            path.mkdir()
        case "device":
            path.symlink_to("/dev/zero")
        case "huge":
            path.write_bytes(b" " * (MAX_BYTES + 1))
        case "binary":
            path.write_bytes(b"\xff\xfe\x00")
        case _:
            path.symlink_to(path)
    with pytest.raises(ConfigError, match=r"crush\.json"):
        read_source(path)
