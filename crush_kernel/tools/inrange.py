"""Numbers of a call that lie out of their range, and are not worth another call."""

from typing import Any, Final

from pydantic import ValidationError, ValidatorFunctionWrapHandler, WrapValidator
from pydantic_core import PydanticUseDefault


def _brought_within(value: Any, read: ValidatorFunctionWrapHandler) -> Any:  # noqa: ANN401 - whatever the model wrote
    try:
        return read(value)
    except ValidationError as error:
        fault = error.errors(include_url=False, include_input=False)[0]
        match fault["type"]:
            case "less_than_equal":
                return fault.get("ctx", {})["le"]
            case "greater_than_equal":
                raise PydanticUseDefault from None
            case _:
                raise


IN_RANGE: Final = WrapValidator(_brought_within)
"""Goes behind the range in the annotation of a number of which more, or longer, is only a wish:
too large becomes the largest, too small the default. Source: Crush, limits and timeouts."""
