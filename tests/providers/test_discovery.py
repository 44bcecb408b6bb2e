"""Local servers are found by what they serve; a bad one costs nothing and hides no other."""

from collections.abc import Awaitable, Callable

import anyio
import pytest
from anyio.abc import SocketStream
from pydantic import JsonValue

from crush_kernel.messages import JsonObject
from crush_kernel.providers.base import ModelInfo
from crush_kernel.providers.catalog import provider_of
from crush_kernel.providers.discovery import MAX_BODY_BYTES, discover, list_models
from tests.fakes.provider.replies import HttpReply
from tests.fakes.provider.server import FakeProvider
from tests.fakes.sockets import free_port, listening

pytestmark = pytest.mark.anyio

PATIENT_S = 5.0
"""Long enough for two busy cores; nothing waits for it but what never answers."""


async def served_by(name: str, url: str) -> tuple[ModelInfo, ...]:
    """Return the models of the one local server at `url`."""
    with anyio.fail_after(10):
        servers = await discover({name: url}, deadline_s=PATIENT_S)
    assert set(servers) <= {name}
    return servers.get(name, ())


def ollama(provider: FakeProvider, *names: str, shown: JsonObject | None = None) -> None:
    provider.pages["/api/tags"] = HttpReply(200, {"models": [{"name": name} for name in names]})
    if shown is not None:
        provider.pages["/api/show"] = HttpReply(200, shown)


async def test_ollamas_models_come_with_their_window_and_abilities(provider: FakeProvider) -> None:
    shown: JsonObject = {
        "capabilities": ["completion", "tools", "vision", "thinking"],
        "model_info": {"general.architecture": "qwen3", "qwen3.context_length": 40960},
    }
    ollama(provider, "qwen3:8b", shown=shown)
    assert await served_by("ollama", provider.openai_url) == (
        ModelInfo("ollama", "qwen3:8b", context_window=40960, accepts_images=True, can_reason=True),
    )


@pytest.mark.parametrize(
    ("shown", "expected"),
    [
        pytest.param({}, [("m", 0)], id="nothing told"),
        pytest.param(
            {"parameters": "stop x\nnum_ctx   8192", "model_info": {"a.context_length": 40960}},
            [("m", 8192)],
            id="the window that is set goes before the trained one",
        ),
        pytest.param({"parameters": "num_ctx many"}, [("m", 0)], id="a setting that is none"),
        pytest.param({"capabilities": ["embedding"]}, [], id="no chat"),
        pytest.param(
            {"capabilities": "x", "model_info": [], "parameters": 7}, [("m", 0)], id="odd"
        ),
    ],
)
async def test_what_ollama_tells_of_a_model(
    provider: FakeProvider, shown: JsonObject, expected: list[tuple[str, int]]
) -> None:
    ollama(provider, "m", shown=shown)
    found = await served_by("ollama", provider.openai_url)
    assert [(info.id, info.context_window) for info in found] == expected


async def test_ollamas_loaded_model_has_the_window_that_it_was_loaded_with(
    provider: FakeProvider,
) -> None:
    ollama(provider, "idle", "loaded", shown={"model_info": {"a.context_length": 131072}})
    loaded: JsonObject = {"name": "loaded", "context_length": 4096}
    running: JsonObject = {"models": [dict(loaded), {"name": "gone", "context_length": 9}]}
    provider.pages["/api/ps"] = HttpReply(200, running)
    found = await served_by("ollama", provider.openai_url)
    assert [(info.id, info.context_window) for info in found] == [
        ("idle", 131072),
        ("loaded", 4096),
    ]


async def test_ollamas_models_count_even_if_it_tells_no_more(provider: FakeProvider) -> None:
    ollama(provider, "b:latest", "a:latest", "nomic-embed-text", "b:latest")
    provider.pages["/api/show"] = HttpReply(500, "oops")
    found = await served_by("ollama", provider.openai_url)
    assert [info.id for info in found] == ["b:latest", "a:latest"]


async def test_ollama_is_asked_about_every_model_once(provider: FakeProvider) -> None:
    names = [f"m{number}" for number in range(12)]
    ollama(provider, *names, shown={})
    await served_by("ollama", provider.openai_url)
    shown = [visit.raw for visit in provider.visits if visit.path == "/api/show"]
    assert sorted(shown) == sorted(f'{{"model":"{name}"}}'.encode() for name in names)


