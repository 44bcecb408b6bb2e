"""What a `SKILL.md` may say, and how its faults are told."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crush_kernel.prompt.skilltext import SkillText, invocation, invoked_skill, parse_skill

GOOD = SkillText("notes", "Write notes.", "Do it.")


def skill(header: str, body: str = "Do it.") -> SkillText | tuple[str, ...]:
    return parse_skill(f"---\n{header}\n---\n{body}\n", folder="notes")


@pytest.mark.parametrize(
    "header",
    [
        pytest.param("name: notes\ndescription: Write notes.", id="plain"),
        pytest.param("name: notes\ndescription: >\n  Write\n  notes.", id="folded"),
        pytest.param('name: "notes"\ndescription: "Write notes."', id="quoted"),
        pytest.param("{name: notes, description: Write notes.}", id="on one line"),
        pytest.param(
            "name: notes\ndescription: Write notes.\nlicense: MIT\nmetadata:\n  a: 1\nother: [1]",
            id="with more than is used",
        ),
        pytest.param("name: notes\ndescription: Write notes.\nmetadata:", id="empty metadata"),
    ],
)
def test_a_header_is_read(header: str) -> None:
    assert skill(header) == GOOD


def test_what_people_do_not_see_is_not_in_a_skill() -> None:
    header = "name: notes\ndescription: Write\u200b notes.\U000e006f"
    assert skill(header, "Do\U000e006b it.") == GOOD


@pytest.mark.parametrize(
    "text", ["\n\n---\n{}\n---", "--- \n{}\n---  \n\n\nDo it.", "---\n{}\n---\nDo it."]
)
def test_blank_lines_and_blanks_around_the_header_do_not_matter(text: str) -> None:
    found = parse_skill(text.format("name: notes\ndescription: Write notes."), folder="notes")
    assert isinstance(found, SkillText)
    assert found.body in ("", "Do it.")


@pytest.mark.parametrize(
    ("value", "expected"),
    [("true", True), ("yes", True), ("On", True), ("false", False), ("no", False)],
)
def test_switches_are_read_as_yaml_has_them(value: str, *, expected: bool) -> None:
    header = "name: notes\ndescription: d\nuser-invocable: {0}\ndisable-model-invocation: {0}"
    found = skill(header.format(value))
    assert isinstance(found, SkillText)
    assert (found.is_user_invocable, found.is_model_invocable) == (expected, not expected)


@pytest.mark.parametrize("name", ["on", "123", "1e3", "null"])
def test_a_name_is_what_is_written(name: str) -> None:
    found = parse_skill(f"---\nname: {name}\ndescription: no\n---\n", folder=name)
    assert isinstance(found, SkillText)
    assert (found.name, found.description) == (name, "no")


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("", "does not begin with"),
        ("# Notes", "does not begin with"),
        ("---\nname: notes", "is not ended"),
        ("---\nname: [\n---\n", "is not YAML"),
        ("---\nname: \x01\n---\n", "is not YAML"),
        (
            "---\nname: notes\ndescription: Configure it: hooks, servers\n---\n",
            "not allowed here at line 3, column 26",
        ),
        ("---\n- a\n---\n", "no list of names and values"),
        ("---\n---\n", "no list of names and values"),
        ("---\na: &a [x]\nb: *a\n---\n", "aliases"),
        ("---\n" + "[" * 15_000 + "\n---\n", "nested more than 10 deep"),
        ("---\n" + "- " * 8_000 + "\n---\n", "nested more than 10 deep"),
        ("---\n" + "? " * 8_000 + "\n---\n", "nested more than 10 deep"),
        ("---\n" + "{a: " * 4_000 + "\n---\n", "nested more than 10 deep"),
        ("---\nname: " + "x" * 20_000 + "\n---\n", "longer than 16 KiB"),
    ],
)
def test_what_is_no_header_is_told(text: str, fault: str) -> None:
    (told,) = faults(parse_skill(text, folder="notes"))
    assert fault in told


def test_a_header_cannot_be_small_and_stand_for_gigabytes() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 10)]
    (told,) = faults(skill("\n".join(lines)))
    assert "aliases" in told


@pytest.mark.parametrize(
    ("header", "told"),
    [
        ("description: d", ["name is missing"]),
        ("name: notes", ["description is missing"]),
        ("name: notes\ndescription: '  '", ["description is missing"]),
        ("name: other\ndescription: d", ["name is other, but its folder is called 'notes'"]),
        ("name: a--b\ndescription: d", ["single hyphens"]),
        ("name: -notes\ndescription: d", ["single hyphens"]),
        ("name: nötes\ndescription: d", ["single hyphens"]),
        ("name: notes\ndescription: [d]", ["description is no text"]),
        ("name: notes\ndescription: " + "d" * 1025, ["1,025 bytes; at most 1,024"]),
        ("name: notes\ndescription: d\ncompatibility: " + "d" * 501, ["compatibility has 501"]),
        ("name: notes\ndescription: d\nmetadata: x", ["metadata is no list"]),
        ("name: notes\ndescription: d\nmetadata: {a: [1]}", ["metadata is no list"]),
        ("name: notes\ndescription: d\nuser-invocable: maybe", ["neither true nor false: 'maybe'"]),
        ("name: notes\ndescription: d\nuser-invocable: []", ["neither true nor false: '[]'"]),
        (
            f"name: {'x' * 65}\nuser-invocable: 2\ncompatibility: []",
            ["65 bytes", "folder is called", "description is missing", "compatibility", "'2'"],
        ),
    ],
)
def test_all_faults_are_told_at_once(header: str, told: list[str]) -> None:
    found = faults(skill(header))
    assert len(found) == len(told)
    for fault, words in zip(found, told, strict=True):
        assert words in fault


def test_a_name_differs_from_its_folder_by_case_at_most() -> None:
    found = parse_skill("---\nname: Notes\ndescription: d\n---\n", folder="nOTES")
    assert isinstance(found, SkillText)
    assert found.name == "Notes"


def test_a_description_is_one_line() -> None:
    found = skill("name: notes\ndescription: |\n  one\n\n  </skill>\n  two")
    assert isinstance(found, SkillText)
    assert found.description == "one </skill> two"


@given(st.text(alphabet=st.characters(codec="utf-8")))
def test_no_text_breaks_the_reader(text: str) -> None:
    for whole in (text, f"---\n{text}\n---\n", f"---\nname: {text}\n---\n"):
        found = parse_skill(whole, folder="notes")
        assert found


@given(body=st.text(), arguments=st.text())
def test_a_call_is_known_again(body: str, arguments: str) -> None:
    text = SkillText("notes", "d", body)
    prompt = invocation(text, location='a/"b"\n/SKILL.md', arguments=arguments)
    assert invoked_skill(prompt) == "notes"
    assert body in prompt
    assert prompt.endswith(f"on this: {arguments}" if arguments else "above.")


@pytest.mark.parametrize("prompt", ["", "hello", 'see <skill name="notes" location="" mark="'])
def test_another_prompt_is_no_call(prompt: str) -> None:
    assert not invoked_skill(prompt)


def faults(found: SkillText | tuple[str, ...]) -> tuple[str, ...]:
    assert isinstance(found, tuple)
    return found
