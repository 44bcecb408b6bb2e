"""Shells and languages: what runs code that is given in words, in a file or not at all."""

from typing import Final

from crush_kernel.permissions.shell.judgement import RUNS_INPUT, UNKNOWN_WORD, Judgement, Word
from crush_kernel.permissions.shell.programs.names import names_in
from crush_kernel.permissions.shell.programs.options import Given, is_one, options, scan

SHELLS: Final = names_in("sh bash dash zsh ksh ash mksh fish")
_READ_ALIKE: Final = names_in("sh bash dash ash")
"""Shells whose code means to them what it means to the reader of command lines."""
_INPUT: Final = frozenset(("-", "/dev/stdin", "/dev/fd/0", "/proc/self/fd/0"))
"""What names no script, but what comes in."""
_SHELL_OPTIONS: Final = options("-ceuxvnfo: -O: --norc --noprofile --posix")

LANGUAGES: Final = names_in(
    "python python2 python3 pypy pypy3 node nodejs deno bun ruby perl php lua luajit Rscript julia"
    " osascript tclsh guile groovy scala elixir ts-node tsx pwsh ipython"
)
_TELLS_VERSION: Final = names_in(
    "python --version|python -V|python -VV|python3 --version|python3 -V|python3 -VV|node -v"
    "|node --version|ruby --version|perl --version|perl -v|php --version",
    "|",
)
_CODE_OPTIONS: Final = names_in("-c -e -E -r -p -n --eval --print --command -Command")
_LANGUAGE_OPTIONS: Final = options(
    "-uBsSIbdOqvWX: -W: -m: -c: -e: -r: -p: -E: --eval: --print: --require:"
)


def judge_shell(name: str, arguments: tuple[Word, ...]) -> Judgement:
    """Return what the shell `name` does with `arguments`."""
    given = scan(arguments, _SHELL_OPTIONS, in_order=True)
    is_clear = given.is_understood and not given.unclear
    if _has_code(given):
        script = given.operands[0] if given.operands else UNKNOWN_WORD
        if not is_one(script):
            script = Word(None, script.source)
        is_plain = name in _READ_ALIKE and (is_clear or _is_first_clear(given))
        return Judgement("runs a script", is_plain, scripts=(script,))
    if given.operands and given.operands[0].text not in _INPUT:
        depth = 2 if not given.names and given.is_understood else 0
        return Judgement("runs a script", reads=(given.operands[0],), rule_words=depth)
    return Judgement(RUNS_INPUT, scripts=(UNKNOWN_WORD,) if given.unclear else ())


def _has_code(given: Given) -> bool:
    return "-c" in given.names


def _is_first_clear(given: Given) -> bool:
    """Return whether the only doubt is the script itself, which is judged on its own."""
    return given.is_understood and given.unclear == given.operands[:1]


def judge_eval(arguments: tuple[Word, ...]) -> Judgement:
    """Return what `eval` does: its words together are the script."""
    texts = [word.text for word in arguments]
    source = " ".join(word.source for word in arguments)
    known = [text for text in texts if text is not None]
    script = Word(" ".join(known), source) if len(known) == len(texts) else Word(None, source)
    if any(word.has_glob for word in arguments):
        script = Word(None, source)
    return Judgement("runs a script", is_read_only=True, scripts=(script,))


def judge_source(arguments: tuple[Word, ...]) -> Judgement:
    """Return what `source` and `.` do."""
    if arguments and arguments[0].text in _INPUT - {"-"}:
        return Judgement(RUNS_INPUT)
    return Judgement("runs a script", reads=arguments[:1], rule_words=2 if arguments else 0)


def judge_trap(arguments: tuple[Word, ...]) -> Judgement:
    """Return what `trap` does: its first word is a script for later."""
    scripts = tuple(word for word in arguments[:1] if word.text not in ("-", "-p", "-l", "--"))
    return Judgement("runs a script later", scripts=scripts)


def module_of(name: str, arguments: tuple[Word, ...]) -> tuple[int, tuple[Word, ...]] | None:
    """Return which module of Python is run, and the place of its name among `arguments`."""
    if not name.startswith(("python", "pypy")):
        return None
    for index, word in enumerate(arguments):
        text = word.text or ""
        if not text.startswith("-"):
            return None
        if text.endswith("m") and not text.startswith("--"):
            return (index + 1, arguments[index + 1 :]) if arguments[index + 1 :] else None
    return None


def judge_language(name: str, arguments: tuple[Word, ...]) -> Judgement:
    """Return what the interpreter `name` does with `arguments`."""
    if len(arguments) == 1 and f"{name} {arguments[0].text}" in _TELLS_VERSION:
        return Judgement("tells its version", is_read_only=True)
    given = scan(arguments, _LANGUAGE_OPTIONS, in_order=True)
    if given.names & _CODE_OPTIONS:
        return Judgement("runs code")
    if not given.operands or given.operands[0].text in _INPUT:
        return Judgement(RUNS_INPUT)
    judgement = Judgement("runs a script", reads=(given.operands[0],))
    is_first = bool(arguments) and given.operands[0] is arguments[0]
    return judgement._replace(rule_words=2) if is_first and arguments[0].text else judgement
