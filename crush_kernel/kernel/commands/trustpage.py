"""What `/trust` shows: everything that a project wants to be trusted with, in full.

Pure. Nothing is left out, since what is trusted is what was shown; what is long is folded.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from crush_kernel.config.claims import Claim
from crush_kernel.config.configfiles import ConfigFiles
from crush_kernel.config.trust import SHORT
from crush_kernel.kernel.markdown import fenced
from crush_kernel.kernel.plaintext import code_span, escape, visible
from crush_kernel.wording import counted

MAX_CHARS: Final = 200_000
"""Of all claims: more than this nobody reads, so that it is not to be had by one line either."""

MAX_CLAIMS: Final = 1_000
"""More entries than this nobody reads either."""

MAX_SAMPLED: Final = 20
"""That are shown of more than this."""

FOLDED_LINES: Final = 40
FOLDED_CHARS: Final = 3_000

_WOULD: Final = {
    "hooks": "runs these commands when the agent does something; they may also allow or deny it",
    "mcp": "starts this program, or connects to this server, and gives the agent its tools",
    "lsp": "starts this program when files are opened",
    "providers": "changes where your requests and keys are sent, or what is sent with them",
    "env": "sets this in the environment of all that is run",
    "options": "changes where things are kept or what is read outside the project",
    "permissions": "says what the agent may do",
}
_UNKNOWN: Final = "is not known to be harmless"
_USED: Final = frozenset(("hooks", "options"))
"""What has an effect here once it is trusted."""


@dataclass(frozen=True, slots=True)
class ReadSource:
    """A file of the project that the model reads as instructions."""

    kind: str
    location: str
    note: str = ""


@dataclass(frozen=True, slots=True)
class Look:
    """What there is to be shown of a project."""

    project: str
    files: ConfigFiles
    sources: Sequence[ReadSource] = ()
    unused: Sequence[str] = ()
    """Files that could run or set something but never do here."""


def is_too_large(files: ConfigFiles) -> bool:
    """Return whether there is more than anybody reads."""
    is_long = sum(_length(claim) for claim in files.claims) > MAX_CHARS
    return is_long or len(files.claims) > MAX_CLAIMS


def _length(claim: Claim) -> int:
    return len(claim.file) + sum(map(len, claim.keys)) + len(_text(claim))


def trust_line(files: ConfigFiles) -> str:
    """Return the command that trusts what `files` claim."""
    return f"/trust {files.digest[:SHORT]}"


def sections(look: Look, said: str = "") -> Iterator[str]:
    """Yield the parts of the page, as Markdown.

    Args:
        look: what is shown.
        said: what comes first.
    """
    if said:
        yield said
    files = look.files
    yield _state(look)
    # What cannot be trusted need not be shown in full.
    for claim in files.claims[: MAX_SAMPLED if is_too_large(files) else None]:
        yield from _claim(claim)
    if files.claims:
        yield _next(files)
    for warning in files.warnings:
        yield f"Not used: {escape(warning)}"
    yield from _sources(look)


def _state(look: Look) -> str:
    where = code_span(look.project)
    files = look.files
    if not files.claims:
        return f"Nothing in the configuration of {where} has to be trusted."
    what = counted(len(files.claims), "entry", "entries")
    if files.is_trusted:
        return f"You have **trusted** {where} with exactly this, {what}:"
    return (
        f"{where} is **not trusted**. Its configuration has {what} that could run programs or "
        "send requests and keys elsewhere. Nothing of this is in effect:"
    )


def _claim(claim: Claim) -> Iterator[str]:
    name = ".".join(claim.keys)
    head = claim.keys[0] if claim.keys else ""
    unused = "" if head in _USED else " (this version does not use it yet)"
    would = _WOULD.get(head, _UNKNOWN)
    yield f"**{escape(name)}** in {code_span(claim.file)}: {would}{unused}"
    text = _text(claim)
    block = fenced(text, "json")
    if len(text) <= FOLDED_CHARS and text.count("\n") < FOLDED_LINES:
        yield block
        return
    lines = counted(text.count("\n") + 1, "line")
    yield f"<details><summary>all of it, {lines}, {len(text):,} characters</summary>"
    yield block
    yield "</details>"


def _text(claim: Claim) -> str:
    return json.dumps(claim.content, indent=2, ensure_ascii=False)


def _next(files: ConfigFiles) -> str:
    if files.is_trusted:
        return "`/trust forget` takes it back. Any change to it asks again."
    if is_too_large(files):
        return (
            f"This is more than {MAX_CHARS:,} characters or {MAX_CLAIMS:,} entries, which nobody "
            "reads: it cannot be trusted. Take out what is not needed."
        )
    return (
        f"To trust exactly this, in this folder, run `{trust_line(files)}`. Any change to it asks "
        "again; scripts that it names are not part of it. To trust nothing, do nothing."
    )


def _sources(look: Look) -> Iterator[str]:
    if look.sources:
        rows = "\n".join(_row(source) for source in look.sources)
        yield "The model reads these files of the project as instructions, trusted or not:"
        yield f"| file | what | |\n|---|---|---|\n{rows}"
    if look.unused:
        names = ", ".join(map(code_span, look.unused))
        yield f"Never run or loaded here: {names}"


def _row(source: ReadSource) -> str:
    return f"| {code_span(source.location)} | {source.kind} | {source.note} |"


def hidden_note(text: str, *, taken_out: int = 0) -> str:
    """Return how much of `text` people would not see, empty if they see all.

    Args:
        text: as the model reads it.
        taken_out: how many hidden characters are not in it any more.
    """
    hidden = visible(text).count("⟨U+") - text.count("⟨U+") + taken_out
    return counted(hidden, "hidden character") if hidden else ""
