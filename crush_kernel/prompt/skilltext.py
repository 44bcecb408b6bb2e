"""`SKILL.md`: a YAML header that says what the skill is for, and the text that says how.

All that is wrong with a header is told at once.

Source: Crush, skills; the Agent Skills format.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, cast

from crush_kernel.prompt.delimited import delimited
from crush_kernel.prompt.header import NAME, header_text, on_one_line, split_header
from crush_kernel.prompt.hiddentext import without_hidden

FILE_NAME: Final = "SKILL.md"

MAX_NAME_BYTES = 64
MAX_DESCRIPTION_BYTES = 1_024
MAX_COMPATIBILITY_BYTES = 500

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
    parts = split_header(without_hidden(text)[0])
    if isinstance(parts, str):
        return (parts,)
    return _checked(parts.header, parts.body, folder)


def invocation(skill: SkillText, *, location: str, arguments: str) -> str:
    """Return the prompt that a call by the user stands for."""
    text = delimited("skill", skill.body, {"name": skill.name, "location": location})
    ask = f"Use the skill {skill.name} above"
    return f"{text}\n\n{ask} on this: {arguments}" if arguments else f"{text}\n\n{ask}."


def invoked_skill(prompt: str) -> str:
    """Return the name of the skill that `prompt` is a call of; empty if it is none."""
    match = _INVOKED.match(prompt)
    return match[1] if match else ""


def _checked(header: Mapping[str, object], body: str, folder: str) -> SkillText | tuple[str, ...]:
    faults: list[str] = []
    name = header_text(header, "name", MAX_NAME_BYTES, faults, is_required=True)
    if name and not NAME.fullmatch(name):
        faults.append(f"name is not made of letters, digits and single hyphens: {name[:80]!a}")
    elif name and name.lower() != folder.lower():
        faults.append(f"name is {name}, but its folder is called {folder[:80]!a}")
    description = header_text(
        header, "description", MAX_DESCRIPTION_BYTES, faults, is_required=True
    )
    header_text(header, "compatibility", MAX_COMPATIBILITY_BYTES, faults)
    _check_metadata(header.get("metadata"), faults)
    is_user_invocable = _flag(header, "user-invocable", faults)
    is_hidden = _flag(header, "disable-model-invocation", faults)
    if faults:
        return tuple(faults)
    return SkillText(
        name=name,
        description=on_one_line(description),
        body=body,
        is_user_invocable=is_user_invocable,
        is_model_invocable=not is_hidden,
    )


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
