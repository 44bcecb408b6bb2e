"""What the settled transcript looks like, in the file and in a terminal."""

from typing import Any

import pytest

from crush_kernel.agent.events import PermissionSettled, Retrying
from crush_kernel.config.settings import PermissionMode
from crush_kernel.errors import AuthenticationFailed, CrushKernelError
from crush_kernel.kernel import render
from crush_kernel.kernel.render import CallFacts, FooterFacts
from crush_kernel.messages import Media, ToolResult, Usage
from crush_kernel.permissions.decision import By
from crush_kernel.permissions.request import PermissionRequest
from tests.kernel.parsers import commonmark, jupyterlab, nbconvert

PNG = Media("image/png", "aGk=", "plot.png")


def done(
    name: str = "view",
    summary: str = "tests/test_price.py",
    *,
    content: str = "text",
    is_error: bool = False,
    media: tuple[Media, ...] = (),
    permission: str = "",
    is_denied: bool = False,
    outcome: str = "",
    diff: str = "",
) -> CallFacts:
    metadata = {key: value for key, value in (("summary", outcome), ("diff", diff)) if value}
    result = ToolResult("c", content, is_error=is_error, media=media, metadata=metadata)
    return CallFacts(
        name, summary, "done", result=result, permission=permission, is_denied=is_denied
    )


def test_a_call_is_one_line_with_its_result_folded_beneath() -> None:
    shown = render.call(done(content="1\n2\n", outcome="38 lines"))
    assert shown.markdown == (
        "<details><summary><b>view</b> tests/test_price.py · 38 lines</summary>\n\n"
        "```text\n1\n2\n```\n\n</details>"
    )
    assert shown.plain == "▸ view tests/test_price.py · 38 lines"


def test_an_edit_shows_its_diff_instead_of_what_the_model_was_told() -> None:
    facts = done(
        "edit",
        "src/price.py",
        content="Edited.",
        permission="allowed for the session",
        diff="-a\n+b\n",
        outcome="+1 −1",
    )
    shown = render.call(facts)
    assert "<b>edit</b> src/price.py · +1 −1 · allowed for the session</summary>" in shown.markdown
    assert "```diff\n-a\n+b\n```" in shown.markdown
    assert "Edited." not in shown.markdown


def test_a_failed_call_says_so_last_and_in_red() -> None:
    shown = render.call(
        done(
            "bash",
            "make",
            is_error=True,
            permission="allowed once",
            content="no rule",
            outcome="exit 2",
        )
    )
    assert shown.plain == "▸ bash make · allowed once · exit 2"
    assert '<span style="color: var(--jp-error-color1)">exit 2</span></summary>' in shown.markdown
    assert "no rule" in shown.markdown


def test_a_denied_call_is_one_line() -> None:
    facts = done(
        "bash",
        "git push",
        is_error=True,
        is_denied=True,
        content="Permission denied",
        permission='denied: "use a branch instead"',
    )
    shown = render.call(facts)
    assert shown.markdown == ('<sub><b>bash</b> git push · denied: "use a branch instead"</sub>')


@pytest.mark.parametrize(
    ("state", "word"),
    [
        pytest.param("running", "running", id="running"),
        pytest.param("waiting", "waiting for you", id="waiting"),
        pytest.param("interrupted", "interrupted", id="interrupted"),
    ],
)
def test_a_call_without_a_result_says_why(state: Any, word: str) -> None:  # noqa: ANN401
    shown = render.call(CallFacts("bash", "sleep 9", state))
    assert shown.markdown == f"<sub><b>bash</b> sleep 9 · {word}</sub>"


def test_a_long_result_shows_its_head_and_tail_and_what_is_missing() -> None:
    content = "\n".join(f"line {number}" for number in range(10_000))
    shown = render.call(done(content=content)).markdown
    assert len(shown) < render.MAX_RESULT_CHARS + 500
    assert "line 0\n" in shown
    assert "line 9999" in shown
    assert "9920 lines, " in shown
    assert "characters not shown here" in shown


def test_a_long_line_is_bounded_too() -> None:
    shown = render.call(done(content="x" * 100_000)).markdown
    assert len(shown) < render.MAX_RESULT_CHARS + 500
    assert "96 k characters not shown here" in shown


def test_long_arguments_are_cut_in_the_line_and_whole_in_the_fold() -> None:
    command = "echo " + "x" * 300 + " && rm -rf build"
    shown = render.call(done("bash", command))
    assert "rm -rf build" not in shown.plain
    assert command in shown.markdown


def test_a_result_left_out_leaves_its_line() -> None:
    assert render.call(done(), is_short=True).markdown.startswith("<sub><b>view</b>")


