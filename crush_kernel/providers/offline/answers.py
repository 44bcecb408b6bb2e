"""What is said to a plain request: first the calls it takes, then one sentence on the results.

Pure. What has been done is read from the turn, so that a failed, denied or interrupted call is
answered for what it is, and no call is ever made twice.
"""

import re
from collections.abc import Callable
from functools import partial
from typing import assert_never

from pydantic import JsonValue

from crush_kernel.providers.offline.intents import (
    About,
    ExplainFile,
    ExplainProject,
    FindFiles,
    FindText,
    Intent,
    ListFolder,
    Recap,
    Remember,
    ReplaceText,
    RunCommand,
    ShowFile,
    WriteFile,
)
from crush_kernel.providers.offline.results import (
    block,
    description,
    entries,
    file_lines,
    found_paths,
    matching_lines,
    outline,
    readme_in,
)
from crush_kernel.providers.offline.script import Reply, WrittenCall
from crush_kernel.providers.offline.turn import (
    Answered,
    CurrentTurn,
    in_code,
    recap,
    shortened,
)

INTRODUCTION = (
    "*I am not a language model: I am Crush's offline stand-in and work by written rules. To "
    "connect a model, set `ANTHROPIC_API_KEY` or `OPENAI_API_KEY`, or start Ollama or LM Studio; "
    "then run `/model`.*"
)

ABILITIES = """\
I understand a few plain requests in English, and do them with the real tools:

- list: “list the files in `src`”
- show: “show me `README.md`”, “show lines 10-20 of `app.py`”
- find: “find all Python files”, “find "TODO" in `src`”
- run: “run `git status`”
- write: “create a file `notes.txt` with "hello"”
- edit: “replace "red" with "blue" in `style.css`”
- explain: “explain this project”, “explain `app.py`”
- note: “remember this: the shop opens at ten”
- look back: “what have we done so far?”"""

REMEMBERED = "I will: it stands in this cell now, and whoever goes on below reads it here."

NOT_UNDERSTOOD = "I did not understand that, so I did nothing.\n\n" + ABILITIES

_MAX_NAMES = 12
_MAX_SHOWN_LINES = 60
_MAX_PRINTED_LINES = 12

_SIGN = re.compile(r"[\\.+*?()|\[\]{}^$]")
"""What means something else in a regular expression."""


def answer(intent: Intent | None, turn: CurrentTurn, *, tools: frozenset[str]) -> Reply:
    """Return the next reply to the request `intent`; `None` is one that was not understood.

    Args:
        intent: what the prompt of `turn` asks for.
        turn: what has been done about it.
        tools: the names of the tools that may be called.
    """
    reply = _reply(intent, turn)
    missing = next((call.name for call in reply.tool_calls if call.name not in tools), None)
    if missing is not None:
        return _say(f"That takes the tool `{missing}`, which is not available here.")
    return reply


def closing(turn: CurrentTurn) -> Reply:
    """Return what is said after the results of `turn` where nothing better is known."""
    if not turn.answers:
        return _say("There is nothing more to say to this.")
    last = turn.answers[-1]
    return _say(_trouble(last) or f"That is done: `{last.call.name}` returned a result.")


def _reply(  # noqa: C901, PLR0911, PLR0912 - one arm for each member of the union
    intent: Intent | None, turn: CurrentTurn
) -> Reply:
    match intent:
        case None:
            return _say(NOT_UNDERSTOOD)
        case About():
            return _say(ABILITIES)
        case Recap():
            return _say(recap(turn))
        case Remember():
            return _say(REMEMBERED)
        case ListFolder(path=path):
            return _use(turn, partial(_listed, intent), "ls", path=path)
        case ShowFile(path=path, offset=offset, limit=limit):
            report = partial(_shown, intent)
            return _use(
                turn, report, "view", file_path=path, offset=offset or None, limit=limit or None
            )
        case FindFiles(pattern=pattern, path=path):
            return _use(
                turn, partial(_found_files, intent), "glob", pattern=pattern, path=_place(path)
            )
        case FindText():
            return _find_text(intent, turn)
        case RunCommand():
            return _run(intent, turn)
        case WriteFile(path=path, content=content):
            return _use(turn, partial(_written, intent), "write", file_path=path, content=content)
        case ReplaceText():
            return _replace(intent, turn)
        case ExplainFile(path=path):
            return _use(turn, partial(_explained, intent), "view", file_path=path)
        case ExplainProject():
            return _explain_project(turn)
        case _:
            assert_never(intent)


def _use(
    turn: CurrentTurn, report: Callable[[str], str], tool: str, /, **arguments: JsonValue
) -> Reply:
    """Call `tool`, or once that is done, say what came of it: `report` reads the result."""
    done = _done(turn, tool)
    if done is None:
        return _call(tool, **arguments)
    return _say(_trouble(done) or report(done.result.content))


def _listed(intent: ListFolder, result: str) -> str:
    found = entries(result)
    folders = sum(name.endswith("/") for name in found)
    where = "This folder" if intent.path == "." else in_code(intent.path)
    if not found:
        return f"{where} is empty."
    counts = f"{_count(len(found) - folders, 'file')} and {_count(folders, 'folder')}"
    return f"{where} holds {counts}: {_names(found)}."


def _shown(intent: ShowFile, result: str) -> str:
    lines = file_lines(result)
    if not lines:
        return f"There is no text to show: {in_code(shortened(result))}"
    shown = lines[:_MAX_SHOWN_LINES]
    left = len(lines) - len(shown)
    rest = f"\n\n{_count(left, 'more line')} in the result above." if left else ""
    head = f"{in_code(intent.path)}, {_count(len(lines), 'line')}:"
    return f"{head}\n\n{block(shown, intent.path)}{rest}"


