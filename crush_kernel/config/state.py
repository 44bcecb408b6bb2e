"""The models that the user chose last, in the state file that Crush also keeps.

The file is `crush.json` in the machine data directory. It may hold other programs' keys
and tokens: what we do not know is written back as it was, and a file that cannot be read
is never overwritten.

Source: Crush, model persistence.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from pydantic import JsonValue

from crush_kernel.config.statefile import StateFile
from crush_kernel.errors import ConfigError
from crush_kernel.messages import JsonObject

FILE_NAME: Final = "crush.json"

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
        self._file = StateFile(
            path,
            loss="no choice of model is kept",
            hint="Mend or remove the file, or choose the model with CRUSH_MODEL.",
        )

    def choice(self, slot: ModelSlot) -> ModelChoice | None:
        """Return the remembered model, `None` if there is none that can be read."""
        try:
            models = self._file.read().get("models")
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
        entry: JsonValue = {"provider": choice.provider, "model": choice.model}

        def changed(document: JsonObject) -> JsonObject:
            models = document.get("models")
            kept = models if isinstance(models, dict) else {}
            return {**document, "models": {**kept, slot: entry}}

        self._file.change(changed)
