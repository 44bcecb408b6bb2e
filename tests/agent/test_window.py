"""How a conversation is kept within the window of its model."""

import json
from collections.abc import Callable
from dataclasses import dataclass, field

import anyio
import pytest

from crush_kernel.agent.agent import Agent, Watcher
from crush_kernel.agent.events import (
    Event,
    Notice,
    Steered,
    SummaryFinished,
    SummaryStarted,
    TurnFinished,
)
from crush_kernel.errors import AuthenticationFailed, CommandError, ContextTooLong
from crush_kernel.history.conversation import CellRun
from crush_kernel.history.estimate import tokens_of
from crush_kernel.history.summary import is_summary, summary_text
from crush_kernel.messages import (
    Media,
    Message,
    Part,
    Text,
    ToolCall,
    ToolResult,
    Usage,
    calls_of,
    text_of,
)
from crush_kernel.permissions.gate import DenyAll, Gate
from crush_kernel.prompt.system import PromptPart, SystemPrompt
from crush_kernel.providers.base import ModelInfo, ModelRequest, Stop, TextDelta, UsageReport
from tests.fakes.model import AnsweringModel, Item, calls, says
from tests.fakes.tools import echo

pytestmark = pytest.mark.anyio

Answer = Callable[[ModelRequest], list[Item]]

WINDOW = 10_000


def text(words: str, *, stop: str = "end_turn") -> list[Item]:
    """A reply of a provider that reports no usage."""
    return [TextDelta(0, words), Stop("max_tokens" if stop == "max_tokens" else "end_turn")]


def refusal(words: str = "I cannot help with that.") -> list[Item]:
    return [TextDelta(0, words), Stop("refused")]


def is_for_summary(request: ModelRequest) -> bool:
    return "to be replaced by a summary" in text_of(request.messages[-1])


def big_call(number: int, size: int = 4_000) -> list[Item]:
    """A call whose result has `size` characters."""
    words = f"{number}:" + "x" * size
    return calls((f"c{number}", "echo", json.dumps({"text": words})))


def worker(steps: int, *, summary: Answer | None = None, size: int = 4_000) -> Answer:
    """Make `steps` calls, then finish; summarize when asked."""
    done = 0

    def answer(request: ModelRequest) -> list[Item]:
        nonlocal done
        if is_for_summary(request):
            return summary(request) if summary else text(f"{done} calls are done")
        done += 1
        return big_call(done, size) if done <= steps else text("finished")

    return answer


@dataclass
class Bench:
    agent: Agent
    model: AnsweringModel
    events: list[Event] = field(default_factory=list[Event])

    async def run(self, *parts: Part, cell: str = "") -> None:
        with anyio.fail_after(10):
            self.agent.conversation.begin(CellRun(cell))
            await self.agent.prompt(
                Message("user", parts or (Text("do the work"),)),
                model=self.model,
                watcher=self.watcher,
            )

    async def compact(self, wishes: str = "", cell: str = "") -> None:
        with anyio.fail_after(10):
            self.agent.conversation.begin(CellRun(cell))
            await self.agent.compact(wishes, model=self.model, watcher=self.watcher)

    @property
    def watcher(self) -> Watcher:
        return Watcher(self.events.append, DenyAll())

    def told(self, kind: type[Event]) -> list[Event]:
        return [event for event in self.events if isinstance(event, kind)]

    def notices(self) -> list[str]:
        return [event.text for event in self.events if isinstance(event, Notice)]

    def summaries(self) -> list[ModelRequest]:
        return [request for request in self.model.requests if is_for_summary(request)]


def bench(
    answer: Answer,
    *,
    window: int = WINDOW,
    system: str = "be good",
    summarizes: bool = True,
    info: ModelInfo | None = None,
) -> Bench:
    async def system_prompt() -> SystemPrompt:
        parts = (PromptPart("instructions", system),)
        return SystemPrompt(parts, reminder="it is Monday")

    agent = Agent(tools=(echo(),), gate=Gate(), system_prompt=system_prompt, summarizes=summarizes)
    info = info or ModelInfo(provider="fake", id="fake-1", context_window=window)
    return Bench(agent, AnsweringModel(answer, info))


def size_of(request: ModelRequest) -> int:
    return sum(map(tokens_of, request.messages))


async def test_a_full_window_is_summarized_and_the_same_turn_goes_on() -> None:
    turn = bench(worker(12))
    await turn.run()
    assert text_of(turn.agent.conversation.running[-1]) == "finished"
    assert (
        len(turn.told(SummaryStarted)) == len(turn.told(SummaryFinished)) == len(turn.summaries())
    )
    assert 2 <= len(turn.summaries()) <= 5
    assert len(turn.told(TurnFinished)) == 1
    assert max(map(size_of, turn.model.requests)) < WINDOW