async def test_lm_studios_loaded_model_comes_first(provider: FakeProvider) -> None:
    provider.models = ("idle", "loaded", "text-embedding-x")
    page: JsonObject = {
        "models": [
            {"key": "idle", "max_context_length": 32768, "loaded_instances": []},
            {
                "key": "loaded",
                "display_name": "Loaded",
                "max_context_length": 131072,
                "loaded_instances": [{"id": "x", "config": {"context_length": 16384}}],
                "capabilities": {"vision": True},
            },
            {"key": "not served", "max_context_length": 1},
        ]
    }
    provider.pages["/api/v1/models"] = HttpReply(200, page)
    assert await served_by("lmstudio", provider.openai_url) == (
        ModelInfo("lmstudio", "loaded", name="Loaded", context_window=16384, accepts_images=True),
        ModelInfo("lmstudio", "idle", context_window=32768),
    )


async def test_lm_studios_models_count_without_its_newer_interface(provider: FakeProvider) -> None:
    provider.models = ("a", "b")
    found = await served_by("lmstudio", provider.openai_url)
    assert found == (ModelInfo("lmstudio", "a"), ModelInfo("lmstudio", "b"))


async def test_llama_cpp_tells_its_window_in_the_list(provider: FakeProvider) -> None:
    meta: dict[str, JsonValue] = {"n_ctx_train": 40960, "n_ctx": 8192}
    page: JsonObject = {"data": [{"id": "/models/q.gguf", "meta": meta}]}
    provider.pages["/v1/models"] = HttpReply(200, page)
    (found,) = await served_by("llamacpp", provider.openai_url)
    assert (found.label, found.context_window) == ("llamacpp//models/q.gguf", 8192)


async def test_servers_come_in_the_order_of_the_table(provider: FakeProvider) -> None:
    ollama(provider, "o", shown={})
    provider.models = ("l",)
    url = provider.openai_url
    servers = await discover(
        {"llamacpp": url, "lmstudio": url, "ollama": url, "unheard-of": url}, deadline_s=PATIENT_S
    )
    assert list(servers) == ["ollama", "lmstudio", "llamacpp"]
    assert servers["ollama"] == (ModelInfo("ollama", "o"),)


PAGES = [
    pytest.param(HttpReply(404, "no"), id="not found"),
    pytest.param(HttpReply(200, "<html>hello</html>"), id="a page"),
    pytest.param(HttpReply(200, "{"), id="half a document"),
    pytest.param(HttpReply(200, "[" * 100_000), id="nested without end"),
    pytest.param(HttpReply(200, {"data": "x", "models": 7}), id="wrong shape"),
    pytest.param(HttpReply(200, {"data": [], "models": []}), id="no models"),
    pytest.param(HttpReply(301, "", headers={"location": "http://127.0.0.1:1/"}), id="elsewhere"),
    pytest.param(HttpReply(401, {"error": "key"}), id="wants a key"),
]


@pytest.mark.parametrize("page", PAGES)
@pytest.mark.parametrize("name", ["ollama", "lmstudio", "llamacpp"])
async def test_a_server_of_another_kind_is_skipped(
    provider: FakeProvider, name: str, page: HttpReply
) -> None:
    for path in ("/api/tags", "/v1/models", "/api/v1/models"):
        provider.pages[path] = page
    assert await served_by(name, provider.openai_url) == ()


async def endless(stream: SocketStream) -> None:
    await stream.receive()
    await stream.send(b"HTTP/1.1 200 OK\r\n\r\n")
    while True:
        await stream.send(b" " * 100_000)


async def silent(stream: SocketStream) -> None:
    await stream.receive()
    await anyio.sleep_forever()


async def babbling(stream: SocketStream) -> None:
    await stream.send(b"\x00\xffSSH-2.0-x\r\n" * 10)


async def gone(stream: SocketStream) -> None:
    await stream.receive()


async def packed(stream: SocketStream) -> None:
    """Send a small body that claims to unpack to nobody knows what."""
    await stream.receive()
    await stream.send(b"HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\n\r\nnot gzip")


@pytest.mark.slow
@pytest.mark.parametrize("serve", [endless, silent, babbling, gone, packed])
async def test_a_hostile_server_costs_no_more_than_the_deadline_and_hides_no_other(
    provider: FakeProvider, serve: Callable[[SocketStream], Awaitable[None]]
) -> None:
    provider.models = ("good",)
    async with listening(serve) as bad:
        with anyio.fail_after(5):
            servers = await discover(
                {"ollama": bad, "lmstudio": bad, "llamacpp": provider.openai_url}, deadline_s=1
            )
    assert [models[0].label for models in servers.values()] == ["llamacpp/good"]


