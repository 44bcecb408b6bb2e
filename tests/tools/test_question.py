"""The `question` tool: what the model may ask, and how it reads the answers."""

import json
from typing import Any

import anyio
import pytest
from pydantic import ValidationError

from crush_kernel.errors import ToolError
from crush_kernel.tools.base import ToolOutput
from crush_kernel.tools.present_plan import Plan, PlanAnswer
from crush_kernel.tools.question import (
    DISMISSED,
    MAX_ANSWER_CHARS,
    Answered,
    Given,
    Nobody,
    QuestionArguments,
    QuestionDesk,
    QuestionForm,
    Unanswered,
    question_tool,
)
from tests.fakes.tool_context import tool_context

pytestmark = pytest.mark.anyio

Json = dict[str, Any]


class Scripted:
    """A person who answers with what was written before."""

    def __init__(self, reply: Answered | Unanswered) -> None:
        self.reply = reply
        self.forms: list[QuestionForm] = []

    async def ask_questions(self, form: QuestionForm) -> Answered | Unanswered:
        await anyio.lowlevel.checkpoint()
        self.forms.append(form)
        return self.reply

    async def review_plan(self, plan: Plan) -> PlanAnswer:
        raise AssertionError(plan)


def item(kind: str = "free_text", **more: object) -> Json:
    return {"type": kind, "question": "What now?", "description": "It matters.", **more}


def choices(*names: str) -> list[Json]:
    return [{"id": name, "label": name.upper()} for name in names]


async def ask(reply: Answered | Unanswered, *items: Json) -> ToolOutput:
    arguments = QuestionArguments.model_validate({"questions": items})
    return await question_tool(Scripted(reply)).run(arguments, tool_context().context)


@pytest.mark.parametrize(
    ("asked", "given", "text", "summary"),
    [
        pytest.param(item("yes_no"), Given(yes=True), "Yes.", "yes", id="yes"),
        pytest.param(item("yes_no"), Given(yes=False, text="too dear"),
                     "No.\n   In the user's words: too dear", "no, too dear", id="no, because"),
        pytest.param(item("yes_no"), Given(text="perhaps"), "In the user's words: perhaps",
                     "perhaps", id="neither"),
        pytest.param(item("single_choice", choices=choices("a", "b")), Given(chosen=("b",)),
                     "Chosen: B (id b)", "B", id="one"),
        pytest.param(item("multi_choice", choices=choices("a", "b", "c")),
                     Given(chosen=("c", "a"), text="and d"),
                     "Chosen: A (id a)\n   Chosen: C (id c)\n   In the user's words: and d",
                     "A, C, and d", id="several and other"),
        pytest.param(item(), Given(text=" two\nlines "), "In the user's words: two\n   lines",
                     "two lines", id="text"),
        pytest.param(item(), Given(text="  "), "Skipped.", "skipped", id="nothing"),
    ],
)  # fmt: skip
async def test_answers_are_told_with_what_was_asked(
    asked: Json, given: Given, text: str, summary: str
) -> None:
    output = await ask(Answered((given,)), asked)
    assert output.text == f"1. What now?\n   {text}"
    assert output.summary == summary
    assert not output.is_error


async def test_several_answers_are_numbered() -> None:
    output = await ask(Answered((Given(text="x"), Given())), item(), item(question="And then?"))
    assert output.text == ("1. What now?\n   In the user's words: x\n\n2. And then?\n   Skipped.")
    assert output.summary == "x; skipped"


async def test_an_endless_answer_is_cut() -> None:
    output = await ask(Answered((Given(text="x" * 10**6),)), item())
    assert len(output.text) < MAX_ANSWER_CHARS + 200
    assert "[cut; 1,000,000 characters were written]" in output.text
    assert len(output.summary) < 200


@pytest.mark.parametrize(
    ("reply", "said"),
    [pytest.param(DISMISSED, "The user dismissed", id="dismissed"),
     pytest.param(Unanswered("Nobody."), "Nobody.", id="any reason")],
)  # fmt: skip
async def test_no_answer_is_an_error_that_says_why(reply: Unanswered, said: str) -> None:
    with pytest.raises(ToolError, match=said):
        await ask(reply, item())


async def test_without_a_person_the_answer_comes_at_once() -> None:
    desk, person = QuestionDesk(), Scripted(Answered((Given(text="x"),)))
    form = QuestionForm("c1", ())
    assert isinstance(await desk.ask_questions(form), Unanswered)
    with desk.manned(person):
        assert await desk.ask_questions(form) == person.reply
    assert isinstance(await desk.ask_questions(form), Unanswered)
    assert await desk.ask_questions(form) == await Nobody().ask_questions(form)


@pytest.mark.parametrize(
    "questions",
    [
        pytest.param(json.dumps([item()]), id="a list in a string"),
        pytest.param([item("single_choice", options=choices("a", "b"))], id="options for choices"),
        pytest.param([item("single_choice", options=[], choices=choices("a", "b"))], id="both"),
        pytest.param([item()] * 5, id="five"),
        pytest.param([{"type": "yes_no", "question": "Go on?"}], id="no description"),
    ],
)
def test_what_models_write_is_understood(questions: object) -> None:
    assert QuestionArguments.model_validate({"questions": questions}).questions


@pytest.mark.parametrize(
    ("questions", "said"),
    [
        pytest.param([], "at least 1", id="none"),
        pytest.param([item()] * 6, "at most 5", id="six"),
        pytest.param("why?", "valid tuple", id="a sentence"),
        pytest.param([item("rating")], "'yes_no', 'single_choice'", id="unknown type"),
        pytest.param([item(question=" ")], "at least 1 character", id="no question"),
        pytest.param([item(question="x" * 241)], "at most 240", id="too long"),
        pytest.param([item(description="x" * 601)], "at most 600", id="a lecture"),
        pytest.param([item("single_choice")], "2 to 5 choices are needed, not 0", id="no choice"),
        pytest.param([item("multi_choice", choices=choices("a"))], "not 1", id="one choice"),
        pytest.param([item("multi_choice", choices=choices(*"abcdef"))], "not 6", id="six choices"),
        pytest.param([item("multi_choice", choices=choices("a", "a"))], "the id 'a'", id="twice"),
        pytest.param([item("single_choice", choices=choices("a", " "))], "at least 1",
                     id="an empty id"),
        pytest.param([item("yes_no", choices=choices("a", "b"))], "has no choices",
                     id="choices of yes and no"),
        pytest.param([item(extra=1)], "Extra inputs", id="unknown name"),
    ],
)  # fmt: skip
def test_what_cannot_be_asked_is_refused(questions: object, said: str) -> None:
    with pytest.raises(ValidationError, match=said):
        QuestionArguments.model_validate({"questions": questions})


def test_the_schema_needs_no_references() -> None:
    schema = json.dumps(QuestionArguments.model_json_schema()["properties"])
    assert "$ref" not in schema
    assert "multi_choice" in schema
