"""What `find` and `fd` do, told by their expressions."""

from dataclasses import dataclass, field
from typing import Final

from crush_kernel.permissions.shell.judgement import UNKNOWN_WORD, Judgement, Word
from crush_kernel.permissions.shell.programs.names import names_in
from crush_kernel.permissions.shell.programs.operands import HERE
from crush_kernel.permissions.shell.programs.options import may_be_option

_PLAIN = names_in(
    "-P -H ( ) ! , -not -a -and -o -or -true -false -print -print0 -ls -prune -quit -depth -d"
    " -daystart -mount -xdev -noleaf -empty -readable -writable -executable -nouser -nogroup"
    " -ignore_readdir_race -warn -nowarn"
)
_WITH_TEXT = names_in(
    "-name -iname -path -ipath -wholename -iwholename -regex -iregex -regextype -lname -ilname"
    " -type -xtype -size -mtime -mmin -atime -amin -ctime -cmin -used -perm -user -uid -group"
    " -gid -maxdepth -mindepth -links -inum -fstype -printf"
)
_WITH_READ = frozenset(["-newer", "-anewer", "-cnewer", "-samefile"])
_WITH_WRITE = frozenset(["-fprint", "-fprint0", "-fls"])
_RUNS = frozenset(["-exec", "-execdir", "-ok", "-okdir"])
_FOUND: Final = Word(None, "{}")


@dataclass(slots=True)
class _Search:
    starts: list[Word] = field(default_factory=list[Word])
    reads: list[Word] = field(default_factory=list[Word])
    writes: list[Word] = field(default_factory=list[Word])
    runs: list[tuple[Word, ...]] = field(default_factory=list[tuple[Word, ...]])
    is_understood: bool = True
    deletes: bool = False
    goes_elsewhere: bool = False


def judge_find(arguments: tuple[Word, ...]) -> Judgement:
    """Return what `find` does with `arguments`."""
    search = _Search()
    at = 0
    while at < len(arguments):
        at += _take(search, arguments[at:])
    starts = tuple(search.starts) or (HERE,)
    return Judgement(
        "deletes files" if search.deletes else "finds files",
        is_read_only=search.is_understood and not search.writes and not search.deletes,
        reads=(*starts, *search.reads),
        writes=(*(starts if search.deletes else ()), *search.writes),
        removes_trees=search.deletes,
        runs=tuple(search.runs),
        directory=UNKNOWN_WORD if search.goes_elsewhere else None,
    )


def _take(search: _Search, words: tuple[Word, ...]) -> int:
    """Take the next part of the expression; return of how many words it is."""
    word = words[0]
    text = word.text
    if may_be_option(word):
        search.is_understood = False
        return 1
    if text in _RUNS:
        return _take_command(search, words)
    if text in _WITH_TEXT or text in _WITH_READ or text in _WITH_WRITE or _compares_times(text):
        return _take_value(search, words)
    if text in _PLAIN:
        return 1
    if text == "-delete":
        search.deletes = True
    elif text is not None and not text.startswith("-"):
        search.starts.append(word)
    else:
        search.is_understood = False
    return 1


def _compares_times(text: str | None) -> bool:
    return text is not None and text.startswith("-newer") and len(text) == len("-newerXY")


def _take_value(search: _Search, words: tuple[Word, ...]) -> int:
    name, value = words[0].text or "", words[1:2]
    if not value or value[0].text is None or value[0].has_glob:
        search.is_understood = False
    if name in _WITH_READ or (_compares_times(name) and not name.endswith("t")):
        search.reads += value
    elif name in _WITH_WRITE:
        search.writes += value
    return 1 + len(value)


def _take_command(search: _Search, words: tuple[Word, ...]) -> int:
    """Take `-exec … ;` or `-exec … {} +`."""
    ends = (
        index
        for index, word in enumerate(words)
        if word.text == ";" or (word.text == "+" and words[index - 1].text == "{}")
    )
    end = next(ends, len(words))
    search.is_understood &= end < len(words)
    search.goes_elsewhere |= words[0].text in ("-execdir", "-okdir")
    if command := tuple(map(_filled, words[1:end])):
        search.runs.append(command)
    return end + 1


def _filled(word: Word) -> Word:
    """Return `word` with what is found in place of `{}`."""
    if word.text is None or "{}" not in word.text:
        return word
    return _FOUND if word.text == "{}" else Word(None, word.source)
