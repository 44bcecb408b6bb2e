"""Which model to ask: the default one, the ones there are, the one that a name means.

The one module that imports adapters and network code by name, when they are needed:
choosing among keys and table entries needs neither, and with no local server running
nothing is loaded to find that out.

Source: design §8 "Provider choice"; Crush, model resolution.
"""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from ssl import SSLContext
from typing import Final
from urllib.parse import urlsplit

import anyio
import anyio.to_thread

from crush_kernel.config.settings import Settings
from crush_kernel.config.state import ModelChoice, ModelSlot, State
from crush_kernel.errors import AuthenticationFailed, CommandError, ConfigError
from crush_kernel.providers.address import ollama_endpoint, without_password
from crush_kernel.providers.base import Model, ModelInfo
from crush_kernel.providers.catalog import (
    PROVIDERS,
    Provider,
    known_model,
    known_models,
    provider_of,
)
from crush_kernel.providers.matching import either_of, matching, nearest_to

_LOCAL_FOR_S: Final = 5.0
"""How long the answer of the local servers counts: people start one and look again."""

_LISTED_FOR_S: Final = 600.0
"""How long a provider's list of models counts."""

_UNLISTED_FOR_S: Final = 30.0
"""How long a provider that gave no list is left alone."""

_LOCAL_DEADLINE_S: Final = 0.5
"""For all that is asked of local servers together; a port where nobody listens is refused at
once."""

_LIST_TIMEOUT_S: Final = 3.0
"""For the list of one provider with a key."""


@dataclass(frozen=True, slots=True)
class ProviderStatus:
    """Whether a provider can be used, and if not, what is missing."""

    id: str
    name: str
    is_usable: bool
    reason: str
    """Why it is usable or not: a few words."""