async def test_after_a_summary_the_request_is_there_word_for_word_and_nothing_else() -> None:
    turn = bench(worker(5))
    await turn.run(Text("port it, but leave “b.py” alone"))
    first = next(i for i, r in enumerate(turn.model.requests) if is_for_summary(r))
    after = turn.model.requests[first + 1]
    assert [message.role for message in after.messages] == ["user"]
    assert "<request>\nport it, but leave “b.py” alone\n</request>" in text_of(after.messages[0])
    assert f"{first} calls are done" in text_of(after.messages[0])
    assert after.reminder == "it is Monday"


async def test_the_request_for_a_summary_goes_on_from_what_is_cached() -> None:
    turn = bench(worker(12, size=1_500))
    await turn.run()
    summary = turn.summaries()[0]
    before = turn.model.requests[turn.model.requests.index(summary) - 1]
    assert (summary.system, summary.tools) == (before.system, before.tools)
    assert summary.messages[: len(before.messages)] == before.messages
    assert not summary.forbids_tools
    assert summary.max_output_tokens > 0


async def test_a_summary_after_the_last_reply_starts_nothing_new() -> None:
    def answer(request: ModelRequest) -> list[Item]:
        return text("in short") if is_for_summary(request) else text("y" * 36_000)

    turn = bench(answer)
    await turn.run()
    roles = [message.role for message in turn.agent.conversation.running]
    assert roles == ["user", "assistant", "user"]
    assert is_summary(turn.agent.conversation.running[-1])
    assert len(turn.model.requests) == 2
    finished = turn.events[-1]
    assert isinstance(finished, TurnFinished)
    assert finished.context_tokens < WINDOW / 2


async def test_a_summary_after_the_last_reply_that_fails_is_no_failure_of_the_turn() -> None:
    def answer(request: ModelRequest) -> list[Item]:
        return [AuthenticationFailed("no")] if is_for_summary(request) else text("y" * 36_000)

    turn = bench(answer)
    await turn.run()
    assert len(turn.agent.conversation.running) == 2
    assert any("could not be summarized" in notice for notice in turn.notices())


async def test_the_next_cell_begins_with_the_summary() -> None:
    turn = bench(worker(7, summary=lambda _: text("all of it")))
    await turn.run(cell="a")
    await turn.run(Text("and now?"), cell="b")
    messages = turn.model.requests[-1].messages
    assert summary_text(messages[0]) == "all of it"
    assert text_of(messages[-1]) == "and now?"


async def test_a_prompt_that_no_longer_fits_is_summarized_around() -> None:
    replies = iter(["y" * 30_000, "in short", "looked at"])
    turn = bench(lambda _: text(next(replies)))
    await turn.run(Text("first"))
    picture = Media("image/png", "AAAA", "a.png")
    await turn.run(Text("look" + " at it" * 200), picture)
    last = turn.model.requests[-1]
    assert is_for_summary(turn.model.requests[-2])
    assert picture not in turn.model.requests[-2].messages[-2].parts
    assert picture in last.messages[-1].parts
    assert "<request>\nfirst\n</request>" in text_of(last.messages[0])
    running = turn.agent.conversation.running
    assert [is_summary(message) for message in running] == [True, False, False]


async def test_files_that_came_with_a_prompt_are_named_not_sent_again() -> None:
    turn = bench(worker(5))
    attached = Text("The file a.py:\n```\nsecret sauce\n```")
    await turn.run(Text("port @a.py"), attached, Media("image/png", "AAAA", "b.png"))
    last = text_of(turn.model.requests[-1].messages[0])
    assert "The file a.py; b.png" in last
    assert "secret sauce" not in last


@pytest.mark.parametrize(
    ("replies", "asked"),
    [
        pytest.param([text("cut", stop="max_tokens"), text("short")], 2, id="cut off"),
        pytest.param([calls(("c", "echo", "{}")), text("short")], 2, id="a call"),
        pytest.param([text(" "), text("short")], 2, id="nothing"),
    ],
)
async def test_a_summary_is_asked_for_until_it_is_one(
    replies: list[list[Item]], asked: int
) -> None:
    left = iter(replies)
    turn = bench(worker(5, summary=lambda _: next(left)))
    await turn.run()
    requests = turn.summaries()
    assert len(requests) == asked
    assert [is_summary(m) for m in turn.agent.conversation.running].count(True) == 1
    (finished,) = turn.told(SummaryFinished)
    assert isinstance(finished, SummaryFinished)
    assert finished.text == "short"


