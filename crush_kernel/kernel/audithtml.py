"""The audit report as one HTML page that needs nothing else and runs nothing. Pure.

The notebook may be a stranger's: every text of it is escaped, what hides in it is shown, and the
page tells browsers to run no script and to load nothing.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape as escape_html
from typing import Final

from crush_kernel.history.decisions import DecisionRecord
from crush_kernel.kernel.auditreport import (
    AuditedCall,
    AuditedTurn,
    counted_words,
    counts,
    words_of,
)
from crush_kernel.kernel.plaintext import visible
from crush_kernel.kernel.render import money, thousands
from crush_kernel.messages import Usage
from crush_kernel.providers.catalog import known_model
from crush_kernel.wording import clipped

PERSON: Final = "the user"

MAX_ASKED_CHARS: Final = 400
MAX_WHAT_CHARS: Final = 2_000
MAX_SHORT_CHARS: Final = 200
MAX_LISTED: Final = 50

_ENDS: Final[Mapping[str, str]] = {
    "end_turn": "answered",
    "interrupted": "interrupted",
    "error": "failed",
    "running": "still running",
    "": "not in the notebook",
}


@dataclass(frozen=True, slots=True)
class AuditDocument:
    """What the page tells."""

    name: str
    """Of the notebook."""
    turns: Sequence[AuditedTurn] = ()
    """Of its cells, from top to bottom."""
    others: Sequence[AuditedTurn] = ()
    """Runs that only the journal knows."""
    title: str = ""
    session: str = ""
    journal: str = ""
    """The path of the journal that was read; empty if none was."""
    trouble: str = ""
    """Why none was, in a clause."""
    problems: Sequence[str] = ()
    """What could not be read of the notebook, a sentence each."""


def audit_html(document: AuditDocument) -> str:
    """Return the page."""
    title = f"Audit of {document.title or document.name}"
    body = "\n".join(_body(document, title))
    return _PAGE.format(title=_text(title, MAX_SHORT_CHARS), body=body)


def _body(document: AuditDocument, title: str) -> Iterator[str]:
    yield f"<h1>{_text(title, MAX_SHORT_CHARS)}</h1>"
    yield _facts(document)
    yield _provenance(document)
    if document.problems:
        yield '<h2>What could not be read</h2>\n<ul class="problems">'
        yield from (f"<li>{_text(each, MAX_WHAT_CHARS)}</li>" for each in document.problems)
        yield "</ul>"
    for number, turn in enumerate(document.turns, 1):
        yield from _turn(f"Turn {number}", turn)
    if document.others:
        yield "<h2>Runs that are not in the notebook</h2>"
        yield (
            "<p>They were run again, or their cells were deleted, before the notebook was saved. "
            "Only the journal tells of them.</p>"
        )
        for turn in document.others:
            yield from _turn("A run", turn)


def _facts(document: AuditDocument) -> str:
    turns = (*document.turns, *document.others)
    found = counts(turns, person=PERSON)
    spent = _summed(turns)
    rows = [
        ("Notebook", _text(document.name, MAX_SHORT_CHARS)),
        ("Session", _text(document.session or "not told", MAX_SHORT_CHARS)),
        ("Models", _text(", ".join(spent) or "none", MAX_WHAT_CHARS)),
        ("Turns", f"{len(document.turns):,}"),
        ("Used", _text(_used(spent), MAX_SHORT_CHARS)),
        ("Calls", f"<b>{found.total():,}</b>{_text(_after_colon(counted_words(found)), 2_000)}"),
    ]
    return "<table class='facts'>" + "".join(map(_fact, rows)) + "</table>"


def _fact(row: tuple[str, str]) -> str:
    name, value = row
    return f"<tr><th scope='row'>{name}</th><td>{value}</td></tr>\n"


def _after_colon(words: str) -> str:
    return f": {words}" if words else ""


def _provenance(document: AuditDocument) -> str:
    if document.journal:
        made = (
            "This report was made from the notebook and from the journal of the user who made it, "
            f"{_code(document.journal)}. What is marked <b>journal</b> comes from there: who "
            "decided what, when, and by which rule. Everything else is what the notebook says."
        )
    else:
        made = (
            "This report was made from <b>the notebook alone</b>. When something was decided, and "
            "what exactly was asked, stands in the journal of whoever ran it, which was not used: "
            f"{_text(document.trouble or 'there is none', MAX_WHAT_CHARS)}."
        )
    return (
        f"<p class='note'>{made} A notebook proves nothing by itself: anybody who can edit the "
        "file can change prompts, calls, results, and who is said to have allowed them.</p>"
    )


def _turn(name: str, turn: AuditedTurn) -> Iterator[str]:
    facts = filter(
        None,
        (
            _time(turn.when),
            _ENDS.get(turn.end, turn.end),
            ", ".join(turn.models),
            _used(turn.spent) if turn.spent else "",
        ),
    )
    yield "<section>"
    yield f"<h2>{name} · “{_text(' '.join(turn.asked.split()), MAX_ASKED_CHARS)}”</h2>"
    yield f"<p class='small'>{_text(' · '.join(facts), MAX_WHAT_CHARS)}</p>"
    if turn.calls:
        yield f"<p>{_text(counted_words(counts((turn,), person=PERSON)), MAX_WHAT_CHARS)}</p>"
        yield _HEAD
        yield from map(_row, turn.calls)
        yield "</tbody></table>"
    if turn.files:
        yield f"<p>Changed files: {_listed(turn.files)}</p>"
    yield "</section>"


def _row(call: AuditedCall) -> str:
    agent = f"{_text(call.agent, MAX_SHORT_CHARS)} (sub-agent) · " if call.agent else ""
    what = f" {_code(call.what)}" if call.what else ""
    kind = " class='denied'" if call.is_denied else ""
    when = call.decision.at if call.decision is not None else ""
    return (
        f"<tr{kind}><td class='when'>{_text(_time(when), MAX_SHORT_CHARS)}</td>"
        f"<td>{agent}<b>{_text(call.tool, MAX_SHORT_CHARS)}</b>{what}</td>"
        f"<td>{''.join(_decided(call))}</td>"
        f"<td class='result'>{_text(call.outcome, MAX_SHORT_CHARS)}</td></tr>"
    )


def _decided(call: AuditedCall) -> Iterator[str]:
    source = " <span class='source'>journal</span>" if call.is_recorded else ""
    yield f"{_text(words_of(call.decision, person=PERSON), MAX_SHORT_CHARS)}{source}"
    for record in call.decisions:
        yield from (f"<div class='small'>{line}</div>" for line in _details(record))


def _details(record: DecisionRecord) -> Iterator[str]:
    if record.rule and record.rule != "denied":
        yield f"by: {_text(record.rule, MAX_WHAT_CHARS)}"
    if record.reason:
        yield f"“{_text(record.reason, MAX_WHAT_CHARS)}”"
    if record.kept_rules:
        where = "everywhere" if record.kept_scope == "everywhere" else "in this project"
        yield f"from then on, {where}: {_listed(record.kept_rules)}"
    for name, texts in (("parts", record.parts), ("paths", record.paths)):
        if texts:
            yield f"{name}: {_listed(texts)}"
    yield from (_text(danger, MAX_WHAT_CHARS) for danger in record.dangers)
    if record.effective_input:
        yield f"a hook has changed {_code(record.input)} to {_code(record.effective_input)}"


def _listed(texts: Sequence[str]) -> str:
    shown = [_code(text) for text in texts[:MAX_LISTED]]
    more = len(texts) - len(shown)
    return ", ".join((*shown, *([f"{more:,} more"] if more else [])))


def _summed(turns: Iterable[AuditedTurn]) -> dict[str, Usage]:
    spent: dict[str, Usage] = {}
    for turn in turns:
        for label, usage in turn.spent.items():
            spent[label] = spent.get(label, Usage()) + usage
    return spent


def _used(spent: Mapping[str, Usage]) -> str:
    usage = sum(spent.values(), Usage())
    read = usage.context_tokens - usage.output_tokens
    guess = "~" if usage.is_estimated else ""
    words = f"{guess}{thousands(read)} tokens in, {guess}{thousands(usage.output_tokens)} out"
    cost = _cost(spent)
    if cost is None:
        return words
    return f"{words}, {money(cost, is_estimated=True)} by today's list prices"


def _cost(spent: Mapping[str, Usage]) -> float | None:
    costs = [known_model(*_split(label)).cost(usage) for label, usage in spent.items()]
    known = [cost for cost in costs if cost is not None]
    return sum(known) if known and len(known) == len(costs) else None


def _split(label: str) -> tuple[str, str]:
    provider, _, model = label.partition("/")
    return provider, model


def _time(at: str) -> str:
    return f"{at[:19].replace('T', ' ')} UTC" if at else ""


def _code(text: str) -> str:
    return f"<code>{_text(text, MAX_WHAT_CHARS)}</code>"


def _text(text: str, limit: int) -> str:
    return escape_html(visible(clipped(text, limit)), quote=True)


_HEAD: Final = (
    "<table><thead><tr><th>when</th><th>what</th><th>decided</th><th>result</th></tr></thead>"
    "<tbody>"
)

_PAGE: Final = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width">
<title>{title}</title>
<style>
:root {{ color-scheme: light dark; --denied: light-dark(#b3261e, #ef9a9a); }}
body {{ max-width: 64rem; margin: 2rem auto; padding: 0 1rem; font: 15px/1.5 system-ui, sans-serif;
  overflow-wrap: anywhere; }}
h1 {{ font-size: 1.5rem; }}
h2 {{ font-size: 1.05rem; margin-top: 2rem; border-top: 1px solid #8886; padding-top: 1rem; }}
h1, h2, p, li, td, th, div {{ unicode-bidi: plaintext; }}
table {{ border-collapse: collapse; width: 100%; }}
td, th {{ border-bottom: 1px solid #8884; padding: .3rem .5rem; text-align: start;
  vertical-align: top; }}
table.facts th {{ width: 6rem; }}
td.when {{ white-space: nowrap; font-size: .85rem; }}
td.result {{ min-width: 5rem; }}
tr.denied td {{ color: var(--denied); }}
code {{ font-family: ui-monospace, monospace; font-size: .85rem; white-space: pre-wrap;
  unicode-bidi: isolate; }}
.note {{ border-inline-start: 4px solid #8888; background: #8881; padding: .6rem 1rem; }}
.small {{ font-size: .85rem; }}
.source {{ border: 1px solid currentColor; border-radius: 3px; padding: 0 .3em;
  font-size: .75rem; }}
@media print {{
  body {{ max-width: none; margin: 0; font-size: 10pt; }}
  tr {{ break-inside: avoid; }}
  h2 {{ break-after: avoid; }}
}}
</style>
</head>
<body>
{body}
</body>
</html>
"""
