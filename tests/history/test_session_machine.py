"""Whatever is done to a notebook, its session is a list of cells, each with its last run."""

import json
import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from copy import deepcopy
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
)

from crush_kernel.history.context import messages_of
from crush_kernel.history.repair import repair
from crush_kernel.history.turn import TurnState
from crush_kernel.messages import (
    JsonObject,
    Message,
    Part,
    Reasoning,
    ShellCommand,
    Text,
    ToolCall,
    ToolResult,
)
from crush_kernel.providers import anthropic_wire, openai_wire
from crush_kernel.providers.base import ModelInfo, ModelRequest, ToolSpec
from tests.fakes.histories import MODEL, PROVIDER, reply, results, thinking, user
from tests.fakes.livesession import LiveSession
from tests.fakes.page import Page, PageCell
from tests.fakes.provider import anthropic_rules, openai_rules
from tests.fakes.provider.anthropic_rules import SentThinking

INFO = ModelInfo(PROVIDER, MODEL)
TOOLS = (ToolSpec("view", "Shows a file.", {"type": "object"}),)

places = st.integers(0, 5)


@dataclass(eq=False)
class Run:
    """A turn as the model has it."""

    said: tuple[Message, ...]
    saw: tuple["Run", ...]
    """The turns above it when it ran."""
    is_start: bool = False

    @property
    def depends_on_context(self) -> bool:
        parts = [part for message in self.said for part in message.parts]
        return not self.is_start and not all(isinstance(part, ShellCommand) for part in parts)


def plain(word: str) -> tuple[Message, ...]:
    return user(Text(f"prompt {word}")), reply(Text(f"reply {word}"))


def with_tools(word: str) -> tuple[Message, ...]:
    calls = [ToolCall(f"call_{word}{letter}", "view", '{"path": "a"}') for letter in "ab"]
    return (
        user(Text(f"prompt {word}")),
        reply(thinking(f"thought {word}"), Text(f"I look {word}"), *calls),
        results(*(ToolResult(call.id, f"result {word}") for call in calls)),
        reply(thinking(f"afterthought {word}"), Text(f"done {word}")),
    )


def cut_short(word: str) -> tuple[Message, ...]:
    return with_tools(word)[:2]


def failed(word: str) -> tuple[Message, ...]:
    return (user(Text(f"prompt {word}")),)


def command(word: str) -> tuple[Message, ...]:
    return (user(ShellCommand(f"echo {word}", word, 0)),)


KINDS: dict[str, Callable[[str], tuple[Message, ...]]] = {
    "plain": plain,
    "with tools": with_tools,
    "cut short": cut_short,
    "failed": failed,
    "command": command,
}

ENDS: dict[str, TurnState] = {"cut short": "interrupted", "failed": "error"}

kinds = st.sampled_from(sorted(KINDS))


@dataclass
class Cells:
    """The model: which cells there are from top to bottom, and the turn of each."""

    order: list[str] = field(default_factory=list[str])
    turns: dict[str, Run | None] = field(default_factory=dict[str, Run | None])

    def above(self, cell: str) -> tuple[Run, ...]:
        found: list[Run] = []
        for other in self.order[: self.order.index(cell)]:
            run = self.turns[other]
            if run is not None and run.is_start:
                found = []
            elif run is not None:
                found.append(run)
        return tuple(found)

    @property
    def stale(self) -> list[str]:
        return [
            cell
            for cell in self.order
            if (run := self.turns[cell]) is not None
            and run.depends_on_context
            and run.saw != self.above(cell)
        ]

    def copy(self) -> "Cells":
        return Cells([*self.order], {cell: self.turns[cell] for cell in self.order})


