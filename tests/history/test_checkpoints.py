"""Laws of taking back, on a file system in memory that refuses what a real one refuses."""

from dataclasses import dataclass, field, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crush_kernel.history.checkpoints import (
    Action,
    Change,
    Entry,
    Plan,
    State,
    by_turn,
    changes_of,
    plan,
    redo_target,
    undo_target,
)
from crush_kernel.history.journal.rows import FileVersion, Undone

FOLDER = Entry("", "folder")
OLD, NEW, MINE = Entry("old", "file"), Entry("new", "file"), Entry("mine", "file")
UNKNOWN = Entry("", "file")
ROOT = "/p"
PATHS = tuple(f"{ROOT}/{name}" for name in ("a", "b", "a/x", "a/y", "a/x/z"))


# A file system


@dataclass
class Disk:
    """What is at which path; a file needs a folder, and a folder that goes must be empty."""

    entries: dict[str, Entry] = field(default_factory=dict[str, Entry])

    def put(self, path: str, entry: Entry) -> None:
        parent = path.rpartition("/")[0]
        assert parent == ROOT or self.entries.get(parent) == FOLDER, f"{path} has no folder"
        assert (self.entries.get(path) == FOLDER) <= (entry == FOLDER), f"{path} is a folder"
        self.entries[path] = entry

    def remove(self, path: str) -> None:
        inner = [other for other in self.entries if other.startswith(f"{path}/")]
        assert not inner, f"{path} is not empty"
        del self.entries[path]

    def act(self, action: Action) -> None:
        assert self.entries.get(action.path) == action.had
        if action.had is not None and (action.want is None or FOLDER in (action.had, action.want)):
            self.remove(action.path)
        if action.want is not None:
            self.put(action.path, action.want)

    # What people and programs do, never against the rules

    def write(self, path: str, entry: Entry) -> None:
        parent = path.rpartition("/")[0]
        if parent != ROOT and self.entries.get(parent) != FOLDER:
            self.delete(parent)
            self.write(parent, FOLDER)
        if FOLDER in (self.entries.get(path), entry):
            self.delete(path)
        self.put(path, entry)

    def delete(self, path: str) -> None:
        for other in sorted(self.entries, reverse=True):
            if other == path or other.startswith(f"{path}/"):
                self.remove(other)


# Sessions: each turn a list of steps, by tools, which tell, and by commands, which do not

entries = st.builds(
    Entry, st.sampled_from("1234"), st.sampled_from(("file", "program", "link"))
) | st.just(FOLDER)
steps = st.tuples(st.sampled_from(("tool", "shell")), st.sampled_from(PATHS), st.none() | entries)
turns = st.lists(st.lists(steps, max_size=6), min_size=1, max_size=6)


@dataclass
class Session:
    """Carries out turns and keeps versions as the journal does."""

    disk: Disk = field(default_factory=Disk)
    versions: list[FileVersion] = field(default_factory=list[FileVersion])
    undone: list[Undone] = field(default_factory=list[Undone])
    seen: dict[str, Entry] = field(default_factory=dict[str, Entry])
    count: int = 0

    def run(self, turn: list[tuple[str, str, State]]) -> None:
        self.count += 1
        for who, path, entry in turn:
            if who == "tool":
                self.look()
            self.step(path, entry)
            if who == "tool":
                self.look()
        self.look()

    def step(self, path: str, entry: State) -> None:
        if entry is None:
            self.disk.delete(path)
        else:
            self.disk.write(path, entry)

    def look(self) -> None:
        """Keep what has changed since the last look, what goes before what comes."""
        now = dict(self.disk.entries)
        for path in sorted(self.seen.keys() | now.keys()):
            before, after = self.seen.get(path), now.get(path)
            if before != after:
                self.versions.append(version(f"t{self.count}", path, before, after))
        self.seen = now

    def take_back(self, target: str, *, is_redo: bool = False) -> None:
        self.count += 1
        changes = by_turn(self.versions)[target]
        planned = plan(changes, self.disk.entries, is_forced=False)
        assert (planned.conflicts, planned.left) == ((), ())
        turn_id = f"t{self.count}"
        self.undone.append(Undone(turn_id, target, is_redo=is_redo))
        for action in planned.actions:
            self.versions.append(version(turn_id, action.path, action.had, action.want))
            self.disk.act(action)
        self.seen = dict(self.disk.entries)


def version(turn_id: str, path: str, before: State, after: State) -> FileVersion:
    return FileVersion(
        turn_id,
        path,
        None if before is None else before.content,
        None if after is None else after.content,
        "" if before is None else before.kind,
        "" if after is None else after.kind,
    )


@given(turns)
def test_taking_all_turns_back_restores_the_beginning_and_bringing_them_back_the_end(
    script: list[list[tuple[str, str, State]]],
) -> None:
    session = Session()
    trees: list[dict[str, Entry]] = []
    for turn in script:
        before = dict(session.disk.entries)
        session.run(turn)
        if session.disk.entries != before:
            trees.append(before)
    end = dict(session.disk.entries)
    for tree in reversed(trees):
        target = undo_target(tuple(by_turn(session.versions)), session.undone)
        assert target is not None
        session.take_back(target)
        assert session.disk.entries == tree
    assert undo_target(tuple(by_turn(session.versions)), session.undone) is None
    for tree in (*trees[1:], end)[: len(trees)]:
        last = redo_target(session.undone)
        assert last is not None
        session.take_back(last.turn_id, is_redo=True)
        assert session.disk.entries == tree
    assert redo_target(session.undone) is None


