"""Reads a command line: every command in it, what each does, and whether all of it only reads.

Commands inside of others are found too: substitutions, what wrappers run, scripts of `sh -c`. The
verdict is never looser than that of the strictest part. Two readers of different make look at the
line; where they differ, or one is in doubt, it counts as not known. What could be found is listed
all the same: people see it, and rules that forbid need it.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from types import MappingProxyType

from crush_kernel.permissions.shell.commandline import (
    UNSURE,
    VARIABLES,
    Command,
    Compound,
    Pipeline,
    Redirect,
    Sequence,
    Simple,
    divide,
)
from crush_kernel.permissions.shell.judgement import CommandReading, Judgement, ReadPart, Word
from crush_kernel.permissions.shell.syntax import Span, outline
from crush_kernel.permissions.shell.words import decode

Judge = Callable[[tuple[Word, ...]], Judgement]

WRITES = "writes to a file"
TALKS = "talks to the network"
UNKNOWN_SCRIPT = "runs code that only the shell can know"
UNKNOWN_FOLDER = "runs where only the shell can know"
TOO_LONG = "is too long to be read"
TOO_MUCH = "has too many commands to be read"

MAX_CHARACTERS = 128 * 1024
"""More than Linux lets a command line have."""
MAX_PARTS = 2_000
MAX_LEVEL = 5
"""How many scripts may stand inside of each other."""

_SECOND_LOOK_CHARACTERS = 2_000
"""How much that is in doubt anyway is shown to the second reader, which may be slow with it."""

_NOTHING: Mapping[str, str] = MappingProxyType({})

_HARMLESS = re.compile(
    r"(?:LC_[A-Z]+|LANG|LANGUAGE)=[\w.@:-]*"
    r"|TZ=[A-Za-z][\w/+-]*|(?:NO_COLOR|FORCE_COLOR|CLICOLOR|CLICOLOR_FORCE|CI|COLUMNS|LINES"
    r"|GIT_OPTIONAL_LOCKS|PYTHONUNBUFFERED|PYTHONDONTWRITEBYTECODE)=\w*"
    r"|(?:PAGER|GIT_PAGER|MANPAGER)=(?:cat)?",
    re.ASCII,
)
"""Variables that change how things look, with values that can do no more."""

_NOT_BLANK = re.compile(r"[^\S \t\n]|[\x00-\x08\x0e-\x1f\x7f]")
"""What does not show, or divides words for some readers and not for others."""

_MOVED = re.compile(r"(?<![${\w])(?:HOME|PWD|OLDPWD|IFS)\b")
_ASSIGNING = frozenset(
    "read export declare typeset local readonly printf mapfile readarray getopts let set unset "
    "shopt trap wait coproc".split()
)
_MOVING = frozenset({"cd", "pushd", "popd"})
_WITHIN = frozenset({"command", "builtin", "eval"})
"""What runs commands in the shell itself, so that their `cd` counts for what follows."""
_LEAVING = frozenset({"exit", "return", "break", "continue"})
_SHELLS = frozenset({"bash", "sh", "dash", "zsh", "ksh", "ash", "rbash"})
_BASH_ONLY = re.compile(r"\$'|\$\"|&>|>&|<\(|>\(|\[\[|\{|<<<|\|&|\(\(|\$\[")

_Folders = tuple[Word | None, ...]
"""Where the shell may be, `None` for where it started."""
_START: _Folders = (None,)
_LOST: _Folders = (Word(None, "?"),)


def read_command(
    text: str, *, known: Mapping[str, str] = _NOTHING, judge: Judge | None = None
) -> CommandReading:
    """Return what the command line `text` does; it never fails.

    Args:
        text: as it goes to bash.
        known: what `HOME` and `PWD` are when it starts, if that is known.
        judge: knows the programs.
    """
    judge = judge or _judge()
    if len(text) > MAX_CHARACTERS:
        return CommandReading((), is_read_only=False, reasons=(TOO_LONG,))
    reading = _Reading(_NOTHING, judge)
    reading.script(text, _START)
    if known and ("$" in text or "~" in text):
        values = {name: value for name, value in known.items() if reading.keeps(name, text)}
        if values:
            reading = _Reading(values, judge)
            reading.script(text, _START)
    return reading.result()


def _judge() -> Judge:
    from crush_kernel.permissions.shell.programs import judge  # noqa: PLC0415

    return judge


class _Reading:
    """What has been found so far."""

    def __init__(self, known: Mapping[str, str], judge: Judge) -> None:
        self._known = known
        self._judge = judge
        self._parts: list[ReadPart] = []
        self._reasons: dict[str, None] = {}
        self._level = 0
        self._is_lost = False

    def result(self) -> CommandReading:
        parts = tuple(self._parts)
        if any(part.directory and part.directory.text is None for part in parts):
            self._reasons[UNKNOWN_FOLDER] = None
        return CommandReading(
            parts,
            is_read_only=bool(parts)
            and not self._reasons
            and all(part.judgement.is_read_only for part in parts),
            reasons=tuple(self._reasons),
        )

    def keeps(self, name: str, text: str) -> bool:
        """Return whether the variable `name` is certainly what it was all the time."""
        if _MOVED.search(text):
            return False
        for part in self._parts:
            program = part.words[0].text if part.words else ""
            if program is None or program in ("eval", ".", "source"):
                return False
            if program in _MOVING and name == "PWD":
                return False
            if program in _ASSIGNING and any(
                word.text is None or word.text != word.source for word in part.words
            ):
                return False
        return not self._is_lost

    # Scripts

    def script(self, text: str, folders: _Folders) -> _Folders:
        """Read a script; return where the shell may be after it."""
        text = text.encode("utf-8", "replace").decode() if not text.isascii() else text
        line = divide(text)
        self._because(*line.doubts)
        if _NOT_BLANK.search(text):
            self._because(UNSURE)
        self._level += 1
        folders = self._sequence(line.sequence, folders)
        self._level -= 1
        if not line.doubts or len(text) <= _SECOND_LOOK_CHARACTERS:
            self._second_look(text, line.sequence)
        return folders

    def _second_look(self, text: str, sequence: Sequence) -> None:
        commands, redirects = _outline(sequence)
        other = outline(text)
        if other.is_sound and other.commands == commands and other.redirects == redirects:
            return
        self._because(UNSURE)
        for spans in sorted(other.commands - commands):
            words = tuple(decode(text[start:end], self._known) for start, end in spans)
            source = text[spans[0][0] : spans[-1][1]]
            self._add(ReadPart(source, words, self._judge(words), directory=_LOST[0]))

    def _because(self, *reasons: str) -> None:
        self._reasons.update(dict.fromkeys(reasons))

    def _add(self, part: ReadPart) -> None:
        if len(self._parts) >= MAX_PARTS:
            self._because(TOO_MUCH)
        else:
            self._parts.append(part)

    # Sequences

    def _sequence(self, sequence: Sequence, folders: _Folders) -> _Folders:
        good = bad = folders
        for pipeline in sequence.pipelines:
            if not pipeline.commands:
                continue
            match pipeline.after:
                case "&&":
                    good, failed = self._pipeline(pipeline, good)
                    bad = _either(bad, failed)
                case "||":
                    passed, bad = self._pipeline(pipeline, bad)
                    good = _either(good, passed)
                case _:
                    good, bad = self._pipeline(pipeline, _either(good, bad))
        return _either(good, bad)

    def _pipeline(self, pipeline: Pipeline, folders: _Folders) -> tuple[_Folders, _Folders]:
        """Read a pipeline; return where the shell may be if it succeeds, and if it fails."""
        commands = pipeline.commands
        self._documents(pipeline)
        if len(commands) == 1 and not pipeline.is_background:
            passed, failed = self._command(commands[0], folders)
            return (failed, passed) if pipeline.is_negated else (passed, failed)
        for command in commands:
            self._command(command, folders)
        return folders, folders

    def _documents(self, pipeline: Pipeline) -> None:
        """Read here-documents that a shell gets as scripts."""
        simple = [command for command in pipeline.commands if isinstance(command, Simple)]
        words = (decode(word, self._known).text for command in simple for word in command.words)
        redirects = [redirect for command in pipeline.commands for redirect in command.redirects]
        bodies = [_document(redirect, self._known) for redirect in redirects]
        if any(bodies) and any(word and _name(word) in _SHELLS for word in words):
            self._because(UNSURE)
            for body in bodies:
                self._nested(Word(body, ""), _LOST)

    def _command(self, command: Command, folders: _Folders) -> tuple[_Folders, _Folders]:
        if isinstance(command, Simple):
            return self._simple(command, folders)
        after = self._compound(command, folders)
        return after, _either(after, folders)

    def _compound(self, compound: Compound, folders: _Folders) -> _Folders:
        self._redirected(compound, folders)
        for inner in compound.inner:
            self._sequence(inner, folders)
        match compound.kind:
            case "subshell" | "arithmetic":
                for inner in compound.lists:
                    self._sequence(inner, folders)
                return folders
            case "function":
                self._is_lost = True
            case "loop":
                if any(_may_move(inner) for inner in compound.lists):
                    folders = _LOST
            case "group" | "branch":
                pass
        after = folders
        for inner in compound.lists:
            moved = self._sequence(inner, after)
            after = moved if compound.kind == "group" else _either(after, moved)
        return after

    def _redirected(self, compound: Compound, folders: _Folders) -> None:
        reads, writes = self._redirects(compound.redirects)
        if reads or writes:
            does = "writes a file" if writes else "reads a file"
            judgement = Judgement(does, is_read_only=not writes)
            text = compound.text
            self._add(ReadPart(text, (), judgement, reads, writes, self._folder(folders)))

    # Commands

    def _simple(self, simple: Simple, folders: _Folders) -> tuple[_Folders, _Folders]:
        words = tuple(decode(word, self._known) for word in simple.words)
        reads, writes = self._redirects(simple.redirects)
        if not all(map(_HARMLESS.fullmatch, simple.assignments)):
            self._because(VARIABLES)
            judgement = Judgement("sets variables")
            text = " ".join(simple.assignments)
            self._add(ReadPart(text, (), judgement, directory=self._folder(folders)))
        if not words:
            if simple.redirects or not self._reasons:
                does = "writes a file" if writes else "reads a file" if reads else "does nothing"
                judgement = Judgement(does, is_read_only=not writes)
                part = ReadPart(simple.text, (), judgement, reads, writes, self._folder(folders))
                self._add(part)
            after = folders, folders
        else:
            part = ReadPart(simple.text, words, Judgement(""), reads, writes)
            after = self._program(part, folders)
        for inner in simple.inner:
            self._sequence(inner, folders)
        return after

    def _program(self, part: ReadPart, folders: _Folders) -> tuple[_Folders, _Folders]:
        words = part.words
        if words[0].source == "[[":
            judgement = _condition(words)
        else:
            judgement = self._judge(words)
        self._add(
            replace(part, judgement=judgement, directory=self._folder_of(words, folders, judgement))
        )
        if not (judgement.runs or judgement.scripts):
            return self._moved(words, judgement, folders)
        name = words[0].text
        within = folders
        if judgement.directory is not None:
            within = _joined(folders, judgement.directory)
        if self._level > MAX_LEVEL:
            self._because(UNSURE)
            return _LOST, _LOST
        after = self._run(part, judgement, within)
        return after if name in _WITHIN else (folders, folders)

    def _run(
        self, part: ReadPart, judgement: Judgement, folders: _Folders
    ) -> tuple[_Folders, _Folders]:
        """Read what a wrapper runs."""
        passed = failed = folders
        for run in judgement.runs:
            if not run:
                continue
            text = " ".join(word.source for word in run)
            self._level += 1
            passed, failed = self._program(ReadPart(text, run, Judgement("")), folders)
            self._level -= 1
        for script in judgement.scripts:
            if script.text is not None and not _reads_alike(part.words, script.text):
                self._because(UNSURE)
            passed = failed = self._nested(script, folders)
        return passed, failed

    def _nested(self, script: Word, folders: _Folders) -> _Folders:
        if script.text is None:
            self._because(UNKNOWN_SCRIPT)
            return _LOST
        if self._level > MAX_LEVEL:
            self._because(UNSURE)
            return _LOST
        return self.script(script.text, folders)

    def _moved(
        self, words: tuple[Word, ...], judgement: Judgement, folders: _Folders
    ) -> tuple[_Folders, _Folders]:
        """Return where the shell may be after a command that does well, or badly."""
        name = words[0].text
        if name == "cd":
            there = judgement.directory or self._home(words)
            return _joined(folders, there), folders
        if name is None or name in _MOVING or name in (".", "source", "eval"):
            return _LOST, _LOST
        if name in _LEAVING:
            return (), ()
        return folders, folders

    def _home(self, words: tuple[Word, ...]) -> Word:
        return decode("~", self._known) if len(words) == 1 else Word(None, "?")

    def _folder_of(
        self, words: tuple[Word, ...], folders: _Folders, judgement: Judgement
    ) -> Word | None:
        """Return where a command runs.

        After a `cd` that may have failed it is the folder meant, for what only reads and does not
        go up: what it finds where it started is no less its own.
        """
        if len(folders) == 2 and None in folders and judgement.is_read_only and not self._is_lost:
            paths = (*words, *judgement.reads)
            if not any(word.text is None or ".." in word.text for word in paths):
                return folders[0] or folders[1]
        return self._folder(folders)

    def _folder(self, folders: _Folders) -> Word | None:
        if self._is_lost or len(folders) > 1:
            return _LOST[0]
        return folders[0] if folders else None

    def _redirects(self, redirects: list[Redirect]) -> tuple[tuple[Word, ...], tuple[Word, ...]]:
        """Return the files that are read and written."""
        reads: list[Word] = []
        writes: list[Word] = []
        for redirect in redirects:
            operator = redirect.operator
            if operator in ("<<", "<<-", "<<<"):
                continue
            target = decode(redirect.target, self._known)
            if target.has_glob:
                target = Word(None, target.source)
            if operator in ("<&", ">&") and re.fullmatch(r"\d+-?|-", target.text or ""):
                continue
            if target.text == "/dev/null":
                continue
            if target.text is not None and re.match(r"/dev/(?:tcp|udp)/", target.text):
                self._because(TALKS)
            if operator in ("<", "<&", "<>"):
                reads.append(target)
                if target.text is None:
                    self._because(UNSURE)
            if operator not in ("<", "<&"):
                writes.append(target)
                self._because(WRITES)
        return tuple(reads), tuple(writes)


def _outline(sequence: Sequence) -> tuple[frozenset[tuple[Span, ...]], frozenset[Span]]:
    """Return where commands and the files of redirections are, for the second reader."""
    commands: list[tuple[Span, ...]] = []
    redirects: list[Span] = []
    waiting = [sequence]
    while waiting:
        for pipeline in waiting.pop().pipelines:
            for command in pipeline.commands:
                waiting += command.inner
                redirects += [
                    redirect.span
                    for redirect in command.redirects
                    if not redirect.operator.startswith("<<") or redirect.operator == "<<<"
                ]
                if isinstance(command, Compound):
                    waiting += command.lists
                elif command.spans:
                    commands.append(tuple(command.spans))
    return frozenset(commands), frozenset(redirects)


_CONDITIONS = frozenset(
    "[[ ]] ! == != = -f -d -e -r -w -x -s -L -h -n -z -nt -ot -ef && ||".split()
)


def _condition(words: tuple[Word, ...]) -> Judgement:
    # Numbers are not compared here: bash takes them for formulas, which can run commands.
    inside = words[1:-1]
    is_plain = all(
        word.source in _CONDITIONS or word.text is None or not word.text.startswith("-")
        for word in inside
    )
    signs = [word for word in inside if word.source in _CONDITIONS or word.text is None]
    return Judgement(
        "tests a condition",
        is_read_only=is_plain
        and all(word.source.startswith(("$", '"')) for word in signs if word.text is None),
        reads=tuple(
            word
            for before, word in zip(words, inside, strict=False)
            if before.source
            in ("-f", "-d", "-e", "-r", "-w", "-x", "-s", "-L", "-h", "-nt", "-ot", "-ef")
        ),
        rule_words=1,
    )


def _either(one: _Folders, other: _Folders) -> _Folders:
    if one == other:
        return one
    return tuple(dict.fromkeys((*one, *other)))


def _joined(folders: _Folders, there: Word) -> _Folders:
    """Return where `cd` leads from any of `folders`.

    It does not follow links as paths do: after `cd link`, `cd ..` leads back. So what goes up
    after going down is not known.
    """
    if there.text is None or there.has_glob or not there.text or there.text == "-":
        return _LOST
    if there.text.startswith("/"):
        return (there,) if ".." not in there.text else _LOST
    if re.search(r"(?:^|/)(?!\.\.?(?:/|$))[^/]+/+(?:[^/]*/+)*\.\.(?:/|$)", there.text):
        return _LOST
    joined: list[Word | None] = []
    for folder in folders:
        if folder is None:
            joined.append(there)
        elif folder.text is None or ".." in there.text.split("/"):
            return _LOST
        else:
            joined.append(Word(f"{folder.text.rstrip('/')}/{there.text}", there.source))
    return tuple(dict.fromkeys(joined))


def _may_move(sequence: Sequence) -> bool:
    waiting: list[Sequence] = [sequence]
    while waiting:
        for pipeline in waiting.pop().pipelines:
            for command in pipeline.commands:
                if isinstance(command, Compound):
                    waiting += command.lists
                elif command.words:
                    name = decode(command.words[0], _NOTHING).text
                    if name is None or name in _MOVING | _WITHIN | {".", "source"}:
                        return True
    return False


def _document(redirect: Redirect, known: Mapping[str, str]) -> str | None:
    if redirect.operator == "<<<":
        return decode(redirect.target, known).text
    return redirect.body


def _name(path: str) -> str:
    return path.rpartition("/")[2]


def _reads_alike(words: tuple[Word, ...], script: str) -> bool:
    """Return whether the shell that `words` start reads `script` as bash does."""
    name = _name(words[0].text or "")
    if name in ("bash", "eval"):
        return True
    return name in ("sh", "dash") and not _BASH_ONLY.search(script)