class NotebookMachine(RuleBasedStateMachine):
    """One user with one notebook, and kernels that come and go."""

    @initialize()
    def open_a_notebook(self) -> None:
        self.stack = ExitStack()
        self.folder = Path(self.stack.enter_context(TemporaryDirectory()))
        self.path = self.folder / "nb.ipynb"
        self.page = Page("c0", "c1", path=str(self.path))
        self.page.save()
        self.cells = Cells(["c0", "c1"], {"c0": None, "c1": None})
        self.files = [(self.page.file, self.cells.copy())]
        """What was saved, oldest first."""
        self.unsaved: dict[str, Run] = {}
        """The last run of each cell that no save has held, and that was not given up."""
        self.heard: set[str] = set()
        """The cells whose last run a page has written, as far as this kernel knows."""
        self.runs: dict[str, Run] = {}
        self.latest: dict[str, str] = {}
        """The ids of the last turns of the cells."""
        self.deleted: list[PageCell] = []
        self.count = 1
        self.sent = SentThinking()
        self.start_kernel()

    def start_kernel(self) -> None:
        self.heard = {*self.cells.order}
        self.live = LiveSession(self.folder, self.path)
        self.live.open(self.page)

    def teardown(self) -> None:
        if hasattr(self, "stack"):
            self.live.kill()
            self.stack.close()

    def fresh(self, prefix: str) -> str:
        self.count += 1
        return f"{prefix}{self.count}"

    def cell(self, place: int) -> str:
        return self.cells.order[place % len(self.cells.order)]

    # What the user does with cells

    def put(self, place: int, cell: PageCell, run: Run | None) -> None:
        place %= len(self.cells.order) + 1
        self.page.insert(place, cell)
        self.cells.order.insert(place, cell.id)
        self.cells.turns[cell.id] = run
        self.live.hear(self.page)

    @rule(place=places)
    @precondition(lambda self: len(self.cells.order) < 6)
    def insert(self, place: int) -> None:
        self.put(place, PageCell(self.fresh("c")), None)

    @rule(place=places)
    @precondition(lambda self: len(self.cells.order) > 1)
    def delete(self, place: int) -> None:
        cell = self.cell(place)
        self.deleted.append(self.page.delete(cell))
        self.cells.order.remove(cell)
        self.live.hear(self.page)

    @rule(place=places)
    @precondition(lambda self: self.deleted)
    def undo_delete(self, place: int) -> None:
        cell = self.deleted.pop()
        again = PageCell(cell.id, cell.source, crush=cell.crush, outputs=cell.outputs)
        run = self.cells.turns[cell.id]
        if cell.id not in self.heard:
            run = self.unsaved.get(cell.id, run)
        self.heard.add(cell.id)
        self.put(place, again, run)

    @rule(source=places, goal=places)
    def move(self, source: int, goal: int) -> None:
        cell = self.page[self.cell(source)]
        self.page.cells.remove(cell)
        self.cells.order.remove(cell.id)
        self.put(goal, cell, self.cells.turns[cell.id])

    @rule(source=places, goal=places)
    @precondition(lambda self: len(self.cells.order) < 6)
    def copy_and_paste(self, source: int, goal: int) -> None:
        cell = self.page[self.cell(source)]
        copied = PageCell(self.fresh("c"), crush=deepcopy(cell.crush))
        self.put(goal, copied, self.cells.turns[cell.id])

    @rule(place=places)
    def edit(self, place: int) -> None:
        self.page[self.cell(place)].source = self.fresh("text ")

    # Turns

    def begin(self, cell: str, said: tuple[Message, ...]) -> Run:
        """Begin a turn and say everything in it."""
        for message in said:
            if message.role == "assistant":
                self.sent.remember([block_of(part) for part in message.parts])
        run = Run(said, self.cells.above(cell))
        self.latest[cell] = self.live.begin(cell, *said)
        self.runs[self.latest[cell]] = self.unsaved[cell] = run
        self.heard.add(cell)
        return run

    @rule(place=places, kind=kinds)
    def run(self, place: int, kind: str) -> None:
        cell = self.cell(place)
        run = self.begin(cell, KINDS[kind](self.fresh("w")))
        self.live.tell_turn(self.page, self.live.end(ENDS.get(kind, "end_turn")))
        self.cells.turns[cell] = run

    @rule(place=places)
    def start_afresh(self, place: int) -> None:
        cell = self.cell(place)
        run = self.begin(cell, ())
        run.is_start = True
        self.live.tell_turn(self.page, self.live.end(is_start=True))
        self.cells.turns[cell] = run

    @rule(place=places)
    @precondition(lambda self: len(self.cells.order) > 1)
    def delete_while_it_runs(self, place: int) -> None:
        cell = self.cell(place)
        self.begin(cell, plain(self.fresh("w")))
        self.delete(place)
        self.live.tell_turn(self.page, self.live.end())
        self.heard.remove(cell)

    @rule(place=places, number=st.integers(0, 4))
    def bring_an_earlier_run_back(self, place: int, number: int) -> None:
        cell = self.cell(place)
        versions = self.live.session.versions(cell)
        if versions:
            wanted = versions[number % len(versions)]
            self.live.bring_back(self.page, cell, wanted.run)
            run = self.runs[wanted.id]
            self.latest[cell] = self.live.turns[cell]
            self.runs[self.latest[cell]] = self.unsaved[cell] = run
            self.cells.turns[cell] = run
            self.heard.add(cell)

    # The kernel, the page and the file

    @rule()
    def restart_the_kernel(self) -> None:
        self.live.kill()
        self.start_kernel()

    @rule(place=places, kind=kinds)
    def kill_the_kernel(self, place: int, kind: str) -> None:
        cell = self.cell(place)
        run = self.begin(cell, KINDS[kind](self.fresh("w")))
        self.live.kill()
        self.cells.turns[cell] = run
        self.start_kernel()

    @rule()
    def save(self) -> None:
        self.live.save(self.page)
        self.files.append((self.page.file, self.cells.copy()))
        # A copy that is in the file will do.
        held = {*self.page.turns.values()}
        self.unsaved = {
            cell: run
            for cell, run in self.unsaved.items()
            if cell not in self.heard and self.latest[cell] not in held
        }

    def show_file(self) -> None:
        """Have the model show the last file, as a page that is opened does."""
        self.cells = self.files[-1][1].copy()
        for cell in self.cells.order:
            self.cells.turns[cell] = self.unsaved.get(cell) or self.cells.turns[cell]
        self.heard |= {*self.cells.order}
        self.deleted.clear()

    @rule()
    def reload_the_page(self) -> None:
        self.show_file()
        self.page = self.page.reloaded()
        self.live.open(self.page)

    @rule(place=places, kind=kinds)
    def lose_kernel_and_page(self, place: int, kind: str) -> None:
        self.begin(self.cell(place), KINDS[kind](self.fresh("w")))
        self.live.kill()
        self.show_file()
        self.page = self.page.reloaded()
        self.start_kernel()

    @rule(number=st.integers(0, 3))
    def check_out_an_older_file(self, number: int) -> None:
        file = self.files[-1 - number % len(self.files)]
        self.files.append(file)
        self.page.file = deepcopy(file[0])
        self.reload_the_page()

    @invariant()
    def the_page_holds_the_turns(self) -> None:
        if not hasattr(self, "cells"):
            return
        assert self.page.ids == self.cells.order
        talk = self.live.session.conversation
        assert talk.order == tuple(self.cells.order)
        held = {cell: turn for cell, turn in self.page.turns.items() if turn is not None}
        assert held == {cell: talk.turns[cell].id for cell in held}
        assert {*held} == {cell for cell in self.cells.order if self.cells.turns[cell]}
        assert {cell: self.runs[turn] for cell, turn in held.items()} == {
            cell: self.cells.turns[cell] for cell in held
        }

    @invariant()
    def what_is_stale_has_seen_something_else(self) -> None:
        if hasattr(self, "cells"):
            assert [*self.live.session.conversation.stale()] == self.cells.stale
            assert self.page.stale == self.cells.stale

    @invariant()
    def a_cell_sees_what_is_above_it_as_it_ran_last(self) -> None:
        if not hasattr(self, "cells"):
            return
        for cell in self.cells.order:
            context = context_of(self.live, cell)
            assert context == tuple(expected(self.cells.above(cell)))
            assert_is_accepted(context, self.sent)

    @rule()
    def a_next_kernel_would_find_the_same(self) -> None:
        page = deepcopy(self.page)
        contexts = [context_of(self.live, cell) for cell in self.cells.order]
        with TemporaryDirectory() as folder:
            data = self.folder / ".crush"
            if data.exists():
                shutil.copytree(data, Path(folder) / ".crush")
            other = LiveSession(Path(folder), self.path)
            other.open(page)
            assert [context_of(other, cell) for cell in self.cells.order] == contexts
            assert other.session.id == self.live.session.id
            assert other.notices == ""
            other.kill()
        assert page.stored() == self.page.stored()
        assert page.stale == self.page.stale


