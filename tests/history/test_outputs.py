"""Outputs add up as in a front end."""

import json
from typing import Any

import nbformat
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crush_kernel.history.outputs import (
    WIDGET_VIEW,
    Output,
    apply_output,
    saved_outputs,
    without_widgets,
)

Messages = list[tuple[str, dict[str, Any]]]


def display(text: str, display_id: str = "", **metadata: object) -> tuple[str, dict[str, Any]]:
    content = {"data": {"text/plain": text}, "metadata": metadata}
    return "display_data", content | (
        {"transient": {"display_id": display_id}} if display_id else {}
    )


def update(text: str, display_id: str) -> tuple[str, dict[str, Any]]:
    return "update_display_data", display(text, display_id)[1]


def stream(text: str, name: str = "stdout") -> tuple[str, dict[str, Any]]:
    return "stream", {"name": name, "text": text}


def clear(*, wait: bool) -> tuple[str, dict[str, Any]]:
    return "clear_output", {"wait": wait}


def saved_display(text: str) -> Output:
    return {"output_type": "display_data", "data": {"text/plain": text}, "metadata": {}}


def saved_stream(text: str, name: str = "stdout") -> Output:
    return {"output_type": "stream", "name": name, "text": text}


def outputs_of(messages: Messages) -> list[Output]:
    outputs: list[Output] = []
    for msg_type, content in messages:
        apply_output(outputs, msg_type, content)
    return outputs


NO_DATA: dict[str, str] = {}
ERROR = {"ename": "E", "evalue": "v", "traceback": ["E: v"]}


@pytest.mark.parametrize(
    ("messages", "expected"),
    [
        pytest.param([], [], id="nothing"),
        pytest.param(
            [display("a"), display("b")], [saved_display("a"), saved_display("b")], id="in order"
        ),
        pytest.param(
            [display("a", "1"), display("b"), update("c", "1")],
            [saved_display("c"), saved_display("b")],
            id="an update keeps the place",
        ),
        pytest.param(
            [display("a", "1"), update("b", "2")],
            [saved_display("a")],
            id="an update of what is not there changes nothing",
        ),
        pytest.param(
            [display("a", "1"), display("b", "1"), update("c", "1")],
            [saved_display("c"), saved_display("c")],
            id="an update changes all that have the id",
        ),
        pytest.param(
            [display("a", "1"), display("b", "1")],
            [saved_display("b"), saved_display("b")],
            id="a second display updates the first",
        ),
        pytest.param(
            [stream("a"), stream("b"), stream("x", "stderr"), stream("c")],
            [saved_stream("ab"), saved_stream("x", "stderr"), saved_stream("c")],
            id="a stream goes on where it stopped",
        ),
        pytest.param(
            [stream("a"), display("x"), stream("b")],
            [saved_stream("a"), saved_display("x"), saved_stream("b")],
            id="...unless something is between",
        ),
        pytest.param([("error", ERROR)], [{"output_type": "error", **ERROR}], id="an error"),
        pytest.param(
            [("execute_result", {"execution_count": 3, **display("a")[1]})],
            [{**saved_display("a"), "output_type": "execute_result", "execution_count": 3}],
            id="a result",
        ),
        pytest.param(
            [display("a"), clear(wait=False), display("b")], [saved_display("b")], id="cleared"
        ),
        pytest.param(
            [display("a"), clear(wait=True)], [saved_display("a")], id="to be cleared, but not yet"
        ),
        pytest.param(
            [stream("a"), display("b"), clear(wait=True), stream("c"), stream("d")],
            [saved_stream("cd")],
            id="cleared by the next output",
        ),
        pytest.param(
            [stream("a"), clear(wait=True), stream("b")],
            [saved_stream("b")],
            id="...also by the same stream",
        ),
        pytest.param(
            [display("a", "1"), clear(wait=True), update("b", "1"), display("c")],
            [saved_display("c")],
            id="...but not by an update",
        ),
        pytest.param([clear(wait=True), display("a")], [saved_display("a")], id="nothing to clear"),
        pytest.param([("status", {"execution_state": "busy"})], [], id="no output"),
    ],
)
def test_messages_add_up(messages: Messages, expected: list[Output]) -> None:
    assert saved_outputs(outputs_of(messages)) == expected


@pytest.mark.parametrize(
    ("outputs", "expected"),
    [
        pytest.param([saved_stream("a")], [saved_stream("a")], id="a stream stays"),
        pytest.param(
            [{**saved_display("a"), "data": {"text/plain": "a", WIDGET_VIEW: {"model_id": "x"}}}],
            [saved_display("a")],
            id="a widget's text stays",
        ),
        pytest.param(
            [{**saved_display("a"), "data": {WIDGET_VIEW: {"model_id": "x"}}}],
            [],
            id="a widget alone goes",
        ),
        pytest.param(
            [{**saved_display("a"), "metadata": {"crush": {"pending": True}, "other": 1}}],
            [{**saved_display("a"), "metadata": {"other": 1}}],
            id="nothing is pending any more",
        ),
        pytest.param(
            [{**saved_display("a"), "metadata": {"crush": {"pending": True, "part": 1}}}],
            [{**saved_display("a"), "metadata": {"crush": {"part": 1}}}],
            id="what else we say stays",
        ),
        pytest.param(
            [saved_display("") | {"data": NO_DATA}],
            [saved_display("") | {"data": NO_DATA}],
            id="an emptied output stays",
        ),
    ],
)
def test_what_is_left_without_a_kernel(outputs: list[Output], expected: list[Output]) -> None:
    assert without_widgets(outputs) == expected


texts = st.text(max_size=5)
bundles = st.dictionaries(texts.filter(bool), texts, max_size=3)
anything = st.dictionaries(
    st.sampled_from(
        ["data", "metadata", "transient", "name", "text", "ename", "traceback", "wait"]
    ),
    st.one_of(
        st.sampled_from([None, True, 7, [1, "a"], {"display_id": "1"}, {"display_id": "7"}]),
        texts,
        bundles,
    ),
)
msg_types = st.sampled_from(
    ["display_data", "update_display_data", "execute_result", "stream", "error", "clear_output"]
)


@settings(max_examples=25)  # nbformat takes its time
@given(st.lists(st.tuples(msg_types, anything), max_size=8))
def test_whatever_comes_the_outputs_can_be_saved(messages: Messages) -> None:
    outputs = without_widgets(saved_outputs(outputs_of(messages)))
    cell = {
        "cell_type": "code",
        "execution_count": None,
        "id": "c",
        "metadata": NO_DATA,
        "outputs": outputs,
        "source": "",
    }
    nbformat.validate({"nbformat": 4, "nbformat_minor": 5, "metadata": NO_DATA, "cells": [cell]})


@given(st.lists(st.tuples(msg_types, anything), max_size=8))
def test_no_output_is_changed_in_place(messages: Messages) -> None:
    outputs: list[Output] = []
    for msg_type, content in messages:
        before, copies = list(outputs), json.dumps(outputs)
        apply_output(outputs, msg_type, content)
        assert json.dumps(before) == copies
