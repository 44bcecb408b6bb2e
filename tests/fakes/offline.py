"""What the offline provider plays in tests of the kernel and of the front ends."""

import json
from pathlib import Path
from typing import Any

Step = dict[str, Any]

LONG = 600
"""Seconds that no test waits for: what is meant to be interrupted takes this long."""


def turn(prompt: str, *steps: Step | list[Step]) -> Step:
    """One exchange of an offline script."""
    return {"prompt": prompt, "steps": list(steps)}


def wants(name: str, **arguments: object) -> Step:
    """A step that calls one tool."""
    return {"tool_calls": [{"name": name, "input": arguments}]}


TODOS = [
    {"content": "Read the code", "status": "completed", "active_form": "Reading the code"},
    {"content": "Run the tests", "status": "in_progress", "active_form": "Running the tests"},
    {"content": "Write <b>docs</b>", "status": "pending", "active_form": "Writing the docs"},
]

QUESTIONS = [
    {
        "type": "single_choice",
        "question": "Which database?",
        "description": "It holds the prices.",
        "choices": [{"id": "pg", "label": "Postgres"}, {"id": "lite", "label": "SQLite <b>"}],
    },
    {"type": "free_text", "question": "What is it called?", "description": ""},
]

SCRIPT = (
    turn("hello", {"text": "Hello **there**."}),
    turn("wait", {"text": "One moment.", "delay_s": LONG}),
    turn("stream for ever", {"text": "word ", "repeat": 1_000_000, "pace_s": 0.02}),
    turn("sleep", wants("bash", command="echo begun; sleep 600", description="wait")),
    turn(
        "make a file",
        {"text": "I make it.", **wants("write", file_path="new.txt", content="made\n")},
        [{"if_denied": True, "text": "As you like."}, {"text": "It is made.", "pace_s": 0.2}],
    ),
    turn(
        "work for long",
        {"text": "I begin.", **wants("todos", todos=TODOS)},
        {"text": "word ", "repeat": 500, "pace_s": 0.02},
    ),
    turn(
        "ask me",
        wants("question", questions=QUESTIONS),
        [{"if_error": True, "text": "As you like."}, {"text": "So it is: {result}"}],
    ),
    turn("fail", {"error": "authentication_failed"}),
    turn("look", wants("ls", path="."), {"text": "That is all."}),
)


def offline_script(folder: Path, *turns: Step) -> dict[str, str]:
    """Write a script of `turns`, or of `SCRIPT`, and return the environment that plays it."""
    path = folder / "script.json"
    script = {"introduce": False, "turns": turns or SCRIPT}
    path.write_text(json.dumps(script), encoding="utf-8")
    return {"CRUSH_OFFLINE_SCRIPT": str(path), "CRUSH_MODEL": "offline/offline"}
