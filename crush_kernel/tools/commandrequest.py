"""What is asked before a command line runs: its parts, and where their paths really lead.

Reading the line is pure (`permissions.shell`); here the disk is asked, since a word of a command
can be a link, a pattern of names, or a folder that is not what it is called.
"""

import glob
import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Final

from crush_kernel.errors import ToolError
from crush_kernel.permissions.request import CommandPart, PermissionRequest
from crush_kernel.permissions.shell.judgement import RUNS_INPUT, CommandReading, ReadPart, Word
from crush_kernel.permissions.shell.programs import judge
from crush_kernel.permissions.shell.programs.shells import SHELLS
from crush_kernel.permissions.shell.reading import WRITES
from crush_kernel.tools.gitconfig import repository_names_programs
from crush_kernel.tools.paths import PathPolicy, Target

MAX_MATCHES: Final = 1_000
"""Names that a pattern may stand for; with more, nobody has looked at all of them."""

HARMLESS: Final = frozenset(
    map(Path, ("/dev/null", "/dev/stdin", "/dev/stdout", "/dev/stderr", "/dev/zero", "/dev/tty"))
)
"""Devices that keep nothing and tell nothing."""

TREE: Final = "removes {} with all that is in it"
FOUND_TREE: Final = "removes what it finds anywhere in {}"
UNKNOWN_TREE: Final = "removes files that only the shell knows"


RUNS_OUTSIDE: Final = "runs in a folder outside the project"
RUNS_ANYTHING: Final = "runs what only the shell can know"
WRITES_ANYWHERE: Final = "writes where only the shell can know"
GIT_PROGRAMS: Final = "the configuration of this repository can have git run other programs"
OWN_PROGRAMS: Final = "the project itself brings a program that is run here in place of another"

_QUOTED: Final = re.compile(r'"(?:[^"\\]|\\.)*"', re.DOTALL)


@dataclass(slots=True)
class _Places:
    """Where the paths of one part of a command line lead."""

    reads: dict[Path, Target] = field(default_factory=dict[Path, Target])
    writes: dict[Path, Target] = field(default_factory=dict[Path, Target])
    redirects: dict[Path, Target] = field(default_factory=dict[Path, Target])
    dangers: dict[str, None] = field(default_factory=dict[str, None])
    runs_anything: bool = False
    """Whether nobody has seen which program it is, or what a shell is given to run."""
    writes_anywhere: bool = False
    """Whether something is written where only the shell can know, perhaps outside."""
    runs_outside: bool = False
    """Whether it does more than look, in a folder outside the project."""
    is_own: bool = False
    """Whether what is run may be a program that the project brings along."""
    is_certain: bool = True
    """Whether it is known of all that is read, where it is, and that nothing else is run."""

    def add(self, kept: dict[Path, Target], found: tuple[Target, ...] | None) -> None:
        """Note what a word leads to, `None` if that is not known."""
        if found is None:
            self.is_certain = False
            return
        kept.update({target.path: target for target in found if target.path not in HARMLESS})

    def add_written(
        self, word: Word, base: Path | None, paths: PathPolicy
    ) -> tuple[Target, ...] | None:
        """Note and return where a word leads that is written to, and what is dangerous about it."""
        found = _found(word, base, paths)
        self.add(self.writes, found)
        self.writes_anywhere |= found is None and (base is None or _may_lead_anywhere(word))
        for target in found or ():
            if target.path not in HARMLESS:
                self.dangers.update(dict.fromkeys(paths.dangers(target)))
        return found

    def outside(self) -> Iterator[Path]:
        """Yield the places outside the project."""
        for target in (*self.reads.values(), *self.writes.values()):
            if target.is_outside:
                yield target.path


def command_request(
    command: str,
    reading: CommandReading,
    paths: PathPolicy,
    folder: Target,
    *,
    call_id: str,
    notes: tuple[str, ...] = (),
) -> PermissionRequest:
    """Return the question whether `command` may run in `folder`. Looks at the disk.

    A line whose paths are not all known is never one that only reads.

    Args:
        command: the line.
        reading: what it does.
        paths: what is inside the project.
        folder: where it starts.
        call_id: of the call.
        notes: what a person should know besides.
    """
    places = [_look_at(part, folder.path, paths) for part in reading.parts]
    # Who allowed looking by a rule has not seen what this repository, or folder, runs.
    programs = (
        *((GIT_PROGRAMS,) if _mark_git_programs(reading, places, folder.path) else ()),
        *((OWN_PROGRAMS,) if any(each.is_own for each in places) else ()),
    )
    outside = dict.fromkeys(path for each in places for path in each.outside())
    if folder.is_outside:
        outside = {folder.path: None, **outside}
    return PermissionRequest(
        call_id=call_id,
        tool="bash",
        action="execute",
        title="run",
        paths=tuple(outside),
        is_outside=bool(outside),
        is_unsure=any(each.writes_anywhere or each.runs_anything for each in places),
        command=command,
        cwd=folder.path,
        parts=tuple(map(_shown, reading.parts, places)),
        is_read_only=reading.is_read_only and all(each.is_certain for each in places),
        reads=_all(each.reads for each in places),
        writes=_all(each.writes for each in places),
        redirects=_all(each.redirects for each in places),
        unnamed=(*_unnamed(reading, places), *programs),
        dangers=tuple(dict.fromkeys(danger for each in places for danger in each.dangers)),
        notes=(*notes, *programs),
    )


