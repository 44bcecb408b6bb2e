"""The table of providers, and the models of theirs that are known by heart.

Pure data. A model need not be in the table to be used: `known_model` answers for any id,
with zeros for what is not known. Prices are the standard ones per million tokens; a model
whose price depends on the request, or is not known for sure, has none.

Source: Crush, catalog table; the providers' public model pages.
"""

import re
from dataclasses import dataclass, replace
from typing import Final, Literal

from crush_kernel.providers.base import ModelInfo

Protocol = Literal["anthropic", "openai", "offline"]
"""The wire protocol, which is also the name of the adapter's module."""


@dataclass(frozen=True, slots=True)
class Provider:
    """Where a provider is, what opens it, and what to use of it by default."""

    id: str
    name: str
    protocol: Protocol = "openai"
    endpoint: str = ""
    key_variables: tuple[str, ...] = ()
    """Environment variables that may hold the key, the first that does counts."""
    endpoint_variables: tuple[str, ...] = ()
    """Environment variables that may move the endpoint."""
    large: str = ""
    """The id of the default large model."""
    small: str = ""
    is_local: bool = False
    """Whether it runs on the user's machine, needs no key, and serves what it has loaded."""
    works_without_key: bool = False
    """Whether a moved endpoint alone makes it usable."""


PROVIDERS: Final[tuple[Provider, ...]] = (
    Provider(
        id="anthropic",
        name="Anthropic",
        protocol="anthropic",
        endpoint="https://api.anthropic.com",
        key_variables=("ANTHROPIC_API_KEY",),
        endpoint_variables=("ANTHROPIC_BASE_URL", "ANTHROPIC_API_ENDPOINT"),
        large="claude-sonnet-4-6",
        small="claude-haiku-4-5",
    ),
    Provider(
        id="openai",
        name="OpenAI",
        endpoint="https://api.openai.com/v1",
        key_variables=("OPENAI_API_KEY",),
        endpoint_variables=("OPENAI_BASE_URL", "OPENAI_API_ENDPOINT"),
        large="gpt-5.6-sol",
        small="gpt-5.6-luna",
        works_without_key=True,
    ),
    Provider(
        id="xai",
        name="xAI",
        endpoint="https://api.x.ai/v1",
        key_variables=("XAI_API_KEY",),
        large="grok-4.5",
        small="grok-4.5",
    ),
    Provider(
        id="zai",
        name="Z.ai",
        endpoint="https://api.z.ai/api/coding/paas/v4",
        key_variables=("ZAI_API_KEY",),
        large="glm-5.2",
        small="glm-5-turbo",
    ),
    Provider(
        id="moonshot",
        name="Moonshot AI",
        endpoint="https://api.moonshot.ai/v1",
        key_variables=("MOONSHOT_API_KEY",),
        large="kimi-k3",
        small="kimi-k2.7-code",
    ),
    Provider(
        id="cerebras",
        name="Cerebras",
        endpoint="https://api.cerebras.ai/v1",
        key_variables=("CEREBRAS_API_KEY",),
        large="gpt-oss-120b",
        small="gemma-4-31b",
    ),
    Provider(
        id="deepseek",
        name="DeepSeek",
        endpoint="https://api.deepseek.com/v1",
        key_variables=("DEEPSEEK_API_KEY",),
        large="deepseek-v4-pro",
        small="deepseek-v4-flash",
    ),
    Provider(
        id="fireworks",
        name="Fireworks AI",
        endpoint="https://api.fireworks.ai/inference/v1",
        key_variables=("FIREWORKS_API_KEY",),
        large="accounts/fireworks/models/deepseek-v4-pro",
        small="accounts/fireworks/models/deepseek-v4-flash",
    ),
    Provider(
        id="groq",
        name="Groq",
        endpoint="https://api.groq.com/openai/v1",
        key_variables=("GROQ_API_KEY",),
        large="moonshotai/kimi-k2-instruct-0905",
        small="qwen/qwen3-32b",
    ),
    Provider(
        id="openrouter",
        name="OpenRouter",
        endpoint="https://openrouter.ai/api/v1",
        key_variables=("OPENROUTER_API_KEY",),
        large="anthropic/claude-sonnet-4.6",
        small="anthropic/claude-haiku-4.5",
    ),
    # Last of those with a key: many have this variable set to download models, not to ask.
    Provider(
        id="huggingface",
        name="Hugging Face",
        endpoint="https://router.huggingface.co/v1",
        key_variables=("HF_TOKEN",),
        large="zai-org/GLM-5.2",
        small="google/gemma-4-31B-it",
    ),
    Provider(
        id="ollama",
        name="Ollama",
        endpoint="http://127.0.0.1:11434/v1",
        endpoint_variables=("OLLAMA_HOST",),
        is_local=True,
    ),
    Provider(
        id="lmstudio",
        name="LM Studio",
        endpoint="http://127.0.0.1:1234/v1",
        endpoint_variables=("LMSTUDIO_BASE_URL",),
        is_local=True,
    ),
    Provider(
        id="llamacpp",
        name="llama.cpp",
        endpoint="http://127.0.0.1:8080/v1",
        endpoint_variables=("LLAMACPP_BASE_URL",),
        is_local=True,
    ),
    Provider(
        id="offline",
        name="Offline",
        protocol="offline",
        large="offline",
        small="offline",
    ),
)
"""All providers; the first that is usable is the default one."""


def provider_of(provider_id: str) -> Provider | None:
    """Return the provider with that id."""
    return next((provider for provider in PROVIDERS if provider.id == provider_id), None)