async def test_a_model_that_calls_tools_in_a_summary_is_forbidden_to() -> None:
    left = iter([calls(("c", "echo", "{}")), text("short")])
    turn = bench(worker(5, summary=lambda _: next(left)))
    await turn.run()
    assert [request.forbids_tools for request in turn.summaries()] == [False, True]


async def test_a_cut_off_summary_is_asked_for_in_fewer_words() -> None:
    left = iter([text("cut", stop="max_tokens"), text("short")])
    turn = bench(worker(5, summary=lambda _: next(left)))
    await turn.run()
    assert "at most" in text_of(turn.summaries()[1].messages[-1])


async def test_a_model_that_cannot_summarize_does_not_end_the_turn() -> None:
    turn = bench(worker(8, summary=lambda _: text("")))
    await turn.run()
    assert text_of(turn.agent.conversation.running[-1]) == "finished"
    assert "<request>\ndo the work" in text_of(turn.model.requests[-1].messages[0])


@pytest.mark.parametrize(
    "summary",
    [
        pytest.param(refusal(), id="refuses"),
        pytest.param(text(""), id="says nothing"),
        pytest.param(calls(("c", "echo", "{}")), id="calls a tool"),
        pytest.param(text("cut", stop="max_tokens"), id="never ends"),
    ],
)
async def test_what_is_no_summary_never_stands_for_the_conversation(summary: list[Item]) -> None:
    turn = bench(worker(8, summary=lambda _: summary))
    await turn.run()
    assert text_of(turn.agent.conversation.running[-1]) == "finished"
    opening = text_of(turn.model.requests[-1].messages[0])
    assert "cannot help" not in opening
    assert "You called echo" in opening
    assert any("gave no summary" in notice for notice in turn.notices())


@pytest.mark.parametrize("reported", [0, 10**9, 10**15])
async def test_a_provider_that_lies_about_its_usage_is_not_summarized_at_each_step(
    reported: int,
) -> None:
    def answer(request: ModelRequest) -> list[Item]:
        items = inner(request)
        return [*items[:-1], UsageReport(Usage(input_tokens=reported, output_tokens=9)), items[-1]]

    inner = worker(12)
    turn = bench(answer)
    await turn.run()
    assert text_of(turn.agent.conversation.running[-1]) == "finished"
    assert 1 <= len(turn.told(SummaryFinished)) <= 7


async def test_one_huge_result_is_summarized_in_what_fits() -> None:
    def answer(request: ModelRequest) -> list[Item]:
        if is_for_summary(request):
            return text("it was huge")
        return text("finished") if len(request.messages) == 1 and done else huge()

    done: list[bool] = []

    def huge() -> list[Item]:
        done.append(True)
        return big_call(1, 200_000)

    turn = bench(answer)
    await turn.run()
    assert text_of(turn.agent.conversation.running[-1]) == "finished"
    assert max(map(size_of, turn.model.requests)) < WINDOW


async def test_overhead_is_explained_once_and_never_summarized_away() -> None:
    turn = bench(worker(6, size=400), system="rule " * 7_000)
    await turn.run()
    await turn.run(Text("again"))
    explained = [notice for notice in turn.notices() if "would hardly help" in notice]
    assert len(explained) == 1
    assert "instructions ~8,750" in explained[0]
    assert turn.summaries() == []


async def test_summaries_can_be_switched_off() -> None:
    turn = bench(worker(12), summarizes=False)
    await turn.run()
    assert turn.summaries() == []
    assert size_of(turn.model.requests[-1]) > WINDOW


def refusing(inner: Answer, limit: int, *, names_numbers: bool = False) -> Answer:
    """Refuse what is longer than `limit` tokens."""

    def answer(request: ModelRequest) -> list[Item]:
        size = size_of(request)
        if size > limit:
            refusal = ContextTooLong("too long", detail="context length exceeded")
            if names_numbers:
                refusal.asked_tokens, refusal.limit_tokens = size, limit
            return [refusal]
        return inner(request)

    return answer


@pytest.mark.parametrize(
    "names_numbers", [pytest.param(True, id="with numbers"), pytest.param(False, id="without")]
)
@pytest.mark.parametrize(
    "window", [pytest.param(0, id="unknown"), pytest.param(50_000, id="wrong")]
)
async def test_a_window_that_nobody_knew_is_learned_from_a_refusal(
    *, names_numbers: bool, window: int
) -> None:
    turn = bench(refusing(worker(12), 6_000, names_numbers=names_numbers), window=window)
    await turn.run()
    assert text_of(turn.agent.conversation.running[-1]) == "finished"
    refused = [request for request in turn.model.requests if size_of(request) > 6_000]
    assert 1 <= len(refused) <= 3
    assert turn.told(SummaryFinished)


