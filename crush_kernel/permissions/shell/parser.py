"""Parses a command line into its commands and words, as bash does, and says where it is in doubt.

It never fails: a command line with errors is read as far as that goes, since bash runs it line by
line, up to the error.

It is our own, although `treesitter` has a grammar of bash, for three reasons. That one mends what
it does not understand without a word: after a comment it can take the next command for
arguments. It says where a command is, and not what is uncertain about it. And one reader alone,
of whatever make, is wrong somewhere: what two of them divide alike is what bash divides so.

Source: Bash Reference Manual, Shell Syntax; POSIX, Shell Command Language, Shell Grammar.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from itertools import dropwhile

from crush_kernel.permissions.shell.scanner import (
    NOTHING,
    PLAIN_WORD,
    SUBSTITUTION,
    Scanner,
    TooDeepError,
)
from crush_kernel.permissions.shell.syntaxtree import (
    BACKGROUND,
    DEEP,
    FUNCTION,
    VARIABLES,
    Command,
    CommandLine,
    Compound,
    Pipeline,
    Redirect,
    Sequence,
    Simple,
    Span,
)

_JOINED = re.compile(r"[^ \t\n]\\\n")
_SEPARATOR = re.compile(r"&&|\|\||;;&|;&|;;|;|\n|\|&|\||&(?!>)")
_RESERVED = re.compile(
    r"(?:if|then|elif|else|fi|while|until|for|select|case|esac|do|done|function|coproc|time"
    r"|\{|\}|!|\[\[)(?=[ \t\n;&|()<>]|\\\n|$)"
)
_REDIRECT = re.compile(
    r"(\d*|\{\w+\})(<<<|<<-|<<|<>|<&|<(?!\()|&>>|&>|>&|>>|>\||>(?!\())", re.ASCII
)
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*(?:\[[^\]\s]*\])?\+?=", re.ASCII)
_EMPTY_PARENTHESES = re.compile(r"\([ \t]*\)")
_TIME_OPTION = re.compile(r"-(?:p|-)(?=[ \t\n]|$)")
_COPROCESS_NAME = re.compile(r"\w+[ \t]+(?=\(|\{[ \t\n]|(?:if|while|until|for|case)[ \t\n])")
_IN = re.compile(r"in(?=[ \t\n]|$)")
_DELIMITER_QUOTES = re.compile(r"\\(.)|['\"]")

_THEN = frozenset({"then"})
_DO = frozenset({"do"})
_DONE = frozenset({"done"})
_END_OF_BRANCH = frozenset({"fi", "elif", "else"})
_END_OF_GROUP = frozenset({"}"})
_END_OF_ITEM = frozenset({";;", "esac"})

_FLAT = re.compile(r"[;&|\n(){}`\"'$<>]+")
_HEAD = frozenset({"if", "then", "elif", "else", "while", "until", "do", "!", "time", "coproc"})


def parse(text: str) -> CommandLine:
    """Return the syntax tree of `text`, whatever it is, in time that is linear in its length."""
    reader = _Reader(text)
    sequence = Sequence()
    if "\\\n" in text and _JOINED.search(text):
        reader.doubt()  # lines are joined before `$(` and `&&` are looked for
    try:
        reader.read_into(sequence, NOTHING)
    except TooDeepError:
        reader.doubt(DEEP)
        sequence.pipelines += _flat(text[reader.position :])
    if reader.pending:
        reader.doubt()
    return CommandLine(sequence, tuple(reader.doubts), tuple(reader.line_ends))


def _flat(text: str) -> list[Pipeline]:
    """Return what may be commands in `text`, without a look at how they are nested."""
    pipelines: list[Pipeline] = []
    for piece in _FLAT.split(text):
        words = piece.split()
        words = list(dropwhile(_HEAD.__contains__, words))
        if words:
            pipelines.append(Pipeline(commands=[Simple(" ".join(words), words)]))
    return pipelines


@dataclass(frozen=True, slots=True)
class _Document:
    """A here-document whose body is still to come."""

    redirect: Redirect
    delimiter: str
    is_quoted: bool
    strips: bool
    inner: list[Sequence]


class _Reader(Scanner):
    def __init__(self, text: str, *, depth: int = 0) -> None:
        super().__init__(text, depth=depth)
        self.pending: list[_Document] = []
        self.line_ends: list[int] = []
        self._compounds: dict[str, Callable[[], Command | None]] = {
            "{": self._group,
            "if": self._if,
            "while": self._while,
            "until": self._while,
            "for": self._for,
            "select": self._for,
            "case": self._case,
            "[[": self._condition,
            "function": self._named_function,
            "time": self._timed,
            "coproc": self._coprocess,
            "!": self._not,
        }

    def sub_reader(self, text: str) -> "_Reader":
        reader = _Reader(text, depth=self.depth)
        reader.doubts = self.doubts
        return reader

    # Sequences

    def sequence(self, closers: frozenset[str]) -> tuple[Sequence, str]:
        sequence = Sequence()
        return sequence, self.read_into(sequence, closers)

    def read_into(self, sequence: Sequence, closers: frozenset[str]) -> str:
        """Read commands as far as one of `closers`; return which, `""` at the end."""
        self.enter()
        pipeline = Pipeline()
        sequence.pipelines.append(pipeline)
        while first := self.blanks():
            if first in "&|;\n" and (found := self.take(_SEPARATOR)):
                separator = found.group()
                if separator.startswith(";") and len(separator) > 1:
                    if ";;" in closers:
                        return self._closed(";;")
                    self.doubt()
                pipeline = self._separated(sequence, pipeline, separator)
            elif (closers or first == ")") and (closer := self._closer(closers)):
                return self._closed(closer)
            else:
                self._read_command(pipeline)
        if closers:
            self.doubt()
        return self._closed("")

    def _closed(self, closer: str) -> str:
        self.leave()
        return closer

    def _separated(self, sequence: Sequence, pipeline: Pipeline, separator: str) -> Pipeline:
        """Return the pipeline that goes on after `separator`."""
        if separator == "\n":
            if pipeline.commands and not pipeline.is_open and not self.pending:
                self.line_ends.append(self.position - 1)
            self._documents()
            if pipeline.is_open:
                return pipeline
        if separator == "&":
            pipeline.is_background = True
            self.doubt(BACKGROUND)
        if separator in ("|", "|&"):
            pipeline.is_open = True
            return pipeline
        if not pipeline.commands:
            return pipeline
        following = Pipeline(separator if separator in ("&&", "||") else ";")
        sequence.pipelines.append(following)
        return following

    def _closer(self, closers: frozenset[str]) -> str:
        if self.at(")"):
            self.position += 1
            if ")" in closers:
                return ")"
            self.doubt()
            return ""
        found = self.match(_RESERVED)
        if found and found.group() in closers:
            self.position = found.end()
            return found.group()
        return ""

    def _read_command(self, pipeline: Pipeline) -> None:
        start = self.position
        command = self._command()
        if command is not None:
            pipeline.commands.append(command)
            pipeline.is_open = False
        elif self.text.startswith("!", start):
            pipeline.is_negated = not pipeline.is_negated
        elif self.position == start and start < self.end:
            self.doubt()
            self.position += 1

    # Commands

    def _command(self) -> Command | None:
        if self.at("("):
            return self._parenthesis()
        found = self.match(_RESERVED)
        if not found:
            return self._simple()
        self.position = found.end()
        read = self._compounds.get(found.group())
        if read is None:
            self.doubt()
            return None
        return read()

    def _parenthesis(self) -> Command:
        if self.at("(("):
            self.doubt()
            compound = Compound("arithmetic")
            if self.arithmetic(compound.inner):
                return self._ended(compound)
        self.position += 1
        return self._ended(Compound("subshell", [self.sequence(SUBSTITUTION)[0]]))

    def _group(self) -> Command:
        return self._ended(Compound("group", [self.sequence(_END_OF_GROUP)[0]]))

    def _if(self) -> Command:
        compound = Compound("branch")
        closer = "if"
        while closer and closer != "fi":
            if closer != "else":
                compound.lists.append(self.sequence(_THEN)[0])
            body, closer = self.sequence(_END_OF_BRANCH)
            compound.lists.append(body)
        return self._ended(compound)

    def _while(self) -> Command:
        return self._ended(Compound("loop", [self.sequence(_DO)[0], self.sequence(_DONE)[0]]))

    def _for(self) -> Command:
        compound = Compound("loop")
        self.doubt(VARIABLES)
        self.spaces()
        if self.at("(("):
            self.doubt()
            if not self.arithmetic(compound.inner):
                self.position += 2
        else:
            self._loop_words(compound)
        if self._reserved("{"):
            compound.lists.append(self.sequence(_END_OF_GROUP)[0])
        else:
            compound.lists += [self.sequence(_DO)[0], self.sequence(_DONE)[0]]
        return self._ended(compound)

    def _loop_words(self, compound: Compound) -> None:
        while (first := self.blanks()) and first not in ";\n)|&":
            found = self.match(_RESERVED)
            if found and found.group() in ("do", "{"):
                return
            self._word_or_more(compound.inner)
        if self.at(";"):
            self.position += 1
        self.spaces()

    def _word_or_more(self, inner: list[Sequence]) -> None:
        """Go past a word, or past a character that cannot begin one."""
        if not self.word(inner) and self.position < self.end:
            self.doubt()
            self.position += 1

    def _case(self) -> Command:
        compound = Compound("branch")
        self.doubt()  # where patterns end is too easy to get wrong
        self.spaces()
        self.word(compound.inner)
        self.spaces()
        self.take(_IN)
        while self.spaces() and not self._reserved("esac"):
            self._patterns(compound)
            body, closer = self.sequence(_END_OF_ITEM)
            compound.lists.append(body)
            if closer != ";;":
                break
        return self._ended(compound)

    def _patterns(self, compound: Compound) -> None:
        if self.at("("):
            self.position += 1
        while (first := self.blanks()) and first not in ")\n;&":
            if first == "|":
                self.position += 1
            else:
                self._word_or_more(compound.inner)
        if self.at(")"):
            self.position += 1

    def _condition(self) -> Command:
        """Read `[[ … ]]` as the words that it has."""
        simple = Simple()
        self.position -= len("[[")
        start = self.position
        while self.spaces():
            before = self.position
            if not self.word(simple.inner):
                if self.peek() in "()<>;":
                    self.doubt()
                self.position += 1
                continue
            source = self.text[before : self.position]
            simple.words.append(source)
            simple.spans.append((before, self.position))
            if source == "=~":
                self.doubt()
            if source == "]]":
                break
        else:
            self.doubt()
        last = self.position
        self._redirections(simple)
        simple.text = self.text[start : self.position if simple.redirects else last]
        return simple

    def _named_function(self) -> Command:
        self.blanks()
        self.word([])
        self.blanks()
        return self._function()

    def _function(self) -> Command:
        """Read the body of a function, whose name is behind us."""
        self.doubt(FUNCTION)
        self.take(_EMPTY_PARENTHESES)
        compound = Compound("function")
        self.enter()
        body = self._command() if self.spaces() else None
        self.leave()
        if body is not None:
            compound.lists.append(Sequence([Pipeline(commands=[body])]))
        return compound

    def _timed(self) -> Command | None:
        """Go past `time`, or read it as a program if it has options of one."""
        start = self.position - len("time")
        first = self.blanks()
        while self.take(_TIME_OPTION):
            first = self.blanks()
        if first == "-":
            self.position = start
            return self._simple()
        if first == "(" or self.match(_RESERVED):
            self.doubt()
        return None

    def _coprocess(self) -> None:
        self.doubt(BACKGROUND)
        self.doubt()
        self.blanks()
        self.take(_COPROCESS_NAME)

    def _not(self) -> None:
        self.blanks()

    def _reserved(self, word: str) -> bool:
        found = self.match(_RESERVED)
        if not found or found.group() != word:
            return False
        self.position = found.end()
        return True

    def _ended(self, compound: Compound) -> Compound:
        """Read the redirections after `compound`."""
        self.blanks()
        start = last = self.position
        while self.blanks() and (found := self.match(_REDIRECT)):
            self._redirect(found, compound)
            last = self.position
        compound.text = self.text[start:last]
        if (first := self.blanks()) and first not in "\n;&|)" and not self.match(_RESERVED):
            self.doubt()
        return compound

    # Simple commands

    def _simple(self) -> Command | None:
        simple = Simple()
        start = last = self.position
        while True:
            if self._plain_words(simple):
                last = self.position
            first = self.blanks()
            if not first or first in "\n;|)":
                break
            if found := self.match(_REDIRECT):
                self._redirect(found, simple)
            elif first == "(" and len(simple.words) == 1 and self.match(_EMPTY_PARENTHESES):
                return self._function()
            elif not self._argument(simple):
                if first == "(":
                    self.doubt()
                break
            last = self.position
        simple.text = self.text[start:last]
        return simple if last > start else None

    def _argument(self, simple: Simple) -> bool:
        start = self.position
        if not self.word(simple.inner):
            return False
        if self.at("(") and self.text[self.position - 1] == "=":
            self._array(simple)
        _keep(simple, self.text[start : self.position], (start, self.position))
        return True

    def _plain_words(self, simple: Simple) -> bool:
        """Go past words that run nothing; return whether there are any."""
        start = self.position
        while found := PLAIN_WORD.match(self.text, self.position, self.end):
            _keep(simple, found[1], found.span(1))
            self.position = found.end()
        return self.position > start

    def _array(self, simple: Simple) -> None:
        self.doubt(VARIABLES)
        self.position += 1
        while self.spaces() and not self.at(")"):
            self._word_or_more(simple.inner)
        self.position = min(self.position + 1, self.end)

    def _redirections(self, command: Command) -> None:
        while self.blanks() and (found := self.match(_REDIRECT)):
            self._redirect(found, command)

    def _redirect(self, found: re.Match[str], command: Command) -> None:
        self.position = found.end()
        if found[1].startswith("{"):
            self.doubt()  # it sets a variable
        self.blanks()
        start = self.position
        if not self.word(command.inner):
            self.doubt()
        target = self.text[start : self.position]
        redirect = Redirect(found[2], target, (start, self.position))
        command.redirects.append(redirect)
        if redirect.is_document:
            self._announce(redirect, command.inner)

    # Here-documents

    def _announce(self, redirect: Redirect, inner: list[Sequence]) -> None:
        target = redirect.target
        if any(sign in target for sign in "$`\n"):
            self.doubt()
        self.pending.append(
            _Document(
                redirect,
                delimiter=_DELIMITER_QUOTES.sub(r"\1", target),
                is_quoted=any(sign in target for sign in "\\'\""),
                strips=redirect.operator == "<<-",
                inner=inner,
            )
        )

    def _documents(self) -> None:
        """Read the bodies of the here-documents that the last line has announced."""
        pending, self.pending = self.pending, []
        for document in pending:
            start = self.position
            body = self._body(document)
            if document.is_quoted or not any(sign in body for sign in "$`\\"):
                document.redirect.body = body
            else:
                self.expansions(start, self.position, document.inner)

    def _body(self, document: _Document) -> str:
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


def _keep(simple: Simple, source: str, span: Span) -> None:
    if not simple.words and _ASSIGNMENT.match(source):
        simple.assignments.append(source)
    else:
        simple.words.append(source)
        simple.spans.append(span)


def _is_continued(line: str) -> bool:
    return (len(line) - len(line.rstrip("\\"))) % 2 == 1
