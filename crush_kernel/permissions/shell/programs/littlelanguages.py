"""Little languages in arguments: which of their scripts only print, which tests only look.

Shapes of scripts that are known to be harmless, not a search for what is dangerous in all others.
"""

import re
from typing import Final

from crush_kernel.permissions.shell.judgement import Judgement, Word
from crush_kernel.permissions.shell.programs.looking import LOOKING
from crush_kernel.permissions.shell.programs.names import names_in
from crush_kernel.permissions.shell.programs.operands import judge_given, usage
from crush_kernel.permissions.shell.programs.options import is_one, scan

_SED: Final = usage(
    "-nErsuze: --quiet --silent --regexp-extended --separate --unbuffered --null-data"
    " --posix --expression:",
    "tr*",
    otherwise=("-e --expression", "r*"),
)
_SED_CHANGES: Final = usage(
    "-nErsuze: -i? -I? -f@ --quiet --silent --regexp-extended --separate --unbuffered"
    " --null-data --posix --expression: --in-place? --file@ --follow-symlinks",
    "tw*",
    otherwise=("-e --expression -f --file", "w*"),
    changes=True,
    does="changes files",
)
_AWK: Final = usage("-F: -v:", "tr*")


def judge_sed(arguments: tuple[Word, ...]) -> Judgement:
    """Return what `sed` does with `arguments`."""
    given = scan(arguments, _SED_CHANGES.options)
    if given.names & {"-i", "-I", "--in-place"}:
        return judge_given(_SED_CHANGES, given)
    given = scan(arguments, _SED.options)
    scripts = [value for name, value in given.texts if name in ("-e", "--expression")]
    given.is_understood &= all(map(_only_edits, scripts or given.operands[:1]))
    return judge_given(_SED, given)


def judge_awk(arguments: tuple[Word, ...]) -> Judgement:
    """Return what `awk` does with `arguments`."""
    given = scan(arguments, _AWK.options)
    given.is_understood &= bool(given.operands) and _only_computes(given.operands[0])
    judged = judge_given(_AWK, given)
    # `name=value` among the files sets a variable.
    reads = tuple(word for word in judged.reads if not _AWK_ASSIGNMENT.match(word.text or ""))
    return Judgement(judged.does, judged.is_read_only, reads=reads)


def _expression(end: str) -> str:
    return rf"(?:[^\\\n\[{end}]|\\[^\n]|\[\^?(?:[^\]\[\\\n{end}]|\[:[a-z]+:\])+\])*"


def _substitution(delimiter: str) -> str:
    """Return the pattern of `s` with `delimiter`."""
    end = re.escape(delimiter)
    # The delimiter within brackets ends the expression for some, not for others: neither here.
    regex = _expression(end)
    text = rf"(?:[^\\\n{end}]|\\[^\n])*"
    return f"s{end}{regex}{end}{text}{end}[gpiI0-9]*"


_MAX_SED_SCRIPT: Final = 1000
"""Longer ones are not looked at: characters."""
_ADDRESS = rf"(?:[0-9]+(?:~[0-9]+)?|\$|/{_expression('/')}/I?)"
_COMMAND = "|".join([*map(_substitution, "/|#,@!%"), "[qQ][0-9]*", "[pdD=nNPhHgGx]"])
_SED_SCRIPT = re.compile(
    rf"[\s;]*(?:(?:{_ADDRESS}(?:, *(?:{_ADDRESS}|[+~][0-9]+))?)? *(?:! *)?"
    rf"(?:\{{[\s;]*|(?:{_COMMAND}) *(?=[;\n}}]|\Z)[\s;]*)|\}}[\s;]*)*"
)
_AWK_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=")
_AWK_DOES_MORE = re.compile(r"system|getline|ARGV|ARGC|SYMTAB|[@|`]|\\\n")
"""What runs, or has it read other files than the command line names."""


def _only_edits(script: Word) -> bool:
    """Return whether the `sed` script only changes text on its way, and ends."""
    text = script.text
    if text is None or not is_one(script) or len(text) > _MAX_SED_SCRIPT:
        return False
    return bool(_SED_SCRIPT.fullmatch(text))


def _only_computes(program: Word) -> bool:
    """Return whether the `awk` program reads what is named, and writes to its output only."""
    if program.text is None or not is_one(program):
        return False
    text = program.text.replace("||", "")
    # A `>` before the first block can only compare; later it may name a file.
    return not _AWK_DOES_MORE.search(text) and ">" not in text[text.find("{") :]


_JQ_READS: Final = re.compile(r"\b(?:import|include)\b")


def judge_jq(arguments: tuple[Word, ...]) -> Judgement:
    """Return what `jq` does with `arguments`; its programs can have it read other files."""
    given = scan(arguments, LOOKING["jq"].options)
    program = given.operands[0] if given.operands else Word("", "")
    is_known = program.text is not None and is_one(program)
    given.is_understood &= is_known and not _JQ_READS.search(program.text or "")
    return judge_given(LOOKING["jq"], given)


_SETS_VARIABLE: Final = re.compile(r"%[^a-zA-Z%(]*[hjlLtz]*n")


def judge_printf(arguments: tuple[Word, ...]) -> Judgement:
    """Return what `printf` does, which with `-v` and `%n` sets a variable."""
    words = arguments[1:] if arguments and arguments[0].text == "--" else arguments
    text = words[0].text if words and not words[0].has_glob else None
    is_option = words is arguments and (text or "").startswith("-")
    is_plain = text is not None and not is_option and not _SETS_VARIABLE.search(text)
    return Judgement("prints text", is_plain)


_LOOKS_AT_FILE = names_in("-b -c -d -e -f -g -h -k -p -r -s -u -w -x -G -L -N -O -S")
_LOOKS_AT_TEXT = frozenset(["-n", "-z", "-t"])
_COMPARES_TEXT = names_in("= == != < > -eq -ne -lt -le -gt -ge")
_COMPARES_FILES = frozenset(["-nt", "-ot", "-ef"])


def judge_test(arguments: tuple[Word, ...]) -> Judgement:
    """Return what `test` and `[` do; `-v` is left out, which runs what stands in an index."""
    words = list(arguments)
    if words and words[-1].text == "]":
        words.pop()
    if len(words) > 1 and words[0].text == "!":
        words.pop(0)
    reads: tuple[Word, ...] = ()
    match [word.text for word in words]:
        case [] | [_]:
            known = True
        case [sign, _]:
            known = sign in _LOOKS_AT_FILE or sign in _LOOKS_AT_TEXT
            reads = tuple(words[1:]) if sign in _LOOKS_AT_FILE else ()
        case [_, sign, _]:
            known = sign in _COMPARES_TEXT or sign in _COMPARES_FILES
            reads = (words[0], words[2]) if sign in _COMPARES_FILES else ()
        case _:
            known = False
    return Judgement("tests something", known and all(map(is_one, words)), reads=reads)
