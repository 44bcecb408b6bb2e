"""The user's own authorities are believed besides the usual ones, never in their place."""

import logging
import shutil
import ssl
import subprocess
from pathlib import Path

import anyio
import pytest
from anyio.abc import SocketStream

from crush_kernel.errors import ConnectionLost
from crush_kernel.messages import Message, Text, text_of
from crush_kernel.providers.base import Accumulator, ModelInfo, ModelRequest
from crush_kernel.providers.openai import OpenAIModel
from crush_kernel.providers.tls import tls_context
from tests.fakes.sockets import listening

USUAL = len(tls_context({}).get_ca_certs())


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A certificate that nobody knows, for 127.0.0.1; its key is beside it."""
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("openssl makes the certificate")
    folder = tmp_path_factory.mktemp("authority")
    command = f"{openssl} req -x509 -nodes -days 2 -subj /CN=Corp -newkey ec -keyout key.pem"
    options = ["-pkeyopt", "ec_paramgen_curve:prime256v1", "-addext", "subjectAltName=IP:127.0.0.1"]
    subprocess.run(
        [*command.split(), *options, "-out", "corp.pem"],
        cwd=folder,
        check=True,
        capture_output=True,
    )
    return folder / "corp.pem"


@pytest.mark.parametrize("name", ["SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"])
def test_an_authority_is_added_to_the_usual_ones(name: str, authority: Path) -> None:
    assert USUAL > 50
    assert len(tls_context({name: str(authority)}).get_ca_certs()) == USUAL + 1


def test_a_folder_of_authorities_is_looked_into(tmp_path: Path, authority: Path) -> None:
    (tmp_path / "corp.pem").write_bytes(authority.read_bytes())
    context = tls_context({"SSL_CERT_DIR": str(tmp_path)})
    assert context.cert_store_stats()["x509_ca"] >= USUAL  # such a folder is read when needed


@pytest.mark.parametrize("content", [None, "", "no certificate", b"\x00\xff"])
def test_a_file_that_is_no_authority_is_logged_and_changes_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, content: str | bytes | None
) -> None:
    path = tmp_path / "ca.pem"
    if content is not None:
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with caplog.at_level(logging.WARNING):
        context = tls_context({"SSL_CERT_FILE": str(path)})
    assert len(context.get_ca_certs()) == USUAL
    assert "SSL_CERT_FILE" in caplog.text


def test_certificates_and_names_are_always_checked() -> None:
    context = tls_context({})
    assert context.check_hostname
    assert context.verify_mode is ssl.CERT_REQUIRED


BODY = b'data: {"choices":[{"delta":{"content":"Hi"},"finish_reason":"stop"}]}\n\n'


async def serve(stream: SocketStream) -> None:
    await stream.receive()
    await stream.send(b"HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n" + BODY)


async def ask(url: str, context: ssl.SSLContext) -> Message:
    model = OpenAIModel(ModelInfo("openai", "m"), api_key="", base_url=url, verify=context)
    reply = Accumulator(model.info)
    request = ModelRequest("", (Message("user", (Text("hi"),)),))
    with anyio.fail_after(5):
        async with model.stream(request) as events:
            async for event in events:
                reply.feed(event)
    await model.aclose()
    return reply.message()


@pytest.mark.anyio
async def test_a_server_is_believed_once_its_authority_is_named(authority: Path) -> None:
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(authority, authority.with_name("key.pem"))
    async with listening(serve, tls=server) as url:
        said = await ask(url, tls_context({"SSL_CERT_FILE": str(authority)}))
        assert text_of(said) == "Hi"
        with pytest.raises(ConnectionLost, match="not trusted") as caught:
            await ask(url, tls_context({}))
    assert "SSL_CERT_FILE" in caught.value.hint
