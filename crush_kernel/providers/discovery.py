"""Ask servers which models they serve: those on this machine, and those with a key.

Whoever listens on a usual port may be anybody, slow, broken or hostile: every answer has a
limit in time and size, is taken apart without trust, and what makes no sense is skipped.
Local servers are asked side by side within one deadline; what has come by then counts.

Source: the APIs of Ollama, LM Studio and llama.cpp; Crush, custom providers.
"""

import json
import logging
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from ssl import SSLContext
from typing import Final, cast

import anyio
import httpx2
from pydantic import JsonValue

from crush_kernel.messages import JsonObject
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

DEADLINE_S: Final = 0.5
"""For all local servers together; a port where nobody listens is refused at once."""

LIST_TIMEOUT_S: Final = 3.0
"""For the list of one provider with a key."""

MAX_BODY_BYTES: Final = 4_000_000
"""OpenRouter's list, the longest known, has a tenth of this."""

_SHOWN_AT_ONCE: Final = 5
"""How many of its models Ollama is asked about at the same time."""


@dataclass(frozen=True, slots=True)
class LocalServer:
    """A server that answered, and what it serves."""

    provider: str
    base_url: str
    """Up to and with `/v1`."""
    models: tuple[ModelInfo, ...]
    """In the server's order; never empty."""


@dataclass(slots=True)
class _Finding:
    """What is known of one server so far; written by its own task only."""

    base_url: str
    models: dict[str, ModelInfo] = field(default_factory=dict[str, ModelInfo])


async def discover(
    endpoints: Mapping[str, str], *, deadline_s: float = DEADLINE_S
) -> tuple[LocalServer, ...]:
    """Return the local servers that answer, in the order of the provider table.

    Args:
        endpoints: base URLs up to and with `/v1`, by the id of the local provider.
        deadline_s: when to stop asking; what is known by then is returned.
    """
    findings = {name: _Finding(url) for name, url in endpoints.items() if name in _ASK}
    has_tls = any(url.startswith("https:") for url in endpoints.values())
    async with _client(verify=has_tls) as client:
        with anyio.move_on_after(deadline_s):
            async with anyio.create_task_group() as tasks:
                for name, finding in findings.items():
                    tasks.start_soon(_ASK[name], client, finding)
    return tuple(
        LocalServer(provider.id, finding.base_url, tuple(finding.models.values()))
        for provider in PROVIDERS
        if (finding := findings.get(provider.id)) is not None and finding.models
    )


async def list_models(
    provider: Provider,
    *,
    api_key: str,
    base_url: str,
    verify: SSLContext | bool = True,
    timeout_s: float = LIST_TIMEOUT_S,
) -> tuple[ModelInfo, ...]:
    """Return the chat models that a provider lists, none if it does not tell in time."""
    if provider.protocol == "anthropic":
        url = f"{base_url.rstrip('/').removesuffix('/v1')}/v1/models?limit=1000"
        headers = {"x-api-key": api_key, "anthropic-version": "2023-06-01"}
    else:
        url = f"{base_url.rstrip('/')}/models"
        headers = {"Authorization": f"Bearer {api_key}"} if api_key else {}
    with anyio.move_on_after(timeout_s):
        async with _client(verify=verify, base_url=base_url) as client:
            answer = await _ask(client, url, headers=headers)
            return tuple(
                listed_model(provider.id, model_id, entry)
                for model_id, entry in chat_entries(answer)
            )
    return ()


async def _ask_ollama(client: httpx2.AsyncClient, finding: _Finding) -> None:
    root = finding.base_url.removesuffix("/v1")
    answer = await _ask(client, f"{root}/api/tags")
    names = [name for name, _ in entries_of(answer, "models", "name") if is_for_chat(name)]
    finding.models = {name: ModelInfo("ollama", name) for name in names}
    slots = anyio.Semaphore(_SHOWN_AT_ONCE)

    async def show(name: str) -> None:
        async with slots:
            shown = await _ask(client, f"{root}/api/show", body={"model": name})
        if isinstance(shown, dict) and (info := _ollama_model(name, shown)) is not None:
            finding.models[name] = info
        elif isinstance(shown, dict):
            finding.models.pop(name, None)

    async with anyio.create_task_group() as tasks:
        for name in tuple(finding.models):
            tasks.start_soon(show, name)


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


async def _ask_lmstudio(client: httpx2.AsyncClient, finding: _Finding) -> None:
    root = finding.base_url.removesuffix("/v1")
    answer = await _ask(client, f"{finding.base_url}/models")
    # The names first: what the newer interfaces add may come too late.
    finding.models = {name: ModelInfo("lmstudio", name) for name, _ in chat_entries(answer)}
    if not finding.models:
        return
    details = await _ask(client, f"{root}/api/v1/models")
    entries = [
        (name, entry)
        for name, entry in entries_of(details, "models", "key")
        if name in finding.models
    ]
    # What is loaded goes first: any other model takes a while and much memory to load.
    entries.sort(key=lambda pair: not _loaded_window(pair[1]))
    described = {name: _lmstudio_model(name, entry) for name, entry in entries}
    finding.models = described | {
        name: model for name, model in finding.models.items() if name not in described
    }


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


async def _ask_llamacpp(client: httpx2.AsyncClient, finding: _Finding) -> None:
    answer = await _ask(client, f"{finding.base_url}/models")
    finding.models = {
        name: listed_model("llamacpp", name, entry) for name, entry in chat_entries(answer)
    }


_ASK: Final = {"ollama": _ask_ollama, "lmstudio": _ask_lmstudio, "llamacpp": _ask_llamacpp}


@asynccontextmanager
async def _client(
    *, verify: SSLContext | bool, base_url: str = ""
) -> AsyncGenerator[httpx2.AsyncClient]:
    # Without a base URL the servers are this machine's own: no proxy leads to them.
    client = httpx2.AsyncClient(
        timeout=None,
        verify=verify,
        trust_env=bool(base_url),
        headers={"Accept": "application/json", "Accept-Encoding": "identity"},
    )
    async with client:
        yield client


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
