"""`models`: what is listed, and how the default is marked."""

import json

import pytest

from crush_kernel.cli import main
from crush_kernel.cli.models import table
from crush_kernel.providers.base import ModelInfo

CLAUDE = ModelInfo(
    "anthropic", "claude-x", context_window=200_000, input_price=3, output_price=15.5
)
HAIKU = ModelInfo("anthropic", "haiku-x", context_window=1_000_000, accepts_images=True)
LLAMA = ModelInfo("ollama", "llama")


def test_models_stand_under_their_provider_and_the_default_has_a_star() -> None:
    lines = list(table([CLAUDE, HAIKU, LLAMA], default=HAIKU))

    assert lines[0] == "Anthropic"
    assert lines[1].split()[0] == "claude-x"
    assert lines[2].split()[:2] == ["*", "haiku-x"]
    assert lines[3] == "Ollama"
    assert lines[4].split() == ["llama"]


def test_what_is_known_of_a_model_stands_beside_it_and_the_rest_is_left_out() -> None:
    lines = list(table([CLAUDE, HAIKU], default=CLAUDE))

    assert lines[1].endswith("200 k tokens  $3 in, $15.5 out per million")
    assert lines[2].endswith("1 M tokens  images")


def test_json_is_one_array_with_one_default(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CRUSH_MODEL", "offline/offline")

    assert main.main(["models", "--json"]) == 0

    models = json.loads(capsys.readouterr().out)
    assert [model["label"] for model in models if model["default"]] == ["offline/offline"]


def test_a_default_that_no_provider_lists_is_listed_all_the_same(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CRUSH_MODEL", "offline/tomorrow")

    assert main.main(["models"]) == 0

    assert "* tomorrow" in capsys.readouterr().out


def test_a_setting_that_names_no_model_is_a_failure_with_advice(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CRUSH_MODEL", "no-such-model")

    assert main.main(["models"]) == 1

    assert "no-such-model" in capsys.readouterr().err
