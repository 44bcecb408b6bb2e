"""What is part of the shell: `cd`, `set`, `read`, and what does nothing whatever it is given."""

import re
from typing import Final

from crush_kernel.permissions.shell.judgement import Judgement, Word
from crush_kernel.permissions.shell.programs.options import is_one

HARMLESS: Final[dict[str, str]] = {
    "echo": "prints text",
    ":": "does nothing",
    "true": "does nothing",
    "false": "does nothing",
    "exit": "ends the script",
    "return": "ends the function",
    "break": "ends the loop",
    "continue": "goes on with the loop",
    "sleep": "waits",
    "expr": "calculates",
    "seq": "prints text",
    "factor": "calculates",
}
"""What they do; they have no option and no operand that does anything else."""

_SETTING = re.compile(r"[-+][efuxv]+|[-+][eux]*o|pipefail|errexit|nounset|xtrace|noglob")
# Variables that mean something to the shell are in capitals.
_OWN_VARIABLE = re.compile(r"[a-z_][a-z0-9_]*")
_PLAIN_READ = re.compile(r"-[rs]+")


def judge_harmless(name: str) -> Judgement:
    """Return what a program does that does it whatever it is given."""
    return Judgement(HARMLESS[name], is_read_only=True, rule_words=1)


def judge_cd(arguments: tuple[Word, ...]) -> Judgement:
    """Return what `cd` and `pushd` do: go to another folder, to the home without a word."""
    words = [word for word in arguments if word.text not in ("-L", "-P", "--")]
    is_known = len(words) == 1 and is_one(words[0]) and words[0].text not in ("-", "", None)
    is_option = any((word.text or "").startswith(("-", "+")) for word in words)
    target = words[0] if is_known and not is_option else Word(None, "~" if not words else "")
    return Judgement("changes the folder", is_read_only=True, directory=target)


def judge_set(arguments: tuple[Word, ...]) -> Judgement:
    """Return what `set` does: changes how the rest of the script runs."""
    known = all(_SETTING.fullmatch(word.text or "") for word in arguments)
    return Judgement("changes the shell", is_read_only=bool(arguments) and known)


def judge_read(arguments: tuple[Word, ...]) -> Judgement:
    """Return what `read` does: fills variables from what comes in."""
    texts = [word.text or "" for word in arguments]
    while texts and _PLAIN_READ.fullmatch(texts[0]):
        texts.pop(0)
    known = bool(texts) and all(map(_OWN_VARIABLE.fullmatch, texts))
    return Judgement("reads what comes in", is_read_only=known)


def judge_umask(arguments: tuple[Word, ...]) -> Judgement:
    """Return what `umask` and `ulimit` do, which tell without a number."""
    known = all(word.text in ("-S", "-p", "-a", "-H") for word in arguments)
    return Judgement("tells about the session", is_read_only=known)