@given(turns, st.sampled_from(PATHS), st.none() | entries)
def test_what_somebody_else_has_changed_is_never_touched_unasked(
    script: list[list[tuple[str, str, State]]], path: str, entry: State
) -> None:
    session = Session()
    for turn in script:
        session.run(turn)
    changed = by_turn(session.versions)
    target = undo_target(tuple(changed), ())
    left = dict(session.disk.entries)
    session.step(path, entry)
    foreign = {
        each
        for each in left.keys() | session.disk.entries.keys()
        if left.get(each) != session.disk.entries.get(each)
    }
    if target is None:
        return
    planned = plan(changed[target], session.disk.entries, is_forced=False)
    if planned.conflicts:
        return
    touched = {action.path for action in planned.actions}
    files = {each for each in foreign & touched if session.disk.entries.get(each) != FOLDER}
    assert all(session.disk.entries.get(each) is None for each in files)


@given(turns)
def test_the_changes_of_all_turns_together_lead_from_the_beginning_to_the_end(
    script: list[list[tuple[str, str, State]]],
) -> None:
    session = Session()
    for turn in script:
        session.run(turn)
    changes = changes_of(session.versions)
    assert {c.path: c.after for c in changes if c.after} == session.disk.entries
    assert all(c.before is None for c in changes)


# One path at a time


def one(
    now: State,
    *,
    before: State = OLD,
    after: State = NEW,
    reason: str = "",
    is_forced: bool = False,
) -> Plan:
    return plan(
        [Change("/f", before, after, reason)], {"/f": now} if now else {}, is_forced=is_forced
    )


@pytest.mark.parametrize(
    ("now", "change", "expected"),
    [
        pytest.param(NEW, {}, Plan((Action("/f", OLD, NEW),)), id="as the turn left it"),
        pytest.param(OLD, {}, Plan(()), id="as it was before"),
        pytest.param(MINE, {}, Plan((), (("/f", "has changed since"),)), id="changed since"),
        pytest.param(None, {}, Plan((), (("/f", "is gone"),)), id="deleted since"),
        pytest.param(
            MINE, {"after": None}, Plan((), (("/f", "was made again"),)), id="made again since"
        ),
        pytest.param(
            MINE, {"after": UNKNOWN}, Plan((), (("/f", "may have changed since"),)), id="unknown"
        ),
        pytest.param(
            MINE, {"is_forced": True}, Plan((Action("/f", OLD, MINE),)), id="forced over a change"
        ),
        pytest.param(None, {"is_forced": True}, Plan((Action("/f", OLD, None),)), id="forced back"),
        pytest.param(
            NEW, {"before": UNKNOWN, "reason": "why"}, Plan((), (), (("/f", "why"),)), id="not kept"
        ),
        pytest.param(
            replace(NEW, kind="program"),
            {},
            Plan((), (("/f", "has changed since"),)),
            id="made executable since",
        ),
        pytest.param(
            NEW,
            {"before": Entry("old"), "after": Entry("new")},
            Plan((Action("/f", Entry("old"), NEW),)),
            id="rights not known",
        ),
        pytest.param(
            Entry("new", "link"),
            {"after": Entry("new")},
            Plan((), (("/f", "has changed since"),)),
            id="a link that says what the file said",
        ),
        pytest.param(
            Entry("it is a pipe", "other"),
            {"is_forced": True},
            Plan((), (), (("/f", "it is a pipe"),)),
            id="never over what is no file, even forced",
        ),
        pytest.param(FOLDER, {"before": FOLDER, "after": None}, Plan(()), id="folder is back"),
        pytest.param(
            MINE,
            {"before": FOLDER, "after": None},
            Plan((), (("/f", "was made again"),)),
            id="file in the place of a folder",
        ),
        pytest.param(
            MINE,
            {"before": None, "after": FOLDER},
            Plan((), (("/f", "has changed since"),)),
            id="file in the place of a folder that was made",
        ),
    ],
)
def test_what_is_done_at_a_path(now: State, change: dict[str, object], expected: Plan) -> None:
    assert one(now, **change) == expected  # pyright: ignore[reportArgumentType] - a table


def test_a_path_that_is_as_it_was_is_no_change() -> None:
    there_and_back = [version("t", "/f", OLD, NEW), version("t", "/f", NEW, OLD)]
    assert changes_of(there_and_back) == ()
    assert by_turn(there_and_back) == {}


def test_of_what_is_not_known_it_is_not_known_that_it_did_not_change() -> None:
    (change,) = changes_of([version("t", "/f", UNKNOWN, UNKNOWN)])
    assert (change.before, change.after) == (UNKNOWN, UNKNOWN)


def test_an_undone_turn_is_passed_until_it_is_brought_back() -> None:
    undo, redo = Undone("u", "t2"), Undone("r", "u", is_redo=True)
    turn_ids = ("t1", "t2", "u", "r", "t3")
    assert undo_target(turn_ids, ()) == "t3"
    assert undo_target(turn_ids[:3], (undo,)) == "t1"
    assert undo_target(turn_ids[:4], (undo, redo)) == "t2"
    assert undo_target(turn_ids, (undo, redo)) == "t3"
    assert redo_target((undo,)) == undo
    assert redo_target((undo, redo)) is None
