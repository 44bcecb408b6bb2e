"""The models that the user chose last, in the state file that Crush also keeps.

The file is `crush.json` in the machine data directory. It may hold other programs' keys
and tokens: what we do not know is written back as it was, and a file that cannot be read
is never overwritten.

Source: Crush, model persistence.
"""

import json
import os
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal, cast

from pydantic import JsonValue

from crush_kernel.errors import ConfigError

FILE_NAME: Final = "crush.json"

MAX_BYTES: Final = 4_000_000
"""A state file is a few kilobytes; a larger one is not ours to load."""

ModelSlot = Literal["large", "small"]
"""The large model does the work, the small one titles and the like."""


@dataclass(frozen=True, slots=True)
class ModelChoice:
    """A model that was chosen, as the two halves of its label."""

    provider: str
    model: str


class State:
    """The state file; reading forgives everything, writing explains what is wrong."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def choice(self, slot: ModelSlot) -> ModelChoice | None:
        """Return the remembered model, `None` if there is none that can be read."""
        try:
            models = self._read().get("models")
        except ConfigError:
            return None
        entry = models.get(slot) if isinstance(models, dict) else None
        if not isinstance(entry, dict):
            return None
        provider, model = entry.get("provider"), entry.get("model")
        if isinstance(provider, str) and isinstance(model, str) and provider and model:
            return ModelChoice(provider, model)
        return None

    def remember(self, slot: ModelSlot, choice: ModelChoice) -> None:
        """Write `choice` to the file, all else in it kept; blocks until it is on disk.

        A choice replaces the former one as a whole, so that settings of one model never
        leak into the next.

        Raises:
            ConfigError: the file cannot be read or written; it is as it was.
        """
        document = self._read()
        models = document.get("models")
        kept = models if isinstance(models, dict) else {}
        entry: JsonValue = {"provider": choice.provider, "model": choice.model}
        self._write({**document, "models": {**kept, slot: entry}})

    def _read(self) -> dict[str, JsonValue]:
        """Return the document, empty if there is no file yet."""
        try:
            with self.path.open("rb") as file:
                data = file.read(MAX_BYTES + 1)
        except FileNotFoundError:
            return {}
        except OSError as error:
            raise self._trouble("cannot be read", error.strerror or str(error)) from error
        if len(data) > MAX_BYTES:
            raise self._trouble("is too large", f"more than {MAX_BYTES} bytes")
        try:
            document: object = json.loads(data) if data.strip() else {}
        except (ValueError, RecursionError) as error:
            raise self._trouble("is not valid JSON", str(error)) from error
        if not isinstance(document, dict):
            raise self._trouble("is not a JSON object", "")
        return cast("dict[str, JsonValue]", document)

    def _write(self, document: dict[str, JsonValue]) -> None:
        """Replace the file at once or not at all; readable by its owner only."""
        text = json.dumps(document, indent=2) + "\n"
        # Through a link, so that a file that is kept elsewhere stays where it is.
        target = Path(os.path.realpath(self.path))
        draft: Path | None = None
        try:
            target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            handle, name = tempfile.mkstemp(prefix=f".{FILE_NAME}.", dir=target.parent)
            draft = Path(name)
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            draft.replace(target)
        except OSError as error:
            if draft is not None:
                with suppress(OSError):
                    draft.unlink(missing_ok=True)
            raise self._trouble("cannot be written", error.strerror or str(error)) from error

    def _trouble(self, what: str, why: str) -> ConfigError:
        reason = f" ({why})" if why else ""
        return ConfigError(
            f"the state file {str(self.path)!r} {what}{reason}, so no choice of model is kept",
            path=self.path,
            hint="Mend or remove the file, or choose the model with CRUSH_MODEL.",
        )