@pytest.mark.parametrize("parser", [commonmark, nbconvert, jupyterlab])
def test_hostile_names_and_results_stay_text(parser: Any) -> None:  # noqa: ANN401
    evil = "</summary><img src=x onerror=alert(1)>```\n</details><script>alert(1)</script>\u202e"
    facts = done("x" + evil, evil, content=evil, permission=evil, outcome=evil, diff=evil)
    html = parser(render.call(facts).markdown)
    assert "<img" not in html
    assert "<script" not in html
    assert html.count("</details>") == 1
    assert "\u202e" not in html


def test_an_image_is_an_output_of_its_own() -> None:
    assert render.image_bundle(PNG) == {"image/png": "aGk=", "text/plain": "plot.png"}


@pytest.mark.parametrize(
    "media",
    [
        pytest.param(Media("image/svg+xml", "PHN2Zz4="), id="svg"),
        pytest.param(Media("application/pdf", "JVBERg==", "a.pdf"), id="pdf"),
        pytest.param(Media("image/png", "a" * (render.MAX_IMAGE_CHARS + 1)), id="huge"),
    ],
)
def test_what_cannot_be_shown_as_a_picture_is_named(media: Media) -> None:
    assert render.image_bundle(media) is None
    assert "(not shown)" in render.call(done(media=(media,))).markdown


def asked(**fields: Any) -> PermissionRequest:  # noqa: ANN401 - any field
    known: dict[str, Any] = {"call_id": "c", "tool": "bash", "action": "execute", "title": "run"}
    return PermissionRequest(**{**known, **fields})


def allowed(rule: str, by: By, **fields: Any) -> PermissionSettled:  # noqa: ANN401 - any field
    return PermissionSettled(asked(**fields), is_allowed=True, rule=rule, by=by)


def denied(rule: str, by: By, reason: str = "") -> PermissionSettled:
    return PermissionSettled(asked(), is_allowed=False, rule=rule, reason=reason, by=by)


@pytest.mark.parametrize(
    ("event", "words"),
    [
        pytest.param(allowed("allowed once", "person"), "allowed once", id="once"),
        pytest.param(
            allowed("always allowed in this project", "person"),
            "always allowed in this project",
            id="always",
        ),
        pytest.param(
            allowed("bash(pytest:*)", "rule"), "allowed by a rule: bash(pytest:*)", id="by a rule"
        ),
        pytest.param(allowed("yolo mode", "mode"), "yolo mode", id="by the mode"),
        pytest.param(allowed("a read", "built-in", action="read"), "", id="a read"),
        pytest.param(allowed("a look", "built-in", is_read_only=True), "", id="a looking command"),
        pytest.param(
            allowed("allowed once", "person", action="read", is_outside=True),
            "allowed once",
            id="a read outside",
        ),
        pytest.param(
            denied("denied", "person", "use a branch"), 'denied: "use a branch"', id="with a reason"
        ),
        pytest.param(denied("denied", "person"), "denied", id="without a reason"),
        pytest.param(
            denied("bash(rm:*)", "rule", "the rule bash(rm:*) forbids it"),
            "denied by a rule: bash(rm:*)",
            id="denied by a rule",
        ),
        pytest.param(
            denied("plan mode", "mode", "only looking"), "denied by plan mode", id="plan mode"
        ),
    ],
)
def test_by_what_right_a_call_ran_is_told_in_words(event: PermissionSettled, words: str) -> None:
    assert render.permission_words(event) == words


def test_a_plan_that_was_presented_can_be_read_at_once_and_is_safe() -> None:
    plan = "# Plan\n\n1. **first** <img src=x onerror=alert(1)>"
    result = ToolResult(
        "c", "The user approved it.", metadata={"plan": plan, "summary": "approved"}
    )
    shown = render.call(CallFacts("present_plan", "Plan", "done", result))
    assert shown.markdown.startswith("<details open>")
    assert "# Plan" in shown.markdown
    assert "**first**" in shown.markdown
    assert "<img" not in shown.markdown
    assert "# Plan\n\n1. **first**" in shown.plain


@pytest.mark.parametrize(
    ("mode", "shown"),
    [
        pytest.param("default", "", id="nothing of the default"),
        pytest.param("plan", " · plan mode", id="plan"),
        pytest.param("accept-edits", " · accept-edits mode", id="accept-edits"),
        pytest.param(
            "yolo", ' · <b style="color: var(--jp-error-color1)">yolo mode</b>', id="yolo is loud"
        ),
    ],
)
def test_the_footer_names_the_mode(mode: PermissionMode, shown: str) -> None:
    facts = FooterFacts("m", tool_calls=1, mode=mode)
    assert render.footer(facts).markdown == f"<sub>m · 1 tool{shown}</sub>"


def test_reasoning_is_folded() -> None:
    shown = render.reasoning("First **this**.").markdown
    assert shown == "<details><summary>Reasoning</summary>\n\nFirst **this**.\n\n</details>"
    assert render.reasoning(" \n").markdown == ""


