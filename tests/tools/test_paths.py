"""Which texts name a place, and which places are inside the project."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import crush_kernel
from crush_kernel.errors import ToolError
from crush_kernel.files.names import printable
from crush_kernel.tools.paths import PathPolicy


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Return a project with a folder `src`, beside another whose name begins like it."""
    (tmp_path / "project" / "src").mkdir(parents=True)
    (tmp_path / "project-other").mkdir()
    (tmp_path / "project-other" / "secret.txt").write_text("s", encoding="utf-8")
    return tmp_path / "project"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        pytest.param("a.py", "a.py", id="plain name"),
        pytest.param("./src//a.py", "src/a.py", id="superfluous parts"),
        pytest.param("src/../a.py", "a.py", id="up and down again"),
        pytest.param("..name", "..name", id="name that begins with two dots"),
        pytest.param("~name", "~name", id="tilde without a slash"),
        pytest.param(".", ".", id="the folder itself"),
        pytest.param("made/up/later.txt", "made/up/later.txt", id="nothing exists yet"),
        pytest.param(" a b.py", " a b.py", id="spaces"),
    ],
)
def test_places_inside_are_named_from_the_working_directory(
    project: Path, text: str, shown: str
) -> None:
    target = PathPolicy(root=project, cwd=project).resolve(text)
    assert (target.shown, target.is_outside) == (shown, False)
    assert target.path == project / shown


def test_places_above_the_working_directory_can_be_inside_the_project(project: Path) -> None:
    target = PathPolicy(root=project, cwd=project / "src").resolve("../a.py")
    assert (target.shown, target.is_outside) == ("../a.py", False)


@pytest.mark.parametrize(
    "text",
    [
        "..",
        "../project-other/secret.txt",
        "src/../../project-other/secret.txt",
        "link/secret.txt",
        "link/not-there-yet.txt",
        "file-link",
        "dangling",
        "link/../project/../project-other/secret.txt",
        "/etc/passwd",
        "/proc/self/environ",
        "~/.ssh/config",
        "~",
    ],
)
def test_places_outside_are_named_in_full_whatever_leads_there(project: Path, text: str) -> None:
    (project / "link").symlink_to("../project-other")
    (project / "file-link").symlink_to("../project-other/secret.txt")
    (project / "dangling").symlink_to("../nowhere/at/all")
    target = PathPolicy(root=project, cwd=project).resolve(text)
    assert target.is_outside
    assert target.shown == str(target.path)
    assert not target.path.is_relative_to(project)


def test_home_is_expanded(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(project))
    target = PathPolicy(root=project, cwd=project / "src").resolve("~/src/a.py")
    assert (target.path, target.shown) == (project / "src" / "a.py", "a.py")


def test_a_project_reached_through_a_link_is_inside_either_way(project: Path) -> None:
    (alias := project.parent / "alias").symlink_to(project)
    policy = PathPolicy(root=alias, cwd=alias)
    for text in ("src", str(alias / "src"), str(project / "src")):
        assert policy.resolve(text) == PathPolicy(root=project, cwd=project).resolve("src")


@pytest.mark.parametrize("text", ["one", "one/x", "one/../one/x"])
def test_a_circle_of_links_leads_nowhere(project: Path, text: str) -> None:
    (project / "one").symlink_to("other")
    (project / "other").symlink_to("one")
    with pytest.raises(ToolError, match="circle"):
        PathPolicy(root=project, cwd=project).resolve(text)


def test_a_circle_of_links_does_not_hide_the_links_behind_it(project: Path) -> None:
    (project / "one").symlink_to("other")
    (project / "other").symlink_to("one")
    (project / "two").symlink_to("../project-other")
    with pytest.raises(ToolError, match="circle"):
        PathPolicy(root=project, cwd=project).resolve("one/../two/secret.txt")


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        pytest.param("", "empty", id="empty"),
        pytest.param(" \n", "empty", id="blank"),
        pytest.param("a\0b", "NUL", id="NUL"),
        pytest.param("a\ud800b", "Unicode", id="lone surrogate"),
        pytest.param("x" * 256, "too long", id="long name"),
        pytest.param("é" * 128, "too long", id="long name in bytes"),
        pytest.param("x/" * 2500, "too long", id="long path"),
        pytest.param("\\\\?\\C:\\long", "device path", id="device path"),
        pytest.param("//./pipe/x", "device path", id="device path with slashes"),
        pytest.param("file://server/etc/passwd", "another machine", id="file URL of another"),
        pytest.param("file:///a%00b", "NUL", id="NUL in a file URL"),
        pytest.param("https://example.org/a", "URL", id="web address"),
    ],
)
def test_what_names_no_file_is_refused_with_a_sentence(project: Path, text: str, hint: str) -> None:
    with pytest.raises(ToolError, match=hint) as refusal:
        PathPolicy(root=project, cwd=project).resolve(text)
    str(refusal.value).encode()


