"""The rules of a project: from files and from the store, in one policy."""

import json
from pathlib import Path

import pytest

from crush_kernel.config.directories import Directories
from crush_kernel.config.permissionrules import WrittenPermissions
from crush_kernel.config.ruletexts import StoredRule, WrittenRule
from crush_kernel.errors import ConfigError
from crush_kernel.permissions.decision import Allow
from crush_kernel.permissions.gate import Answer, Gate
from crush_kernel.permissions.request import PermissionRequest
from crush_kernel.permissions.rulebook import RuleBook, open_policy
from tests.permissions.ruling import bash

pytestmark = pytest.mark.anyio


def book_in(folder: Path, *rules: WrittenRule, root: str = "project") -> RuleBook:
    return open_policy(
        WrittenPermissions(rules, warnings=("of the file",)),
        Directories(folder / "config", folder / "data", folder / "cache"),
        environ={"HOME": str(folder)},
        project_root=folder / root,
    )


async def test_what_is_kept_holds_at_once_and_for_the_next_kernel(tmp_path: Path) -> None:
    book = book_in(tmp_path)
    policy = await book.keep(("bash(make *)",), "project")
    assert policy.allows(bash("make all"))
    assert book.page.policy is policy
    assert book_in(tmp_path).page.policy.allows(bash("make all"))
    assert not book_in(tmp_path, root="other").page.policy.allows(bash("make all"))


async def test_what_is_kept_everywhere_holds_in_other_projects(tmp_path: Path) -> None:
    await book_in(tmp_path).keep(("bash(make *)",), "everywhere")
    assert book_in(tmp_path, root="other").page.policy.allows(bash("make all"))


async def test_nothing_is_kept_in_the_project(tmp_path: Path) -> None:
    (tmp_path / "project").mkdir()
    await book_in(tmp_path).keep(("bash(make *)",), "project")
    assert list((tmp_path / "project").iterdir()) == []
    assert (tmp_path / "data/permissions.json").is_file()


async def test_two_kernels_that_keep_rules_lose_nothing(tmp_path: Path) -> None:
    one, other = book_in(tmp_path), book_in(tmp_path)
    await one.keep(("bash(make *)",), "project")
    policy = await other.keep(("bash(ls *)",), "project")
    assert policy.allows(bash("make all", "ls"))
    assert one.read().allows(bash("make all", "ls"))


async def test_a_text_that_is_no_rule_keeps_nothing(tmp_path: Path) -> None:
    book = book_in(tmp_path)
    with pytest.raises(ConfigError, match="one simple command"):
        await book.keep(("bash(make *)", "bash(a; b)"), "project")
    assert book.read().rules == ()


async def test_a_rule_is_forgotten(tmp_path: Path) -> None:
    book = book_in(tmp_path)
    await book.store("deny", ("bash(make *)",), "everywhere")
    policy = await book.forget(StoredRule("deny", "bash(make *)", "everywhere"))
    assert policy.rules == ()


def test_rules_of_files_say_where_they_stand_and_one_mistake_loses_no_other(tmp_path: Path) -> None:
    book = book_in(
        tmp_path,
        WrittenRule("allow", "bash(ls:*)", tmp_path / "config/crush.json", "user"),
        WrittenRule("deny", "bash(a; b)", tmp_path / "project/crush.json", "project"),
        WrittenRule("deny", "raed", tmp_path / "project/crush.json", "project"),
        WrittenRule("deny", "edti", Path("/etc/crush/crush.json"), "user"),
        WrittenRule("allow", "edit", tmp_path / "project/crush.json", "project"),
    )
    page = book.page
    sources = [each.source for each in page.policy.rules]
    assert sources == ["~/config/crush.json", "crush.json", "/etc/crush/crush.json", "crush.json"]
    first, second, third, fourth = page.warnings
    assert first == "of the file"
    assert second.startswith("crush.json: a rule is for one simple command")
    assert second.endswith("; the rule is ignored.")
    assert third.startswith("crush.json: the rule raed is for a tool that does not exist")
    assert fourth.endswith("does not exist; is edit meant?")


def test_a_store_that_is_not_understood_is_told_and_files_still_count(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data/permissions.json").write_text("{", encoding="utf-8")
    rule = WrittenRule("deny", "bash(ls:*)", tmp_path / "config/crush.json", "user")
    book = book_in(tmp_path, rule)
    assert book.page.policy.denies(bash("ls"))
    assert "is not valid JSON" in book.page.warnings[-1]


async def test_stored_texts_that_are_no_rules_can_be_forgotten(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    document = {"everywhere": {"allow": ["a b", "bash(ls:*)"]}}
    path = tmp_path / "data/permissions.json"
    path.write_text(json.dumps(document), encoding="utf-8")
    book = book_in(tmp_path)
    assert [rule.text for rule in book.page.stored] == ["a b", "bash(ls:*)"]
    assert book.page.policy.allows(bash("ls"))
    await book.forget(book.page.stored[0])
    assert [rule.text for rule in book.page.stored] == ["bash(ls:*)"]


async def test_other_files_count_once_they_are_trusted(tmp_path: Path) -> None:
    book = book_in(tmp_path)
    await book.keep(("bash(make *)",), "project")
    rule = WrittenRule("ask", "bash(make *)", tmp_path / "project/crush.json", "project")
    policy = book.configure(WrittenPermissions((rule,)))
    assert policy.asks(bash("make all"))
    assert policy.allows(bash("make all"))
    assert book.page.warnings == ()


class Always:
    """Allows for good."""

    async def ask(self, request: PermissionRequest) -> Answer:
        assert request.tool == "bash"
        return Answer("always", rules=("bash(make *)",), scope="project")


async def test_an_answer_for_good_is_kept_and_not_asked_again(tmp_path: Path) -> None:
    book = book_in(tmp_path)
    gate = Gate(policy=book.page.policy, keep_rules=book.keep)
    said = await gate.settle(bash("make all"), Always())
    assert isinstance(said, Allow)
    assert gate.decide(bash("make clean")).kind == "allow"
    assert book_in(tmp_path).page.policy.allows(bash("make clean"))


async def test_an_answer_that_cannot_be_kept_counts_for_the_session(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data/permissions.json").write_text("{", encoding="utf-8")
    book = book_in(tmp_path)
    gate = Gate(policy=book.page.policy, keep_rules=book.keep)
    said = await gate.settle(bash("make all"), Always())
    assert isinstance(said, Allow)
    assert "cannot be stored" in said.rule
    assert gate.decide(bash("make all")).kind == "allow"
    assert gate.decide(bash("make clean")).kind == "ask"
