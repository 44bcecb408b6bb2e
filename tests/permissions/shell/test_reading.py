"""What is found in command lines, and when all of it counts as looking only."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from crush_kernel.permissions.shell.folders import MAX_FOLDERS
from crush_kernel.permissions.shell.judgement import UNKNOWN_WORD, CommandReading
from crush_kernel.permissions.shell.reading import (
    MAX_CHARACTERS,
    TALKS,
    TOO_LONG,
    UNKNOWN_FOLDER,
    UNKNOWN_SCRIPT,
    WRITES,
    read_command,
)
from crush_kernel.permissions.shell.syntaxtree import (
    BACKGROUND,
    DEEP,
    FUNCTION,
    UNSURE,
    VARIABLES,
)
from crush_kernel.permissions.shell.treesitter import Outline
from crush_kernel.permissions.shell.words import decode

KNOWN = {"HOME": "/home/ann", "PWD": "/work"}


def read(text: str) -> CommandReading:
    return read_command(text, known=KNOWN)


def commands(reading: CommandReading) -> list[str]:
    """Return the words of each part, `?` for one that is not known."""
    return [" ".join(word.text or "?" for word in part.words) for part in reading.parts]


SAFE = {
    "one": "ls -la",
    "and": "ls && cat a.txt",
    "or": "cat a.txt || true",
    "lines": "ls\ncat a.txt\n",
    "pipe": "git log --oneline | head -n 5",
    "both outputs": "ls |& head",
    "comment": "ls # and no more",
    "lines of pipelines": "ls | head | cat\nls && ls |\n  head\nls",
    "comment between": "ls | head\n# more\ncat a.txt",
    "no output": "ls >/dev/null 2>&1",
    "errors away": "ls missing 2>/dev/null",
    "reads a file": "wc -l < a.txt",
    "here-document": "cat <<'EOF'\n$(touch x)\nEOF",
    "here-document, plain": "cat <<EOF | grep b\na b\nEOF\nls",
    "here-string": "grep a <<< 'a b'",
    "subshell": "(cd src && ls)",
    "group": "{ ls; pwd; }",
    "negated": "! grep -q x a.txt",
    "timed": "time ls",
    "timed in POSIX form": "time -p ls",
    "if": "if [ -f a.txt ]; then cat a.txt; else ls; fi",
    "condition": "[[ -f a.txt && -n $USER ]] && cat a.txt",
    "while": "while false; do ls; done",
    "until": "until true; do ls; done",
    "substitution": 'echo "$(git rev-parse HEAD)"',
    "backticks": "echo `date`",
    "nested substitution": 'echo "a $(echo "$(pwd)") b"',
    "of a file": 'echo "$(< a.txt)"',
    "process substitution": "echo <(ls)",
    "arithmetic": "echo $((1 + 2))",
    "variable as text": 'echo "$PATH"',
    "harmless variable": "LC_ALL=C ls",
    "pager off": "GIT_PAGER=cat git log",
    "quoted name": "l's' -l",
    "ANSI name": "$'\\x6cs'",
    "continued": "ls \\\n  -l",
    "wrapper": "timeout 5 nice ls",
    "script": "bash -c 'ls; cat a.txt'",
    "evaluated": "eval 'ls -l'",
    "cd": "cd src && cat a.txt",
    "cd that may fail": "cd src; cat a.txt",
    "cd with a way out": "cd src || exit 1; cat a.txt",
    "home": "cat ~/a.txt",
    "home by name": 'cat "$HOME/a.txt"',
    "other letters": "cat größe.txt",
    "quoted signs": "grep -n 'a; rm -rf b > c & d' a.txt",
    "pattern": "ls src/*.py",
}


@pytest.mark.parametrize("text", SAFE.values(), ids=SAFE.keys())
def test_what_only_reads_counts_as_that(text: str) -> None:
    reading = read(text)
    assert reading.is_read_only, reading


UNSAFE = {
    # Commands behind harmless ones
    "and": ("ls && touch /elsewhere/pwned", "touch /elsewhere/pwned"),
    "semicolon": ("ls; touch /elsewhere/pwned", "touch /elsewhere/pwned"),
    "pipe": ("ls | xargs touch", "touch ?"),
    "line": ("ls\ntouch /elsewhere/pwned", "touch /elsewhere/pwned"),
    "background": ("ls & touch /elsewhere/pwned", "touch /elsewhere/pwned"),
    "substitution": ("ls $(touch /elsewhere/pwned)", "touch /elsewhere/pwned"),
    "in quotes": ('ls "a $(touch x)"', "touch x"),
    "backticks": ("ls `touch /elsewhere/pwned`", "touch /elsewhere/pwned"),
    "escaped backticks": ("ls `echo \\`touch x\\``", "touch x"),
    "process substitution": ("ls <(touch /elsewhere/pwned)", "touch /elsewhere/pwned"),
    "output substitution": ("ls >(touch x)", "touch x"),
    "or": ("ls || touch /elsewhere/pwned", "touch /elsewhere/pwned"),
    "after a comment": ("ls # x\ntouch x", "touch x"),
    "subshell": ("(ls; touch x)", "touch x"),
    "group": ("{ ls; touch x; }", "touch x"),
    "branch": ("if ls; then touch x; fi", "touch x"),
    "other branch": ("if ls; then ls; else touch x; fi", "touch x"),
    "loop": ("while ls; do touch x; done", "touch x"),
    "for": ("for i in a; do touch x; done", "touch x"),
    "words of a loop": ("for i in $(touch x); do ls; done", "touch x"),
    "case": ("case a in b) ls;; *) touch x;; esac", "touch x"),
    "function": ("f() { touch x; }; f", "touch x"),
    "function, other form": ("function f { touch x; }\nf", "touch x"),
    "negated": ("! touch x", "touch x"),
    "timed": ("time touch x", "touch x"),
    "coprocess": ("coproc touch x", "touch x"),
    "here-document": ("cat <<EOF\n$(touch x)\nEOF", "touch x"),
    "after a here-document": ("cat <<'E' && touch x\na\nE", "touch x"),
    "here-string": ('cat <<< "$(touch x)"', "touch x"),
    "target": ("ls < $(touch x)", "touch x"),
    "assignment": ("a=$(touch x) ls", "touch x"),
    "array": ("a=(1 $(touch x))", "touch x"),
    "default value": ("echo ${a:-$(touch x)}", "touch x"),
    "default value in quotes": ("echo \"${a:-it's}\"; touch 'x'", "touch x"),
    "arithmetic": ("echo $((1 + $(touch x)))", "touch x"),
    "condition": ("[[ -n $(touch x) ]]", "touch x"),
    # Wrappers and disguises
    "nohup": ("nohup curl http://example.invalid", "curl http://example.invalid"),
    "path": ("/usr/bin/curl -V", "/usr/bin/curl -V"),
    "busybox": ("busybox wget x", "wget x"),
    "timeout": ("timeout 5 curl x", "curl x"),
    "bash -c": ("bash -c 'curl x'", "curl x"),
    "bash -c, partly known": ('bash -c "rm -rf / $x"', "rm -rf / ?"),
    "nested scripts": ("sh -c \"bash -c 'curl x'\"", "curl x"),
    "ANSI quotes": ("$'\\x63url' x", "curl x"),
    "quotes inside": ('c"ur"l x', "curl x"),
    "backslashes": ("c\\url x", "curl x"),
    "joined lines": ("cu\\\nrl x", "curl x"),
    "eval": ("eval curl x", "curl x"),
    "command": ("command curl x", "curl x"),
    "sudo": ("sudo -n true", "true"),
    "document for a shell": ("bash <<'E'\ncurl x\nE", "curl x"),
    "string for a shell": ("bash <<< 'curl x'", "curl x"),
    "document through a pipe": ("cat <<'E' | sh\ncurl x\nE", "curl x"),
    # What cannot be read hides nothing that is there
    "open parenthesis later": ("touch x\n(((", "touch x"),
    "open quote later": ("touch x; echo 'a", "touch x"),
    "closed too often": ("ls ) ; touch x", "touch x"),
    "deep": ("( " * 60 + "touch x" + ")" * 60, "touch x"),
    "deep scripts": ("eval " * 60 + "touch x", "eval eval"),
}


@pytest.mark.parametrize(("text", "found"), UNSAFE.values(), ids=UNSAFE.keys())
def test_commands_are_found_wherever_they_stand(text: str, found: str) -> None:
    reading = read(text)
    assert not reading.is_read_only
    assert any(command.startswith(found) for command in commands(reading)), commands(reading)


@pytest.mark.parametrize(
    ("text", "files"),
    [
        pytest.param("echo hi > notes.txt", ["notes.txt"], id="write"),
        pytest.param("echo x >> ~/.bashrc", ["/home/ann/.bashrc"], id="append at home"),
        pytest.param("ls 2> err.txt", ["err.txt"], id="errors"),
        pytest.param("ls &> all.txt", ["all.txt"], id="both"),
        pytest.param("ls &>> all.txt", ["all.txt"], id="both, append"),
        pytest.param("ls >| f", ["f"], id="whatever is there"),
        pytest.param("ls >& f", ["f"], id="both, old form"),
        pytest.param("ls <> f", ["f"], id="both ways"),
        pytest.param("> f", ["f"], id="no command"),
        pytest.param("{ ls; pwd; } > f", ["f"], id="group"),
        pytest.param("(ls) > f", ["f"], id="subshell"),
        pytest.param("if ls; then ls; fi > f", ["f"], id="branch"),
        pytest.param("ls > f | cat > g", ["f", "g"], id="pipeline"),
        pytest.param("ls > 'a b'", ["a b"], id="quoted"),
        pytest.param("sh -c 'ls > f'", ["f"], id="in a script"),
        pytest.param("cat <<E > f\nx\nE", ["f"], id="behind a here-document"),
        pytest.param("ls > $f", [None], id="not known"),
    ],
)
def test_files_that_are_written_are_named(text: str, files: list[str | None]) -> None:
    reading = read(text)
    assert [word.text for part in reading.parts for word in part.writes] == files
    assert WRITES in reading.reasons
    assert not reading.is_read_only


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        pytest.param("ls &", BACKGROUND, id="background"),
        pytest.param("coproc ls", BACKGROUND, id="coprocess"),
        pytest.param("f() { ls; }", FUNCTION, id="function"),
        pytest.param("PATH=. ls", VARIABLES, id="variable"),
        pytest.param("LC_ALL=$x ls", VARIABLES, id="harmless variable, unknown value"),
        pytest.param("GIT_PAGER=./x git log", VARIABLES, id="a pager of one's own"),
        pytest.param("for LD_PRELOAD in ./x.so; do ls; done", VARIABLES, id="for"),
        pytest.param("echo ${x@P}", UNSURE, id="prompt expansion"),
        pytest.param("echo ${!x}", UNSURE, id="indirect"),
        pytest.param("echo $((x))", UNSURE, id="arithmetic with a variable"),
        pytest.param("echo $[x]", UNSURE, id="old arithmetic"),
        pytest.param("ls\x1b", UNSURE, id="control character"),
        pytest.param("ls\r\ncat a", UNSURE, id="carriage return"),
        pytest.param("ls\u00a0-l", UNSURE, id="blank that is none"),
        pytest.param("ls \ud800", UNSURE, id="half a character"),
        pytest.param("ls 'a", UNSURE, id="open quote"),
        pytest.param("cat <<E\na", UNSURE, id="open here-document"),
        pytest.param("echo $\\\n(ls)", UNSURE, id="joined into a substitution"),
        pytest.param("echo x {fd}> /dev/null", UNSURE, id="descriptor in a variable"),
        pytest.param("cat < /dev/tcp/localhost/80", TALKS, id="network"),
        pytest.param('eval "$x"', UNKNOWN_SCRIPT, id="unknown script"),
        pytest.param("cd $x && ls", UNKNOWN_FOLDER, id="unknown folder"),
        pytest.param("cd a && cd .. && ls", UNKNOWN_FOLDER, id="up after down"),
        pytest.param("cd src; cat ../x", UNKNOWN_FOLDER, id="up where cd may have failed"),
        pytest.param("while true; do cd a; ls; done", UNKNOWN_FOLDER, id="deeper each time"),
        pytest.param("{ " * 60 + "ls", DEEP, id="deep"),
        pytest.param("ls " * MAX_CHARACTERS, TOO_LONG, id="long"),
    ],
)
def test_reasons_are_given(text: str, reason: str) -> None:
    reading = read(text)
    assert not reading.is_read_only
    assert reason in reading.reasons


@pytest.mark.parametrize(
    "text", ["cat $x", "ls $(cat a.txt)", "cat {a,b}", "echo /x | xargs cat", "cat ~bob/x"]
)
def test_what_reads_nobody_knows_what_does_not_count_as_harmless(text: str) -> None:
    assert not read(text).is_read_only


@pytest.mark.parametrize(
    ("text", "folders"),
    [
        pytest.param("cd a && ls", [None, "a"], id="in"),
        pytest.param("cd a && cd b && ls", [None, "a", "a/b"], id="further"),
        pytest.param("(cd a && ls); ls", [None, "a", None], id="subshell ends"),
        pytest.param("cd a | cat; ls", [None, None, None], id="pipeline is a subshell"),
        pytest.param("echo $(cd a && ls); ls", [None, None, "a", None], id="substitution"),
        pytest.param("{ cd a; } && ls", [None, "a"], id="group stays"),
        pytest.param("cd /x && rm y", [None, "/x"], id="absolute"),
        pytest.param("cd a; rm y", [None, ""], id="may have failed"),
        pytest.param("cd a || exit; rm y", [None, None, "a"], id="leaves if it fails"),
        pytest.param("! cd a && rm y", [None, None], id="goes on where it fails"),
        pytest.param("eval 'cd a'; rm y", [None, None, ""], id="evaluated"),
        pytest.param("bash -c 'cd a'; rm y", [None, None, None], id="a shell of its own"),
        pytest.param("f() { cd /; }; rm y", ["", ""], id="function"),
        pytest.param("cd && rm y", [None, "/home/ann"], id="home"),
        pytest.param("env -C a ls", [None, "a"], id="wrapper"),
    ],
)
def test_folders_are_followed(text: str, folders: list[str | None]) -> None:
    found = [part.directory for part in read(text).parts]
    assert [folder and (folder.text or "") for folder in found] == folders


def test_of_too_many_folders_none_is_known() -> None:
    last = read("; ".join(f"cd d{number}" for number in range(MAX_FOLDERS)) + "; rm x").parts[-1]
    assert last.directory == UNKNOWN_WORD
    assert last.folders == ()


@pytest.mark.parametrize(
    ("source", "text"),
    [
        pytest.param("a", "a", id="plain"),
        pytest.param("'a b'", "a b", id="single"),
        pytest.param('"a b"', "a b", id="double"),
        pytest.param('"a \\" \\$ \\a"', 'a " $ \\a', id="escapes in double"),
        pytest.param("a\\ b", "a b", id="escape"),
        pytest.param("$'a\\n\\x41\\101\\''", "a\nAA'", id="ANSI"),
        pytest.param("$'a\\0b'", None, id="ANSI, cut off"),
        pytest.param("$'\\u00e9'", None, id="ANSI, by locale"),
        pytest.param("a'b'\"c\"$'d'", "abcd", id="all in one"),
        pytest.param("a\\\nb", "ab", id="joined lines"),
        pytest.param("~", "/home/ann", id="home"),
        pytest.param("~/x", "/home/ann/x", id="below home"),
        pytest.param("'~'/x", "~/x", id="quoted tilde"),
        pytest.param("~bob/x", None, id="home of another"),
        pytest.param("HEAD~1", "HEAD~1", id="tilde inside"),
        pytest.param("a=~/x", None, id="tilde behind an assignment"),
        pytest.param("$HOME/x", "/home/ann/x", id="variable"),
        pytest.param('"${PWD}"', "/work", id="braced variable"),
        pytest.param("$OTHER", None, id="another variable"),
        pytest.param("$(x)", None, id="substitution"),
        pytest.param("`x`", None, id="backticks"),
        pytest.param("{a,b}", None, id="braces"),
        pytest.param("{1..3}", None, id="range"),
        pytest.param("{}", "{}", id="empty braces"),
        pytest.param("stash@{0}", "stash@{0}", id="braces that stay"),
        pytest.param("'{a,b}'", "{a,b}", id="quoted braces"),
        pytest.param("a$", "a$", id="dollar"),
        pytest.param('$"a"', None, id="translated"),
    ],
)
def test_words_are_what_programs_get(source: str, text: str | None) -> None:
    word = decode(source, KNOWN)
    assert word.text == text
    assert word.source == source
    assert not word.has_glob


@pytest.mark.parametrize("source", ["*.py", "a?", "[ab]", "'a'*", "~/*"])
def test_patterns_are_marked(source: str) -> None:
    assert decode(source, KNOWN).has_glob


@pytest.mark.parametrize("source", ["'*'", "\\*", "[", "a]"])
def test_what_only_looks_like_a_pattern_is_not_marked(source: str) -> None:
    assert not decode(source, KNOWN).has_glob


@pytest.mark.parametrize(
    "text",
    [
        "HOME=/x; cat ~/a",
        "export HOME=/x; cat ~/a",
        'read "HO"ME < f; cat ~/a',
        'eval "$x"; cat ~/a',
        "env 'HO'ME=/x bash -c 'cat ~/a'",
        "for HOME in /x; do cat ~/a; done",
        "cd b && cat $PWD/a",
    ],
)
def test_known_values_are_not_trusted_once_they_may_change(text: str) -> None:
    assert read(text).parts[-1].words[-1].text is None


safe = st.sampled_from(list(SAFE.values()))
unsafe = st.sampled_from([text for text, _ in UNSAFE.values()])
some = safe | unsafe | st.text(max_size=30)
operators = st.sampled_from([" && ", " || ", "\n", "\n\n", " | "])
few = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])


@few
@given(first=safe, operator=st.sampled_from(["\n", "\n\n"]), second=safe)
def test_safe_lines_together_are_safe(first: str, operator: str, second: str) -> None:
    # A `cd` of the first may fail, or lead away from where the second may go up, and what is
    # evaluated may say that home is elsewhere.
    both = first + operator + second
    reading = read(both)
    is_homeless = "eval" in both and ("~" in both or "HOME" in both)
    assert reading.is_read_only or UNKNOWN_FOLDER in reading.reasons or is_homeless


@few
@given(first=some, operator=operators, second=unsafe)
def test_nothing_before_it_makes_a_line_harmless(first: str, operator: str, second: str) -> None:
    assert not read(first + operator + second).is_read_only or "#" in first or "'" in first


@few
@given(text=unsafe, form=st.sampled_from(["({}\n)", "{ {}\n}", "! {}", "if ls; then {}\nfi"]))
def test_nothing_around_it_makes_a_line_harmless(text: str, form: str) -> None:
    assert not read(form.replace("{}", text)).is_read_only


def in_single_quotes(word: str) -> str:
    return "'" + word.replace("'", "'\\''") + "'"


def escaped(word: str) -> str:
    return "".join("\\" + sign for sign in word)


def in_double_quotes(word: str) -> str:
    return '"' + word.replace("$", "\\$") + '"'


@few
@given(
    words=st.lists(st.sampled_from(["-l", "a.txt", "a b", "*", "$x", ";", "'"]), max_size=3),
    name=st.sampled_from(["ls", "cat", "rm", "git", "curl", "unknown"]),
)
def test_how_words_are_quoted_changes_nothing(words: list[str], name: str) -> None:
    ways = (in_single_quotes, escaped, in_double_quotes)
    readings = [read(" ".join(map(way, [name, *words]))) for way in ways]
    assert len({reading.is_read_only for reading in readings}) == 1
    assert len({tuple(commands(reading)) for reading in readings}) == 1


@few
@given(text=st.text(max_size=200) | st.text("'\"\\$`(){}[];&|<>\n \t#!*~=a", max_size=60))
def test_no_text_is_too_much(text: str) -> None:
    read(text)


@pytest.mark.slow
@pytest.mark.parametrize(
    "sign",
    ["(", ")", "$(", "`", '"', "'", "{ ", "a=(", "f() ", "<<a\n", "{a,", "cd a; ", "tmux ",
     "npm -x ", "find a -exec b \\; ", "sudo ", "a | "],
)  # fmt: skip
def test_long_nonsense_takes_bounded_time(sign: str) -> None:
    assert not read(sign * (100_000 // len(sign))).is_read_only


@pytest.mark.parametrize("size", [10, 5_000])
def test_a_line_without_doubts_is_shown_to_both_readers(
    size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    line = f"cat {'a' * size}"
    assert read(line).is_read_only

    def unsound(*_: object) -> Outline:
        return Outline(is_sound=False, commands=frozenset(), redirects=frozenset())

    monkeypatch.setattr("crush_kernel.permissions.shell.reading.outline", unsound)
    assert read(line).reasons == (UNSURE,)
    assert not read(line).is_read_only
