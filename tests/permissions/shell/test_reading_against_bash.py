"""What bash really runs is among the commands that were read, for scripts of all kinds."""

import os
import select
import shutil
import signal
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from crush_kernel.permissions.shell.judgement import CommandReading, Judgement, ReadPart, Word
from crush_kernel.permissions.shell.programs import judge
from crush_kernel.permissions.shell.reading import UNKNOWN_SCRIPT, read_command

PROGRAMS = ("p", "q", "r", "no")
"""They record how they were called; the last one fails."""
REAL = ("bash", "env", "nice", "sh", "timeout", "xargs")
HOME = "/nowhere/home"
PATIENCE_S = 5

_RECORDER = """#!/bin/sh
printf '%s\\0' "$#" "${{0##*/}}" "$@" >> "$RECORD"
exit {}
"""


def judge_all(words: tuple[Word, ...]) -> Judgement:
    """Take the recording programs for harmless whatever they get, so that all else has to hold."""
    is_ours = bool(words) and words[0].text in PROGRAMS
    return Judgement("records", is_read_only=True) if is_ours else judge(words)


@dataclass(frozen=True, slots=True)
class Bash:
    """Runs scripts where nothing can be found but what records."""

    folder: Path
    numbers: Iterator[int] = field(default_factory=count)

    @property
    def work(self) -> Path:
        return self.folder / "work"

    def run(self, script: str) -> list[tuple[str, ...]] | None:
        """Return what ran, `None` if it does not end."""
        record = self.folder / f"record{next(self.numbers)}"
        record.touch()
        environ = {
            "PATH": os.fspath(self.folder / "bin"),
            "HOME": HOME,
            "PWD": os.fspath(self.work),
            "RECORD": os.fspath(record),
            "LC_ALL": "C.UTF-8",
            "FUNCNEST": "5",
        }
        # All that it starts holds the pipe open, also in the background.
        open_end, held = os.pipe()
        with subprocess.Popen(
            ["/bin/bash", "-c", script],
            cwd=self.work,
            env=environ,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            pass_fds=(held,),
            start_new_session=True,
        ) as process:
            os.close(held)
            has_ended = bool(select.select([open_end], [], [], PATIENCE_S)[0])
            if not has_ended:
                os.killpg(process.pid, signal.SIGKILL)
        os.close(open_end)
        return list(_calls(record.read_bytes())) if has_ended else None

    def state(self) -> dict[str, bytes]:
        """Return what is in the folder."""
        return {
            os.fspath(path.relative_to(self.work)): path.read_bytes() if path.is_file() else b""
            for path in sorted(self.work.rglob("*"))
        }

    def reset(self) -> None:
        shutil.rmtree(self.work, ignore_errors=True)
        (self.work / "sub").mkdir(parents=True)
        (self.work / "a.txt").write_text("a", encoding="utf-8")
        (self.work / "sub" / "b.txt").write_text("b", encoding="utf-8")


def _calls(record: bytes) -> Iterator[tuple[str, ...]]:
    fields = record.decode("utf-8", "surrogateescape").split("\0")[:-1]
    while fields:
        end = int(fields[0]) + 2
        yield tuple(fields[1:end])
        fields = fields[end:]


@pytest.fixture(scope="module")
def bash(tmp_path_factory: pytest.TempPathFactory) -> Bash:
    folder = tmp_path_factory.mktemp("bash")
    (folder / "bin").mkdir()
    for name in PROGRAMS:
        path = folder / "bin" / name
        path.write_text(_RECORDER.format(1 if name == "no" else 0), encoding="utf-8")
        path.chmod(0o755)
    for name in REAL:
        found = next(place for place in ("/bin", "/usr/bin") if Path(place, name).exists())
        (folder / "bin" / name).symlink_to(Path(found, name))
    return Bash(folder)


def is_read(call: tuple[str, ...], part: ReadPart) -> bool:
    """Return whether `call` can be what `part` says; what is not known may be any words."""
    return _fits(list(call), list(part.words))


def _fits(call: list[str], words: list[Word]) -> bool:
    if not words:
        return not call
    word, *others = words
    if word.text is None or word.has_glob:
        return any(_fits(call[skipped:], others) for skipped in range(len(call) + 1))
    return bool(call) and call[0] == word.text and _fits(call[1:], others)


def check(bash: Bash, script: str) -> CommandReading:
    reading = read_command(script, known={"HOME": HOME, "PWD": str(bash.work)}, judge=judge_all)
    bash.reset()
    before = bash.state()
    calls = bash.run(script)
    if calls is None or UNKNOWN_SCRIPT in reading.reasons:
        return reading
    for call in calls:
        assert any(is_read(call, part) for part in reading.parts), (script, call, reading)
    if reading.is_read_only:
        assert bash.state() == before, (script, reading)
    return reading


