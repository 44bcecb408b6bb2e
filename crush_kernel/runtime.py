"""Build everything that a kernel needs, and take it down again.

The only module that knows everyone: an environment and a folder go in, a `Runtime` comes
out, whose parts were handed to each other and never look each other up. It lives on the
engine thread, in the coroutine that opened it.
"""

import logging
import os
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import anyio
import anyio.from_thread
import anyio.to_thread
from anyio.abc import TaskGroup

from crush_kernel.agent.agent import Agent, Watcher
from crush_kernel.agent.contents import Contents
from crush_kernel.agent.events import (
    Emit,
    Event,
    Notice,
    StepFinished,
    SummaryFinished,
    TurnFinished,
)
from crush_kernel.agent.jobnews import JobNews, last_job_number
from crush_kernel.agent.models import Models
from crush_kernel.agent.prompthooks import PromptHooks
from crush_kernel.agent.steps import Limits
from crush_kernel.agent.titling import Titling
from crush_kernel.agent.toolbelt import SubAgentParts, ToolBelt
from crush_kernel.agent.usercommand import UserCommands
from crush_kernel.config.directories import project_data_directory, project_root
from crush_kernel.config.settings import Settings, read_settings
from crush_kernel.config.state import FILE_NAME, State
from crush_kernel.config.trust import untrusted_notice
from crush_kernel.errors import CommandError, CrushKernelError
from crush_kernel.history.conversation import CellRun
from crush_kernel.history.journal.journal import Journal
from crush_kernel.history.notebook import NotebookContents
from crush_kernel.history.notebookfile import path_in, path_told, read_notebook_file
from crush_kernel.history.redactedstream import RedactedStream, redacted_so_far
from crush_kernel.history.redaction import Redactor
from crush_kernel.history.session import CellUpdate, Session
from crush_kernel.history.summary import is_summary
from crush_kernel.history.usermark import user_mark
from crush_kernel.hooks.hooks import Hooks
from crush_kernel.hooks.payload import Situation
from crush_kernel.messages import Message, Text
from crush_kernel.permissions.shell.reading import read_command
from crush_kernel.prompt.prompts import Prompts, open_prompts
from crush_kernel.prompt.reminder import describe_mode
from crush_kernel.prompt.skills import Skill
from crush_kernel.prompt.skilltext import invocation
from crush_kernel.prompt.system import SystemPrompt
from crush_kernel.providers.selection import Providers
from crush_kernel.safety import Safety, open_safety
from crush_kernel.shell.jobs import Jobs
from crush_kernel.shell.runner import Shell
from crush_kernel.tools.attachments import Attachments
from crush_kernel.tools.network import network_tools
from crush_kernel.tools.notebook.openpage import NotebookDesk
from crush_kernel.tools.paths import PathPolicy
from crush_kernel.tools.question import QuestionDesk
from crush_kernel.tools.setup import Setup, setup_tools
from crush_kernel.tools.tracker import ReadTracker
from crush_kernel.tools.undo.rewind import Rewind
from crush_kernel.tools.undo.shadow import Shadow
from crush_kernel.tools.undo.worktree import Worktree

logger = logging.getLogger(__name__)


