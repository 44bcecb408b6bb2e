"""The tables hold together, and any id makes a model."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crush_kernel.providers.base import ModelInfo
from crush_kernel.providers.catalog import (
    MODELS,
    PROVIDERS,
    Provider,
    known_model,
    known_models,
    provider_of,
)


def test_the_order_of_providers_decides_and_ends_with_those_that_need_no_key() -> None:
    ids = [provider.id for provider in PROVIDERS]
    assert ids[:2] == ["anthropic", "openai"]
    assert ids[-4:] == ["ollama", "lmstudio", "llamacpp", "offline"]
    assert len(set(ids)) == len(ids)


@pytest.mark.parametrize("provider", [pytest.param(each, id=each.id) for each in PROVIDERS])
def test_a_provider_has_all_that_it_takes_to_open_it(provider: Provider) -> None:
    needs_key = not provider.is_local and provider.protocol != "offline"
    assert bool(provider.key_variables) == needs_key
    assert bool(provider.endpoint) == (provider.protocol != "offline")
    assert bool(provider.large) == bool(provider.small) == (not provider.is_local)
    if provider.is_local:
        assert provider.endpoint.startswith("http://127.0.0.1:")
    elif needs_key:
        assert provider.endpoint.startswith("https://")


@pytest.mark.parametrize("model", [pytest.param(each, id=each.label) for each in MODELS])
def test_a_known_model_is_plausible(model: ModelInfo) -> None:
    assert provider_of(model.provider) is not None
    assert 0 <= model.max_output_tokens < max(model.context_window, 1)
    match (model.cache_read_price, model.input_price, model.cache_write_price, model.output_price):
        case (float() | int() as read, float() | int() as fresh, float() | int() as write, out):
            assert read < fresh <= write
            assert out is not None
            assert fresh < out
        case prices:
            assert prices == (None, None, None, None)


def test_the_default_models_of_the_two_big_providers_are_in_the_table() -> None:
    for provider in PROVIDERS[:2]:
        for model_id in (provider.large, provider.small):
            assert known_model(provider.id, model_id).context_window > 0


@pytest.mark.parametrize(
    ("model_id", "window"),
    [
        pytest.param("claude-sonnet-4-5", 200_000, id="alias"),
        pytest.param("claude-sonnet-4-5-20250929", 200_000, id="date"),
        pytest.param("claude-sonnet-4-5-latest", 200_000, id="latest"),
        pytest.param("claude-sonnet-4-5-fast", 0, id="another model"),
        pytest.param("", 0, id="empty"),
    ],
)
def test_a_date_at_the_end_of_an_id_makes_no_other_model(model_id: str, window: int) -> None:
    found = known_model("anthropic", model_id)
    assert (found.id, found.context_window) == (model_id, window)


@given(provider=st.text(), model_id=st.text())
def test_any_id_makes_a_model_of_which_little_is_known(provider: str, model_id: str) -> None:
    found = known_model(provider, model_id)
    assert (found.provider, found.id) == (provider, model_id)


@pytest.mark.parametrize(
    ("label", "sees"),
    [
        pytest.param("anthropic/claude-sonnet-9", True, id="a Claude to come"),
        pytest.param("openai/gpt-9", True, id="a GPT to come"),
        pytest.param("openai/gpt-3.5-turbo", False, id="an old GPT"),
        pytest.param("openai/whatever", False, id="another model there"),
        pytest.param("ollama/claude-x", False, id="the name alone proves nothing"),
    ],
)
def test_new_models_of_a_family_that_sees_are_taken_to_see(label: str, sees: bool) -> None:  # noqa: FBT001
    provider, _, model_id = label.partition("/")
    assert known_model(provider, model_id).accepts_images == sees


def test_a_providers_models_begin_with_its_default_ones() -> None:
    ids = [model.id for model in known_models("openai")]
    assert ids[:2] == ["gpt-5.6-sol", "gpt-5.6-luna"]
    assert len(set(ids)) == len(ids)
    assert known_models("nobody") == ()
