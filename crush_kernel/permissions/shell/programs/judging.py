"""Which table knows a program, and what its judgement comes to: never looser than what is known.

Source: Crush, bash: safe read-only check, banned commands, argument blockers, and their gaps.
"""

import re
from collections.abc import Callable, Mapping
from typing import Final

from crush_kernel.permissions.shell.judgement import Judgement, Word
from crush_kernel.permissions.shell.programs.builtins import (
    HARMLESS,
    judge_cd,
    judge_harmless,
    judge_read,
    judge_set,
    judge_umask,
)
from crush_kernel.permissions.shell.programs.changing import (
    CHANGING,
    judge_changing,
    judge_dd,
    judge_tar,
    judge_unzip,
)
from crush_kernel.permissions.shell.programs.containers import judge_container
from crush_kernel.permissions.shell.programs.dangers import dangers_of
from crush_kernel.permissions.shell.programs.effects import effect_of, words_of_rule
from crush_kernel.permissions.shell.programs.find import judge_find
from crush_kernel.permissions.shell.programs.git import judge_git
from crush_kernel.permissions.shell.programs.littlelanguages import (
    judge_awk,
    judge_jq,
    judge_printf,
    judge_sed,
    judge_test,
)
from crush_kernel.permissions.shell.programs.looking import LOOKING
from crush_kernel.permissions.shell.programs.names import Program, program_of
from crush_kernel.permissions.shell.programs.operands import judge_given, judge_usage
from crush_kernel.permissions.shell.programs.options import may_be_option, scan
from crush_kernel.permissions.shell.programs.shells import (
    LANGUAGES,
    SHELLS,
    judge_eval,
    judge_language,
    judge_shell,
    judge_source,
    judge_trap,
    module_of,
)
from crush_kernel.permissions.shell.programs.versions import judge_telling
from crush_kernel.permissions.shell.programs.wrappers import WRAPPERS, judge_wrapper

_UNKNOWN: Final = Judgement("runs a program that only the shell can know")


def judge(words: tuple[Word, ...]) -> Judgement:
    """Return what the simple command `words` does, by its program and all its arguments.

    Args:
        words: the name of the program first; without assignments and redirections.
    """
    program = program_of(words[0]) if words else None
    if program is None:
        return _UNKNOWN
    arguments = words[1:]
    judged = _known(program, arguments)
    dangers = dangers_of(program.name, arguments)
    if judged.dangers:
        dangers = tuple(dict.fromkeys((*judged.dangers, *dangers)))
    if dangers or judged.removes_trees:
        return judged._replace(dangers=dangers, is_read_only=False, rule_words=0)
    if any(word.text is None or word.has_glob for word in words[: judged.rule_words]):
        judged = judged._replace(rule_words=0)
    # What is called like a program of the system need not be it.
    return judged if program.is_system else judged._replace(is_read_only=False)


def _known(program: Program, arguments: tuple[Word, ...]) -> Judgement:
    name = program.name
    if judged := judge_telling(name, arguments):
        return judged
    if special := _SPECIAL.get(name):
        return special(arguments)
    if wrapped := _wrapped(name, arguments):
        return wrapped
    if name in HARMLESS:
        return judge_harmless(name)
    if name in SHELLS:
        return judge_shell(name, arguments)
    if name in LANGUAGES or name.startswith(("python2.", "python3.", "pypy3.")):
        return _language(name, arguments)
    return _by_table(name, arguments)


def _by_table(name: str, arguments: tuple[Word, ...]) -> Judgement:
    if use := LOOKING.get(name):
        judged = judge_usage(use, arguments)
        if judged.is_read_only or name not in CHANGING:
            return judged._replace(does="writes files") if judged.writes else judged
    if name in CHANGING:
        return judge_changing(name, arguments)
    if name in ("docker", "podman"):
        return judge_container(name, arguments)
    return Judgement(effect_of(name, arguments), rule_words=words_of_rule(name, arguments))


def _wrapped(name: str, arguments: tuple[Word, ...]) -> Judgement | None:
    if wrapper := WRAPPERS.get(name):
        return judge_wrapper(wrapper, arguments)
    first = arguments[0].text if arguments else None
    if first is None or not (wrapper := WRAPPERS.get(f"{name} {first}")):
        return None
    return judge_wrapper(wrapper, arguments[1:])._replace(rule_words=words_of_rule(name, arguments))


def _language(name: str, arguments: tuple[Word, ...]) -> Judgement:
    module = module_of(name, arguments)
    if module is None:
        return judge_language(name, arguments)
    at, words = module
    # A module in the folder goes before the one that is installed: it is the project's code.
    inner = judge(words)
    depth = inner.rule_words and inner.rule_words + at + 1
    return inner._replace(is_read_only=False, rule_words=depth if at == 1 else 0)


