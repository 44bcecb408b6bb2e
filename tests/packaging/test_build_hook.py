"""The build hook of the extension: when it builds, and what it says when it cannot."""

import importlib.util
import json
import os
from pathlib import Path
from types import ModuleType

import psutil
import pytest

HOOK = Path(__file__).parents[2] / "labextension" / "hatch_build.py"


@pytest.fixture(scope="module")
def hook() -> ModuleType:
    """The hook, loaded as hatchling loads it: by its path."""
    spec = importlib.util.spec_from_file_location("hatch_build", HOOK)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def extension(tmp_path: Path) -> Path:
    """An extension that was built after its sources were changed last."""
    for name in ("package.json", "package-lock.json", "tsconfig.json", "src/index.ts"):
        write(tmp_path / name, "{}", time_s=1000)
    for name in ("style/base.css", "toolchain/package.json"):
        write(tmp_path / name, "{}", time_s=1000)
    write(tmp_path / "dist" / "static" / "entry.js", "", time_s=2000)
    manifest = {"jupyterlab": {"_build": {"load": "static/entry.js"}}}
    write(tmp_path / "dist" / "package.json", json.dumps(manifest), time_s=2000)
    return tmp_path


def write(file: Path, text: str, *, time_s: float) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, "utf-8")
    os.utime(file, (time_s, time_s))


def test_a_build_that_is_newer_than_its_sources_is_current(
    hook: ModuleType, extension: Path
) -> None:
    assert hook._is_current(extension)


def test_a_build_as_old_as_its_sources_is_current(hook: ModuleType, extension: Path) -> None:
    # As in an sdist, where all files have one time.
    os.utime(extension / "dist" / "package.json", (1000, 1000))

    assert hook._is_current(extension)


@pytest.mark.parametrize(
    "changed", ["src/index.ts", "style/base.css", "package-lock.json", "toolchain/package.json"]
)
def test_a_changed_source_asks_for_a_build(hook: ModuleType, extension: Path, changed: str) -> None:
    os.utime(extension / changed, (3000, 3000))

    assert not hook._is_current(extension)


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"jupyterlab": {"extension": true}}'])
def test_a_build_that_was_cut_off_is_not_current(
    hook: ModuleType, extension: Path, content: str
) -> None:
    write(extension / "dist" / "package.json", content, time_s=2000)

    assert not hook._is_current(extension)


def test_a_build_without_its_code_is_not_current(hook: ModuleType, extension: Path) -> None:
    (extension / "dist" / "static" / "entry.js").unlink()

    assert not hook._is_current(extension)


def test_what_was_never_built_is_not_current(hook: ModuleType, tmp_path: Path) -> None:
    assert not hook._is_current(tmp_path)


@pytest.mark.slow
def test_a_failed_build_shows_the_end_of_the_output_and_what_to_do(
    hook: ModuleType, tmp_path: Path
) -> None:
    scripts = {"build": "node -e \"console.log('no such module'); process.exit(3)\""}
    write(tmp_path / "package.json", json.dumps({"name": "x", "scripts": scripts}), time_s=1000)

    with pytest.raises(hook.LabextensionError) as caught:
        hook._npm(tmp_path, "run", "build", timeout_s=60)

    message = str(caught.value)
    assert "`npm run build` failed with exit code 3." in message
    assert "no such module" in message
    assert "CRUSH_KERNEL_SKIP_LABEXTENSION=1" in message


@pytest.mark.slow
def test_a_build_that_hangs_is_ended_with_all_that_it_started(
    hook: ModuleType, tmp_path: Path
) -> None:
    script = "require('fs').writeFileSync('pid', String(process.pid)); setInterval(() => 0, 1000)"
    scripts = {"build": f'node -e "{script}"'}
    write(tmp_path / "package.json", json.dumps({"name": "x", "scripts": scripts}), time_s=1000)

    with pytest.raises(hook.LabextensionError, match="did not end within 5 seconds"):
        hook._npm(tmp_path, "run", "build", timeout_s=5)

    assert not is_running(int((tmp_path / "pid").read_text("utf-8")))


def is_running(pid: int) -> bool:
    """A zombie has ended; only nobody has asked how."""
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