def known_model(provider_id: str, model_id: str) -> ModelInfo:
    """Return what is known about a model, by its id with or without a date at the end.

    Any id makes a model; of an unknown one little more than its family is known.
    """
    for candidate in (model_id, undated(model_id)):
        if found := _BY_LABEL.get(f"{provider_id}/{candidate}"):
            return replace(found, id=model_id)
    sees = re.match(_FAMILIES.get(provider_id, "$."), model_id) is not None
    return ModelInfo(
        provider=provider_id,
        id=model_id,
        accepts_images=sees,
        accepts_documents=sees,
        can_reason=sees,
    )


def undated(model_id: str) -> str:
    """Return a model's id or label without the date at its end."""
    return _DATED.sub("", model_id)


def known_models(provider_id: str) -> tuple[ModelInfo, ...]:
    """Return the table's models of a provider, its default ones first."""
    provider = provider_of(provider_id)
    if provider is None:
        return ()
    defaults = dict.fromkeys(model for model in (provider.large, provider.small) if model)
    ids = dict.fromkeys((*defaults, *(m.id for m in MODELS if m.provider == provider_id)))
    return tuple(known_model(provider_id, model_id) for model_id in ids)


_FAMILIES: Final = {"anthropic": "claude-", "openai": r"gpt-[5-9]|o[3-9]\b"}
"""Models newer than the table read images, documents, and reason, as their elders do."""

_DATED: Final = re.compile(r"-(?:\d{8}|\d{4}-\d{2}-\d{2}|latest)\Z")


def _model(label: str, name: str, window: int, output: int, *prices: float) -> ModelInfo:
    """Return a model that reads files and reasons, with its four prices or none at all."""
    provider, _, model_id = label.partition("/")
    reading, writing, cached, caching = prices or (None, None, None, None)
    return ModelInfo(
        provider=provider,
        id=model_id,
        name=name,
        context_window=window,
        max_output_tokens=output,
        input_price=reading,
        output_price=writing,
        cache_read_price=cached,
        cache_write_price=caching,
        accepts_images=True,
        accepts_documents=True,
        can_reason=True,
    )


_K: Final = 1_000
_M: Final = 1_000_000

MODELS: Final[tuple[ModelInfo, ...]] = (
    _model("anthropic/claude-opus-5", "Claude Opus 5", _M, 128 * _K, 5, 25, 0.5, 6.25),
    _model("anthropic/claude-opus-4-6", "Claude Opus 4.6", _M, 128 * _K, 5, 25, 0.5, 6.25),
    _model("anthropic/claude-opus-4-5", "Claude Opus 4.5", 200 * _K, 64 * _K, 5, 25, 0.5, 6.25),
    _model("anthropic/claude-opus-4-1", "Claude Opus 4.1", 200 * _K, 32 * _K, 15, 75, 1.5, 18.75),
    _model("anthropic/claude-sonnet-5", "Claude Sonnet 5", _M, 128 * _K, 2, 10, 0.2, 2.5),
    _model("anthropic/claude-sonnet-4-6", "Claude Sonnet 4.6", _M, 64 * _K, 3, 15, 0.3, 3.75),
    _model("anthropic/claude-sonnet-4-5", "Claude Sonnet 4.5", 200 * _K, 64 * _K, 3, 15, 0.3, 3.75),
    _model("anthropic/claude-haiku-4-5", "Claude Haiku 4.5", 200 * _K, 64 * _K, 1, 5, 0.1, 1.25),
    # Two prices by the length of the prompt, which one number cannot say.
    _model("openai/gpt-5.6-sol", "GPT-5.6 Sol", 1050 * _K, 128 * _K),
    _model("openai/gpt-5.6-luna", "GPT-5.6 Luna", 1050 * _K, 128 * _K),
    _model("openai/gpt-5.2", "GPT-5.2", 400 * _K, 128 * _K, 1.75, 14, 0.175, 1.75),
    _model("openai/gpt-5.1", "GPT-5.1", 400 * _K, 128 * _K, 1.25, 10, 0.125, 1.25),
    _model("openai/gpt-5", "GPT-5", 400 * _K, 128 * _K, 1.25, 10, 0.125, 1.25),
    _model("openai/gpt-5-mini", "GPT-5 mini", 400 * _K, 128 * _K, 0.25, 2, 0.025, 0.25),
    _model("openai/gpt-5-nano", "GPT-5 nano", 400 * _K, 128 * _K, 0.05, 0.4, 0.005, 0.05),
    _model("openai/o3", "o3", 200 * _K, 100 * _K, 2, 8, 0.5, 2),
    _model("openai/o4-mini", "o4-mini", 200 * _K, 100 * _K, 1.1, 4.4, 0.275, 1.1),
    *(
        replace(model, can_reason=False)
        for model in (
            _model("openai/gpt-4.1", "GPT-4.1", 1_047_576, 32_768, 2, 8, 0.5, 2),
            _model("openai/gpt-4.1-mini", "GPT-4.1 mini", 1_047_576, 32_768, 0.4, 1.6, 0.1, 0.4),
            _model("openai/gpt-4o", "GPT-4o", 128 * _K, 16_384, 2.5, 10, 1.25, 2.5),
            _model("openai/gpt-4o-mini", "GPT-4o mini", 128 * _K, 16_384, 0.15, 0.6, 0.075, 0.15),
        )
    ),
    ModelInfo(provider="offline", id="offline", name="Offline stand-in"),
)

_BY_LABEL: Final = {model.label: model for model in MODELS}
