"""The `/commands` about the context window: `/context`, `/uncompact`, and the help of `/compact`.

`/compact` is a turn: what runs the cells carries it out. The others run on the engine thread.
"""

import re
from collections.abc import Iterable, Iterator
from typing import Final

from crush_kernel.agent.contents import Contents, Share
from crush_kernel.errors import CommandError
from crush_kernel.kernel.commands.call import CommandAnswer, CommandCall
from crush_kernel.kernel.plaintext import escape, visible
from crush_kernel.kernel.render import thousands

COMPACT: Final = "compact"
"""The command that is a turn which holds a summary."""

MAX_SHOWN_CHARS: Final = 20_000
"""Of one part, unless everything is asked for."""


async def compact(call: CommandCall) -> str:
    """Say that `/compact` belongs into a cell of its own."""
    raise CommandError(f"/compact cannot be carried out here: {call.arguments!r}.")


async def uncompact(call: CommandCall) -> CommandAnswer:
    """Have the nearest summary above stand for nothing any more."""
    if call.arguments:
        raise CommandError(
            f"/uncompact takes nothing, and {call.arguments!r} came with it.",
            hint="It takes back the nearest summary above its cell.",
        )
    update = call.runtime.session.take_back_summary(call.cell_id)
    return CommandAnswer(
        "The nearest summary above is taken back: the cells below read again what was said "
        "before it.",
        updates=[update],
    )


async def context(call: CommandCall) -> str:
    """Show what a prompt in this cell would be sent with, part by part."""
    if call.arguments not in ("", "full"):
        raise CommandError(
            f"/context knows no {call.arguments!r}.",
            hint="/context shows the parts, /context full all of each.",
        )
    contents = await call.runtime.contents(call.cell_id)
    limit = 0 if call.arguments else MAX_SHOWN_CHARS
    redact = call.runtime.session.redactor.redact
    return "\n".join(
        (
            "What the next prompt is sent with:\n",
            *_table(contents),
            "",
            *(_folded(share, redact(share.text), limit) for share in _shown(contents)),
        )
    )


def _table(contents: Contents) -> Iterator[str]:
    yield "| part | ~tokens | characters |"
    yield "|---|---:|---:|"
    yield from _sum_row("system prompt", contents.system)
    yield from (_row(share.name, (share,)) for share in contents.system)
    yield from _sum_row("tools", contents.tools)
    yield from _sum_row("conversation", contents.turns)
    if contents.reminder is not None:
        yield _row("**reminder**, said last and not cached", (contents.reminder,))
    yield f"| **together** | {thousands(contents.used)} | |"
    if contents.window:
        free = max(0, contents.window - contents.used)
        yield f"| window | {thousands(contents.window)} | |"
        yield f"| free | {thousands(free)} | |"
        reserve = thousands(contents.reserve)
        yield (
            f"| a summary is made at {reserve} free or less | | |"
            if contents.summarizes
            else "| no summary is made unasked, `/compact` makes one | | |"
        )
    else:
        yield "| window | not known | |"


def _sum_row(name: str, shares: Iterable[Share]) -> Iterator[str]:
    if shares := tuple(shares):
        yield _row(f"**{name}**", shares)


def _row(name: str, shares: Iterable[Share]) -> str:
    shares = tuple(shares)
    shown = name if name.startswith("**") else f"· {escape(name)}"
    tokens = sum(share.tokens for share in shares)
    chars = sum(len(share.text) for share in shares)
    return f"| {shown} | {thousands(tokens)} | {thousands(chars)} |"


def _shown(contents: Contents) -> Iterator[Share]:
    yield from contents.system
    yield from contents.tools
    yield from contents.turns
    if contents.reminder is not None:
        yield contents.reminder


def _folded(share: Share, text: str, limit: int) -> str:
    """Return a part to unfold, word for word; at most `limit` characters if that is not zero."""
    note = ""
    if limit and len(text) > limit:
        note = f"\n\n… {thousands(len(text) - limit)} characters more: `/context full`"
        text = text[:limit]
    text = visible(text)
    longest = max((len(run) for run in re.findall(r"`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    head = f"{escape(share.name)} · ~{thousands(share.tokens)} tokens"
    return (
        f"<details><summary>{head}</summary>\n\n{fence}text\n{text}\n{fence}{note}\n\n</details>\n"
    )
