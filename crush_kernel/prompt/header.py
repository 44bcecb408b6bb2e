"""The YAML header of a Markdown file, which says what the file is for.

Values are taken as they are written: `name: on` names something "on", whatever YAML makes of it
elsewhere.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final, cast

MAX_HEADER_BYTES = 16_384
MAX_DEPTH = 10

NAME: Final = re.compile(r"[A-Za-z0-9]+(-[A-Za-z0-9]+)*")
"""What names of skills and agents are made of."""

_FENCE = re.compile(r"^---[ \t]*$", re.MULTILINE)
_LINE = re.compile(r"([A-Za-z][A-Za-z0-9_-]*):[ \t]+(\S.*)")


@dataclass(frozen=True, slots=True)
class Headed:
    """A text in its two parts."""

    header: Mapping[str, object]
    """Texts, lists and mappings of these."""
    body: str
    """Without blank lines around it."""


def split_header(text: str, *, is_lenient: bool = False) -> Headed | str:
    r"""Return the parts of `text`, or what is wrong with its header.

    Args:
        text: of a file, with `\n` for line ends.
        is_lenient: take a header that is no YAML, but nothing except lines of the form
            `name: some text`, as it reads.
    """
    opening = _FENCE.match(text.lstrip("\n"))
    if opening is None:
        return "it does not begin with a line of three hyphens"
    rest = text.lstrip("\n")[opening.end() :]
    closing = _FENCE.search(rest)
    if closing is None:
        return "its header is not ended by a line of three hyphens"
    source = rest[: closing.start()]
    header = _header(source)
    if isinstance(header, _Unusable) and header.is_readable and is_lenient:
        header = _by_lines(source) or header
    if isinstance(header, _Unusable):
        return header.fault
    return Headed(header, rest[closing.end() :].strip())


def header_text(
    header: Mapping[str, object],
    name: str,
    max_bytes: int,
    faults: list[str],
    *,
    is_required: bool = False,
) -> str:
    """Return the text under `name`, empty if there is none; add to `faults` what is wrong."""
    value = header.get(name, "")
    if not isinstance(value, str):
        faults.append(f"{name} is no text")
        return ""
    if is_required and not value.strip():
        faults.append(f"{name} is missing")
    size = len(value.encode("utf-8", "surrogatepass"))
    if size > max_bytes:
        faults.append(f"{name} has {size:,} bytes; at most {max_bytes:,} are possible")
    return value.strip()


def on_one_line(text: str) -> str:
    """Return `text` with one blank for each run of them."""
    return " ".join(text.split())


@dataclass(frozen=True, slots=True)
class _Unusable:
    """What is no header that can be used."""

    fault: str
    is_readable: bool = False
    """Whether it is at fault only by the letter of YAML."""


def _header(text: str) -> Mapping[str, object] | _Unusable:
    """Return the values of a header, or what is wrong with it."""
    import yaml  # noqa: PLC0415 - 10 ms, for those who have such files

    if len(text.encode("utf-8", "surrogatepass")) > MAX_HEADER_BYTES:
        return _Unusable(f"its header is longer than {MAX_HEADER_BYTES // 1024} KiB")
    try:
        # Token by token, since a parser takes seconds for what is nested a thousand deep.
        tokens = cast("Iterable[object]", yaml.scan(text))  # pyright: ignore[reportUnknownMemberType] - its stubs say nothing
        if fault := _fault_in(type(token).__name__ for token in tokens):
            return _Unusable(fault)
        # The loader that makes texts, lists and mappings and nothing else: it runs nothing,
        # and no value can be of a kind that it cannot be made into.
        value: object = yaml.load(text, Loader=yaml.BaseLoader)  # noqa: S506 - see above
    except yaml.YAMLError as error:
        said = str(error).replace('in "<unicode string>", ', "at ")
        return _Unusable(f"its header is not YAML: {on_one_line(said)[:200]}", is_readable=True)
    except (RecursionError, ValueError, TypeError):
        return _Unusable("its header is not YAML that can be read")
    if not isinstance(value, dict):
        return _Unusable("its header is no list of names and values")
    return {str(name): item for name, item in cast("dict[object, object]", value).items()}


def _by_lines(text: str) -> dict[str, object] | None:
    """Return what each line says, `None` if a line might be part of something else."""
    found = [_LINE.fullmatch(line) for line in text.split("\n") if line.strip()]
    return {each[1]: each[2].strip() for each in found if each} if all(found) else None


def _fault_in(kinds: Iterable[str]) -> str:
    """Return what forbids to read on, given the kinds of its tokens; empty if nothing does."""
    depth = 0
    for kind in kinds:
        # A few lines with aliases can stand for gigabytes, and no header needs them.
        if kind == "AliasToken":
            return "its header has YAML aliases, which are not allowed"
        if kind.endswith("StartToken"):
            depth += 1
        elif kind.endswith("EndToken"):
            depth -= 1
        if depth > MAX_DEPTH:
            return f"its header is nested more than {MAX_DEPTH} deep"
    return ""
