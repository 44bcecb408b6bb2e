"""A conversation as a document of its own: Markdown, one HTML page, or JSON.

Pure. What came from a model, a tool or a file is as harmless here as in a cell; the page
moreover tells browsers to run no script and to load nothing. Secrets are not looked for
here: turns come without them.
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from html import escape as escape_html
from pathlib import Path
from typing import Final

from crush_kernel.agent.events import SummaryFinished
from crush_kernel.history.conversation import count_calls
from crush_kernel.history.record import write_turn
from crush_kernel.history.summary import is_summary, summary_text
from crush_kernel.history.turn import Turn
from crush_kernel.kernel import render, subagentcard
from crush_kernel.kernel.markdown import escape, fenced, neutralize
from crush_kernel.kernel.recordedcall import recorded_call
from crush_kernel.kernel.render import FooterFacts
from crush_kernel.messages import (
    Media,
    Opaque,
    Part,
    Reasoning,
    ShellCommand,
    Text,
    ToolCall,
    ToolResult,
)

DEFAULT_NAME: Final = "conversation"

Picture = Callable[[Media], str]
"""Shows a file as Markdown."""

_BASE64 = re.compile(r"[A-Za-z0-9+/=\s]+")


def exported(turns: Sequence[Turn], wanted: str) -> str:
    """Return `turns` as a document in the format `wanted`, one of `FORMATS`."""
    return _WRITERS[wanted](turns)


def export_name(notebook: Path | None, wanted: str) -> str:
    """Return what a file with the conversation of `notebook` is to be called."""
    return f"{notebook.stem if notebook else DEFAULT_NAME}.{wanted}"


def as_markdown(turns: Sequence[Turn]) -> str:
    """Return `turns` as Markdown that reads well in any viewer; files are named only."""
    return "\n\n".join(_sections(turns, _named)) + "\n"


def as_html(turns: Sequence[Turn]) -> str:
    """Return `turns` as one page that needs nothing else and runs nothing; images are in it."""
    import mistune  # noqa: PLC0415 - only an export needs it

    # All markup of others was made text in the Markdown; what is left of it is ours.
    to_html = mistune.create_markdown(escape=False, plugins=["table", "strikethrough"])
    # Each turn by itself: the time that a text takes is not in proportion to its length.
    body = "\n".join(str(to_html(section)) for section in _sections(turns, _embedded))
    return _PAGE.format(title=escape_html(_title(turns)), body=body)


def as_json(turns: Sequence[Turn]) -> str:
    """Return the records of `turns`."""
    document = {"version": 1, "turns": [write_turn(turn) for turn in turns]}
    return json.dumps(document, ensure_ascii=False, indent=1) + "\n"


_WRITERS: Final[dict[str, Callable[[Sequence[Turn]], str]]] = {
    "md": as_markdown,
    "html": as_html,
    "json": as_json,
}

FORMATS: Final = tuple(_WRITERS)


def _sections(turns: Sequence[Turn], picture: Picture) -> Iterator[str]:
    for number, turn in enumerate(turns, start=1):
        yield "\n\n".join(filter(None, _section(number, turn, picture)))


def _section(number: int, turn: Turn, picture: Picture) -> Iterator[str]:
    if turn.is_start:
        yield "---"
        yield render.notice("Started afresh.").markdown
        return
    yield f"## {number}"
    parts = [part for message in turn.messages for part in message.parts]
    results = {part.call_id: part for part in parts if isinstance(part, ToolResult)}
    for message in turn.messages:
        if is_summary(message):
            yield render.summary(SummaryFinished(summary_text(message), 0, 0)).markdown
            yield from map(_other, message.parts)
        elif message.role == "user":
            yield from (_asked(part, picture) for part in message.parts)
        elif message.role == "assistant":
            for part in message.parts:
                yield _said(part, results)
                if isinstance(part, ToolCall) and part.id in results:
                    yield from map(picture, _images(results[part.id]))
    yield _ending(turn)
    yield _footer(turn)


def _asked(part: Part, picture: Picture) -> str:
    match part:
        case Text(text=text):
            return "\n".join(f"> {line}".rstrip() for line in neutralize(text).split("\n"))
        case ShellCommand(command=command, output=output, exit_code=code):
            shown = fenced(f"$ {command}\n{output}".rstrip(), "text")
            return f"{shown}\n\n<sub>exit {code}</sub>" if code else shown
        case Media():
            return picture(part)
        case _:
            return _other(part)


def _said(part: Part, results: dict[str, ToolResult]) -> str:
    match part:
        case Text(text=text):
            return render.reply(text).markdown
        case Reasoning(text=text):
            return render.reasoning(text).markdown
        case ToolCall():
            return subagentcard.call(recorded_call(part, results.get(part.id))).markdown
        case _:
            return _other(part)


def _other(part: Part) -> str:
    match part:
        case Opaque():
            return render.notice("Something that this version cannot show.").markdown
        case _:
            return ""


def _images(result: ToolResult) -> Iterator[Media]:
    return (media for media in result.media if render.image_bundle(media) is not None)


def _named(media: Media) -> str:
    return f"<sub>attached: {escape(media.name or media.media_type)}</sub>"


def _embedded(media: Media) -> str:
    if render.image_bundle(media) is None or not _BASE64.fullmatch(media.data):
        return _named(media)
    data = "".join(media.data.split())
    name = escape_html(render.short(media.name), quote=True)
    return f'<p><img alt="{name}" src="data:{media.media_type};base64,{data}"></p>'


def _ending(turn: Turn) -> str:
    match turn.end:
        case "end_turn":
            return ""
        case "interrupted":
            return render.interrupted().markdown
        case "error":
            return render.notice("ended with an error").markdown
        case "running":
            return render.notice("still running").markdown


def _footer(turn: Turn) -> str:
    models = dict.fromkeys(m.model for m in turn.messages if m.role == "assistant" and m.model)
    if not models:
        return ""
    facts = FooterFacts(
        model=" · ".join(models), usage=turn.usage, tool_calls=count_calls(turn.messages)
    )
    return render.footer(facts).markdown


def _title(turns: Iterable[Turn]) -> str:
    parts = (part for turn in turns for message in turn.messages for part in message.parts)
    texts = (part.text for part in parts if isinstance(part, Text) and part.text.strip())
    return render.short(next(texts, "Conversation"))


_PAGE: Final = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy"
  content="default-src 'none'; style-src 'unsafe-inline'; img-src data:">
<meta name="viewport" content="width=device-width">
<title>{title}</title>
<style>
:root {{
  color-scheme: light dark;
  --jp-error-color1: light-dark(#c62828, #ef9a9a);
  --jp-warn-color0: light-dark(#b35900, #ffb74d);
}}
body {{ max-width: 46rem; margin: 2rem auto; padding: 0 1rem; font: 16px/1.55 system-ui, sans-serif;
  overflow-wrap: anywhere; }}
h2 {{ font-size: 1rem; opacity: .6; border-top: 1px solid #8886; padding-top: 1rem; }}
blockquote {{ margin: 0; padding: .1rem 1rem; border-left: 3px solid #8888; background: #8881; }}
pre {{ padding: .6rem; overflow-x: auto; background: #8882; font-size: .85rem; }}
p, li, h1, h2, h3, h4, h5, h6, td, th, summary {{ unicode-bidi: plaintext; }}
code {{ font-family: ui-monospace, monospace; unicode-bidi: isolate; }}
table {{ border-collapse: collapse; }}
td, th {{ border: 1px solid #8886; padding: .2rem .5rem; }}
details {{ margin: .4rem 0; }}
img {{ max-width: 100%; }}
sub {{ vertical-align: baseline; opacity: .7; font-size: .85rem; }}
</style>
</head>
<body>
{body}
</body>
</html>
"""
