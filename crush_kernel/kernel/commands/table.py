"""The `/commands`: a table of names, helps and coroutines that answer in Markdown.

They run on the engine thread. A command that cannot be carried out raises a `CommandError`
whose hint says what to type instead.
"""

import platform
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.metadata import version
from itertools import groupby
from types import MappingProxyType

from rapidfuzz import process

from crush_kernel import __version__
from crush_kernel.errors import CommandError
from crush_kernel.kernel.commands.agents import agents
from crush_kernel.kernel.commands.audit import USAGE as AUDIT_USAGE
from crush_kernel.kernel.commands.audit import audit
from crush_kernel.kernel.commands.call import CommandAnswer, CommandCall
from crush_kernel.kernel.commands.costpage import cost_page
from crush_kernel.kernel.commands.jobs import jobs
from crush_kernel.kernel.commands.mode import NAMES, mode
from crush_kernel.kernel.commands.notebook import export, replay, versions
from crush_kernel.kernel.commands.permissions import USAGE, WORDS, permissions
from crush_kernel.kernel.commands.skills import skills
from crush_kernel.kernel.commands.trust import FORGET, trust
from crush_kernel.kernel.commands.trust import USAGE as TRUST_USAGE
from crush_kernel.kernel.commands.undo import REDO, UNDO, diff, undo
from crush_kernel.kernel.commands.window import COMPACT, compact, context, uncompact
from crush_kernel.kernel.plaintext import code_span, escape
from crush_kernel.kernel.render import thousands
from crush_kernel.providers.base import ModelInfo
from crush_kernel.runtime import Runtime

NEW = "new"
"""The command that is a turn: what runs the cells carries it out."""


@dataclass(frozen=True, slots=True)
class SlashCommand:
    """One command."""

    name: str
    usage: str
    """How to write it, arguments included."""
    summary: str
    """What it does, in a few words."""
    run: Callable[[CommandCall], Awaitable[str | CommandAnswer]]
    """Gives what to show; Markdown alone will do."""


async def run_command(name: str, call: CommandCall) -> CommandAnswer:
    """Carry out `/name arguments` and return what to show.

    Raises:
        CommandError: there is no such command, or it cannot be carried out.
    """
    command = COMMANDS.get(name)
    if command is None:
        raise unknown(name)
    answer = await command.run(call)
    return CommandAnswer(answer) if isinstance(answer, str) else answer


def unknown(name: str) -> CommandError:
    """Return the error for a command that does not exist, naming the nearest ones."""
    near = [match[0] for match in process.extract(name, list(COMMANDS), limit=3, score_cutoff=50)]
    offers = ", ".join(f"/{command}" for command in near or COMMANDS)
    what = f"There is no command /{name}." if name else "A / alone is no command."
    return CommandError(
        what,
        hint=f"Try {offers}. To send this as a prompt, begin the cell with a backslash.",
    )


async def _help(call: CommandCall) -> str:  # noqa: ARG001 - one signature
    rows = "\n".join(f"| `{command.usage}` | {command.summary} |" for command in COMMANDS.values())
    return (
        "Write what you want in a cell and run it: that is a turn of the agent. The cells above "
        "are what it knows.\n\n"
        "| a cell | does |\n|---|---|\n"
        "| `anything else` | asks the agent; `@path` attaches a file, `@f.py:10-40` some lines |\n"
        "| `!command` | runs your own shell command; the agent sees what it printed |\n"
        f"{rows}\n\n"
        "Tab completes `/` and `@`, Shift-Tab explains them. Stop (■) ends a turn and keeps what "
        "was said. Changes and commands ask first."
    )


async def _model(call: CommandCall) -> str:
    arguments, runtime = call.arguments, call.runtime
    if arguments == "keep":
        info = await runtime.models.keep()
        return f"New notebooks begin with {code_span(info.label)}."
    if arguments:
        info = await runtime.models.choose(arguments)
        return f"The next turn asks {_described(info)}. `/model keep` makes it the default."
    return await _model_list(runtime)


async def _model_list(runtime: Runtime) -> str:
    current = (await runtime.models.in_use()).info
    models = await runtime.models.providers.models()
    lines = [f"In use: {_described(current)}", ""]
    for provider, group in groupby(models, key=lambda info: info.provider):
        names = ", ".join(code_span(info.id) for info in list(group)[:MAX_LISTED])
        lines.append(f"- **{escape(provider)}**: {names}")
    others = [status for status in runtime.models.providers.status() if not status.is_usable]
    lines += ["", f"<details><summary>{len(others)} more can be connected</summary>", ""]
    lines += [f"- {escape(status.name)}: {escape(status.reason)}" for status in others]
    lines += [
        "",
        "</details>",
        "",
        "`/model provider/name` switches, `/model keep` remembers the choice.",
    ]
    return "\n".join(lines)


