"""Ask servers which models they serve: those on this machine, and those with a key.

Whoever listens on a usual port may be anybody, slow, broken or hostile: every answer has a
limit in time and size, is taken apart without trust, and what makes no sense is skipped.
Local servers are asked side by side within one deadline; what has come by then counts.

Source: the APIs of Ollama, LM Studio and llama.cpp; Crush, custom providers.
"""

import json
import logging
from collections.abc import Mapping
from dataclasses import replace
from ssl import SSLContext
from typing import Final, TypeAlias, cast

import anyio
import httpx2
from pydantic import JsonValue

from crush_kernel.messages import JsonObject
from crush_kernel.providers.address import is_loopback
from crush_kernel.providers.base import ModelInfo
from crush_kernel.providers.catalog import PROVIDERS, Provider
from crush_kernel.providers.listing import (
    chat_entries,
    entries_of,
    is_for_chat,
    listed_model,
    name_of,
    size_of,
)

logger = logging.getLogger(__name__)

MAX_BODY_BYTES: Final = 4_000_000
"""OpenRouter's list, the longest known, has a tenth of this."""

_SHOWN_AT_ONCE: Final = 5
"""How many of its models Ollama is asked about at the same time."""


_Models: TypeAlias = dict[str, ModelInfo]
"""What is known of a server so far, by id and in its order; written by its own task only."""


async def discover(
    endpoints: Mapping[str, str], *, deadline_s: float
) -> dict[str, tuple[ModelInfo, ...]]:
    """Return the models of the local servers that answer, in the order of the provider table.

    Args:
        endpoints: base URLs up to and with `/v1`, by the id of the local provider.
        deadline_s: when to stop asking; what is known by then is returned.
    """
    found: dict[str, _Models] = {name: {} for name in endpoints}
    has_tls = any(url.startswith("https:") for url in endpoints.values())
    # The servers are this machine's own: no proxy leads to them.
    async with _client(verify=has_tls, trust_env=False) as client:
        with anyio.move_on_after(deadline_s):
            async with anyio.create_task_group() as tasks:
                for name, ask in _ASK.items():
                    if name in endpoints:
                        tasks.start_soon(ask, client, endpoints[name], found[name])
    ids = [provider.id for provider in PROVIDERS]
    return {name: tuple(found[name].values()) for name in ids if found.get(name)}


async def list_models(
    provider: Provider,
    *,
    api_key: str,
    base_url: str,
    verify: SSLContext | bool,
    timeout_s: float,
) -> tuple[ModelInfo, ...]:
    """Return the chat models that a provider lists, none if it does not tell in time."""
    headers = {"Authorization": f"Bearer {api_key.removeprefix('Bearer ')}"} if api_key else {}
    url = f"{base_url.rstrip('/')}/models"
    if provider.protocol == "anthropic":
        url = f"{base_url.rstrip('/').removesuffix('/v1')}/v1/models?limit=1000"
        if not api_key.startswith("Bearer "):
            headers = {"x-api-key": api_key}
        headers["anthropic-version"] = "2023-06-01"
    trust_env = not is_loopback(url)
    with anyio.move_on_after(timeout_s):
        async with _client(verify=verify, trust_env=trust_env) as client:
            answer = await _ask(client, url, headers=headers)
            return tuple(
                listed_model(provider.id, model_id, entry)
                for model_id, entry in chat_entries(answer)
            )
    return ()


async def _ask_ollama(client: httpx2.AsyncClient, base_url: str, models: _Models) -> None:
    root = base_url.removesuffix("/v1")
    answer = await _ask(client, f"{root}/api/tags")
    names = [name for name, _ in entries_of(answer, "models", "name") if is_for_chat(name)]
    models.update((name, ModelInfo("ollama", name)) for name in names)
    slots = anyio.Semaphore(_SHOWN_AT_ONCE)

    async def show(name: str) -> None:
        async with slots:
            shown = await _ask(client, f"{root}/api/show", body={"model": name})
        if not isinstance(shown, dict):
            return
        if (info := _ollama_model(name, shown)) is not None:
            models[name] = info
        else:
            del models[name]

    async with anyio.create_task_group() as tasks:
        for name in tuple(models):
            tasks.start_soon(show, name)
    if not models:
        return
    # A prompt that is longer than a model was loaded for is cut without a word.
    running = await _ask(client, f"{root}/api/ps")
    for name, entry in entries_of(running, "models", "name"):
        if name in models and (window := size_of(entry.get("context_length"))):
            models[name] = replace(models[name], context_window=window)


