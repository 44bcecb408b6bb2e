"""Secrets in commands, hooks and rules: they stand in no notebook, journal, log, widget or rule."""

import json
from collections.abc import Generator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.fakes import headless
from tests.fakes.clicks import ALLOW, ALLOW_SESSION, DENY, Press
from tests.fakes.eventful import kernel_in, settings
from tests.fakes.openpage import OpenPage
from tests.fakes.provider.replies import Call, Reply, say
from tests.fakes.provider.server import FakeProvider, serving

TOKEN = "ghp_" + "Ab1" * 12
"""Looks like the token of a code host."""

VALUE = "Correct/Horse+Battery=9"
"""Of a variable whose name says that it is secret."""

DUMPED = "sk-ant-test-1234567890abcdef"
"""In a dump of an environment."""

PASSWORD = "hunter2hunter2"  # noqa: S105 - planted
"""In an address."""

SECRETS = (TOKEN, VALUE, DUMPED, PASSWORD)

DUMP = f"payload={{'environment': {{'ANTHROPIC_API_KEY': '{DUMPED}'}}}}"
ADDRESS = f"https://user:{PASSWORD}@example.org/x"
ALL = f"{TOKEN} {VALUE} {DUMP} {ADDRESS}"

COMMAND = {"command": f"touch out && echo {TOKEN} '{ADDRESS}' # {VALUE}", "description": "say"}

SAYING = {
    "decision": "ask",
    "reason": ALL,
    "context": ALL,
    "systemMessage": ALL,
    "updated_input": {"command": f"touch out; echo changed {TOKEN}", "description": ALL},
}

HOOKS = {
    "PreToolUse": [
        {"matcher": "^bash$", "command": f"cat <<'END'\n{json.dumps(SAYING)}\nEND"},
        {"matcher": "^bash$", "command": "env; env >&2; exit 3", "name": f"dump {TOKEN}"},
        {"matcher": "^write$", "command": "env >&2; exit 2", "name": f"no {VALUE}"},
    ],
    "PostToolUse": [{"command": "env >&2; exit 2"}],
    "UserPromptSubmit": [{"command": f"echo '{DUMP}'"}],
    "Stop": [{"command": "env >&2; exit 7", "name": f"end {VALUE}"}],
    "SessionStart": [{"command": f"echo {TOKEN}"}],
}

CONFIG = {
    "hooks": HOOKS,
    "permissions": {"deny": [f"bash(curl {TOKEN}:*)", f"no rule {VALUE}"], f"odd {TOKEN}": 1},
}

CELLS = (
    "run it",
    "run it again",
    "write it",
    "run it a last time",
    "/audit",
    "/audit turn 1",
    "/audit denied",
    "/permissions",
    f"/permissions allow bash(echo {TOKEN})",
    "/status",
    "/hooks",
    "/trust",
    "/export md",
    "/export html",
)
PRESSES: dict[int, list[Press]] = {0: [ALLOW], 1: [DENY], 3: [ALLOW_SESSION]}


@dataclass
class Told:
    """A folder after a session, and what the front end was told in it."""

    folder: Path
    home: Path
    messages: list[str] = field(default_factory=list[str])
    """With those of widgets."""


@pytest.fixture(scope="module")
def module_provider() -> Generator[FakeProvider]:
    with serving() as provider:
        yield provider


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory, module_provider: FakeProvider) -> Told:
    """A session in which hooks, commands and rules tell secrets wherever they can."""
    folder, home = tmp_path_factory.mktemp("project"), tmp_path_factory.mktemp("home")
    (folder / ".git").mkdir()
    (home / ".config/crush").mkdir(parents=True)
    (home / ".config/crush/crush.json").write_text(json.dumps(CONFIG), encoding="utf-8")
    secret = {"SOME_SECRET": VALUE, "GITHUB_TOKEN": TOKEN, "OTHER_API_KEY": DUMPED}
    outcome = Told(folder, home)
    with kernel_in(folder, home, settings("anthropic", module_provider) | secret) as kernel:
        page = OpenPage(kernel, headless.write(folder / "nb.ipynb", list(CELLS))).open()
        for index in range(len(CELLS)):
            if index in PRESSES:
                args = COMMAND if index != 3 else {**COMMAND, "description": ALL}
                module_provider.play(Reply((Call("bash", args),)), say(f"Said {TOKEN}."))
            elif index == 2:
                args = {"file_path": "a.txt", "content": ALL}
                module_provider.play(Reply((Call("write", args),)), say("It may not be."))
            ended = page.run(index, PRESSES.get(index, []))
            outcome.messages += [json.dumps(ended.reply["content"], ensure_ascii=False)]
            outcome.messages += [
                json.dumps(message["content"], ensure_ascii=False)
                for message in ended.messages
                if message["msg_type"] != "execute_input"
            ]
        page.save()
    return outcome


@pytest.mark.slow
@pytest.mark.timeout(240)
@pytest.mark.parametrize("secret", SECRETS, ids=["token", "value", "dump", "password"])
def test_no_message_and_no_widget_tells_a_secret(told: Told, secret: str) -> None:
    assert [message[:2_000] for message in told.messages if secret in message] == []


@pytest.mark.slow
@pytest.mark.timeout(240)
@pytest.mark.parametrize("secret", SECRETS, ids=["token", "value", "dump", "password"])
def test_no_file_of_the_session_holds_a_secret(told: Told, secret: str) -> None:
    own = (told.home / ".config/crush/crush.json", told.folder / "nb.ipynb")
    files = [
        path
        for root in (told.folder, told.home)
        for path in root.rglob("*")
        if path.is_file() and path not in own
    ]
    assert [path.name for path in files if secret.encode() in path.read_bytes()] == []
    notebook = json.loads((told.folder / "nb.ipynb").read_text(encoding="utf-8"))
    for cell in notebook["cells"]:
        cell["source"] = ""
    assert secret not in json.dumps(notebook, ensure_ascii=False)


@pytest.mark.slow
@pytest.mark.timeout(240)
def test_hooks_and_cards_have_told_something(told: Told) -> None:
    shown = "\n".join(told.messages)
    assert all(word in shown for word in ("wants you to decide", "exit 3", "wants to", "denied"))
