"""Programs that run the command which stands in their arguments, and change nothing beside it.

Which of them count as read-only when what they run is, and how to find that command: options that
are not listed leave in doubt where it starts, and then every place where it may start is named.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

from crush_kernel.permissions.shell.judgement import UNKNOWN_WORD, Judgement, Word
from crush_kernel.permissions.shell.programs.options import Given, Options, is_one, options, scan
from crush_kernel.permissions.shell.variables import is_harmless

_ASSIGNMENT: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*=")


@dataclass(frozen=True, slots=True)
class Wrapper:
    """How a program names the command that it runs."""

    options: Options
    skips: int = 0
    """How many operands come before the command."""
    is_plain: bool = False
    """Whether it does nothing but run the command, here and now."""
    code: tuple[str, ...] = ()
    """Options whose values are shell code."""
    joins: bool = False
    """Whether a shell reads the command's words, joined."""
    takes_assignments: bool = False
    adds: bool = False
    """Whether it adds arguments that are not known."""
    does: str = "runs another command"


def _wrapper(
    known: str = "",
    *,
    skips: int = 0,
    is_plain: bool = False,
    code: str = "",
    joins: bool = False,
    takes_assignments: bool = False,
    adds: bool = False,
    does: str = "runs another command",
) -> Wrapper:
    return Wrapper(
        options(known), skips, is_plain, tuple(code.split()), joins, takes_assignments, adds, does
    )


_SUDO: Final = _wrapper(
    "-AbEeHklnPSsVvi -C: -D/ -g: -h: -p: -R: -r: -T: -t: -U: -u: --user: --group: --chdir/"
    " --login --non-interactive --preserve-env? --shell --stdin --askpass",
    takes_assignments=True,
    does="acts as another user",
)

WRAPPERS: Final[Mapping[str, Wrapper]] = {
    "env": _wrapper(
        "-i0v -u: -C/ -S: --ignore-environment --unset: --chdir/ --null --debug --split-string:",
        is_plain=True,
        code="-S --split-string",
        takes_assignments=True,
    ),
    "timeout": _wrapper(
        "-vk: -s: --kill-after: --signal: --foreground --preserve-status --verbose",
        skips=1,
        is_plain=True,
    ),
    "nice": _wrapper("-#n: --adjustment:", is_plain=True),
    "ionice": _wrapper("-tc: -n: --class: --classdata: --ignore", is_plain=True),
    "time": _wrapper("-pv --portability --verbose", is_plain=True),
    "stdbuf": _wrapper("-i: -o: -e: --input: --output: --error:", is_plain=True),
    "nohup": _wrapper(is_plain=True),
    "command": _wrapper("-p", is_plain=True),
    "builtin": _wrapper(is_plain=True),
    "exec": _wrapper("-cla:", is_plain=True),
    "xargs": _wrapper(
        "-0rtxn: -P: -L: -s: -d: -E: -I: -a@ --null --no-run-if-empty --verbose --exit"
        " --max-args: --max-procs: --max-lines: --max-chars: --delimiter: --eof? --replace?"
        " --arg-file@",
        is_plain=True,
        adds=True,
    ),
    "catchsegv": _wrapper(),
    "caffeinate": _wrapper("-dimsut: -w:"),
    "choom": _wrapper("-n: -p:"),
    "chroot": _wrapper("--userspec: --groups: --skip-chdir", skips=1),
    "chrt": _wrapper("-abfiormp", skips=1),
    "dbus-run-session": _wrapper(),
    "doas": replace(_SUDO, options=options("-Lnsu: -C:")),
    "entr": _wrapper("-acdnprsxz"),
    "fakeroot": _wrapper("-ul: -s: -i:"),
    "firejail": _wrapper(),
    "flock": _wrapper(
        "-exsnouFw: -E: -c: --exclusive --shared --nonblock --wait: --close --verbose --command:",
        skips=1,
        code="-c --command",
    ),
    "gosu": _wrapper(skips=1),
    "ltrace": _wrapper("-fCSirtto> -e: -p: -s: -u: -n:"),
    "nsenter": _wrapper("-amuinpUCTrwZFt: -S: -G: --target: --all"),
    "parallel": _wrapper(
        "-j: -N: -n: -0kmX --jobs: --keep-order --bar --eta --progress --halt: --dry-run", adds=True
    ),
    "pkexec": _wrapper("--user:", does="acts as another user"),
    "prlimit": _wrapper(),
    "proot": _wrapper("-r: -b: -w:"),
    "rlwrap": _wrapper(),
    "runuser": _wrapper("-lmpu: -c: -s: -g: -G: --user: --command:", code="-c --command"),
    "script": _wrapper(
        "-aefqt? -c: -O> -I> -B> -T> --append --flush --quiet --return --command: --log-out>",
        skips=-1,
        code="-c --command",
        does="records a session",
    ),
    "setarch": _wrapper("-R", skips=1),
    "setpriv": _wrapper(),
    "setsid": _wrapper("-cfw --ctty --fork --wait", does="runs a command on its own"),
    "strace": _wrapper(
        "-cCdfFhiqrtTvVxyzDe: -o> -p: -s: -u: -E: -a: -b: -I: -O: -P: -S: -U: -X:",
    ),
    "su": _wrapper(
        "-lmpfPc: -s: -g: -G: --command: --login --shell:",
        skips=-1,
        code="-c --command",
        does="acts as another user",
    ),
    "sudo": _SUDO,
    "systemd-run": _wrapper(
        "-dGPqrStu: -p: -E: -H: -M: --user --scope --wait --pty --pipe --collect --quiet --unit:"
        " --property: --setenv: --slice: --working-directory/",
    ),
    "taskset": _wrapper("-acp", skips=1),
    "unbuffer": _wrapper("-p"),
    "unshare": _wrapper("-imnpuUCTfrcR: -w/ -S: -G: --fork --map-root-user --mount --net --pid"),
    "valgrind": _wrapper(),
    "watch": _wrapper(
        "-bcdegtwxn: -q: --interval: --differences? --no-title --color --chgexit --errexit --exec",
        joins=True,
    ),
    "xvfb-run": _wrapper("-an: -s: -e: --auto-servernum --server-args:"),
    # Tools of projects, which run programs in their environment
    "uv run": _wrapper("-qvp: --with: --python: --extra: --group: --no-sync --frozen --isolated"),
    "poetry run": _wrapper(),
    "pipenv run": _wrapper(),
    "pdm run": _wrapper(),
    "hatch run": _wrapper(),
    "rye run": _wrapper(),
    "conda run": _wrapper("-vn: -p: --no-capture-output --live-stream --name: --prefix:"),
    "mamba run": _wrapper("-n: -p: --name: --prefix:"),
    "direnv exec": _wrapper(skips=1),
    "bundle exec": _wrapper(),
    "docker exec": _wrapper(
        "-ditu: -e: -w: --interactive --tty --detach --user: --env: --workdir:",
        skips=1,
        does="runs in a container",
    ),
    "podman exec": _wrapper("-ditu: -e: -w:", skips=1, does="runs in a container"),
    "kubectl exec": _wrapper(
        "-itc: -n: --namespace: --container:", skips=1, does="runs in a container"
    ),
    "hyperfine": _wrapper("-w: -r: -m: -M: -N -i --warmup: --runs:", joins=True),
}


