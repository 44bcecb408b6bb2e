"""What went wrong at a provider: from status, headers and body to our error tree.

Pure, and the one such map for all adapters; which kind a failure is says
`providers.failure_kinds`. Messages are one sentence for the user; what the provider wrote
is cut short, freed of anything like a key, and kept as the detail.
"""

import re
import socket
import ssl
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Final, cast

from crush_kernel.errors import (
    AuthenticationFailed,
    ConnectionLost,
    ContextTooLong,
    ModelNotFound,
    Overloaded,
    ProviderError,
    QuotaExceeded,
    RateLimited,
)
from crush_kernel.providers.catalog import provider_of
from crush_kernel.providers.failure_kinds import (
    MAX_TEXT,
    kind_of_event,
    kind_of_response,
    read_body,
)
from crush_kernel.providers.overflow import overflow_in
from crush_kernel.providers.retry_after import retry_after, wait_in_body

MAX_SAID: Final = 300
"""Characters of the provider's own words that a message may quote."""
_MAX_READ: Final = 100_000
"""Characters of a body that are looked at."""
MAX_DETAIL: Final = 2000
"""Characters of a body that are kept."""
_TOO_LARGE: Final = 413

_SECRET: Final = re.compile(
    r"(?<![\w-])(?:(?:sk|pk|rk|gsk|xai|hf|csk|fw|r8|nvapi|vck)[-_]|AIza|ABSK)[\w*.-]{8,}"
    r"|[\w-]{0,40}\*{3,}[\w-]{0,40}"
)
_BEARER: Final = re.compile(r"(?i)(bearer\s+|(?:x-)?api[-_]key[\"']?\s*[:=]\s*[\"']?)[^\s\"',]{6,}")

_SELF_EXPLAINING: Final = (AuthenticationFailed, QuotaExceeded, ContextTooLong, Overloaded)
"""Kinds whose message is complete without the provider's own words."""


def from_response(
    provider: str,
    status: int,
    headers: Mapping[str, str],
    body: str,
    *,
    now: datetime,
    secrets: tuple[str, ...] = (),
) -> ProviderError:
    """Return the error that a reply which is not a stream amounts to.

    Args:
        provider: the id of the provider.
        status: of the reply; a 2xx is a reply that should have been a stream.
        headers: of the reply, names in any case.
        body: of the reply, decoded leniently, cut off or not.
        now: the time, against which dates to wait for are measured.
        secrets: texts that must not appear in the error, such as the key.
    """
    body = body[:_MAX_READ]
    said = read_body(body)
    kind = kind_of_response(status, said, body)
    return _build(
        kind,
        provider,
        status=status,
        said=redact(said.text[: 2 * MAX_SAID], secrets)
        if said.is_page or kind not in _SELF_EXPLAINING
        else "",
        detail=redact(body[: 2 * MAX_DETAIL], secrets),
        retry_after_s=retry_after(headers, body, now) if kind.is_retryable else None,
    )


def from_error_event(
    provider: str, error_type: str, message: str, *, secrets: tuple[str, ...] = ()
) -> ProviderError:
    """Return the error that an event inside a stream reports; its type decides."""
    message = message[:MAX_TEXT]
    kind = kind_of_event(error_type, message)
    status = int(error_type) if re.fullmatch(r"[45]\d\d", error_type) else None
    text = redact(message, secrets)
    detail = f"{error_type[:100]}: {text}"
    wait = wait_in_body(message) if kind.is_retryable else None
    return _build(kind, provider, status=status, said=text, detail=detail, retry_after_s=wait)


def cut_off(provider: str, *, detail: str = "") -> ConnectionLost:
    """Return the error for a stream that ended before the reply was complete."""
    return _lost(provider, f"The reply of {_name(provider)} broke off.", detail=detail)


def garbled(provider: str, *, detail: str = "") -> ConnectionLost:
    """Return the error for a stream that does not keep to the protocol."""
    return _lost(provider, f"The reply of {_name(provider)} cannot be read.", detail=detail)


def overfull(provider: str) -> ContextTooLong:
    """Return the error for a reply that had no room: it is over, and nothing was said."""
    message, hint = _words(ContextTooLong, provider, None, "")
    return ContextTooLong(message, provider=provider, hint=hint, detail="The reply is empty.")


def silent(provider: str, seconds: float) -> ConnectionLost:
    """Return the error for a connection on which nothing has come for `seconds`."""
    return _lost(provider, f"{_name(provider)} sent nothing for {seconds:g} s.")


