"""What cards and rules are told of programs: what they do, to which files, what names them."""

import pytest

from crush_kernel.permissions.shell.judgement import Word
from tests.permissions.shell.commandwords import judged, words_of


@pytest.mark.parametrize(
    ("line", "does"),
    [
        ("ls -la", "lists files"),
        ("cat a", "reads files"),
        ("git status", "shows changes"),
        ("git stash push -m wip", "changes the repository"),
        ("git commit -m x", "changes the repository"),
        ("git push", "talks to a server"),
        ("pytest -q tests/", "runs the project's code"),
        ("python -m pytest -q", "runs the project's code"),
        ("python a.py", "runs a script"),
        ("python -c 'print(1)'", "runs code"),
        ("npm test", "runs the project's code"),
        ("npm run build", "runs the project's code"),
        ("npm install x", "installs packages"),
        ("pip install x", "installs packages"),
        ("cargo build", "runs the project's code"),
        ("make test", "runs the project's code"),
        ("docker compose up", "runs containers"),
        ("docker ps", "lists containers"),
        ("curl x", "talks to the network"),
        ("kubectl get pods", "tells about a cluster"),
        ("rm -rf build", "deletes files"),
        ("mkdir x", "makes folders"),
        ("cp a b", "copies files"),
        ("sed -i s/a/b/ a", "changes files"),
        ("sort -o a b", "writes files"),
        ("find . -name x", "finds files"),
        ("find . -delete", "deletes files"),
        ("bash a.sh", "runs a script"),
        ("kill 1", "ends processes"),
        ("black .", "changes files"),
        ("tar xf a.tar", "unpacks files"),
        ("export A=1", "changes the shell"),
        ("timeout 5 ls", "runs another command"),
        ("sudo ls", "acts as another user"),
        ("some-tool --flag", "runs some-tool"),
        ("./build.sh", "runs build.sh"),
        ("git frobnicate", "runs git frobnicate"),
    ],
)
def test_what_a_command_does_is_told_in_a_few_words(line: str, does: str) -> None:
    assert judged(line).does == does
    assert len(does.split()) <= 4


@pytest.mark.parametrize(
    ("line", "count"),
    [
        ("pytest -q", 1),
        ("ls -la", 1),
        ("cat a", 1),
        ("some-tool x", 1),
        ("./build.sh x", 1),
        ("git log -3", 2),
        ("git commit -m x", 2),
        ("git stash push", 3),
        ("git stash list", 3),
        ("git --no-pager log", 3),
        ("git -C sub log", 4),
        ("git -c a.b=c log", 0),
        ("git config user.name x", 0),
        ("npm install", 2),
        ("npm run test -- -x", 3),
        ("npm --prefix x test", 0),
        ("npm", 0),
        ("npm run", 0),
        ("docker compose up -d", 3),
        ("docker ps -a", 2),
        ("docker run alpine", 0),
        ("cargo test x", 2),
        ("go build ./...", 2),
        ("make test", 2),
        ("make", 1),
        ("uv run pytest", 3),
        ("python a.py x", 2),
        ("python -m pytest -q", 3),
        ("python -m pip install x", 4),
        ("python -c x", 0),
        ("node a.js", 2),
        ("node -e 1", 0),
        ("bash a.sh", 2),
        ("bash -c ls", 0),
        ("rm a", 0),
        ("rm -rf a", 0),
        ("mv a b", 0),
        ("curl x", 0),
        ("sudo ls", 0),
        ("xargs ls", 0),
        ("eval ls", 0),
        ("find . -name x", 0),
        ("sort a", 0),
        ("sed -n p a", 0),
        ("kill 1", 0),
        ("pip install x", 2),
        ("pip install --user x", 0),
        ("npm $x", 0),
        ("$x", 0),
    ],
)
def test_a_rule_has_to_name_so_many_words(line: str, count: int) -> None:
    assert judged(line).rule_words == count