def block_of(part: Part) -> JsonObject:
    return part.provider_data if isinstance(part, Reasoning) else {"type": "other"}


def context_of(live: LiveSession, cell: str) -> tuple[Message, ...]:
    talk = live.session.conversation
    return tuple(messages_of(talk.turns[other] for other in talk.above(cell)))


def expected(above: tuple[Run, ...]) -> Iterator[Message]:
    """Yield what a cell under the turns `above` should see."""
    for number, run in enumerate(above):
        for message in run.said:
            if run.saw == above[:number]:
                yield message
            else:
                parts = (part for part in message.parts if not isinstance(part, Reasoning))
                yield replace(message, parts=tuple(parts))


def assert_is_accepted(context: tuple[Message, ...], sent: SentThinking) -> None:
    """Check that the strictest providers take a prompt after `context`."""
    messages = repair((*context, user(Text("Go on."))))
    request = ModelRequest("Be good.", messages, TOOLS)
    anthropic = anthropic_wire.RequestEncoder(INFO, use_cache=True).encode(request)
    anthropic_rules.check_body(json.loads(anthropic), sent)
    openai = openai_wire.RequestEncoder(INFO).encode(request, openai_wire.Dialect())
    openai_rules.check_body(json.loads(openai))


NotebookMachine.TestCase.settings = settings(max_examples=30, stateful_step_count=25)
TestNotebook = pytest.mark.slow(NotebookMachine.TestCase)