def unreachable(
    provider: str, error: BaseException, *, address: str = "", secrets: tuple[str, ...] = ()
) -> ConnectionLost:
    """Return the error for a connection that failed with `error`, whatever library raised it.

    The reason is looked for among the causes of `error`, down to those of Python itself.
    """
    where = f" at {address}" if address else ""
    name = _name(provider)
    detail = redact("\n".join(_described(cause) for cause in _causes(error)), secrets)
    for cause in _causes(error):
        match cause:
            case ssl.SSLCertVerificationError():
                return _lost(
                    provider,
                    f"The certificate of {name}{where} is not trusted.",
                    hint="If a proxy of yours signs it, set `SSL_CERT_FILE` to its certificate.",
                    detail=detail,
                )
            case socket.gaierror():
                return _lost(provider, f"The name of {name}{where} is not known.", detail=detail)
            case ConnectionRefusedError():
                return _lost(provider, f"Nothing answers for {name}{where}.", detail=detail)
            case ConnectionResetError() | BrokenPipeError():
                return _lost(provider, f"{name} reset the connection.", detail=detail)
            case TimeoutError():
                return _lost(provider, f"{name}{where} does not answer.", detail=detail)
            case _:
                pass
    return _lost(provider, f"The connection to {name}{where} was lost.", detail=detail)


def redact(text: str, secrets: tuple[str, ...] = ()) -> str:
    """Return `text` with `secrets`, and whatever looks like a key, replaced."""
    for secret in secrets:
        for form in {secret, secret.removeprefix("Bearer ")}:
            if len(form) > 3:
                text = text.replace(form, "[key]")
    return _BEARER.sub(r"\1[key]", _SECRET.sub("[key]", text))


def _build(
    kind: type[ProviderError],
    provider: str,
    *,
    status: int | None,
    said: str,
    detail: str,
    retry_after_s: float | None,
) -> ProviderError:
    message, hint = _words(kind, provider, status, said)
    error = kind(
        message,
        provider=provider,
        status=status,
        retry_after_s=retry_after_s,
        hint=hint,
        detail=detail if len(detail) <= MAX_DETAIL else f"{detail[:MAX_DETAIL]}…",
    )
    if isinstance(error, ContextTooLong):
        if overflow := overflow_in(detail[:MAX_TEXT]):
            error.limit_tokens = overflow.limit_tokens
            error.asked_tokens = overflow.asked_tokens
        else:
            error.is_body = status == _TOO_LARGE or "request_too_large" in detail[:MAX_TEXT]
    return error


def _words(
    kind: type[ProviderError], provider: str, status: int | None, said: str
) -> tuple[str, str]:
    """Return the sentence of what happened and the sentence of what to do."""
    name = _name(provider)
    number = "" if status is None else f" ({status})"
    quoted = f": {said[:MAX_SAID].rstrip('. ')}." if said else "."
    if kind is AuthenticationFailed:
        return f"{name} refused the key{number}.", f"Check {_key_variable(provider)}."
    if kind is QuotaExceeded:
        return (
            f"The account at {name} is out of credit{number}.",
            "Add credit there, or choose another model with `/model`.",
        )
    if kind is ModelNotFound:
        return f"{name} has no such model{number}{quoted}", "List the models with `/model`."
    if kind is ContextTooLong:
        return (
            f"The conversation is too long for the model{number}.",
            "Remove cells or large outputs above, or choose a model with a larger window.",
        )
    if kind is RateLimited:
        return f"{name} takes no more requests for now{number}.", "Wait, then run the cell again."
    if kind is Overloaded:
        return (
            f"{name} {_trouble(status)}{number}{quoted if status else '.'}",
            "Run the cell again in a while, or choose another model with `/model`.",
        )
    if kind is ConnectionLost:
        return (
            f"{name} answered with something that is not a reply{quoted}",
            "Check the address of the provider, and whether a proxy stands in between.",
        )
    return (
        f"{name} refused the request{number}{quoted}",
        "If it happens again, choose another model with `/model`, or check the provider's address.",
    )


def _trouble(status: int | None) -> str:
    if status is not None and 520 <= status <= 530 and status != 529:
        return "cannot be reached behind its proxy"
    return "is overloaded" if status in (None, 503, 529) else "has trouble of its own"


def _lost(provider: str, message: str, *, hint: str = "", detail: str = "") -> ConnectionLost:
    return ConnectionLost(
        message,
        provider=provider,
        hint=hint or "Check the connection, then run the cell again.",
        detail=detail[:MAX_DETAIL],
    )


def _causes(error: BaseException) -> Iterator[BaseException]:
    """Yield `error` and all that led to it, the members of groups included."""
    seen: set[int] = set()
    todo = [error]
    while todo:
        current = todo.pop(0)
        if id(current) in seen:
            continue
        seen.add(id(current))
        yield current
        todo += [cause for cause in (current.__cause__, current.__context__) if cause is not None]
        if isinstance(current, BaseExceptionGroup):
            todo += cast("BaseExceptionGroup[BaseException]", current).exceptions


def _described(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"


def _name(provider: str) -> str:
    known = provider_of(provider)
    return known.name if known is not None else provider or "the provider"


def _key_variable(provider: str) -> str:
    known = provider_of(provider)
    if known is None or not known.key_variables:
        return "the key"
    return f"`{known.key_variables[0]}`"
