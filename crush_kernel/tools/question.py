"""`question`: ask the user, with choices to press, and wait for the answers.

The tool knows no screen: whoever shows the form is a `Questioner`, and which one it is in
the running turn stands at the `QuestionDesk`.
"""

import json
from collections import Counter
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Annotated, Any, Final, Literal, Protocol, cast

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StringConstraints,
    WithJsonSchema,
    model_validator,
)

from crush_kernel.errors import ToolError
from crush_kernel.tools.base import Arguments, Tool, ToolContext, ToolOutput, description_of
from crush_kernel.tools.present_plan import Plan, PlanAnswer, PlanReviewer, Unreviewed
from crush_kernel.wording import clipped

MAX_QUESTIONS: Final = 5
MIN_CHOICES: Final = 2
_MAX_WRITTEN_CHOICES: Final = 50
"""With more they are not even counted, so that no list without end is checked one by one."""
MAX_CHOICES: Final = 5
MAX_QUESTION_CHARS: Final = 240
MAX_DESCRIPTION_CHARS: Final = 600
MAX_LABEL_CHARS: Final = 200
MAX_ANSWER_CHARS: Final = 10_000
"""Of what the user writes to one question, that the model reads."""

SUMMARY_CHARS: Final = 100

QuestionType = Literal["yes_no", "single_choice", "multi_choice", "free_text"]


@dataclass(frozen=True, slots=True)
class Choice:
    """Something that can be chosen."""

    id: str
    label: str
    description: str = ""


@dataclass(frozen=True, slots=True)
class Question:
    """One question, as it is to be shown. To a choice, words of one's own can be added."""

    type: QuestionType
    text: str
    description: str = ""
    label: str = ""
    choices: tuple[Choice, ...] = ()


@dataclass(frozen=True, slots=True)
class QuestionForm:
    """What is asked at once."""

    call_id: str
    questions: tuple[Question, ...]
    title: str = ""
    description: str = ""


@dataclass(frozen=True, slots=True)
class Given:
    """The answer to one question; without anything it was skipped."""

    chosen: tuple[str, ...] = ()
    """The ids of choices, in the order in which they were offered."""
    yes: bool | None = None
    text: str = ""
    """In the user's words: the answer, or what is to be added to it."""


@dataclass(frozen=True, slots=True)
class Answered:
    """The form was sent; there is one answer for each question."""

    given: tuple[Given, ...]


@dataclass(frozen=True, slots=True)
class Unanswered:
    """There is no answer."""

    reason: str
    """Why, as a sentence for the model."""


DISMISSED: Final = Unanswered(
    "The user dismissed the questions. Do not ask them again: decide yourself and say so, or end "
    "your turn."
)


class Questioner(Protocol):
    """Someone who shows a form: widgets in the browser, lines in a console, or a policy."""

    async def ask_questions(self, form: QuestionForm) -> Answered | Unanswered:
        """Return what comes of `form`; cancelling withdraws it."""
        ...


class Person(Questioner, PlanReviewer, Protocol):
    """Someone who can be asked all that is asked beside permissions."""


class Nobody:
    """The policy where nobody can answer."""

    async def review_plan(self, plan: Plan) -> PlanAnswer:  # noqa: ARG002 - a `PlanReviewer`
        """Say at once that there is nobody."""
        return Unreviewed()

    async def ask_questions(self, form: QuestionForm) -> Answered | Unanswered:  # noqa: ARG002 - a `Questioner`
        """Say at once that there is nobody."""
        return Unanswered(
            "Nobody can be asked here: the notebook runs without a person. Decide yourself by what "
            "is safest and easiest to take back, and say in your reply what you assumed."
        )


@dataclass(slots=True)
class QuestionDesk:
    """Where the tools find who asks in the running turn."""

    _person: Person = field(default_factory=Nobody)

    @contextmanager
    def manned(self, person: Person) -> Generator[None]:
        """Have `person` asked what is asked during the block."""
        self._person = person
        try:
            yield
        finally:
            self._person = Nobody()

    async def ask_questions(self, form: QuestionForm) -> Answered | Unanswered:
        """Have the present person ask."""
        return await self._person.ask_questions(form)

    async def review_plan(self, plan: Plan) -> PlanAnswer:
        """Have the present person review `plan`."""
        return await self._person.review_plan(plan)


def _text(max_length: int, min_length: int = 0) -> StringConstraints:
    return StringConstraints(strip_whitespace=True, min_length=min_length, max_length=max_length)


