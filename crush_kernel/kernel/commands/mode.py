"""`/mode`: what passes without a question in this kernel.

It runs on the engine thread.
"""

from typing import Final

from crush_kernel.config.settings import PermissionMode
from crush_kernel.errors import CommandError
from crush_kernel.kernel.commands.call import CommandCall
from crush_kernel.kernel.commands.rulewords import MODES, YOLO_WARNING
from crush_kernel.kernel.render import short

NAMES: Final[tuple[PermissionMode, ...]] = tuple(MODES)


async def mode(call: CommandCall) -> str:
    """Show the mode, or set it for as long as this kernel lives."""
    gate = call.runtime.safety.gate
    if not call.arguments:
        return f"{_table(gate.mode)}\n\n`/mode plan` sets it until the kernel ends."
    name = call.arguments.lower().replace("_", "-")
    wanted: PermissionMode | None = next((each for each in NAMES if each == name), None)
    if wanted is None:
        raise CommandError(
            f"There is no mode {short(call.arguments)!r}.",
            hint=f"Write /mode with one of {', '.join(NAMES)}.",
        )
    gate.mode = wanted
    if wanted == "yolo":
        return YOLO_WARNING
    return f"The mode is `{wanted}` now: {MODES[wanted]}."


def _table(current: PermissionMode) -> str:
    rows = (
        f"| {f'**{name}** ←' if name == current else name} | {passes} |"
        for name, passes in MODES.items()
    )
    return "\n".join(("| mode | what passes |", "|---|---|", *rows))
