"""`fetch` against a real server on this machine, part of which counts as the internet."""

import gzip
from collections.abc import Mapping
from dataclasses import replace
from functools import partial

import anyio
import pytest
from anyio.abc import SocketStream

from crush_kernel.errors import PermissionDenied, ToolError
from crush_kernel.tools.base import ToolOutput
from crush_kernel.tools.fetch import MAX_TEXT_BYTES, FetchArguments, fetch_tool
from crush_kernel.tools.web.inquiry import Web
from tests.fakes.tool_context import FakeContext, tool_context
from tests.fakes.website import (
    PRIVATE,
    PUBLIC,
    Asked,
    counts_as_public,
    reply,
    serving,
    website,
)

pytestmark = pytest.mark.anyio


def web(names: Mapping[str, tuple[str, ...]] | None = None, **environ: str) -> Web:
    """Return the web with `names` as all that name servers know."""

    async def resolve(host: str, port: int) -> tuple[str, ...]:
        del port
        if host not in (names or {}):
            raise OSError("unknown name")
        return (names or {})[host]

    return Web(environ, resolve=resolve, is_public=counts_as_public)


async def fetch(
    url: str, *, on: Web | None = None, context: FakeContext | None = None, **more: object
) -> ToolOutput:
    arguments = FetchArguments.model_validate({"url": url, **more})
    with anyio.fail_after(10):
        return await fetch_tool(on or web()).run(arguments, (context or tool_context()).context)


HTML = (
    "<html><head><title>t</title></head><body><nav>menu</nav>"
    "<h1>Hé</h1><p>a <a href='/b'>b</a></p></body></html>"
)


@pytest.mark.parametrize(
    ("form", "shown"),
    [
        pytest.param("markdown", "# Hé\n\na [b]({root}/b)", id="markdown with whole links"),
        pytest.param("Text", "Hé\n\na b", id="text in any case"),
        pytest.param("html", HTML, id="html as it is"),
    ],
)
async def test_a_page_comes_in_the_format_that_is_asked_for(form: str, shown: str) -> None:
    page = reply(HTML, content_type="text/html; charset=utf-8")
    async with website(serving(index=page)) as site:
        output = await fetch(site.url(), format=form)
    text, _, notes = output.text.rpartition("\n\n")
    assert text == shown.format(root=site.url("")[:])
    assert notes.startswith(f"[{site.url()}: text/html, ")


@pytest.mark.parametrize(
    ("data", "content_type", "shown"),
    [
        pytest.param(b'{"b":1,"a":["\\u00e9"]}', "application/json", '{\n  "b": 1,', id="json"),
        pytest.param(b'{"b":', "application/json", '{"b":', id="broken json"),
        pytest.param(b"[" * 100_000, "application/json", "[[[[", id="deep json"),
        pytest.param(b"a: 1\n", "application/octet-stream", "a: 1", id="text declared as bytes"),
        pytest.param(b"<html><body>x</body>", "", "x", id="page of no declared type"),
        pytest.param(b"<svg/>", "image/svg+xml", "<svg/>", id="svg is text"),
        pytest.param(b"```\nx\n```", "text/markdown", "```\nx\n```", id="markdown is not fenced"),
    ],
)
async def test_text_of_every_type_is_shown(data: bytes, content_type: str, shown: str) -> None:
    async with website(serving(index=reply(data, content_type=content_type))) as site:
        output = await fetch(site.url())
    assert output.text.startswith(shown)


