"""Reads a command line: every command in it, what each does, and whether all of it only reads.

Commands inside of others are found too: substitutions, what wrappers run, scripts of `sh -c`. The
verdict is never looser than that of the strictest part. Two readers of different make look at the
line; where they differ, or one is in doubt, it counts as not known. What could be found is listed
all the same: people see it, and rules that forbid need it.
"""

import re
from collections.abc import Callable, Mapping
from itertools import pairwise
from types import MappingProxyType
from typing import TypeAlias

from crush_kernel.permissions.shell.folders import (
    LOST,
    START,
    Folders,
    either,
    meant,
    moved,
    the_one,
)
from crush_kernel.permissions.shell.judgement import (
    UNKNOWN_WORD,
    CommandReading,
    Judgement,
    ReadPart,
    Word,
)
from crush_kernel.permissions.shell.parser import parse
from crush_kernel.permissions.shell.programs import judge as judge_program
from crush_kernel.permissions.shell.programs.shells import SHELLS
from crush_kernel.permissions.shell.syntaxtree import (
    DEEP,
    UNSURE,
    VARIABLES,
    Command,
    CommandLine,
    Compound,
    Pipeline,
    Redirect,
    Sequence,
    Simple,
    Span,
)
from crush_kernel.permissions.shell.treesitter import outline
from crush_kernel.permissions.shell.variables import is_harmless
from crush_kernel.permissions.shell.words import decode, without_quotes

Judge: TypeAlias = Callable[[tuple[Word, ...]], Judgement]
Files: TypeAlias = tuple[tuple[Word, ...], tuple[Word, ...]]
"""Those that redirections read, and those that they write."""

WRITES = "writes to a file"
TALKS = "talks to the network"
UNKNOWN_SCRIPT = "runs code that only the shell can know"
UNKNOWN_FOLDER = "runs where only the shell can know"
TOO_LONG = "is too long to be read for certain"
TOO_MUCH = "has more commands than are shown"

MAX_CHARACTERS = 128 * 1024
"""More than Linux lets a command line have."""
MAX_SURE_CHARACTERS = 32 * 1024
"""More is read by one reader only."""
MAX_PARTS = 1_000
MAX_WORDS = 100_000
"""More than fit in a line: a wrapper's words count again for what it runs."""
MAX_SCRIPTS = 5
"""How deep scripts and wrappers may stand inside of each other."""

_SECOND_LOOK_CHARACTERS = 1_000
"""How much that is in doubt anyway is shown to the second reader, which can be slow with it."""

_NOTHING_KNOWN: Mapping[str, str] = MappingProxyType({})
_NO_FILES: Files = ((), ())

_USES = {
    "HOME": re.compile(r"\$\{?HOME|(?<![\w./^@-])~|\bcd\b"),
    "PWD": re.compile(r"\$\{?PWD"),
}
_ODD = re.compile(r"[^\S \t\n]|[\x00-\x08\x0e-\x1f\x7f]")
"""What does not show, or divides words for some readers and not for others."""
_SURROGATE = re.compile("[\ud800-\udfff]")
_DESCRIPTOR = re.compile(r"\d+-?|-", re.ASCII)
_NETWORK = re.compile(r"/dev/(?:tcp|udp)/")

_CHANGES_KNOWN = re.compile(r"(?<![${\w])(?:HOME|PWD|IFS)\b")
_ASSIGNING = frozenset(
    {"declare", "export", "getopts", "let", "local", "mapfile", "printf", "read", "readarray",
     "readonly", "set", "shopt", "trap", "typeset", "unset", "wait"}
)  # fmt: skip
_RUNNING = frozenset({".", "eval", "source"})
_ELSEWHERE = frozenset(
    {"chroot", "doas", "docker", "env", "nsenter", "podman", "runuser", "ssh", "su", "sudo",
     "systemd-run", "unshare"}
)  # fmt: skip
"""What runs commands with variables of its own."""
_MOVING = frozenset({"cd", "popd", "pushd"})
_WITHIN = frozenset({"builtin", "command", "eval"})
"""What runs commands in the shell itself, so that their `cd` counts for what follows."""
_LEAVING = frozenset({"exit", "return"})

