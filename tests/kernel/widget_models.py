"""The widget models that are open in this process, as a front end would find them."""

# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false, reportPrivateUsage=false
# ipywidgets carries no types.

from typing import Any

from ipywidgets import Widget
from ipywidgets.widgets.widget import _instances


def open_models() -> set[str]:
    return set(_instances)


def with_class(css_class: str) -> list[Any]:
    """Return the widgets with `css_class`, oldest first."""
    widgets: list[Widget] = list(_instances.values())
    return [widget for widget in widgets if css_class in getattr(widget, "_dom_classes", ())]


def texts(widget: Any) -> str:  # noqa: ANN401 - any widget
    """Return what `widget` and all in it say, as the HTML or label that is rendered."""
    own = getattr(widget, "value", "") or getattr(widget, "description", "")
    return "\n".join([str(own), *(texts(child) for child in getattr(widget, "children", ()))])


def send(widget: Any, content: dict[str, object]) -> None:  # noqa: ANN401 - any widget
    """Deliver a custom message from the front end."""
    data = {"method": "custom", "content": content}
    widget.comm.handle_msg({"content": {"data": data}, "buffers": []})
