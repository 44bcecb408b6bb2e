"""The exception tree.

::

    CrushKernelError
    ├── ConfigError                    the user's settings cannot be used
    ├── CommandError                   a `/command` cannot be carried out
    │   └── NothingToDo                there is nothing that it could do, which is no failure
    ├── ProviderError                  the model provider failed
    │   ├── AuthenticationFailed       key missing, wrong or without rights
    │   ├── QuotaExceeded              out of credit; waiting does not help
    │   ├── ModelNotFound              no such model at this provider
    │   ├── ContextTooLong             the request exceeds the context window
    │   ├── RequestRejected            the provider refuses the request as it is
    │   ├── RateLimited                too many requests; wait and retry
    │   ├── Overloaded                 the provider has trouble; wait and retry
    │   └── ConnectionLost             unreachable, cut off, stalled or garbled
    ├── TurnError                      a turn ended without a proper reply
    │   ├── LoopDetected               the same calls again and again
    │   ├── StepLimitReached           too many requests in one turn
    │   ├── TimeLimitReached           the turn took longer than allowed
    │   ├── CostLimitReached           the turn cost more than allowed
    │   ├── TokenLimitReached          the turn used more tokens than allowed
    │   ├── OutputLimitReached         the reply was cut off at the output limit
    │   ├── ReplyRefused               the provider's filter stopped the reply
    │   ├── PromptBlocked              a hook of the user's stopped the prompt
    │   └── EmptyReply                 the model said nothing
    └── ToolError                      one tool call failed; the model reads why
        └── PermissionDenied           the user or the policy said no

Class names are stable: they are the `ename` of a failed `execute_reply`. A message is one
sentence; `hint` is one more that says what to do; `detail` is what to fold away.
"""

from pathlib import Path
from typing import ClassVar


class CrushKernelError(Exception):
    """The root of everything that this package raises on purpose."""

    def __init__(self, message: str, *, hint: str = "", detail: str = "") -> None:
        super().__init__(message)
        self.hint = hint
        """What the user can do about it: one sentence, or empty."""
        self.detail = detail
        """Raw material for the curious, such as the body of a reply; bounded by the raiser."""


class ConfigError(CrushKernelError):
    """The user's settings cannot be used."""

    def __init__(self, message: str, *, path: Path | None = None, hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.path = path
        """The file at fault, if a file is."""


class CommandError(CrushKernelError):
    """A `/command` cannot be carried out."""


class NothingToDo(CommandError):
    """All that a `/command` would do is done already: its cell says so, and has not failed."""


class ProviderError(CrushKernelError):
    """The model provider failed."""

    is_retryable: ClassVar[bool] = False
    """Whether the same request may succeed later."""

    def __init__(
        self,
        message: str,
        *,
        provider: str = "",
        status: int | None = None,
        retry_after_s: float | None = None,
        hint: str = "",
        detail: str = "",
    ) -> None:
        super().__init__(message, hint=hint, detail=detail)
        self.provider = provider
        """The provider's id, such as `anthropic`."""
        self.status = status
        """The HTTP status, if there was a reply."""
        self.retry_after_s = retry_after_s
        """Seconds the provider asks to wait, if it says so."""


class AuthenticationFailed(ProviderError):
    """The key is missing, wrong, expired or lacks rights (401, 403)."""


class QuotaExceeded(ProviderError):
    """The account is out of credit; waiting does not help (402, `insufficient_quota`)."""


class ModelNotFound(ProviderError):
    """The provider has no such model (404)."""


class ContextTooLong(ProviderError):
    """The request exceeds the model's context window, or what the provider takes at all."""

    limit_tokens: int | None = None
    """The size of the window, if the provider names it."""
    asked_tokens: int | None = None
    """The size of the prompt by the provider's count, if it names it."""
    is_body: bool = False
    """Whether it is the bytes of the request that are too many, which says nothing of tokens."""


class RequestRejected(ProviderError):
    """The provider refuses the request as it is (other 4xx)."""

    places: tuple[tuple[int, int], ...] = ()
    """Which parts of the request it names, each by the index of a message and of a part of it."""


class RateLimited(ProviderError):
    """Too many requests or tokens for now (429)."""

    is_retryable = True


class Overloaded(ProviderError):
    """The provider has trouble of its own (5xx, 529, or an error event that says so)."""

    is_retryable = True


class ConnectionLost(ProviderError):
    """The provider cannot be reached, or its reply was cut off, stalled or garbled."""

    is_retryable = True


class TurnError(CrushKernelError):
    """A turn ended without a proper reply."""


class LoopDetected(TurnError):
    """The model repeats the same calls to no effect."""


class StepLimitReached(TurnError):
    """The turn took more requests than allowed."""


class TimeLimitReached(TurnError):
    """The turn took longer than allowed."""


class CostLimitReached(TurnError):
    """The turn cost more than allowed."""


class TokenLimitReached(TurnError):
    """The turn used more tokens than allowed."""


class OutputLimitReached(TurnError):
    """The reply was cut off at the output limit, again and again."""


class ReplyRefused(TurnError):
    """The provider's content filter stopped the reply."""


class PromptBlocked(TurnError):
    """A hook of the user's stopped the prompt before it was sent."""


class EmptyReply(TurnError):
    """The model ended its turn without a word, twice."""


class ToolError(CrushKernelError):
    """One tool call failed; the message is for the model, which reads it as an error result."""


class PermissionDenied(ToolError):
    """The user or the policy refused the call; the turn goes on."""