@pytest.mark.parametrize(
    ("line", "reads", "writes"),
    [
        ("cat a b", "a b", ""),
        ("cat", "", ""),
        ("ls", ".", ""),
        ("ls -la src", "src", ""),
        ("grep foo a b", "a b", ""),
        ("grep -e foo a b", "a b", ""),
        ("grep -f p a", "p a", ""),
        ("grep -r foo", ".", ""),
        ("rg foo src", "src", ""),
        ("head -n 5 a", "a", ""),
        ("sed -n p a", "a", ""),
        ("sed -i s/a/b/ a b", "", "a b"),
        ("sed -i -e s/a/b/ a", "", "a"),
        ("awk {print} x=1 a", "a", ""),
        ("jq . a", "a", ""),
        ("grep src/* a", "src/* a", ""),
        ("grep foo* a", "foo* a", ""),
        ("find src -newer a", "src a", ""),
        ("find -name x", ".", ""),
        ("find a b -delete", "a b", "a b"),
        ("find . -fprint out", ".", "out"),
        ("sort -o out a", "a", "out"),
        ("uniq a b", "a", "b"),
        ("cp a b c", "a b", "c"),
        ("cp -r a b", "a", "b"),
        ("cp -t d a b", "a b", "d"),
        ("cp --target-directory=d a", "a", "d"),
        ("mv a b", "", "a b"),
        ("ln -s a b", "", "a b"),
        ("rm -f a b", "", "a b"),
        ("rm -- -a", "", "-a"),
        ("mkdir -p a/b -m 700", "", "a/b"),
        ("touch -r a b", "a", "b"),
        ("tee -a out", "", "out"),
        ("install -d a b", "", "a b"),
        ("install -m 755 a b", "a", "b"),
        ("rsync -a a/ b/", "a/", "b/"),
        ("rsync -a a/ host:b/", "a/", ""),
        ("chmod +x a", "", "a"),
        ("chown me:me a b", "", "a b"),
        ("dd if=a of=b", "a", "b"),
        ("truncate -s 0 a", "", "a"),
        ("tar czf a.tgz b c", "b c", "a.tgz"),
        ("tar xzf a.tgz", "a.tgz", "."),
        ("tar -xf a.tgz -C out", "a.tgz", "out"),
        ("tar tf a.tgz", "a.tgz", ""),
        ("unzip a.zip -d out", "a.zip", "out"),
        ("unzip a.zip", "a.zip", "."),
        ("zip a.zip b", "b", "a.zip"),
        ("gzip a", "", "a"),
        ("docker run -v /etc:/x alpine", "", "/etc"),
        ("docker run --volume=./a:/x alpine", "", "./a"),
        ("docker run --mount type=bind,src=/a,dst=/b alpine", "", "/a"),
        ("docker run -v data:/x alpine", "", ""),
        ("git rm a", "", "a"),
        ("git mv a b", "", "a b"),
        ("git clone url d", "", "d"),
        ("git -C sub rm a", "", "sub/a"),
        ("git -C sub diff a b", "sub sub/a sub/b", ""),
        ("git -C sub diff /a", "sub /a", ""),
        ("git log", ".", ""),
        ("test -f a", "a", ""),
        ("[ a -nt b ]", "a b", ""),
        ("python a.py b", "a.py", ""),
        ("bash a.sh b", "a.sh", ""),
        ("source a", "a", ""),
        ("xargs -a list cat", "list", ""),
        ("strace -o out ls", "", "out"),
    ],
)
def test_what_is_read_and_written_is_known(line: str, reads: str, writes: str) -> None:
    found = judged(line)
    assert [word.text for word in found.reads] == reads.split()
    assert [word.text for word in found.writes] == writes.split()


@pytest.mark.parametrize(
    ("line", "removes"),
    [
        ("rm -r a", True),
        ("rm -fr a", True),
        ("rm --recursive a", True),
        ("rm -f a", False),
        ("find a -delete", True),
        ("chmod -R u+w a", True),
        ("chmod u+w a", False),
        ("shred a", True),
        ("truncate -s 0 a", True),
        ("rsync -a --delete a/ b/", True),
        ("rsync -a a/ b/", False),
        ("mv a b", False),
    ],
)
def test_what_removes_trees_is_known(line: str, removes: bool) -> None:  # noqa: FBT001 - a row
    assert judged(line).removes_trees == removes


@pytest.mark.parametrize(
    ("line", "runs", "scripts"),
    [
        ("timeout 5 ls -l", ["ls -l"], []),
        ("env -u A B=1 ls", ["ls"], []),
        ("nice -n 5 ls", ["ls"], []),
        ("xargs rm", ["rm "], []),
        ("xargs -I{} cp {} d", ["cp {} d"], []),
        ("sh -c 'ls; rm a' x", [], ["ls; rm a"]),
        ("eval ls '-l; rm a'", [], ["ls -l; rm a"]),
        ("find . -exec rm {} + -exec ls {} ;", ["rm {}", "ls {}"], []),
        ("git bisect run make test", ["make test"], []),
        ("git submodule foreach 'git clean -f'", [], ["git clean -f"]),
        ("git rebase -x 'make test' main", [], ["make test"]),
        ("watch -n 1 ls -l", [], ["ls -l"]),
        ("parallel rm ::: a b", ["rm "], []),
        ("trap 'rm a' EXIT", [], ["rm a"]),
        ("busybox rm a", ["rm a"], []),
        ("timeout", [], []),
        ("env", [], []),
    ],
)
def test_what_is_run_is_known(line: str, runs: list[str], scripts: list[str]) -> None:
    found = judged(line)
    assert [" ".join(word.source for word in run) for run in found.runs] == runs
    assert [word.text for word in found.scripts] == scripts


@pytest.mark.parametrize(
    ("line", "directory"),
    [
        pytest.param("cd src", "src", id="cd"),
        pytest.param("cd -P src", "src", id="cd with an option"),
        pytest.param("env -C src ls", "src", id="env"),
        pytest.param("git -C src submodule foreach ls", "src", id="git"),
    ],
)
def test_where_it_runs_is_known(line: str, directory: str) -> None:
    found = judged(line).directory
    assert found
    assert found.text == directory


@pytest.mark.parametrize("line", ["cd", "cd -", "cd $x", "cd a b", "find . -execdir ls ;"])
def test_where_only_the_shell_can_know_is_not_known(line: str) -> None:
    found = judged(line).directory
    assert found
    assert found.text is None


@pytest.mark.parametrize("line", ["grep $x a", 'grep "$x" a', "cat $x", "head -- $x"])
def test_what_may_be_a_path_is_one_that_is_not_known(line: str) -> None:
    found = judged(line)
    assert found.is_read_only
    assert None in [word.text for word in found.reads]


def test_what_comes_in_is_not_known() -> None:
    assert judged("xargs cat").runs == ((*words_of("cat"), Word(None, "")),)
