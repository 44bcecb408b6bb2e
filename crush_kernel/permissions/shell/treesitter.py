"""How tree-sitter divides a command line: a second opinion, by a reader of another make.

Neither reader is bash. What both divide in the same way, and only that, may count as harmless.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from crush_kernel.permissions.shell.syntaxtree import Span

if TYPE_CHECKING:
    from tree_sitter import Node, Parser  # loaded when the first command line is read

_WORDS = frozenset(
    {
        "word", "number", "string", "raw_string", "ansi_c_string", "translated_string",
        "concatenation", "simple_expansion", "expansion", "command_substitution",
        "process_substitution", "arithmetic_expansion", "brace_expression", "variable_name",
        "command_name", "regex", "extglob_pattern", "test_operator", "special_variable_name",
    }
)  # fmt: skip

_KNOWN = _WORDS | frozenset(
    {
        "program", "list", "pipeline", "command", "redirected_statement", "file_redirect",
        "file_descriptor", "herestring_redirect", "heredoc_redirect", "heredoc_start",
        "heredoc_body", "heredoc_end", "heredoc_content", "negated_command", "subshell",
        "compound_statement", "if_statement", "elif_clause", "else_clause", "while_statement",
        "do_group", "test_command", "comment", "string_content", "variable_assignment",
        "variable_assignments", "unary_expression", "binary_expression",
    }
)  # fmt: skip
"""What a command line that counts as harmless may be made of."""

_COMMENT = re.compile(r"^[ \t]*#[^\n]*", re.MULTILINE)
"""A line that is a comment: after a pipeline, tree-sitter takes what follows it for arguments."""
_OTHER = re.compile(r"[^\x00-\x7f]")
_COMMANDS = frozenset({"command", "test_command", "declaration_command", "unset_command"})
_NO_WORDS = frozenset({"variable_assignment", "file_redirect", "herestring_redirect", "comment"})


@dataclass(frozen=True, slots=True)
class Outline:
    """Where the commands of a command line are."""

    is_sound: bool
    """Whether it could be read without errors, and is made of nothing but well-known parts."""
    commands: frozenset[tuple[Span, ...]]
    """The words of each."""
    redirects: frozenset[Span]
    """The files that redirections name."""


def outline(text: str, line_ends: Iterable[int] = ()) -> Outline:
    """Return where tree-sitter finds commands in `text`.

    Args:
        text: the command line.
        line_ends: where a line ends a command: tree-sitter sometimes takes the next line for more
            arguments, so it gets a semicolon there.
    """
    signs = list(_COMMENT.sub(_blank, text))
    for position in line_ends:
        if "#" not in text[text.rfind("\n", 0, position) + 1 : position]:
            signs[position] = ";"
    # One byte a character, so that places are the same; a letter is as good as another.
    tree = _parser().parse(_OTHER.sub("x", "".join(signs)).encode())
    commands: list[tuple[Span, ...]] = []
    redirects: list[Span] = []
    is_sound = not tree.root_node.has_error
    waiting = [(tree.root_node.type, tree.root_node)]
    while waiting:
        kind, node = waiting.pop()
        children = [(child.type, child) for child in node.children]
        if kind in _COMMANDS:
            spans = _merged(_tokens(node.children) if kind == "test_command" else _spans(children))
            if words := _timed(text, spans):
                commands.append(words)
        elif kind in ("file_redirect", "herestring_redirect"):
            targets = [child for name, child in children if name in _WORDS]
            redirects += _merged([(child.start_byte, child.end_byte) for child in targets])
        for each in children:
            if each[0] not in _KNOWN and each[1].is_named:
                is_sound = False
            if each[1].child_count:
                waiting.append(each)
    return Outline(is_sound, frozenset(commands), frozenset(redirects))


@cache
def _parser() -> "Parser":
    # Here, since it costs a kernel that runs no commands nothing then.
    import tree_sitter_bash  # noqa: PLC0415
    from tree_sitter import Language, Parser  # noqa: PLC0415

    return Parser(Language(tree_sitter_bash.language()))


def _blank(found: re.Match[str]) -> str:
    return " " * len(found.group())


def _spans(nodes: "list[tuple[str, Node]]") -> list[Span]:
    return [(node.start_byte, node.end_byte) for kind, node in nodes if kind not in _NO_WORDS]


def _tokens(nodes: "list[Node]") -> Iterator[Span]:
    """Return the words of `[ … ]` and `[[ … ]]`, which tree-sitter reads as expressions."""
    waiting = nodes[::-1]
    while waiting:
        node = waiting.pop()
        if node.type in _WORDS or not node.child_count:
            if node.type not in ("&&", "||"):
                yield node.start_byte, node.end_byte
        else:
            waiting += reversed(node.children)


def _merged(spans: Iterable[Span]) -> tuple[Span, ...]:
    """Return `spans`, those that touch as one: only blanks divide words."""
    merged: list[Span] = []
    for start, end in spans:
        if merged and merged[-1][1] == start:
            merged[-1] = (merged[-1][0], end)
        elif end > start:
            merged.append((start, end))
    return tuple(merged)


def _timed(text: str, spans: tuple[Span, ...]) -> tuple[Span, ...]:
    """Return `spans` without `time`, a word of the shell that tree-sitter takes for a command."""
    if not spans or text[slice(*spans[0])] != "time":
        return spans
    words = [text[start:end] for start, end in spans[:3]]
    count = 1
    while words[count : count + 1] in (["-p"], ["--"]):
        count += 1
    following = words[count : count + 1]
    return spans if following and following[0].startswith("-") else spans[count:]
