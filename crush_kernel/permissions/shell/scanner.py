"""Goes through a command line word by word, as bash does, and into what the words run.

Source: Bash Reference Manual, Quoting and Shell Expansions; POSIX, Shell Command Language, Token
Recognition.
"""

import re
from abc import ABC, abstractmethod

from crush_kernel.permissions.shell.syntaxtree import UNSURE, Sequence

MAX_DEPTH = 40
"""How deep commands may be nested."""

SUBSTITUTION: frozenset[str] = frozenset({")"})
"""What ends the commands in parentheses."""
NOTHING: frozenset[str] = frozenset()

_BLANKS = re.compile(r"(?:[ \t]+|\\\n)*(?:#[^\n]*)?")
_SPACES = re.compile(r"(?:[ \t\n]+|\\\n|#[^\n]*)*")
_PLAIN = r"""(?:[^ \t\n;&|()<>'"\\$`]++ | \\[\s\S] | '[^']*' | "(?:[^"\\$`]++|\\[\s\S])*+"
    | \$'(?:[^'\\]++|\\[\s\S])*+' | \$(?:\w|[?\#@*!$-]|\{\w+\}) )+"""
_RUN = re.compile(_PLAIN, re.VERBOSE | re.ASCII)
"""What is within a word and has nothing to run in it."""
PLAIN_WORD = re.compile(
    rf"[ \t]*+ (?!\# | \\\n) ({_PLAIN}) (?=[ \t\n;&|)] | $)", re.VERBOSE | re.ASCII
)
"""A whole word of this kind, and the blanks before it."""
_QUOTED_RUN = re.compile(
    r"""(?: [^"\\$`]++ | \\[\s\S] | \$(?:\w|[?\#@*!$-]|\{\w+\}) | \$(?![({\[]) )+""",
    re.VERBOSE | re.ASCII,
)
_PLAIN_ARITHMETIC = re.compile(r"\(\([\d \t+*/%-]*\)\)", re.ASCII)
_BACKTICKS = re.compile(r"((?:[^`\\]++|\\[\s\S])*+)`")
_IN_DOCUMENT = re.compile(r"\\[\s\S]|\$[({\[]|`")
_INSIDE = re.compile(r"[^()\[\]{}\"'\\$`<>]+")
_QUOTE = re.compile(r"\\[\s\S]|'[^']*'")
_ESCAPE = re.compile(r"\\[\s\S]")
_PATTERN_EXPANSION = re.compile(r"\$\{[\w@*]+(?:\[[^\]]*\])?[#%/^,]")


class TooDeepError(Exception):
    """Nobody nests commands so deep for a good reason."""


