"""A notebook in which happens what can happen to a session, played with a person at the page."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.fakes import headless
from tests.fakes.clicks import ALLOW_SESSION, DENY, Press
from tests.fakes.kernel import RunningKernel, running_kernel
from tests.fakes.media import drawing, encoded, photo
from tests.fakes.openpage import OpenPage, shows
from tests.fakes.provider.replies import Call, Hold, HttpReply, Reply, Say, Think, say
from tests.fakes.provider.server import FakeProvider

CELLS = (
    "look around",
    "make a file",
    "!echo out; exit 3",
    "What is on @attached.png?",
    "view the other one",
    "tell a story",
    "run it",
    "fail",
    "go on",
)
DENIED, STORY, RUN, FAIL, LAST = 1, 5, 6, 7, 8

HOSTILE = (
    "Soft **blots** & colors <script>alert('said')</script>"
    "<img src=x onerror=alert('said')> [here](javascript:alert('said'))\n\n"
    "| a | b |\n|---|---|\n| 1 | $x$ |\n\n```python\nprint('</script><script>alert(1)')\n```\n"
)
"""What no reader of the notebook may take for more than text."""

REFUSED = HttpReply(401, {"error": {"type": "authentication_error", "message": "no"}})

COMMAND = {"command": "touch out; echo beg''un; sleep 600", "description": "wait"}
"""Needs leave, says `begun`, which is not in its text, and waits longer than any test."""

KEY = "sk-ant-0123456789abcdef"


def settings(protocol: str, provider: FakeProvider) -> dict[str, str]:
    """Return the environment that sends a kernel to `provider`."""
    if protocol == "anthropic":
        address, model = provider.url, "anthropic/claude-sonnet-4-5"
    else:
        address, model = provider.openai_url, "openai/gpt-5-mini"
    name = protocol.upper()
    return {f"{name}_BASE_URL": address, f"{name}_API_KEY": KEY, "CRUSH_MODEL": model}


def play(
    kernel: RunningKernel, provider: FakeProvider, path: Path, *, has_writer: bool = True
) -> OpenPage:
    """Run all cells once, and the denied one once more; the last one fails at the provider.

    Without a writer, the page is one that does not know our comm.
    """
    folder = path.parent
    (folder / "plan.md").write_text("buy <b>bread</b>\n", encoding="utf-8")
    (folder / "attached.png").write_bytes(encoded(drawing((64, 48)), "PNG"))
    (folder / "viewed.png").write_bytes(encoded(photo((80, 60)), "PNG"))
    page = OpenPage(kernel, headless.write(path, list(CELLS)))
    if has_writer:
        page.open()

    both = (Call("ls", {"path": "."}), Call("view", {"file_path": "plan.md"}))
    provider.play(Reply((Think("Where am I?"), Say("I look."), *both)), say("Two things."))
    assert page.run(0).status == "ok"
    for reason in ("not now", "still not"):
        write = Call("write", {"file_path": "new.txt", "content": "made\n"})
        provider.play(Reply((Think("Write it."), write)), say("As you like."))
        assert page.run(DENIED, [Press(DENY.button, reason)]).status == "ok"
    assert page.run(2).status == "ok"
    provider.play(Reply((Think("A picture."), Say("A dark square."))))
    assert page.run(3).status == "ok"
    view = Call("view", {"file_path": "viewed.png"})
    provider.play(Reply((Think("Another one."), view)), say(HOSTILE))
    assert page.run(4).status == "ok"
    story = Reply((Think("A story."), Say(("Once upon a time", Hold(), " the end."))))
    provider.play(story)
    assert page.run(STORY, stop=shows("Once upon")).reply["content"]["ename"] == "Interrupted"
    provider.play(Reply((Think("Run."), Say("I run it."), Call("bash", COMMAND))))
    stopped = page.run(RUN, [ALLOW_SESSION], stop=shows("begun"))
    assert stopped.reply["content"]["ename"] == "Interrupted"
    for index in (FAIL, LAST):
        provider.play(REFUSED)
        assert page.run(index).reply["content"]["ename"] == "AuthenticationFailed"
    return page


def kernel_in(folder: Path, home: Path, environ: Mapping[str, str]) -> Any:  # noqa: ANN401
    """Return a context manager of a kernel, in folders that are made where they lack."""
    for each in (folder, home):
        each.mkdir(parents=True, exist_ok=True)
    return running_kernel(cwd=folder, home=home, env=environ)