_BASH_ONLY = re.compile(r"\$['\"\[]|&>|[<>]\(|\[\[|<<<|\|&|\(\(|>&[^\d-]")

_TESTS = frozenset({"-n", "-z"})
_PATH_TESTS = frozenset({"-L", "-d", "-e", "-ef", "-f", "-h", "-nt", "-ot", "-r", "-s", "-w", "-x"})


def read_command(
    text: str, *, known: Mapping[str, str] = _NOTHING_KNOWN, judge: Judge = judge_program
) -> CommandReading:
    """Return what the command line `text` does; it never fails.

    Args:
        text: as it goes to bash.
        known: what `HOME` and `PWD` are when it starts, if that is known.
        judge: knows the programs.
    """
    if len(text) > MAX_CHARACTERS:
        return CommandReading((), is_read_only=False, reasons=(TOO_LONG,))
    values = {name: value for name, value in known.items() if _USES[name].search(text)}
    reading = _read(text, values, judge)
    if not all(map(reading.keeps, values)):
        # From where one of them changes, nothing was read rightly.
        reading = _read(text, _NOTHING_KNOWN, judge)
        if kept := {name: value for name, value in values.items() if reading.keeps(name)}:
            reading = _read(text, kept, judge)
    return reading.result()


def _read(text: str, known: Mapping[str, str], judge: Judge) -> "_Reading":
    reading = _Reading(known, judge)
    reading.script(text, START)
    return reading