async def test_a_body_without_end_is_given_up_before_the_deadline() -> None:
    sent = 0

    async def flood(stream: SocketStream) -> None:
        nonlocal sent
        await stream.receive()
        await stream.send(b"HTTP/1.1 200 OK\r\n\r\n")
        while True:
            await stream.send(b" " * 100_000)
            sent += 100_000

    async with listening(flood) as url:
        with anyio.fail_after(20):
            assert await discover({"llamacpp": url}, deadline_s=60) == {}
    assert sent < MAX_BODY_BYTES * 3


@pytest.mark.slow
async def test_what_is_known_at_the_deadline_counts(provider: FakeProvider) -> None:
    tags = b'{"models": [{"name": "m"}]}'
    asked = anyio.Event()

    async def half(stream: SocketStream) -> None:
        request = await stream.receive()
        if b"/api/tags" in request:
            await stream.send(b"HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n" + tags)
            return
        asked.set()
        await anyio.sleep_forever()

    async with listening(half) as url:
        servers = await discover({"ollama": url}, deadline_s=1)
    assert asked.is_set()
    assert servers == {"ollama": (ModelInfo("ollama", "m"),)}
    assert provider.visits == []


async def test_nobody_listening_is_no_server() -> None:
    ports = {name: f"http://127.0.0.1:{free_port()}/v1" for name in ("ollama", "lmstudio")}
    with anyio.fail_after(5):
        assert await discover(ports, deadline_s=60) == {}


@pytest.mark.parametrize("url", ["", "nonsense", "http://[::1/v1", "ftp://x/v1"])
async def test_an_address_that_is_none_is_no_server(url: str) -> None:
    assert await discover({"ollama": url}, deadline_s=PATIENT_S) == {}


async def test_no_proxy_is_asked_about_this_machine(
    provider: FakeProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, f"http://127.0.0.1:{free_port()}")
    provider.models = ("m",)
    assert await served_by("llamacpp", provider.openai_url) == (ModelInfo("llamacpp", "m"),)
    assert [info.id for info in await listed_by("openai", provider.openai_url)] == ["m"]


async def listed_by(
    name: str, url: str, *, key: str = "k", timeout_s: float = PATIENT_S
) -> tuple[ModelInfo, ...]:
    provider = provider_of(name)
    assert provider is not None
    return await list_models(provider, api_key=key, base_url=url, verify=False, timeout_s=timeout_s)


async def test_openais_list_is_asked_for_with_the_key(provider: FakeProvider) -> None:
    provider.keys = frozenset(("k",))
    provider.models = ("gpt-5", "text-embedding-3-small", "gpt-9")
    listed = await listed_by("openai", provider.openai_url)
    assert [info.label for info in listed] == ["openai/gpt-5", "openai/gpt-9"]
    assert listed[0].context_window == 400_000
    refused = await listed_by("openai", provider.openai_url, key="x")
    assert refused == ()


@pytest.mark.parametrize("suffix", ["", "/", "/v1"])
async def test_anthropics_list_is_asked_for_with_the_key(
    provider: FakeProvider, suffix: str
) -> None:
    provider.keys = frozenset(("k",))
    provider.models = ("claude-sonnet-4-5-20250929",)
    url = f"{provider.url}{suffix}"
    (info,) = await listed_by("anthropic", url)
    assert (info.id, info.context_window) == ("claude-sonnet-4-5-20250929", 200_000)
    assert provider.visits[0].path == "/v1/models"
    assert provider.visits[0].headers["x-api-key"] == "k"


@pytest.mark.parametrize("name", ["openai", "anthropic"])
async def test_a_bearer_token_is_sent_as_one(provider: FakeProvider, name: str) -> None:
    provider.models = ("m",)
    assert await listed_by(name, provider.openai_url, key="Bearer tok")
    headers = provider.visits[0].headers
    assert headers["authorization"] == "Bearer tok"
    assert "x-api-key" not in headers


async def test_a_provider_that_does_not_answer_in_time_lists_nothing() -> None:
    async with listening(silent) as url:
        with anyio.fail_after(5):
            listed = await listed_by("openai", url, timeout_s=0.1)
    assert listed == ()