def _mark_git_programs(reading: CommandReading, places: list[_Places], start: Path) -> bool:
    """Return whether git could be made to run something; what it does is not certain then."""
    names_programs = cache(repository_names_programs)  # most lines work in one repository
    is_any = False
    for part, each in zip(reading.parts, places, strict=True):
        is_looking = part.judgement.is_read_only and _is_git(part)
        if is_looking and names_programs(_repository(part, start)):
            each.is_certain, is_any = False, True
    return is_any


def _unnamed(reading: CommandReading, places: list[_Places]) -> Iterator[str]:
    """Yield what no word of a part names."""
    yield from (reason for reason in reading.reasons if reason != WRITES)
    if any(each.runs_outside for each in places):
        yield RUNS_OUTSIDE
    if any(each.writes_anywhere for each in places):
        yield WRITES_ANYWHERE
    if any(each.runs_anything for each in places):
        yield RUNS_ANYTHING


def _is_git(part: ReadPart) -> bool:
    name = part.words[0].text if part.words else None
    return name is not None and name.rpartition("/")[2] == "git"


def _repository(part: ReadPart, start: Path) -> Path:
    """Return where git looks for one: the first path that it reads is the folder of its `-C`."""
    base = _directory(part, start) or start
    reads = part.judgement.reads
    return base / (reads[0].text or "") if reads else base


def _all(found: Iterable[dict[Path, Target]]) -> tuple[Path, ...]:
    return tuple(dict.fromkeys(path for each in found for path in each))


def _shown(part: ReadPart, places: _Places) -> CommandPart:
    judged = part.judgement
    return CommandPart(
        text=part.text,
        # A pattern of names is none of them: a rule that quotes it must not come to mean others.
        argv=tuple(None if word.has_glob else word.text for word in part.words),
        does=judged.does,
        is_read_only=judged.is_read_only and places.is_certain,
        reads=_named((*judged.reads, *part.reads)),
        writes=_named((*judged.writes, *part.writes)),
        is_outside=places.writes_anywhere or any(True for _ in places.outside()),
        rule_words=judged.rule_words,
        danger_words=_danger_words(part),
    )


def _danger_words(part: ReadPart) -> int:
    """Return how many of its first words make a part dangerous, 0 if it is not by its words."""
    if not part.judgement.dangers:
        return 0
    counts = range(1, len(part.words) + 1)
    return next((count for count in counts if judge(part.words[:count]).dangers), 0)


def _named(words: Iterable[Word]) -> tuple[str, ...]:
    return tuple(word.source if word.text is None else word.text for word in words)


def _look_at(part: ReadPart, start: Path, paths: PathPolicy) -> _Places:
    places = _Places()
    places.dangers.update(dict.fromkeys(part.judgement.dangers))
    places.runs_anything = _runs_anything(part)
    for base in _folders(part, start):
        _look_from(base, part, paths, places)
    if not part.judgement.is_read_only:
        for folder in part.folders or (part.directory,):
            found = () if folder is None else _found(folder, start, paths)
            places.add(places.reads, found)
            places.runs_outside |= any(target.is_outside for target in found or ())
    return places


def _look_from(base: Path | None, part: ReadPart, paths: PathPolicy, places: _Places) -> None:
    """Note where the words of a part lead if it runs in `base`, which may not be known."""
    judged = part.judgement
    for word in judged.reads:
        places.add(places.reads, _found(word, base, paths))
    for word in judged.writes:
        found = places.add_written(word, base, paths)
        if judged.removes_trees:
            sentence = FOUND_TREE if _is_search(part) else TREE
            places.dangers.update(dict.fromkeys(_tree_dangers(found, paths, sentence)))
    for word in part.reads:
        found = _found(word, base, paths)
        places.add(places.reads, found)
        places.add(places.redirects, found)
    for word in part.writes:
        found = places.add_written(word, base, paths)
        places.add(places.redirects, found)
    if judged.is_read_only:
        for word in filter(_names_files, () if _is_condition(part) else part.words):
            places.add(places.reads, _listed(word, base, paths))
        if _is_found_inside(part, base, paths):
            places.is_certain, places.is_own = False, True
    else:
        for word in part.words[1:]:
            places.add(places.reads, tuple(_away(word, base, paths)))


def _runs_anything(part: ReadPart) -> bool:
    if not part.words:
        return False
    program = part.words[0]
    if program.text is None or program.has_glob:
        return True
    return part.judgement.does == RUNS_INPUT and Path(program.text).name in SHELLS


def _folders(part: ReadPart, start: Path) -> tuple[Path | None, ...]:
    """Return where a part may run; `None` if that is not known."""
    if not part.folders:
        return (_directory(part, start),)
    known = (start if folder is None else folder.text for folder in part.folders)
    return tuple(None if text is None else start / text for text in known)


