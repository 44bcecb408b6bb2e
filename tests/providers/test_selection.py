"""The model that is asked is the one the user means, and nothing is asked without need."""

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import anyio
import pytest
from anyio.abc import SocketStream

from crush_kernel.config.settings import read_settings
from crush_kernel.config.state import ModelChoice, State
from crush_kernel.errors import AuthenticationFailed, CommandError, ConfigError
from crush_kernel.messages import Message, Text, text_of
from crush_kernel.providers.anthropic import AnthropicModel
from crush_kernel.providers.base import Accumulator, Model, ModelInfo, ModelRequest
from crush_kernel.providers.catalog import PROVIDERS
from crush_kernel.providers.matching import matching
from crush_kernel.providers.offline.model import OfflineModel
from crush_kernel.providers.openai import OpenAIModel
from crush_kernel.providers.selection import Providers
from tests.fakes.provider.replies import HttpReply, say
from tests.fakes.provider.server import FakeProvider
from tests.fakes.sockets import free_port, listening

pytestmark = pytest.mark.anyio

KEYS = {
    "ANTHROPIC_API_KEY": "ka",
    "OPENAI_API_KEY": "ko",
    "GROQ_API_KEY": "kg",
    "HF_TOKEN": "kh",
}


def environment(**variables: str) -> dict[str, str]:
    """Return an environment in which no server of this machine is found by accident."""
    nobody = f"127.0.0.1:{free_port()}"
    return {
        "HOME": "/nonexistent",
        "OLLAMA_HOST": nobody,
        "LMSTUDIO_BASE_URL": f"http://{nobody}/v1",
        "LLAMACPP_BASE_URL": f"http://{nobody}/v1",
        **variables,
    }


def providers(state: State | None = None, /, **variables: str) -> Providers:
    return Providers(read_settings(environment(**variables)), state)


def remembering(tmp_path: Path, provider: str, model: str) -> State:
    state = State(tmp_path / "crush.json")
    state.remember("large", ModelChoice(provider, model))
    return state


def usable(chosen: Providers) -> list[str]:
    return [status.id for status in chosen.status() if status.is_usable]


async def default_of(state: State | None = None, /, **variables: str) -> str:
    with anyio.fail_after(10):
        return (await providers(state, **variables).default()).label


@pytest.mark.parametrize(
    ("variables", "label"),
    [
        pytest.param({}, "offline/offline", id="nothing set"),
        pytest.param(KEYS, "anthropic/claude-sonnet-4-6", id="all keys"),
        pytest.param({"OPENAI_API_KEY": "k"}, "openai/gpt-5.6-sol", id="OpenAI's key"),
        pytest.param({"ANTHROPIC_API_KEY": " "}, "offline/offline", id="a blank key"),
        pytest.param(
            {"HF_TOKEN": "k", "OPENROUTER_API_KEY": "k"},
            "openrouter/anthropic/claude-sonnet-4.6",
            id="a token for downloads comes last",
        ),
        pytest.param(
            {"CRUSH_GROQ_API_KEY": "k"}, "groq/moonshotai/kimi-k2-instruct-0905", id="own"
        ),
        pytest.param(
            {**KEYS, "CRUSH_MODEL": "openai/gpt-5-mini"}, "openai/gpt-5-mini", id="the setting"
        ),
        pytest.param({**KEYS, "CRUSH_MODEL": "groq/any/thing"}, "groq/any/thing", id="any id"),
        pytest.param({**KEYS, "CRUSH_MODEL": "OpenAI"}, "openai/gpt-5.6-sol", id="a provider"),
        pytest.param({**KEYS, "CRUSH_MODEL": "opus-4-5"}, "anthropic/claude-opus-4-5", id="a part"),
        pytest.param({**KEYS, "CRUSH_MODEL": "offline"}, "offline/offline", id="offline"),
        pytest.param(
            {"CRUSH_MODEL": "openai/gpt-5"}, "openai/gpt-5", id="out of reach, still meant"
        ),
        pytest.param(
            {"CRUSH_MODEL": "ollama/qwen3"}, "ollama/qwen3", id="not running, still meant"
        ),
    ],
)
async def test_the_default_model(variables: Mapping[str, str], label: str) -> None:
    assert await default_of(**variables) == label


