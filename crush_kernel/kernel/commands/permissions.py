"""`/permissions`: what may be done here, by whose word, and how to change that.

It runs on the engine thread; files are read and written in a worker thread.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Final

from anyio.to_thread import run_sync

from crush_kernel.config.ruletexts import VERDICTS, RuleScope, Verdict
from crush_kernel.errors import CommandError, ConfigError, NothingToDo
from crush_kernel.kernel.commands.call import CommandCall
from crush_kernel.kernel.commands.rulewords import MODES, grant_words, in_table, meaning
from crush_kernel.kernel.plaintext import code_span, escape
from crush_kernel.kernel.render import short
from crush_kernel.permissions.match import BadRule
from crush_kernel.permissions.request import Grant
from crush_kernel.permissions.rule import parse_rule
from crush_kernel.permissions.rulebook import Page, source_of
from crush_kernel.safety import Safety

USAGE: Final = "/permissions [allow, ask or deny RULE, or forget N]"
WORDS: Final = (*VERDICTS, "forget")
EVERYWHERE: Final = "everywhere"

_EXAMPLES: Final = (
    "`/permissions allow bash(pytest:*)` stores a rule for this project, `… everywhere` for all; "
    "so do `ask` and `deny`. `/permissions forget 1` takes a stored one back, `forget session` "
    "what you allowed for the session. Rules: `bash(git log:*)`, `edit(src/**)`, `view(~/data)`, "
    "`fetch(domain:example.org)`, `mcp_server_*`."
)
_DONE: Final[dict[Verdict, str]] = {
    "allow": "is allowed",
    "ask": "is asked every time",
    "deny": "is denied",
}


async def permissions(call: CommandCall) -> str:
    """Show mode, rules and grants, or change the rules that are stored."""
    safety = call.runtime.safety
    word, _, rest = call.arguments.partition(" ")
    match word:
        case "":
            safety.gate.policy = await run_sync(safety.rules.read)
            redact = call.runtime.session.redactor.redact
            return "\n\n".join(_sections(safety, redact))
        case "allow" | "ask" | "deny":
            return await _store(call, word, rest.strip())
        case "forget":
            return await _forget(safety, rest.strip())
        case _:
            raise CommandError(
                f"/permissions knows no {short(call.arguments)!r}.", hint=f"Write {USAGE}."
            )


async def _store(call: CommandCall, verdict: Verdict, text: str) -> str:
    safety = call.runtime.safety
    scope: RuleScope = "project"
    if text.split()[-1:] == [EVERYWHERE]:
        scope, text = "everywhere", text.removesuffix(EVERYWHERE).rstrip()
    if call.runtime.session.redactor.redact(text) != text:
        raise CommandError(
            "A rule is kept as plain text, and this one holds a secret.",
            hint="Put * in the secret's place.",
        )
    try:
        rule = parse_rule(text)
        safety.gate.policy = await safety.rules.store(verdict, (text,), scope)
    except BadRule as error:
        raise CommandError(
            f"The rule is not stored: {error}.", hint="/permissions shows some rules."
        ) from error
    except ConfigError as error:
        raise CommandError(f"The rule is not stored: {error}.", hint=error.hint) from error
    return f"{code_span(text)} {_DONE[verdict]} from now on, {source_of(scope)}: {meaning(rule)}."


async def _forget(safety: Safety, which: str) -> str:
    if which == "session":
        if not safety.gate.grants:
            raise NothingToDo("Nothing was allowed for the session.")
        safety.gate.forget()
        return "What you allowed for the session is asked again."
    stored = safety.rules.page.stored
    number = int(which[:9]) if which.isascii() and which.isdigit() else 0
    if not 0 < number <= len(stored):
        raise CommandError(
            f"There is no stored rule {short(which)!r}.",
            hint="/permissions numbers them; /permissions forget session takes back the others.",
        )
    rule = stored[number - 1]
    try:
        safety.gate.policy = await safety.rules.forget(rule)
    except ConfigError as error:
        raise CommandError(f"The rule is still there: {error}.", hint=error.hint) from error
    return f"{code_span(rule.text)} is no longer {source_of(rule.scope)}."


def _sections(safety: Safety, redact: Callable[[str], str]) -> Iterator[str]:
    mode = safety.gate.mode
    yield f"Mode **{mode}**: {MODES[mode]}. `/mode` changes it."
    if rows := list(rule_rows(safety.rules.page, redact)):
        yield "\n".join(("| | | rule | means | from |", "|---|---|---|---|---|", *rows))
    else:
        yield "There are no rules."
    if grants := grant_lines(safety.gate.grants, redact):
        yield f"Allowed for the session:\n\n{grants}"
    if disabled := sorted(safety.disabled_tools):
        yield f"Tools that are turned off: {', '.join(map(code_span, disabled))}."
    if warnings := safety.warnings:
        lines = "\n".join(f"- {escape(warning)}" for warning in warnings)
        yield f"These do not count:\n\n{lines}"
    yield _EXAMPLES


def rule_rows(page: Page, redact: Callable[[str], str]) -> Iterator[str]:
    """Yield the rows of the table of rules: stored ones first, by their numbers."""
    for number, stored in enumerate(page.stored, 1):
        text = redact(stored.text)
        try:
            means = meaning(parse_rule(text))
        except BadRule:
            means = "nothing: it is no rule"
        where = source_of(stored.scope)
        yield f"| {number} | {stored.verdict} | {in_table(text)} | {means} | {where} |"
    for standing in page.policy.rules[: page.written]:
        text = redact(standing.rule.text)
        means = meaning(parse_rule(text))
        where = in_table(standing.source)
        yield f"| | {standing.verdict} | {in_table(text)} | {means} | {where} |"


def grant_lines(grants: frozenset[Grant], redact: Callable[[str], str]) -> str:
    """Return what was allowed for the session, as a list, without what lies in something wider."""
    wide = {grant for grant in grants if not grant.scope}
    told = wide | {grant for grant in grants if replace(grant, scope="") not in wide}
    clean = (replace(grant, scope=redact(grant.scope)) for grant in told)
    return "\n".join(sorted(f"- {grant_words(grant)}" for grant in clean))