class ChoiceArguments(BaseModel):
    """What the model says about one choice."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    id: Annotated[str, _text(MAX_LABEL_CHARS, 1)] = Field(description="Stands in the answer")
    label: Annotated[str, _text(MAX_LABEL_CHARS, 1)] = Field(description="What the user reads")
    description: Annotated[str, _text(MAX_LABEL_CHARS)] = Field(
        default="", description="What it would mean, in a few words"
    )


_ChoiceEntry = Annotated[ChoiceArguments, WithJsonSchema(ChoiceArguments.model_json_schema())]
"""With its schema in place: not every server of models follows a reference."""


class ItemArguments(BaseModel):
    """What the model says about one question."""

    # The description is asked for, since people read it; not insisted on.
    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        json_schema_extra={"required": ["type", "question", "description"]},
    )

    type: QuestionType = Field(description="What kind of answer is wanted")
    question: Annotated[str, _text(MAX_QUESTION_CHARS, 1)] = Field(description="One sentence")
    description: Annotated[str, _text(MAX_DESCRIPTION_CHARS)] = Field(
        default="", description="What the user should know to answer it"
    )
    label: Annotated[str, _text(MAX_LABEL_CHARS)] = Field(
        default="", description="Its topic, in three words at most"
    )
    choices: tuple[_ChoiceEntry, ...] = Field(
        default=(),
        max_length=_MAX_WRITTEN_CHOICES,
        description="For single_choice and multi_choice",
    )

    @model_validator(mode="before")
    @classmethod
    def _other_name(cls, value: Any) -> Any:  # noqa: ANN401 - whatever the model wrote
        """Take `options` for `choices`, as many models call them."""
        if isinstance(value, dict) and "options" in value:
            given = cast("dict[str, Any]", value)
            rest = {name: each for name, each in given.items() if name != "options"}
            return rest if rest.get("choices") else {**rest, "choices": given["options"]}
        return cast("Any", value)

    @model_validator(mode="after")
    def _fitting(self) -> "ItemArguments":
        """Refuse choices that do not fit the type of the question."""
        count = len(self.choices)
        if self.type not in ("single_choice", "multi_choice"):
            if count:
                raise ValueError(f"a {self.type} question has no choices")
            return self
        if not MIN_CHOICES <= count <= MAX_CHOICES:
            raise ValueError(f"{MIN_CHOICES} to {MAX_CHOICES} choices are needed, not {count}")
        twice = [name for name, n in Counter(each.id for each in self.choices).items() if n > 1]
        if twice:
            raise ValueError(f"two choices have the id {twice[0][:40]!r}")
        return self


_Item = Annotated[ItemArguments, WithJsonSchema(ItemArguments.model_json_schema())]


def _decoded(value: Any) -> Any:  # noqa: ANN401 - whatever the model wrote
    """Return a list that was written as a string, as some models do."""
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        return value


class QuestionArguments(Arguments):
    """What the user is to be asked."""

    questions: Annotated[tuple[_Item, ...], BeforeValidator(_decoded)] = Field(
        min_length=1, max_length=MAX_QUESTIONS, description="What to ask, all at once"
    )
    confirm_title: Annotated[str, _text(MAX_LABEL_CHARS)] = Field(
        default="", description="What several questions are about together"
    )
    confirm_description: Annotated[str, _text(MAX_DESCRIPTION_CHARS)] = Field(
        default="", description="What will be done with the answers"
    )


def question_tool(questioner: Questioner) -> Tool[QuestionArguments]:
    """Return the tool, which has `questioner` ask."""

    async def run(arguments: QuestionArguments, context: ToolContext) -> ToolOutput:
        form = _form(arguments, context.call_id)
        match await questioner.ask_questions(form):
            case Unanswered(reason=reason):
                raise ToolError(reason)
            case Answered(given=given):
                return ToolOutput(answers_text(form, given), summary=_summary(form, given))

    return Tool(
        name="question",
        description=description_of(
            "question",
            {
                "questions": MAX_QUESTIONS,
                "min_choices": MIN_CHOICES,
                "max_choices": MAX_CHOICES,
            },
        ),
        arguments=QuestionArguments,
        run=run,
        describe=_describe,
        is_harmless=True,
    )


def answers_text(form: QuestionForm, given: tuple[Given, ...]) -> str:
    """Return the answers as the model reads them."""
    parts: list[str] = []
    for number, (question, answer) in enumerate(zip(form.questions, given, strict=True), start=1):
        lines = list(_answer_lines(question, answer)) or ["Skipped."]
        parts.append("\n".join((f"{number}. {question.text}", *(f"   {line}" for line in lines))))
    return "\n\n".join(parts)


def _answer_lines(question: Question, answer: Given) -> Iterator[str]:
    """Yield the answer to one question; nothing if it was skipped."""
    if answer.yes is not None:
        yield "Yes." if answer.yes else "No."
    for choice in question.choices:
        if choice.id in answer.chosen:
            yield f"Chosen: {choice.label} (id {choice.id})"
    if text := _cut(answer.text.strip()):
        said = text.replace("\n", "\n   ")
        yield f"In the user's words: {said}"


def _cut(text: str) -> str:
    if len(text) <= MAX_ANSWER_CHARS:
        return text
    return f"{text[:MAX_ANSWER_CHARS]}… [cut; {len(text):,} characters were written]"


def _form(arguments: QuestionArguments, call_id: str) -> QuestionForm:
    return QuestionForm(
        call_id=call_id,
        questions=tuple(
            Question(
                type=each.type,
                text=each.question,
                description=each.description,
                label=each.label,
                choices=tuple(Choice(one.id, one.label, one.description) for one in each.choices),
            )
            for each in arguments.questions
        ),
        title=arguments.confirm_title,
        description=arguments.confirm_description,
    )


def _summary(form: QuestionForm, given: tuple[Given, ...]) -> str:
    """Return the answers for people, in a few words."""
    words: list[str] = []
    for question, answer in zip(form.questions, given, strict=True):
        said = [] if answer.yes is None else ["yes" if answer.yes else "no"]
        said += [each.label for each in question.choices if each.id in answer.chosen]
        said += [" ".join(answer.text.split())] if answer.text.strip() else []
        words.append(", ".join(said) or "skipped")
    summary = "; ".join(words)
    return clipped(summary, SUMMARY_CHARS)


def _describe(arguments: QuestionArguments) -> str:
    first, *rest = arguments.questions
    return first.question + (f" (and {len(rest)} more)" if rest else "")