@dataclass(slots=True)
class Runtime:
    """The parts of one kernel, and the model that its next turn will ask."""

    settings: Settings
    paths: PathPolicy
    models: Models
    agent: Agent
    shell: Shell
    jobs: Jobs
    attachments: Attachments
    session: Session
    prompts: Prompts
    titling: Titling
    questions: QuestionDesk
    """Where a turn says who answers what the model asks."""
    desk: NotebookDesk
    """Where the kernel puts the page that shows the notebook."""
    job_news: JobNews
    rewind: Rewind
    tracker: ReadTracker
    """What the model has seen of files."""
    safety: Safety
    """What was said about what may be done."""
    prompt_hooks: PromptHooks

    async def load(self, cell_id: str) -> None:
        """Have the notebook's file tell what it holds, unless that is known.

        Args:
            cell_id: of the cell that runs; some front ends tell with it which notebook it is.
        """
        if not self.session.is_loaded:
            if self.session.notebook is None and (notebook := path_in(cell_id)):
                self.session.moved(notebook)
            contents = await anyio.to_thread.run_sync(
                _contents_of, self.session.notebook, abandon_on_cancel=True
            )
            if not self.session.is_loaded:
                self.session.load_file(contents)

    async def give_up(self, cell_id: str) -> CellUpdate | None:
        """Have no turn stand in a cell that is no prompt any more; see `Session.give_up`."""
        await self.load(cell_id)
        return self.session.give_up(cell_id)

    async def begin(self, cell_id: str, text: str) -> CellRun:
        """Begin the turn of a cell that runs now, and return where it stands."""
        await self.load(cell_id)
        place = self.session.begin(cell_id, text)
        self.rewind.worktree.turn_id = place.turn_id
        return place

    async def invocable_skill(self, name: str) -> Skill | None:
        """Return the skill that people call as `/name`, if there is one."""
        skill = (await self.prompts.found_skills()).named(name)
        return skill if skill is not None and skill.text.is_user_invocable else None

    async def prompt(
        self,
        text: str,
        *,
        watcher: Watcher,
        skill: Skill | None = None,
        is_watched: bool = True,
    ) -> None:
        """Run the turn that was begun on `text`, with the files that it mentions attached.

        Args:
            text: what the user asks, or what a skill is called on.
            watcher: is told, and asked.
            skill: what the user calls.
            is_watched: whether a person is there, for whom a model names the notebook; in a
                run of a program the first line does.
        """
        self.job_news.begin_turn()
        self.prompts.begin_turn()
        try:
            named = text if skill is None else f"/{skill.name} {text}".strip()
            async with self.rewind.turn():
                watched = self._titling(named, watcher, is_watched=is_watched)
                await self._prompt(text, watched, skill, named=named)
        finally:
            self.job_news.end_turn()
            self.prompts.end_turn()

    async def compact(self, wishes: str, *, watcher: Watcher) -> None:
        """Have the turn that was begun hold a summary of what is above it.

        Args:
            wishes: what the user wants of the summary, in words.
            watcher: is told.
        """
        self.prompts.begin_turn()
        try:
            model = await self.models.in_use()
            watcher = Watcher(partial(self._tell, watcher.emit), watcher.asker)
            clean = self.session.redactor.redact(wishes)
            await self.agent.compact(clean, model=model, watcher=watcher)
        finally:
            self.prompts.end_turn()

    def check_compact(self, cell_id: str) -> None:
        """Raise `CommandError` if nothing stands above a cell that can be summarized."""
        shares = self.session.conversation.shares_above(cell_id)
        if all(is_summary(message) for _, said in shares for message in said):
            raise CommandError(
                "There is nothing above this cell that can be summarized.",
                hint="Run it below the cells that a summary is to stand for.",
            )

    async def contents(self, cell_id: str) -> Contents:
        """Return what a prompt in `cell_id` would be sent with now; nobody is told anything."""
        info = (await self.models.in_use()).info
        prompt = _reminding(await self.prompts.preview(), self.job_news.preview())
        prompt = _reminding(prompt, describe_mode(self.agent.gate.mode))
        return self.agent.contents(cell_id, prompt, info)

    async def system_prompt(self) -> SystemPrompt:
        """Return the prompt for a request of the running turn that is sent now."""
        prompt = _reminding(await self.prompts.system_prompt(), self.job_news.said)
        prompt = _reminding(prompt, describe_mode(self.agent.gate.mode))
        return _reminding(prompt, self.prompt_hooks.reminder)

    async def _prompt(
        self, text: str, watcher: Watcher, skill: Skill | None, *, named: str
    ) -> None:
        model = await self.models.in_use()
        watcher = Watcher(partial(self._tell, watcher.emit), watcher.asker)
        added = await self.prompt_hooks.let_pass(
            named, has_history=bool(self.agent.conversation.context), emit=watcher.emit
        )
        permit = self.agent.permission_for(watcher)
        parts = await self.attachments.load(text, permit=permit)
        if skill is not None:
            asked = invocation(skill.text, location=skill.location, arguments=text)
            parts = (Text(asked), *parts[1:])
        if added:
            parts = (*parts, Text(f"\n\n{added}"))
        (message,) = self.session.redactor.redact_messages((Message("user", parts),))
        for notice in self.session.take_notices():
            watcher.emit(Notice(notice))
        await self.agent.prompt(message, model=model, watcher=watcher)

    def _titling(self, text: str, watcher: Watcher, *, is_watched: bool) -> Watcher:
        """Return `watcher`, with the notebook given a title once the first reply is there.

        Not before: a server that does one thing at a time would do that instead of the turn.
        """
        if self.session.title:
            return watcher
        clean = self.session.redactor.redact(text)

        def emit(event: Event) -> None:
            watcher.emit(event)
            if isinstance(event, StepFinished):
                self.titling.give(clean, self.models.info, is_watched=is_watched)

        return Watcher(emit, watcher.asker)

    def _tell(self, emit: Emit, event: Event) -> None:
        """Tell `event`, before the last one what the session has to say."""
        if isinstance(event, StepFinished):
            self.job_news.has_arrived()
        if isinstance(event, SummaryFinished):
            self.tracker.forget()
        if isinstance(event, TurnFinished):
            for notice in self.session.take_notices():
                emit(Notice(notice))
        emit(event)

    @property
    def user_commands(self) -> UserCommands:
        """What runs the user's own commands."""
        return UserCommands(
            self.agent.conversation,
            self.shell,
            self.rewind,
            self.session.redactor,
            self.paths.cwd,
        )

    async def warm_up(self) -> None:
        """Do ahead what the first turn would do: compile, import the SDK, open the client."""
        await anyio.to_thread.run_sync(self.session.redactor.redact, "")
        try:
            await self.models.in_use()
        except CrushKernelError:
            logger.info("no model to warm up; the first turn will say why", exc_info=True)
        self.prompts.begin_turn()
        await self.prompts.preview()
        # The first command comes after a reply: what the request needs goes before.
        await anyio.to_thread.run_sync(read_command, "true")