class _Reading:
    """What has been found so far."""

    def __init__(self, known: Mapping[str, str], judge: Judge) -> None:
        self._known = known
        self._judge = judge
        self._parts: list[ReadPart] = []
        self._reasons: dict[str, None] = {}
        self._count = 0
        """Of all words of commands."""
        self._level = 0
        self._is_lost = False
        """Whether a function can have led the shell anywhere."""
        self._keeps_known = True

    def result(self) -> CommandReading:
        """Return the whole."""
        folders = (part.directory for part in self._parts)
        if any(folder is not None and folder.text is None for folder in folders):
            self._because(UNKNOWN_FOLDER)
        is_read_only = all(
            part.judgement.is_read_only
            and all(word.text is not None for word in part.judgement.reads)
            for part in self._parts
        )
        return CommandReading(
            tuple(self._parts),
            is_read_only=bool(self._parts) and not self._reasons and is_read_only,
            reasons=tuple(self._reasons),
        )

    def keeps(self, name: str) -> bool:
        """Return whether the variable `name` certainly has its value all the time."""
        if self._is_lost or not self._keeps_known:
            return False
        for part in self._parts:
            program = self._named(part)
            if program is None or program in _RUNNING or (program in _MOVING and name == "PWD"):
                return False
            if program.rpartition("/")[2] in _ELSEWHERE:
                return False
            if program in _ASSIGNING and any(word.text != word.source for word in part.words):
                return False
            if any(_changes_known(word.text) for word in part.words if word.text):
                return False
        return True

    def _named(self, part: ReadPart) -> str | None:
        """Return the program of a part, `None` if its name depends on variables."""
        if not part.words:
            return ""
        word = part.words[0]
        return word.text if word.text == word.source else decode(word.source, _NOTHING_KNOWN).text

    # Scripts

    def script(self, text: str, folders: Folders) -> Folders:
        """Read a script; return where the shell may be after it."""
        text, is_odd = _readable(text)
        line = parse(text)
        self._because(*line.doubts)
        if _changes_known(text):
            self._keeps_known = False
        if is_odd:
            self._because(UNSURE)
        self._level += 1
        folders = self._sequence(line.sequence, folders)
        self._level -= 1
        if len(text) > MAX_SURE_CHARACTERS:
            self._because(TOO_LONG)
        elif not line.doubts or len(text) <= _SECOND_LOOK_CHARACTERS:
            self._second_look(text, line)
        return folders

    def _second_look(self, text: str, line: CommandLine) -> None:
        """Compare what another reader finds, and add what only that one does."""
        commands, redirects = _outline(line.sequence)
        other = outline(text, line.line_ends)
        if other.is_sound and other.commands == commands and other.redirects == redirects:
            return
        self._because(UNSURE)
        for spans in sorted(other.commands - commands):
            words = tuple(decode(text[start:end], self._known) for start, end in spans)
            if not self._has(words):
                source = text[spans[0][0] : spans[-1][1]]
                self._add(ReadPart(source, words, self._judge(words), directory=UNKNOWN_WORD))

    def _has(self, words: tuple[Word, ...]) -> bool:
        return any(part.words[: len(words)] == words for part in self._parts)

    def _because(self, *reasons: str) -> None:
        self._reasons.update(dict.fromkeys(reasons))

    def _add(self, part: ReadPart) -> None:
        if self._has_room(part.words):
            self._parts.append(part)

    def _has_room(self, words: tuple[Word, ...]) -> bool:
        self._count += len(words)
        if len(self._parts) < MAX_PARTS and self._count <= MAX_WORDS:
            return True
        self._because(TOO_MUCH)
        return False

    # What holds commands together

    def _sequence(self, sequence: Sequence, folders: Folders) -> Folders:
        # Where the shell may be if the last command did well, or badly.
        good = bad = folders
        for pipeline in sequence.pipelines:
            if not pipeline.commands:
                continue
            match pipeline.after:
                case "&&":
                    good, failed = self._pipeline(pipeline, good)
                    bad = either(bad, failed)
                case "||":
                    passed, bad = self._pipeline(pipeline, bad)
                    good = either(good, passed)
                case _:
                    good, bad = self._pipeline(pipeline, either(good, bad))
        return either(good, bad)

    def _pipeline(self, pipeline: Pipeline, folders: Folders) -> tuple[Folders, Folders]:
        commands = pipeline.commands
        self._documents(pipeline)
        if len(commands) == 1 and not pipeline.is_background:
            passed, failed = self._command(commands[0], folders)
            return (failed, passed) if pipeline.is_negated else (passed, failed)
        for command in commands:
            self._command(command, folders)
        return folders, folders

    def _documents(self, pipeline: Pipeline) -> None:
        """Read here-documents that a shell gets for scripts."""
        redirects = [each for command in pipeline.commands for each in command.redirects]
        if not redirects:
            return
        bodies = [body for each in redirects if (body := _body(each, self._known))]
        if not bodies:
            return
        simple = (command for command in pipeline.commands if isinstance(command, Simple))
        words = (decode(word, self._known).text for command in simple for word in command.words)
        if any(word and word.rpartition("/")[2] in SHELLS for word in words):
            self._because(UNSURE)
            for body in bodies:
                self._nested(Word(body, ""), LOST)

    def _command(self, command: Command, folders: Folders) -> tuple[Folders, Folders]:
        if isinstance(command, Simple):
            return self._simple(command, folders)
        after = self._compound(command, folders)
        return after, either(after, folders)

    def _compound(self, compound: Compound, folders: Folders) -> Folders:
        part = self._bare(compound.text, compound.redirects, folders)
        if part.reads or part.writes:
            self._add(part)
        for inner in compound.inner:
            self._sequence(inner, folders)
        if compound.kind == "function":
            self._is_lost = True
        if compound.kind == "loop" and any(map(_may_move, compound.lists)):
            folders = LOST
        after = folders
        for inner in compound.lists:
            there = self._sequence(inner, after)
            after = there if compound.kind == "group" else either(after, there)
        return folders if compound.kind == "subshell" else after

    # Commands

    def _simple(self, simple: Simple, folders: Folders) -> tuple[Folders, Folders]:
        sets_variables = not all(map(is_harmless, simple.assignments))
        if sets_variables:
            self._because(VARIABLES)
        known = self._known
        words = tuple([decode(word, known) for word in simple.words])
        after = folders, folders
        if words:
            files = self._redirects(simple.redirects) if simple.redirects else _NO_FILES
            after = self._program(simple.text, words, folders, files)
        else:
            does = VARIABLES if sets_variables else ""
            self._add(self._bare(simple.text, simple.redirects, folders, does=does))
        for inner in simple.inner:
            self._sequence(inner, folders)
        return after

    def _bare(
        self, text: str, redirects: list[Redirect], folders: Folders, *, does: str = ""
    ) -> ReadPart:
        """Return a part that is no command: redirections, assignments."""
        reads, writes = self._redirects(redirects)
        is_read_only = not writes and not does
        does = does or (WRITES if writes else "reads a file" if reads else "does nothing")
        judgement = Judgement(does, is_read_only)
        folder = self._folder(folders)
        return ReadPart(text, (), judgement, reads, writes, folder, self._others(folder, folders))

    def _program(
        self, text: str, words: tuple[Word, ...], folders: Folders, files: Files = _NO_FILES
    ) -> tuple[Folders, Folders]:
        """Read a command by its words; return where the shell may be if it does well, or badly."""
        if not self._has_room(words):
            return LOST, LOST
        judgement = _condition(words) if words[0].source == "[[" else self._judge(words)
        is_looking = judgement.is_read_only and not self._is_lost
        folder = meant(folders, (*words, *judgement.reads)) if is_looking else self._folder(folders)
        others = self._others(folder, folders)
        self._parts.append(ReadPart(text, words, judgement, *files, folder, others))
        if not (judgement.runs or judgement.scripts):
            return self._after(words, judgement, folders)
        if self._level >= 2 * MAX_SCRIPTS:
            self._because(DEEP)
            return LOST, LOST
        within = moved(folders, judgement.directory) if judgement.directory else folders
        self._level += 1
        after = self._inside(words, judgement, within)
        self._level -= 1
        return after if words[0].text in _WITHIN else (folders, folders)

    def _inside(
        self, words: tuple[Word, ...], judgement: Judgement, folders: Folders
    ) -> tuple[Folders, Folders]:
        """Read what a command runs."""
        passed = failed = folders
        for run in filter(None, judgement.runs):
            text = " ".join(word.source for word in run)
            passed, failed = self._program(text, run, folders)
        for script in judgement.scripts:
            if script.text is not None and not _reads_alike(words, script.text):
                self._because(UNSURE)
            passed = failed = self._nested(script, folders)
        return passed, failed

    def _nested(self, script: Word, folders: Folders) -> Folders:
        if script.text is None:
            self._because(UNKNOWN_SCRIPT)
            script = Word(without_quotes(script.source), script.source)
            folders = LOST
        if self._level >= 2 * MAX_SCRIPTS:
            self._because(DEEP)
            return LOST
        if not self._has_room(()):
            return LOST
        return self.script(script.text or "", folders)

    def _after(
        self, words: tuple[Word, ...], judgement: Judgement, folders: Folders
    ) -> tuple[Folders, Folders]:
        name = words[0].text
        if name == "cd":
            home = decode("~", self._known)
            there = home if len(words) == 1 else judgement.directory or UNKNOWN_WORD
            return moved(folders, there), folders
        if name is None or name in _MOVING or name in _RUNNING:
            return LOST, LOST
        return ((), ()) if name in _LEAVING else (folders, folders)

    def _others(self, folder: Word | None, folders: Folders) -> Folders:
        """Return all folders that are possible, if it is not known which of them it is."""
        is_open = folder is not None and folder.text is None and not self._is_lost
        return folders if is_open and len(folders) > 1 else ()

    def _folder(self, folders: Folders) -> Word | None:
        return UNKNOWN_WORD if self._is_lost else the_one(folders)

    def _redirects(self, redirects: list[Redirect]) -> Files:
        """Return the files that are read and written."""
        reads: list[Word] = []
        writes: list[Word] = []
        for redirect in redirects:
            operator = redirect.operator
            target = self._target(redirect)
            if target is None:
                continue
            if operator in ("<", "<&", "<>"):
                reads.append(target)
            if operator not in ("<", "<&"):
                writes.append(target)
                self._because(WRITES)
            if target.text is None or target.has_glob:
                self._because(UNSURE)
            if _NETWORK.match(target.text or ""):
                self._because(TALKS)
        return tuple(reads), tuple(writes)

    def _target(self, redirect: Redirect) -> Word | None:
        """Return the file that `redirect` names, `None` if it names none that matters."""
        if redirect.is_document or redirect.operator == "<<<":
            return None
        target = decode(redirect.target, self._known)
        if target.text == "/dev/null":
            return None
        if redirect.operator in ("<&", ">&") and _DESCRIPTOR.fullmatch(target.text or ""):
            return None
        return target


