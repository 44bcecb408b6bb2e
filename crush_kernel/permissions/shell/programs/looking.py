"""Programs that only read, with the options that they are known to only read with.

Left out on purpose: options that write (`-o`), run something (`--pre`), name files of file names
(`--files0-from`, `--check`, which
would be read unseen), or follow links out of the project (`-L`, `-R`).
"""

from collections.abc import Mapping
from typing import Final

from crush_kernel.permissions.shell.programs.names import names_in
from crush_kernel.permissions.shell.programs.operands import Usage, usage

_LISTS = "lists files"
_TELLS = "tells about the machine"
_PRINTS = "prints text"
_COMPARES = "compares files"
_SEARCHES = "searches files"

_FILTERS: dict[str, str] = {
    "cat": "-AbeEnstTuv --number --number-nonblank --show-all --squeeze-blank",
    "head": "-n: -c: -#qvz --lines: --bytes: --quiet --verbose",
    "tail": "-n: -c: -#fFqvz -s: --lines: --bytes: --follow? --pid: --quiet --retry --verbose",
    "wc": "-clLmw --bytes --chars --lines --max-line-length --words",
    "tac": "-bs: -r --before --separator:",
    "rev": "",
    "nl": "-b: -d: -f: -h: -i: -l: -n: -ps: -v: -w:",
    "fold": "-bsw: --bytes --spaces --width:",
    "fmt": "-cstuw: --width:",
    "expand": "-it: --tabs: --initial",
    "unexpand": "-at: --tabs: --all --first-only",
    "cut": "-b: -c: -d: -f: -nsz --bytes: --characters: --delimiter: --fields: --complement"
    " --only-delimited --output-delimiter: --zero-terminated",
    "paste": "-d: -sz --delimiters: --serial --zero-terminated",
    "column": "-c: -s: -txeN: -o: -R: -H: -T: -n: -JW: -E: --table --separator:"
    " --output-separator: --table-columns: --table-right: --json --table-name: --fillrows",
    **dict.fromkeys(
        names_in("md5sum sha1sum sha224sum sha256sum sha384sum sha512sum b2sum"),
        "-btwz --quiet --status --strict --tag --warn --text --binary",
    ),
    "cksum": "-a: --algorithm: --tag --untagged",
    "base64": "-diw: --decode --ignore-garbage --wrap:",
    "hexdump": "-bcCdovxn: -s: -e: --canonical --length: --skip:",
    "od": "-A: -j: -N: -t: -w? -abcdDfhiloOsxv --address-radix: --skip-bytes: --read-bytes:"
    " --format: --output-duplicates --width?",
    "strings": "-afn: -t: -e: -wdo -# --all --bytes: --radix: --encoding: --print-file-name",
    "zcat": "",
}

_GREP: Final = (
    "-EFGPivwxyclqsohHnTZzbaIUurA: -B: -C: -D: -d: -e: -f@ -m: -# --regexp: --file@"
    " --extended-regexp --fixed-strings --basic-regexp --perl-regexp --ignore-case"
    " --no-ignore-case --invert-match --word-regexp --line-regexp --count --color? --colour?"
    " --files-with-matches --files-without-match --max-count: --only-matching --quiet --silent"
    " --no-messages --byte-offset --with-filename --no-filename --label: --line-number"
    " --initial-tab --null --null-data --after-context: --before-context: --context: --text"
    " --binary-files: --directories: --exclude: --exclude-from@ --exclude-dir: --include:"
    " --recursive --line-buffered -L"
)
_RG: Final = (
    "-A: -B: -C: -E: -e: -f@ -FHIilM: -m: -j: -NnopPqrsSTtUuvwx0acg: -t: -T: -r: -hd:"
    " --after-context: --before-context: --context: --regexp: --file@ --fixed-strings --glob:"
    " --iglob: --with-filename --no-filename --ignore-case --case-sensitive --smart-case"
    " --files --files-with-matches --files-without-match --max-count: --max-depth: --max-columns:"
    " --max-filesize: --line-number --no-line-number --only-matching --pcre2 --quiet --replace:"
    " --sort: --sortr: --type: --type-not: --type-list --type-add: --multiline --multiline-dotall"
    " --unrestricted --invert-match --word-regexp --line-regexp --null --text --count"
    " --count-matches --color: --colors: --column --no-column --heading --no-heading --hidden"
    " --no-hidden --ignore --no-ignore --no-ignore-vcs --no-ignore-parent --json --stats --trim"
    " --vimgrep --passthru --no-messages --no-config --threads: --encoding: --crlf --version"
    " --block-buffered --line-buffered --context-separator: --pretty --no-mmap --mmap"
    " --one-file-system"
)
_LS: Final = (
    "-aAbBcCdDfFgGhHikKlLmnNopqQrRsStuUvxXZ1I: -w: -T: --all --almost-all --author --escape"
    " --block-size: --color? --directory --classify? --file-type --format: --full-time"
    " --group-directories-first --no-group --human-readable --si --hide: --ignore:"
    " --ignore-backups --indicator-style: --inode --literal --numeric-uid-gid --quote-name"
    " --quoting-style: --recursive --reverse --size --sort: --time: --time-style: --width: --zero"
    " --hyperlink? --dereference-command-line"
)
_DIFF: Final = (
    "-abBdeEiHnNpqstTuwyZc-#C: -U: -I: -W: -x: --brief --report-identical-files --context?"
    " --unified? --side-by-side --width: --left-column --suppress-common-lines --show-c-function"
    " --show-function-line: --label: --expand-tabs --ignore-case --ignore-tab-expansion"
    " --ignore-trailing-space --ignore-space-change --ignore-all-space --ignore-blank-lines"
    " --ignore-matching-lines: --text --strip-trailing-cr --minimal --speed-large-files --color?"
    " --new-file --normal --ed --exclude:"
)
_JQ: Final = (
    "-cCMeSsnrjRahv --arg:: --argjson:: --slurpfile:@ --rawfile:@ --indent: --tab --compact-output"
    " --color-output --monochrome-output --exit-status --sort-keys --slurp --null-input"
    " --raw-output --raw-output0 --join-output --raw-input --ascii-output --unbuffered --stream"
    " --seq --version"
)

