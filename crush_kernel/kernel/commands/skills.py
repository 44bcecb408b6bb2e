"""`/skills`: what skills there are, what is wrong with others, and what was loaded.

It runs on the engine thread.
"""

from collections.abc import Iterable, Iterator
from itertools import groupby

from crush_kernel.errors import CommandError
from crush_kernel.kernel.commands.call import CommandCall
from crush_kernel.kernel.plaintext import code_span, escape
from crush_kernel.kernel.render import short
from crush_kernel.messages import Message, Text, ToolResult
from crush_kernel.prompt.skills import Skill, Skills
from crush_kernel.prompt.skilltext import invoked_skill
from crush_kernel.tools.view import SKILL_KEY


async def skills(call: CommandCall) -> str:
    """Show all skills, and which of them the turns above have loaded."""
    if call.arguments:
        raise CommandError(
            f"/skills takes nothing, and {call.arguments!r} came with it.",
            hint=f"Write /skills alone, or /{call.arguments.split()[0]} to use that skill.",
        )
    found = await call.runtime.prompts.found_skills()
    above = call.runtime.session.conversation.shares_above(call.cell_id)
    loaded = loaded_skills(message for _, messages in above for message in messages)
    return "\n\n".join(_sections(found, loaded))


def loaded_skills(messages: Iterable[Message]) -> frozenset[str]:
    """Return the names of the skills whose text stands in `messages`."""
    return frozenset(name for message in messages for name in _loaded(message) if name)


def _loaded(message: Message) -> Iterator[str]:
    for part in message.parts:
        match part:
            case ToolResult(metadata=metadata):
                name = metadata.get(SKILL_KEY)
                yield name if isinstance(name, str) else ""
            case Text(text=text) if message.role == "user":
                yield invoked_skill(text)
            case _:
                pass


def _sections(found: Skills, loaded: frozenset[str]) -> Iterator[str]:
    rows = [_row(skill, loaded, "") for skill in found.active]
    rows += [_row(skill, loaded, "disabled") for skill in found.disabled]
    yield "| skill | for | from | state |\n|---|---|---|---|\n" + "\n".join(rows)
    if found.faulty:
        faults = "\n".join(
            f"- {code_span(skill.location)}: {escape('; '.join(skill.faults))}"
            for skill in found.faulty
        )
        yield f"These cannot be used:\n\n{faults}"
    if found.overrides:
        yield "\n".join(_overrides(found))
    if found.is_cut:
        yield "There are more files than are searched; some skills may be missing."
    yield (
        "The agent reads a skill when a task calls for it. One that is marked with a slash is "
        "also called by its name, such as `/jq names of all keys in @data.json`."
    )


def _row(skill: Skill, loaded: frozenset[str], state: str) -> str:
    states = [state] if state else []
    if skill.name in loaded:
        states.append("loaded")
    if not skill.text.is_model_invocable:
        states.append("hidden from the agent")
    name = f"/{skill.name}" if skill.text.is_user_invocable and not state else skill.name
    where = "built-in" if skill.path is None else code_span(skill.location)
    about = escape(short(skill.text.description))
    return f"| {code_span(name)} | {about} | {where} | {', '.join(states)} |"


def _overrides(found: Skills) -> Iterator[str]:
    yield "Of several skills with one name the last counts:\n"
    for name, group in groupby(found.overrides, key=lambda override: override.name):
        unused = ", ".join(code_span(override.unused) for override in group)
        used = next(each.location for each in found.active if each.name == name)
        yield f"- {escape(name)}: {code_span(used)}, not {unused}"