@pytest.mark.parametrize(
    ("data", "content_type", "shown"),
    [
        pytest.param("é".encode("latin-1"), "text/plain; charset=iso-8859-1", "é", id="latin-1"),
        pytest.param(b"\x80", "text/plain; charset=ascii", "€", id="ascii means windows-1252"),
        pytest.param(
            "é".encode(), "text/plain; charset=iso-8859-1", "é", id="utf-8 said to be latin"
        ),
        pytest.param(
            "日本".encode("shift_jis"), "text/plain; charset=Shift_JIS", "日本", id="sjis"
        ),
        pytest.param("日本".encode("euc_jp"), 'text/plain; charset="EUC-JP"', "日本", id="quoted"),
        pytest.param("中".encode("gb18030"), "text/plain; charset=gb2312", "中", id="gb2312"),
        pytest.param("한".encode("cp949"), "text/plain; charset=ks_c_5601-1987", "한", id="korean"),
        pytest.param("é".encode("utf-16"), "text/plain", "é", id="mark of utf-16"),
        pytest.param(b"\xef\xbb\xbfx", "text/plain; charset=latin1", "x", id="mark beats header"),
        pytest.param("é".encode("utf-16-le"), "text/plain; charset=utf-16le", "é", id="utf-16"),
        pytest.param(
            "<meta charset=windows-1251><p>Да".encode("cp1251"), "text/html", "Да", id="meta"
        ),
        pytest.param(
            "<meta charset=koi8-r><p>Да".encode("cp1251"),
            "text/html; charset=windows-1251",
            "Да",
            id="header beats meta",
        ),
        pytest.param(
            "<meta charset=utf-16><p>é".encode(), "text/html", "é", id="utf-16 in ascii is utf-8"
        ),
        pytest.param(
            '<?xml version="1.0" encoding="iso-8859-2"?><a>ł</a>'.encode("latin2"),
            "application/xml",
            '<?xml version="1.0" encoding="iso-8859-2"?><a>ł</a>',
            id="xml declaration",
        ),
        pytest.param(b"caf\xe9", "text/plain; charset=base64", "café", id="no encoding of text"),
        pytest.param(b"caf\xe9", "text/plain; charset=nonsense", "café", id="unknown label"),
        pytest.param("日本".encode() + b"\xe6", "text/plain", "日本\ufffd", id="half a character"),
    ],
)
async def test_encodings_are_those_of_browsers(data: bytes, content_type: str, shown: str) -> None:
    async with website(serving(index=reply(data, content_type=content_type))) as site:
        output = await fetch(site.url(), format="markdown")
    assert output.text.partition("\n\n[http")[0] == shown


@pytest.mark.parametrize(
    ("data", "content_type"),
    [
        pytest.param(b"\x89PNG\r\n\x1a\n\0\0", "image/png", id="image"),
        pytest.param(b"plain", "application/pdf", id="declared as pdf"),
        pytest.param(b"%PDF-1.7 x", "text/plain", id="pdf in disguise"),
        pytest.param(bytes(range(256)) * 8, "application/octet-stream", id="bytes"),
        pytest.param(b"PK\x03\x04\0\0", "", id="no type"),
    ],
)
async def test_what_is_no_text_is_left_to_download(data: bytes, content_type: str) -> None:
    async with website(serving(index=reply(data, content_type=content_type))) as site:
        with pytest.raises(ToolError, match=r"is not text.*download"):
            await fetch(site.url())


@pytest.mark.parametrize(
    "url",
    [
        *("", "example.com", "file:///etc/passwd", "ftp://a/", "javascript:1", "//a/b", "http://"),
        *("http://a b/", "http://a\\@b/", "http://u:p@a/", "http://a:0/", "http://a:99999/"),
        *("http://[::1", "http://1.2.3.4.5/", "http://256.1.1.1/", "http://[fe80::1%25eth0]/"),
        *("http://a%2eb/", "http://a/\n", "https://" + "a" * 9000, "http://" + "a" * 64 + ".com/"),
    ],
)
async def test_what_is_no_web_address_is_refused_unasked(url: str) -> None:
    context = tool_context()
    if url.endswith("\n"):
        url += "x"
    with pytest.raises(ToolError):
        await fetch(url, context=context)
    assert context.requests == []


async def test_one_question_names_the_server_and_its_refusal_sends_nothing() -> None:
    context = tool_context(allow=False)
    looked_up: list[str] = []

    async def resolve(host: str, port: int) -> tuple[str, ...]:
        del port
        looked_up.append(host)
        return (PUBLIC,)

    with pytest.raises(PermissionDenied):
        await fetch("http://secret.example.com/x", on=Web({}, resolve=resolve), context=context)
    (request,) = context.requests
    assert (request.title, request.server) == (
        "fetch http://secret.example.com/x",
        "secret.example.com",
    )
    assert not request.is_private
    assert looked_up == [], "a lookup tells the name to a stranger"


