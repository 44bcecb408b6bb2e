"""A history that is repaired step by step is repaired as the whole would be."""

from hypothesis import given
from hypothesis import strategies as st

from crush_kernel.history.quarantine import Key, without
from crush_kernel.history.repair import repair
from crush_kernel.history.repairer import Repairer
from crush_kernel.messages import Media, Text, ToolCall, ToolResult
from tests.fakes.histories import SOME, History, damaged_histories, reply, results, user

PROMPT = user(Text("go"))


@SOME
@given(damaged_histories(), st.integers(0, 30))
def test_a_history_that_grows(history: History, length: int) -> None:
    repairer = Repairer()
    context, running = history[:length], history[length:]
    for end in range(len(running) + 1):
        assert repairer.repaired(context, running[:end]) == repair(context + running[:end])


@SOME
@given(st.lists(st.tuples(damaged_histories(), damaged_histories()), max_size=3))
def test_histories_that_have_nothing_in_common(pairs: list[tuple[History, History]]) -> None:
    repairer = Repairer()
    for context, running in pairs:
        assert repairer.repaired(context, running) == repair(context + running)


@SOME
@given(damaged_histories(), st.data())
def test_a_history_whose_cells_change(history: History, data: st.DataObject) -> None:
    repairer = Repairer()
    for _ in range(4):
        messages = list(history)
        if messages:
            place = data.draw(st.integers(0, len(messages) - 1))
            kind = data.draw(st.sampled_from(["drop", "new", "cut", "as it was"]))
            if kind == "drop":
                del messages[place]
            elif kind == "new":
                messages[place] = data.draw(st.sampled_from([PROMPT, reply(Text("ok")), reply()]))
            elif kind == "cut":
                messages = messages[:place]
        split = data.draw(st.integers(0, len(messages)))
        context, running = tuple(messages[:split]), tuple(messages[split:])
        assert repairer.repaired(context, running) == repair(context + running)


def keys_of(history: History) -> st.SearchStrategy[frozenset[Key]]:
    """Draw some of what a provider could refuse of `history`."""
    keys: list[Key] = []
    for part in (part for message in repair(history) for part in message.parts):
        match part:
            case Media(data=data):
                keys.append(("media", data))
            case ToolResult(call_id=call_id, content=content):
                keys.append(("result", call_id, content))
            case ToolCall(id=call_id, input=arguments):
                keys.append(("call", call_id, arguments))
            case _:
                pass
    return st.frozensets(st.sampled_from(keys)) if keys else st.just(frozenset())


@SOME
@given(damaged_histories(), st.data())
def test_what_was_refused_stays_out(history: History, data: st.DataObject) -> None:
    repairer = Repairer()
    refused = data.draw(keys_of(history))
    repairer.repaired((), history[:3])
    repairer.leave_out(refused)
    for end in range(len(history) + 1):
        assert repairer.repaired((), history[:end]) == without(repair(history[:end]), refused)


def test_what_was_repaired_before_is_the_same_object() -> None:
    call = ToolCall("functions.view:0", "view", "")
    context = (PROMPT, reply(call), results(ToolResult(call.id, "a")), reply(Text("done")))
    repairer = Repairer()
    before = repairer.repaired(context, (PROMPT,))
    after = repairer.repaired(context, (PROMPT, reply(Text("ok")), PROMPT))
    assert all(one is other for one, other in zip(before, after, strict=False))
