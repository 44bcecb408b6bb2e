"""What the server needs to know of an API: what it refuses, and how it speaks."""

from collections.abc import Mapping
from typing import Literal, Protocol, TypeAlias

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from crush_kernel.messages import JsonObject
from tests.fakes.provider.replies import Beat, Hold, HttpReply, Reply

Step: TypeAlias = bytes | Hold | Beat
"""One write of a streamed body, or what to do between two."""


class Refused(Exception):
    """The API refuses the request, in its own words."""

    def __init__(
        self,
        message: str,
        *,
        status: int = 400,
        kind: str = "invalid_request_error",
        param: str | None = None,
        code: str | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.status = status
        self.kind = kind
        self.param = param
        self.code = code


class Dialect(Protocol):
    """One API."""

    @property
    def name(self) -> Literal["anthropic", "openai"]:
        """Whose API it is."""
        ...

    def check(self, headers: Mapping[str, str], body: JsonObject) -> None:
        """Raise `Refused` for whatever the real API refuses."""
        ...

    def refusal(self, refused: Refused) -> HttpReply:
        """Return the refusal as the API words it."""
        ...

    def render(self, reply: Reply, body: JsonObject) -> list[Step]:
        """Return the events of `reply` to the request `body`, a write each."""
        ...

    def models(self, names: tuple[str, ...]) -> JsonObject:
        """Return the list of models."""
        ...


def deepest(error: ValidationError) -> ErrorDetails:
    """Return the complaint that is furthest inside: the others are about union members."""
    return max(error.errors(), key=lambda complaint: len(complaint["loc"]))
