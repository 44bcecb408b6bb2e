"""What files say of permissions: one mistake never loses the rest, a project only tightens."""

from pathlib import Path

import pytest

from crush_kernel.config.configfiles import ConfigFile, Scope
from crush_kernel.config.permissionrules import (
    MAX_KEYS,
    MAX_RULES,
    WrittenPermissions,
    opening_mode,
    read_permissions,
)
from crush_kernel.config.settings import PermissionMode, read_settings
from crush_kernel.messages import JsonObject


def file(document: JsonObject, scope: Scope = "user") -> ConfigFile:
    name = "crush.json" if scope == "user" else "project.json"
    return ConfigFile(Path("/c") / name, scope, document, "")


def said(document: JsonObject, scope: Scope = "user") -> WrittenPermissions:
    return read_permissions((file(document, scope),))


def texts(written: WrittenPermissions) -> list[tuple[str, str]]:
    return [(rule.verdict, rule.text) for rule in written.rules]


def test_all_lists_of_rules_are_read() -> None:
    written = said(
        {
            "permissions": {
                "allow": ["a"],
                "allowed": ["b"],
                "allowed_tools": ["c"],
                "ask": ["d"],
                "deny": ["e", "f"],
            }
        }
    )
    allowed = [("allow", "a"), ("allow", "b"), ("allow", "c")]
    assert texts(written) == [*allowed, ("ask", "d"), ("deny", "e"), ("deny", "f")]
    assert written.warnings == ()
    assert {rule.path for rule in written.rules} == {Path("/c/crush.json")}


def test_a_project_may_ask_and_deny_and_turn_tools_off() -> None:
    document: JsonObject = {
        "permissions": {"allowed_tools": ["bash"], "allow": ["edit"], "ask": ["x"], "deny": ["y"]},
        "options": {"disabled_tools": ["fetch", "fetch"]},
    }
    written = said(document, "project")
    assert texts(written) == [("ask", "x"), ("deny", "y")]
    assert written.disabled_tools == ("fetch",)
    assert [warning.split(": ", 1)[1][:40] for warning in written.warnings] == [
        "permissions.allowed_tools is ignored: a ",
        "permissions.allow is ignored: a project ",
    ]
    assert all("/c/project.json" in warning for warning in written.warnings)


@pytest.mark.parametrize(
    ("document", "said_", "kept"),
    [
        pytest.param({"allwo": ["x"]}, "no key 'allwo'; is allow meant?", 0, id="a typing error"),
        pytest.param({"qqq": 1}, "no key 'qqq'; there are allow, ", 0, id="an unknown key"),
        pytest.param({"deny": {"a": 1}, "ask": ["x"]}, "deny is no list", 1, id="no list"),
        pytest.param({"deny": [1, "x", None]}, "what is no text: 1", 1, id="no text in it"),
        pytest.param({"deny": "x"}, "", 1, id="one text for a list"),
        pytest.param({"deny": ["x"] * (MAX_RULES + 1)}, "more than 1,000", MAX_RULES, id="many"),
        pytest.param({"mode": "fast", "ask": ["x"]}, "is none of default, ", 1, id="no mode"),
        pytest.param({"mode": 3, "ask": ["x"]}, "is none of default, ", 1, id="a number"),
    ],
)
def test_a_mistake_is_told_and_loses_nothing_else(
    document: JsonObject, said_: str, kept: int
) -> None:
    written = said({"permissions": dict(document)})
    assert said_ in "\n".join(written.warnings)
    assert bool(written.warnings) == bool(said_)
    assert len(written.rules) == kept


@pytest.mark.parametrize("key", ["permissions", "options"])
def test_sections_that_are_none_are_told(key: str) -> None:
    assert said({key: [1]}).warnings == (f"/c/crush.json: {key} is no object.",)


@pytest.mark.parametrize(
    ("user", "project", "mode"),
    [
        pytest.param(None, None, None, id="nobody says one"),
        pytest.param("plan", None, "plan", id="the user"),
        pytest.param("Accept_Edits", None, "accept-edits", id="in another spelling"),
        pytest.param("yolo", None, "yolo", id="the user, anything"),
        pytest.param(None, "plan", "plan", id="a stricter project"),
        pytest.param("yolo", "accept-edits", "accept-edits", id="a stricter project by a bit"),
        pytest.param(None, "accept-edits", None, id="a looser project"),
        pytest.param(None, "yolo", None, id="the loosest project"),
        pytest.param("plan", "default", "plan", id="a project looser than the user"),
    ],
)
def test_a_project_may_only_make_the_mode_stricter(
    user: str | None, project: str | None, mode: PermissionMode | None
) -> None:
    documents: tuple[tuple[str | None, Scope], ...] = ((user, "user"), (project, "project"))
    written = read_permissions(
        tuple(file({"permissions": {"mode": name}}, scope) for name, scope in documents if name)
    )
    assert written.mode == mode
    is_loose = project is not None and mode != project
    assert ("may not loosen" in "".join(written.warnings)) is is_loose


@pytest.mark.parametrize(
    ("environ", "written", "mode"),
    [
        ({}, None, "default"),
        ({}, "plan", "plan"),
        ({"CRUSH_PERMISSION_MODE": "accept-edits"}, "plan", "accept-edits"),
        ({"CRUSH_PERMISSION_MODE": "nonsense"}, "yolo", "default"),
    ],
)
def test_the_environment_goes_before_files(
    environ: dict[str, str], written: PermissionMode | None, mode: PermissionMode
) -> None:
    settings = read_settings({"HOME": "/h", **environ})
    assert opening_mode(settings, WrittenPermissions(mode=written)) == mode


@pytest.mark.parametrize("scope", ["user", "project"])
def test_of_thousands_of_unknown_keys_little_is_said_and_known_ones_count(scope: Scope) -> None:
    unknown: JsonObject = {f"key {number}": 1 for number in range(MAX_KEYS * 100)}
    written = said({"permissions": {**unknown, "deny": ["d"]}}, scope)
    assert texts(written) == [("deny", "d")]
    assert len(written.warnings) == 1
    assert "unknown ones are ignored" in written.warnings[0]