@asynccontextmanager
async def open_runtime(*, environ: Mapping[str, str], cwd: Path) -> AsyncGenerator[Runtime]:
    """Build the parts for `cwd` and close them in reverse; every child ends with them."""
    settings = read_settings(environ)
    own = (settings.directories.config, settings.directories.data)
    paths = PathPolicy(root=project_root(cwd), cwd=cwd, own=own)
    state = State(settings.directories.data / FILE_NAME)
    redactor = Redactor(environ, settings.redact_patterns)
    mark = user_mark(settings.directories.data)
    data = project_data_directory(cwd, paths.root)
    journal = Journal.open(data, clean=redactor.redact_json, mark=mark)
    session = Session(journal=journal, redactor=redactor, notebook=path_told(environ))
    clean = partial(redacted_so_far, redactor=redactor)
    models = Models(Providers(settings, state))
    safety = await anyio.to_thread.run_sync(partial(open_safety, settings, paths, data=data))
    for notice in filter(None, (untrusted_notice(safety.trust.files), *safety.warnings)):
        session.note(notice)
    async with (
        Shell(settings.environ, clean=clean) as shell,
        Jobs(
            shell,
            open_stream=partial(RedactedStream, redactor),
            last_used=lambda: last_job_number(session.conversation.everything),
            sandbox=safety.sandbox,
        ) as jobs,
        anyio.create_task_group() as tasks,
    ):

        async def system_prompt() -> SystemPrompt:
            return await runtime.system_prompt()

        prompts = open_prompts(settings, cwd=paths.cwd, project_root=paths.root, tasks=tasks)
        prompts.model = lambda: models.info.id if models.info else ""
        titling = Titling(session, tasks, models.small)
        job_news = JobNews(jobs, redactor.redact)
        questions, desk = QuestionDesk(), NotebookDesk()
        worktree = _worktree(settings, paths, session, jobs, tasks, data=data, mark=mark)
        belt = ToolBelt(
            paths=paths,
            jobs=jobs,
            network=network_tools(settings),
            questions=questions,
            skills=prompts.skills,
            accepts=models.accepts,
            notebook=lambda: session.notebook,
            desk=desk,
            watch=worktree,
            about=setup_tools(
                _setup(settings, models, safety, prompts, jobs, data=data), redact=redactor.redact
            ),
            subagents=SubAgentParts(prompts, data),
            disabled=safety.disabled_tools,
            modes=safety.gate,
        )
        hooks = Hooks(shell, cwd=paths.cwd, situation=lambda: _situation(runtime))
        safety.run_hooks(hooks)
        runtime = Runtime(
            settings=settings,
            paths=paths,
            models=models,
            agent=_agent(settings, belt, session, system_prompt, models, safety=safety),
            shell=shell,
            jobs=jobs,
            attachments=Attachments(paths, belt.tracker),
            session=session,
            prompts=prompts,
            titling=titling,
            questions=questions,
            desk=desk,
            job_news=job_news,
            rewind=Rewind(paths, journal.file_history, worktree, lambda: session.id),
            tracker=belt.tracker,
            safety=safety,
            prompt_hooks=PromptHooks(hooks),
        )
        tasks.start_soon(runtime.warm_up)
        try:
            yield runtime
        finally:
            tasks.cancel_scope.cancel()
            with anyio.move_on_after(1, shield=True):
                await models.aclose()
            journal.close()


