"""A script of replies: what the offline provider says to prompts that it has been told of.

A script is a JSON file, the one named by `CRUSH_OFFLINE_SCRIPT` or else the bundled one of
the tour. Tools, permissions and persistence stay real; only the words are written before::

    {
      "introduce": true,
      "turns": [
        {
          "prompt": "Set the tax to 0.25.",
          "steps": [
            {"text": "I read it first.",
             "tool_calls": [{"name": "view", "input": {"file_path": "price.py"}}]},
            [
              {"if_error": true, "text": "There is no such file: {result}"},
              {"if_contains": "0.25", "text": "It is 0.25 already."},
              {"tool_calls": [{"name": "edit", "input": {"...": "..."}}]}
            ],
            [{"if_denied": true, "text": "As you like."}, {"text": "Done."}]
          ]
        },
        {"prompt": "*", "steps": [{"text": "To whatever else you ask."}]}
      ]
    }

`introduce: false` leaves out the line that says what the provider is. A prompt matches word
for word, white space aside; `*` matches what no other turn does; what nothing matches falls
to the plain requests. A step answers one request of the turn. It is a reply, or a list of
replies of which the first plays whose conditions hold for the results just before it:

- `if_denied`: a call was denied; `if_error`: a call failed or was denied; `if_contains`: a
  result has this text. Several in one reply must all hold; none always holds.
- `then`: the steps that follow this reply, instead of those that follow its list.

Fields of a reply, all optional: `text`, `reasoning`, `tool_calls` (each `name` and `input`, an
object, or a string that is sent as it is), `stop_reason`, `error` (raised after the rest has
been streamed: a name from `ERRORS`, with `retry_after_s`), `delay_s` before anything is sent,
`pace_s` between two words, `repeat`, how often the text is sent.

In a text `{result}` stands for the last result, in short and as inline code, and `{recap}`
for a list of what the conversation has brought so far.
"""

import os
from collections.abc import Mapping
from importlib import resources
from pathlib import Path
from typing import Annotated, Literal, cast

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    JsonValue,
    ValidationError,
    model_validator,
)

from crush_kernel.errors import (
    AuthenticationFailed,
    ConfigError,
    ConnectionLost,
    ContextTooLong,
    ModelNotFound,
    Overloaded,
    ProviderError,
    QuotaExceeded,
    RateLimited,
    RequestRejected,
)
from crush_kernel.providers.offline.turn import Answered, CurrentTurn

VARIABLE = "CRUSH_OFFLINE_SCRIPT"
"""Names the environment variable that holds the path of a script."""

ANY_PROMPT = "*"

ErrorName = Literal[
    "authentication_failed",
    "connection_lost",
    "context_too_long",
    "model_not_found",
    "overloaded",
    "quota_exceeded",
    "rate_limited",
    "request_rejected",
]

ERRORS: Mapping[ErrorName, type[ProviderError]] = {
    "authentication_failed": AuthenticationFailed,
    "connection_lost": ConnectionLost,
    "context_too_long": ContextTooLong,
    "model_not_found": ModelNotFound,
    "overloaded": Overloaded,
    "quota_exceeded": QuotaExceeded,
    "rate_limited": RateLimited,
    "request_rejected": RequestRejected,
}


