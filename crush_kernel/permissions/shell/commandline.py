"""Divides a command line into its commands and words, as bash does, and says where it is in doubt.

What it finds never fails: a command line with errors is read as far as that goes, line by line, as
bash runs it. What a program gets for a word is not known here, see `words`.

Source: Bash Reference Manual, Shell Syntax; POSIX, Shell Command Language, Token Recognition.
"""

import re
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

UNSURE = "cannot be read for certain"
DEEP = "is nested too deep to be read"
BACKGROUND = "goes on in the background"
FUNCTION = "defines a function"
VARIABLES = "sets variables"

MAX_DEPTH = 40


@dataclass(slots=True)
class Redirect:
    """Where a command reads or writes instead."""

    operator: str
    target: str
    """As it is written; the delimiter of a here-document."""
    span: tuple[int, int]
    """Of the target."""
    body: str | None = None
    """Of a here-document, if nothing in it is expanded."""


@dataclass(slots=True)
class Simple:
    """A simple command."""

    text: str
    words: list[str]
    spans: list[tuple[int, int]]
    """Where the words are, if they are where the text says."""
    assignments: list[str]
    redirects: list[Redirect]
    inner: "list[Sequence]"
    """What its words and redirections run first."""


Kind = Literal["group", "subshell", "branch", "loop", "function", "arithmetic"]


@dataclass(slots=True)
class Compound:
    """Commands between words of the shell."""

    kind: Kind
    text: str = ""
    """Of its redirections."""
    lists: "list[Sequence]" = field(default_factory=list["Sequence"])
    redirects: list[Redirect] = field(default_factory=list[Redirect])
    inner: "list[Sequence]" = field(default_factory=list["Sequence"])


Command: TypeAlias = Simple | Compound


@dataclass(slots=True)
class Pipeline:
    """Commands whose outputs flow into each other; one of them is the usual case."""

    after: str
    """What stands before it: `&&`, `||`, or `;` and what is like it."""
    commands: list[Command]
    is_negated: bool = False
    is_background: bool = False


@dataclass(slots=True)
class Sequence:
    """Pipelines one after the other."""

    pipelines: list[Pipeline] = field(default_factory=list[Pipeline])


@dataclass(frozen=True, slots=True)
class CommandLine:
    """What stands in a command line."""

    sequence: Sequence
    doubts: tuple[str, ...]
    """Why it may mean something else, or does more than its commands; clauses."""


def divide(text: str) -> CommandLine:
    """Return what stands in `text`; whatever it is, in time that is linear in its length."""
    reader = _Reader(text, len(text))
    if _JOINED.search(text):
        reader.doubt()  # lines are joined before `$(` and `&&` are looked for
    sequence = Sequence()
    try:
        reader.sequence(_NONE, sequence)
    except _TooDeepError:
        reader.doubts[DEEP] = None
    if reader.pending:
        reader.doubts[UNSURE] = None
    return CommandLine(sequence, tuple(reader.doubts))


@dataclass(frozen=True, slots=True)
class _Document:
    """A here-document whose body is still to come."""

    redirect: Redirect
    delimiter: str
    is_quoted: bool
    strips: bool
    inner: list[Sequence]


class _TooDeepError(Exception):
    """Nobody writes so many parentheses for a good reason."""


_NONE: frozenset[str] = frozenset()
_BLANKS = re.compile(r"(?:[ \t]+|\\\n)*(?:#[^\n]*)?")
_JOINED = re.compile(r"[^ \t\n]\\\n")
_SPACES = re.compile(r"(?:[ \t\n]+|\\\n|#[^\n]*)*")
_SEPARATOR = re.compile(r"&&|\|\||;;&|;&|;;|;|\n|\|&|\||&(?!>)")
_RESERVED = re.compile(
    r"(?:if|then|elif|else|fi|while|until|for|select|case|esac|do|done|function|coproc|time"
    r"|\{|\}|!|\[\[)(?=[ \t\n;&|()<>]|\\\n|$)"
)
_REDIRECT = re.compile(r"(\d*|\{\w+\})(<<<|<<-|<<|<>|<&|<(?!\()|&>>|&>|>&|>>|>\||>(?!\())")
_RUN = re.compile(
    r"""(?:[^ \t\n;&|()<>'"\\$`]+ | \\[\s\S] | '[^']*' | "(?:[^"\\$`]+|\\[\s\S])*"
    | \$'(?:[^'\\]|\\[\s\S])*' | \$(?:\w|[?\#@*!$-]|\{\w+\}) )+""",
    re.VERBOSE,
)
"""What is within a word and has nothing to run in it."""
_QUOTED_RUN = re.compile(
    r"""(?: [^"\\$`]+ | \\[\s\S] | \$(?:\w|[?\#@*!$-]|\{\w+\}) | \$(?![({\[]) )+""", re.VERBOSE
)
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*(?:\[[^\]\s]*\])?\+?=")
_EMPTY_PARENTHESES = re.compile(r"\([ \t]*\)")
_PLAIN_ARITHMETIC = re.compile(r"\(\([\d \t+*/%-]*\)\)")
_BACKTICKS = re.compile(r"((?:[^`\\]|\\[\s\S])*)`")
_IN_DOCUMENT = re.compile(r"\\[\s\S]|\$[({\[]|`")
_CLOSES: dict[str, frozenset[str]] = {
    "then": frozenset({"then"}),
    "fi": frozenset({"fi", "elif", "else"}),
    "do": frozenset({"do"}),
    "done": frozenset({"done"}),
    "}": frozenset({"}"}),
    ")": frozenset({")"}),
    "item": frozenset({";;", "esac"}),
}


