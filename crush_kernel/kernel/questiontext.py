"""Questions as lines of text, and answers read from lines: for consoles and saved files."""

from collections.abc import Iterator

from crush_kernel.kernel.markdown import escape, visible
from crush_kernel.kernel.render import Rendered
from crush_kernel.tools.question import Given, Question, QuestionForm

SKIP = "Enter skips"


def waiting(form: QuestionForm) -> Rendered:
    """Show questions that are not answered yet, for a file saved meanwhile."""
    texts = [question.text for question in form.questions]
    markdown = "\n\n".join(
        f"<sub><b>{escape(text)}</b> · waiting for an answer</sub>" for text in texts
    )
    return Rendered(
        markdown, "\n".join(f"{visible(text)}: waiting for an answer" for text in texts)
    )


def heading_lines(form: QuestionForm) -> Iterator[str]:
    """Yield what several questions are about."""
    if len(form.questions) > 1:
        yield visible(form.title or f"{len(form.questions)} questions")
        if form.description:
            yield visible(form.description)


def question_lines(question: Question, number: int, total: int) -> Iterator[str]:
    """Yield one question with its choices."""
    count = f"({number} of {total}) " if total > 1 else ""
    yield visible(f"{count}{question.text}")
    if question.description:
        yield from (f"  {line}" for line in visible(question.description).split("\n"))
    for place, choice in enumerate(question.choices, start=1):
        about = f" – {choice.description}" if choice.description else ""
        yield visible(f"  [{place}] {choice.label}{about}").replace("\n", " ")


def prompt_of(question: Question) -> str:
    """Return what stands before the place to type."""
    match question.type:
        case "yes_no":
            return f"[y] yes  [n] no, or your words ({SKIP}): "
        case "single_choice":
            return f"A number, or your words ({SKIP}): "
        case "multi_choice":
            return f"Numbers such as 1,3, or your words ({SKIP}): "
        case "free_text":
            return f"Your answer ({SKIP}): "


def answer_in(question: Question, line: str) -> Given:
    """Return what `line` answers; whatever is no number or word that was asked for is words."""
    line = line.strip()
    match question.type:
        case "yes_no":
            word, _, rest = line.partition(" ")
            word = word.lower().strip(",.:;")
            if word in ("y", "yes", "n", "no"):
                return Given(yes=word.startswith("y"), text=rest.strip())
            return Given(text=line)
        case "free_text":
            return Given(text=line)
        case "single_choice" | "multi_choice":
            return _chosen_in(question, line)


def _chosen_in(question: Question, line: str) -> Given:
    words = line.replace(",", " ").split()
    places = [int(word) for word in words if word.isascii() and word.isdigit() and len(word) < 3]
    is_all = len(places) == len(words) and all(0 < n <= len(question.choices) for n in places)
    if not words or not is_all or (question.type == "single_choice" and len(set(places)) > 1):
        return Given(text=line)
    return Given(
        chosen=tuple(each.id for n, each in enumerate(question.choices, start=1) if n in places)
    )