class Providers:
    """The providers as this user has set them up; asks them only when it must."""

    def __init__(self, settings: Settings, state: State | None = None) -> None:
        self._settings = settings
        self._state = state
        self._local: Mapping[str, tuple[ModelInfo, ...]] | None = None
        """What the local servers that answered serve, in the table's order; `None` unasked."""
        self._local_until = 0.0
        self._lists: dict[str, tuple[float, tuple[ModelInfo, ...]]] = {}
        self._local_lock = anyio.Lock()
        self._list_lock = anyio.Lock()

    async def default(self, slot: ModelSlot = "large") -> ModelInfo:
        """Return the model to use when nobody says which.

        The setting, else the remembered choice if it can be used, else the first provider
        with a key, else a local server that answers, else the offline stand-in. Waits for
        servers without a key only, half a second at most.

        Raises:
            ConfigError: the setting names no model.
        """
        if (wanted := await self._wanted(slot)) is not None:
            return wanted
        return await self._large() if slot == "large" else self._beside(await self.default())

    async def small(self, large: ModelInfo) -> ModelInfo:
        """Return the model for small tasks while `large` is in use.

        The setting, else the remembered choice if it can be used, else the small one of the
        same provider, else `large` itself.

        Raises:
            ConfigError: the setting names no model.
        """
        return await self._wanted("small") or self._beside(large)

    def keep(self, info: ModelInfo, slot: ModelSlot = "large") -> None:
        """Remember a model as the default from now on; blocks until it is on disk.

        Raises:
            ConfigError: there is no place for it, or it cannot be written.
        """
        if self._state is None:
            raise ConfigError("There is no place to remember a model.")
        self._state.remember(slot, ModelChoice(info.provider, info.id))

    async def models(self) -> tuple[ModelInfo, ...]:
        """Return the models of all usable providers, provider by provider.

        Providers are asked side by side, three seconds at most; where one does not
        answer, the table does. Answers are kept for a while.
        """
        await self._locals()
        keyed = [provider for provider in PROVIDERS if self._is_keyed(provider)]
        async with self._list_lock, anyio.create_task_group() as tasks:
            for provider in keyed:
                tasks.start_soon(self._refresh_list, provider)
        return self._known()

    async def find(self, label: str) -> ModelInfo:
        """Return the model that `label` means.

        A label is `provider/model`, with any model id that the provider may have, or
        `provider`, or an id or part of one that fits a single model.

        Raises:
            CommandError: it means none or several; the hint names the nearest.
        """
        wanted = label.strip()
        provider, _ = _split(wanted)
        if provider is not None and not provider.is_local and self._is_ready(provider):
            return self.info(wanted)
        models = await self.models()
        found = matching(wanted, models)
        if len(found) == 1:
            return found[0]
        if found:
            raise CommandError(f"{wanted!r} means several models.", hint=f"Say {either_of(found)}.")
        if provider is not None and not self._is_ready(provider):
            status = self._status(provider)
            raise CommandError(f"{status.name} cannot be used.", hint=_sentence(status.reason))
        raise CommandError(f"No model is called {wanted!r}.", hint=nearest_to(wanted, models))

    def known(self) -> tuple[ModelInfo, ...]:
        """Return the models of all usable providers as far as they are known; asks nobody."""
        return self._known()

    def info(self, label: str) -> ModelInfo:
        """Return what is known about the model `provider/model` without asking anybody."""
        provider, model_id = _split(label)
        if provider is None:
            head, _, rest = label.rpartition("/")
            return ModelInfo(provider=head, id=rest)
        model_id = model_id or self._default_id(provider)
        exact = (
            info for info in self._known() if (info.provider, info.id) == (provider.id, model_id)
        )
        return next(exact, None) or known_model(provider.id, model_id)

    def open(self, info: ModelInfo) -> Model:
        """Return the model, ready to be asked; imports its adapter, so best in a thread.

        Raises:
            AuthenticationFailed: the provider needs a key and there is none.
            ConfigError: the provider is unknown, or its address is wrong.
        """
        provider = provider_of(info.provider)
        if provider is None:
            raise ConfigError(
                f"There is no provider {info.provider!r}.",
                hint=f"Known are {', '.join(known.id for known in PROVIDERS)}.",
            )
        if not provider.is_local and not self._is_ready(provider):
            raise AuthenticationFailed(
                f"There is no key for {provider.name}.",
                provider=provider.id,
                hint=_sentence(self._status(provider).reason),
            )
        return self._open(provider, info)

    def status(self) -> tuple[ProviderStatus, ...]:
        """Return what can be used and why, from what is known by now; asks nobody."""
        return tuple(self._status(provider) for provider in PROVIDERS)

    def _open(self, provider: Provider, info: ModelInfo) -> Model:
        # The adapters are imported here and not above: most kernels need one of them.
        if provider.protocol == "offline":
            from crush_kernel.providers.offline.model import OfflineModel  # noqa: PLC0415

            return OfflineModel(info)
        key, url = self._key(provider), self._endpoint(provider)
        verify = self._trusted(url)
        if provider.protocol == "anthropic":
            from crush_kernel.providers.anthropic import AnthropicModel  # noqa: PLC0415

            use_cache = self._settings.uses_prompt_cache
            return AnthropicModel(
                info, api_key=key, base_url=url, use_cache=use_cache, verify=verify
            )
        from crush_kernel.providers.openai import OpenAIModel  # noqa: PLC0415

        return OpenAIModel(info, api_key=key, base_url=url, verify=verify)

    def _trusted(self, url: str) -> SSLContext | bool:
        """Return the certificates to believe at `url`; loading them takes a while."""
        if not url.lower().startswith("https:"):
            return False
        from crush_kernel.providers.tls import tls_context  # noqa: PLC0415

        return tls_context(self._settings.environ)

    async def _wanted(self, slot: ModelSlot) -> ModelInfo | None:
        """Return the model that the user has chosen, by the setting or some time ago."""
        label = self._settings.model if slot == "large" else self._settings.small_model
        return await (self._set_model(label, slot) if label else self._remembered(slot))

    async def _set_model(self, label: str, slot: ModelSlot) -> ModelInfo:
        """Return the model that the setting means; one that is out of reach is still meant."""
        variable = "CRUSH_MODEL" if slot == "large" else "CRUSH_SMALL_MODEL"
        provider, model_id = _split(label)
        if provider is not None and provider.is_local:
            await self._locals()
        if provider is not None and (model_id or self._default_id(provider)):
            return self.info(label)
        known = self._known()
        found = matching(label, known)
        if len(found) == 1:
            return found[0]
        hint = f"Say {either_of(found)}." if found else nearest_to(label, known)
        what = "several models" if found else "no model"
        raise ConfigError(f"{variable} is {label!r}, which means {what}.", hint=hint)

    async def _remembered(self, slot: ModelSlot) -> ModelInfo | None:
        choice = self._state.choice(slot) if self._state is not None else None
        provider = provider_of(choice.provider) if choice is not None else None
        if choice is None or provider is None:
            return None
        if provider.is_local:
            served = (await self._locals()).get(provider.id, ())
            return next((info for info in served if info.id == choice.model), None)
        return self.info(f"{provider.id}/{choice.model}") if self._is_ready(provider) else None

    async def _large(self) -> ModelInfo:
        for provider in PROVIDERS:
            if self._is_keyed(provider):
                if not self._key(provider):
                    await self._refresh_list(provider, timeout_s=_LOCAL_DEADLINE_S)
                return self.info(provider.id)
        for served in (await self._locals()).values():
            return served[0]
        return self.info("offline")

    def _beside(self, large: ModelInfo) -> ModelInfo:
        """Return the small model of the same provider, `large` itself if there is none."""
        provider = provider_of(large.provider)
        small = provider.small if provider is not None else ""
        listed = self._lists.get(large.provider, (0.0, ()))[1]
        if not small or (listed and small not in (info.id for info in listed)):
            return large
        return self.info(f"{large.provider}/{small}")

    def _known(self) -> tuple[ModelInfo, ...]:
        """Return the models that are known by now, of usable providers only."""
        models: list[ModelInfo] = []
        for provider in PROVIDERS:
            if provider.is_local:
                models += self._served(provider)
            elif self._is_ready(provider):
                listed = self._lists.get(provider.id, (0.0, ()))[1]
                models += listed or known_models(provider.id)
        return tuple(models)

    def _default_id(self, provider: Provider) -> str:
        """Return the id of a provider's large model, empty if it serves none."""
        if provider.is_local:
            return next((info.id for info in self._served(provider)), "")
        listed = [info.id for info in self._lists.get(provider.id, (0.0, ()))[1]]
        if listed and provider.large not in listed and self._is_moved(provider):
            return listed[0]  # another server than the table means
        return provider.large

    def _served(self, provider: Provider) -> tuple[ModelInfo, ...]:
        """Return the models of a local provider, as far as they are known by now."""
        return (self._local or {}).get(provider.id, ())

    async def _locals(self) -> Mapping[str, tuple[ModelInfo, ...]]:
        """Return what the local servers serve, asked anew if the last answer is old."""
        async with self._local_lock:
            if self._local is None or anyio.current_time() >= self._local_until:
                self._local = await _ask_local(
                    {each.id: self._endpoint(each) for each in PROVIDERS if each.is_local}
                )
                self._local_until = anyio.current_time() + _LOCAL_FOR_S
            return self._local

    async def _refresh_list(self, provider: Provider, timeout_s: float = _LIST_TIMEOUT_S) -> None:
        until, _ = self._lists.get(provider.id, (0.0, ()))
        if anyio.current_time() < until:
            return
        await anyio.to_thread.run_sync(import_module, "crush_kernel.providers.discovery")
        from crush_kernel.providers.discovery import list_models  # noqa: PLC0415 - loaded above

        url = self._endpoint(provider)
        listed = await list_models(
            provider,
            api_key=self._key(provider),
            base_url=url,
            verify=await anyio.to_thread.run_sync(self._trusted, url),
            timeout_s=timeout_s,
        )
        kept_s = _LISTED_FOR_S if listed else _UNLISTED_FOR_S
        self._lists[provider.id] = (anyio.current_time() + kept_s, listed)

    def _key(self, provider: Provider) -> str:
        return self._settings.variable(*provider.key_variables)

    def _endpoint(self, provider: Provider) -> str:
        moved = self._settings.variable(*provider.endpoint_variables)
        if moved and provider.id == "ollama":
            return ollama_endpoint(moved)
        return moved.rstrip("/") or provider.endpoint

    def _is_moved(self, provider: Provider) -> bool:
        return bool(self._settings.variable(*provider.endpoint_variables))

    def _is_keyed(self, provider: Provider) -> bool:
        """Return whether a provider that is not local has what it needs."""
        if not provider.key_variables:
            return False
        return bool(self._key(provider)) or (
            provider.works_without_key and self._is_moved(provider)
        )

    def _is_ready(self, provider: Provider) -> bool:
        if provider.is_local:
            return bool(self._served(provider))
        return self._is_keyed(provider) or provider.protocol == "offline"

    def _status(self, provider: Provider) -> ProviderStatus:
        return ProviderStatus(
            id=provider.id,
            name=provider.name,
            is_usable=self._is_ready(provider),
            reason=self._reason(provider),
        )

    def _reason(self, provider: Provider) -> str:
        if provider.protocol == "offline":
            return "built in"
        if provider.is_local:
            where = without_password(self._endpoint(provider)).removesuffix("/v1")
            if self._local is None:
                return f"not asked yet at {where}"
            answers = "answers" if self._served(provider) else "nothing answers"
            return f"{answers} at {where}"
        if self._key(provider):
            return f"{provider.key_variables[0]} is set"
        if self._is_keyed(provider):
            return f"{provider.endpoint_variables[0]} is set"
        return f"set {provider.key_variables[0]}"


