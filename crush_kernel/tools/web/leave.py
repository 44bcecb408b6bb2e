"""How a network tool asks for permission: one question a server, private ones apart."""

from collections.abc import Iterator
from pathlib import Path

from crush_kernel.files.names import printable
from crush_kernel.permissions.request import PermissionRequest
from crush_kernel.tools.base import ToolContext
from crush_kernel.tools.web.inquiry import AskLeave, Visit
from crush_kernel.wording import clipped

MAX_SHOWN_CHARACTERS = 1_000
"""Of a URL in a question."""


def ask_leave(
    context: ToolContext,
    *,
    tool: str,
    verb: str = "fetch",
    suffix: str = "",
    paths: tuple[Path, ...] = (),
    is_outside: bool = False,
    dangers: tuple[str, ...] = (),
    notes: tuple[str, ...] = (),
) -> AskLeave:
    """Return a way to ask for a visit.

    Args:
        context: of the call.
        tool: who asks.
        verb: what is to be done, to go before the URL.
        suffix: what else is to be said in the same sentence.
        paths: what is written, real paths.
        is_outside: whether one of them is outside the project.
        dangers: why a person has to say in every mode.
        notes: what a person should know besides.
    """

    async def ask(visit: Visit) -> None:
        shown = clipped(printable(str(visit.url)), MAX_SHOWN_CHARACTERS)
        await context.permit(
            PermissionRequest(
                call_id=context.call_id,
                tool=tool,
                action="fetch",
                title=f"{verb} {shown}{suffix}",
                paths=paths,
                is_outside=is_outside,
                dangers=dangers,
                notes=(*_notes(visit), *notes),
                server=_server(visit),
                is_private=visit.is_private,
            )
        )

    return ask


def _server(visit: Visit) -> str:
    """Return what a grant is for; a private name is granted with where it leads now."""
    if not visit.is_private:
        return visit.url.server
    return " ".join((visit.url.server, *sorted(visit.addresses)))


def _notes(visit: Visit) -> Iterator[str]:
    if visit.is_private:
        is_named = visit.url.address is None and visit.addresses
        where = f" ({', '.join(visit.addresses)})" if is_named else ""
        yield (
            f"{visit.url.server}{where} is this machine or in a private network, which pages of "
            "the internet cannot reach by themselves"
        )
    if visit.came_from is not None:
        yield f"{printable(str(visit.came_from))[:MAX_SHOWN_CHARACTERS]} redirects there"
