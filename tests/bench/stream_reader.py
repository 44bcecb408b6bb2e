"""Reads a reply to its end and prints the CPU seconds that it took.

Run as `python -m tests.bench.stream_reader sdk|plain URL`. One short reply comes first,
which is not counted.
"""

import json
import sys
import time
from collections.abc import Iterator

import httpx2
from anthropic import Anthropic
from anthropic.types import MessageParam

from tests.bench.anthropic_kernel import MODEL

_HEADERS = {"x-api-key": "key", "anthropic-version": "2023-06-01"}
_MESSAGES: list[MessageParam] = [{"role": "user", "content": "go"}]


def read_with_sdk(client: Anthropic) -> Iterator[str]:
    """Yield the text as the SDK's own helper gives it."""
    with client.messages.stream(model=MODEL, max_tokens=1000, messages=_MESSAGES) as stream:
        yield from stream.text_stream


def read_plainly(client: httpx2.Client, url: str) -> Iterator[str]:
    """Yield the text with as little ado as possible."""
    body = {"model": MODEL, "max_tokens": 1000, "messages": _MESSAGES, "stream": True}
    with client.stream("POST", f"{url}/v1/messages", json=body, headers=_HEADERS) as response:
        for line in response.iter_lines():
            if line.startswith("data: "):
                event = json.loads(line[6:])
                if event["type"] == "content_block_delta":
                    yield event["delta"]["text"]


def main(parser: str, url: str) -> None:
    """Read a short reply, then the one that is measured."""
    with Anthropic(api_key="key", base_url=url) as sdk, httpx2.Client(timeout=60) as client:

        def read() -> str:
            return "".join(read_with_sdk(sdk) if parser == "sdk" else read_plainly(client, url))

        read()
        began = time.process_time()
        read()
        sys.stdout.write(f"{time.process_time() - began}\n")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
