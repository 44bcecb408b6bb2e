"""A person at a rich front end: sees the cards of a running cell and presses their buttons."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.fakes.kernel import Cell, Msg, RunningKernel


@dataclass(frozen=True, slots=True)
class Press:
    """What is done with one card: a word of why, and a button."""

    button: str
    reason: str = ""


ALLOW = Press("Allow once")
ALLOW_SESSION = Press("Allow for this session")
DENY = Press("Deny")

_LAST_BUTTON = "Deny"
"""A card is complete when it has come."""


def run(
    kernel: RunningKernel,
    code: str,
    presses: Sequence[Press] = (),
    *,
    cell_id: str = "cell-1",
    stdin: bool = False,
) -> Cell:
    """Run `code` and answer its cards with `presses`, one each.

    Raises:
        AssertionError: there is a card too many or too few, or a widget is left behind.
    """
    person = Person(kernel)
    msg_id = kernel.execute(code, cell_id=cell_id, allow_stdin=stdin)
    left = list(presses)
    messages: list[Msg] = []
    for message in kernel.stream(msg_id):
        messages.append(message)
        if person.sees(message):
            assert left, f"nobody answers the card {person.texts[-6:]}"
            person.press(left.pop(0))
    assert not left, f"no card came for {left}"
    assert not person.models, f"widgets are left: {person.texts}"
    return Cell(kernel.reply(msg_id), messages)


@dataclass
class Person:
    """Keeps the widget models that are open."""

    kernel: RunningKernel
    models: dict[str, dict[str, Any]] = field(default_factory=dict[str, dict[str, Any]])
    """The state of each model, by comm, oldest first."""

    def sees(self, message: Msg) -> bool:
        """Take in `message` and return whether it completes a card."""
        content = message["content"]
        comm_id = content.get("comm_id", "")
        match message["msg_type"]:
            case "comm_open":
                self.models[comm_id] = dict(content["data"]["state"])
                return self.models[comm_id].get("description") == _LAST_BUTTON
            case "comm_msg" if content["data"].get("method") == "update":
                self.models[comm_id].update(content["data"]["state"])
            case "comm_close":
                self.models.pop(comm_id, None)
            case _:
                pass
        return False

    def press(self, press: Press) -> None:
        """Do with the newest card what `press` says."""
        if press.reason:
            field = self._newest("_model_name", "TextModel")
            state = {"value": press.reason}
            self.kernel.comm(field, {"method": "update", "state": state, "buffer_paths": []})
        self.click(self._newest("description", press.button))

    def click(self, comm_id: str) -> None:
        """Press the button of this comm, which may be gone."""
        self.kernel.comm(comm_id, {"method": "custom", "content": {"event": "click"}})

    def button(self, label: str) -> str:
        """Return the comm of the newest button that says `label`."""
        return self._newest("description", label)

    @property
    def texts(self) -> list[str]:
        """All that the open widgets say."""
        return [str(model["value"]) for model in self.models.values() if model.get("value")]

    def _newest(self, name: str, value: str) -> str:
        return next(comm for comm in reversed(self.models) if self.models[comm].get(name) == value)
