"""The formats of keys and tokens that tell by themselves what they are.

A table. What comes after the prefix must be as long as the real thing, and where words may
follow a prefix there must be a digit in it, so that what people write about keys stays.
What is found reaches to the end of the run of letters, digits, `-` and `_`: nothing of a
longer sort of the same key is left.

Source: the providers' pages on their keys; AWS IAM identifiers; RFC 7519, RFC 7516.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Final

from crush_kernel.history.secrecy.span import Span

_ALNUM = "[A-Za-z0-9]"
_WORD = "[A-Za-z0-9_-]"
_DIGIT_AHEAD = "(?=[A-Za-z_-]{0,120}[0-9])"


@dataclass(frozen=True, slots=True)
class Format:
    """One kind of key: a prefix that nothing else has, and what must follow it."""

    label: str
    prefixes: tuple[str, ...]
    rest: str
    """A regular expression for what follows the prefix."""
    hint: str = f"{_WORD}{{8}}"
    """What must follow at least, for the guard: no look-around, as Rust's engine has none."""
    left: str = "(?<![A-Za-z0-9])"
    """What must stand before the prefix."""

    @property
    def guard(self) -> str:
        """An expression without look-around that matches wherever the format does, and more."""
        return f"(?:{'|'.join(map(_loosely, self.prefixes))}){self.hint}"

    def spans(self, text: str) -> Iterator[Span]:
        """Yield where `text` has such keys."""
        if any(prefix in text for prefix in self.prefixes):
            for found in _compiled(self).finditer(text):
                yield Span(found.start(), found.end(), self.label)


FORMATS: Final[tuple[Format, ...]] = (
    Format("Anthropic key", ("sk-ant-",), _DIGIT_AHEAD + _WORD + "{10,}"),
    Format("OpenRouter key", ("sk-or-",), _DIGIT_AHEAD + _WORD + "{16,}"),
    Format(
        "OpenAI key",
        ("sk-proj-", "sk-svcacct-", "sk-admin-", "sk-None-"),
        _DIGIT_AHEAD + _WORD + "{16,}",
    ),
    # Many providers took over how OpenAI's first keys looked.
    Format("API key", ("sk-",), _ALNUM + "{24,}" + _WORD + "*", hint=_ALNUM + "{16}"),
    Format("Groq key", ("gsk_",), _ALNUM + "{32,}" + _WORD + "*"),
    Format("xAI key", ("xai-",), _ALNUM + "{40,}" + _WORD + "*"),
    Format("Cerebras key", ("csk-",), _ALNUM + "{32,}" + _WORD + "*"),
    Format("Perplexity key", ("pplx-",), _ALNUM + "{32,}" + _WORD + "*"),
    Format("Replicate token", ("r8_",), _ALNUM + "{32,}" + _WORD + "*"),
    Format("Google API key", ("AIza",), _WORD + "{35,}", hint=_WORD + "{16}"),
    Format("Google OAuth token", ("ya29.",), "[A-Za-z0-9_.-]{20,}"),
    Format("Google OAuth secret", ("GOCSPX-",), _WORD + "{20,}"),
    Format(
        "AWS access key",
        ("AKIA", "ASIA", "ABIA", "ACCA"),
        "[A-Z0-9]{16}(?![A-Za-z0-9])",
        hint="[A-Z0-9]{16}",
    ),
    Format(
        "GitHub token",
        ("ghp_", "gho_", "ghu_", "ghs_", "ghr_"),
        _ALNUM + "{36,}" + _WORD + "*",
    ),
    Format("GitHub token", ("github_pat_",), "[A-Za-z0-9_]{22,}" + _WORD + "*"),
    Format(
        "GitLab token",
        (
            *("glpat-", "gldt-", "glrt-", "glcbt-", "glptt-", "glft-", "glimt-", "glagent-"),
            *("gloas-", "glsoat-", "glffct-"),
        ),
        _WORD + r"{20,}(?:\." + _WORD + "+)*",
    ),
    Format(
        "Slack token",
        ("xoxb-", "xoxp-", "xoxa-", "xoxr-", "xoxs-", "xoxe-", "xoxo-", "xoxc-", "xoxd-", "xapp-"),
        _DIGIT_AHEAD + "[A-Za-z0-9%_-]{10,}",
    ),
    Format("Slack webhook", ("hooks.slack.com/services/",), "[A-Za-z0-9/_-]{20,}"),
    Format(
        "Stripe key",
        ("sk_live_", "sk_test_", "rk_live_", "rk_test_"),
        _ALNUM + "{16,}" + _WORD + "*",
    ),
    Format("Stripe key", ("whsec_",), "[A-Za-z0-9+/]{24,}[A-Za-z0-9+/=_-]*"),
    Format("Hugging Face token", ("hf_", "api_org_"), _ALNUM + "{30,}" + _WORD + "*"),
    Format("npm token", ("npm_",), _ALNUM + "{36,}" + _WORD + "*"),
    Format("PyPI token", ("pypi-AgE",), _WORD + "{40,}"),
    Format("SendGrid key", ("SG.",), _WORD + r"{20,}\." + _WORD + "{30,}"),
    Format("DigitalOcean token", ("dop_v1_", "doo_v1_", "dor_v1_"), "[0-9a-f]{40,}" + _WORD + "*"),
    Format("Databricks token", ("dapi",), "[0-9a-f]{32}" + _WORD + "*", hint="[0-9a-f]{16}"),
    Format(
        "JSON web token",
        ("eyJ",),
        # Signed: header, claims, signature. Encrypted: five parts.
        rf"{_WORD}{{8,}}\.(?:eyJ{_WORD}{{8,}}(?:\.{_WORD}*)?"
        rf"|{_WORD}*\.{_WORD}{{8,}}\.{_WORD}{{8,}}\.{_WORD}{{8,}})",
        hint=rf"{_WORD}+(?:\.|&#)",
        # In a run of `-eyJ` every start would read to the end of the run.
        left="(?<![A-Za-z0-9_-])",
    ),
)


def _loosely(prefix: str) -> str:
    """Return an expression for `prefix`, also as it stands in Markdown of ours."""
    return re.escape(prefix).replace("_", "(?:_|&#95;)").replace(r"\.", r"(?:\.|&#46;)")


@cache
def _compiled(form: Format) -> re.Pattern[str]:
    prefixes = "|".join(map(re.escape, form.prefixes))
    return re.compile(f"{form.left}(?:{prefixes}){form.rest}")