@pytest.mark.parametrize(
    ("label", "expected"),
    [
        pytest.param("gpt", "several", id="several"),
        pytest.param("gpt-55", "no model", id="none"),
        pytest.param("nobody/gpt-5", "no model", id="an unknown provider"),
        pytest.param("ollama", "no model", id="a local server that does not run"),
        pytest.param("/", "no model", id="a slash"),
    ],
)
async def test_a_setting_that_names_no_model_is_an_error_that_helps(
    label: str, expected: str
) -> None:
    with pytest.raises(ConfigError, match=expected) as caught:
        await providers(OPENAI_API_KEY="k", CRUSH_MODEL=label).default()
    assert "CRUSH_MODEL" in str(caught.value)
    assert "openai/gpt-5" in caught.value.hint


@pytest.mark.parametrize(
    ("choice", "label"),
    [
        pytest.param(("openai", "gpt-4.1"), "openai/gpt-4.1", id="usable"),
        pytest.param(("openai", "gpt-to-come"), "openai/gpt-to-come", id="not in the table"),
        pytest.param(("offline", "offline"), "offline/offline", id="offline"),
        pytest.param(("groq", "x"), "anthropic/claude-sonnet-4-6", id="no key"),
        pytest.param(("gemini", "x"), "anthropic/claude-sonnet-4-6", id="a provider of Crush's"),
        pytest.param(("ollama", "x"), "anthropic/claude-sonnet-4-6", id="not running"),
    ],
)
async def test_the_remembered_choice_counts_while_it_can_be_used(
    tmp_path: Path, choice: tuple[str, str], label: str
) -> None:
    state = remembering(tmp_path, *choice)
    assert await default_of(state, ANTHROPIC_API_KEY="k", OPENAI_API_KEY="k") == label


async def test_the_setting_goes_before_the_remembered_choice(tmp_path: Path) -> None:
    state = remembering(tmp_path, "openai", "gpt-4.1")
    label = await default_of(state, OPENAI_API_KEY="k", CRUSH_MODEL="openai/gpt-5-nano")
    assert label == "openai/gpt-5-nano"


async def test_an_unreadable_state_file_changes_nothing(tmp_path: Path) -> None:
    (tmp_path / "crush.json").write_text("{", encoding="utf-8")
    assert await default_of(State(tmp_path / "crush.json"), OPENAI_API_KEY="k") == (
        "openai/gpt-5.6-sol"
    )


def served(provider: FakeProvider, *names: str) -> str:
    """Have the fake serve `names` as Ollama does; return what `OLLAMA_HOST` is then."""
    provider.pages["/api/tags"] = HttpReply(200, {"models": [{"name": name} for name in names]})
    provider.pages["/api/show"] = HttpReply(200, {"model_info": {"x.context_length": 4096}})
    return provider.url


async def test_a_local_server_is_the_default_only_without_a_key(provider: FakeProvider) -> None:
    host = served(provider, "qwen3:8b", "llama3:8b")
    chosen = providers(OLLAMA_HOST=host)
    assert await chosen.default() == ModelInfo("ollama", "qwen3:8b", context_window=4096)
    assert await default_of(OLLAMA_HOST=host, GROQ_API_KEY="k") == (
        "groq/moonshotai/kimi-k2-instruct-0905"
    )


async def test_a_remembered_local_model_is_used_if_it_is_still_served(
    provider: FakeProvider, tmp_path: Path
) -> None:
    host = served(provider, "qwen3:8b", "llama3:8b")
    kept, dropped = (tmp_path / name for name in "ab")
    assert await default_of(remembering(kept, "ollama", "llama3:8b"), OLLAMA_HOST=host) == (
        "ollama/llama3:8b"
    )
    assert await default_of(remembering(dropped, "ollama", "gone"), OLLAMA_HOST=host) == (
        "ollama/qwen3:8b"
    )


async def test_with_a_key_the_default_asks_nobody(provider: FakeProvider) -> None:
    served(provider, "qwen3:8b")
    await default_of(
        OPENAI_API_KEY="k", OPENAI_BASE_URL=provider.openai_url, OLLAMA_HOST=provider.url
    )
    assert provider.visits == []


async def test_a_moved_endpoint_without_a_key_is_asked_what_it_serves(
    provider: FakeProvider,
) -> None:
    provider.models = ("my-model", "other")
    chosen = providers(OPENAI_BASE_URL=provider.openai_url)
    assert (await chosen.default()).label == "openai/my-model"
    assert usable(chosen) == ["openai", "offline"]


async def test_a_moved_endpoint_that_lists_nothing_is_still_the_default(
    provider: FakeProvider,
) -> None:
    provider.models = ()
    assert await default_of(OPENAI_API_ENDPOINT=provider.openai_url) == "openai/gpt-5.6-sol"


