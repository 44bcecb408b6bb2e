"""What the editor asks about a cell while it is written: what Tab and Shift-Tab offer.

Main loop; folders are listed in threads, skills and models come from the engine.
"""

import asyncio
from dataclasses import dataclass
from typing import Any

from crush_kernel.kernel import completion, inspection
from crush_kernel.kernel.bridge import Engine
from crush_kernel.kernel.commands.table import ARGUMENTS, COMMANDS
from crush_kernel.runtime import Runtime


@dataclass(frozen=True, slots=True)
class EditorHelp:
    """Answers what an editor asks, by what the runtime knows."""

    runtime: Runtime
    engine: Engine[Runtime]

    async def complete(self, code: str, cursor: int) -> dict[str, Any]:
        """Return the content of a `complete_reply`; `cursor` counts code points."""
        wanted = completion.wanted_at(code, cursor)
        return completion.reply(code, cursor, wanted, await self._matches(wanted))

    async def inspect(self, code: str, cursor: int) -> dict[str, Any]:
        """Return the content of an `inspect_reply`; `cursor` counts code points."""
        word = inspection.word_at(code, cursor)
        markdown = await asyncio.to_thread(
            inspection.describe, word, paths=self.runtime.paths, tools=self.runtime.agent.tools
        )
        return inspection.reply(markdown)

    async def _matches(self, wanted: completion.Wanted | None) -> list[completion.Match]:
        match wanted:
            case completion.Wanted(kind="command", word=word):
                found = await self.engine.run(self.runtime.prompts.found_skills)
                skills = [skill.name for skill in found.invocable if skill.name not in COMMANDS]
                names = [(name, "command") for name in COMMANDS]
                names += [(name, "skill") for name in skills]
                return [
                    completion.Match(f"/{name}", kind)
                    for name, kind in names
                    if name.startswith(word)
                ]
            case completion.Wanted(kind="argument", command="model", word=word):
                models = await self.engine.run(self.runtime.models.providers.models)
                labels = ["keep", *(info.label for info in models)]
                return [completion.Match(label, "model") for label in labels if word in label]
            case completion.Wanted(kind="argument", command=command, word=word):
                words = ARGUMENTS.get(command, ())
                offers = [each for each in words if each.startswith(word)]
                return [completion.Match(each, "argument") for each in offers]
            case completion.Wanted(kind="file", word=word):
                return await asyncio.to_thread(
                    completion.file_matches, word, self.runtime.paths.cwd
                )
            case _:
                return []
