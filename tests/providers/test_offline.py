"""The offline provider: honest, deterministic, and at home in any history."""

import json
import re
from dataclasses import replace
from pathlib import Path

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from crush_kernel.errors import (
    ConfigError,
    ConnectionLost,
    CrushKernelError,
    Overloaded,
    ProviderError,
    RateLimited,
)
from crush_kernel.history.repair import repair
from crush_kernel.history.summary import instruction
from crush_kernel.messages import (
    Media,
    Message,
    Part,
    Reasoning,
    Role,
    Text,
    ToolCall,
    ToolResult,
    calls_of,
    text_of,
)
from crush_kernel.providers.base import ModelInfo, ModelRequest, Stop, StreamEvent, TextDelta
from crush_kernel.providers.offline.model import OfflineModel, next_reply
from crush_kernel.providers.offline.results import description, entries
from crush_kernel.providers.offline.script import ERRORS, Script, open_script, read_script
from crush_kernel.providers.offline.turn import current_turn, in_code
from tests.fakes.folder import TOOLS, Folder, play_turn, reply_to

pytestmark = pytest.mark.anyio

INFO = ModelInfo("offline", "offline")
PLAIN = Script(introduce=False)


def user(text: str) -> Message:
    return Message("user", (Text(text),))


def scripted(*steps: object, prompt: str = "go", introduce: bool = False) -> OfflineModel:
    """A model that plays `steps` to the prompt `go`."""
    turns = [{"prompt": prompt, "steps": list(steps)}]
    return OfflineModel(
        INFO, script=Script.model_validate({"introduce": introduce, "turns": turns})
    )


def called(name: str, result: str, *, is_error: bool = False) -> tuple[Message, Message]:
    """A reply with one call, and its result."""
    call = ToolCall(f"id_{name}", name, "{}")
    return (
        Message("assistant", (call,), provider="offline", stop="tool_use"),
        Message("tool", (ToolResult(call.id, result, is_error),)),
    )


async def events_of(model: OfflineModel, *messages: Message) -> list[StreamEvent]:
    async with model.stream(ModelRequest("", messages, TOOLS)) as events:
        return [event async for event in events]


# What it says of itself ---------------------------------------------------------------