async def test_a_moved_endpoint_of_anthropic_needs_a_key(provider: FakeProvider) -> None:
    assert await default_of(ANTHROPIC_BASE_URL=provider.url) == "offline/offline"
    assert await default_of(ANTHROPIC_BASE_URL=provider.url, ANTHROPIC_API_KEY="any") == (
        "anthropic/claude-sonnet-4-6"
    )


@pytest.mark.parametrize(
    ("variables", "label"),
    [
        pytest.param({"OPENAI_API_KEY": "k"}, "openai/gpt-5.6-luna", id="of the same provider"),
        pytest.param({**KEYS, "CRUSH_SMALL_MODEL": "groq/tiny"}, "groq/tiny", id="the setting"),
        pytest.param(
            {"GROQ_API_KEY": "k", "CRUSH_MODEL": "groq/big"}, "groq/qwen/qwen3-32b", id="beside"
        ),
        pytest.param({}, "offline/offline", id="offline"),
    ],
)
async def test_the_small_model(variables: Mapping[str, str], label: str) -> None:
    assert (await providers(**variables).default("small")).label == label


@pytest.mark.parametrize(
    ("variables", "large", "small"),
    [
        pytest.param(KEYS, "openai/gpt-5.2", "openai/gpt-5.6-luna", id="of the provider in use"),
        pytest.param(KEYS, "anthropic/claude-haiku-4-5", "anthropic/claude-haiku-4-5", id="itself"),
        pytest.param(
            {**KEYS, "CRUSH_SMALL_MODEL": "groq/tiny"}, "openai/gpt-5.2", "groq/tiny",
            id="the setting",
        ),
        pytest.param({}, "ollama/qwen3:8b", "ollama/qwen3:8b", id="the large one of this machine"),
        pytest.param({}, "offline/offline", "offline/offline", id="offline"),
        pytest.param({}, "nobody/big", "nobody/big", id="of a provider that is not known"),
    ],
)  # fmt: skip
async def test_the_small_model_goes_with_the_large_one_in_use(
    variables: Mapping[str, str], large: str, small: str
) -> None:
    chosen = providers(**variables)
    assert (await chosen.small(chosen.info(large))).label == small


async def test_a_remembered_small_model_is_used_while_it_can_be(tmp_path: Path) -> None:
    state = State(tmp_path / "crush.json")
    state.remember("small", ModelChoice("groq", "tiny"))
    for variables, label in ((KEYS, "groq/tiny"), ({"OPENAI_API_KEY": "k"}, "openai/gpt-5.6-luna")):
        chosen = providers(state, **variables)
        assert (await chosen.small(chosen.info("openai/gpt-5.2"))).label == label


async def test_a_setting_that_names_no_small_model_is_told() -> None:
    chosen = providers(**KEYS, CRUSH_SMALL_MODEL="tiny-nothing")
    with pytest.raises(ConfigError, match="CRUSH_SMALL_MODEL"):
        await chosen.small(chosen.info("openai/gpt-5.2"))


async def test_a_local_servers_small_model_is_the_large_one(provider: FakeProvider) -> None:
    chosen = providers(OLLAMA_HOST=served(provider, "qwen3:8b"))
    assert (await chosen.default("small")).id == "qwen3:8b"


async def test_the_models_of_all_usable_providers_are_listed(provider: FakeProvider) -> None:
    provider.models = ("gpt-live",)
    chosen = providers(
        OPENAI_API_KEY="k",
        OPENAI_BASE_URL=provider.openai_url,
        OLLAMA_HOST=served(provider, "qwen3:8b"),
    )
    labels = [info.label for info in await chosen.models()]
    assert labels == ["openai/gpt-live", "ollama/qwen3:8b", "offline/offline"]


async def test_the_table_answers_for_a_provider_that_lists_nothing(provider: FakeProvider) -> None:
    provider.pages["/v1/models"] = HttpReply(500, "oops")
    chosen = providers(OPENAI_API_KEY="k", OPENAI_BASE_URL=provider.openai_url)
    labels = [info.label for info in await chosen.models()]
    assert labels[:2] == ["openai/gpt-5.6-sol", "openai/gpt-5.6-luna"]


async def test_a_list_is_asked_for_once(provider: FakeProvider) -> None:
    chosen = providers(OPENAI_API_KEY="k", OPENAI_BASE_URL=provider.openai_url)
    async with anyio.create_task_group() as tasks:
        for _ in range(3):
            tasks.start_soon(chosen.models)
    assert [visit.path for visit in provider.visits] == ["/v1/models"]


async def found(label: str, **variables: str) -> str:
    with anyio.fail_after(10):
        return (await providers(**variables).find(label)).label


