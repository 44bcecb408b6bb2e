"""What `git` does: which subcommands only look, and with which options.

Left out on purpose: options that write (`--output`), run something (`-O`, `--ext-diff`,
`--textconv`, `-c`), read what is not named (`-f`, `--no-index`), talk to a server, or look into
repositories inside of the repository, whose configuration nobody has looked at (`--dirty`).
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from crush_kernel.permissions.shell.judgement import UNKNOWN_WORD, Judgement, Word
from crush_kernel.permissions.shell.programs.names import names_in
from crush_kernel.permissions.shell.programs.operands import HERE, Usage, judge_given, usage
from crush_kernel.permissions.shell.programs.options import Given, options, scan
from crush_kernel.permissions.shell.programs.wrappers import joined

_GLOBAL: Final = options(
    "-C/ -c: -pP --no-pager --paginate --no-optional-locks --literal-pathspecs --glob-pathspecs"
    " --icase-pathspecs --noglob-pathspecs --no-replace-objects --bare --git-dir: --work-tree:"
    " --namespace: --exec-path? --config-env: --super-prefix: --version --help"
)
_HARMLESS_GLOBALS: Final = names_in(
    "-C --no-pager -P --no-optional-locks --literal-pathspecs --glob-pathspecs --icase-pathspecs"
    " --noglob-pathspecs --no-replace-objects --version"
)

_DIFF: Final = (
    "-pusRabwzrtMCBDW -U: -M? -C? -B? -S: -G: -l: --patch --no-patch --unified: --raw"
    " --patch-with-raw --patch-with-stat --minimal --patience --histogram --anchored:"
    " --diff-algorithm: --stat? --compact-summary --numstat --shortstat --dirstat? --summary"
    " --name-only --name-status --submodule? --color? --no-color --color-moved? --color-moved-ws:"
    " --word-diff? --word-diff-regex: --color-words? --no-renames --rename-empty --check"
    " --full-index --binary --abbrev? --no-abbrev --break-rewrites? --find-renames? --find-copies?"
    " --find-copies-harder --irreversible-delete --diff-filter: --pickaxe-all --pickaxe-regex"
    " --relative? --no-relative --text --ignore-cr-at-eol --ignore-space-at-eol"
    " --ignore-space-change --ignore-all-space --ignore-blank-lines --ignore-matching-lines:"
    " --inter-hunk-context: --function-context --no-ext-diff --no-textconv --ignore-submodules?"
    " --src-prefix: --dst-prefix: --no-prefix --line-prefix: --exit-code --quiet"
    " --output-indicator-new: --output-indicator-old: --full-diff --pickaxe-all -c --cc"
)
_LOG: Final = _DIFF + (
    " -#n: -giEFPL: --max-count: --skip: --since: --after: --until: --before: --author:"
    " --committer: --grep: --all-match --invert-grep --regexp-ignore-case --basic-regexp"
    " --extended-regexp --fixed-strings --perl-regexp --merges --no-merges --min-parents:"
    " --max-parents: --first-parent --all --branches? --tags? --remotes? --glob: --exclude:"
    " --not --reflog --walk-reflogs --cherry --cherry-mark --cherry-pick --left-only --right-only"
    " --left-right --boundary --simplify-by-decoration --full-history --dense --sparse"
    " --simplify-merges --ancestry-path? --date-order --author-date-order --topo-order --reverse"
    " --graph --show-linear-break? --oneline --pretty? --format: --abbrev-commit"
    " --no-abbrev-commit --encoding: --expand-tabs? --no-expand-tabs --notes? --no-notes --date:"
    " --relative-date --parents --children --decorate? --no-decorate --decorate-refs:"
    " --decorate-refs-exclude: --source --follow --log-size --no-walk? --do-walk --mailmap"
    " --use-mailmap --no-mailmap --count --diff-merges: --no-diff-merges --combined-all-paths -m"
)
_REFS: Final = (
    "--contains! --no-contains! --merged! --no-merged! --points-at! --sort: --format: --color?"
    " --no-color --column? --no-column --ignore-case --omit-empty"
)
_SHOWS = "shows the history"
_TELLS = "tells about the repository"

LOOKING: Final[Mapping[str, Usage]] = {
    "log": usage(_LOG, "t*", does=_SHOWS),
    "show": usage(_LOG, "t*", does=_SHOWS),
    "whatchanged": usage(_LOG, "t*", does=_SHOWS),
    "shortlog": usage(_LOG + " -nsecw? --numbered --summary --email --group:", "t*", does=_SHOWS),
    "reflog": usage(_LOG, "t*", does=_SHOWS),
    "stash list": usage(_LOG, "t*", does=_SHOWS),
    "stash show": usage(_DIFF + " --include-untracked --only-untracked", "t*", does=_SHOWS),
    # Of two paths one of which lies outside the repository, git compares the files.
    "diff": usage(
        _DIFF + " --cached --staged --merge-base -0 -1 -2 -3 --base --ours --theirs",
        does="shows changes",
    ),
    "diff-tree": usage(_DIFF + " -v --root --stdin --no-commit-id --always", "t*", does=_SHOWS),
    "range-diff": usage(_DIFF + " --creation-factor:", "t*", does="shows changes"),
    "status": usage(
        "-sbvzu? --short --branch --show-stash --porcelain? --long --verbose --untracked-files?"
        " --ignore-submodules? --ignored? --column? --no-column --ahead-behind --no-ahead-behind"
        " --renames --no-renames --find-renames?",
        "t*",
        does="shows changes",
    ),
    "blame": usage(
        "-bltfnspewcM? -C? -L: --root --show-stats --show-name --show-number --show-email"
        " --porcelain --line-porcelain --incremental --date: --since: --reverse --first-parent"
        " --abbrev: --ignore-rev: --color-lines --color-by-age --encoding:",
        "t*",
        does=_SHOWS,
    ),
    "branch": usage(
        _REFS + " -arvil --all --remotes --verbose --list --show-current --abbrev: --no-abbrev",
        "",
        otherwise=("-l --list --contains --no-contains --merged --no-merged --points-at", "t*"),
        does="lists branches",
    ),
    "tag": usage(
        _REFS + " -iln? --list",
        "",
        otherwise=("-l -n --list --contains --no-contains --merged --no-merged --points-at", "t*"),
        does="lists tags",
    ),
    "remote": usage("-v --verbose", "", does=_TELLS),
    "remote get-url": usage("--push --all", "t", does=_TELLS),
    "worktree list": usage("-vz --porcelain --verbose", "", does=_TELLS),
    "notes list": usage("", "t*", does=_TELLS),
    "notes show": usage("", "t*", does=_SHOWS),
    "config": usage(
        "-lz --get --get-all --get-regexp --get-urlmatch --list --global --system --local"
        " --worktree --show-origin --show-scope --name-only --null --type: --bool --int --path"
        " --includes --no-includes --default:",
        "t",
        otherwise=("--get --get-all --get-regexp --get-urlmatch --list -l", "t*"),
        does="shows settings",
    ),
    "config list": usage("-z --global --system --local --show-origin --show-scope --name-only", ""),
    "config get": usage("-z --global --system --local --show-origin --show-scope --all", "t"),
    "describe": usage(
        "--all --tags --contains --abbrev: --candidates: --exact-match --debug"
        " --long --match: --exclude: --always --first-parent",
        "t*",
        does=_TELLS,
    ),
    "rev-parse": usage(
        "-q --verify --quiet --symbolic --symbolic-full-name --abbrev-ref? --short? --all"
        " --branches? --tags? --remotes? --git-dir --absolute-git-dir --git-common-dir"
        " --show-toplevel --show-prefix --show-cdup --is-inside-work-tree --is-inside-git-dir"
        " --is-bare-repository --is-shallow-repository --git-path: --show-superproject-working-tree"
        " --show-object-format? --since: --until: --not --revs-only --no-revs --flags --no-flags"
        " --default: --path-format:",
        "t*",
        does=_TELLS,
    ),
    "rev-list": usage(
        _LOG + " --objects --disk-usage? --header --timestamp --bisect --use-bitmap-index"
        " --no-commit-header --missing: --filter: --in-commit-order",
        "t*",
        does=_SHOWS,
    ),
    "ls-files": usage(
        "-cdmoisuktvfzx: --cached --deleted --modified --others --ignored --stage --unmerged"
        " --killed --exclude: --exclude-standard --exclude-per-directory: --directory"
        " --no-empty-directory --error-unmatch --with-tree: --full-name --abbrev? --debug --eol"
        " --deduplicate --recurse-submodules --resolve-undo --sparse --format:",
        "t*",
        does="lists files",
    ),
    "ls-tree": usage(
        "-drtlz --long --name-only --name-status --object-only --full-name --full-tree --abbrev?"
        " --format:",
        "t*",
        does="lists files",
    ),
    "cat-file": usage(
        "-etsp --batch? --batch-check? --batch-all-objects --buffer --unordered"
        " --allow-unknown-type --follow-symlinks",
        "t*",
        does=_SHOWS,
    ),
    "grep": usage(
        "-#aIviwhHEGFPnlLzocqWpA: -B: -C: -m: -e: --cached --untracked --text --ignore-case"
        " --word-regexp --invert-match --full-name --extended-regexp --basic-regexp"
        " --perl-regexp --fixed-strings --line-number --column --files-with-matches --name-only"
        " --files-without-match --null --only-matching --count --color? --no-color --break"
        " --heading --show-function --function-context --context: --after-context:"
        " --before-context: --max-count: --max-depth: --recursive --no-recursive --and --or --not"
        " --all-match --quiet --threads: --recurse-submodules --exclude-standard"
        " --no-exclude-standard",
        "t*",
        does="searches files",
    ),
    "show-ref": usage(
        "-dqs? --head --heads --branches --tags --dereference --hash? --verify --quiet --abbrev?"
        " --exists",
        "t*",
        does=_TELLS,
    ),
    "for-each-ref": usage(_REFS + " --count: --exclude: --include-root-refs", "t*", does=_TELLS),
    "show-branch": usage("-ar --all --remotes --current --list --sha1-name --topo-order", "t*"),
    "merge-base": usage("-a --all --octopus --independent --is-ancestor --fork-point", "t*"),
    "name-rev": usage("--tags --refs: --all --name-only --always --no-undefined", "t*"),
    "check-ignore": usage("-qvnz --quiet --verbose --non-matching --no-index", "t*"),
    "check-attr": usage("-az --all --cached --source:", "t*"),
    "check-ref-format": usage("--branch --allow-onelevel --normalize --refspec-pattern", "t*"),
    "count-objects": usage("-vH --verbose --human-readable", "", does=_TELLS),
    "cherry": usage("-v --abbrev?", "t*", does=_SHOWS),
    "symbolic-ref": usage("-q --quiet --short", "t", does=_TELLS),
    "var": usage("-l", "t", does=_TELLS),
    "version": usage("--build-options", "", does="tells its version"),
    "bisect log": usage("", "", does=_SHOWS),
}
_NOT_A_REFERENCE: Final[Mapping[str, frozenset[str]]] = {
    "reflog": names_in("expire delete drop exists list"),
}
"""Operands of a looking subcommand that are subcommands of their own."""

_EFFECTS: Final[Mapping[str, str]] = {
    name: does
    for does, names in {
        "changes the repository": "add commit merge rebase reset checkout switch restore branch tag"
        " stash cherry-pick revert am apply init clean worktree notes gc prune repack"
        " filter-branch filter-repo update-ref update-index replace reflog bisect mv rm"
        " symbolic-ref pack-refs sparse-checkout read-tree commit-tree write-tree hash-object"
        " fast-import lfs subtree maintenance",
        "talks to a server": "push pull fetch clone ls-remote remote submodule send-email svn p4"
        " request-pull send-pack fetch-pack",
        "changes settings": "config credential",
        "runs another program": "difftool mergetool gui citool instaweb daemon web--browse",
        "makes an archive": "archive bundle format-patch",
    }.items()
    for name in names.split()
}
_NESTED: Final = names_in(
    "bisect bundle config lfs maintenance notes reflog remote sparse-checkout stash submodule"
    " subtree worktree"
)
_NO_RULE: Final = names_in("config filter-branch filter-repo bisect submodule difftool")


@dataclass(frozen=True, slots=True)
class GitCall:
    """What a `git` command consists of."""

    given: Given
    """What stands before the subcommand."""
    name: str
    """The subcommand, empty if there is none or only the shell can know."""
    rest: tuple[Word, ...]
    """What stands after it."""
    folder: Word | None
    """Where it is to work; one without a text is not known."""
    before: int
    """How many words stand before the subcommand, `git` included."""

    @property
    def is_plain(self) -> bool:
        """Whether nothing before the subcommand makes git do something else."""
        return (
            self.given.is_understood
            and not self.given.unclear
            and self.given.names <= _HARMLESS_GLOBALS
        )


def git_call(arguments: tuple[Word, ...]) -> GitCall:
    """Return what `git` with `arguments` consists of."""
    given = scan(arguments, _GLOBAL, in_order=True)
    operands = tuple(given.operands)
    name = operands[0].text or "" if operands and not operands[0].has_glob else ""
    folder = given.folders[0] if given.folders else None
    if len(given.folders) > 1:
        folder = UNKNOWN_WORD
    return GitCall(given, name, operands[1:], folder, 1 + len(arguments) - len(operands))


def judge_git(arguments: tuple[Word, ...]) -> Judgement:
    """Return what `git` does with `arguments`."""
    call = git_call(arguments)
    judged = _looking(call) or _changing(call)
    if not call.is_plain:
        judged = judged._replace(is_read_only=False, rule_words=0)
    if call.given.names:
        judged = _in_folder(judged, call)
    if judged.is_read_only:
        return judged._replace(reads=(call.folder or HERE, *judged.reads))
    return judged


def _in_folder(judged: Judgement, call: GitCall) -> Judgement:
    """Return `judged` with what git is told of paths, which counts from where it works."""
    return judged._replace(
        reads=tuple(within(call.folder, word) for word in judged.reads),
        writes=tuple(within(call.folder, word) for word in judged.writes),
        directory=call.folder if judged.runs or judged.scripts else None,
        scripts=(*judged.scripts, *_aliases(call)),
    )


def within(folder: Word | None, path: Word) -> Word:
    """Return the path that `path` is for a program that works in `folder`."""
    if folder is None or (path.text or "").startswith("/"):
        return path
    if folder.text is None or path.text is None:
        return Word(None, path.source)
    return path._replace(text=f"{folder.text}/{path.text}")


def _aliases(call: GitCall) -> tuple[Word, ...]:
    """Return the shell code in aliases given on the command line."""
    values = [word for name, word in call.given.texts if name == "-c"]
    texts = [(word, (word.text or "").partition("=")[2]) for word in values]
    return tuple(Word(text[1:], word.source) for word, text in texts if text.startswith("!"))


def _looking(call: GitCall) -> Judgement | None:
    """Return what the subcommand does if it is known to look and no more."""
    if not call.name:
        is_asked = call.given.names == {"--version"} and not call.given.operands
        return Judgement("tells its version", is_asked) if is_asked else None
    name, rest = call.name, call.rest
    nested = f"{name} {rest[0].text}" if rest else ""
    depth = 2
    if nested in LOOKING:
        name, rest, depth = nested, rest[1:], 3
    use = LOOKING.get(name)
    if use is None:
        return None
    if rest and rest[0].text in _NOT_A_REFERENCE.get(name, ()):
        return None
    given = scan(rest, use.options)
    given.is_understood &= all(_is_harmless_value(name, word) for name, word in given.texts)
    judged = judge_given(use, given)
    return judged._replace(rule_words=call.before + depth - 1) if judged.is_read_only else None


def _is_harmless_value(name: str, value: Word) -> bool:
    """Return whether an option that looks, with `value`, has git run no other program."""
    match name:
        case "--submodule":
            return value.text in ("log", "short")
        case "--ignore-submodules":
            return value.text == "all"
        case "--format" | "--pretty" | "--sort":
            # Signatures are checked by another program, which writes where it keeps its keys.
            return "%G" not in (text := value.text or "") and "signature" not in text
        case _:
            return True


_DOES_MORE: Final[Mapping[str, str]] = {
    "--output": "writes over a file",
    "--open-files-in-pager": "runs another program",
    "--ext-diff": "can run other programs",
    "--textconv": "can run other programs",
}
"""What subcommands that look do with options that nobody expects of them."""
_KNOWN_WORDS: Final = names_in(_LOG)


def _surprises(call: GitCall) -> Iterator[str]:
    """Yield what a subcommand that looks does beside looking, a sentence each."""
    if call.name not in LOOKING:
        return
    for word in call.rest:
        name = (word.text or "").partition("=")[0]
        # Git takes beginnings of names, too.
        found = [does for full, does in _DOES_MORE.items() if full.startswith(name)]
        if call.name == "grep" and name[:2] == "-O":
            yield f"git grep -O {_DOES_MORE['--open-files-in-pager']}."
        elif found and len(name) > len("--o") and name not in _KNOWN_WORDS:
            yield f"git {call.name} {name} {found[0]}."


def _changing(call: GitCall) -> Judgement:
    does = _EFFECTS.get(call.name, f"runs git {call.name}" if call.name else "runs git")
    if call.name == "submodule" and call.rest[:1] and call.rest[0].text == "foreach":
        return _foreach(call.rest[1:])
    nested = call.rest[0].text if call.rest else None
    if (call.name, nested) == ("bisect", "run"):
        return Judgement("runs another command", runs=(call.rest[1:],) if call.rest[1:] else ())
    is_nested = call.name in _NESTED and nested is not None and not nested.startswith("-")
    depth = 0 if call.name in _NO_RULE or not call.name else call.before + 1 + is_nested
    words = tuple(word for word in call.rest if not (word.text or "-").startswith("-"))
    return Judgement(
        does,
        writes=(*_written(call.name, words), *_outputs(call)),
        scripts=_rebase_scripts(call),
        dangers=tuple(_surprises(call)),
        rule_words=depth,
    )


def _outputs(call: GitCall) -> tuple[Word, ...]:
    """Return the files that options name to write to."""
    letter = "-o> " if call.name in ("archive", "format-patch") else ""
    known = options(f"{letter}--output> --output-directory>")
    return tuple(scan(call.rest, known).writes)


def _written(name: str, operands: tuple[Word, ...]) -> tuple[Word, ...]:
    match name:
        case "rm" | "mv" | "restore":
            return operands
        case "init":
            return operands or (HERE,)
        case "clone":
            return operands[1:2]
        case _:
            return ()


def _foreach(rest: tuple[Word, ...]) -> Judgement:
    command = tuple(word for word in rest if word.text not in ("--recursive", "--quiet", "-q"))
    scripts = (joined(command),) if command else ()
    return Judgement("runs another command", scripts=scripts)


def _rebase_scripts(call: GitCall) -> tuple[Word, ...]:
    if call.name != "rebase":
        return ()
    given = scan(call.rest, options("-x: --exec: --onto: -X: -s:"))
    return tuple(word for name, word in given.texts if name in ("-x", "--exec"))
