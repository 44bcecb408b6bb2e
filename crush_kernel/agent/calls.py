"""One call as the model wrote it: read and checked, then run; its faults are said to the model.

What can be meant in one way only is let pass: raw line breaks in strings, `"5"` for a number,
`"true"` for a truth value, null for what may be left out. Nothing else is guessed, since a
guess may run half a call.
"""

import json
import logging
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import cast

from pydantic import ValidationError

from crush_kernel.errors import PermissionDenied, ToolError
from crush_kernel.files.names import printable
from crush_kernel.messages import ToolCall
from crush_kernel.tools.base import AnyTool, Arguments, ToolContext, ToolOutput, limit_output

logger = logging.getLogger(__name__)

MAX_FAULT_BYTES = 2_000
"""How much is said of a call that makes no sense: it may repeat what the model wrote."""

MAX_FAULTS = 8
"""How many faults of one call are named."""

_MAX_NAME_CHARACTERS = 100
"""What is shown of a name that does not exist, and compared with those that do."""

_MIN_LIKENESS = 70.0
"""Of 100: below it a name is another word."""


@dataclass(frozen=True, slots=True)
class Prepared:
    """A call that was read: it can be run, or it is known what is wrong with it."""

    run: Callable[[ToolContext], Awaitable[ToolOutput]]
    """Gives the output, or what is wrong."""
    shown: str = ""
    """The arguments in short, empty where they make no sense."""
    timeout_s: float | None = None
    """How long it may run, see `Tool.timeout_s`."""
    is_harmless: bool = False
    """Whether it touches nothing, see `Tool.is_harmless`."""
    is_faulty: bool = False
    """Whether `run` can do nothing but say what is wrong with it."""


def prepare(call: ToolCall, tools: Mapping[str, AnyTool]) -> Prepared:
    """Return `call` ready to be run, or with what the model should read about its faults."""
    tool = tools.get(call.name)
    if tool is None:
        return _faulty(_unknown_tool(call.name, tools))
    try:
        arguments = _read(call.input, tool)
    except _BadCall as error:
        return _faulty(f"{error} Nothing was run.")
    return Prepared(
        run=partial(run_tool, tool, arguments),
        shown=_described(tool, arguments),
        timeout_s=tool.timeout_s,
        is_harmless=tool.is_harmless,
    )


def not_json(name: str) -> Prepared:
    """Return a call of `name` whose arguments only some readers take for JSON."""
    return _faulty(f"The arguments of {name} are not valid JSON. Nothing was run.")


async def run_tool(tool: AnyTool, arguments: Arguments, context: ToolContext) -> ToolOutput:
    """Return what `tool` gives, its exceptions turned into error outputs for the model."""
    try:
        return await tool.run(arguments, context)
    except PermissionDenied as error:
        return ToolOutput(str(error), is_error=True, summary="denied")
    except ToolError as error:
        return ToolOutput(f"{error} {error.hint}".strip(), is_error=True, summary="failed")
    except Exception as error:
        logger.exception("tool %s failed", tool.name)
        text = f"{tool.name} failed unexpectedly: {type(error).__name__}: {error}"
        return ToolOutput(
            limit_output(text, max_bytes=MAX_FAULT_BYTES), is_error=True, summary="failed"
        )


class _BadCall(Exception):
    """The arguments of a call make no sense; says why, a sentence for the model."""


def _read(text: str, tool: AnyTool) -> Arguments:
    try:
        raw: object = json.loads(text or "{}", strict=False)
    except (ValueError, RecursionError) as error:
        raise _BadCall(
            f"The arguments of {tool.name} are not valid JSON ({error}). Make the call again with "
            "a JSON object."
        ) from error
    if not isinstance(raw, dict):
        raise _BadCall(
            f"The arguments of {tool.name} are {_kind(raw)} and not an object. Write them as "
            f"{_example(tool)}."
        )
    given = cast("dict[str, object]", raw)
    if strange := [name for name in given if name not in tool.arguments.model_fields]:
        raise _BadCall(" ".join(_unknown_parameters(strange, tool)))
    try:
        return tool.arguments.model_validate(_without_nulls(given, tool))
    except ValidationError as error:
        faults = "; ".join(_faults(error))
        raise _BadCall(f"The arguments of {tool.name} do not fit: {faults}.") from error
    except RecursionError as error:
        raise _BadCall(f"The arguments of {tool.name} are nested too deeply.") from error