@pytest.mark.parametrize(
    ("label", "expected"),
    [
        pytest.param("openai/gpt-5", "openai/gpt-5", id="in full"),
        pytest.param(" openai/gpt-5 ", "openai/gpt-5", id="with spaces"),
        pytest.param("OpenAI/o9-secret", "openai/o9-secret", id="an id that nobody lists"),
        pytest.param("openai", "openai/gpt-5.6-sol", id="a provider"),
        pytest.param("live-a", "openai/live-a", id="an id"),
        pytest.param("LIVE-A", "openai/live-a", id="an id in capitals"),
        pytest.param("openai b", "openai/live-b", id="parts"),
        pytest.param("qwen3", "ollama/qwen3:8b", id="a part of a local model"),
        pytest.param("ollama/qwen3:8b", "ollama/qwen3:8b", id="a local model"),
        pytest.param("offline", "offline/offline", id="offline"),
    ],
)
async def test_a_name_finds_its_model(provider: FakeProvider, label: str, expected: str) -> None:
    provider.models = ("live-a", "live-b")
    url, host = provider.openai_url, served(provider, "qwen3:8b", "llama3:8b")
    assert await found(label, OPENAI_API_KEY="k", OPENAI_BASE_URL=url, OLLAMA_HOST=host) == expected


@pytest.mark.parametrize(
    ("label", "message", "hint"),
    [
        pytest.param("live", "several", "`openai/live-a` or `openai/live-b`", id="several"),
        pytest.param("life-a", "No model", "openai/live-a", id="a typo"),
        pytest.param("ollama/qwen4", "No model", "ollama/qwen3:8b", id="a local typo"),
        pytest.param("", "No model", "provider/model", id="nothing"),
        pytest.param("groq/x", "Groq cannot be used", "Set GROQ_API_KEY.", id="no key"),
        pytest.param("lmstudio/x", "LM Studio cannot be used", "Nothing answers", id="not running"),
        pytest.param("nobody/x", "No model", "provider/model", id="an unknown provider"),
    ],
)
async def test_a_name_that_means_no_single_model_is_an_error_that_helps(
    provider: FakeProvider, label: str, message: str, hint: str
) -> None:
    provider.models = ("live-a", "live-b")
    url, host = provider.openai_url, served(provider, "qwen3:8b")
    with pytest.raises(CommandError, match=message) as caught:
        await found(label, OPENAI_API_KEY="k", OPENAI_BASE_URL=url, OLLAMA_HOST=host)
    assert hint in caught.value.hint


def test_an_exact_name_goes_before_those_that_contain_it() -> None:
    models = [ModelInfo("a", "gpt-5"), ModelInfo("a", "gpt-5-mini"), ModelInfo("b", "gpt-5")]
    assert matching("gpt-5", models) == (models[0], models[2])
    assert matching("a/gpt-5", models) == (models[0],)
    assert matching("mini", models) == (models[1],)
    assert matching("  ", models) == ()


def test_of_models_that_differ_by_date_the_undated_one_is_found() -> None:
    models = [ModelInfo("a", "m-4-5-20250929"), ModelInfo("a", "m-4-5")]
    assert matching("m-4", models) == (models[1],)
    assert matching("m-4-5-20250929", models) == (models[0],)


async def test_what_is_known_is_told_without_asking(provider: FakeProvider) -> None:
    chosen = providers(OLLAMA_HOST=served(provider, "qwen3:8b"))
    assert chosen.info("ollama/qwen3:8b").context_window == 0
    assert chosen.info("openai/gpt-5").context_window == 400_000
    assert chosen.info("nobody/x/y").label == "nobody/x/y"
    assert chosen.info("odd").id == "odd"
    assert provider.visits == []
    await chosen.models()
    assert chosen.info("ollama/qwen3:8b").context_window == 4096


async def test_a_status_says_why(provider: FakeProvider) -> None:
    chosen = providers(
        ANTHROPIC_API_KEY="secret",
        OPENAI_BASE_URL="http://me:secret@127.0.0.1:9/v1",
        OLLAMA_HOST=served(provider, "qwen3:8b"),
    )
    reasons = {status.id: status.reason for status in chosen.status()}
    assert list(reasons) == [each.id for each in PROVIDERS]
    assert reasons["anthropic"] == "ANTHROPIC_API_KEY is set"
    assert reasons["openai"] == "OPENAI_BASE_URL is set"
    assert reasons["groq"] == "set GROQ_API_KEY"
    assert reasons["ollama"].startswith("not asked yet")
    assert reasons["offline"] == "built in"
    await chosen.default()
    await chosen.models()
    reasons = {status.id: status.reason for status in chosen.status()}
    assert reasons["ollama"] == f"answers at {provider.url}"
    assert reasons["lmstudio"].startswith("nothing answers at http://127.0.0.1:")
    assert usable(chosen) == ["anthropic", "openai", "ollama", "offline"]
    assert "secret" not in str(chosen.status())