def _date(arguments: tuple[Word, ...]) -> Judgement:
    given = scan(arguments, LOOKING["date"].options)
    # Anything but a format sets the time.
    given.is_understood &= all((word.text or "").startswith("+") for word in given.operands)
    return judge_given(LOOKING["date"], given)


_PROCESSES: Final = re.compile(r"[0-9]+|[aAcfghjlmnrsSTuvwxXZ]+")
_PROCESS_FORMAT: Final = re.compile(r"[aAcfghjlmnrsSTuvwxXZ]*[oOkpqtU]")


def _ps(arguments: tuple[Word, ...]) -> Judgement:
    given = scan(arguments, LOOKING["ps"].options)
    texts = [word.text or "" for word in given.operands]
    # `e` would show the variables of all processes, and so the keys of others.
    given.is_understood &= all(
        _PROCESSES.fullmatch(text)
        or _PROCESS_FORMAT.fullmatch(text)
        or (at > 0 and _PROCESS_FORMAT.fullmatch(texts[at - 1]))
        for at, text in enumerate(texts)
    )
    return judge_given(LOOKING["ps"], given)


def _strings(arguments: tuple[Word, ...]) -> Judgement:
    given = scan(arguments, LOOKING["strings"].options)
    # `@file` is as many further arguments as are written in there.
    given.is_understood &= not any(
        (word.text or "").startswith("@") or (word.has_glob and may_be_option(word))
        for word in arguments
    )
    return judge_given(LOOKING["strings"], given)


def _command(arguments: tuple[Word, ...]) -> Judgement:
    if arguments and arguments[0].text in ("-v", "-V"):
        is_known = not any((word.text or "").startswith("-") for word in arguments[1:])
        return Judgement("finds programs", is_read_only=is_known, rule_words=2)
    return judge_wrapper(WRAPPERS["command"], arguments)


def _env(arguments: tuple[Word, ...]) -> Judgement:
    judged = judge_wrapper(WRAPPERS["env"], arguments)
    return judged if judged.runs else judged._replace(does="shows variables")


def _applet(arguments: tuple[Word, ...]) -> Judgement:
    is_run = bool(arguments) and not (arguments[0].text or "-").startswith("-")
    runs = (arguments,) if is_run else ()
    return Judgement("runs another command", is_read_only=is_run, runs=runs)


def _session(arguments: tuple[Word, ...]) -> Judgement:
    """Judge `tmux` and `screen`: any of their words may be a command, or code for a shell."""
    texts = [word.text or "-" for word in arguments]
    places = [at for at, text in enumerate(texts) if not text.startswith("-")]
    codes = tuple(arguments[at] for at in places if " " in texts[at])
    runs = tuple(arguments[at:] for at in places[:4])
    return Judgement("runs on its own", runs=runs, scripts=codes)


def _parallel(arguments: tuple[Word, ...]) -> Judgement:
    judged = judge_wrapper(WRAPPERS["parallel"], arguments)
    codes = tuple(word for word in arguments if " " in (word.text or ""))
    return judged._replace(scripts=codes)


def _flock(arguments: tuple[Word, ...]) -> Judgement:
    judged = judge_wrapper(WRAPPERS["flock"], arguments)
    codes = tuple(
        words[1] for words in judged.runs if len(words) > 1 and words[0].text in ("-c", "--command")
    )
    return judged._replace(scripts=(*judged.scripts, *codes))


_SPECIAL: Final[Mapping[str, Callable[[tuple[Word, ...]], Judgement]]] = {
    "[": judge_test,
    "test": judge_test,
    "printf": judge_printf,
    "cd": judge_cd,
    "pushd": judge_cd,
    "set": judge_set,
    "read": judge_read,
    "umask": judge_umask,
    "ulimit": judge_umask,
    "eval": judge_eval,
    "source": judge_source,
    ".": judge_source,
    "trap": judge_trap,
    "command": _command,
    "env": _env,
    "busybox": _applet,
    "toybox": _applet,
    "tmux": _session,
    "screen": _session,
    "parallel": _parallel,
    "flock": _flock,
    "date": _date,
    "ps": _ps,
    "strings": _strings,
    "find": judge_find,
    "git": judge_git,
    "sed": judge_sed,
    "gsed": judge_sed,
    "awk": judge_awk,
    "gawk": judge_awk,
    "mawk": judge_awk,
    "nawk": judge_awk,
    "jq": judge_jq,
    "dd": judge_dd,
    "tar": judge_tar,
    "unzip": judge_unzip,
}
"""Programs of which options and operands do not say it all."""
