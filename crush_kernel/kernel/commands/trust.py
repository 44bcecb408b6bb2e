"""`/trust`: what this project wants to be trusted with, and trusting it with exactly that.

It runs on the engine thread; files are read and written in a worker thread.
"""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from anyio.to_thread import run_sync

from crush_kernel.config.configfiles import SCRIPT_NAMES, ConfigFiles, folders_of_project
from crush_kernel.config.trust import SHORT
from crush_kernel.errors import CommandError, NothingToDo
from crush_kernel.kernel.commands.call import CommandCall
from crush_kernel.kernel.commands.trustpage import (
    Look,
    ReadSource,
    hidden_note,
    is_too_large,
    sections,
)
from crush_kernel.kernel.render import short
from crush_kernel.runtime import Runtime

FORGET: Final = "forget"
ENVIRONMENT: Final = ".env"
USAGE: Final = f"/trust [hash or {FORGET}]"

_CHANGED: Final = "It is **not what was shown** before, so nothing was trusted. This is what it is:"
_UNSEEN: Final = "It was not shown in this kernel yet, so nothing was trusted. This is what it is:"


async def trust(call: CommandCall) -> str:
    """Show what the project claims, trust exactly that, or take the trust back."""
    trust = call.runtime.safety.trust
    word = call.arguments.strip().lower()
    if word == FORGET:
        if not trust.files.claims:
            raise NothingToDo("There is nothing in the configuration of this project to trust.")
        await run_sync(trust.forget)
        return "This project is trusted with nothing now. Its hooks do not run any more."
    if word and not _is_hash(word):
        raise CommandError(f"/trust knows no {short(call.arguments)!r}.", hint=f"Write {USAGE}.")
    files = await run_sync(trust.look)
    if not word:
        return await _page(call.runtime, files, "")
    if not files.claims:
        raise NothingToDo("There is nothing in the configuration of this project to trust.")
    if not files.digest.startswith(word):
        return await _page(call.runtime, files, _CHANGED)
    if trust.files.is_trusted and files.digest == trust.files.digest:
        raise NothingToDo("This project is trusted with exactly that already.")
    if not trust.was_shown(files):
        return await _page(call.runtime, files, _UNSEEN)
    taken = await run_sync(trust.trust, files)
    if not taken.is_trusted or taken.digest != files.digest:
        return await _page(call.runtime, taken, _CHANGED)
    return (
        "Trusted: what was shown of this project is in effect from now on, hooks included. "
        f"`/trust {FORGET}` takes it back."
    )


def _is_hash(word: str) -> bool:
    return len(word) >= SHORT and all(letter in "0123456789abcdef" for letter in word)


async def _page(runtime: Runtime, files: ConfigFiles, said: str) -> str:
    if not is_too_large(files):
        runtime.safety.trust.show(files)
    paths = runtime.paths
    unused = await run_sync(lambda: tuple(_never_used(paths.cwd, paths.root)))
    look = Look(str(paths.root), files, await _sources(runtime), unused)
    return "\n\n".join(sections(look, said))


async def _sources(runtime: Runtime) -> tuple[ReadSource, ...]:
    """Return what the model reads of the project as instructions."""
    prompts = runtime.prompts
    memory, skills, agents = (
        await prompts.found_memory(),
        await prompts.found_skills(),
        await prompts.found_agents(),
    )
    return (
        *(
            ReadSource("memory file", file.path, hidden_note(file.text, taken_out=file.hidden))
            for file in memory
            if not file.is_global
        ),
        *(
            ReadSource("skill", skill.location)
            for skill in skills.active
            if skill.scope == "project"
        ),
        *(
            ReadSource("agent", agent.location, hidden_note(agent.text))
            for agent in agents.active
            if not Path(agent.location).is_absolute()
        ),
    )


def _never_used(cwd: Path, root: Path) -> Iterator[str]:
    """Yield the files that other programs would run, or load into their environment."""
    for folder in folders_of_project(cwd, root):
        for name in (*SCRIPT_NAMES, ENVIRONMENT):
            if os.path.lexists(folder / name):
                yield os.path.relpath(folder / name, cwd)
