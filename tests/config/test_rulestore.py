"""Stored rules: by project or everywhere, in the user's data, never lost."""

import json
import stat
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crush_kernel.config.rulestore import RuleStore, StoredRules
from crush_kernel.config.ruletexts import SCOPES, VERDICTS, StoredRule
from crush_kernel.errors import ConfigError

LS = StoredRule("allow", "bash(ls:*)", "project")
GIT = StoredRule("deny", "bash(git push:*)", "everywhere")


def store_at(folder: Path, root: str = "/p") -> RuleStore:
    return RuleStore(folder / "data" / "permissions.json", Path(root))


def test_rules_are_read_back_by_project(tmp_path: Path) -> None:
    store_at(tmp_path).add([LS, GIT])
    assert store_at(tmp_path).read() == StoredRules((LS, GIT))
    assert store_at(tmp_path, "/other").read() == StoredRules((GIT,))


def test_the_file_is_for_its_owner_and_says_what_is_whose(tmp_path: Path) -> None:
    store = store_at(tmp_path)
    store.add([LS, GIT])
    assert stat.S_IMODE(store.path.stat().st_mode) == 0o600
    assert json.loads(store.path.read_text(encoding="utf-8")) == {
        "version": 1,
        "everywhere": {"deny": ["bash(git push:*)"]},
        "projects": {"/p": {"allow": ["bash(ls:*)"]}},
    }


def test_another_verdict_takes_the_place_of_the_former(tmp_path: Path) -> None:
    store = store_at(tmp_path)
    asked = StoredRule("ask", LS.text, "project")
    store.add([LS])
    store.add([asked])
    assert store.read().rules == (asked,)


def test_a_rule_is_forgotten_where_it_was_stored(tmp_path: Path) -> None:
    store = store_at(tmp_path)
    wide = StoredRule(LS.verdict, LS.text, "everywhere")
    store.add([LS, wide])
    store.remove(LS)
    assert store.read().rules == (wide,)
    store.remove(LS)
    store.remove(wide)
    assert json.loads(store.path.read_text(encoding="utf-8")) == {"version": 1}


def test_what_others_wrote_stays(tmp_path: Path) -> None:
    store = store_at(tmp_path)
    store.path.parent.mkdir()
    others = {"x": 1, "projects": {"/q": {"allow": ["edit"], "y": [2]}}, "everywhere": {"z": 3}}
    store.path.write_text(json.dumps(others), encoding="utf-8")
    store.add([LS])
    store.remove(LS)
    assert json.loads(store.path.read_text(encoding="utf-8")) == {"version": 1, **others}


@pytest.mark.parametrize(
    ("content", "said"),
    [
        pytest.param("{", "is not valid JSON", id="cut off"),
        pytest.param("[]", "is not a JSON object", id="a list"),
        pytest.param('{"version": 2}', "version", id="of a later version"),
        pytest.param('{"everywhere": []}', "everywhere", id="a list for a section"),
        pytest.param('{"projects": {"/p": {"allow": "bash"}}}', "projects./p.allow", id="a text"),
        pytest.param('{"everywhere": {"deny": [1]}}', "everywhere.deny.0", id="a number"),
    ],
)
def test_a_file_that_is_not_understood_holds_nothing_and_is_never_overwritten(
    tmp_path: Path, content: str, said: str
) -> None:
    store = store_at(tmp_path)
    store.path.parent.mkdir()
    store.path.write_text(content, encoding="utf-8")
    found = store.read()
    assert found.rules == ()
    assert len(found.warnings) == 1
    assert said in found.warnings[0]
    with pytest.raises(ConfigError, match="none are stored"):
        store.add([LS])
    with pytest.raises(ConfigError, match="none are stored"):
        store.remove(LS)
    assert store.path.read_text(encoding="utf-8") == content


RULES = st.builds(
    StoredRule, st.sampled_from(VERDICTS), st.text(max_size=5), st.sampled_from(SCOPES)
)


@given(st.lists(RULES, max_size=6))
def test_what_is_said_last_of_a_rule_counts(
    tmp_path_factory: pytest.TempPathFactory, rules: Sequence[StoredRule]
) -> None:
    store = store_at(tmp_path_factory.mktemp("store"))
    for rule in rules:
        store.add([rule])
    last = {(rule.scope, rule.text): rule for rule in rules}
    assert set(store.read().rules) == set(last.values())