def _ollama_model(name: str, shown: JsonObject) -> ModelInfo | None:
    """Return a model as `/api/show` describes it, `None` if it does not chat."""
    abilities = shown.get("capabilities")
    if not isinstance(abilities, list):
        abilities = ["completion"]
    if "completion" not in abilities:
        return None
    facts = shown.get("model_info")
    trained = next(
        (
            size_of(value)
            for key, value in (facts.items() if isinstance(facts, dict) else ())
            if key.endswith(".context_length")
        ),
        0,
    )
    return ModelInfo(
        provider="ollama",
        id=name,
        context_window=_ollama_setting(shown.get("parameters")) or trained,
        accepts_images="vision" in abilities,
        can_reason="thinking" in abilities,
    )


def _ollama_setting(parameters: JsonValue) -> int:
    """Return the window that the model's own settings ask for; it goes before the trained one."""
    for line in parameters.splitlines() if isinstance(parameters, str) else ():
        match line.split():
            case ["num_ctx", value] if value.isdecimal():
                return size_of(int(value))
            case _:
                pass
    return 0


async def _ask_lmstudio(client: httpx2.AsyncClient, base_url: str, models: _Models) -> None:
    answer = await _ask(client, f"{base_url}/models")
    # The names first: what the newer interface adds may come too late.
    models.update((name, ModelInfo("lmstudio", name)) for name, _ in chat_entries(answer))
    if not models:
        return
    details = await _ask(client, f"{base_url.removesuffix('/v1')}/api/v1/models")
    entries = [pair for pair in entries_of(details, "models", "key") if pair[0] in models]
    # What is loaded goes first: any other model takes a while and much memory to load.
    entries.sort(key=lambda pair: not _loaded_window(pair[1]))
    described = {name: _lmstudio_model(name, entry) for name, entry in entries}
    rest = {name: model for name, model in models.items() if name not in described}
    models.clear()
    models.update(described | rest)


def _loaded_window(entry: JsonObject) -> int:
    """Return the context window of the first loaded instance of a model, zero if none is."""
    instances = entry.get("loaded_instances")
    for instance in instances if isinstance(instances, list) else ():
        settings = instance.get("config") if isinstance(instance, dict) else None
        if isinstance(settings, dict) and (window := size_of(settings.get("context_length"))):
            return window
    return 0


def _lmstudio_model(name: str, entry: JsonObject) -> ModelInfo:
    loaded = _loaded_window(entry)
    abilities = entry.get("capabilities")
    return ModelInfo(
        provider="lmstudio",
        id=name,
        name=name_of(entry.get("display_name")),
        context_window=loaded or size_of(entry.get("max_context_length")),
        accepts_images=isinstance(abilities, dict) and abilities.get("vision") is True,
    )


async def _ask_llamacpp(client: httpx2.AsyncClient, base_url: str, models: _Models) -> None:
    answer = await _ask(client, f"{base_url}/models")
    models.update((name, listed_model("llamacpp", name, e)) for name, e in chat_entries(answer))


_ASK: Final = {"ollama": _ask_ollama, "lmstudio": _ask_lmstudio, "llamacpp": _ask_llamacpp}


def _client(*, verify: SSLContext | bool, trust_env: bool) -> httpx2.AsyncClient:
    headers = {"Accept": "application/json", "Accept-Encoding": "identity"}
    return httpx2.AsyncClient(timeout=None, verify=verify, trust_env=trust_env, headers=headers)


async def _ask(
    client: httpx2.AsyncClient,
    url: str,
    *,
    headers: Mapping[str, str] | None = None,
    body: JsonObject | None = None,
) -> JsonValue:
    """Return the JSON that a server answers, `None` for any other answer or none."""
    method = "GET" if body is None else "POST"
    content = bytearray()
    try:
        async with client.stream(method, url, headers=headers, json=body) as response:
            if not response.is_success:
                return None
            async for chunk in response.aiter_bytes():
                content += chunk
                if len(content) > MAX_BODY_BYTES:
                    return None
        return cast("JsonValue", json.loads(content))
    except (httpx2.HTTPError, httpx2.InvalidURL, ValueError, RecursionError) as error:
        logger.debug("%s does not list its models: %s", url, error)
        return None
