"""Checks of the model providers: which can be used, and which would be."""

from collections.abc import Sequence

from crush_kernel.cli.findings import Finding
from crush_kernel.config.settings import Settings
from crush_kernel.config.state import FILE_NAME, State
from crush_kernel.errors import CrushKernelError
from crush_kernel.providers.selection import Providers

_CONNECT = (
    "Set a key such as ANTHROPIC_API_KEY before you start Jupyter, or start Ollama, LM Studio "
    "or llama.cpp."
)


async def provider_findings(settings: Settings) -> Sequence[Finding]:
    """Return what there is to say about the providers.

    Asks the servers on this machine, and the providers with a key for their models.
    """
    providers = Providers(settings, State(settings.directories.data / FILE_NAME))
    default = await _default(providers)
    await providers.models()
    usable = [
        Finding("ok", f"{status.name}: {status.reason}")
        for status in providers.status()
        if status.is_usable and status.id != "offline"
    ]
    return (*usable, default)


async def _default(providers: Providers) -> Finding:
    """Return which model a new notebook asks; chosen as the kernel does, before any list."""
    try:
        model = await providers.default()
    except CrushKernelError as error:
        return Finding("broken", str(error), error.hint)
    if model.provider == "offline":
        text = "no model is connected; the offline stand-in answers, which is not a language model"
        return Finding("warning", text, _CONNECT)
    return Finding("ok", f"new notebooks use {model.label}")
