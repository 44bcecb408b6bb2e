"""`doctor` on providers: which can be used, which would be, what to do if none can."""

from pathlib import Path

import pytest

from crush_kernel.cli.provider_checks import provider_findings
from crush_kernel.config.settings import read_settings

pytestmark = pytest.mark.anyio

NOBODY = "http://127.0.0.1:9"


def environ(home: Path, **variables: str) -> dict[str, str]:
    return {"HOME": str(home), "CRUSH_GLOBAL_DATA": str(home), **variables}


async def test_a_key_makes_its_provider_usable_and_the_default(tmp_path: Path) -> None:
    variables = environ(tmp_path, ANTHROPIC_API_KEY="sk-secret", ANTHROPIC_BASE_URL=NOBODY)

    findings = await provider_findings(read_settings(variables))

    texts = [finding.text for finding in findings if finding.grade == "ok"]
    assert "Anthropic: ANTHROPIC_API_KEY is set" in texts
    assert texts[-1].startswith("new notebooks use anthropic/")


async def test_a_key_is_never_printed(tmp_path: Path) -> None:
    variables = environ(tmp_path, ANTHROPIC_API_KEY="sk-secret", ANTHROPIC_BASE_URL=NOBODY)

    assert "sk-secret" not in repr(await provider_findings(read_settings(variables)))


async def test_a_model_that_does_not_exist_is_broken(tmp_path: Path) -> None:
    findings = await provider_findings(read_settings(environ(tmp_path, CRUSH_MODEL="no-such-one")))

    assert findings[-1].grade == "broken"
    assert "no-such-one" in findings[-1].text


async def test_the_offline_stand_in_is_a_warning_that_says_how_to_connect(tmp_path: Path) -> None:
    variables = environ(tmp_path, CRUSH_MODEL="offline/offline")

    findings = await provider_findings(read_settings(variables))

    assert findings[-1].grade == "warning"
    assert "ANTHROPIC_API_KEY" in findings[-1].advice
