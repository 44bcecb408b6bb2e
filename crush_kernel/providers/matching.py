"""Which of the models a name means, as people write names.

Pure.
"""

from collections.abc import Iterable, Sequence
from typing import Final

from crush_kernel.providers.base import ModelInfo
from crush_kernel.providers.catalog import undated

_SHOWN: Final = 5
"""How many candidates a sentence names."""


def matching(label: str, models: Iterable[ModelInfo]) -> tuple[ModelInfo, ...]:
    """Return the models that `label` fits: those with that very name, else those that contain it.

    Of models that differ by their date only, the one without a date stands for all.
    """
    candidates = tuple(models)
    exact = tuple(info for info in candidates if label in (info.id, info.label))
    if exact:
        return exact
    words = [word for word in label.lower().split() if any(map(str.isalnum, word))]
    found = [info for info in candidates if all(word in info.label.lower() for word in words)]
    by_name: dict[str, ModelInfo] = {}
    for info in sorted(found, key=lambda info: len(info.id)) if words else ():
        by_name.setdefault(undated(info.label), info)
    return tuple(info for info in found if info in by_name.values())


def either_of(found: Sequence[ModelInfo]) -> str:
    """Return the labels of `found` as a choice, cut short if they are many."""
    shown = [f"`{info.label}`" for info in found[:_SHOWN]]
    more = ["…"] if len(found) > _SHOWN else []
    return ", ".join(shown + more) if more else " or ".join(shown)


def nearest_to(label: str, models: Sequence[ModelInfo]) -> str:
    """Return a sentence that names the models whose labels are most like `label`."""
    from rapidfuzz import process  # noqa: PLC0415 - needed after a typo only

    near = process.extract(label, [info.label for info in models], limit=_SHOWN)
    names = ", ".join(f"`{name}`" for name, _, _ in near)
    return f"A name is `provider/model`; the nearest are {names}."
