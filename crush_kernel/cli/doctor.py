"""`doctor`: look at everything the kernel needs, and say what to do about what is wrong.

Grades are words, with a sign before them for the quick eye: `ok`, `warning` for what works
less well, `broken` for what does not work at all. Only `broken` fails the command.
"""

import argparse
import os
from collections.abc import Iterator, Sequence
from pathlib import Path

import anyio

from crush_kernel.cli.findings import Finding
from crush_kernel.cli.jupyter_checks import jupyter_findings
from crush_kernel.cli.machine_checks import machine_findings
from crush_kernel.cli.provider_checks import provider_findings
from crush_kernel.config.settings import read_settings


def run(arguments: argparse.Namespace) -> int:  # noqa: ARG001 - every command takes them
    """Print one line for each thing looked at; return 1 if something is broken."""
    settings = read_settings(os.environ)
    findings = (
        *machine_findings(settings, cwd=Path.cwd()),
        *jupyter_findings(),
        *anyio.run(provider_findings, settings),
    )
    print("\n".join(report(findings)))
    return 1 if any(finding.grade == "broken" for finding in findings) else 0


def report(findings: Sequence[Finding]) -> Iterator[str]:
    """Yield the lines: each finding, what to do about it, and the sum."""
    for finding in findings:
        yield f"{_SIGNS[finding.grade]} {finding.grade:<7}  {finding.text}"
        if finding.advice:
            yield f"           {finding.advice}"
    counts = {grade: sum(f.grade == grade for f in findings) for grade in _SIGNS}
    yield ""
    if counts["broken"]:
        yield f"{counts['broken']} broken, {counts['warning']} with a warning."
    elif counts["warning"]:
        yield f"Ready, {counts['warning']} with a warning."
    else:
        yield "Ready."


_SIGNS = {"ok": "✓", "warning": "!", "broken": "✗"}
