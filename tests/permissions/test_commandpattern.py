"""Patterns of commands: what is meant, word by word."""

import shlex

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crush_kernel.permissions.commandpattern import CommandPattern, WordPattern, parse_command
from crush_kernel.permissions.match import BadRule, Match

WORDS = st.lists(
    st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=6),
    min_size=1,
    max_size=4,
)


def pattern(text: str) -> CommandPattern:
    parsed = parse_command(text)
    assert parsed is not None
    return parsed


def argv(text: str) -> tuple[str | None, ...]:
    return tuple(None if word == "$X" else word for word in shlex.split(text))


COVERED = [
    pytest.param("git log:*", "git log", id="nothing follows a mark"),
    pytest.param("git log:*", "git log -3 --stat", id="more follows a mark"),
    pytest.param("go build *", "go build", id="nothing follows a star"),
    pytest.param("go build *", "go build ./...", id="more follows a star"),
    pytest.param("git log:*", "git log $X", id="what only the shell knows follows"),
    pytest.param("git log *", "git log -- $X a", id="what only the shell knows among others"),
    pytest.param("git status", "git status", id="exactly that"),
    pytest.param("git  status ", "git status", id="spaces do not count"),
    pytest.param("npm run test*", "npm run test:unit", id="a star in a word"),
    pytest.param("npm run test*", "npm run test", id="a star for nothing"),
    pytest.param("a*b*c x", "a1b2b3c x", id="several stars"),
    pytest.param("git * main", "git checkout main", id="a star for a word"),
    pytest.param("grep 'a*b' f", "grep 'a*b' f", id="a quoted star for itself"),
    pytest.param('grep "a*b" f', "grep 'a*b' f", id="in double quotes"),
    pytest.param(r"grep a\*b f", "grep 'a*b' f", id="behind a backslash"),
    pytest.param("git commit -m 'a b'", "git commit -m 'a b'", id="a word with a space"),
    pytest.param("printf ''", "printf ''", id="an empty word"),
    pytest.param("echo '$HOME'", r"echo \$HOME", id="a dollar in quotes"),
    pytest.param("a::*", "a: b", id="a word that ends with a colon"),
    pytest.param("ab':*'", "'ab:*'", id="a quoted mark for itself"),
    pytest.param("py*:*", "python3 x.py", id="a star and a mark"),
    pytest.param(r'echo "a\"b"', "echo 'a\"b'", id="a quote in quotes"),
]

NOT_COVERED = [
    pytest.param("git log:*", "git logs", id="no border of a word"),
    pytest.param("go build *", "go buildx", id="no border before a star"),
    pytest.param("go build *", "go", id="too short"),
    pytest.param("git status", "git status -s", id="more than exactly that"),
    pytest.param("git status", "git", id="less than exactly that"),
    pytest.param("git status", "git $X", id="what only the shell knows"),
    pytest.param("git *x", "git $X", id="what only the shell knows for a word with a star"),
    pytest.param("git * main", "git $X main", id="what only the shell knows for a word"),
    pytest.param("git:*", "$X log", id="an unknown program"),
    pytest.param("grep 'a*b' f", "grep axb f", id="a quoted star is none"),
    pytest.param(r"grep a\*b f", "grep axb f", id="an escaped star is none"),
    pytest.param("git log:*", "/x/git log", id="another program of that name"),
    pytest.param("git log:*", "FOO=1 git log", id="a variable is set for it"),
    pytest.param("a*bc*c d", "abc d", id="stretches that would overlap"),
    pytest.param("rm ?", "rm x", id="a question mark is itself"),
    pytest.param("rm [ab]", "rm a", id="brackets are themselves"),
    pytest.param("'git log:*'", "git log -3", id="all in quotes is one word"),
    pytest.param("GIT log:*", "git log", id="case counts"),
]


@pytest.mark.parametrize(("written", "command"), COVERED)
def test_a_pattern_covers_commands_by_their_words(written: str, command: str) -> None:
    assert pattern(written).covers(argv(command))


@pytest.mark.parametrize(("written", "command"), NOT_COVERED)
def test_a_pattern_does_not_cover_what_is_written_otherwise(written: str, command: str) -> None:
    assert not pattern(written).covers(argv(command))