@pytest.mark.parametrize(
    "window", [pytest.param(0, id="unknown"), pytest.param(50_000, id="known")]
)
async def test_too_many_bytes_are_shortened_and_teach_nothing_of_the_window(window: int) -> None:
    taken = 0

    def answer(request: ModelRequest) -> list[Item]:
        nonlocal taken
        taken += 1
        if taken == 5:
            refusal = ContextTooLong("too long (413)")
            refusal.is_body = True
            return [refusal]
        return inner(request)

    inner = worker(12)
    turn = bench(answer, window=window)
    await turn.run()
    assert text_of(turn.agent.conversation.running[-1]) == "finished"
    assert len(turn.told(SummaryFinished)) == 1


async def test_too_many_bytes_of_a_prompt_are_told_in_the_words_of_the_provider() -> None:
    refusal = ContextTooLong("too long (413)")
    refusal.is_body = True
    turn = bench(lambda _: [refusal], window=50_000)
    with pytest.raises(ContextTooLong, match="413"):
        await turn.run(Text("z" * 20_000))
    assert turn.summaries() == []


async def test_what_cannot_be_shortened_is_a_clear_error() -> None:
    turn = bench(refusing(worker(1), 2_000), window=0)
    with pytest.raises(ContextTooLong, match="does not fit into the window") as caught:
        await turn.run(Text("z" * 20_000))
    assert "attach fewer files" in caught.value.hint
    assert "this cell ~5," in caught.value.detail
    assert turn.summaries() == []


async def test_what_goes_with_every_request_and_does_not_fit_is_named_after_one_attempt() -> None:
    refused = ContextTooLong("too long")
    refused.asked_tokens, refused.limit_tokens = 14_500, 8_192
    turn = bench(lambda _: [refused], window=8_192, system="rule " * 7_000)
    with pytest.raises(ContextTooLong, match="does not fit into the window") as caught:
        await turn.run(Text("hi"))
    assert "instructions ~8,750" in caught.value.detail
    assert "Shorten memory files" in caught.value.hint
    assert len(turn.model.requests) == 1


async def test_without_automatic_summaries_a_refusal_says_what_to_do() -> None:
    turn = bench(refusing(worker(12), 6_000), summarizes=False)
    with pytest.raises(ContextTooLong) as caught:
        await turn.run()
    assert "/compact" in caught.value.hint
    assert turn.summaries() == []


async def test_cancelling_a_summary_cancels_the_turn() -> None:
    reached = anyio.Event()
    turn = bench(worker(8, summary=lambda _: [TextDelta(0, "so f"), reached]))
    async with anyio.create_task_group() as group:
        group.start_soon(turn.run)
        with anyio.fail_after(5):
            await reached.wait()
        group.cancel_scope.cancel()
    assert not any(map(is_summary, turn.agent.conversation.running))
    finished = turn.events[-1]
    assert isinstance(finished, TurnFinished)
    assert finished.end == "interrupted"


async def test_compact_makes_a_turn_that_holds_a_summary_as_the_user_wants_it() -> None:
    turn = bench(lambda request: text("in short" if is_for_summary(request) else "yes"))
    await turn.run(Text("is it?"), cell="a")
    await turn.compact("keep the numbers", cell="b")
    (message,) = turn.agent.conversation.running
    assert summary_text(message) == "in short"
    assert "keep the numbers" in text_of(turn.model.requests[-1].messages[-1])
    await turn.run(Text("go on"), cell="c")
    assert [is_summary(m) for m in turn.model.requests[-1].messages] == [False, False]
    assert "in short" in text_of(turn.model.requests[-1].messages[0])


async def test_without_its_cell_a_summary_stands_for_nothing() -> None:
    turn = bench(lambda request: text("in short" if is_for_summary(request) else "yes"))
    await turn.run(Text("is it?"), cell="a")
    await turn.compact(cell="b")
    turn.agent.conversation.remove("b")
    await turn.run(Text("go on"), cell="c")
    said = [text_of(message) for message in turn.model.requests[-1].messages]
    assert said == ["is it?", "yes", "go on"]


async def test_there_is_nothing_to_compact_in_an_empty_notebook() -> None:
    turn = bench(worker(0))
    with pytest.raises(CommandError, match="nothing above"):
        await turn.compact()