def _directory(part: ReadPart, start: Path) -> Path | None:
    if part.directory is None:
        return start
    return None if part.directory.text is None else start / part.directory.text


def _may_lead_anywhere(word: Word) -> bool:
    """Return whether `word`, of which only the shell knows what it is, may lead out of a folder."""
    source = word.source.lstrip("\"'")
    return source.startswith(("$", "`", "~", "/")) or ".." in source


def _away(word: Word, base: Path | None, paths: PathPolicy) -> Iterator[Target]:
    """Yield where `word` may lead out of the project, for programs that may do anything to it."""
    for text in _path_texts(word.text or ""):
        is_plain = "/" in text or text == ".."
        if is_plain or (text and base is not None and (base / text).is_symlink()):
            found = _found(Word(text, word.source, word.has_glob), base, paths) or ()
            yield from (target for target in found if target.is_outside)


def _path_texts(text: str) -> Iterator[str]:
    """Yield what may be a path in a word: the word, or what is attached to an option or a name."""
    name, equals, value = text.partition("=")
    attached = (value if equals and "/" not in name else "", text[2:] if text[:1] == "-" else "")
    for each in (text, *filter(None, attached)):
        if _is_in_a_folder(each) or not any(map(str.isspace, each)):
            yield each


def _is_in_a_folder(text: str) -> bool:
    """Return whether `text`, which is more than one word, is a path all the same."""
    folder = Path(text).parent
    return text.startswith("/") and folder != Path("/") and folder.is_dir()


def _is_condition(part: ReadPart) -> bool:
    """Return whether `part` is `[[ … ]]`, where patterns are compared with and not looked for."""
    return bool(part.words) and part.words[0].source == "[["


def _names_files(word: Word) -> bool:
    """Return whether the shell puts names of files in the place of `word`, whoever gets them."""
    return word.has_glob and not (word.text is None and _QUOTED.fullmatch(word.source))


def _is_found_inside(part: ReadPart, base: Path | None, paths: PathPolicy) -> bool:
    """Return whether the program of `part` may be one that the project brings along.

    What is on the `PATH` there is no program of the system, whatever it is called.
    """
    name = part.words[0].text if part.words else None
    if not name or "/" in name:
        return False
    for folder in os.environ.get("PATH", "").split(os.pathsep):
        is_fixed = folder.startswith("/")
        place = os.path.join(folder if is_fixed else (base or paths.root) / folder, name)  # noqa: PTH118 - a microsecond each
        if os.access(place, os.X_OK):
            real = Path(os.path.realpath(os.path.dirname(place)))  # noqa: PTH120
            if not is_fixed or real.is_relative_to(paths.root):
                return True
    return False


def _found(word: Word, base: Path | None, paths: PathPolicy) -> tuple[Target, ...] | None:
    """Return where `word` leads, `None` if that is not known."""
    if word.text is None or (base is None and not word.text.startswith("/")):
        return None
    if word.text == "-":
        return ()
    whole = str(base / word.text) if base is not None else word.text
    try:
        if not word.has_glob:
            return (paths.target(Path(whole)),)
        names = _matches(word.text, base)
        # Without a match the shell leaves the pattern as it is.
        start = base or Path("/")
        return None if names is None else tuple(paths.target(start / n) for n in names or (whole,))
    except (ToolError, OSError, ValueError):
        return None


def _listed(word: Word, base: Path | None, paths: PathPolicy) -> tuple[Target, ...] | None:
    """Return the folders outside whose names `word` lists, `None` if they are not known."""
    if word.text is None or (base is None and not word.text.startswith("/")):
        return None
    try:
        names = _matches(word.text, base)
        if names is None:
            return None
        folders = {((base or Path("/")) / name).parent for name in names}
        return tuple(target for target in map(paths.target, folders) if target.is_outside)
    except (ToolError, OSError, ValueError):
        return None


def _matches(pattern: str, base: Path | None) -> tuple[str, ...] | None:
    """Return the names that `pattern` stands for, `None` if they are too many to look at."""
    # `Path.glob` leaves out what is hidden, and refuses a pattern that begins with a slash.
    matches = glob.iglob(pattern, root_dir=base, include_hidden=True)  # noqa: PTH207
    names = tuple(islice(matches, MAX_MATCHES + 1))
    return names if len(names) <= MAX_MATCHES else None


def _is_search(part: ReadPart) -> bool:
    """Return whether `part` removes what it finds, and not just what its words name."""
    name = part.words[0].text if part.words else None
    return name is not None and Path(name).name == "find"


def _tree_dangers(
    found: tuple[Target, ...] | None, paths: PathPolicy, sentence: str
) -> Iterator[str]:
    """Yield why removing `found` with all that is in it cannot be left to a rule."""
    if found is None:
        yield UNKNOWN_TREE
        return
    for target in found:
        is_above = paths.root.is_relative_to(target.path)
        if target.is_outside or is_above or _is_repository(target.path, paths.root):
            yield sentence.format(target.shown if not is_above else os.fspath(target.path))


def _is_repository(path: Path, root: Path) -> bool:
    return ".git" in path.relative_to(root).parts if path.is_relative_to(root) else False
