"""Laws of what is known of programs: never looser for more words, never an error."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crush_kernel.permissions.shell.judgement import Word
from crush_kernel.permissions.shell.programs import judge
from crush_kernel.permissions.shell.programs.git import LOOKING as GIT_LOOKING
from crush_kernel.permissions.shell.programs.looking import LOOKING
from crush_kernel.permissions.shell.programs.options import options
from crush_kernel.permissions.shell.programs.wrappers import WRAPPERS
from tests.permissions.shell.commandwords import judged, words_of
from tests.permissions.shell.programlines import (
    DANGEROUS,
    HARMLESS,
    NOT_READ_ONLY,
    READ_ONLY,
    lines_of,
)

LINES = [
    words_of(line)
    for table in (READ_ONLY, NOT_READ_ONLY, DANGEROUS, HARMLESS)
    for _, line in lines_of(table)
]
WORDS = sorted({word for line in LINES for word in line}, key=lambda word: word.source)
NAMES = sorted({line[0] for line in LINES}, key=lambda word: word.source)
UNKNOWN = Word(None, "$x")

WITH_OPTIONS = [
    words
    for kind in (
        "lists",
        "reads",
        "searches",
        "tells",
        "changes text on its way",
        "git",
        "archives",
    )
    for words in (words_of(line) for line_kind, line in lines_of(READ_ONLY) if line_kind == kind)
    if "--" not in [word.text for word in words]
]

commands = st.tuples(
    st.sampled_from(NAMES),
    st.lists(st.one_of(st.sampled_from(WORDS), st.just(UNKNOWN)), max_size=6),
).map(lambda drawn: (drawn[0], *drawn[1]))
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
any_words = st.lists(
    st.builds(Word, st.one_of(st.none(), texts), texts, has_glob=st.booleans()), max_size=6
).map(tuple)


@given(
    st.sampled_from(WITH_OPTIONS),
    st.from_regex(r"--no-such-[a-z]{0,9}", fullmatch=True),
    st.booleans(),
)
def test_an_option_that_is_not_listed_does_not_only_read(
    words: tuple[Word, ...],
    option: str,
    is_last: bool,  # noqa: FBT001 - drawn
) -> None:
    word = Word(option, option)
    more = (*words, word) if is_last else (words[0], word, *words[1:])
    assert judge(words).is_read_only
    assert not judge(more).is_read_only


@pytest.mark.parametrize("name", sorted([*LOOKING, *(f"git {name}" for name in GIT_LOOKING)]))
def test_an_abbreviated_option_does_not_only_read(name: str) -> None:
    use = GIT_LOOKING[name[4:]] if name.startswith("git ") else LOOKING[name]
    known = use.options.values
    for option in known:
        short = option[:-1]
        if option.startswith("--") and short not in known and short != "-":
            assert not judged(f"{name} {short}").is_read_only, short


@given(commands)
def test_what_only_reads_writes_nothing(words: tuple[Word, ...]) -> None:
    found = judge(words)
    if found.is_read_only:
        assert (found.writes, found.dangers, found.removes_trees) == ((), (), False)


@given(commands)
def test_a_rule_names_words_that_stand_there(words: tuple[Word, ...]) -> None:
    found = judge(words)
    named = words[: found.rule_words]
    assert len(named) == found.rule_words
    assert all(word.text is not None and not word.has_glob for word in named)
    if found.dangers or found.removes_trees:
        assert found.rule_words == 0


@given(commands)
def test_a_program_of_the_project_never_only_reads(words: tuple[Word, ...]) -> None:
    name = words[0].text or ""
    own = Word(f"./{name}", f"./{name}")
    found = judge((own, *words[1:]))
    assert not found.is_read_only
    if name and "/" not in name and not words[0].has_glob:
        assert found.dangers == judge(words).dangers


@pytest.mark.parametrize(
    "name",
    [*sorted(name for name, use in LOOKING.items() if not use.is_harmless), "find", "sed", "awk"],
)
@pytest.mark.parametrize(
    "word",
    [
        pytest.param(UNKNOWN, id="unknown"),
        pytest.param(Word("*", "*", has_glob=True), id="every name"),
        pytest.param(Word("?.py", "?.py", has_glob=True), id="names that start with any letter"),
    ],
)
def test_what_may_turn_out_to_be_an_option_does_not_only_read(name: str, word: Word) -> None:
    assert not judge((Word(name, name), word)).is_read_only


@given(any_words)
def test_no_words_are_an_error(words: tuple[Word, ...]) -> None:
    assert judge(words).does


@given(st.sampled_from(sorted(WRAPPERS)), any_words)
def test_no_words_of_a_wrapper_are_an_error(name: str, words: tuple[Word, ...]) -> None:
    assert judge((*words_of(name), *words)).does


@pytest.mark.parametrize(
    ("text", "values"),
    [
        pytest.param("-abn:", {"-a": "", "-b": "", "-n": ":"}, id="letters together"),
        pytest.param(
            "--all --width: --color?", {"--all": "", "--width": ":", "--color": "?"}, id="long"
        ),
        pytest.param("--arg::", {"--arg": "::"}, id="two values"),
        pytest.param("-exec=", {"-exec": ""}, id="one dash"),
    ],
)
def test_options_are_written_down(text: str, values: dict[str, str]) -> None:
    assert options(text).values == values
