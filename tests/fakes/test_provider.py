"""The fake provider breaks off, stalls and resets where it is told to."""

import threading

import httpx2
import pytest

from tests.fakes.provider.delivery import plan_steps
from tests.fakes.provider.replies import (
    COMMENT,
    Cut,
    Hold,
    HttpReply,
    RawReply,
    Reply,
    Reset,
    Say,
    Stall,
    say,
)
from tests.fakes.provider.server import FakeProvider, Received

BODY = {"model": "m", "stream": True, "messages": [{"role": "user", "content": "hi"}]}


def ask(provider: FakeProvider) -> httpx2.Response:
    return httpx2.post(f"{provider.openai_url}/chat/completions", json=BODY)


def test_requests_are_kept_with_headers_and_body(provider: FakeProvider) -> None:
    provider.play(say("a"))
    ask(provider)
    (request,) = provider.wait_requests(1)
    assert request.body == BODY
    assert request.headers["content-type"] == "application/json"
    assert request.arrived_at > 0


def test_a_function_can_be_the_script(provider: FakeProvider) -> None:
    def script(request: Received) -> Reply:
        return say(f"request {len(provider.requests)} for {request.body['model']}")

    provider.play(script)
    ask(provider)
    assert "request 2 for m" in ask(provider).text


def test_a_script_at_its_end_is_a_refusal(provider: FakeProvider) -> None:
    assert ask(provider).status_code == 400
    assert "played to its end" in provider.requests[0].refusal


def test_an_http_reply_goes_out_as_it_is(provider: FakeProvider) -> None:
    provider.play(HttpReply(529, "<html><title>Busy</title></html>", {"retry-after": "3"}))
    response = ask(provider)
    assert response.status_code == 529
    assert response.headers["retry-after"] == "3"
    assert response.headers["content-type"].startswith("text/html")


def test_further_pages_can_be_served(provider: FakeProvider) -> None:
    provider.pages["/api/tags"] = HttpReply(200, {"models": []})
    assert httpx2.get(f"{provider.url}/api/tags").json() == {"models": []}
    assert httpx2.get(f"{provider.url}/api/ps").status_code == 404


def test_comments_go_before_every_event(provider: FakeProvider) -> None:
    provider.play(Reply((Say("abc", size=1),), keep_alive=COMMENT))
    assert ask(provider).text.count(": keep-alive") == 6


@pytest.mark.parametrize("after", [0, 5, -3])
def test_a_cut_ends_the_connection_within_the_body(provider: FakeProvider, after: int) -> None:
    provider.play(RawReply("data: 12345678\n\n", fault=Cut(after)))
    with pytest.raises(httpx2.RemoteProtocolError):
        ask(provider)


def test_a_clean_cut_ends_the_body_early(provider: FakeProvider) -> None:
    provider.play(RawReply("data: 12345678\n\n", fault=Cut(9, is_clean=True)))
    assert ask(provider).text == "data: 123"


def test_a_reset_is_a_reset(provider: FakeProvider) -> None:
    provider.play(RawReply("data: 12345678\n\n", fault=Reset(5)))
    with pytest.raises(httpx2.ReadError):
        ask(provider)


@pytest.mark.parametrize("after", [None, 0, 7])
def test_a_stall_ends_when_it_is_released(provider: FakeProvider, after: int | None) -> None:
    hold = Hold()
    provider.play(RawReply("data: 12345678\n\n", fault=Stall(hold, after)))

    def release() -> None:
        hold.wait_reached()
        hold.release()

    releaser = threading.Thread(target=release)
    releaser.start()
    assert ask(provider).text == "data: 12345678\n\n"
    releaser.join()


def test_a_client_that_leaves_a_stalled_reply_is_noticed(provider: FakeProvider) -> None:
    provider.play(Reply((Say(("a", Hold(), "b")),)))
    with (
        httpx2.Client() as client,
        client.stream("POST", f"{provider.openai_url}/chat/completions", json=BODY) as response,
    ):
        assert next(response.iter_bytes())
    assert provider.requests[0].gone.wait(5)


def test_pieces_split_a_body_anywhere() -> None:
    hold = Hold()
    plan = plan_steps([b"abcde", hold, b"fg"], None, 2)
    assert plan == [None, b"ab", b"cd", b"e", hold, b"fg"]


def test_a_fault_counts_bytes_across_events() -> None:
    assert plan_steps([b"abc", b"def"], Cut(4), 0) == [None, b"abc", b"d", Cut(4)]
    assert plan_steps([b"abc", b"def"], Reset(-1), 0) == [None, b"abc", b"de", Reset(-1)]
