"""A secret that the model's tools have read goes to the provider, and into nothing else."""

import json
from collections.abc import Generator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.fakes import headless
from tests.fakes.clicks import ALLOW
from tests.fakes.eventful import kernel_in, settings
from tests.fakes.openpage import OpenPage
from tests.fakes.provider.replies import Call, HttpReply, Reply, say
from tests.fakes.provider.server import FakeProvider, serving

TOKEN = "ghp_" + "Ab1" * 12
"""Looks like the token of a code host."""

VALUE = "Correct/Horse+Battery=9"
"""Of a variable whose name says that it is secret."""

BODY = "MIIEpAIBAAKCAQEA7bq2Z0x9vY1mJ8kQ4sT6uWcE3rF5gH7iK9lM0nOp"
PEM = f"-----BEGIN RSA PRIVATE KEY-----\n{BODY}\n{BODY}\n-----END RSA PRIVATE KEY-----"

SECRETS = (TOKEN, VALUE, BODY)

CELLS = ("look", "/export md", "/export html", "/export json", "fail", "write")
LOOK, FAIL, WRITE = 0, 4, 5


@dataclass
class Told:
    """A folder after a session, and what the front end was told in it."""

    folder: Path
    replies: list[str] = field(default_factory=list[str])

    def holders(self, pattern: str) -> list[str]:
        """Return the files that hold a secret."""
        paths = [path for path in self.folder.glob(pattern) if path.is_file()]
        assert paths
        return [
            path.name
            for path in paths
            if any(secret.encode() in path.read_bytes() for secret in SECRETS)
        ]


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory, module_provider: FakeProvider) -> Told:
    """A session in which secrets were read, said by the provider and part of a file's name."""
    folder, home = tmp_path_factory.mktemp("project"), tmp_path_factory.mktemp("home")
    (folder / ".git").mkdir()
    (folder / "private.txt").write_text(f"{TOKEN}\n{VALUE}\n{PEM}", encoding="utf-8")
    environ = settings("anthropic", module_provider) | {"SOME_SECRET": VALUE}
    outcome = Told(folder)
    with kernel_in(folder, home, environ) as kernel:
        page = OpenPage(kernel, headless.write(folder / "nb.ipynb", list(CELLS))).open()
        for index in range(len(CELLS)):
            if index == LOOK:
                module_provider.play(Reply((Call("view", {"file_path": "private.txt"}),)))
                module_provider.play(say(f"It is {TOKEN}, I think."))
            elif index == FAIL:
                said = {"type": "invalid_request_error", "message": f"not {VALUE} {TOKEN}"}
                module_provider.play(HttpReply(400, json.dumps({"error": said})))
            elif index == WRITE:
                arguments = {"file_path": f"{TOKEN}.txt", "content": "made"}
                module_provider.play(Reply((Call("write", arguments),)), say("Written."))
            ended = page.run(index, [ALLOW] if index == WRITE else [])
            outcome.replies.append(json.dumps(ended.reply["content"]))
        page.save()
    return outcome


@pytest.fixture(scope="module")
def module_provider() -> Generator[FakeProvider]:
    with serving() as provider:
        yield provider


def test_the_model_gets_what_its_tools_have_read(told: Told, module_provider: FakeProvider) -> None:
    assert told.replies
    sent = json.dumps(module_provider.requests[1].body)
    assert [secret for secret in SECRETS if secret not in sent] == []


@pytest.mark.parametrize("pattern", ["nb.ipynb", "nb.md", "nb.html", "nb.json"])
def test_no_document_holds_a_secret(told: Told, pattern: str) -> None:
    assert told.holders(pattern) == []


def test_neither_journal_nor_log_holds_a_secret(told: Told) -> None:
    assert told.holders(".crush/*.db*") == []
    assert told.holders(".crush/logs/*") == []


def test_no_reply_tells_a_secret(told: Told) -> None:
    assert '"status": "error"' in told.replies[FAIL]
    assert [reply for reply in told.replies if any(secret in reply for secret in SECRETS)] == []
