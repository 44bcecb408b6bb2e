"""What configuration files say of permissions: rules, the mode, and tools that are not wanted.

Here they are texts and places; what a rule means is for `permissions` to say. A project's file may
only tighten: what allows in it is left out and said. One mistake never loses the rest.

Source: Crush, `permissions.allowed_tools`, `options.disabled_tools`.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Final, get_args

from pydantic import JsonValue

from crush_kernel.config.configfiles import ConfigFile
from crush_kernel.config.ruletexts import Verdict, WrittenRule
from crush_kernel.config.settings import PermissionMode, Settings
from crush_kernel.files.names import printable
from crush_kernel.messages import JsonObject

_LISTS: Final[Mapping[str, Verdict]] = {
    "allow": "allow",
    "allowed": "allow",
    "allowed_tools": "allow",
    "ask": "ask",
    "deny": "deny",
}
"""Keys that hold rules, and what these say; Crush's own is `allowed_tools`."""

_KEYS: Final = (*_LISTS, "mode")
_MODES: Final[tuple[PermissionMode, ...]] = get_args(PermissionMode)

_FREEDOM: Final[Mapping[PermissionMode, int]] = {
    "plan": 0,
    "default": 1,
    "accept-edits": 2,
    "yolo": 3,
}
"""How much passes without a question."""

MAX_KEYS: Final = 100
"""Of `permissions`, for each of which that is not known there is a word."""

MAX_RULES: Final = 1_000
"""Of one file; nobody has read more of them."""


@dataclass(frozen=True, slots=True)
class WrittenPermissions:
    """What all files say together."""

    rules: tuple[WrittenRule, ...] = ()
    mode: PermissionMode | None = None
    """Of the user's file that comes last, or of a project's that is stricter."""
    disabled_tools: tuple[str, ...] = ()
    """Names of tools that are not wanted, of all files."""
    warnings: tuple[str, ...] = ()
    """One sentence for each thing that was left out."""


def read_permissions(files: tuple[ConfigFile, ...]) -> WrittenPermissions:
    """Return what `files`, the lowest priority first, say of permissions."""
    reading = _Reading()
    for file in files:
        reading.take(file)
    return WrittenPermissions(
        rules=tuple(reading.rules),
        mode=reading.mode,
        disabled_tools=tuple(dict.fromkeys(reading.disabled)),
        warnings=tuple(reading.warnings),
    )


def opening_mode(settings: Settings, written: WrittenPermissions) -> PermissionMode:
    """Return the mode that a kernel starts in: what the environment says goes first."""
    if written.mode is None or settings.environ.get("CRUSH_PERMISSION_MODE", "").strip():
        return settings.permission_mode
    return written.mode


class _Reading:
    """What was read so far."""

    def __init__(self) -> None:
        self.rules: list[WrittenRule] = []
        self.mode: PermissionMode | None = None
        self.disabled: list[str] = []
        self.warnings: list[str] = []

    def take(self, file: ConfigFile) -> None:
        options = self._object(file, file.document, "options")
        self.disabled += self._texts(file, "options.disabled_tools", options.get("disabled_tools"))
        permissions = self._object(file, file.document, "permissions")
        if len(permissions) > MAX_KEYS:
            self._warn(file, f"permissions has more than {MAX_KEYS} keys; unknown ones are ignored")
            permissions = {key: permissions[key] for key in _KEYS if key in permissions}
        for key, value in permissions.items():
            if verdict := _LISTS.get(key):
                self._take_rules(file, key, verdict, value)
            elif key == "mode":
                self._take_mode(file, value)
            else:
                near = get_close_matches(key, _KEYS, n=1)
                meant = f"; is {near[0]} meant?" if near else f"; there are {', '.join(_KEYS)}"
                self._warn(file, f"permissions has no key {_shown(key)}{meant}")

    def _take_rules(self, file: ConfigFile, key: str, verdict: Verdict, value: JsonValue) -> None:
        texts = list(self._texts(file, f"permissions.{key}", value))
        if verdict == "allow" and file.scope == "project" and texts:
            self._warn(
                file,
                f"permissions.{key} is ignored: a project may ask and deny, only you may allow. "
                "Store what you want with /permissions allow",
            )
            return
        self.rules += (WrittenRule(verdict, text, file.path, file.scope) for text in texts)

    def _take_mode(self, file: ConfigFile, value: JsonValue) -> None:
        name = value.strip().lower().replace("_", "-") if isinstance(value, str) else ""
        mode: PermissionMode | None = next((each for each in _MODES if each == name), None)
        if mode is None:
            self._warn(file, f"permissions.mode is none of {', '.join(_MODES)}: {_shown(value)}")
        elif file.scope == "project" and _FREEDOM[mode] > _FREEDOM[self.mode or "default"]:
            self._warn(file, f"permissions.mode {mode} is ignored: a project may not loosen")
        else:
            self.mode = mode

    def _object(self, file: ConfigFile, document: JsonObject, key: str) -> JsonObject:
        value = document.get(key, {})
        if isinstance(value, dict):
            return value
        self._warn(file, f"{key} is no object")
        return {}

    def _texts(self, file: ConfigFile, key: str, value: JsonValue) -> Iterator[str]:
        """Yield the texts in a list, and warn of all else."""
        if value is None:
            return
        if isinstance(value, str):
            value = [value]
        if not isinstance(value, list):
            self._warn(file, f"{key} is no list")
            return
        if len(value) > MAX_RULES:
            self._warn(file, f"{key} has more than {MAX_RULES:,} entries; the others are ignored")
        for item in value[:MAX_RULES]:
            if isinstance(item, str):
                yield item
            else:
                self._warn(file, f"{key} holds what is no text: {_shown(item)}")

    def _warn(self, file: ConfigFile, what: str) -> None:
        end = "" if what.endswith("?") else "."
        self.warnings.append(f"{printable(str(file.path))}: {what}{end}")


def _shown(value: JsonValue) -> str:
    return printable(repr(value)[:80])
