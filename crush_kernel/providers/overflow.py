"""Requests that are longer than the context window, in whose words ever.

Two other refusals sound alike and are none of these: a limit of tokens in so many minutes,
where waiting helps, and a reply that was allowed more tokens than there can be, where the
conversation is not at fault.

Pure. Source: the wordings of Anthropic, OpenAI and Azure, OpenRouter, Google, Bedrock, Groq,
Mistral, DeepSeek, xAI, Moonshot, MiniMax, Z.ai, Alibaba, Cohere, Cerebras, Fireworks, Together,
GitHub Copilot, Ollama, LM Studio, llama.cpp, vLLM, SGLang, TGI, TabbyAPI and LiteLLM.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

_TOO_LONG: Final = re.compile(
    r"prompt( is)? too long"
    r"|context[ _-]?(length|window|size)[ _-]?(is )?(exceed|overflow)"
    r"|context ?window ?exceed|context (window|length) (exceeds|is) (the )?(limit|full)"
    r"|exceed(s|ed)? (the |its |your |this )?(model'?s? |maximum |max |available |allowed )*context"
    r"|exceed_context_size|maximum (context|prompt|input) length (is|of) "
    r"|input (length|is too long|tokens?|token count).{0,40}exceed"
    r"|exceed.{0,40}context (limit|length|window|size)"
    r"|input is too long for (the )?requested model|too many (input )?tokens( for|:)"
    r"|prompt token count of \d+ exceeds|max_prompt_tokens_exceeded"
    r"|exceeded (the )?model token limit|prompt exceeds (the )?max(imum)? length"
    r"|(greater|longer) than (the )?(model'?s? )?(maximum )?(context|max_seq_len)"
    r"|too large for model with \d+ maximum context"
    r"|trying to keep the first \d+ tokens when context"
    r"|range of input length should be"
    r"|tokens \+ .max_new_tokens. must be <="
    r"|messages\W{1,3}\d+\W{1,3}content[^:]{0,40}: string too long"
    r"|reduce the length of (the|your) (messages|prompt|input)",
    re.IGNORECASE,
)

_RATE: Final = re.compile(
    r"per[ -](min|minute|hour|day|sec|second)\b|\b[TR]P[MD]\b|rate[ _]limit", re.IGNORECASE
)

_N: Final = r"(\d[\d,]{0,11})"

_LIMITS: Final = (
    rf"(?:\d|tokens) > {_N}",
    rf"n_ctx\W{{1,5}}{_N}",
    rf"maximum (?:context|prompt|input) length(?: is| of|:)?(?: only)? {_N}",
    rf"context (?:length|size|window|limit)(?: is| of)?(?: only| at most)? \(?{_N}",
    rf"{_N} maximum context length",
    rf"tokens allowed \({_N}\)",
    rf"limit of {_N}",
    rf"token limit: {_N}",
    rf"limit is {_N}",
    rf"must be <= {_N}",
    rf"length should be \[\d+, ?{_N}\]",
    rf"max_seq_len {_N}",
    rf"cannot exceed {_N}",
)
"""How the size of the window is named, the most telling first; `_N` is the number."""

_PROMPTS: Final = (
    rf"exceed context limit: {_N} \+",
    rf"too long: {_N}",
    rf"{_N} (?:tokens )?(?:in|of|from) (?:the |your |text |input )*(?:messages|prompt|input)",
    rf"(?:request|prompt) (?:has|contains)(?: at least)? {_N}(?: input)? tokens",
    rf"resulted in (?:over )?{_N} tokens",
    rf"(?:request|input|requested tokens) \({_N}",
    rf"token count (?:of )?\(?{_N}",
    rf"given: {_N} .inputs",
    rf"keep the first {_N} tokens",
    rf"n_keep\W{{1,5}}{_N}",
    rf"n_prompt_tokens\W{{1,5}}{_N}",
    rf"current length is {_N}",
    rf"received {_N}",
    rf"prompt length {_N}",
    rf"requested (?:about |a total of )?{_N} tokens",
)
"""How the size of the prompt is named; at last, with what the reply was allowed."""

_REPLIES: Final = (
    rf"exceed context limit: [\d,]+ \+ {_N}",
    rf"{_N} (?:tokens )?(?:in|for) the (?:completion|output)",
    rf"and {_N} .max_new_tokens",
    rf"max_(?:completion_)?tokens. is too large: {_N}",
)
"""How the size of the reply is named, where it is what does not fit."""


@dataclass(frozen=True, slots=True)
class Overflow:
    """By how much a request is too long, as far as it is said; all in tokens."""

    limit_tokens: int | None = None
    asked_tokens: int | None = None
    """What the prompt has."""


def overflow_in(words: str) -> Overflow | None:
    """Return what a refusal says of the context window, `None` if it is about something else.

    Args:
        words: types, message or body of the refusal, of a bounded length.
    """
    if not _TOO_LONG.search(words) or _RATE.search(words):
        return None
    limit, asked = _number(_LIMITS_IN, words), _number(_PROMPTS_IN, words)
    allowed = _number(_REPLIES_IN, words)
    if limit is not None and asked is not None and allowed is not None and asked * 2 < limit:
        return None  # the prompt fits twice: it is the reply that was allowed too much
    return Overflow(limit, asked)


def _number(patterns: Iterable[re.Pattern[str]], words: str) -> int | None:
    found = (pattern.search(words) for pattern in patterns)
    return next((int(match[1].replace(",", "")) for match in found if match), None)


def _compiled(patterns: Iterable[str]) -> tuple[re.Pattern[str], ...]:
    return tuple(re.compile(pattern, re.IGNORECASE) for pattern in patterns)


_LIMITS_IN: Final = _compiled(_LIMITS)
_PROMPTS_IN: Final = _compiled(_PROMPTS)
_REPLIES_IN: Final = _compiled(_REPLIES)