def _without_nulls(given: Mapping[str, object], tool: AnyTool) -> dict[str, object]:
    """Return `given` without the nulls of models that fill in every parameter there is."""
    fields = tool.arguments.model_fields
    return {
        name: value
        for name, value in given.items()
        if value is not None or fields[name].is_required()
    }


def _unknown_tool(name: str, tools: Mapping[str, AnyTool]) -> str:
    known = ", ".join(sorted(tools))
    near = _meant(name, tools)
    return f"There is no tool {_quoted(name)}.{near} The tools are: {known}. Nothing was run."


def _unknown_parameters(strange: list[str], tool: AnyTool) -> Iterator[str]:
    known = tool.arguments.model_fields
    for name in strange[:MAX_FAULTS]:
        yield f"{tool.name} has no parameter {_quoted(name)}.{_meant(name, known)}"
    if (more := len(strange) - MAX_FAULTS) > 0:
        yield f"There are {more:,} more like that."
    yield f"It has: {', '.join(known)}." if known else "It takes no parameters."


def _meant(name: str, known: Iterable[str]) -> str:
    """Return a question about the name that is most like one that does not exist."""
    from rapidfuzz import fuzz, process, utils  # noqa: PLC0415 - 25 ms that only a miss needs

    found = process.extractOne(
        name[:_MAX_NAME_CHARACTERS],
        list(known),
        scorer=fuzz.WRatio,
        processor=utils.default_process,
        score_cutoff=_MIN_LIKENESS,
    )
    return f" Did you mean {found[0]!r}?" if found else ""


def _quoted(name: str) -> str:
    cut = "…" if len(name) > _MAX_NAME_CHARACTERS else ""
    return f"'{printable(name[:_MAX_NAME_CHARACTERS])}{cut}'"


def _kind(raw: object) -> str:
    match raw:
        case None:
            return "null"
        case bool():
            return "a truth value"
        case int() | float():
            return "a number"
        case str():
            return "a string"
        case _:
            return "a list"


def _example(tool: AnyTool) -> str:
    required = [name for name, field in tool.arguments.model_fields.items() if field.is_required()]
    return "{" + ", ".join(f'"{name}": …' for name in required) + "}"


def _faults(error: ValidationError) -> Iterator[str]:
    faults = error.errors(include_url=False, include_input=False)
    for fault in faults[:MAX_FAULTS]:
        place = ".".join(map(str, fault["loc"])) or "the arguments"
        yield f"{printable(place[:_MAX_NAME_CHARACTERS])}: {_in_words_of_json(fault['msg'])}"
    if len(faults) > MAX_FAULTS:
        yield f"and {len(faults) - MAX_FAULTS:,} more"


def _in_words_of_json(message: str) -> str:
    return (
        message.replace("tuple", "list").replace("Tuple", "List").replace(" after validation", "")
    )


def _described(tool: AnyTool, arguments: Arguments) -> str:
    try:
        return tool.describe(arguments)
    except Exception:
        logger.exception("a call of %s cannot be described", tool.name)
        return ""


def _faulty(text: str) -> Prepared:
    async def answer(_: ToolContext) -> ToolOutput:
        return fault

    said = limit_output(text, max_bytes=MAX_FAULT_BYTES)
    fault = ToolOutput(said, is_error=True, summary="bad call")
    return Prepared(run=answer, is_faulty=True)