@pytest.mark.parametrize(
    "host",
    [
        *("127.0.0.1", "0x7f.1", "2130706433", "017700000001", "127.1", "localhost", "LOCALHOST."),
        *("[::ffff:127.0.0.1]", "a.localhost", "127。0。0。1", "１２７.0.0.1"),
    ],
)
async def test_this_machine_is_asked_for_as_private_however_it_is_written(host: str) -> None:
    context = tool_context()
    async with website(serving(index=reply("x")), PRIVATE) as site:
        await fetch(site.url(host=host), context=context)
    (request,) = context.requests
    assert request.is_private
    assert "this machine or in a private network" in request.notes[0]


async def test_a_public_name_that_leads_to_a_private_address_is_asked_for_twice() -> None:
    context = tool_context()
    async with website(serving(index=reply("x")), PRIVATE) as site:
        url = site.url(host="rebind.example.com")
        await fetch(url, on=web({"rebind.example.com": (PRIVATE,)}), context=context)
    first, second = context.requests
    assert (first.is_private, second.is_private) == (False, True)
    assert PRIVATE in second.notes[0]
    assert first.grant != second.grant


async def test_one_private_address_among_public_ones_is_private() -> None:
    context = tool_context()
    async with website(serving(index=reply("x"))) as site:
        names = {"mixed.example.com": (PUBLIC, "10.0.0.1")}
        await fetch(site.url(host="mixed.example.com"), on=web(names), context=context)
    assert [request.is_private for request in context.requests] == [False, True]


async def test_a_name_is_looked_up_once_so_that_it_cannot_change_its_mind() -> None:
    answers = [(PUBLIC,), (PRIVATE,)]

    async def resolve(host: str, port: int) -> tuple[str, ...]:
        del host, port
        return answers.pop(0)

    context = tool_context()
    async with website(serving(index=reply("public"))) as site:
        output = await fetch(
            site.url(host="flip.example.com"),
            on=Web({}, resolve=resolve, is_public=counts_as_public),
            context=context,
        )
    assert output.text.startswith("public")
    assert len(answers) == 1
    assert site.asked[0].headers["host"] == f"flip.example.com:{site.port}"


async def test_the_next_address_is_tried_where_nothing_answers() -> None:
    async with website(serving(index=reply("here"))) as site:
        names = {"two.example.com": ("127.0.0.3", PUBLIC)}
        output = await fetch(site.url(host="two.example.com"), on=web(names))
    assert output.text.startswith("here")


def redirect(to: str, status: str = "302 Found") -> bytes:
    return reply(status=status, Location=to)


async def test_redirects_within_a_site_are_followed_unasked() -> None:
    context = tool_context()
    pages = serving(index=redirect("/b?x=ä b"), b=redirect("../c#top", "308 x"), c=reply("there"))
    async with website(pages) as site:
        output = await fetch(site.url(), context=context)
    assert site.paths == ["/", "/b?x=%C3%A4%20b", "/c"]
    assert len(context.requests) == 1
    assert f"{site.url('/c')}, reached from {site.url()}" in output.text


async def test_a_redirect_to_another_server_is_asked_for_and_named() -> None:
    context = tool_context()
    async with (
        website(serving(index=reply("inside")), PRIVATE) as inner,
        website(serving(index=redirect(inner.url()))) as outer,
    ):
        await fetch(outer.url(), context=context)
    assert [request.is_private for request in context.requests] == [False, True]
    assert context.requests[1].notes[1] == f"{outer.url()} redirects there"


async def test_a_refused_redirect_does_not_reach_the_private_server() -> None:
    async with website(serving(index=reply("secret")), PRIVATE) as inner:
        async with website(serving(index=redirect(inner.url()))) as outer:
            context = tool_context()

            async def permit(request: object) -> None:
                if getattr(request, "is_private", False):
                    raise PermissionDenied("no")

            strict = FakeContext(replace(context.context, permit=permit))
            with pytest.raises(PermissionDenied):
                await fetch(outer.url(), context=strict)
        assert inner.asked == []


@pytest.mark.parametrize(
    ("location", "said"),
    [
        pytest.param("/", "end of 10 redirects", id="loop"),
        pytest.param("file:///etc/passwd", "does not begin with http", id="file"),
        pytest.param("http://[::1", "no URL", id="broken"),
        pytest.param("http://u:p@127.0.0.2/", "user name", id="password"),
    ],
)
async def test_redirects_that_lead_nowhere_are_errors(location: str, said: str) -> None:
    async with website(serving(index=redirect(location))) as site:
        with pytest.raises(ToolError, match=said):
            await fetch(site.url())
        assert len(site.asked) <= 11