class _Written(BaseModel):
    """What a person writes: unknown names are errors, values are final."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class WrittenCall(_Written):
    """A call of the tool `name`."""

    name: str = Field(min_length=1)
    input: dict[str, JsonValue] | str = Field(default_factory=dict[str, JsonValue])
    """The arguments; a string is sent as it is, valid or not."""


class Reply(_Written):
    """What is said to one request."""

    text: str = ""
    reasoning: str = ""
    tool_calls: tuple[WrittenCall, ...] = ()
    stop_reason: Literal["end_turn", "tool_use", "max_tokens", "refused"] | None = None
    """By default `tool_use` if there are calls, else `end_turn`."""
    error: ErrorName | None = None
    retry_after_s: float | None = Field(default=None, ge=0)
    delay_s: float = Field(default=0, ge=0)
    pace_s: float = Field(default=0, ge=0)
    repeat: int = Field(default=1, ge=1)


def _listed(value: object) -> object:
    """Return a step that is a single reply as a list of one."""
    return cast("list[object]", value) if isinstance(value, list) else [value]


class Variant(Reply):
    """A reply that is said on conditions."""

    if_denied: bool = False
    if_error: bool = False
    if_contains: str = ""
    then: tuple["Step", ...] = ()
    """The steps that follow, if not those after the list that this reply stands in."""

    def fits(self, before: tuple[Answered, ...]) -> bool:
        """Return whether the conditions hold for the results `before` this reply."""
        outcomes = {answered.outcome for answered in before}
        contents = [answered.result.content for answered in before]
        return (
            (not self.if_denied or "denied" in outcomes)
            and (not self.if_error or not outcomes <= {"ok"})
            and (not self.if_contains or any(self.if_contains in content for content in contents))
        )


Step = Annotated[tuple[Variant, ...], BeforeValidator(_listed), Field(min_length=1)]


class WrittenTurn(_Written):
    """What is said to `prompt`, request by request."""

    prompt: str = Field(min_length=1)
    steps: tuple[Step, ...] = Field(min_length=1)

    def reply(self, turn: CurrentTurn) -> Reply | None:
        """Return what comes next in `turn`, `None` where nothing is written.

        The way to here is found again from the history, so that a script needs no state
        and the same history always gets the same reply.
        """
        steps, before = self.steps, ()
        for exchange in turn.exchanges:
            said = _first_that_fits(steps, before)
            if said is None:
                return None
            steps, before = said.then or steps[1:], exchange.answers
        return _first_that_fits(steps, before)


def _first_that_fits(steps: tuple[Step, ...], before: tuple[Answered, ...]) -> Variant | None:
    return next((variant for variant in steps[0] if variant.fits(before)), None) if steps else None


class Script(_Written):
    """Everything that is written; the empty script leaves all to the plain requests."""

    introduce: bool = True
    turns: tuple[WrittenTurn, ...] = ()

    @model_validator(mode="after")
    def _prompts_differ(self) -> "Script":
        prompts = [normalized(turn.prompt) for turn in self.turns]
        twice = next((prompt for prompt in prompts if prompts.count(prompt) > 1), None)
        if twice is not None:
            raise ValueError(f"the prompt {twice!r} has two turns; make them one")
        return self

    def find(self, prompt: str) -> WrittenTurn | None:
        """Return the turn that is written for `prompt`."""
        wanted = normalized(prompt)
        exact = (turn for turn in self.turns if normalized(turn.prompt) == wanted)
        other = (turn for turn in self.turns if turn.prompt == ANY_PROMPT)
        return next(exact, None) or next(other, None)


def normalized(prompt: str) -> str:
    """Return `prompt` with every run of white space as one space, none at the ends."""
    return " ".join(prompt.split())


def open_script(environ: Mapping[str, str] = os.environ) -> Script:
    """Return the script that `environ` names, or the bundled one.

    Raises:
        ConfigError: the file cannot be read or is no script.
    """
    named = environ.get(VARIABLE, "").strip()
    if named:
        return read_script(Path(named).expanduser())
    bundled = resources.files("crush_kernel.providers.offline").joinpath("scripts", "tour.json")
    return Script.model_validate_json(bundled.read_bytes())


def read_script(path: Path) -> Script:
    """Return the script in the file `path`.

    Raises:
        ConfigError: the file cannot be read or is no script.
    """
    try:
        return Script.model_validate_json(path.read_bytes())
    except OSError as error:
        raise ConfigError(
            f"The offline script {str(path)!r} cannot be read: {error.strerror or error}.",
            path=path,
            hint=f"Set {VARIABLE} to a script, or unset it.",
        ) from error
    except ValidationError as error:
        raise ConfigError(
            f"The offline script {str(path)!r} is not valid: {_faults(error)}.",
            path=path,
            hint=f"Correct it, or unset {VARIABLE}.",
        ) from error


def _faults(error: ValidationError) -> str:
    """Return what is wrong and where, the first three faults."""
    faults = [
        f"{'.'.join(map(str, fault['loc'])) or 'the file'}: {fault['msg']}"
        for fault in error.errors(include_url=False)
    ]
    more = f"; and {len(faults) - 3} more" if len(faults) > 3 else ""
    return "; ".join(faults[:3]) + more
