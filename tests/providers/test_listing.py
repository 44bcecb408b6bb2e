"""Lists of models are taken apart without trust, and told models apart from the rest."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import JsonValue

from crush_kernel.providers.base import ModelInfo
from crush_kernel.providers.listing import MAX_MODELS, chat_entries, entries_of, listed_model


@pytest.mark.parametrize(
    ("entry", "expected"),
    [
        pytest.param({}, ModelInfo("x", "m"), id="OpenAI tells nothing"),
        pytest.param(
            {
                "name": "A model",
                "context_length": 131072,
                "top_provider": {"max_completion_tokens": 8192},
                "architecture": {"input_modalities": ["text", "image"]},
                "pricing": {"prompt": "0.000003", "completion": "0.000015"},
            },
            ModelInfo(
                "x",
                "m",
                name="A model",
                context_window=131072,
                max_output_tokens=8192,
                accepts_images=True,
                input_price=3,
                output_price=15,
            ),
            id="OpenRouter",
        ),
        pytest.param(
            {"context_window": 32768}, ModelInfo("x", "m", context_window=32768), id="Groq"
        ),
        pytest.param({"max_model_len": 4096}, ModelInfo("x", "m", context_window=4096), id="vLLM"),
        pytest.param(
            {"meta": {"n_ctx": 8192, "n_ctx_train": 40960}, "capabilities": ["multimodal"]},
            ModelInfo("x", "m", context_window=8192, accepts_images=True),
            id="llama.cpp",
        ),
        pytest.param(
            {"meta": {"n_ctx_train": 40960}},
            ModelInfo("x", "m", context_window=40960),
            id="llama.cpp, older",
        ),
        pytest.param(
            {"display_name": "Claude X", "max_input_tokens": 1000},
            ModelInfo("x", "m", name="Claude X", context_window=1000),
            id="Anthropic",
        ),
        pytest.param(
            {"context_length": 262144, "supports_image_in": True},
            ModelInfo("x", "m", context_window=262144, accepts_images=True),
            id="Moonshot",
        ),
        pytest.param(
            {
                "name": ["x"],
                "context_length": "many",
                "meta": [],
                "top_provider": 3,
                "pricing": {"prompt": "free", "completion": "-1", "input_cache_read": 10**400},
                "architecture": None,
                "capabilities": {"multimodal": True},
            },
            ModelInfo("x", "m"),
            id="nonsense",
        ),
        pytest.param(
            {"context_length": -1, "max_model_len": True, "name": "a\x1b[31mb"},
            ModelInfo("x", "m"),
            id="nonsense of the right type",
        ),
    ],
)
def test_an_entry_says_what_it_can(entry: dict[str, JsonValue], expected: ModelInfo) -> None:
    found = listed_model("x", "m", entry)
    assert found.input_price == pytest.approx(expected.input_price)
    assert found.output_price == pytest.approx(expected.output_price)
    assert found.cache_read_price is None
    assert (found.name, found.context_window) == (expected.name, expected.context_window)
    assert found.max_output_tokens == expected.max_output_tokens
    assert found.accepts_images == expected.accepts_images


def test_what_is_known_by_heart_goes_before_what_a_list_says() -> None:
    entry: dict[str, JsonValue] = {"context_length": 1, "pricing": {"prompt": "1"}, "name": "?"}
    found = listed_model("anthropic", "claude-sonnet-4-5-20250929", entry)
    assert (found.context_window, found.input_price) == (200_000, 3)
    assert found.name == "Claude Sonnet 4.5"


def test_models_that_do_not_chat_are_left_out() -> None:
    ids = ["gpt-5", "text-embedding-3-small", "whisper-1", "gpt-image-1", "qwen2.5-coder:7b"]
    answer: JsonValue = {"data": [{"id": name} for name in ids]}
    assert [name for name, _ in chat_entries(answer)] == ["gpt-5", "qwen2.5-coder:7b"]


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(None, id="none"),
        pytest.param([], id="a list"),
        pytest.param({"data": {}}, id="an object of models"),
        pytest.param({"data": [None, "m", {}, {"id": 7}, {"id": ""}]}, id="no models in it"),
        pytest.param({"data": [{"id": "a\nb"}, {"id": "\u202eevil"}]}, id="ids to be misread"),
        pytest.param({"data": [{"id": "x" * 201}]}, id="an id without end"),
    ],
)
def test_what_cannot_be_a_model_is_skipped(answer: JsonValue) -> None:
    assert list(entries_of(answer, "data", "id")) == []


def test_a_list_without_end_is_cut() -> None:
    answer: JsonValue = {"data": [{"id": f"m{number}"} for number in range(MAX_MODELS + 5)]}
    assert len(list(entries_of(answer, "data", "id"))) == MAX_MODELS


json_values: st.SearchStrategy[JsonValue] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)
KEYS = ("name", "meta", "top_provider", "pricing", "architecture", "context_length", "capabilities")


@given(entry=st.dictionaries(st.sampled_from(KEYS) | st.text(), json_values))
def test_no_entry_breaks_the_reading(entry: dict[str, JsonValue]) -> None:
    assert listed_model("x", "m", entry).label == "x/m"