async def test_what_the_user_says_meanwhile_is_said_with_the_next_request() -> None:
    def answer(_: ModelRequest) -> list[Item]:
        if len(turn.model.requests) == 1:
            assert turn.agent.steering.say("use b instead")
            return big_call(1, 10)
        return text("b it is")

    turn = bench(answer)
    await turn.run()
    assert text_of(turn.model.requests[-1].messages[-1]) == "use b instead"
    assert turn.told(Steered) == [Steered("use b instead")]
    assert "use b instead" in [text_of(m) for m in turn.agent.conversation.running]


async def test_what_the_user_says_to_a_turn_that_would_end_has_it_go_on() -> None:
    def answer(_: ModelRequest) -> list[Item]:
        if len(turn.model.requests) == 1:
            turn.agent.steering.say("one more thing")
        return text(f"reply {len(turn.model.requests)}")

    turn = bench(answer)
    await turn.run()
    said = [text_of(m) for m in turn.agent.conversation.running]
    assert said == ["do the work", "reply 1", "one more thing", "reply 2"]


async def test_nobody_listens_when_no_turn_runs() -> None:
    turn = bench(worker(0))
    assert not turn.agent.steering.say("hello?")
    await turn.run()
    assert not turn.agent.steering.say("hello?")


async def test_what_was_said_to_a_turn_that_fails_is_kept() -> None:
    def answer(_: ModelRequest) -> list[Item]:
        turn.agent.steering.say("wait")
        return [AuthenticationFailed("no")]

    turn = bench(answer)
    with pytest.raises(AuthenticationFailed):
        await turn.run()
    assert text_of(turn.agent.conversation.running[-1]) == "wait"


async def test_the_todo_list_is_carried_over() -> None:
    turn = bench(worker(3))
    todos = [{"content": "test it", "status": "pending"}, {"content": "x", "status": "completed"}]
    turn.agent.conversation.begin(CellRun("a"))
    for message in (Message("user", (Text("plan"),)), *_todo_call(todos)):
        turn.agent.conversation.append(message)
    turn.agent.conversation.end("end_turn")
    await turn.compact()
    (message,) = turn.agent.conversation.running
    assert "\n- [ ] test it\n- [x] x" in text_of(message)


def _todo_call(todos: list[dict[str, str]]) -> tuple[Message, ...]:
    return (
        Message("assistant", (ToolCall("t", "todos", "{}"),)),
        Message("tool", (ToolResult("t", "ok", metadata={"todos": [dict(t) for t in todos]}),)),
    )


async def test_a_reply_without_usage_is_estimated_and_marked_so() -> None:
    turn = bench(lambda _: text("four words of text"))
    await turn.run()
    usage = turn.agent.conversation.running[-1].usage
    assert usage is not None
    assert usage.is_estimated
    assert usage.input_tokens > 10


async def test_what_a_provider_reports_counts_more_than_our_estimate() -> None:
    turn = bench(lambda _: says("hi"))
    await turn.run()
    finished = turn.events[-1]
    assert isinstance(finished, TurnFinished)
    assert finished.context_tokens == 12
    assert not calls_of(turn.agent.conversation.running[-1])


async def test_a_reply_that_ends_for_an_unknown_reason_says_so() -> None:
    turn = bench(lambda _: [TextDelta(0, "hm"), Stop("end_turn", "moon_phase")])
    await turn.run()
    assert any("moon_phase" in notice for notice in turn.notices())


async def test_what_a_request_holds_is_what_is_sent() -> None:
    turn = bench(worker(7, summary=lambda _: text("all of it")))
    await turn.run(cell="a")
    prompt = SystemPrompt((PromptPart("instructions", "be good"),), reminder="it is Monday")
    contents = turn.agent.contents("b", prompt, turn.model.info)
    await turn.run(Text("and now?"), cell="b")
    sent = turn.model.requests[-1]
    assert (contents.request.system, contents.request.tools) == (sent.system, sent.tools)
    assert contents.request.reminder == sent.reminder
    assert contents.request.messages == sent.messages[:-1]
    assert [share.text for share in contents.system] == [sent.system]
    assert contents.used == pytest.approx(size_of(sent) + 40, abs=60)
    assert contents.reserve == WINDOW // 5


async def test_looking_at_a_request_changes_nothing_of_the_next_one() -> None:
    turn = bench(lambda _: text("yes"))
    await turn.run(Text("one"), cell="a")
    await turn.run(Text("two"), cell="b")
    turn.agent.contents("b", SystemPrompt(()), turn.model.info)
    await turn.run(Text("three"), cell="c")
    said = [text_of(message) for message in turn.model.requests[-1].messages]
    assert said == ["one", "yes", "two", "yes", "three"]
