"""Programs that make, change and remove files, and which of their words those files are.

Options that are not listed are taken for ones without a value: what is not known to be a path is
then taken for one, which at worst asks once too often.
"""

from collections.abc import Mapping
from typing import Final

from crush_kernel.permissions.shell.judgement import Judgement, Word
from crush_kernel.permissions.shell.programs.names import names_in
from crush_kernel.permissions.shell.programs.operands import HERE, Usage, judge_usage, usage
from crush_kernel.permissions.shell.programs.options import options, scan

_CHANGES = "changes files"
_COPIES = "copies files"
_UNPACKS = "unpacks files"
_PACKS = "packs files"


def _changes(
    known: str = "",
    operands: str = "w*",
    *,
    otherwise: tuple[str, str] = ("", ""),
    removes: str | None = None,
    does: str = _CHANGES,
) -> Usage:
    return usage(known, operands, otherwise=otherwise, changes=True, removes=removes, does=does)


_COPY: Final = _changes(
    "-abdfHilLnpPRrsSuvxTt> --target-directory> --recursive --archive --force --no-clobber"
    " --verbose --parents --preserve? --backup? --suffix:",
    "r*w",
    otherwise=("-t --target-directory", "r*"),
    does=_COPIES,
)
_MODE: Final = _changes(
    "-cfRvhLHP --recursive --verbose --reference@ --no-dereference",
    "tw*",
    otherwise=("--reference", "w*"),
    removes="-R --recursive",
    does="changes permissions",
)
_PACKED: Final = _changes("-#fkqrvdltnNS: -c", does=_PACKS)

CHANGING: Final[Mapping[str, Usage]] = {
    "rm": _changes(
        "-rRfidvI --recursive --force --dir --verbose --interactive? --one-file-system"
        " --preserve-root? --no-preserve-root",
        removes="-r -R --recursive",
        does="deletes files",
    ),
    "rmdir": _changes("-pv --parents --verbose", does="deletes files"),
    "unlink": _changes(does="deletes files"),
    "shred": _changes("-fun: -s: -vxz --iterations: --remove?", removes="", does="destroys files"),
    "truncate": _changes("-cos: -r@ --size: --reference@ --no-create", removes=""),
    "mv": _changes(
        "-bfinuvTS: -t> --target-directory> --force --no-clobber --verbose --backup? --suffix:",
        does="moves files",
    ),
    "rename": _changes("-nvfoa --no-act --verbose", "ttw*", does="moves files"),
    "cp": _COPY,
    # What a link leads to can be changed through it.
    "ln": _changes("-bdfFiLnPrsTvS: -t> --symbolic --force", does="makes a link"),
    "link": _changes(does="makes a link"),
    "install": _changes(
        "-bcCDdpsTvg: -m: -o: -S: -t> --mode: --owner: --group: --directory --target-directory>",
        "r*w",
        otherwise=("-d --directory", "w*"),
        does=_COPIES,
    ),
    "ditto": _changes("", "r*w", does=_COPIES),
    "rsync": _changes(
        "-avzrlptgoDHAXSnuPhLcCqxe: -f: --delete --exclude: --include: --progress --dry-run"
        " --exclude-from@ --files-from@ --rsh: --archive --verbose",
        "r*w",
        removes="--delete --delete-after --delete-before --delete-during --delete-excluded",
        does=_COPIES,
    ),
    "mkdir": _changes("-pvZm: --parents --verbose --mode:", does="makes folders"),
    "mkfifo": _changes("-m: --mode:"),
    "mknod": _changes("-m: --mode:", "wt*"),
    "mktemp": _changes("-dqup: --directory --dry-run --tmpdir? --suffix:", does="makes files"),
    "touch": _changes("-acmhd: -t: -r@ --date: --no-create --reference@ --time:", does=_CHANGES),
    "tee": _changes("-aip --append --ignore-interrupts", does="writes files"),
    "sponge": _changes("-a", does="writes files"),
    "chmod": _MODE,
    "chown": _MODE,
    "chgrp": _MODE,
    "chattr": _changes("-RVf", "tw*", removes="-R"),
    "setfacl": _changes("-Rbkdm: -x: -M@ -X@", removes="-R --recursive"),
    "split": _changes(
        "-a: -b: -C: -l: -n: -d -t: --bytes: --lines: --number: --numeric-suffixes?"
        " --additional-suffix: --verbose",
        "rw",
        does="writes files",
    ),
    "csplit": _changes("-kszf> -n: -b:", "rt*", does="writes files"),
    "patch": _changes("-#p: -i@ -d/ -o> -r> -RNsfbEl --dry-run --input@ --directory/ --output>"),
    "ed": _changes("-sp:", does="edits files"),
    "ex": _changes("-s -c:", does="edits files"),
    "vi": _changes("-c:", does="edits files"),
    "vim": _changes("-Enesc: -S:", does="edits files"),
    "nano": _changes("", does="edits files"),
    "emacs": _changes("-Q", does="edits files"),
    "dos2unix": _changes("-qfkn"),
    "unix2dos": _changes("-qfkn"),
    "gzip": _PACKED,
    "gunzip": _changes("-#fkqrvltc", does=_UNPACKS),
    "bzip2": _PACKED,
    "bunzip2": _changes("-#fkqvtc", does=_UNPACKS),
    "xz": _changes("-#T: -zfkqvdltc", does=_PACKS),
    "unxz": _changes("-#fkqvtc", does=_UNPACKS),
    "zstd": _changes("-#T: -o> -zfkqvdltcr", does=_PACKS),
    "zip": _changes("-#rqvjymdumFx: -i: -P:", "wr*", does=_PACKS),
    "unzip": _changes("-oqnujdtvl -d> -P: -x:", "rt*", does=_UNPACKS),
    "7z": _changes("", "twr*", does=_PACKS),
    "objcopy": _changes("-S", "rw"),
    "strip": _changes("-sgdxvo>"),
    "uniq": _changes(
        "-cdDif: -s: -uw: -z --count --repeated --unique --ignore-case", "rw", does="writes files"
    ),
    "black": _changes("-qvl: -t: -S --line-length: --target-version: --check --diff --config@"),
    "isort": _changes("-qvcdl: --profile: --check-only --diff"),
    "autopep8": _changes("-iram: --in-place --recursive --aggressive"),
    "prettier": _changes("-wcl --write --check --config@"),
}