@pytest.mark.parametrize("url", ["nonsense", "http://[::1/v1", "http://host:port/v1", "://"])
async def test_an_address_that_is_none_breaks_nothing_before_it_is_used(url: str) -> None:
    chosen = providers(
        OPENAI_BASE_URL=url, OPENAI_API_KEY="k", LMSTUDIO_BASE_URL=url, OLLAMA_HOST=url
    )
    assert "openai" in usable(chosen)
    assert await chosen.models()
    with pytest.raises(ConfigError):
        chosen.open(chosen.info("openai/gpt-5"))


async def ask(model: Model) -> str:
    reply = Accumulator(model.info)
    request = ModelRequest("", (Message("user", (Text("hi"),)),), max_output_tokens=100)
    with anyio.fail_after(10):
        async with model.stream(request) as events:
            async for event in events:
                reply.feed(event)
    await model.aclose()
    return text_of(reply.message())


@pytest.mark.parametrize(
    ("label", "kind", "key_header"),
    [
        pytest.param("anthropic/claude-haiku-4-5", AnthropicModel, "x-api-key", id="anthropic"),
        pytest.param("openai/gpt-5-mini", OpenAIModel, "authorization", id="openai"),
    ],
)
async def test_a_model_opens_with_its_key_at_its_endpoint(
    provider: FakeProvider, label: str, kind: type[Model], key_header: str
) -> None:
    provider.play(say("Hello."))
    chosen = providers(
        **KEYS, ANTHROPIC_BASE_URL=provider.url, OPENAI_BASE_URL=f"{provider.openai_url}/"
    )
    model = chosen.open(await chosen.find(label))
    assert isinstance(model, kind)
    assert await ask(model) == "Hello."
    assert provider.requests[0].headers[key_header].removeprefix("Bearer ") in KEYS.values()


async def test_a_local_model_opens_without_a_key(provider: FakeProvider) -> None:
    provider.play(say("Hello."))
    chosen = providers(OLLAMA_HOST=served(provider, "qwen3:8b"))
    assert await ask(chosen.open(await chosen.default())) == "Hello."
    assert "authorization" not in provider.requests[0].headers


async def test_the_offline_model_always_opens() -> None:
    chosen = providers()
    assert isinstance(chosen.open(await chosen.default()), OfflineModel)


@pytest.mark.parametrize(
    ("label", "variable"),
    [
        pytest.param("anthropic/claude-haiku-4-5", "ANTHROPIC_API_KEY", id="anthropic"),
        pytest.param("openai/gpt-5", "OPENAI_API_KEY", id="openai"),
        pytest.param("huggingface/x", "HF_TOKEN", id="huggingface"),
    ],
)
def test_without_a_key_a_model_does_not_open_and_the_variable_is_named(
    label: str, variable: str
) -> None:
    chosen = providers()
    with pytest.raises(AuthenticationFailed) as caught:
        chosen.open(chosen.info(label))
    assert variable in caught.value.hint


def test_a_provider_that_nobody_knows_does_not_open() -> None:
    with pytest.raises(ConfigError, match="nobody"):
        providers().open(ModelInfo("nobody", "x"))


@pytest.mark.slow
async def test_a_port_where_somebody_else_is_silent_costs_half_a_second_at_most() -> None:
    async def silent(stream: SocketStream) -> None:
        await stream.receive()
        await anyio.sleep_forever()

    async with listening(silent) as url:
        with anyio.fail_after(5):
            label = await default_of(OLLAMA_HOST=url.removesuffix("/v1"), LLAMACPP_BASE_URL=url)
    assert label == "offline/offline"


@pytest.mark.slow
def test_choosing_without_a_local_server_loads_no_network_code() -> None:
    program = (
        "import sys, anyio\n"
        "from crush_kernel.config.settings import read_settings\n"
        "from crush_kernel.providers.selection import Providers\n"
        f"chosen = Providers(read_settings({environment()!r}))\n"
        "assert anyio.run(chosen.default).label == 'offline/offline'\n"
        "print(sorted({'httpx2', 'anthropic', 'rapidfuzz', 'certifi'} & set(sys.modules)))"
    )
    ran = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=30
    )
    assert ran.stdout.strip() == "[]"