async def test_the_first_reply_says_in_one_line_what_it_is_and_how_to_connect_a_model() -> None:
    reply = await reply_to(OfflineModel(INFO, script=Script()), (user("hi"),))

    first, _, rest = text_of(reply).partition("\n\n")
    assert "not a language model" in first
    assert "\n" not in first
    assert all(way in first for way in ("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "Ollama", "/model"))
    assert "list the files" in rest


async def test_after_its_first_reply_it_does_not_repeat_what_it_is() -> None:
    model = OfflineModel(INFO, script=Script())
    first = await reply_to(model, (user("hi"),))

    second = await reply_to(model, (user("hi"), first, user("hi")))

    assert "not a language model" not in text_of(second)


async def test_after_replies_of_another_model_it_says_what_it_is() -> None:
    other = Message("assistant", (Text("Hello."),), provider="anthropic", model="claude")

    reply = await reply_to(OfflineModel(INFO, script=Script()), (user("hi"), other, user("hi")))

    assert "not a language model" in text_of(reply)


async def test_its_usage_is_a_guess_and_says_so() -> None:
    reply = await reply_to(OfflineModel(INFO, script=PLAIN), (user("x" * 400), user("hi")))

    assert reply.usage is not None
    assert reply.usage.is_estimated
    assert reply.usage.input_tokens >= 100
    assert reply.usage.output_tokens > 0


async def test_the_same_history_gets_the_same_events() -> None:
    history = (user("list the files"), *called("ls", "- a.py"), user("show a.py"))

    once = await events_of(OfflineModel(INFO, script=PLAIN), *history)

    assert once == await events_of(OfflineModel(INFO, script=PLAIN), *history)
    assert isinstance(once[-1], Stop)


async def test_a_reply_comes_word_by_word() -> None:
    events = await events_of(scripted({"text": "One  two\nthree."}), user("go"))

    pieces = [event.text for event in events if isinstance(event, TextDelta)]
    assert pieces == ["One  ", "two\n", "three."]


# Plain requests, with tools -----------------------------------------------------------


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "README.md").write_text("# A *small* shop\n\nSells things.\n", encoding="utf-8")
    (tmp_path / "price.py").write_text(
        '"""Prices."""\n\n\ndef price():\n    return "```"\n\n\nclass Cart:\n    pass\n',
        encoding="utf-8",
    )
    (tmp_path / "src").mkdir()
    return tmp_path


async def outcome(folder: Folder, prompt: str) -> str:
    """Return the last words of a turn."""
    return text_of((await play_turn(OfflineModel(INFO, script=PLAIN), folder, prompt))[-1])


async def test_a_listing_is_counted(project: Path) -> None:
    said = await outcome(Folder(project), "list the files")

    assert said == "This folder holds 2 files and 1 folder: `src/`, `README.md`, `price.py`."


async def test_an_empty_folder_is_said_to_be_empty(project: Path) -> None:
    assert await outcome(Folder(project), "list the files in src") == "`src` is empty."


async def test_a_full_folder_is_listed_in_part(tmp_path: Path) -> None:
    for number in range(20):
        (tmp_path / f"{number:02}.txt").touch()

    said = await outcome(Folder(tmp_path), "ls")

    assert said.startswith("This folder holds 20 files and 0 folders: `00.txt`")
    assert said.endswith("`11.txt` and 8 more.")


async def test_a_file_without_text_is_not_shown(tmp_path: Path) -> None:
    (tmp_path / "empty.txt").touch()

    assert (await outcome(Folder(tmp_path), "show empty.txt")).startswith("There is no text")


async def test_lines_are_shown_as_asked(project: Path) -> None:
    folder = Folder(project)

    await outcome(folder, "show lines 2-4 of price.py")

    assert folder.calls == [("view", {"file_path": "price.py", "offset": 1, "limit": 3})]


async def test_a_file_is_shown_in_a_block_that_its_text_cannot_close(project: Path) -> None:
    said = await outcome(Folder(project), "show me price.py")

    assert said.startswith("`price.py`, 9 lines:\n\n````py\n")
    assert said.endswith("\n````")
    assert '    return "```"' in said


async def test_a_long_file_is_shown_in_part(tmp_path: Path) -> None:
    (tmp_path / "long.txt").write_text("line\n" * 100, encoding="utf-8")

    said = await outcome(Folder(tmp_path), "show long.txt")

    assert said.count("\nline") == 60
    assert said.endswith("40 more lines in the result above.")


async def test_names_are_searched_by_glob(tmp_path: Path) -> None:
    folder = Folder(tmp_path, printed={"**/*.py": ToolResult("", "a.py\nsrc/b.py\n\n[a note]")})

    said = await outcome(folder, "find all python files")

    assert said == "2 files fit `**/*.py`: `a.py`, `src/b.py`."
    assert folder.calls == [("glob", {"pattern": "**/*.py"})]


@pytest.mark.parametrize("prompt", ["find *.rs", "find `nowhere`"])
async def test_a_search_that_fails_is_told_with_its_reason(prompt: str, tmp_path: Path) -> None:
    broken = ToolResult("", "rg is missing", is_error=True)
    folder = Folder(tmp_path, printed={"**/*.rs": broken, "nowhere": broken})

    assert "did not work: `rg is missing`" in await outcome(folder, prompt)


async def test_names_that_nothing_has_are_not_found(tmp_path: Path) -> None:
    folder = Folder(
        tmp_path, printed={"**/*.rs": ToolResult("", "No files match **/*.rs in .\n\n[why]")}
    )

    assert await outcome(folder, "find *.rs") == "No file fits `**/*.rs`."


async def test_text_that_nothing_has_is_not_found(tmp_path: Path) -> None:
    folder = Folder(tmp_path, printed={"TODO": ToolResult("", "No matches for TODO.\n\n[why]")})

    assert await outcome(folder, "find TODO") == "No line has `TODO`."


async def test_many_matches_are_shown_in_part(tmp_path: Path) -> None:
    many = ToolResult("", "\n".join(f"{n:6d}|TODO" for n in range(30)))

    said = await outcome(Folder(tmp_path, printed={"TODO": many}), "find TODO")

    assert said.count("TODO\n") == 12
    assert said.endswith("There is more in the result above.")


async def test_text_can_be_searched_in_some_files_only(tmp_path: Path) -> None:
    folder = Folder(tmp_path, printed={"TODO": ToolResult("", "a.py:\n  1: TODO")})

    await outcome(folder, "find TODO in *.py")

    assert folder.calls == [("grep", {"pattern": "TODO", "include": "*.py"})]


async def test_text_is_searched_literally(tmp_path: Path) -> None:
    folder = Folder(tmp_path, printed={"f(x)": ToolResult("", "a.py\n     1|f(x)\n\n[a note]")})

    said = await outcome(folder, "find `f(x)` in src")

    assert said == "`f(x)` is here:\n\n```\na.py\n     1|f(x)\n```"
    assert folder.calls == [("grep", {"pattern": "f(x)", "path": "src", "literal_text": True})]


async def test_a_command_is_run_and_what_it_printed_is_shown(tmp_path: Path) -> None:
    folder = Folder(tmp_path, printed={"make test": ToolResult("", "all\ngood")})

    said = await outcome(folder, "run `make test`")

    assert said == "`make test` ran.\n\n```\nall\ngood\n```"
    assert folder.calls == [
        ("bash", {"command": "make test", "description": "Run make test"}),
    ]


async def test_a_command_that_fails_is_not_said_to_have_run(tmp_path: Path) -> None:
    broken = ToolResult("", "boom\nexit code 2", is_error=True)

    said = await outcome(Folder(tmp_path, printed={"make": broken}), "run make")

    assert said.startswith("`make` failed.")
    assert "exit code 2" in said


async def test_a_file_is_written(tmp_path: Path) -> None:
    said = await outcome(Folder(tmp_path), 'create a file notes.txt with "hello"')

    assert said == "`notes.txt` is written, 1 line."
    assert (tmp_path / "notes.txt").read_text(encoding="utf-8") == "hello\n"


async def test_a_replacement_reads_before_it_edits(project: Path) -> None:
    folder = Folder(project)

    said = await outcome(folder, 'replace "things" with "more" in README.md')

    assert said == "`things` is now `more` in `README.md`."
    assert [name for name, _ in folder.calls] == ["view", "edit"]
    assert "Sells more." in (project / "README.md").read_text(encoding="utf-8")


async def test_text_is_removed_by_putting_nothing_in_its_place(project: Path) -> None:
    said = await outcome(Folder(project), 'replace "Sells things." with "" in README.md')

    assert said == "`Sells things.` is gone from `README.md`."


async def test_a_project_is_described_by_its_readme_and_its_files(project: Path) -> None:
    folder = Folder(project)

    said = await outcome(folder, "Explain this project.")

    assert [name for name, _ in folder.calls] == ["ls", "view"]
    assert "`README.md` begins: `A *small* shop`" in said
    assert "3 entries" in said


async def test_a_project_without_a_readme_is_described_by_its_files(tmp_path: Path) -> None:
    (tmp_path / "a.py").touch()

    said = await outcome(Folder(tmp_path), "explain this project")

    assert said == "It has no README to quote. The project holds 1 entry at the top: `a.py`."


async def test_a_file_is_described_by_its_first_words_and_its_definitions(project: Path) -> None:
    said = await outcome(Folder(project), "explain price.py")

    assert said == (
        "I read 9 lines of `price.py`. It says of itself: `Prices.` It defines `price`, `Cart`."
    )


@pytest.mark.parametrize(
    "prompt",
    [
        'create a file notes.txt with "hello"',
        'replace "things" with "more" in README.md',
        "run `make`",
    ],
)
async def test_a_denial_ends_the_turn_with_a_word_and_without_another_try(
    prompt: str, project: Path
) -> None:
    folder = Folder(project, allow=False)

    said = await outcome(folder, prompt)

    assert "was denied, so nothing was done" in said
    assert [name for name, _ in folder.calls if name != "view"] == [folder.calls[-1][0]]


@pytest.mark.parametrize(
    "prompt",
    [
        "show nothing.txt",
        "list the files in nowhere",
        "explain nothing.py",
        'replace "a" with "b" in nothing.py',
    ],
)
async def test_a_failure_is_told_with_its_reason(prompt: str, tmp_path: Path) -> None:
    said = await outcome(Folder(tmp_path), prompt)

    assert "did not work" in said
    assert "No such file" in said


async def test_an_interrupted_call_is_not_made_again() -> None:
    cut_off = (
        user("list the files"),
        Message("assistant", (ToolCall("c1", "ls", "{}"),), provider="offline"),
    )

    reply = await reply_to(OfflineModel(INFO, script=PLAIN), repair(cut_off))

    assert calls_of(reply) == ()
    assert "interrupted" in text_of(reply)


async def test_a_tool_that_is_not_offered_is_not_called() -> None:
    reply = await reply_to(OfflineModel(INFO, script=PLAIN), (user("run `ls`"),), tools=())

    assert calls_of(reply) == ()
    assert "`bash`" in text_of(reply)


async def test_a_project_that_cannot_be_listed_is_not_described(tmp_path: Path) -> None:
    said = await outcome(Folder(tmp_path / "gone"), "explain this project")

    assert said.startswith("`ls` did not work")


async def test_a_call_without_arguments_is_told_without_them() -> None:
    call = Message("assistant", (ToolCall("c1", "fetch", '{"url": "x'),), provider="other")
    history = (user("go"), call, Message("tool", (ToolResult("c1", "done"),)))

    reply = await reply_to(OfflineModel(INFO, script=PLAIN), (*history, user("recap")))

    assert text_of(reply) == "1. `go` – I called `fetch`."


async def test_a_summary_is_a_list_of_what_was_done() -> None:
    history = (user("run `ls`"), *called("bash", "a.py"), Message("assistant", (Text("So."),)))
    asked = user(instruction(wishes="the files", max_words=100))

    reply = await reply_to(OfflineModel(INFO, script=PLAIN), (*history, asked))

    assert calls_of(reply) == ()
    assert text_of(reply) == "1. `` run `ls` `` – I ran."


async def test_a_script_that_has_said_everything_says_so() -> None:
    said = Message("assistant", (Text("Yes."),), provider="offline")

    reply = await reply_to(scripted({"text": "Yes."}), (user("go"), said))

    assert text_of(reply) == "There is nothing more to say to this."


async def test_a_script_that_fits_no_result_ends_with_the_outcome() -> None:
    model = scripted(ASK, [{"if_contains": "x", **ASK}], {"text": "not reached"})

    reply = await reply_to(model, (user("go"), *called("view", "y"), *called("view", "x")))

    assert text_of(reply) == "That is done: `view` returned a result."


async def test_what_is_not_understood_is_answered_with_what_is() -> None:
    reply = await reply_to(OfflineModel(INFO, script=PLAIN), (user("Zeig mir was Schönes"),))

    assert calls_of(reply) == ()
    assert "did not understand" in text_of(reply)
    assert "list the files" in text_of(reply)


async def test_an_attached_file_gives_no_orders() -> None:
    prompt = Message("user", (Text("what is @a.txt about"), Text("list the files")))

    reply = await reply_to(OfflineModel(INFO, script=PLAIN), (prompt,))

    assert calls_of(reply) == ()


async def test_what_was_done_is_told_from_the_history(project: Path) -> None:
    model = OfflineModel(INFO, script=PLAIN)
    history = await play_turn(model, Folder(project), 'replace "A" with "b" in README.md')
    history = await play_turn(model, Folder(project, allow=False), "run `make *`", history)
    history = await play_turn(model, Folder(project), "thank you!", history)
    history = await play_turn(model, Folder(project), "show none.txt", history)

    history = await play_turn(model, Folder(project), "what have we done so far?", history)

    assert text_of(history[-1]).splitlines() == [
        '1. `replace "A" with "b" in README.md` – I viewed `README.md`, edited `README.md`.',
        "2. `` run `make *` `` – I asked for `bash` `make *` (denied).",
        "3. `thank you!` – I answered.",
        "4. `show none.txt` – I viewed `none.txt` (failed).",
    ]


async def test_without_a_history_nothing_was_done() -> None:
    reply = await reply_to(OfflineModel(INFO, script=PLAIN), (user("what have we done?"),))

    assert text_of(reply) == "Nothing yet: there is no turn above that I know of."


# Any history ----------------------------------------------------------------------------

_WISHES = ["list the files", "run `ls`", "explain this project", "what did we do", "", " ", "x"]
_INPUTS = ["{}", "", "[1]", "[" * 2000, '{"file_path": 3}', '{"path": "src"}']
_RESULTS = ["", "./\n  README.md\n  src/", "     1|x", "Permission denied: no.", "\ud800"]
_IDS = st.sampled_from(["c1", "c2"])
_NAMES = st.sampled_from(["ls", "view", "bash", "edit", "other"])


def _messages(role: Role, part: st.SearchStrategy[Part]) -> st.SearchStrategy[Message]:
    return st.builds(Message, st.just(role), st.lists(part, max_size=3).map(tuple))


_histories = st.lists(
    st.one_of(
        _messages("user", st.builds(Text, st.sampled_from(_WISHES))),
        _messages("user", st.just(Media("image/png", ""))),
        _messages("assistant", st.builds(ToolCall, _IDS, _NAMES, st.sampled_from(_INPUTS))),
        st.just(Message("assistant", (Text("cut"),), provider="other", stop="max_tokens")),
        _messages("tool", st.builds(ToolResult, _IDS, st.sampled_from(_RESULTS), st.booleans())),
    ),
    max_size=8,
).map(tuple)


@pytest.mark.slow
@given(_histories)
def test_every_history_gets_a_reply_that_says_something(history: tuple[Message, ...]) -> None:
    tools = frozenset(tool.name for tool in TOOLS)
    for messages in (history, repair(history)):
        reply = next_reply(PLAIN, current_turn(messages), tools=tools)

        assert reply.text or reply.tool_calls


async def test_an_odd_history_is_weighed_too() -> None:
    odd = (
        Message("user", (Media("image/png", ""),)),
        Message("assistant", (Reasoning("x" * 40), ToolCall("c1", "ls", "[1]"))),
        Message("tool", (ToolResult("c1", "x" * 40),)),
        user("hi"),
    )

    reply = await reply_to(OfflineModel(INFO, script=PLAIN), odd)

    assert reply.usage is not None
    assert reply.usage.input_tokens >= 20


async def test_calls_of_one_conversation_have_different_ids(project: Path) -> None:
    model = scripted(
        {"tool_calls": [{"name": "ls"}, {"name": "ls"}]},
        {"tool_calls": [{"name": "ls"}]},
        {"text": "done"},
    )
    history = await play_turn(model, Folder(project), "go")
    history = await play_turn(model, Folder(project), "go", history)

    ids = [call.id for message in history for call in calls_of(message)]
    assert len(set(ids)) == 6
    assert repair(history) == history


# Scripts --------------------------------------------------------------------------------


async def test_a_script_matches_its_prompt_whatever_the_white_space() -> None:
    reply = await reply_to(scripted({"text": "Yes."}, prompt="go  on"), (user(" go\non "),))

    assert text_of(reply) == "Yes."


async def test_a_prompt_that_no_script_knows_is_a_plain_request() -> None:
    reply = await reply_to(scripted({"text": "Yes."}), (user("ls"),))

    assert [call.name for call in calls_of(reply)] == ["ls"]


async def test_a_star_answers_every_prompt_that_nothing_else_does() -> None:
    reply = await reply_to(scripted({"text": "Yes."}, prompt="*"), (user("ls"),))

    assert text_of(reply) == "Yes."


ASK = {"tool_calls": [{"name": "view"}]}
BY_OUTCOME = [
    {"if_denied": True, "text": "denied"},
    {"if_error": True, "text": "failed: {result}"},
    {"if_contains": "42", "text": "found"},
    {"text": "else"},
]


@pytest.mark.parametrize(
    ("result", "said"),
    [
        pytest.param(ToolResult("", "Permission denied: no.", is_error=True), "denied"),
        pytest.param(
            ToolResult("", "no", is_error=True, metadata={"summary": "denied"}),
            "denied",
            id="denied, by its mark",
        ),
        pytest.param(ToolResult("", "bad `x`", is_error=True), "failed: `` bad `x` ``"),
        pytest.param(
            ToolResult("", "sh: Permission denied", is_error=True),
            "failed: `sh: Permission denied`",
            id="a command that was refused by the system",
        ),
        pytest.param(ToolResult("", "is 42"), "found"),
        pytest.param(ToolResult("", "is 41"), "else"),
    ],
)
async def test_a_script_goes_on_by_the_outcome_of_its_calls(result: ToolResult, said: str) -> None:
    reply, answer = called("view", "")
    result = replace(result, call_id="id_view")

    text = text_of(
        await reply_to(
            scripted(ASK, BY_OUTCOME), (user("go"), reply, replace(answer, parts=(result,)))
        )
    )

    assert text == said


async def test_a_result_that_reads_like_a_place_to_fill_is_left_alone() -> None:
    model = scripted(ASK, {"text": "{result} {other}"})

    reply = await reply_to(model, (user("go"), *called("view", "{recap}")))

    assert text_of(reply) == "`{recap}` {other}"


async def test_all_conditions_of_a_reply_must_hold() -> None:
    both = [{"if_error": True, "if_contains": "42", "text": "both"}, {"text": "not both"}]
    model = scripted(ASK, both)

    one = await reply_to(model, (user("go"), *called("view", "42")))
    two = await reply_to(model, (user("go"), *called("view", "42", is_error=True)))

    assert [text_of(one), text_of(two)] == ["not both", "both"]


async def test_a_branch_has_steps_of_its_own() -> None:
    branch = {
        "if_contains": "a",
        **ASK,
        "then": [{"text": "second of the branch"}],
    }
    model = scripted(ASK, [branch, ASK], {"text": "third of the trunk"})

    in_branch = await reply_to(model, (user("go"), *called("view", "a"), *called("view", "b")))
    in_trunk = await reply_to(model, (user("go"), *called("view", "b"), *called("view", "a")))

    assert text_of(in_branch) == "second of the branch"
    assert text_of(in_trunk) == "third of the trunk"


@pytest.mark.parametrize(
    ("result", "said"),
    [
        pytest.param(("fine", False), "That is done", id="ok"),
        pytest.param(("broken", True), "`view` did not work: `broken`", id="failed"),
    ],
)
async def test_a_script_that_ends_early_is_closed_with_the_last_outcome(
    result: tuple[str, bool], said: str
) -> None:
    content, is_error = result

    reply = await reply_to(scripted(ASK), (user("go"), *called("view", content, is_error=is_error)))

    assert text_of(reply).startswith(said)
    assert reply.stop == "end_turn"


async def test_a_reply_has_everything_that_a_script_gives_it() -> None:
    step = {
        "text": "ab ",
        "repeat": 3,
        "reasoning": "Well.",
        "tool_calls": [{"name": "odd", "input": "{not json"}],
        "stop_reason": "max_tokens",
    }

    reply = await reply_to(scripted(step), (user("go"),))

    assert reply.parts[:2] == (Reasoning("Well."), Text("ab ab ab "))
    assert [(call.name, call.input) for call in calls_of(reply)] == [("odd", "{not json")]
    assert reply.stop == "max_tokens"


async def test_after_a_reply_that_was_cut_off_the_script_goes_on() -> None:
    model = scripted({"text": "one", "stop_reason": "max_tokens"}, {"text": "two"})
    first = await reply_to(model, (user("go"),))

    second = await reply_to(model, (user("go"), first, user("Go on where it stopped.")))

    assert text_of(second) == "two"


async def test_a_new_prompt_after_a_cut_off_turn_is_a_new_prompt() -> None:
    cut_off = Message("assistant", (Text("one"),), provider="offline", stop="max_tokens")

    reply = await reply_to(scripted({"text": "one"}), (user("go"), cut_off, user("go")))

    assert text_of(reply) == "one"


@pytest.mark.parametrize(("name", "kind"), list(ERRORS.items()), ids=list(ERRORS))
async def test_a_scripted_failure_comes_after_the_text_before_it(
    name: str, kind: type[ProviderError]
) -> None:
    model = scripted({"text": "Half a", "error": name})
    seen: list[StreamEvent] = []

    async def read() -> None:
        async with model.stream(ModelRequest("", (user("go"),))) as events:
            async for event in events:
                seen.append(event)  # noqa: PERF401 - it has to be kept when the error comes

    with pytest.raises(kind, match=name) as caught:
        await read()

    assert "".join(event.text for event in seen if isinstance(event, TextDelta)) == "Half a"
    assert caught.value.provider == "offline"


async def test_a_scripted_failure_can_say_how_long_to_wait() -> None:
    with pytest.raises(RateLimited) as caught:
        await reply_to(scripted({"error": "rate_limited", "retry_after_s": 2}), (user("go"),))

    assert caught.value.retry_after_s == 2


def test_every_scripted_failure_is_a_provider_error_with_its_own_name() -> None:
    assert ERRORS["overloaded"] is Overloaded
    assert ERRORS["connection_lost"] is ConnectionLost
    assert len(set(ERRORS.values())) == len(ERRORS)


async def test_a_long_wait_can_be_cancelled() -> None:
    model = scripted({"text": "late", "delay_s": 3600})

    with anyio.fail_after(5), anyio.move_on_after(0) as scope:
        await reply_to(model, (user("go"),))

    assert scope.cancelled_caught


async def test_an_endless_stream_can_be_cancelled_between_two_words() -> None:
    model = scripted({"text": "word ", "repeat": 10**9})
    begun = anyio.Event()

    async def read() -> None:
        async with model.stream(ModelRequest("", (user("go"),))) as events:
            async for _ in events:
                begun.set()

    with anyio.fail_after(5):
        async with anyio.create_task_group() as group:
            group.start_soon(read)
            await begun.wait()
            group.cancel_scope.cancel()


# Where a script comes from --------------------------------------------------------------


def written(path: Path, content: object) -> Path:
    text = content if isinstance(content, str) else json.dumps(content)
    path.write_text(text, encoding="utf-8")
    return path


def test_without_a_name_the_script_of_the_tour_is_read() -> None:
    assert open_script({}).find("Hello! What can you do in this notebook?") is not None


def test_the_environment_names_another_script(tmp_path: Path) -> None:
    path = written(tmp_path / "s.json", {"turns": [{"prompt": "go", "steps": [{"text": "x"}]}]})

    script = open_script({"CRUSH_OFFLINE_SCRIPT": str(path)})

    assert [turn.prompt for turn in script.turns] == ["go"]


def test_a_script_is_read_when_the_model_is_opened_and_not_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = written(tmp_path / "s.json", {"turns": [{"prompt": "go", "steps": [{"text": "x"}]}]})
    monkeypatch.setenv("CRUSH_OFFLINE_SCRIPT", str(path))
    model = OfflineModel(INFO)
    path.unlink()

    reply = anyio.run(reply_to, model, (user("go"),))

    assert text_of(reply).endswith("x")


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        pytest.param("{", "JSON", id="no JSON"),
        pytest.param([], "object", id="a list"),
        pytest.param({"turn": []}, "turn", id="an unknown name"),
        pytest.param({"turns": [{"prompt": "a"}]}, "steps", id="no steps"),
        pytest.param('{"turns": [{"prompt": "a", "steps": []}]}', "steps", id="an empty turn"),
        pytest.param('{"turns": [{"prompt": "a", "steps": [[]]}]}', "steps", id="an empty step"),
        pytest.param(
            {"turns": [{"prompt": "a", "steps": [{"error": "fire"}]}]}, "error", id="no such error"
        ),
        pytest.param(
            {"turns": [{"prompt": "a", "steps": [{"delay_s": -1}]}]}, "delay_s", id="a time"
        ),
        pytest.param(
            {"turns": [{"prompt": "a", "steps": ["x"]}, {"prompt": "b", "steps": ["x"] * 9}]},
            "more",
            id="many faults",
        ),
        pytest.param(
            {"turns": [{"prompt": p, "steps": [{"text": "x"}]} for p in ("a b", "a  b")]},
            "two turns",
            id="one prompt twice",
        ),
    ],
)
def test_a_bad_script_is_a_config_error_that_names_file_and_fault(
    tmp_path: Path, content: object, fault: str
) -> None:
    path = written(tmp_path / "bad.json", content)

    with pytest.raises(ConfigError, match=r"bad\.json") as caught:
        read_script(path)

    assert fault in str(caught.value)
    assert caught.value.path == path
    assert "CRUSH_OFFLINE_SCRIPT" in caught.value.hint
    assert len(str(caught.value)) < 1000


