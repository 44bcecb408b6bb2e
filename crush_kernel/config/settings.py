"""What the environment asks for, read once and checked.

A value that makes no sense becomes a warning and the safe default takes its place: a typo
must neither keep the kernel from starting nor allow more than was meant.

Source: design §8 "Environment"; Crush, environment variables.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final, Literal, cast, get_args

from crush_kernel.config.directories import Directories, read_directories

PermissionMode = Literal["default", "accept-edits", "plan", "yolo"]
"""`accept-edits` lets edits inside the project pass, `plan` refuses all but reading,
`yolo` lets everything inside the project pass; whatever they do not settle is asked."""

_TRUE: Final = frozenset(("1", "true", "t", "yes", "y", "on"))
_FALSE: Final = frozenset(("", "0", "false", "f", "no", "n", "off"))

_NUMBER: Final = re.compile(r"[0-9]{1,12}(\.[0-9]{1,6})?")

_LABEL: Final = re.compile(r"[!-~]{1,200}")
"""A model's label: visible ASCII, as in a header or a URL."""


@dataclass(frozen=True, slots=True)
class Settings:
    """What the user set, with defaults for the rest."""

    environ: Mapping[str, str] = field(repr=False)
    """The environment as it was read; holds keys, so it is never shown."""
    directories: Directories
    model: str = ""
    """The label of the large model, `provider/model`; empty leaves the choice to us."""
    small_model: str = ""
    permission_mode: PermissionMode = "default"
    uses_prompt_cache: bool = True
    """Whether requests to Anthropic mark what is to be cached."""
    disables_summaries: bool = False
    """Whether a conversation that fills the window is not summarized unasked."""
    max_turn_steps: float = 1_000
    """Requests in one turn; zero, like in the other limits of a turn, sets none."""
    max_turn_minutes: float = 0
    max_turn_cost: float = 0
    """US dollars."""
    max_turn_tokens: float = 0
    redact_patterns: tuple[str, ...] = ()
    """Regular expressions of what else is a secret, beside what is known to be one."""
    context_paths: tuple[str, ...] = ()
    """Memory files and folders of them beside the usual ones."""
    global_context_paths: tuple[str, ...] = ()
    """The user's own memory files, in place of the usual ones."""
    skills_paths: tuple[str, ...] = ()
    """Directories of skills beside the usual ones."""
    disabled_skills: tuple[str, ...] = ()
    """Names of skills that are not wanted."""
    warnings: tuple[str, ...] = ()
    """One sentence for each value that was set aside."""

    def variable(self, *names: str) -> str:
        """Return the first of the variables that says something, without outer spaces.

        `CRUSH_<NAME>` comes before `<NAME>`, as in Crush.
        """
        for name in names:
            for variant in (f"CRUSH_{name}", name):
                if value := self.environ.get(variant, "").strip():
                    return value
        return ""


def read_settings(environ: Mapping[str, str]) -> Settings:
    """Return the settings that `environ` holds; never raises for what is in it."""
    directories, notes = read_directories(environ)
    warnings = list(notes)
    return Settings(
        environ=MappingProxyType(dict(environ)),
        directories=directories,
        model=_label(environ, "CRUSH_MODEL", warnings),
        small_model=_label(environ, "CRUSH_SMALL_MODEL", warnings),
        permission_mode=_permission_mode(environ, warnings),
        redact_patterns=_lines(environ.get("CRUSH_REDACT_PATTERNS", "")),
        disables_summaries=_flag(environ, "CRUSH_DISABLE_AUTO_SUMMARIZE", warnings),
        max_turn_steps=_limit(environ, "CRUSH_MAX_TURN_STEPS", 1_000, warnings),
        max_turn_minutes=_limit(environ, "CRUSH_MAX_TURN_MINUTES", 0, warnings),
        max_turn_cost=_limit(environ, "CRUSH_MAX_TURN_COST", 0, warnings),
        max_turn_tokens=_limit(environ, "CRUSH_MAX_TURN_TOKENS", 0, warnings),
        uses_prompt_cache=not _flag(environ, "CRUSH_DISABLE_ANTHROPIC_CACHE", warnings),
        warnings=tuple(warnings),
    )


def _lines(text: str) -> tuple[str, ...]:
    return tuple(line for line in map(str.strip, text.splitlines()) if line)


def _label(environ: Mapping[str, str], name: str, warnings: list[str]) -> str:
    value = environ.get(name, "").strip()
    if not value or _LABEL.fullmatch(value):
        return value
    warnings.append(f"{name} is not the name of a model: {value[:80]!a}; it is ignored")
    return ""


def _permission_mode(environ: Mapping[str, str], warnings: list[str]) -> PermissionMode:
    value = environ.get("CRUSH_PERMISSION_MODE", "").strip()
    if not value:
        return "default"
    mode = value.lower().replace("_", "-")
    if mode in get_args(PermissionMode):
        return cast("PermissionMode", mode)  # a member, by the line above
    modes = ", ".join(get_args(PermissionMode))
    warnings.append(
        f"CRUSH_PERMISSION_MODE is none of {modes}: {value[:80]!a}; the mode is default"
    )
    return "default"


def _limit(environ: Mapping[str, str], name: str, default: float, warnings: list[str]) -> float:
    value = environ.get(name, "").strip()
    if not value:
        return default
    if _NUMBER.fullmatch(value):
        return float(value)
    meant = f"it is {default:g}" if default else "there is no limit"
    warnings.append(f"{name} is no number from zero up: {value[:80]!a}; {meant}")
    return default


def read_flag(environ: Mapping[str, str], name: str, warnings: list[str]) -> bool | None:
    """Return whether a variable says yes or no, `None` if it says nothing that can be read."""
    value = environ.get(name, "").strip()
    if value.lower() in _TRUE:
        return True
    if value.lower() not in _FALSE:
        warnings.append(f"{name} is neither true nor false: {value[:80]!a}; it is ignored")
        return None
    return False if value else None


def _flag(environ: Mapping[str, str], name: str, warnings: list[str]) -> bool:
    return read_flag(environ, name, warnings) is True