async def _status(call: CommandCall) -> str:
    runtime = call.runtime
    info = (await runtime.models.in_use()).info
    info = replace(info, context_window=runtime.agent.window_of(info))
    talk = runtime.agent.conversation
    title = runtime.session.title
    rows = (
        *((("title", escape(title)),) if title else ()),
        ("provider", code_span(info.provider)),
        ("model", _described(info)),
        ("permission mode", f"`{runtime.agent.gate.mode}`"),
        ("folder", code_span(str(runtime.paths.cwd))),
        ("project", code_span(str(runtime.paths.root))),
        ("turns", f"{len(talk.turns)}, the last request {thousands(talk.context_tokens)} tokens"),
        (
            "crush-kernel",
            f"{__version__} · Python {platform.python_version()} in {code_span(sys.prefix)}",
        ),
        ("ipykernel", f"{version('ipykernel')} · ipywidgets {version('ipywidgets')}"),
    )
    table = "\n".join(f"| {name} | {value} |" for name, value in rows)
    warnings = (*runtime.settings.warnings, *runtime.safety.warnings)
    notes = "".join(f"\n- {escape(warning)}" for warning in warnings)
    return f"| | |\n|---|---|\n{table}\n{notes}"


async def _new(call: CommandCall) -> str:
    raise CommandError(
        f"/new takes nothing, and {call.arguments!r} came with it.",
        hint="Write /new alone in a cell.",
    )


async def _cost(call: CommandCall) -> str:
    runtime = call.runtime
    spent = runtime.agent.conversation.spent_by_model
    used = [(runtime.models.providers.info(label), usage) for label, usage in spent.items()]
    return cost_page(used, runtime.models.cache.misses)


def _described(info: ModelInfo) -> str:
    window = f", {thousands(info.context_window)} tokens of context" if info.context_window else ""
    return f"{code_span(info.label)}{window}"


MAX_LISTED = 12
"""Models of one provider in the list; some have hundreds, and Tab completes them all."""

COMMANDS = {
    command.name: command
    for command in (
        SlashCommand("help", "/help", "shows this page", _help),
        SlashCommand(
            "model", "/model [name or keep]", "lists, switches or keeps the model", _model
        ),
        SlashCommand("status", "/status", "shows model, permissions, folder, versions", _status),
        SlashCommand("mode", "/mode [name]", "shows or sets what passes without a question", mode),
        SlashCommand("permissions", USAGE, "shows the rules, or stores them", permissions),
        SlashCommand("cost", "/cost", "shows the tokens and money spent", _cost),
        SlashCommand(
            "jobs", "/jobs [stop id]", "lists what runs in the background, or stops it", jobs
        ),
        SlashCommand("skills", "/skills", "shows the skills, and what is wrong with them", skills),
        SlashCommand("agents", "/agents", "shows who can be given tasks", agents),
        SlashCommand(
            "trust", TRUST_USAGE, "shows what this project would run, or trusts exactly that", trust
        ),
        SlashCommand("audit", AUDIT_USAGE, "shows what was done here, and by whose leave", audit),
        SlashCommand(NEW, "/new", "starts afresh: cells below know nothing of those above", _new),
        SlashCommand(
            "context", "/context [full]", "shows what the next prompt is sent with", context
        ),
        SlashCommand(
            COMPACT, "/compact [wishes]", "has a summary stand for the cells above", compact
        ),
        SlashCommand("uncompact", "/uncompact", "takes the nearest summary above back", uncompact),
        SlashCommand("replay", "/replay [n]", "shows the turn above again, or the nth", replay),
        SlashCommand(
            "diff", "/diff [n or all]", "shows what the last turn did to files, or the nth", diff
        ),
        SlashCommand(UNDO, "/undo [force]", "takes back what the last turn did to files", undo),
        SlashCommand(REDO, "/redo [force]", "takes back the last /undo", undo),
        SlashCommand(
            "versions",
            "/versions [restore n]",
            "lists the runs of the cell above, or brings one back",
            versions,
        ),
        SlashCommand(
            "export", "/export [md, html or json]", "writes the conversation to a file", export
        ),
    )
}

ARGUMENTS: Mapping[str, Sequence[str]] = MappingProxyType(
    {"mode": NAMES, "permissions": WORDS, "trust": (FORGET,)}
)
"""The first words that some commands take."""