async def _ask_local(endpoints: Mapping[str, str]) -> dict[str, tuple[ModelInfo, ...]]:
    """Return what the local servers serve; loads no network code if no port is open."""
    start = anyio.current_time()
    is_open: set[str] = set()
    with anyio.move_on_after(_LOCAL_DEADLINE_S / 2):
        async with anyio.create_task_group() as tasks:
            for name, url in endpoints.items():
                tasks.start_soon(_knock, name, url, is_open)
    if not is_open:
        return {}
    left_s = _LOCAL_DEADLINE_S - (anyio.current_time() - start)
    await anyio.to_thread.run_sync(import_module, "crush_kernel.providers.discovery")
    from crush_kernel.providers.discovery import discover  # noqa: PLC0415 - loaded above

    asked = {name: url for name, url in endpoints.items() if name in is_open}
    return await discover(asked, deadline_s=left_s)


async def _knock(name: str, url: str, is_open: set[str]) -> None:
    """Add `name` to `is_open` if somebody listens at `url`."""
    with suppress(OSError, ValueError):
        parts = urlsplit(url)
        port = parts.port or (443 if parts.scheme == "https" else 80)
        async with await anyio.connect_tcp(parts.hostname or "", port):
            is_open.add(name)


def _split(label: str) -> tuple[Provider | None, str]:
    """Return the provider that `label` begins with, and the rest."""
    head, _, model_id = label.strip().partition("/")
    return provider_of(head.lower()), model_id.strip()


def _sentence(words: str) -> str:
    return f"{words[:1].upper()}{words[1:]}."