plain = st.sampled_from(["a", "sub", "a.txt", "-n", "--flag=x", "b/c", "1", "é", "x=y", "~x", "#"])
odd = st.sampled_from(
    ["'a b'", '"a b"', "$'a\\tb'", "$'\\x70'", "a\\ b", "''", '""', "a'b'\"c\"", "\"it's\"",
     "'\"'", '"\\""', "\"\\$x\"", "$HOME", '"${HOME}/x"', "~/x", "~", "$PWD", '"~"', "{a,b}",
     "{1..2}", "{}", "*.txt", "'*'", "[a]*", "$x", '"$x"', "${x:-y}", "\"${x-'y'}\"", "$((1+2))",
     "$'\\u00e9'", "a\\\nb", "$", '"a$"', "a#b", "if", "done", "]", "!", "{", "}", "a{", "=", "a=~",
     "'\\'", "$'\\''", '"a\nb"', "\\#", "%s", "@", "^", ",", '"`"', "$\"x\"", "~+", "-", "--", "[["]
)  # fmt: skip
names = st.sampled_from(["p", "q", "r", "no", "p", "q", "'p'", '"q"', "$'\\x72'", "p''", "\\p"])


def _filled(form: str, script: str) -> str:
    return form.replace("@", script)


def _words(scripts: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    inner = st.sampled_from(["$(@)", '"$(@)"', "<(@)", "a$(@)b", '"a `p x` $(@)"', "`p @`"])
    nested = st.builds(_filled, inner, scripts)
    return plain | odd | plain | odd | nested


def _redirects(words: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    ways = st.sampled_from([">", ">>", "2>", "<", "&>", ">|", "<>", "<<<", "2>>", "> ", "3<"])
    to_files = st.builds("{}{}".format, ways, words)
    return to_files | st.sampled_from(["2>&1", ">/dev/null", "2>/dev/null", ">&2", "<&-", "2>&-"])


def _simple(scripts: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    words = _words(scripts)
    heads = st.sampled_from(
        ["", "", "", "", "! ", "time ", "x=1 ", "LC_ALL=C ", "command ", "env ", "env A=b ",
         "nice ", "timeout 5 ", "eval ", "2>&1 ", "time -p ", "exec ", "builtin ", "xargs "]
    )  # fmt: skip
    arguments = st.lists(words | _redirects(words), max_size=3).map(" ".join)
    call = st.builds("{}{} {}".format, heads, names, arguments)
    code = st.builds("{} -c '{}'".format, st.sampled_from(["sh", "bash"]), st.just("p a; q 'b'"))
    builtins = st.sampled_from(["cd sub", "cd", ":", "x=5", "true", "[ -f a.txt ]", "[[ -n a ]]"])
    documents = st.builds(
        "{} <<{}\n{}\n{}\n".format, names, st.just("E"), words, st.just("E")
    ) | st.builds("{} <<'E' {}\n{}\nE\n".format, names, words, words)
    return call | call | call | builtins | documents | code


def _compound(scripts: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    operators = st.sampled_from(
        [" && ", " || ", "; ", " | ", "\n", " |& ", " & ", ";", "&&", "|", " # x\n", " &&\n"]
    )
    forms = st.sampled_from(
        ["(@)", "{ @; }", "if @; then @; fi", "if no; then @; else @; fi", "while no; do @; done",
         "for i in 1 2; do @; done", "case a in a) @;; *) @;; esac", "f() { @; }; f", "( @ ) 2>&1",
         "until p; do @; done", "{ @\n} > out", "! { @; }", "[[ -n a && -f a.txt ]] && @",
         "while p; do @; break; done", "case x in (y|x) @ ;; esac", "eval '@'", "for x; do @; done",
         "function g { @; }; g", "((1)) && @", "coproc @", "time { @; }", "bash <<'E'\n@\nE\n"]
    )  # fmt: skip
    joined = st.builds("{}{}{}".format, scripts, operators, scripts)
    return joined | st.builds(_filled, forms, scripts)


scripts = st.recursive(
    _simple(st.sampled_from(["p", "q a", "r 'x'"])),
    lambda inner: _compound(inner) | _simple(inner),
    max_leaves=6,
)
signs = st.sampled_from([*"'\"\\$`(){}[];&|<>\n \t#!*~=a", "$(", "${", "<<", "((", "]]", ";;"])


@st.composite
def damaged(draw: st.DrawFn) -> str:
    """Return a script with a sign or two too many, or too few."""
    script = draw(scripts)
    for _ in range(draw(st.integers(1, 2))):
        at = draw(st.integers(0, len(script)))
        sign = draw(signs | st.just(""))
        script = script[:at] + sign + script[at + draw(st.integers(0, 1)) :]
    return script


fixed = settings(
    max_examples=100,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)


@pytest.mark.slow
@fixed
@given(script=scripts)
def test_what_bash_runs_was_read(bash: Bash, script: str) -> None:
    check(bash, script)


@pytest.mark.slow
@fixed
@given(script=damaged())
def test_what_bash_runs_of_a_damaged_script_was_read(bash: Bash, script: str) -> None:
    check(bash, script)