@pytest.mark.parametrize(
    ("written", "command", "match"),
    [
        pytest.param("curl:*", "curl http://x", Match.YES, id="the program"),
        pytest.param("curl:*", "/usr/bin/curl x", Match.YES, id="with a folder"),
        pytest.param("/usr/bin/curl:*", "curl x", Match.YES, id="a folder in the rule"),
        pytest.param("curl:*", "A=1 B+=2 curl x", Match.YES, id="variables before it"),
        pytest.param("git push:*", "git push", Match.YES, id="nothing follows"),
        pytest.param("git push:*", "git -C . push", Match.MAYBE, id="an option with a value"),
        pytest.param("git push:*", "git --no-pager push x", Match.MAYBE, id="an option between"),
        pytest.param("git push -f", "git push origin -f", Match.NO, id="a word between"),
        pytest.param("git push -f:*", "git push -v -f", Match.MAYBE, id="options before options"),
        pytest.param("git push:*", "git pull", Match.NO, id="another command"),
        pytest.param("git push:*", "git stash push", Match.NO, id="the word of another command"),
        pytest.param("git push", "git push x", Match.NO, id="more than exactly that"),
        pytest.param("git push:*", "git $X", Match.MAYBE, id="a word only the shell knows"),
        pytest.param("git push:*", "$X push", Match.MAYBE, id="a program only the shell knows"),
        pytest.param("git push:*", "$X", Match.MAYBE, id="anything at all"),
        pytest.param("git push -f:*", "git $X", Match.MAYBE, id="one that may be several words"),
        pytest.param("curl:*", "$X pull", Match.MAYBE, id="an unknown program with words"),
        pytest.param("git push:*", "$X pull", Match.MAYBE, id="a program that may bring words"),
        pytest.param("git push", "git push $X", Match.MAYBE, id="a word that may be none"),
        pytest.param("git push", "git push $X y", Match.NO, id="a word that may be none, more"),
        pytest.param("curl:*", "curlie x", Match.NO, id="a longer name"),
        pytest.param("./*:*", "ls x", Match.NO, id="programs of a folder"),
        pytest.param("./*:*", "./run x", Match.YES, id="a program of that folder"),
        pytest.param("curl:*", "A=1", Match.NO, id="no program"),
    ],
)
def test_who_forbids_a_command_means_it_in_other_clothes(
    written: str, command: str, match: Match
) -> None:
    assert pattern(written).forbids(argv(command)) is match


@pytest.mark.parametrize("written", ["*", ":*", " * "])
def test_a_star_alone_is_every_command(written: str) -> None:
    assert parse_command(written) is None


@pytest.mark.parametrize(
    ("written", "said"),
    [
        pytest.param("", "has to name one", id="nothing"),
        pytest.param("git status && ls", "one simple command", id="two commands"),
        pytest.param("ls | sh", "one simple command", id="a pipe"),
        pytest.param("ls > f", "one simple command", id="a redirection"),
        pytest.param("ls\nrm x", "one simple command", id="two lines"),
        pytest.param("ls (a)", "one simple command", id="parentheses"),
        pytest.param("echo $HOME", "only the shell knows", id="a variable"),
        pytest.param('echo "$HOME"', "only the shell knows", id="a variable in quotes"),
        pytest.param("echo $(x)", "only the shell knows", id="a substitution"),
        pytest.param("echo `x`", "only the shell knows", id="backquotes"),
        pytest.param('echo "`x`"', "only the shell knows", id="backquotes in quotes"),
        pytest.param("echo 'a", "never closed", id="an open quote"),
        pytest.param('echo "a', "never closed", id="an open double quote"),
    ],
)
def test_what_is_no_simple_command_is_explained(written: str, said: str) -> None:
    with pytest.raises(BadRule, match=said):
        parse_command(written)


@given(WORDS)
def test_quoted_words_are_exactly_those_words(words: list[str]) -> None:
    made = pattern(" ".join(map(shlex.quote, words)))
    assert made.is_exact
    assert made.covers(words)
    assert not made.covers([*words, "x"])
    assert not made.covers(words[:-1])


@given(WORDS, WORDS)
def test_quoted_words_are_no_others(words: list[str], others: list[str]) -> None:
    assert pattern(" ".join(map(shlex.quote, words))).covers(others) == (words == others)


@given(WORDS, st.lists(st.one_of(st.none(), st.text(max_size=4)), max_size=3))
def test_what_is_covered_is_also_forbidden(words: list[str], more: list[str | None]) -> None:
    made = pattern(" ".join(map(shlex.quote, words)) + ":*")
    assert made.covers([*words, *more])
    if "=" not in words[0]:
        assert made.forbids([*words, *more]) is Match.YES


@given(st.lists(st.text("ab", max_size=2), min_size=1, max_size=4), st.text("ab", max_size=6))
def test_stars_match_like_any_text_between(pieces: list[str], word: str) -> None:
    import re  # noqa: PLC0415 - the other way to say it

    said = re.fullmatch(".*".join(map(re.escape, pieces)), word) is not None
    assert WordPattern(tuple(pieces)).matches(word) == said