def test_an_error_says_what_happened_what_to_do_and_folds_the_detail() -> None:
    error = AuthenticationFailed(
        "The provider refused the key (401)", hint="Set `KEY` or run `/login`", detail="<html>"
    )
    shown = render.failure(error)
    assert shown.markdown == (
        "**The provider refused the key (401).** Set `KEY` or run `/login`.\n\n"
        "<details><summary>details</summary>\n\n```text\n<html>\n```\n\n</details>"
    )
    assert shown.plain == "The provider refused the key (401). Set `KEY` or run `/login`."
    assert render.failure(CrushKernelError("")).markdown == "**CrushKernelError.**"


FULL = FooterFacts(
    model="claude-sonnet-4-5",
    duration_s=12.3,
    context_tokens=41_200,
    context_window=200_000,
    usage=Usage(3200, 38_000, 0, 640),
    cost_usd=0.0213,
    tool_calls=6,
    notes=("2 retries",),
)


def test_a_notice_shows_commands_as_code_and_all_else_as_it_is() -> None:
    shown = render.notice("Run `/compact`, not `rm *` of <b>.")
    assert shown.markdown == "<sub>Run `/compact`, not &#96;rm &#42;&#96; of &lt;b&gt;.</sub>"
    assert shown.plain == "Run `/compact`, not `rm *` of <b>."


def test_the_footer_says_what_the_turn_took() -> None:
    line = (
        "claude-sonnet-4-5 · 41 k of 200 k ▮▮▯▯▯▯▯▯ · 3.2 k in (38 k cached) 640 out · $0.021 · "
        "12 s · 6 tools · 2 retries"
    )
    assert render.footer(FULL).plain == line
    assert render.footer(FULL).markdown == f"<sub>{line}</sub>"


@pytest.mark.parametrize(
    ("facts", "line"),
    [
        pytest.param(FooterFacts("m"), "m", id="nothing known"),
        pytest.param(FooterFacts("m", usage=Usage()), "m", id="nothing used"),
        pytest.param(FooterFacts("m", context_tokens=900), "m · 900 in context", id="no window"),
        pytest.param(FooterFacts("m", tool_calls=1), "m · 1 tool", id="one tool"),
        pytest.param(FooterFacts("m", cost_usd=0.0), "m · $0.00", id="free"),
        pytest.param(FooterFacts("m", cost_usd=0.00042), "m · $0.0004", id="cheap"),
        pytest.param(FooterFacts("m", cost_usd=0.00002), "m · <$0.0001", id="next to nothing"),
        pytest.param(
            FooterFacts(
                "m",
                context_tokens=999,
                context_window=8192,
                usage=Usage(900, 0, 0, 99, is_estimated=True),
                cost_usd=1.239,
            ),
            "m · ~999 of 8.2 k ▮▯▯▯▯▯▯▯ · ~900 in ~99 out · ~$1.24",
            id="estimated",
        ),
    ],
)
def test_the_footer_leaves_out_what_is_unknown(facts: FooterFacts, line: str) -> None:
    assert render.footer(facts).plain == line


def test_the_gauge_turns_amber_from_four_fifths() -> None:
    def markdown(tokens: int) -> str:
        return render.footer(FooterFacts("m", context_tokens=tokens, context_window=100)).markdown

    assert "--jp-warn-color" not in markdown(79)
    assert "--jp-warn-color" in markdown(80)
    assert "▮▮▮▮▮▮▮▮" in markdown(130)


def test_two_prices_in_a_footer_are_no_formula() -> None:
    facts = FooterFacts("m", cost_usd=1.5, notes=("budget $2",))
    assert "$" not in render.footer(facts).markdown


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (0, "0"),
        (999, "999"),
        (1000, "1.0 k"),
        (9949, "9.9 k"),
        (9951, "10 k"),
        (41_200, "41 k"),
        (999_499, "999 k"),
        (999_500, "1.0 M"),
        (12_000_000, "12 M"),
    ],
)
def test_counts_are_short(number: int, text: str) -> None:
    assert render.thousands(number) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.0, "0.00 s"),
        (0.994, "0.99 s"),
        (0.996, "1.0 s"),
        (9.96, "10 s"),
        (59.6, "1 min 0 s"),
        (125.0, "2 min 5 s"),
    ],
)
def test_durations_are_short(seconds: float, text: str) -> None:
    assert render.duration(seconds) == text


def test_a_retry_counts_down() -> None:
    event = Retrying("overloaded", attempt=2, attempts=4, delay_s=8.0)
    assert render.countdown(event, 8.0) == "overloaded · next try in 8 s (2 of 4)"
    assert render.countdown(event, -1.0) == "overloaded · trying again (2 of 4)"


def test_the_last_lines_of_output_are_safe_and_few() -> None:
    text = "a\n\n\x1b[2Jb\n" + "c" * 500 + "\nd\n"
    assert render.last_lines(text) == "⟨U+001B⟩[2Jb\n" + "c" * 160 + "…\nd"
