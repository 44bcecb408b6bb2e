"""Check an installed wheel from outside the checkout, as its user would meet it.

Run by `.ci/run` with the Python of a fresh environment in which nothing but the wheel was
installed. Each check prints one line; the first that fails ends the script.
"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from jupyter_client.manager import start_new_kernel

import crush_kernel

TIMEOUT_S = 60


def main() -> None:
    """Run every check."""
    check_package()
    check_kernelspec()
    check_labextension()
    check_commands()
    check_kernel()


def check_package() -> None:
    """The package is the installed one, with the notebooks inside."""
    package = Path(crush_kernel.__file__).parent
    expect(package.is_relative_to(sys.prefix), f"the package is {package}")
    notebooks = package / "notebooks"
    expect((notebooks / "tour.ipynb").is_file(), "the tour is in the wheel")
    hidden = [str(path) for path in notebooks.rglob(".*")]
    expect(not hidden, f"no hidden files among the notebooks {hidden or ''}")


def check_kernelspec() -> None:
    """Jupyter finds the kernelspec in this environment, logos included."""
    listed = json.loads(output_of("jupyter", "kernelspec", "list", "--json"))
    crush = listed["kernelspecs"]["crush"]
    place = Path(crush["resource_dir"])
    expect(place.is_relative_to(sys.prefix), f"the kernelspec is in {place}")
    expect(crush["spec"]["display_name"] == "Crush", "its display name is Crush")
    expect(crush["spec"]["interrupt_mode"] == "message", "it is interrupted by message")
    logos = ("logo-svg.svg", "logo-64x64.png", "logo-32x32.png")
    expect(all((place / logo).is_file() for logo in logos), "it has its logos")


def check_labextension() -> None:
    """JupyterLab lists the extension as enabled and compatible."""
    text = output_of("jupyter", "labextension", "list")
    lines = [line for line in text.splitlines() if "crush-kernel v" in line]
    expect(len(lines) == 1, f"the extension is listed once: {lines}")
    expect("enabled" in lines[0] and "OK" in lines[0], "it is enabled and compatible")
    expect(f"v{crush_kernel.__version__}" in lines[0], "it has the version of the package")


def check_commands() -> None:
    """The command line is there under its three names, and the doctor finds nothing broken."""
    for command in (
        ("crush-kernel",),
        ("jupyter", "crush"),
        (sys.executable, "-m", "crush_kernel"),
    ):
        version = output_of(*command, "--version")
        expect(crush_kernel.__version__ in version, f"{' '.join(command)} --version")
    print(output_of("crush-kernel", "doctor"))


def check_kernel() -> None:
    """A kernel starts in an empty folder and answers a command and a prompt."""
    with tempfile.TemporaryDirectory() as folder:
        manager, client = start_new_kernel(
            TIMEOUT_S, kernel_name="crush", cwd=folder, env=without_keys()
        )
        try:
            for cell in ("/status", "What is in this folder?"):
                reply = client.execute_interactive(
                    cell, timeout=TIMEOUT_S, output_hook=ignore, allow_stdin=False
                )
                expect(reply["content"]["status"] == "ok", f"the kernel answers {cell!r}")
        finally:
            client.stop_channels()
            manager.shutdown_kernel(now=False)


def without_keys() -> dict[str, str]:
    """Return the environment without what would choose another than the offline provider."""
    return {
        name: value
        for name, value in os.environ.items()
        if not name.endswith(("_API_KEY", "_BASE_URL", "_TOKEN")) and not name.startswith("CRUSH_")
    }


def ignore(_message: object) -> None:
    """Drop what a cell puts out."""


def output_of(*command: str) -> str:
    """Return stdout and stderr of a command that must succeed within a minute."""
    done = subprocess.run(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        timeout=TIMEOUT_S,
        check=False,
    )
    if done.returncode != 0:
        sys.exit(f"`{' '.join(command)}` failed:\n{done.stdout}")
    return done.stdout


def expect(is_true: object, what: str) -> None:
    """Print `what`, and end the script if it does not hold."""
    if not is_true:
        sys.exit(f"Not so: {what}")
    print(f"  {what}")


if __name__ == "__main__":
    main()