def limits_of(settings: Settings) -> Limits:
    """Return where a turn ends, as the user has set it."""
    return Limits(
        steps=int(settings.max_turn_steps),
        duration_s=60 * settings.max_turn_minutes,
        cost_usd=settings.max_turn_cost,
        tokens=int(settings.max_turn_tokens),
    )


def _reminding(prompt: SystemPrompt, also: str) -> SystemPrompt:
    """Return `prompt` with something else to remind the model of, if that is anything."""
    return replace(prompt, reminder="\n".join(filter(None, (prompt.reminder, also))))


def _contents_of(notebook: Path | None) -> NotebookContents:
    return NotebookContents() if notebook is None else read_notebook_file(notebook)


def _worktree(
    settings: Settings,
    paths: PathPolicy,
    session: Session,
    jobs: Jobs,
    tasks: TaskGroup,
    *,
    data: Path,
    mark: str,
) -> Worktree:
    files = session.journal.file_history

    def is_excluded(path: str) -> bool:
        notebook = session.notebook
        return notebook is not None and os.path.realpath(notebook) == str(paths.root / path)

    def open_shadow() -> Shadow:
        # In a worker thread; a git that waits for a pipe would outlive a kernel that is killed.
        guard = anyio.from_thread.run_sync(jobs.guard)
        return Shadow(
            root=paths.root,
            directory=data,
            session=session.id,
            mark=mark,
            environ={**settings.environ, **guard},
            has_secret=files.has_secret,
            is_excluded=is_excluded,
        )

    worktree = Worktree(
        root=paths.root,
        open_shadow=open_shadow,
        record=lambda turn_id, changes: files.add(session.id, turn_id, changes),
        has_jobs=lambda: any(not job.is_ended for job in jobs.listed),
        tasks=tasks,
    )
    files.on_tool_change = worktree.note
    return worktree


def _setup(
    settings: Settings,
    models: Models,
    safety: Safety,
    prompts: Prompts,
    jobs: Jobs,
    *,
    data: Path,
) -> Setup:
    return Setup(
        settings=settings,
        data_directory=data,
        providers=models.providers,
        model=lambda: models.info,
        mode=lambda: safety.gate.mode,
        skills=prompts.found_skills,
        agents=prompts.found_agents,
        jobs=jobs,
        config_files=tuple(str(file.path) for file in safety.trust.files.files),
        disabled_tools=tuple(safety.disabled_tools),
    )


def _agent(
    settings: Settings,
    belt: ToolBelt,
    session: Session,
    system_prompt: Callable[[], Awaitable[SystemPrompt]],
    models: Models,
    *,
    safety: Safety,
) -> Agent:
    return Agent(
        tools=belt.for_agent(),
        gate=safety.gate,
        system_prompt=system_prompt,
        conversation=session.conversation,
        limits=limits_of(settings),
        summarizes=not settings.disables_summaries,
        open_model=models.beside,
        hooks=safety.hooks,
    )


def _situation(runtime: Runtime) -> Situation:
    notebook = runtime.session.notebook
    return Situation(
        session_id=runtime.session.id,
        cwd=str(runtime.paths.cwd),
        project=str(runtime.paths.root),
        transcript_path=str(notebook) if notebook else "",
        mode=runtime.agent.gate.mode,
    )