def _found_files(intent: FindFiles, result: str) -> str:
    found = found_paths(result)
    if not found:
        return f"No file fits {in_code(intent.pattern)}."
    fit = "fits" if len(found) == 1 else "fit"
    return f"{_count(len(found), 'file')} {fit} {in_code(intent.pattern)}: {_names(found)}."


def _find_text(intent: FindText, turn: CurrentTurn) -> Reply:
    return _use(
        turn,
        partial(_found_text, intent),
        "grep",
        pattern=intent.text,
        path=_place(intent.path),
        include=intent.include or None,
        literal_text=_SIGN.search(intent.text) is not None or None,
    )


def _found_text(intent: FindText, result: str) -> str:
    lines = matching_lines(result)
    if not lines:
        return f"No line has {in_code(intent.text)}."
    rest = "\n\nThere is more in the result above." if len(lines) > _MAX_PRINTED_LINES else ""
    return f"{in_code(intent.text)} is here:\n\n{block(lines[:_MAX_PRINTED_LINES])}{rest}"


def _run(intent: RunCommand, turn: CurrentTurn) -> Reply:
    """Run the command; what it printed is shown even if it failed."""
    done = _done(turn, "bash")
    if done is None:
        what = shortened(f"Run {intent.command}", 60)
        return _call("bash", command=intent.command, description=what)
    if done.outcome == "denied":
        return _say(_trouble(done))
    lines = done.result.content.strip().splitlines()
    ended = "ran" if done.outcome == "ok" else "failed"
    which = "" if len(lines) <= _MAX_PRINTED_LINES else " The end of what it printed:"
    printed = block(lines[-_MAX_PRINTED_LINES:])
    return _say(f"{in_code(shortened(intent.command, 80))} {ended}.{which}\n\n{printed}")


def _written(intent: WriteFile, _: str) -> str:
    lines = _count(len(intent.content.splitlines()), "line")
    return f"{in_code(intent.path)} is written, {lines}."


def _replace(intent: ReplaceText, turn: CurrentTurn) -> Reply:
    """Read, then edit: a file has to have been seen before it may be changed."""
    if _done(turn, "edit") is None:
        read = _done(turn, "view")
        if read is None:
            return _call("view", file_path=intent.path)
        if trouble := _trouble(read):
            return _say(trouble)
    return _use(
        turn,
        partial(_replaced, intent),
        "edit",
        file_path=intent.path,
        old_string=intent.old,
        new_string=intent.new,
        replace_all=intent.is_everywhere or None,
    )


def _replaced(intent: ReplaceText, _: str) -> str:
    if not intent.new:
        return f"{in_code(intent.old)} is gone from {in_code(intent.path)}."
    where = "everywhere in" if intent.is_everywhere else "in"
    return f"{in_code(intent.old)} is now {in_code(intent.new)} {where} {in_code(intent.path)}."


def _explained(intent: ExplainFile, result: str) -> str:
    lines = file_lines(result)
    said, defined = description(lines), outline(lines)
    sentences = [f"I read {_count(len(lines), 'line')} of {in_code(intent.path)}."]
    sentences += [f"It says of itself: {in_code(said)}"] if said else []
    sentences += [f"It defines {_names(defined)}."] if defined else []
    return " ".join(sentences)


def _explain_project(turn: CurrentTurn) -> Reply:
    listed, read = _done(turn, "ls"), _done(turn, "view")
    if listed is None:
        return _call("ls", path=".")
    if trouble := _trouble(listed):
        return _say(trouble)
    found = entries(listed.result.content)
    readme = readme_in(found)
    if readme and read is None:
        return _call("view", file_path=readme)
    is_read = readme and read is not None and read.outcome == "ok"
    said = description(file_lines(read.result.content)) if is_read and read else ""
    about = f"{in_code(readme)} begins: {in_code(said)}." if said else "It has no README to quote."
    return _say(
        f"{about} The project holds {_count(len(found), 'entry')} at the top: {_names(found)}."
    )


def _done(turn: CurrentTurn, tool: str) -> Answered | None:
    """Return the last call of `tool` in this turn."""
    return next((done for done in reversed(turn.answers) if done.call.name == tool), None)


def _trouble(done: Answered) -> str:
    """Return what to say if the call came to nothing, else an empty string."""
    match done.outcome:
        case "ok":
            return ""
        case "denied":
            return f"`{done.call.name}` was denied, so nothing was done."
        case "failed":
            why = in_code(shortened(done.result.content))
            return f"`{done.call.name}` did not work: {why}"


def _say(text: str) -> Reply:
    return Reply(text=text)


def _call(tool: str, /, **arguments: JsonValue) -> Reply:
    """Call `tool`; an argument that is `None` is left to it."""
    given: dict[str, JsonValue] = {k: v for k, v in arguments.items() if v is not None}
    return Reply(tool_calls=(WrittenCall(name=tool, input=given),))


def _place(path: str) -> str | None:
    return None if path == "." else path


def _count(number: int, noun: str) -> str:
    plural = f"{noun[:-1]}ies" if noun.endswith("y") else f"{noun}s"
    return f"1 {noun}" if number == 1 else f"{number} {plural}"


def _names(names: list[str]) -> str:
    shown = ", ".join(in_code(name) for name in names[:_MAX_NAMES])
    return f"{shown} and {len(names) - _MAX_NAMES} more" if len(names) > _MAX_NAMES else shown
