"""What listing and searching leave out: one policy for `ls`, `glob` and `grep`.

- `LEFT_OUT`: folders that version control, tools and package managers keep for themselves;
- what `.gitignore` files and `.git/info/exclude` say: in a repository as git reads them,
  elsewhere from the project's root down;
- what `.crushignore` files say, which any folder may hold: they hide more, and never show
  again what is hidden.

Hidden files are files like others. A folder that is named explicitly is opened even if it
is ignored itself, and what is above it is then not consulted. ripgrep applies the first two
and sifts the walk (`ripgrep_options`); `keep` does the rest, and `is_left_out` all of it for
one name.

Source: gitignore(5). Choices in braces are the one thing that is read as ripgrep does.
"""

import os
import re
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from crush_kernel.files.keyplaces import KEY_FOLDERS
from crush_kernel.tools.search.globs import BadGlob, anywhere, expand_choices, translate

LEFT_OUT = KEY_FOLDERS.union(
    (".git", ".hg", ".svn", ".jj", ".crush", ".ipynb_checkpoints"),
    ("node_modules", "__pycache__", ".venv"),
)

MAX_RULES_BYTES = 1_000_000
"""What is read of one file of rules."""
MAX_RULES = 5_000
"""How many of its last rules count. A stranger's project may hold any number."""
MAX_RULE_CHARS = 1_000
"""A longer line is none: no path is meant, and to understand it takes minutes."""


@dataclass(frozen=True, slots=True)
class Rule:
    """One line of a file of rules."""

    regex: re.Pattern[str]
    is_ignoring: bool
    """Whether it hides what it matches, rather than shows it again."""
    is_for_folders: bool


@dataclass(frozen=True, slots=True)
class RuleFile:
    """The rules that one folder holds."""

    folder: str
    """Where they start: an absolute path that ends with a slash."""
    rules: tuple[Rule, ...]
    """In reverse: the first that matches has the say."""

    def decide(self, path: str, *, is_folder: bool) -> bool | None:
        """Return whether `path`, absolute and below `folder`, is hidden; `None` if not said."""
        name = path[len(self.folder) :]
        for rule in self.rules:
            if (is_folder or not rule.is_for_folders) and rule.regex.fullmatch(name):
                return rule.is_ignoring
        return None


def parse_rules(text: str) -> tuple[Rule, ...]:
    """Return the rules of a file in reverse; lines that are none are passed over."""
    lines = reversed(text.removeprefix("\ufeff").split("\n"))
    rules = (_parse_rule(line) for line in lines if len(line) <= MAX_RULE_CHARS)
    return tuple(islice((rule for rule in rules if rule is not None), MAX_RULES))