_RSYNC_REMOTE = "talks to another machine"


def judge_changing(name: str, arguments: tuple[Word, ...]) -> Judgement:
    """Return what the program `name` of the table does with `arguments`."""
    judged = judge_usage(CHANGING[name], arguments)
    if name == "rsync" and any(_is_remote(word) for word in (*judged.reads, *judged.writes)):
        return judged._replace(
            does=_RSYNC_REMOTE,
            reads=tuple(word for word in judged.reads if not _is_remote(word)),
            writes=tuple(word for word in judged.writes if not _is_remote(word)),
        )
    if name == "unzip" and not any(word.text == "-d" for word in arguments):
        return judged._replace(writes=(HERE,))
    return judged


def _is_remote(word: Word) -> bool:
    host, colon, _ = (word.text or "").partition(":")
    return bool(colon) and "/" not in host


def judge_dd(arguments: tuple[Word, ...]) -> Judgement:
    """Return what `dd` does, whose operands are `name=value`."""
    pairs = [(word, *(word.text or "").partition("=")[::2]) for word in arguments]
    return Judgement(
        "writes files",
        reads=tuple(Word(value, word.source) for word, key, value in pairs if key == "if"),
        writes=tuple(Word(value, word.source) for word, key, value in pairs if key == "of"),
    )


_TAR: Final = options(
    "-xctruAdvzjJapPkmhlOSWwBf: -C/ -T@ -X@ -I: -b: --extract --get --create --list --append"
    " --update --file: --directory/ --gzip --bzip2 --xz --zstd --verbose --exclude:"
    " --strip-components: --to-stdout --wildcards --keep-old-files --overwrite --files-from@"
    " --auto-compress --no-same-owner --same-owner --preserve-permissions --totals"
)
_TAR_UNPACKS: Final = frozenset(["-x", "--extract", "--get"])
_TAR_LISTS: Final = frozenset(["-t", "--list"])
_TAR_LOOKS: Final = _TAR_LISTS | names_in("-v -z -j -J -a -f --file --gzip --xz --verbose")


def judge_tar(arguments: tuple[Word, ...]) -> Judgement:
    """Return what `tar` does, whose first cluster may go without a dash."""
    first = arguments[0].text if arguments else None
    if first and not first.startswith("-") and first.isalpha():
        arguments = _dashed(first, arguments)
    given = scan(arguments, _TAR)
    archives = [word for name, word in given.texts if name in ("-f", "--file")]
    if given.names & _TAR_LISTS:
        is_local = not any(map(_is_remote, archives))
        is_clear = given.is_understood and not given.unclear and given.names <= _TAR_LOOKS
        return Judgement("lists an archive", is_clear and is_local, reads=tuple(archives))
    if given.names & _TAR_UNPACKS:
        into = tuple(given.folders) or (HERE,)
        return Judgement(_UNPACKS, reads=tuple(archives), writes=into)
    return Judgement(_PACKS, reads=tuple(given.operands), writes=tuple(archives))


def _dashed(first: str, arguments: tuple[Word, ...]) -> tuple[Word, ...]:
    """Return `arguments` in the way of options: `cfz a b` is `-cz -f a b`."""
    file = () if "f" not in first else (Word("-f", "-f"),)
    cluster = f"-{first.replace('f', '')}"
    clusters = (Word(cluster, first),) if len(cluster) > 1 else ()
    return (*clusters, *file, *arguments[1:])


def judge_unzip(arguments: tuple[Word, ...]) -> Judgement:
    """Return what `unzip` does, which with `-l` only lists."""
    given = scan(arguments, options("-lqvZ"))
    if given.names & {"-l", "-v", "-Z"} and given.is_understood and not given.unclear:
        return Judgement("lists an archive", is_read_only=True, reads=tuple(given.operands[:1]))
    return judge_changing("unzip", arguments)