class Scanner(ABC):
    """A place in a command line, which moves on. Words never fail; doubts are noted."""

    def __init__(self, text: str, *, depth: int = 0) -> None:
        self.text = text
        self.end = len(text)
        self.position: int = 0
        self.depth = depth
        self.doubts: dict[str, None] = {}
        self._unclosed_from = 0

    @abstractmethod
    def sequence(self, closers: frozenset[str]) -> tuple[Sequence, str]:
        """Read commands as far as one of `closers`; return them and that, `""` at the end."""

    @abstractmethod
    def sub_reader(self, text: str) -> "Scanner":
        """Return a reader of `text`, which stands in this one's, and shares its doubts."""

    def doubt(self, why: str = UNSURE) -> None:
        """Note that something may mean something else."""
        self.doubts[why] = None

    def enter(self) -> None:
        """Go one level deeper.

        Raises:
            TooDeepError: if that is too deep.
        """
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise TooDeepError

    def leave(self) -> None:
        """Come back from a level."""
        self.depth -= 1

    def peek(self) -> str:
        """Return the next character, `""` at the end."""
        return self.text[self.position] if self.position < self.end else ""

    def at(self, sign: str, further: int = 0) -> bool:
        """Return whether `sign` comes next, or so many characters further."""
        return self.text.startswith(sign, self.position + further, self.end)

    def match(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        """Return what comes next if it is `pattern`, without going past it."""
        return pattern.match(self.text, self.position, self.end)

    def take(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        """Go past `pattern` if it comes next."""
        if found := pattern.match(self.text, self.position, self.end):
            self.position = found.end()
        return found

    def blanks(self) -> str:
        """Go to the next token of the line and return its first character."""
        if found := _BLANKS.match(self.text, self.position, self.end):
            self.position = found.end()
        return self.text[self.position] if self.position < self.end else ""

    def spaces(self) -> str:
        """Go to the next token, on whatever line, and return its first character."""
        self.take(_SPACES)
        return self.peek()

    # Words

    def word(self, inner: list[Sequence]) -> bool:
        """Go to the end of the word that starts here; return whether there is one.

        Args:
            inner: gets what the word runs.
        """
        start = self.position
        while self.position < self.end:
            self.take(_RUN)
            sign = self.peek()
            if sign in ("$", "`") or (sign in ("<", ">") and self.at("(", 1)):
                self.expansion(inner)
            elif sign == '"':
                self.double_quoted(inner)
            elif sign in ("'", "\\"):  # never closed
                self.doubt()
                self.position = self.end
            else:
                break
        return self.position > start

    def double_quoted(self, inner: list[Sequence]) -> None:
        """Go past a string in double quotes."""
        self.position += 1
        while self.position < self.end:
            if self.take(_QUOTED_RUN):
                continue
            sign = self.peek()
            if sign in ("$", "`"):
                self.expansion(inner, is_quoted=True)
                continue
            self.position += 1
            if sign == '"':
                return
        self.doubt()

    def expansion(self, inner: list[Sequence], *, is_quoted: bool = False) -> None:
        """Go past what begins with `$`, a backtick, `<(` or `>(`."""
        if self.at("`"):
            self._backticks(inner, is_quoted=is_quoted)
        elif self.at("$(("):
            self._calculation(inner)
        elif self.at("(", 1):
            self.position += 2
            inner.append(self.sequence(SUBSTITUTION)[0])
        elif self.at("${"):
            self.doubt()
            # In double quotes a single one means itself, but not in a pattern.
            quotes = not is_quoted or self.match(_PATTERN_EXPANSION) is not None
            self.position += 2
            self._until("}", inner, quotes=quotes)
        elif self.at("$["):
            self.doubt()
            self.position += 2
            self._until("]", inner)
        else:  # a `$` that means itself, or stands before a string that is translated
            self.position += 1
            if self.at('"'):
                self.doubt()

    def arithmetic(self, inner: list[Sequence]) -> bool:
        """Go past `((…))`; return whether it is that, and not two subshells."""
        start, found = self.position, list[Sequence]()
        if start < self._unclosed_from:
            self.doubt()
            return False
        self.position += 2
        if self._until(")", found) and self.at(")"):
            self.position += 1
            inner.extend(found)
            return True
        if self.position >= self.end:
            self._unclosed_from = self.end  # nor is it for what begins further on
        self.position = start
        return False

    def expansions(self, start: int, end: int, inner: list[Sequence]) -> None:
        """Read what a here-document that stands there runs, and stay where we are."""
        after, outer = self.position, self.end
        self.position, self.end = start, end
        while found := _IN_DOCUMENT.search(self.text, self.position, end):
            self.position = found.start()
            if self.at("\\"):
                self.position = found.end()
            else:
                self.expansion(inner, is_quoted=True)
        self.position, self.end = after, outer

    def _calculation(self, inner: list[Sequence]) -> None:
        """Go past `$((…))`, or a substitution that begins with a subshell."""
        self.position += 1
        if self.take(_PLAIN_ARITHMETIC):
            return
        self.doubt()
        if not self.arithmetic(inner):
            self.position += 1
            inner.append(self.sequence(SUBSTITUTION)[0])

    def _until(self, closer: str, inner: list[Sequence], *, quotes: bool = True) -> bool:
        """Go past `closer`, which is not in quotes; return whether it is there."""
        self.enter()
        level = 0
        opener = {")": "(", "]": "["}.get(closer, "")
        while sign := self.peek():
            if sign == closer:
                level -= 1
            elif sign == opener:
                level += 1
            if level < 0:
                break
            self._past(sign, inner, quotes=quotes)
        self.leave()
        self.position += 1
        if not sign:
            self.doubt()
            self.position = self.end
        return bool(sign)

    def _past(self, sign: str, inner: list[Sequence], *, quotes: bool) -> None:
        if sign in "$`" or (sign in "<>" and self.at("(", 1)):
            self.expansion(inner, is_quoted=not quotes)
        elif sign == '"':
            self.double_quoted(inner)
        elif not self.take(_INSIDE) and not self.take(_QUOTE if quotes else _ESCAPE):
            self.position += 1

    def _backticks(self, inner: list[Sequence], *, is_quoted: bool) -> None:
        self.position += 1
        found = self.match(_BACKTICKS)
        if found is None:
            self.doubt()
            inner.append(self.sequence(NOTHING)[0])
        elif "\\" in found[1]:
            # What is escaped is not where it was, so the two readers cannot be compared.
            self.doubt()
            escaped = r"\\([$`\\\"])" if is_quoted else r"\\([$`\\])"
            reader = self.sub_reader(re.sub(escaped, r"\1", found[1]))
            inner.append(reader.sequence(NOTHING)[0])
            self.position = found.end()
        else:
            outer, self.end = self.end, found.end() - 1
            inner.append(self.sequence(NOTHING)[0])
            self.position, self.end = found.end(), outer