def test_a_missing_script_is_a_config_error(tmp_path: Path) -> None:
    with pytest.raises(CrushKernelError, match="cannot be read") as caught:
        open_script({"CRUSH_OFFLINE_SCRIPT": str(tmp_path / "none.json")})

    assert isinstance(caught.value, ConfigError)


def test_a_script_says_nothing_that_no_provider_would() -> None:
    with pytest.raises(ValidationError):
        scripted({"stop_reason": "interrupted"})


# Small parts ----------------------------------------------------------------------------


@pytest.mark.slow
@given(st.text())
def test_inline_code_is_closed_only_by_its_own_end(text: str) -> None:
    code = in_code(text)
    runs = re.findall("`+", code)

    assert code.startswith(runs[0])
    assert code.endswith(runs[-1])
    assert [run for run in runs if run == runs[0]] == [runs[0], runs[-1]]
    assert "\n" not in code


def test_a_tree_is_read_for_its_first_level() -> None:
    tree = "./\n  src/\n    deep.py\n  shut/ [no rights]\n  more/ …\n  a -> b\n  … 3 more\n\n[note]"

    assert entries(tree) == ["src/", "shut/", "more/", "a"]


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        (["#!/bin/sh", "", "# Build it. #"], "Build it."),
        (["<!-- x -->", "Title", "====="], "Title"),
        (["", "---", "==="], ""),
    ],
)
def test_a_file_says_of_itself_its_first_words(lines: list[str], said: str) -> None:
    assert description(lines) == said


def test_a_history_without_a_prompt_is_a_turn_without_words() -> None:
    assert current_turn(()).prompt == ""
