"""`models`: what can be used now, by provider, with the default marked."""

import argparse
import json
import os
import sys
from collections.abc import Iterator, Sequence
from itertools import groupby

import anyio

from crush_kernel.config.settings import read_settings
from crush_kernel.config.state import FILE_NAME, State
from crush_kernel.providers.base import ModelInfo
from crush_kernel.providers.catalog import provider_of
from crush_kernel.providers.selection import Providers


def run(arguments: argparse.Namespace) -> int:
    """Print the models, as a table or as JSON."""
    models, default = anyio.run(_ask)
    if arguments.json:
        print(json.dumps([_as_json(model, default=default) for model in models], indent=2))
    else:
        print("\n".join(table(models, default=default)))
    return 0


def table(models: Sequence[ModelInfo], *, default: ModelInfo) -> Iterator[str]:
    """Yield the lines of a table: a heading for each provider, then its models."""
    width = max((len(model.id) for model in models), default=0)
    for provider_id, group in groupby(models, key=lambda model: model.provider):
        provider = provider_of(provider_id)
        yield provider.name if provider else provider_id
        for model in group:
            mark = "*" if model.label == default.label else " "
            facts = "  ".join(_facts(model))
            yield f"  {mark} {model.id:<{width}}  {facts}".rstrip()
    yield f"\n* is the default, {default.label}. Another one: CRUSH_MODEL=provider/model"


async def _ask() -> tuple[tuple[ModelInfo, ...], ModelInfo]:
    """Return the usable models, with the default among them, and the default."""
    settings = read_settings(os.environ)
    for warning in settings.warnings:
        print(f"warning: {warning}", file=sys.stderr)
    providers = Providers(settings, State(settings.directories.data / FILE_NAME))
    default = await providers.default()
    models = tuple(await providers.models())
    if default.label not in {model.label for model in models}:
        models = (default, *models)
    return models, default


def _facts(model: ModelInfo) -> Iterator[str]:
    if model.context_window:
        yield f"{_tokens(model.context_window)} tokens"
    if model.input_price is not None and model.output_price is not None:
        yield f"${model.input_price:g} in, ${model.output_price:g} out per million"
    if model.accepts_images:
        yield "images"
    if model.can_reason:
        yield "reasoning"


def _tokens(count: int) -> str:
    return f"{count / 1_000_000:.3g} M" if count >= 1_000_000 else f"{count // 1_000} k"


def _as_json(model: ModelInfo, *, default: ModelInfo) -> dict[str, object]:
    return {
        "label": model.label,
        "provider": model.provider,
        "id": model.id,
        "name": model.name or model.id,
        "default": model.label == default.label,
        "context_window": model.context_window or None,
        "max_output_tokens": model.max_output_tokens or None,
        "input_price": model.input_price,
        "output_price": model.output_price,
        "accepts_images": model.accepts_images,
        "can_reason": model.can_reason,
    }