LOOKING: Final[Mapping[str, Usage]] = {
    **{name: usage(known, is_harmless=True) for name, known in _FILTERS.items()},
    # Lists and states of files
    "ls": usage(_LS, is_harmless=True, reads_here="", does=_LISTS),
    "dir": usage(_LS, is_harmless=True, reads_here="", does=_LISTS),
    "stat": usage(
        "-c: -f:LtxF --format: --printf: --file-system --dereference --terse",
        is_harmless=True,
        does="tells about files",
    ),
    "file": usage(
        "-bhikLNnprsv0F: -e: -P: --brief --mime --mime-type --mime-encoding --no-dereference"
        " --dereference --separator: --exclude: --raw --version --no-pad --extension",
        does="tells about files",
    ),
    "du": usage(
        "-0abcDhHklmPsSxd: -t: -B: --all --apparent-size --block-size: --bytes --total"
        " --max-depth: --human-readable --si --inodes --null --separate-dirs --summarize"
        " --threshold: --time? --time-style: --exclude: --one-file-system",
        is_harmless=True,
        reads_here="",
        does="tells about files",
    ),
    "df": usage(
        "-aB:hHiklmPt: -Tvx: --all --block-size: --human-readable --si --inodes --local"
        " --output? --portability --type: --print-type --exclude-type: --total --no-sync",
        is_harmless=True,
        does=_TELLS,
    ),
    "tree": usage(
        "-adfiqNQpugshDFrtcUvSACnJXxL: -P: -I: -H: -T: --dirsfirst --filesfirst --noreport"
        " --charset: --prune --filelimit: --gitignore --matchdirs --ignore-case --si --du"
        " --inodes --device --timefmt: --sort: --fromfile",
        reads_here="",
        does=_LISTS,
    ),
    "basename": usage("-azs: --multiple --suffix: --zero", "t*", is_harmless=True, does=_PRINTS),
    "dirname": usage("-z --zero", "t*", is_harmless=True, does=_PRINTS),
    "realpath": usage(
        "-eLmPqsz --canonicalize-existing --canonicalize-missing --logical --physical --quiet"
        " --strip --no-symlinks --zero --relative-to: --relative-base:",
        is_harmless=True,
        does="tells about files",
    ),
    "readlink": usage(
        "-efmnqsvz --canonicalize --canonicalize-existing --canonicalize-missing --no-newline"
        " --quiet --silent --verbose --zero",
        is_harmless=True,
        does="tells about files",
    ),
    "pwd": usage("-LP --logical --physical", "", is_harmless=True, does="names the folder"),
    # Searching and comparing
    **dict.fromkeys(
        ("grep", "egrep", "fgrep"),
        usage(
            _GREP,
            "tr*",
            otherwise=("-e -f --regexp --file", "r*"),
            is_harmless=True,
            reads_here="-r --recursive -d --directories",
            does=_SEARCHES,
        ),
    ),
    "rg": usage(
        _RG,
        "tr*",
        otherwise=("-e -f --regexp --file --files --type-list", "r*"),
        reads_here="",
        does=_SEARCHES,
    ),
    "diff": usage(_DIFF, is_harmless=True, does=_COMPARES),
    "cmp": usage(
        "-bi: -ln: -s --print-bytes --ignore-initial: --verbose --bytes: --quiet --silent",
        "rrtt",
        does=_COMPARES,
    ),
    "comm": usage(
        "-123z --check-order --nocheck-order --output-delimiter: --total --zero-terminated",
        is_harmless=True,
        does=_COMPARES,
    ),
    "join": usage(
        "-a: -e: -ij: -o: -t: -v: -1: -2: -z --check-order --nocheck-order --header",
        is_harmless=True,
    ),
    "sort": usage(
        "-bcCdfghiMnrRsuVzk: -t: -S: -o> --ignore-leading-blanks --dictionary-order --ignore-case"
        " --general-numeric-sort --human-numeric-sort --month-sort --numeric-sort --random-sort"
        " --reverse --sort: --version-sort --check? --key: --stable --field-separator: --unique"
        " --zero-terminated --parallel: --output>",
    ),
    "uniq": usage(
        "-cdDif: -s: -uw: -z --count --repeated --all-repeated? --group? --ignore-case"
        " --skip-fields: --skip-chars: --unique --check-chars: --zero-terminated",
        "rw",
    ),
    "shuf": usage(
        "-ei: -n: -rzo> --echo --input-range: --head-count: --repeat --zero-terminated --output>",
    ),
    "tr": usage(
        "-cCdst --complement --delete --squeeze-repeats --truncate-set1",
        "t*",
        is_harmless=True,
        does="changes text on its way",
    ),
    "iconv": usage("-f: -t: -clo> --from-code: --to-code: --list --silent --output>"),
    "jq": usage(_JQ, "tr*", is_harmless=True),
    "xxd": usage("-abeEipuc: -g: -l: -o: -s: -C", "rw"),
    # The machine and the session
    "which": usage("-as --all", "t*", is_harmless=True, does="finds programs"),
    "whereis": usage("-bmsul", "t*", is_harmless=True, does="finds programs"),
    "type": usage("-aftpP", "t*", is_harmless=True, does="finds programs"),
    "whoami": usage("", "", is_harmless=True, does=_TELLS),
    "logname": usage("", "", is_harmless=True, does=_TELLS),
    "id": usage(
        "-agGnruzZ --user --group --groups --name --real --zero",
        "t*",
        is_harmless=True,
        does=_TELLS,
    ),
    "groups": usage("", "t*", is_harmless=True, does=_TELLS),
    "users": usage("", "", does=_TELLS),
    "who": usage("-abdHlmpqrstTu --all --boot --count --heading", "", does=_TELLS),
    "tty": usage("-s --silent", "", does=_TELLS),
    "hostname": usage("-sI --short --all-ip-addresses", "", does=_TELLS),
    "uname": usage(
        "-asnrvmpio --all --kernel-name --nodename --kernel-release --kernel-version --machine"
        " --processor --hardware-platform --operating-system",
        "",
        does=_TELLS,
    ),
    "arch": usage("", "", does=_TELLS),
    "uptime": usage("-ps --pretty --since", "", does=_TELLS),
    "nproc": usage("--all --ignore:", "", does=_TELLS),
    "ps": usage(
        "-aAdefFHjlLmMNTwxyZcC: -G: -g: -p: -q: -s: -t: -U: -u: -o: -O: --forest --headers"
        " --no-headers --sort: --pid: --ppid: --user: --format: --cols: --width:",
        "t*",
        is_harmless=True,
        does=_TELLS,
    ),
    "pgrep": usage(
        "-acdfilnovwxd: -g: -G: -P: -s: -t: -u: -U: --full --list-name --list-full --count"
        " --newest --oldest --exact --euid: --parent: --uid:",
        "t",
        does=_TELLS,
    ),
    "pidof": usage("-scx", "t*", does=_TELLS),
    "free": usage("-bkmghltwvs: -c: --human --mega --giga --total --wide", "", does=_TELLS),
    "lscpu": usage("-abcexpJy --json --all --extended? --parse?", "", does=_TELLS),
    "lsblk": usage("-abdfilmnOpPrstJo: --json --output: --fs --bytes", "", does=_TELLS),
    "getconf": usage("-a", "t*", does=_TELLS),
    "locale": usage("-amck", "t*", does=_TELLS),
    "printenv": usage("-0 --null", "t*", is_harmless=True, does="shows variables"),
    "cal": usage("-13jmsywn: -A: -B: --monday --sunday --three --year", "t*", does=_PRINTS),
    "date": usage(
        "-uRjd: -I? -r@ --utc --universal --date: --iso-8601? --rfc-email --rfc-3339: --reference@",
        "t",
        does="tells the time",
    ),
    # With `-p`, `wait` sets a variable, and runs what stands in its index.
    "wait": usage("-nf", "t*", does="waits"),
    "jobs": usage("-lnprs", "t*", does="lists jobs"),
    # Lists of what is inside of archives; names of other machines are looked for elsewhere.
    "zipinfo": usage("-12slmvhtTzZ", does="lists an archive"),
}