class IgnoreRules:
    """The policy as it applies below one folder.

    Blocks on the file system, and belongs to one thread at a time.
    """

    def __init__(self, base: Path, *, root: Path) -> None:
        self._base = _slashed(base)
        self._git: dict[str, tuple[tuple[RuleFile, ...], tuple[RuleFile, ...]]] = {}
        self._crush: dict[str, tuple[RuleFile, ...]] = {}
        self._hidden: dict[str, bool] = {self._base: False}
        repository = next((f for f in (base, *base.parents) if (f / ".git").exists()), None)
        top = root if base.is_relative_to(root) else base
        self._crush_top = _slashed(top)
        self._git_top = _slashed(repository or top)
        self._is_in_repository = repository is not None
        if self._is_hidden_from_above():
            self._forget_above()
        self._trusts_ripgrep = self._is_in_repository or not self._has_rules_above()

    @property
    def ripgrep_options(self) -> tuple[str, ...]:
        """Return how ripgrep, run in the base, is made to leave out most of this."""
        options = ["--hidden", "--no-ignore-dot", "--no-ignore-global", "--no-ignore-messages"]
        options += [f"--glob=!{name}" for name in sorted(LEFT_OUT)]
        if not self._is_in_repository:
            options.append("--no-require-git")
        if not self._trusts_ripgrep:
            options.append("--no-ignore-parent")
        if (own := self._base + ".crushignore") and Path(own).is_file():
            options.append(f"--ignore-file={own}")
        return tuple(options)

    def keep(self, paths: list[str]) -> list[str]:
        """Return those of ripgrep's `paths`, relative to the base, that are to be seen."""
        return [path for path in paths if not self._is_hidden_file(self._base + path)]

    def is_left_out(self, path: str, *, is_folder: bool) -> bool:
        """Return whether `path`, relative to the base, is hidden, its folders not considered."""
        return self._is_hidden(self._base + path, is_folder=is_folder)

    def _is_hidden_file(self, path: str) -> bool:
        folder, _, name = path.rpartition("/")
        if self._is_hidden_folder(folder + "/"):
            return True
        if self._trusts_ripgrep:
            return self._is_hidden_by_crush(folder + "/", path, is_folder=False)
        return self._is_hidden(folder + "/" + name, is_folder=False)

    def _is_hidden_folder(self, folder: str) -> bool:
        """Return whether a folder below the base is hidden, or one that it is in."""
        for each in _unknown(folder, self._hidden, top=self._base):
            parent = _parent(each)
            if self._hidden[parent]:
                self._hidden[each] = True
            elif self._trusts_ripgrep:
                self._hidden[each] = self._is_hidden_by_crush(parent, each[:-1], is_folder=True)
            else:
                self._hidden[each] = self._is_hidden(each[:-1], is_folder=True)
        return self._hidden[folder]

    def _is_hidden(self, path: str, *, is_folder: bool) -> bool:
        folder, _, name = path.rpartition("/")
        if name in LEFT_OUT:
            return True
        return self._is_hidden_by_git(
            folder + "/", path, is_folder=is_folder
        ) or self._is_hidden_by_crush(folder + "/", path, is_folder=is_folder)

    def _is_hidden_by_git(self, folder: str, path: str, *, is_folder: bool) -> bool:
        said = (file.decide(path, is_folder=is_folder) for file in self._git_rules(folder))
        return next((each for each in said if each is not None), False)

    def _is_hidden_by_crush(self, folder: str, path: str, *, is_folder: bool) -> bool:
        return any(file.decide(path, is_folder=is_folder) for file in self._crush_rules(folder))

    def _git_rules(self, folder: str) -> Iterator[RuleFile]:
        """Yield the files that git asks about what is in `folder`, the first to ask first."""
        for each in _unknown(folder, self._git, top=self._git_top):
            files = _read_rules(each, ".gitignore")
            # Outside repositories ripgrep reads the excludes of one that it comes across, too.
            excludes = _read_rules(each, ".git/info/exclude")
            is_top = each == self._git_top
            if self._is_in_repository:
                is_top = is_top or os.path.exists(each + ".git")  # noqa: PTH110 - a hot path
            above = ((), ()) if is_top else self._git[_parent(each)]
            self._git[each] = (files + above[0], excludes + above[1])
        files, excludes = self._git[folder]
        yield from files
        yield from excludes

    def _crush_rules(self, folder: str) -> tuple[RuleFile, ...]:
        for each in _unknown(folder, self._crush, top=self._crush_top):
            above = () if each == self._crush_top else self._crush[_parent(each)]
            self._crush[each] = _read_rules(each, ".crushignore") + above
        return self._crush[folder]

    def _is_hidden_from_above(self) -> bool:
        """Return whether the base itself is ignored, or a folder that it is in."""
        top = min(self._git_top, self._crush_top, key=len)
        path = self._base
        while path != top:
            folder = _parent(path)
            is_in_git = len(folder) >= len(self._git_top)
            is_in_crush = len(folder) >= len(self._crush_top)
            if is_in_git and self._is_hidden_by_git(folder, path[:-1], is_folder=True):
                return True
            if is_in_crush and self._is_hidden_by_crush(folder, path[:-1], is_folder=True):
                return True
            path = folder
        return False

    def _forget_above(self) -> None:
        self._git_top = self._crush_top = self._base
        self._is_in_repository = False
        self._git.clear()
        self._crush.clear()

    def _has_rules_above(self) -> bool:
        """Return whether ripgrep, outside repositories, would obey files above the top."""
        folder = Path(self._git_top)
        return any((parent / ".gitignore").exists() for parent in folder.parents)


def _parse_rule(line: str) -> Rule | None:
    line = line.removesuffix("\r")
    if line.startswith("#"):
        return None
    text = line if line.endswith("\\ ") else line.rstrip()
    is_ignoring = not text.startswith("!")
    text = text.removeprefix("!")
    is_for_folders = text.endswith("/")
    text = text.removesuffix("/")
    if not text:
        return None
    try:
        regex = "|".join(translate(each) for each in expand_choices(anywhere(text)))
    except BadGlob:
        return None
    return Rule(re.compile(regex), is_ignoring=is_ignoring, is_for_folders=is_for_folders)


def _read_rules(folder: str, name: str) -> tuple[RuleFile, ...]:
    """Return the rules in the file `name` of `folder`, if it is one and has any."""
    try:
        # Should it be a pipe, do not wait for its writer.
        descriptor = os.open(folder + name, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError:
        return ()
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            return ()
        data = os.read(descriptor, MAX_RULES_BYTES)
    except OSError:
        return ()
    finally:
        os.close(descriptor)
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        # Like ripgrep, read no further than the line before.
        text = data[: error.start].rpartition(b"\n")[0].decode("utf-8")
    rules = parse_rules(text)
    return (RuleFile(folder, rules),) if rules else ()


def _slashed(folder: Path) -> str:
    return str(folder).rstrip("/") + "/"


def _parent(folder: str) -> str:
    return folder[: folder.rindex("/", 0, -1) + 1]


def _unknown(folder: str, known: Mapping[str, object], *, top: str) -> list[str]:
    """Return `folder` and those above it up to `top` that are not `known`, the highest first."""
    unknown: list[str] = []
    while folder not in known:
        unknown.append(folder)
        if folder == top:
            break
        folder = _parent(folder)
    return unknown[::-1]