@pytest.mark.skipif(os.name == "nt", reason="Windows has such paths")
@pytest.mark.parametrize("text", ["C:\\Users\\x\\a.py", "c:/users/X/A.py"])
def test_windows_paths_are_told_apart_from_names(project: Path, text: str) -> None:
    with pytest.raises(ToolError, match="Windows path"):
        PathPolicy(root=project, cwd=project).resolve(text)


def test_a_read_request_says_what_is_read_and_where(project: Path) -> None:
    policy = PathPolicy(root=project, cwd=project)
    target = policy.resolve("../project-other/secret.txt")
    request = policy.read_request(target, call_id="c1", tool="view")
    assert (request.call_id, request.tool, request.action) == ("c1", "view", "read")
    assert (request.paths, request.is_outside) == ((target.path,), True)
    assert request.title == f"read {target.path}"


PARTS = st.lists(
    st.sampled_from(["a", "b", "..", ".", "link", "up", "..c"]), min_size=1, max_size=8
)


@given(parts=PARTS)
def test_inside_means_that_the_real_place_is_below_the_root(
    tmp_path_factory: pytest.TempPathFactory, parts: list[str]
) -> None:
    base = tmp_path_factory.mktemp("tree")
    (root := base / "root").joinpath("a", "b").mkdir(parents=True)
    (base / "a" / "b").mkdir(parents=True)
    (root / "link").symlink_to(base / "a")
    (root / "a" / "up").symlink_to("../..")
    target = PathPolicy(root=root, cwd=root).resolve("/".join(parts))
    real = os.path.realpath(root.joinpath(*parts))
    assert target.path == Path(real)
    assert target.is_outside == (os.path.commonpath([real, root]) != str(root))


@pytest.mark.parametrize(
    ("name", "text"),
    [
        pytest.param("plain é 😀", "plain é 😀", id="plain"),
        pytest.param("back\\slash", "back\\slash", id="backslash alone"),
        pytest.param("a\nb\\n", "a\\x0ab\\\\n", id="newline"),
        pytest.param("x\u202etxt.exe", "x\\u202etxt.exe", id="right-to-left override"),
        pytest.param("latin\udce9", "latin\\xe9", id="undecodable byte"),
    ],
)
def test_printable_names_are_one_line_and_hide_nothing(name: str, text: str) -> None:
    assert printable(name) == text


@pytest.mark.slow
def test_a_name_that_the_system_cannot_write_is_refused_in_words(tmp_path: Path) -> None:
    program = (
        "import sys; from pathlib import Path; from crush_kernel.tools.paths import PathPolicy\n"
        "try: PathPolicy(root=Path('.'), cwd=Path('.')).resolve('\\xfc.txt')\n"
        "except Exception as error: print(type(error).__name__, ascii(str(error)))"
    )
    environ = {"PATH": os.environ["PATH"], "PYTHONPATH": str(Path(crush_kernel.__path__[0]).parent)}
    environ |= {"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"}
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=tmp_path,
        env=environ,
        check=True,
        capture_output=True,
        text=True,
        timeout=30,
    )
    assert done.stdout.startswith("ToolError ")
    assert "LANG" in done.stdout


@pytest.mark.parametrize("place", [".ssh/id_ed25519", ".aws", "sub/.gnupg/x", ".ssh/new/deep"])
def test_a_folder_for_keys_is_never_inside(place: str, tmp_path: Path) -> None:
    assert PathPolicy(tmp_path, tmp_path).resolve(place).is_outside


@pytest.mark.parametrize("place", ["ssh", ".sshrc", "a.ssh", ".env"])
def test_names_that_only_look_like_it_are_inside(place: str, tmp_path: Path) -> None:
    assert not PathPolicy(tmp_path, tmp_path).resolve(place).is_outside
