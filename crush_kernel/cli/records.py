"""Where a notebook carries our records: in its metadata, its cells' metadata, and in outputs.

Pure.
"""

from typing import Any, Final, TypeAlias, cast

from crush_kernel.history.notebook import RECORD_MIME_TYPE

Notebook: TypeAlias = dict[str, Any]
"""A notebook in memory: what nbformat reads, texts in one piece."""

Json: TypeAlias = dict[str, Any]

KEY: Final = "crush"
"""The name of our metadata."""


def kept_record(cell: Json) -> Json | None:
    """Return the turn in the metadata of `cell`, `None` if there is nothing like one."""
    return _record(cell["metadata"].get(KEY))


def shown_record(cell: Json) -> Json | None:
    """Return the turn that the last output of `cell` carries which carries one."""
    found = (output.get("data", {}).get(RECORD_MIME_TYPE) for output in reversed(cell["outputs"]))
    return next((record for each in found if (record := _record(each)) is not None), None)


def _record(value: object) -> Json | None:
    return cast("Json", value) if isinstance(value, dict) else None
