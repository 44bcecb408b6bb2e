"""Which kind of failure it is: by what the provider says, then by its type, then by status.

Pure. What the body says goes before the status: a conversation that is too long is too
long whatever number it comes with, and an account without credit is told so with 400, 402,
403 or 429.

Source: Anthropic, errors; OpenAI, error codes; OpenRouter, errors.
"""

import html
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
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
    RequestRejected,
)
from crush_kernel.providers.overflow import overflow_in

_OUT_OF_CREDIT: Final = re.compile(
    r"insufficient[ _](quota|balance|credit|funds)|credit balance is too low|billing_error"
    r"|exceeded your current quota|spend_limit_reached|billing_hard_limit|out of credits?"
    r"|payment[ _]required",
    re.IGNORECASE,
)
_BAD_KEY: Final = re.compile(
    r"(incorrect|invalid|missing|no) (x-)?api[ _-]?key|api key (is )?(not valid|invalid|expired)"
    r"|API_KEY_INVALID|authentication_error|invalid_api_key",
    re.IGNORECASE,
)
_NO_MODEL: Final = re.compile(
    r"model_not_found|model_not_exist|model.{0,80}(not found|does not exist|not a valid)"
    r"|(no such|unknown|invalid) model|not a valid model|no endpoints found|(^| )model: ",
    re.IGNORECASE | re.DOTALL,
)
_BY_TYPE: Final[Mapping[str, type[ProviderError]]] = {
    "authentication_error": AuthenticationFailed,
    "permission_error": AuthenticationFailed,
    "billing_error": QuotaExceeded,
    "request_too_large": ContextTooLong,
    "invalid_request_error": RequestRejected,
    "rate_limit_error": RateLimited,
    "rate_limit_exceeded": RateLimited,
    "tokens": RateLimited,
    "requests": RateLimited,
    "resource_exhausted": RateLimited,
    "overloaded_error": Overloaded,
    "timeout_error": Overloaded,
    "api_error": Overloaded,
    "server_error": Overloaded,
    "internal_error": Overloaded,
    "internal_server_error": Overloaded,
    "service_unavailable": Overloaded,
    "unavailable": Overloaded,
}


MAX_TEXT: Final = 4000
"""Characters that are searched; what a provider has to say comes first."""


@dataclass(frozen=True, slots=True)
class Said:
    """What an error body says, from whatever shape it has."""

    text: str
    types: tuple[str, ...] = ()
    """Its types, codes and states in lower case, the most telling first."""
    is_page: bool = False
    """Whether it is a web page, of which `text` is the title."""

    @property
    def everything(self) -> str:
        """Return all of it, to search in."""
        return " ".join((*self.types, self.text))


def kind_of_response(status: int, said: Said, body: str) -> type[ProviderError]:
    """Return the kind of failure that a reply with `status` and `body` is."""
    by_text = _kind_of_text(said) if status >= 400 or said.types else None
    if by_text is QuotaExceeded and status == 429 and "retryDelay" in body:
        return RateLimited  # a free tier that says when it goes on is not out of credit
    if by_text is not None and not (by_text is ContextTooLong and status in (401, 403, 429)):
        return by_text
    if said.is_page and status == 403:
        return RequestRejected  # a wall in between, not the provider's word on the key
    typed = next((_BY_TYPE[name] for name in said.types if name in _BY_TYPE), None)
    if typed is not None and (typed is not RequestRejected or status < 400):
        return typed
    return _kind_of_status(status)


def kind_of_event(error_type: str, message: str) -> type[ProviderError]:
    """Return the kind of failure that an error event inside a stream reports.

    A type that is a number, as some servers send, counts as a status. What is unknown is
    taken for trouble of the provider's own, since it had accepted the request.
    """
    kind = _kind_of_text(Said(message, (error_type.lower(),))) or _BY_TYPE.get(error_type.lower())
    if kind is not None:
        return kind
    is_status = re.fullmatch(r"[45]\d\d", error_type) is not None
    return _kind_of_status(int(error_type)) if is_status else Overloaded


def _kind_of_text(said: Said) -> type[ProviderError] | None:
    """Return what the words say where they say more than type and status."""
    words = said.everything
    if overflow_in(words) is not None:
        return ContextTooLong
    if _OUT_OF_CREDIT.search(words):
        return QuotaExceeded
    if _BAD_KEY.search(words):
        return AuthenticationFailed
    if _NO_MODEL.search(words):
        return ModelNotFound
    return None


def _kind_of_status(status: int) -> type[ProviderError]:
    match status:
        case 401 | 403:
            return AuthenticationFailed
        case 402:
            return QuotaExceeded
        case 413:
            return ContextTooLong
        case 429:
            return RateLimited
        case 408 | 409 | 425:
            return Overloaded
        case _ if status >= 500 and status != 501:
            return Overloaded
        case _ if status < 300:
            return ConnectionLost
        case _:
            return RequestRejected


def read_body(body: str) -> Said:
    """Return what `body` says, be it one of the known JSON shapes, a page, or plain text."""
    try:
        value: object = json.loads(body)
    except (ValueError, RecursionError):
        return _read_text(body)
    if isinstance(value, list):
        items = cast("list[object]", value)
        value = items[0] if items else ""
    if not isinstance(value, dict):
        return Said(_one_line(str(value)))
    return _read_object(cast("dict[str, object]", value))


def _read_text(body: str) -> Said:
    title = re.search(r"<title[^>]{0,200}>(.{0,500}?)</title", body, re.IGNORECASE | re.DOTALL)
    if title is not None:
        return Said(_one_line(html.unescape(title[1])), is_page=True)
    is_page = body.lstrip().startswith("<")
    return Said("" if is_page else _one_line(body), is_page=is_page)


def _read_object(value: dict[str, object]) -> Said:
    error = value.get("error", value)
    if not isinstance(error, dict):
        return Said(_one_line(str(error)))
    fields = cast("dict[str, object]", error)
    details = fields.get("details")
    inner = cast("dict[str, object]", details) if isinstance(details, dict) else {}
    names = (inner.get("error_code"), fields.get("code"), fields.get("type"), fields.get("status"))
    types = tuple(name.lower() for name in names if isinstance(name, str))
    text = next(
        (
            said
            for key in ("message", "detail", "error")
            if isinstance(said := fields.get(key), str)
        ),
        "",
    )
    # OpenRouter says little itself, and hands on what the server behind it has said.
    metadata = fields.get("metadata")
    raw = cast("dict[str, object]", metadata).get("raw") if isinstance(metadata, dict) else None
    return Said(_one_line(f"{text} {raw}" if isinstance(raw, str) else text), types)


def _one_line(text: str) -> str:
    return " ".join(text[: 2 * MAX_TEXT].split())[:MAX_TEXT]
