"""What a server's list of models says, taken apart without trust.

Servers tell more than OpenAI's list has room for, each under its own names. What is known
by heart goes before what a list says; what makes no sense counts as not said.

Pure. Source: the model lists of OpenRouter, Groq, Moonshot, vLLM, llama.cpp and Anthropic.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from pydantic import JsonValue

from crush_kernel.messages import JsonObject
from crush_kernel.providers.base import ModelInfo
from crush_kernel.providers.catalog import known_model

MAX_MODELS: Final = 1_000

_MAX_NAME: Final = 200

_NOT_FOR_CHAT: Final = (
    "embed",
    "whisper",
    "tts",
    "dall-e",
    "image",
    "moderation",
    "realtime",
    "transcribe",
    "audio",
    "sora",
    "rerank",
    "davinci",
    "babbage",
    "turbo-instruct",
)
"""Parts of the ids of models that do not chat, where a list does not tell them apart."""


def listed_model(provider: str, model_id: str, entry: JsonObject) -> ModelInfo:
    """Return what an entry of a `/models` list adds to what is known of a model."""
    known = known_model(provider, model_id)
    meta, abilities, prices, build = (
        value if isinstance(value := entry.get(key), dict) else {}
        for key in ("meta", "top_provider", "pricing", "architecture")
    )
    window = next(
        (
            size
            for source, key in (
                (entry, "context_length"),
                (entry, "context_window"),
                (entry, "max_context_length"),
                (entry, "max_model_len"),
                (entry, "max_input_tokens"),
                (meta, "n_ctx"),
                (meta, "n_ctx_train"),
            )
            if (size := size_of(source.get(key)))
        ),
        0,
    )
    inputs = build.get("input_modalities")
    capabilities = entry.get("capabilities")
    sees = (
        (isinstance(inputs, list) and "image" in inputs)
        or (isinstance(capabilities, list) and "multimodal" in capabilities)
        or entry.get("supports_image_in") is True
    )
    return replace(
        known,
        name=known.name or name_of(entry.get("name")) or name_of(entry.get("display_name")),
        context_window=known.context_window or window,
        max_output_tokens=known.max_output_tokens
        or size_of(abilities.get("max_completion_tokens")),
        input_price=_price(prices.get("prompt"), known.input_price),
        output_price=_price(prices.get("completion"), known.output_price),
        cache_read_price=_price(prices.get("input_cache_read"), known.cache_read_price),
        cache_write_price=_price(prices.get("input_cache_write"), known.cache_write_price),
        accepts_images=known.accepts_images or sees,
    )


def chat_entries(answer: JsonValue) -> Iterator[tuple[str, JsonObject]]:
    """Yield id and entry of the models of a `/models` list that chat."""
    for model_id, entry in entries_of(answer, "data", "id"):
        if is_for_chat(model_id):
            yield model_id, entry


def is_for_chat(model_id: str) -> bool:
    """Return whether the model chats, as far as its id tells."""
    return not any(part in model_id.lower() for part in _NOT_FOR_CHAT)


def entries_of(answer: JsonValue, key: str, name_key: str) -> Iterator[tuple[str, JsonObject]]:
    """Yield name and entry of a list of models, leaving out what cannot be a model."""
    entries = answer.get(key) if isinstance(answer, dict) else None
    for entry in entries[:MAX_MODELS] if isinstance(entries, list) else ():
        if isinstance(entry, dict) and (name := name_of(entry.get(name_key))):
            yield name, entry


def name_of(value: JsonValue) -> str:
    """Return `value` if it is a name that can be shown and sent, else nothing."""
    if isinstance(value, str) and len(value) <= _MAX_NAME and value.isprintable():
        return value.strip()
    return ""


def size_of(value: JsonValue) -> int:
    """Return `value` if it can be a number of tokens, else zero."""
    if isinstance(value, int) and not isinstance(value, bool) and 0 < value < 1_000_000_000:
        return value
    return 0


def _price(value: JsonValue, known: float | None) -> float | None:
    """Return dollars per million tokens from dollars per token, as text or number."""
    if known is not None or not isinstance(value, str | int | float):
        return known
    try:
        price = float(value) * 1e6
    except (ValueError, OverflowError):
        return None
    return price if 0 <= price < 1e6 else None