def judge_wrapper(wrapper: Wrapper, arguments: tuple[Word, ...]) -> Judgement:
    """Return what `wrapper` does with `arguments`, and what it runs."""
    given = scan(arguments, wrapper.options, in_order=True)
    scripts = tuple(word for name, word in given.texts if name in wrapper.code)
    command, sets_nothing = _without_assignments(wrapper, given.operands)
    skipped = command[: max(wrapper.skips, 0)]
    in_doubt = not (given.is_understood and not given.unclear and all(map(is_one, skipped)))
    judgement = Judgement(
        wrapper.does,
        is_read_only=wrapper.is_plain
        and sets_nothing
        and not (in_doubt or scripts or given.writes)
        and not (wrapper.adds and _replaces_program(given, command)),
        reads=tuple(given.reads),
        writes=tuple(given.writes),
        scripts=scripts,
        directory=given.folders[-1] if given.folders else None,
    )
    if wrapper.skips < 0:
        return judgement
    return _running(judgement, wrapper, given, command[wrapper.skips :], in_doubt=in_doubt)


def _running(
    judgement: Judgement,
    wrapper: Wrapper,
    given: Given,
    command: tuple[Word, ...],
    *,
    in_doubt: bool,
) -> Judgement:
    if wrapper.joins and command:
        return judgement._replace(scripts=(*judgement.scripts, joined(command)))
    if wrapper.adds and command:
        command = (*_until_inputs(_with_unknown(given, command)), *_added(given))
    starts = [command] if command else []
    if in_doubt:
        # An option that is not known may have taken the first word, or what follows it.
        starts += [command[at:] for at in range(1, min(len(command), 4))]
    return judgement._replace(runs=tuple(starts))


def joined(words: tuple[Word, ...]) -> Word:
    """Return the shell code that `words` are together."""
    source = " ".join(word.source for word in words)
    texts = [word.text for word in words if word.text is not None and not word.has_glob]
    return Word(" ".join(texts) if len(texts) == len(words) else None, source)


def _without_assignments(wrapper: Wrapper, operands: list[Word]) -> tuple[tuple[Word, ...], bool]:
    """Return the words after the assignments, and whether those change nothing."""
    if not wrapper.takes_assignments:
        return tuple(operands), True
    sets_nothing = True
    for at, word in enumerate(operands):
        if _ASSIGNMENT.match(word.text or ""):
            sets_nothing &= is_harmless(word.text or "")
        elif word.text is None and "=" in word.source:
            sets_nothing = False
        else:
            return tuple(operands[at:]), sets_nothing
    return (), sets_nothing


def _replaces_program(given: Given, command: tuple[Word, ...]) -> bool:
    mark = given.value("-I", "--replace")
    return mark is not None and bool(command) and (mark.text or "{}") in (command[0].text or "")


def _with_unknown(given: Given, command: tuple[Word, ...]) -> tuple[Word, ...]:
    """Return `command` with unknown words where what comes in is put in place."""
    mark = given.value("-I", "--replace")
    text = "{}" if mark is None else mark.text or "{}"
    return tuple(
        Word(None, word.source) if word.text is not None and text in word.text else word
        for word in command
    )


def _added(given: Given) -> tuple[Word, ...]:
    """Return the unknown words that are added at the end."""
    return () if given.names & {"-I", "--replace"} else (UNKNOWN_WORD,)


def _until_inputs(command: tuple[Word, ...]) -> tuple[Word, ...]:
    """Return the words before those that `parallel` goes through."""
    for at, word in enumerate(command):
        if word.text in (":::", ":::+", "::::", "::::+"):
            return command[:at]
    return command