def _readable(text: str) -> tuple[str, bool]:
    """Return `text` without what no reader takes, and whether there was that or is what is odd."""
    if text.isascii() and text.replace("\n", "").replace("\t", "").isprintable():
        return text, False
    text, changes = _SURROGATE.subn("\N{REPLACEMENT CHARACTER}", text)
    return text, bool(changes or _ODD.search(text))


def _changes_known(text: str) -> bool:
    is_named = "HOME" in text or "PWD" in text or "IFS" in text
    return is_named and _CHANGES_KNOWN.search(text) is not None


def _outline(sequence: Sequence) -> tuple[frozenset[tuple[Span, ...]], frozenset[Span]]:
    """Return where commands and the files of redirections are."""
    commands: list[tuple[Span, ...]] = []
    redirects: list[Span] = []
    waiting = [sequence]
    while waiting:
        for pipeline in waiting.pop().pipelines:
            for command in pipeline.commands:
                waiting += command.inner
                redirects += [each.span for each in command.redirects if not each.is_document]
                if isinstance(command, Compound):
                    waiting += command.lists
                elif command.spans:
                    commands.append(tuple(command.spans))
    return frozenset(commands), frozenset(redirects)


def _condition(words: tuple[Word, ...]) -> Judgement:
    """Return what `[[ … ]]` does: all but comparing numbers is harmless.

    Bash takes numbers for formulas, which can run commands. What makes a word an operator is how
    it is written.
    """
    tests = _TESTS | _PATH_TESTS
    sources = [word.source for word in words]
    is_plain = all(source in tests or not source.startswith("-") for source in sources)
    reads = tuple(after for before, after in pairwise(words) if before.source in _PATH_TESTS)
    return Judgement("tests a condition", is_plain, reads=reads)


def _may_move(sequence: Sequence) -> bool:
    """Return whether something in `sequence` may lead the shell to another folder."""
    waiting = [sequence]
    while waiting:
        for pipeline in waiting.pop().pipelines:
            for command in pipeline.commands:
                if isinstance(command, Compound):
                    waiting += command.lists
                elif command.words:
                    name = decode(command.words[0], _NOTHING_KNOWN).text
                    if name is None or name in _MOVING | _WITHIN | _RUNNING:
                        return True
    return False


def _body(redirect: Redirect, known: Mapping[str, str]) -> str | None:
    """Return what a here-document or a here-string holds, if that is known."""
    return decode(redirect.target, known).text if redirect.operator == "<<<" else redirect.body


def _reads_alike(words: tuple[Word, ...], script: str) -> bool:
    """Return whether the shell that `words` start reads `script` as bash does."""
    name = (words[0].text or "").rpartition("/")[2]
    if name in ("bash", "eval"):
        return True
    return name in ("sh", "dash") and not _BASH_ONLY.search(script)
