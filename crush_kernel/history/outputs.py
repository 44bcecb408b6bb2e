"""The outputs of a cell as a front end keeps them, from the messages that it is sent.

Outputs are nbformat's, with a `transient` object beside where the display id is noted; front
ends drop it when they save, and `saved_outputs` does. Nothing is assumed of a message
but that it is JSON: what is missing is empty.

Source: Jupyter messaging, "Messages on the IOPub channel"; JupyterLab, `OutputAreaModel`;
nbformat 4.5.
"""

from collections.abc import Iterable
from typing import Any, Final, TypeAlias, cast

WIDGET_VIEW: Final = "application/vnd.jupyter.widget-view+json"

Output: TypeAlias = dict[str, Any]
"""One output, as nbformat has it; never changed in place."""


def apply_output(outputs: list[Output], msg_type: str, content: dict[str, Any]) -> None:
    """Bring `outputs` up to date with one message; those of other types change nothing.

    An update changes the outputs with its display id, where they stand; the text of a stream
    joins the output before it, if that is of the same stream; a clear that waits takes
    effect with the next output.
    """
    match msg_type:
        case "display_data" | "execute_result":
            if display_id_of(content):
                _update(outputs, content)
            _append(outputs, _bundle(msg_type, content))
        case "update_display_data":
            _update(outputs, content)
        case "stream":
            _append_text(outputs, _text(content.get("name")) or "stdout", content.get("text"))
        case "error":
            _append(outputs, _error(content))
        case "clear_output":
            _clear(outputs, waits=content.get("wait") is True)
        case _:
            pass


def saved_outputs(outputs: Iterable[Output]) -> list[Output]:
    """Return `outputs` as they stand in a file: without what only matters while a cell runs."""
    return [
        {key: value for key, value in output.items() if key != "transient"} for output in outputs
    ]


def without_widgets(outputs: Iterable[Output]) -> list[Output]:
    """Return `outputs` as they read once their kernel is gone.

    Widgets go, and so does the mark of an output that it is not final yet. An output that
    was nothing but a widget goes as a whole.
    """
    kept: list[Output] = []
    for output in outputs:
        data = _object(output.get("data"))
        if "data" not in output or (len(data) == 1 and WIDGET_VIEW in data):
            kept += [output] if "data" not in output else []
            continue
        plain = {mime: value for mime, value in data.items() if mime != WIDGET_VIEW}
        metadata = _settled(_object(output.get("metadata")))
        kept.append({**output, "data": plain, "metadata": metadata})
    return kept


def without_type(outputs: Iterable[Output], mime_type: str) -> list[Output]:
    """Return `outputs` without data of one type; what is nothing else goes as a whole."""
    kept: list[Output] = []
    for output in outputs:
        data = _object(output.get("data"))
        rest = {mime: value for mime, value in data.items() if mime != mime_type}
        if rest or not data:
            kept.append(output if len(rest) == len(data) else {**output, "data": rest})
    return kept


def display_id_of(content: dict[str, Any]) -> str:
    """Return the display id of a message or an output, empty if it has none."""
    return _text(_object(content.get("transient")).get("display_id"))


def _settled(metadata: dict[str, Any]) -> dict[str, Any]:
    ours = _object(metadata.get("crush"))
    if "pending" not in ours:
        return metadata
    ours = {key: value for key, value in ours.items() if key != "pending"}
    rest = {key: value for key, value in metadata.items() if key != "crush"}
    return {**rest, "crush": ours} if ours else rest


def _bundle(msg_type: str, content: dict[str, Any]) -> Output:
    output: Output = {"output_type": msg_type}
    if msg_type == "execute_result":
        count = content.get("execution_count")
        output["execution_count"] = count if isinstance(count, int) else None
    output |= {"data": _object(content.get("data")), "metadata": _object(content.get("metadata"))}
    if display_id := display_id_of(content):
        output["transient"] = {"display_id": display_id}
    return output


def _error(content: dict[str, Any]) -> Output:
    traceback = content.get("traceback")
    lines = cast("list[object]", traceback) if isinstance(traceback, list) else []
    return {
        "output_type": "error",
        "ename": _text(content.get("ename")),
        "evalue": _text(content.get("evalue")),
        "traceback": [_text(line) for line in lines],
    }


def _update(outputs: list[Output], content: dict[str, Any]) -> None:
    display_id = display_id_of(content)
    if not display_id:
        return
    news = {
        "data": _object(content.get("data")),
        "metadata": _object(content.get("metadata")),
    }
    for index, output in enumerate(outputs):
        if display_id_of(output) == display_id:
            outputs[index] = output | news


def _append_text(outputs: list[Output], name: str, text: object) -> None:
    last = outputs[-1] if outputs else {}
    said = _text(text)
    is_same = last.get("output_type") == "stream" and last.get("name") == name
    if is_same and not _is_outdated(last):
        outputs[-1] = last | {"text": _text(last.get("text")) + said}
    else:
        _append(outputs, {"output_type": "stream", "name": name, "text": said})


def _append(outputs: list[Output], output: Output) -> None:
    if outputs and _is_outdated(outputs[-1]):
        outputs.clear()
    outputs.append(output)


def _clear(outputs: list[Output], *, waits: bool) -> None:
    if not waits:
        outputs.clear()
    elif outputs:
        last = outputs[-1]
        outputs[-1] = last | {"transient": _object(last.get("transient")) | {"is_outdated": True}}


def _is_outdated(output: Output) -> bool:
    """Return whether the next output takes the place of `output` and all before it."""
    return _object(output.get("transient")).get("is_outdated") is True


def _object(value: object) -> dict[str, Any]:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""