@pytest.mark.parametrize(
    ("status", "said"),
    [
        pytest.param("404 Not Found", "404 Not Found.\nno such thing", id="reason of the server"),
        pytest.param("429 x", "429 Too Many Requests. It asks to wait: Retry-After 7.", id="wait"),
        pytest.param("799 x", "answered 799", id="unknown status"),
    ],
)
async def test_a_bad_status_is_told_with_what_the_server_says(status: str, said: str) -> None:
    page = reply("no such thing", status=status, Retry_After="7" if "429" in status else "")
    async with website(serving(index=page)) as site:
        with pytest.raises(ToolError) as caught:
            await fetch(site.url())
    assert said in str(caught.value)


async def test_a_bomb_is_read_only_as_far_as_the_limit() -> None:
    bomb = gzip.compress(b"x" * 200_000_000)
    page = reply(bomb, Content_Encoding="gzip")
    async with website(serving(index=page)) as site:
        output = await fetch(site.url())
    assert len(output.text) < MAX_TEXT_BYTES + 1_000
    assert "longer than the 5 MiB that were read" in output.text


async def test_long_text_is_cut_between_characters_and_says_so() -> None:
    async with website(serving(index=reply("日" * 50_000))) as site:
        output = await fetch(site.url())
    text, _, notes = output.text.partition("\n\n[")
    assert len(text.encode()) <= MAX_TEXT_BYTES
    assert set(text) == {"日"}
    assert "bytes of text left out" in notes


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        pytest.param(reply("short", Content_Length="500"), "broke off", id="too short a body"),
        pytest.param(b"SSH-2.0-OpenSSH\r\n", "does not speak HTTP", id="other protocol"),
        pytest.param(b"", "does not speak HTTP", id="nothing"),
        pytest.param(reply(b"zz", Content_Encoding="gzip"), "decompressed", id="wrong compression"),
        pytest.param(reply(b"  "), "is empty", id="blank"),
        pytest.param(
            reply("<script>go()</script>", content_type="text/html"), "scripts", id="only scripts"
        ),
    ],
)
async def test_bad_answers_are_errors_for_the_model(raw: bytes, said: str) -> None:
    async with website(serving(index=raw)) as site:
        with pytest.raises(ToolError, match=said):
            await fetch(site.url())


async def trickle(asked: Asked, stream: SocketStream) -> None:
    """Answer with a body that never ends, a byte at a time."""
    del asked
    await stream.send(b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n")
    while True:
        await stream.send(b"x")
        await anyio.sleep(0.01)


async def test_a_body_that_never_ends_is_given_up_and_the_connection_closed() -> None:
    async with website(trickle) as site:
        with pytest.raises(ToolError, match="within 1 s"):
            await fetch(site.url(), timeout=1)
        with anyio.fail_after(5):
            await site.left.wait()


async def test_cancelling_closes_the_connection() -> None:
    begun = anyio.Event()
    context = tool_context()

    def progress(tail: str) -> None:
        assert tail.endswith(" bytes")
        begun.set()

    told = FakeContext(replace(context.context, progress=progress))
    async with website(trickle) as site:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(partial(fetch, site.url(), context=told))
            with anyio.fail_after(5):
                await begun.wait()
            tasks.cancel_scope.cancel()
        with anyio.fail_after(5):
            await site.left.wait()


async def test_time_for_thinking_is_not_counted() -> None:
    context = tool_context()

    async def permit(request: object) -> None:
        del request
        await anyio.sleep(1.1)

    async with website(serving(index=reply("x"))) as site:
        slow = FakeContext(replace(context.context, permit=permit))
        output = await fetch(site.url(), context=slow, timeout=1)
    assert output.text.startswith("x")


async def test_a_proxy_is_asked_by_name_and_not_for_this_machine() -> None:
    async def serve(asked: Asked, stream: SocketStream) -> None:
        await stream.send(reply(f"proxied {asked.line}"))

    async with website(serve) as proxy, website(serving(index=reply("direct")), PRIVATE) as own:
        through = web(http_proxy=proxy.url(), NO_PROXY="other.example.com")
        output = await fetch("http://far.example.com/x", on=through)
        near = await fetch(own.url(), on=through)
    assert output.text.startswith("proxied GET http://far.example.com/x HTTP/1.1")
    assert near.text.startswith("direct")
