"""A refusal that only the lack of a person made is known wherever it stands."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crush_kernel.cli.due import CellState, due
from crush_kernel.cli.unasked import has_unasked
from crush_kernel.permissions.gate import NOBODY

NOTE = f"[@/etc/passwd could not be attached: Permission denied: {NOBODY} and …]"


def result(by: object, *, is_error: bool = True, **more: object) -> dict[str, Any]:
    metadata = {"permission_by": by, **more}
    return {"kind": "tool_result", "call_id": "c", "is_error": is_error, "metadata": metadata}


def record(*parts: object, role: str = "tool") -> dict[str, Any]:
    return {"version": 1, "end": "end_turn", "messages": [{"role": role, "parts": [*parts]}]}


def text(said: str) -> dict[str, str]:
    return {"kind": "text", "text": said}


@pytest.mark.parametrize(
    ("made", "is_unasked"),
    [
        pytest.param(record(result("nobody")), True, id="nobody to ask"),
        pytest.param(record(result("person")), False, id="a person"),
        pytest.param(record(result("rule")), False, id="a rule"),
        pytest.param(record(result("nobody", is_error=False)), False, id="it ran all the same"),
        pytest.param(record(result("rule"), result("nobody")), True, id="the second of two"),
        pytest.param(
            record(result("rule", subagent=record(result("nobody")))), True, id="in a sub-agent"
        ),
        pytest.param(
            record(result("rule", subagent=record(result("person")))), False, id="not in one"
        ),
        pytest.param(record(text("a"), text(NOTE), role="user"), True, id="a file"),
        pytest.param(record(text(NOTE), role="user"), False, id="a prompt that quotes it"),
        pytest.param(
            record(text("a"), text(NOTE.replace(NOBODY, "no")), role="user"), False, id="a person's"
        ),
        pytest.param({}, False, id="no turn"),
    ],
)
def test_it_is_known_where_nobody_could_be_asked(made: dict[str, Any], *, is_unasked: bool) -> None:
    assert has_unasked(made) == is_unasked
    reasons = due([CellState("a", "x", record={"version": 1, "end": "end_turn", **made})])
    assert reasons == ({"a": "nobody to ask"} if is_unasked else {})


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(("messages", "parts", "role", "kind", "text", "metadata", "subagent")),
            inner,
        )
    ),
)


@given(messages=JSON, metadata=JSON)
def test_no_record_is_too_odd(messages: object, metadata: object) -> None:
    part = {"kind": "tool_result", "is_error": True, "metadata": metadata}

    assert not has_unasked({"messages": messages})
    assert not has_unasked(record(part))