class _Reader:
    def __init__(self, text: str, end: int, position: int = 0) -> None:
        self.text = text
        self.end = end
        self.position: int = position
        self.depth = 0
        self.doubts: dict[str, None] = {}
        self.pending: list[_Document] = []

    def doubt(self, why: str = UNSURE) -> None:
        self.doubts[why] = None

    def peek(self) -> str:
        return self.text[self.position] if self.position < self.end else ""

    def blanks(self) -> str:
        """Go on to the next token of the line and return its first character."""
        found = _BLANKS.match(self.text, self.position, self.end)
        self.position = found.end() if found else self.position
        return self.peek()

    # Sequences

    def sequence(
        self, closers: frozenset[str], into: Sequence | None = None
    ) -> tuple[Sequence, str]:
        """Read as far as one of `closers`; return that and which, `""` at the end."""
        sequence = into if into is not None else Sequence()
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise _TooDeepError
        closer = self._pipelines(sequence, closers)
        self.depth -= 1
        if not closer and closers:
            self.doubt()
        return sequence, closer

    def _pipelines(self, sequence: Sequence, closers: frozenset[str]) -> str:
        pipeline = Pipeline(";", [])
        sequence.pipelines.append(pipeline)
        while self.blanks():
            if found := _SEPARATOR.match(self.text, self.position, self.end):
                self.position = found.end()
                separator = found.group()
                if separator == "\n":
                    self._documents()
                if separator in ("|", "|&"):
                    continue
                if separator in (";;", ";&", ";;&"):
                    if ";;" in closers:
                        return ";;"
                    self.doubt()
                if separator == "&":
                    pipeline.is_background = True
                    self.doubt(BACKGROUND)
                if pipeline.commands:
                    after = separator if separator in ("&&", "||") else ";"
                    pipeline = Pipeline(after, [])
                    sequence.pipelines.append(pipeline)
            elif closer := self._closer(closers):
                return closer
            else:
                before = self.position
                command = self._command()
                if command is not None:
                    pipeline.commands.append(command)
                elif self.text[before] == "!":
                    pipeline.is_negated = not pipeline.is_negated
                elif self.position == before:
                    self.doubt()
                    self.position += 1
        return ""

    def _closer(self, closers: frozenset[str]) -> str:
        if self.peek() == ")":
            self.position += 1
            if ")" in closers:
                return ")"
            self.doubt()
            return ""
        found = _RESERVED.match(self.text, self.position, self.end)
        if found and found.group() in closers:
            self.position = found.end()
            return found.group()
        return ""

    # Commands

    def _command(self) -> Command | None:
        if self.peek() == "(":
            return self._parenthesis()
        found = _RESERVED.match(self.text, self.position, self.end)
        if not found:
            return self._simple()
        start, word = self.position, found.group()
        self.position = found.end()
        match word:
            case "{":
                return self._ended(Compound("group", lists=[self.sequence(_CLOSES["}"])[0]]))
            case "if":
                return self._if()
            case "while" | "until":
                lists = [self.sequence(_CLOSES["do"])[0], self.sequence(_CLOSES["done"])[0]]
                return self._ended(Compound("loop", lists=lists))
            case "for" | "select":
                return self._for()
            case "case":
                return self._case()
            case "[[":
                self.position = start
                return self._condition()
            case "function":
                return self._named_function()
            case "time":
                return self._timed(start)
            case "coproc":
                return self._coprocess()
            case "!":
                self.blanks()
                return None
            case _:
                self.doubt()
                return None

    def _parenthesis(self) -> Command:
        if self.text.startswith("((", self.position):
            start = self.position
            self.doubt()
            compound = Compound("arithmetic")
            if self._arithmetic(compound.inner):
                return self._ended(compound)
            self.position = start
        self.position += 1
        return self._ended(Compound("subshell", lists=[self.sequence(_CLOSES[")"])[0]]))

    def _if(self) -> Command:
        compound = Compound("branch")
        closer = "if"
        while closer and closer != "fi":
            if closer != "else":
                compound.lists.append(self.sequence(_CLOSES["then"])[0])
            body, closer = self.sequence(_CLOSES["fi"])
            compound.lists.append(body)
        return self._ended(compound)

    def _for(self) -> Command:
        compound = Compound("loop")
        self.doubt(VARIABLES)
        self._spaces()
        if self.text.startswith("((", self.position):
            self.doubt()
            if not self._arithmetic(compound.inner):
                self.position += 2
        else:
            self._loop_words(compound)
        if self._reserved("{"):
            compound.lists.append(self.sequence(_CLOSES["}"])[0])
            return self._ended(compound)
        head, _ = self.sequence(_CLOSES["do"])
        body, _ = self.sequence(_CLOSES["done"])
        compound.lists += [head, body]
        return self._ended(compound)

    def _loop_words(self, compound: Compound) -> None:
        while (first := self.blanks()) and first not in ";\n)|&":
            if _RESERVED.match(self.text, self.position) and self.text.startswith(
                ("do", "{"), self.position
            ):
                return
            before = self.position
            self._word(compound.inner)
            if self.position == before:
                self.doubt()
                self.position += 1
        if self.peek() == ";":
            self.position += 1
        self._spaces()

    def _case(self) -> Command:
        compound = Compound("branch")
        self.doubt()  # which patterns match is the shell's to know
        self._spaces()
        self._word(compound.inner)
        self._spaces()
        if self.text.startswith("in", self.position):
            self.position += 2
        while self.position < self.end:
            self._spaces()
            if self._reserved("esac"):
                break
            self._patterns(compound)
            body, closer = self.sequence(_CLOSES["item"])
            compound.lists.append(body)
            if closer != ";;":
                break
        return self._ended(compound)

    def _patterns(self, compound: Compound) -> None:
        if self.peek() == "(":
            self.position += 1
        while (first := self.blanks()) and first not in ")\n;&":
            before = self.position
            if first == "|":
                self.position += 1
            else:
                self._word(compound.inner)
            if self.position == before:
                self.position += 1
        if self.peek() == ")":
            self.position += 1

    def _condition(self) -> Command:
        """Read `[[ … ]]` as the words that it has."""
        simple = Simple("", [], [], [], [], [])
        start = self.position
        while True:
            self._spaces()
            before = self.position
            if not self._word(simple.inner):
                if not (first := self.peek()):
                    self.doubt()
                    break
                if first in "()<>;":
                    self.doubt()
                self.position += 1
                continue
            source = self.text[before : self.position]
            if source == "=~":
                self.doubt()
            simple.words.append(source)
            simple.spans.append((before, self.position))
            if source == "]]":
                break
        self._redirections(simple)
        simple.text = self.text[start : self.position]
        return simple

    def _named_function(self) -> Command | None:
        self.blanks()
        self._word([])
        self.blanks()
        return self._function()

    def _function(self) -> Command:
        """Read the body of a function, its name and parentheses before it."""
        self.doubt(FUNCTION)
        if found := _EMPTY_PARENTHESES.match(self.text, self.position, self.end):
            self.position = found.end()
        self._spaces()
        compound = Compound("function")
        body = self._command() if self.peek() else None
        if body is not None:
            compound.lists.append(Sequence([Pipeline(";", [body])]))
        return compound

    def _timed(self, start: int) -> Command | None:
        """Read what follows `time`, or that as a program if it has options of one."""
        first = self.blanks()
        while found := re.compile(r"-(?:p|-)(?=[ \t\n]|$)").match(self.text, self.position):
            self.position = found.end()
            first = self.blanks()
        if first == "-":
            self.position = start
            return self._simple()
        if first == "(" or _RESERVED.match(self.text, self.position, self.end):
            self.doubt()
        return None

    def _coprocess(self) -> Command | None:
        self.doubt(BACKGROUND)
        self.doubt()
        self.blanks()
        found = re.compile(r"\w+[ \t]+(?=\(|\{[ \t\n]|if |while |until |for |case )").match(
            self.text, self.position, self.end
        )
        if found:
            self.position = found.end()
        return None

    def _ended(self, compound: Compound) -> Compound:
        """Read the redirections after `compound`."""
        self.blanks()
        start = self.position
        self._redirections(compound)
        compound.text = self.text[start : self.position].rstrip(" \t")
        if self.blanks() and self.peek() not in "\n;&|)":
            self._closer_or_doubt()
        return compound

    def _closer_or_doubt(self) -> None:
        # `fi fi` and `} }` are fine, a word is not.
        if not _RESERVED.match(self.text, self.position, self.end):
            self.doubt()

    def _redirections(self, command: Command) -> None:
        while self.blanks() and (found := _REDIRECT.match(self.text, self.position, self.end)):
            self._redirect(found, command)

    def _simple(self) -> Command | None:
        simple = Simple("", [], [], [], [], [])
        start = last = self.position
        while (first := self.blanks()) and first not in "\n;|)":
            if found := _REDIRECT.match(self.text, self.position, self.end):
                self._redirect(found, simple)
            elif first == "&":
                break
            elif first == "(":
                if len(simple.words) == 1 and _EMPTY_PARENTHESES.match(self.text, self.position):
                    return self._function()
                self.doubt()
                break
            elif not self._argument(simple):
                break
            last = self.position
        simple.text = self.text[start:last]
        if last == start:
            return None
        return simple

    def _argument(self, simple: Simple) -> bool:
        start = self.position
        if not self._word(simple.inner):
            return False
        source = self.text[start : self.position]
        if source.endswith("=") and self.peek() == "(":
            self._array(simple)
            source = self.text[start : self.position]
        if not simple.words and _ASSIGNMENT.match(source):
            simple.assignments.append(source)
        else:
            simple.words.append(source)
            simple.spans.append((start, self.position))
        return True

    def _array(self, simple: Simple) -> None:
        self.doubt(VARIABLES)
        self.position += 1
        while True:
            self._spaces()
            first = self.peek()
            if first in (")", ""):
                self.position += len(first)
                return
            before = self.position
            self._word(simple.inner)
            if self.position == before:
                self.doubt()
                self.position += 1

    def _redirect(self, found: re.Match[str], command: Command) -> None:
        self.position = found.end()
        if found[1].startswith("{"):
            self.doubt()
        self.blanks()
        start = self.position
        if not self._word(command.inner):
            self.doubt()
        target = self.text[start : self.position]
        span = (start, self.position)
        redirect = Redirect(found[2], target, span)
        command.redirects.append(redirect)
        if found[2] in ("<<", "<<-"):
            is_quoted = any(sign in target for sign in "\\'\"")
            delimiter = re.sub(r"\\(.)|['\"]", r"\1", target)
            if "$" in target or "`" in target or "\n" in target:
                self.doubt()
            strips = found[2] == "<<-"
            self.pending.append(_Document(redirect, delimiter, is_quoted, strips, command.inner))

    # Here-documents

    def _documents(self) -> None:
        """Read the bodies of the here-documents that the last line has announced."""
        pending, self.pending = self.pending, []
        for document in pending:
            start = self.position
            body = self._document(document)
            if document.is_quoted or not ("$" in body or "`" in body or "\\" in body):
                document.redirect.body = body
            else:
                self._expansions(start, self.position, document.inner)

    def _document(self, document: _Document) -> str:
        lines: list[str] = []
        while self.position < self.end:
            line = self._line()
            while not document.is_quoted and _is_continued(line) and self.position < self.end:
                self.doubt()
                line += "\n" + self._line()
            line = line.lstrip("\t") if document.strips else line
            if line == document.delimiter:
                break
            lines.append(line + "\n")
        else:
            self.doubt()
        return "".join(lines)

    def _line(self) -> str:
        end = self.text.find("\n", self.position, self.end)
        end = self.end if end < 0 else end
        line = self.text[self.position : end]
        self.position = min(end + 1, self.end)
        return line

    def _expansions(self, start: int, end: int, inner: list[Sequence]) -> None:
        """Read what a here-document runs."""
        after, outer, self.end, self.position = self.position, self.end, end, start
        while found := _IN_DOCUMENT.search(self.text, self.position, end):
            self.position = found.start()
            if found.group().startswith("\\"):
                self.position = found.end()
            else:
                self._expansion(inner)
        self.position, self.end = after, outer

    # Words

    def _word(self, inner: list[Sequence]) -> bool:
        """Go to the end of the word that starts here; return whether there is one."""
        start = self.position
        text = self.text
        while self.position < self.end:
            if found := _RUN.match(text, self.position, self.end):
                self.position = found.end()
                if self.position >= self.end:
                    break
            sign = text[self.position]
            if sign in ("$", "`"):
                self._expansion(inner)
            elif sign == '"':
                self._double_quoted(inner)
            elif sign in "<>" and text.startswith("(", self.position + 1):
                self._expansion(inner)
            elif sign in "'\\":
                self.doubt()
                self.position = self.end
            else:
                break
        return self.position > start

    def _double_quoted(self, inner: list[Sequence]) -> None:
        self.position += 1
        while self.position < self.end:
            if found := _QUOTED_RUN.match(self.text, self.position, self.end):
                self.position = found.end()
                continue
            if self.text[self.position] == '"':
                self.position += 1
                return
            if self.text[self.position] == "\\":
                self.position += 1
                continue
            self._expansion(inner)
        self.doubt()

    def _expansion(self, inner: list[Sequence]) -> None:
        """Read what begins with `$`, a backtick, `<(` or `>(`."""
        text, start = self.text, self.position
        if text[start] == "`":
            self._backticks(inner)
        elif text.startswith("$((", start):
            self._calculation(inner)
        elif text.startswith("(", start + 1):
            self.position += 2
            inner.append(self.sequence(_CLOSES[")"])[0])
        elif text.startswith("${", start):
            self.doubt()
            self.position += 2
            self._until("}", inner)
        elif text.startswith("$[", start):
            self.doubt()
            self.position += 2
            self._until("]", inner)
        else:
            self.position += 1  # a `$` that means itself, or before a string in double quotes
            if text.startswith('"', self.position):
                self.doubt()

    def _calculation(self, inner: list[Sequence]) -> None:
        """Read `$((…))`, or a substitution that begins with a subshell."""
        start = self.position
        if found := _PLAIN_ARITHMETIC.match(self.text, start + 1, self.end):
            self.position = found.end()
            return
        self.doubt()
        self.position += 1
        if not self._arithmetic(inner):
            self.position = start + 2
            inner.append(self.sequence(_CLOSES[")"])[0])

    def _arithmetic(self, inner: list[Sequence]) -> bool:
        """Go past `((…))`; return whether it is that."""
        start, found = self.position, list[Sequence]()
        self.position += 2
        if self._until(")", found) and self.peek() == ")":
            self.position += 1
            inner.extend(found)
            return True
        self.position = start
        return False

    def _until(self, closer: str, inner: list[Sequence]) -> bool:
        """Go past `closer`, which is not in quotes; return whether it is there."""
        level = 0
        opener = {")": "(", "]": "["}.get(closer, "")
        while sign := self.peek():
            if sign == closer and not level:
                self.position += 1
                return True
            if sign == closer:
                level -= 1
            elif sign == opener:
                level += 1
            if sign in "$`" or (sign in "<>" and self.text.startswith("(", self.position + 1)):
                self._nested(inner)
            elif sign == '"':
                self._double_quoted(inner)
            elif found := re.compile(r"\\[\s\S]|'[^']*'").match(self.text, self.position, self.end):
                self.position = found.end()
            else:
                self.position += 1
        self.doubt()
        return False

    def _nested(self, inner: list[Sequence]) -> None:
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise _TooDeepError
        self._expansion(inner)
        self.depth -= 1

    def _backticks(self, inner: list[Sequence]) -> None:
        start = self.position + 1
        found = _BACKTICKS.match(self.text, start, self.end)
        if found is None:
            self.doubt()
            self.position = start
            inner.append(self.sequence(_NONE)[0])
            return
        inside = found[1]
        if "\\" in inside:
            self.doubt()
            reader = _Reader(re.sub(r"\\([$`\\])", r"\1", inside), 0)
            reader.end = len(reader.text)
            reader.depth, reader.doubts = self.depth, self.doubts
            inner.append(reader.sequence(_NONE)[0])
        else:
            outer, self.end = self.end, found.end() - 1
            self.position = start
            inner.append(self.sequence(_NONE)[0])
            self.end = outer
        self.position = found.end()

    def _spaces(self) -> None:
        found = _SPACES.match(self.text, self.position, self.end)
        self.position = found.end() if found else self.position

    def _reserved(self, word: str) -> bool:
        found = _RESERVED.match(self.text, self.position, self.end)
        if not found or found.group() != word:
            return False
        self.position = found.end()
        return True


def _is_continued(line: str) -> bool:
    return (len(line) - len(line.rstrip("\\"))) % 2 == 1
