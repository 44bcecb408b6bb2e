"""A process that runs one cell of a long task, as a kernel would, until it is done or killed.

Usage: `python -m tests.agent.long_task FOLDER OPTIONS`, where `OPTIONS` is the JSON of `Options`.
The conversation is kept in a journal in `FOLDER`; a process that is started again goes on from
there. The tool `put` writes a line of the task's file, and prints as much as is asked for.
"""

import json
import sys
from dataclasses import dataclass
from pathlib import Path

import anyio
import anyio.to_thread
from pydantic import Field

from crush_kernel.agent.agent import Agent, Watcher
from crush_kernel.agent.events import Event, SummaryFinished, TurnFinished
from crush_kernel.history.journal.journal import Journal
from crush_kernel.history.notebook import NotebookContents
from crush_kernel.history.redaction import Redactor
from crush_kernel.history.session import Session
from crush_kernel.messages import Message, Text
from crush_kernel.permissions.gate import DenyAll, Gate
from crush_kernel.prompt.system import PromptPart, SystemPrompt
from crush_kernel.providers.anthropic import AnthropicModel
from crush_kernel.providers.base import Model, ModelInfo
from crush_kernel.providers.openai import OpenAIModel
from crush_kernel.tools.base import AnyTool, Arguments, Tool, ToolContext, ToolOutput, erase

RULES = "Rules of this project: sort nothing, and end each line with a full stop."


@dataclass(frozen=True)
class Options:
    url: str
    protocol: str
    window: int
    cell_id: str
    prompt: str


class PutArguments(Arguments):
    number: int = Field(description="Which line to write, from 1.")
    size: int = Field(description="How many characters to print.")


def put(path: Path) -> AnyTool:
    """Writes a line where it belongs, however often it is asked to."""

    def write(number: int) -> None:
        lines = path.read_text().splitlines() if path.exists() else []
        lines += [""] * (number - len(lines))
        lines[number - 1] = f"line {number}."
        path.write_text("\n".join(lines) + "\n")

    async def run(arguments: PutArguments, _: ToolContext) -> ToolOutput:
        await anyio.to_thread.run_sync(write, arguments.number)
        said = f"progress: {arguments.number}\n"
        return ToolOutput(said + "words and more words. " * (arguments.size // 22))

    return erase(
        Tool(
            name="put",
            description="Writes one line of result.txt.",
            arguments=PutArguments,
            run=run,
            describe=lambda arguments: str(arguments.number),
        )
    )


def model_for(options: Options) -> Model:
    info = ModelInfo(options.protocol, "long-1", context_window=options.window)
    if options.protocol == "anthropic":
        return AnthropicModel(info, api_key="k", base_url=options.url)
    return OpenAIModel(info, api_key="k", base_url=options.url)


async def system_prompt() -> SystemPrompt:
    parts = (PromptPart("instructions", "Be good."), PromptPart("memory: AGENTS.md", RULES))
    return SystemPrompt(parts, reminder="Today is Monday.")


async def run(folder: Path, options: Options) -> None:
    redactor = Redactor({})
    journal = Journal.open(folder / ".crush", clean=redactor.redact_json)
    session = Session(journal=journal, redactor=redactor, notebook=folder / "nb.ipynb")
    session.load_file(NotebookContents())
    agent = Agent(
        tools=(put(folder / "result.txt"),),
        gate=Gate(),
        system_prompt=system_prompt,
        conversation=session.conversation,
    )
    model = model_for(options)
    log = (folder / "events.jsonl").open("a")

    def hear(event: Event) -> None:
        if isinstance(event, SummaryFinished | TurnFinished):
            told = {"kind": type(event).__name__}
            if isinstance(event, SummaryFinished):
                told |= {"before": event.before_tokens, "after": event.after_tokens}
            print(json.dumps(told), file=log, flush=True)

    session.begin(options.cell_id, options.prompt)
    try:
        message = Message("user", (Text(options.prompt),))
        await agent.prompt(message, model=model, watcher=Watcher(hear, DenyAll()))
    finally:
        turn = session.conversation.turn_in(options.cell_id)
        if turn is not None:
            session.finish(turn, [], 1)
        await model.aclose()
        journal.close()
        log.close()


if __name__ == "__main__":
    anyio.run(run, Path(sys.argv[1]), Options(**json.loads(sys.argv[2])))
