"""`SKILL.md`: a YAML header that says what the skill is for, and the text that says how.

All that is wrong with a header is told at once. Values are taken as they are written: `name: on`
names a skill "on", whatever YAML makes of it elsewhere.

Source: Crush, skills; the Agent Skills format.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final, cast

from crush_kernel.prompt.delimited import delimited

FILE_NAME: Final = "SKILL.md"

MAX_HEADER_BYTES = 16_384
MAX_DEPTH = 10
MAX_NAME_BYTES = 64
MAX_DESCRIPTION_BYTES = 1_024
MAX_COMPATIBILITY_BYTES = 500

_NAME = re.compile(r"[A-Za-z0-9]+(-[A-Za-z0-9]+)*")
_FENCE = re.compile(r"^---[ \t]*$", re.MULTILINE)
_BOOLEANS: Final = {
    "true": True,
    "yes": True,
    "on": True,
    "false": False,
    "no": False,
    "off": False,
}
_INVOKED = re.compile(r'<skill name="([A-Za-z0-9-]+)" location="[^"\n]*" mark="')


@dataclass(frozen=True, slots=True)
class SkillText:
    """What a `SKILL.md` says."""

    name: str
    description: str
    """On one line."""
    body: str
    is_user_invocable: bool = False
    """Whether people call it as `/name`."""
    is_model_invocable: bool = True
    """Whether the model sees it in its list."""


def parse_skill(text: str, *, folder: str) -> SkillText | tuple[str, ...]:
    r"""Return what `text` says, or all that is wrong with it.

    Args:
        text: of a `SKILL.md`, with `\n` for line ends.
        folder: the name of the folder it is in, which is the skill's name too.
    """
    opening = _FENCE.match(text.lstrip("\n"))
    if opening is None:
        return ("it does not begin with a line of three hyphens",)
    rest = text.lstrip("\n")[opening.end() :]
    closing = _FENCE.search(rest)
    if closing is None:
        return ("its header is not ended by a line of three hyphens",)
    header = _header(rest[: closing.start()])
    if isinstance(header, str):
        return (header,)
    return _checked(header, rest[closing.end() :].strip(), folder)


def invocation(skill: SkillText, *, location: str, arguments: str) -> str:
    """Return the prompt that a call by the user stands for."""
    text = delimited("skill", skill.body, {"name": skill.name, "location": location})
    ask = f"Use the skill {skill.name} above"
    return f"{text}\n\n{ask} on this: {arguments}" if arguments else f"{text}\n\n{ask}."


def invoked_skill(prompt: str) -> str:
    """Return the name of the skill that `prompt` is a call of; empty if it is none."""
    match = _INVOKED.match(prompt)
    return match[1] if match else ""


def _header(text: str) -> Mapping[str, object] | str:
    """Return the values of a header, or what is wrong with it."""
    import yaml  # noqa: PLC0415 - 10 ms, for those who have skills

    if len(text.encode("utf-8", "surrogatepass")) > MAX_HEADER_BYTES:
        return f"its header is longer than {MAX_HEADER_BYTES // 1024} KiB"
    try:
        # Token by token, since a parser takes seconds for what is nested a thousand deep.
        tokens = cast("Iterable[object]", yaml.scan(text))  # pyright: ignore[reportUnknownMemberType] - its stubs say nothing
        if fault := _fault_in(type(token).__name__ for token in tokens):
            return fault
        # The loader that makes texts, lists and mappings and nothing else: it runs nothing,
        # and no value can be of a kind that it cannot be made into.
        value: object = yaml.load(text, Loader=yaml.BaseLoader)  # noqa: S506 - see above
    except yaml.YAMLError as error:
        said = str(error).replace('in "<unicode string>", ', "at ")
        return f"its header is not YAML: {_on_one_line(said)[:200]}"
    except (RecursionError, ValueError, TypeError):
        return "its header is not YAML that can be read"
    if not isinstance(value, dict):
        return "its header is no list of names and values"
    return {str(name): item for name, item in cast("dict[object, object]", value).items()}


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


def _checked(header: Mapping[str, object], body: str, folder: str) -> SkillText | tuple[str, ...]:
    faults: list[str] = []
    name = _text(header, "name", MAX_NAME_BYTES, faults, is_required=True)
    if name and not _NAME.fullmatch(name):
        faults.append(f"name is not made of letters, digits and single hyphens: {name[:80]!a}")
    elif name and name.lower() != folder.lower():
        faults.append(f"name is {name}, but its folder is called {folder[:80]!a}")
    description = _text(header, "description", MAX_DESCRIPTION_BYTES, faults, is_required=True)
    _text(header, "compatibility", MAX_COMPATIBILITY_BYTES, faults)
    _check_metadata(header.get("metadata"), faults)
    is_user_invocable = _flag(header, "user-invocable", faults)
    is_hidden = _flag(header, "disable-model-invocation", faults)
    if faults:
        return tuple(faults)
    return SkillText(
        name=name,
        description=_on_one_line(description),
        body=body,
        is_user_invocable=is_user_invocable,
        is_model_invocable=not is_hidden,
    )


def _text(
    header: Mapping[str, object],
    name: str,
    max_bytes: int,
    faults: list[str],
    *,
    is_required: bool = False,
) -> str:
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


def _flag(header: Mapping[str, object], name: str, faults: list[str]) -> bool:
    value = header.get(name, "false")
    if isinstance(value, str) and value.lower() in _BOOLEANS:
        return _BOOLEANS[value.lower()]
    faults.append(f"{name} is neither true nor false: {str(value)[:80]!a}")
    return False


def _check_metadata(value: object, faults: list[str]) -> None:
    items = cast("dict[object, object]", value).values() if isinstance(value, dict) else None
    if value not in (None, "") and (
        items is None or not all(isinstance(item, str) for item in items)
    ):
        faults.append("metadata is no list of names and texts")


def _on_one_line(text: str) -> str:
    return " ".join(text.split())
