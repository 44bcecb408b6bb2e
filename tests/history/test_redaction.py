"""What no secret escapes, and what is no secret."""

import base64
import html
import itertools
import json
import logging
from collections.abc import Callable
from urllib.parse import quote

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from pydantic import JsonValue

from crush_kernel.history.redactedstream import (
    MAX_HELD_CHARS,
    RedactedStream,
    redactable_end,
    redacted_so_far,
)
from crush_kernel.history.redaction import Redactor
from crush_kernel.history.secrecy import search
from crush_kernel.history.secrecy.environ import is_secret_name
from crush_kernel.kernel.markdown import code_span, escape, fenced, neutralize
from crush_kernel.messages import (
    MESSAGES,
    Media,
    Message,
    Opaque,
    Part,
    Reasoning,
    ShellCommand,
    SummaryMark,
    Text,
    ToolCall,
    ToolResult,
)

FILL = "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8s9T0u1V2w3X4y5Z6"
HEX = "0f1e2d3c4b5a69788796a5b4c3d2e1f00f1e2d3c4b5a69788796a5b4c3d2e1f0"
LINE = "MIIE" + FILL + "x+/Y"
PEM = f"-----BEGIN RSA PRIVATE KEY-----\n{LINE}\n{LINE}\nq80=\n-----END RSA PRIVATE KEY-----"
GITHUB = "ghp_" + FILL[:36]
JWT = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0." + FILL[:43]

ENVIRON = {
    "ANTHROPIC_API_KEY": "sk-ant-api03-" + FILL,
    "DB_PASSWORD": 'p@ss "w0rd"/<é>&1',
    "CORP_TOKEN": "Zq81-7731-xx",
    "DATABASE_URL": "postgres://app:n0tSoSecret@db.example.com/shop",
    "SIGNING_KEY": f"9f8e7d6c5b4a{FILL[20:40]}\n5b4a9f8e7d6c{FILL[20:40]}",
    "WIDE_SECRET": "密码 一二三 42",
    "HOME": "/home/somebody",
    "PYTHONPATH": "/usr/lib/python3",
}
PLAIN = Redactor({})
REDACTOR = Redactor(ENVIRON)
WITH_PATTERNS = Redactor(ENVIRON, ("acme-[0-9]+", "falcon .* x", ".+!!"))


def mark(label: str) -> str:
    return f"⟨secret: {label}⟩"


# --- known formats ------------------------------------------------------------------------

FORMATS = [
    pytest.param("Anthropic key", "sk-ant-api03-" + FILL + "-_" + FILL, id="anthropic"),
    pytest.param("Anthropic key", "sk-ant-test-1234567890", id="anthropic, short"),
    pytest.param("OpenRouter key", "sk-or-v1-" + HEX, id="openrouter"),
    pytest.param("OpenAI key", "sk-proj-" + FILL + "_-" + FILL, id="openai, of a project"),
    pytest.param("OpenAI key", "sk-svcacct-" + FILL, id="openai, of a service"),
    pytest.param("API key", "sk-" + FILL[:48], id="openai, old, and those alike"),
    pytest.param("API key", "sk-" + HEX[:32], id="deepseek"),
    pytest.param("Groq key", "gsk_" + FILL, id="groq"),
    pytest.param("xAI key", "xai-" + FILL + FILL[:28], id="xai"),
    pytest.param("Google API key", "AIza" + "Sy" + FILL[:33], id="google"),
    pytest.param("Google OAuth token", "ya29." + FILL, id="google oauth"),
    pytest.param("AWS access key", "AKIA" + "IOSFODNN7EXAMPLE", id="aws"),
    pytest.param("AWS access key", "ASIA" + "Y34FZKBOKMUTVV7A", id="aws, temporary"),
    pytest.param("GitHub token", GITHUB, id="github"),
    pytest.param("GitHub token", "ghs_" + FILL[:36], id="github app"),
    pytest.param("GitHub token", "github_pat_" + FILL[:22] + "_" + FILL, id="github, fine"),
    pytest.param("GitLab token", "glpat-" + FILL[:20], id="gitlab"),
    pytest.param("GitLab token", "glpat-" + FILL[:27] + ".01.1a2b3c4d5", id="gitlab, routable"),
    pytest.param("Slack token", "xoxb-123456789012-" + FILL[:24], id="slack"),
    pytest.param("Slack token", "xapp-1-A01-" + FILL, id="slack app"),
    pytest.param("Stripe key", "sk_live_" + FILL[:24], id="stripe"),
    pytest.param("Stripe key", "rk_test_" + FILL[:24], id="stripe, restricted"),
    pytest.param("Hugging Face token", "hf_" + FILL[:34], id="hugging face"),
    pytest.param("npm token", "npm_" + FILL[:36], id="npm"),
    pytest.param("PyPI token", "pypi-AgEIcHlwaS5vcmc" + FILL, id="pypi"),
    pytest.param("JSON web token", JWT, id="jwt"),
    pytest.param("private key", PEM, id="pem"),
    pytest.param("private key", PEM.replace("RSA ", ""), id="pem, pkcs 8"),
    pytest.param("private key", PEM.replace("RSA ", "OPENSSH "), id="pem, ssh"),
]


@pytest.mark.parametrize(("label", "secret"), FORMATS)
@pytest.mark.parametrize(
    "around",
    [
        "{}",
        "the key is {}, keep it",
        '"{}"',
        "KEY={}\nnext",
        "密钥是{}。",
        "`{}`",
        "a/{}?b",
        "<{}>",
    ],
)
def test_a_known_format_is_replaced_wherever_it_stands(
    label: str, secret: str, around: str
) -> None:
    assert PLAIN.redact(around.format(secret)) == around.format(mark(label))


OUR_FORMS: dict[str, Callable[[str], str]] = {
    "escaped in markdown": escape,
    "code span": code_span,
    "code element": lambda text: code_span(f"$$ {text}"),
    "code block": fenced,
    "reply": neutralize,
    "html": lambda text: html.escape(f"x\n{text}\n"),
    "json": lambda text: json.dumps(f"x\n{text}\n"),
    "json in json": lambda text: json.dumps(json.dumps({"a": text})),
    "percent-encoded": lambda text: "q=" + quote(text, safe="/+= \n"),
}


@pytest.mark.parametrize(("label", "secret"), FORMATS)
@pytest.mark.parametrize("written", OUR_FORMS.values(), ids=OUR_FORMS)
def test_a_known_format_is_found_as_our_own_output_writes_it(
    label: str, secret: str, written: Callable[[str], str]
) -> None:
    cleaned = PLAIN.redact(written(secret))
    assert mark(label) in cleaned
    assert FILL[:20] not in cleaned
    assert secret[-12:-1] not in cleaned


LISTINGS: dict[str, Callable[[str], str]] = {
    "as it is": lambda line: f"{line}",
    "numbered": lambda line: f"    12|{line}",
    "diff": lambda line: f"+{line}",
    "grep": lambda line: f"keys/id_rsa:12:{line}",
    "quoted": lambda line: f"> {line}\r",
}


@pytest.mark.parametrize("listing", LISTINGS.values(), ids=LISTINGS)
@pytest.mark.parametrize("start", [0, 1])
@pytest.mark.parametrize("end", [None, -1])
def test_of_a_private_key_no_line_is_left_that_can_be_told(
    listing: Callable[[str], str], start: int, end: int | None
) -> None:
    lines = PEM.split("\n")[start:end]
    if start == 1 and end == -1:
        return  # lines of Base64, that is all
    text = "\n".join(["before", *map(listing, lines), "after"])
    cleaned = PLAIN.redact(text)
    assert mark("private key") in cleaned
    assert FILL[:20] not in cleaned
    assert cleaned.startswith("before\n")
    assert cleaned.endswith("after")


def test_a_key_with_a_note_in_its_middle_goes_whole() -> None:
    head, tail = PEM.split("\n")[:2], PEM.split("\n")[2:]
    text = "\n".join([*head, "[… 12 lines, 800 bytes left out …]", *tail, "done"])
    assert PLAIN.redact(text) == f"{mark('private key')}\ndone"


# --- places -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "PASSWORD=[hunter2] make",
        'password = "[hunter2-x]"',
        "db_password: [hunter2!]",
        "user=bob&password=[hunter2]&x=1",
        '{"password": "[pa55word]"}',
        "'client_secret': '[9f8e-7d6c-5b4a]'",
        'api_key="[abc123def456ghi789]"',
        "apiKey: '[abc123def456ghi789]',",
        "export SERVICE_TOKEN=[abc123def456ghi7]",
        "aws_secret_access_key = [wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY]",
        "AccountKey=[abc123DEF456/+ghi789jkl==];Endpoint=x",
        "Authorization: Bearer [abc123.def456-ghi789]",
        "-H 'Authorization: Basic [dXNlcjpwYXNz]'",
        '"authorization": "token [0f1e2d3c4b5a6978]"',
        "curl -H 'x-api-key: [abc123def456ghi789]'",
        "Bearer [abc123def456ghi789]",
        "postgres://app:[n0tSoSecret]@db.example.com/shop",
        "redis://:[hunter2]@10.0.0.1:6379",
        "https://x-access-token:[abc]@github.com/a/b.git",
        "amqp://u:[p@ss!word]@host",
    ],
)
def test_a_value_where_secrets_stand_is_replaced_and_nothing_else(text: str) -> None:
    head, rest = text.split("[")
    value, tail = rest.split("]")
    assert PLAIN.redact(f"{head}{value}{tail}") == f"{head}{mark('credential')}{tail}"


@pytest.mark.parametrize(
    "text",
    [
        "commit 1d1c1e1f0a9b8c7d6e5f4a3b2c1d0e9f8a7b6c5d",
        "0c5b1f2e-9a3d-4e6f-8b7a-1c2d3e4f5a6b",
        "sha256:" + HEX,
        "token = get_token()",
        "token = tokens[0]; secret = secrets.token_hex(16)",
        'api_key = os.environ["X"]',
        'api_key = os.getenv("OPENAI_API_KEY2")',
        "const apiKey = process.env.API_KEY2;",
        "password = hashlib.sha256(data).hexdigest()",
        "connect(user=user1, password=password1)",
        "def login(password: Uint8Array, token: i64): ...",
        'password: "${DB_PASSWORD1}"',
        "api_key: <YOUR_API_KEY_1>",
        'api_key = "YOUR_API_KEY_123456"',
        'token = "OPENAI_API_KEY_2"',
        'f"Authorization: Bearer {token1}"',
        "Authorization: Bearer $TOKEN1",
        "Bearer tokens are sent in the Authorization header of RFC6750.",
        "keys begin with sk- or sk-ant-, such as sk-ant-your-key-here and sk-...",
        "task-management-system-for-the-risk-assessment-2024",
        "max_tokens: 4096, pad_token='<|endoftext2|>'",
        'next_page_token = "CAoQAA1234567890"',
        "/etc/passwd:1:root:x:0:0:root:/root:/bin/bash",
        "password=********",
        'secret = "prod/db"',
        "git@github.com:org/repo.git",
        "https://example.com:443/path@x?y=a@b.c",
        "docker://alpine:3.18@sha256:0f1e2d3c",
        "postgres://{user}:{password}@{host}/db",
        "http://localhost:8888/lab",
        "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk",
        'if "-----BEGIN RSA PRIVATE KEY-----" in text:\n    return load_private_key(text)\n',
        'a.password=function(t){return e.token1(t)},b={token:t1,key:"k1"},c.secret=r2(9)',
        "⟨secret: SOME_OTHER_TOKEN1⟩",
        "integrity sha512-" + FILL + FILL + "==",
    ],
)
def test_what_is_no_secret_stays(text: str) -> None:
    assert REDACTOR.redact(text) is text


# --- the environment ----------------------------------------------------------------------


def _in_code_element(text: str) -> str:
    return code_span(f"$${text}").removeprefix("<code>&#36;&#36;").removesuffix("</code>")


def _all_percent_encoded(text: str) -> str:
    found = (f"%{byte:02x}" if chr(byte) in '@ "/<>&' else chr(byte) for byte in text.encode())
    return "".join(char if char.isascii() else f"%{ord(char):02x}" for char in "".join(found))


VALUE_FORMS: dict[str, Callable[[str], str]] = {
    "as it is": str,
    "html": html.escape,
    "escaped in markdown": escape,
    "code element": _in_code_element,
    "json": lambda text: json.dumps(text)[1:-1],
    "json, utf-8": lambda text: json.dumps(text, ensure_ascii=False)[1:-1],
    "percent-encoded": quote,
    "percent-encoded, all of it": _all_percent_encoded,
    "hexadecimal entities": lambda text: "".join(
        f"&#x{ord(c):x};" if c in '@"<' else c for c in text
    ),
}


@pytest.mark.parametrize(
    ("name", "value"),
    [(name, ENVIRON[name]) for name in ("ANTHROPIC_API_KEY", "DB_PASSWORD", "CORP_TOKEN")],
)
@pytest.mark.parametrize("written", VALUE_FORMS.values(), ids=VALUE_FORMS)
def test_the_value_of_a_variable_is_replaced_in_every_form(
    name: str, value: str, written: Callable[[str], str]
) -> None:
    assert REDACTOR.redact(f"x {written(value)}, y") == f"x {mark(name)}, y"


@pytest.mark.parametrize("before", [b"", b"u:", b"us:", b"user:"])
@pytest.mark.parametrize("after", [b"", b"\n", b"@h"])
@pytest.mark.parametrize("encode", [base64.b64encode, base64.urlsafe_b64encode])
def test_the_value_of_a_variable_is_found_inside_of_base64(
    before: bytes, after: bytes, encode: Callable[[bytes], bytes]
) -> None:
    for name in ("DB_PASSWORD", "CORP_TOKEN"):
        written = encode(before + ENVIRON[name].encode() + after).decode()
        assert mark(name) in REDACTOR.redact(f"data: {written} end")


def test_each_line_of_a_value_is_secret() -> None:
    first, second = ENVIRON["SIGNING_KEY"].split("\n")
    assert REDACTOR.redact(f"1| {first}\n2| {second}") == (
        f"1| {mark('SIGNING_KEY')}\n2| {mark('SIGNING_KEY')}"
    )


def test_the_password_in_an_address_is_called_after_its_variable_everywhere() -> None:
    assert REDACTOR.redact("n0tSoSecret") == mark("DATABASE_URL")
    assert REDACTOR.redact(ENVIRON["DATABASE_URL"]) == (
        f"postgres://app:{mark('DATABASE_URL')}@db.example.com/shop"
    )


@pytest.mark.parametrize(
    "value",
    [
        "short12",
        "/run/keys/server.key",
        "~/.ssh/id_rsa",
        "C:\\keys\\id_rsa",
        "1234567890",
        "3.14159265",
        "disabled",
        "xxxxxxxxxxxx",
        "https://vault.example.com/v1",
        "",
    ],
)
def test_a_value_that_is_no_secret_stays(value: str) -> None:
    text = f"it says {value} here"
    assert Redactor({"CORP_KEY": value}).redact(text) is text


def test_a_key_that_begins_like_a_path_is_a_key() -> None:
    value = "/Jalr7XUtn2FEMI/K7M1DENG/bPx3Rf4iCY9"
    assert Redactor({"AWS_SECRET_ACCESS_KEY": value}).redact(value) == (
        mark("AWS_SECRET_ACCESS_KEY")
    )


@pytest.mark.parametrize(
    "name",
    [
        *("OPENAI_API_KEY", "GH_TOKEN", "DJANGO_SECRET_KEY", "SECRET_KEY_BASE", "PGPASSWORD"),
        *("SMTP_PASSWD", "AWS_SESSION_TOKEN", "npm_config__authToken", "GCP_CREDENTIALS", "KEY"),
        *("OPENAI_API_KEY_2", "API_TOKENS", "VAULT_PASS", "AZURE_STORAGE_CONNECTION_STRING"),
    ],
)
def test_names_that_tell_of_a_secret(name: str) -> None:
    assert is_secret_name(name)


@pytest.mark.parametrize(
    "name",
    [
        *("PATH", "PWD", "OLDPWD", "HOME", "SSH_AUTH_SOCK", "TOKENIZERS_PARALLELISM", "LS_COLORS"),
        *(
            "AWS_ACCESS_KEY_ID",
            "SSL_KEY_FILE",
            "TOKEN_URL",
            "PASSWORD_STORE_DIR",
            "MAX_TOKENS_LIMIT",
        ),
        *("KEYBOARD_LAYOUT", "PUBLIC_KEY", "MONKEY", "API_KEY_NAME"),
    ],
)
def test_names_that_tell_of_none(name: str) -> None:
    assert not is_secret_name(name)


def test_variables_with_the_same_value_give_one_name_whatever_their_order() -> None:
    one = Redactor({"B_TOKEN": "Zq81-7731-xx", "A_TOKEN": "Zq81-7731-xx"})
    other = Redactor({"A_TOKEN": "Zq81-7731-xx", "B_TOKEN": "Zq81-7731-xx"})
    assert one.redact("Zq81-7731-xx") == other.redact("Zq81-7731-xx") == mark("A_TOKEN")


def test_the_name_of_the_variable_comes_before_the_name_of_the_format() -> None:
    assert Redactor({"MY_TOKEN": GITHUB}).redact(f"token={GITHUB}") == f"token={mark('MY_TOKEN')}"


def test_a_name_that_is_no_name_is_not_shown() -> None:
    hostile = Redactor({"<script>_TOKEN": "Zq81-7731-xx", "A\udc80_KEY": "Yq81-7731\udcff-xx"})
    assert hostile.redact("Zq81-7731-xx") == mark("environment variable")
    assert hostile.redact("Yq81-7731\udcff-xx") == mark("environment variable")


# --- the user's patterns ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("pattern", "text", "expected"),
    [
        ("acme-[0-9]+", "see acme-123, and xacme-4z", "see ⟨⟩, and x⟨⟩z"),
        (r"\bacme-[0-9]+\b", "see acme-123, and xacme-4 acme-5z", "see ⟨⟩, and xacme-4 acme-5z"),
        ("(?i)project falcon", "our Project  Falcon, Project Falcon.", "our Project  Falcon, ⟨⟩."),
        ("^key .*", "a key b\nkey b c\nd", "a key b\n⟨⟩\nd"),
        ("end$", "end of it\nthe end", "end of it\nthe ⟨⟩"),
        ("é+", "caféé", "caf⟨⟩"),
        ("a|ab", "xab", "x⟨⟩"),
    ],
)
def test_what_a_pattern_matches_is_replaced(pattern: str, text: str, expected: str) -> None:
    redactor = Redactor({}, (pattern,))
    assert redactor.problems == ()
    assert redactor.redact(text) == expected.replace("⟨⟩", mark("pattern 1"))


@pytest.mark.parametrize(
    ("pattern", "reason"),
    [
        ("[", "unclosed character class"),
        ("(?=x)y", "look-around"),
        (r"(a)\1", "backreferences"),
        ("x*", "empty text"),
        ("a" * 501, "longer than 500"),
        ("(a{1000}){1000}", "size limit"),
        ("\ud800", "half a character"),
        ("(?x) a # b", "unclosed group"),
    ],
)
def test_a_bad_pattern_is_reported_and_the_others_count(pattern: str, reason: str) -> None:
    redactor = Redactor({}, (pattern, "acme"))
    assert len(redactor.problems) == 1
    assert "pattern 1" in redactor.problems[0]
    assert reason in redactor.problems[0]
    assert redactor.redact("acme") == mark("pattern 2")


@pytest.mark.parametrize("pattern", ["(a+)+$", "(a|aa)+$", "(x+x+)+y", ".*.*.*=.*", "(.*)*b"])
@pytest.mark.parametrize(
    "text",
    ["a" * 50_000 + "!", "x" * 50_000, "a" * 50_000, "=" * 50_000, "b" * 50_000, "ab\n" * 9000],
)
def test_no_pattern_takes_for_ever(pattern: str, text: str) -> None:
    cleaned = Redactor({}, (pattern,)).redact(text)
    assert cleaned is text or mark("pattern 1") in cleaned


def test_what_takes_too_many_looks_is_withheld() -> None:
    cleaned = Redactor({}, ("[a-z]",)).redact("a b " * 50_000)
    assert cleaned.endswith(mark("pattern 1"))
    assert "a" not in cleaned.replace(mark("pattern 1"), "")


# --- laws ---------------------------------------------------------------------------------

_FRAGMENTS = [
    *(GITHUB, "ghp_", "sk-", "sk-ant-api03-" + FILL, "sk-ant-", JWT, "eyJhbGciOiJIUzI1NiJ9"),
    *(".eyJzdWIiOiIxMjM0In0", ".sig-_x", "AKIA" + "IOSFODNN7EXAMPLE", "password", "PASSWORD"),
    *("token", "secret", "api_key", "api&#95;key", "next_", "=", ": ", " = ", '"', "'", '\\"'),
    *("&quot;", "&#95;", "&amp;", "%40", "%3d", "\\n", "hunter2", "hunter2x!", "get_token()", "("),
    *(")", ",", ";", "Authorization", "Bearer ", "basic ", "://", "https://", "bob", ":", "@"),
    *("host", "\n", " ", "  ", "\t", "\r\n", "\u2028", "\xa0", "/", "#", "?", "_", "-", "\ud800"),
    *("-----BEGIN RSA PRIVATE KEY-----", "-----END RSA PRIVATE KEY-----", "-----BEGIN", "-----"),
    *(LINE, LINE + "\n", f"\n{LINE}\n", "12|", "abcd", "ab==", "[… 12 lines …]", "PRIVATE KEY"),
    *(mark("GitHub token"), mark("CORP_TOKEN"), "⟨", "⟩", "secret: ", "密", "。", "é", "…"),
    *(ENVIRON["DB_PASSWORD"], "p@ss", ' "w0rd', "密码 ", "一二三 42", "Zq81-", "7731-xx"),
    *(escape(ENVIRON["DB_PASSWORD"]), "acme-12", "acme-", "falcon ", "!!", " x", "x" * 300),
]
texts = st.lists(st.sampled_from(_FRAGMENTS) | st.text(max_size=3), max_size=12).map("".join)
redactors = st.sampled_from([REDACTOR, WITH_PATTERNS])


@given(texts, redactors)
@example("." * 30 + mark("pattern 1") + "!!", WITH_PATTERNS)
def test_what_is_clean_comes_back_as_it_was(text: str, redactor: Redactor) -> None:
    cleaned = redactor.redact(text)
    assert redactor.redact(cleaned) is cleaned


@given(texts, st.lists(st.integers(0, 400), max_size=8), redactors)
def test_a_text_in_pieces_comes_out_as_the_whole_text_does(
    text: str, cuts: list[int], redactor: Redactor
) -> None:
    stream = RedactedStream(redactor)
    shown: list[str] = []
    edges = [0, *sorted(cut for cut in cuts if cut < len(text)), len(text)]
    for start, end in itertools.pairwise(edges):
        stream.add(text[start:end])
        shown.append(stream.take())
    shown.append(stream.flush())
    assert "".join(shown) == redactor.redact(text)


@given(texts, redactors)
def test_what_may_be_shown_early_is_the_same_whatever_follows(
    text: str, redactor: Redactor
) -> None:
    end = redactable_end(text, redactor)
    assert redactor.redact(text[:end]) + redactor.redact(text[end:]) == redactor.redact(text)


@given(texts)
def test_the_guard_passes_nothing_that_a_rule_would_find(text: str) -> None:
    for line in search.encodable(text).split("\n"):
        if list(search._exactly(line)):  # pyright: ignore[reportPrivateUsage]
            assert search.may_have_secrets(line)


@given(st.integers(0, 5000), st.sampled_from(["word ", "x\n", "密", "=;"]), st.integers(0, 3000))
@settings(max_examples=60)
def test_a_secret_is_found_wherever_it_stands_in_a_long_text(
    before: int, filler: str, after: int
) -> None:
    head = (filler * before)[:before] + " "
    tail = " " + (filler * after)[:after]
    value = f"password='hunter2x' {GITHUB} https://u:pa55@h {PEM}"
    shown = (
        f"password='{mark('credential')}' {mark('GitHub token')} "
        f"https://u:{mark('credential')}@h {mark('private key')}"
    )
    assert PLAIN.redact(head + value + tail) == head + shown + tail


@given(texts)
def test_what_replaces_a_secret_is_short(text: str) -> None:
    assert len(REDACTOR.redact(text)) <= 8 * len(text)


def test_a_reply_is_shown_word_by_word() -> None:
    stream = RedactedStream(REDACTOR)
    shown: list[str] = []
    for delta in ("The", " quick", " fox", " 你好", "世界"):
        stream.add(delta)
        shown.append(stream.take())
    assert shown == ["", "The ", "quick ", "fox 你好", "世界"]


def test_no_prefix_of_a_secret_is_shown_meanwhile() -> None:
    text = f"Use {GITHUB} and {ENVIRON['WIDE_SECRET']}, or password: hunter2x! now.\n{PEM}\nbye"
    stream = RedactedStream(REDACTOR)
    shown = ""
    for char in text:
        stream.add(char)
        shown += stream.take()
        for part in ("ghp_", "密码", "hunter", "MIIE"):
            assert part not in shown
    assert (shown + stream.flush()).endswith(f"{mark('private key')}\nbye")


def test_an_endless_word_is_not_held_for_ever() -> None:
    stream = RedactedStream(REDACTOR)
    stream.add("z" * (MAX_HELD_CHARS + 1))
    assert len(stream.take()) >= MAX_HELD_CHARS // 2


@pytest.mark.parametrize(
    "text",
    [
        *("-eyJ" * 20_000, ".eyJ" * 20_000, "sk-ant-" * 10_000, f"{GITHUB} " * 2000),
        *("password=" * 9000, 'password="' * 9000, "token: a1b2 " * 7000, "://a:" * 16_000),
        *("://a:" + "a:" * 40_000, "-----BEGIN RSA PRIVATE KEY-----\n" * 2500),
        *("-----END RSA PRIVATE KEY-----\n" * 2500, f"{LINE}\n" * 1300, "password%3d%41" * 5000),
        *(
            "Bearer " * 12_000,
            "authorization: " * 5000,
            "&#95;" * 16_000,
            mark("CORP_TOKEN") * 4000,
        ),
    ],
    ids=lambda text: text[:20].strip(),
)
def test_no_text_takes_for_ever(text: str) -> None:
    cleaned = REDACTOR.redact(text)
    assert REDACTOR.redact(cleaned) is cleaned


# --- JSON ---------------------------------------------------------------------------------


def test_json_is_cleaned_in_strings_and_keys_and_under_names() -> None:
    value: JsonValue = {
        "note": [f"use {GITHUB}", 1, None],
        GITHUB: True,
        "db": {"password": "hunter2x", "port": 5432},
        "passwords": ["hunter3x"],
    }
    assert PLAIN.redact_json(value) == {
        "note": [f"use {mark('GitHub token')}", 1, None],
        mark("GitHub token"): True,
        "db": {"password": mark("credential"), "port": 5432},
        "passwords": [mark("credential")],
    }


def test_clean_json_is_the_very_object_and_so_is_each_clean_part() -> None:
    clean: JsonValue = {"a": ["x", {"b": 1}]}
    assert PLAIN.redact_json(clean) is clean
    mixed = PLAIN.redact_json({"clean": clean, "not": GITHUB})
    assert isinstance(mixed, dict)
    assert mixed["clean"] is clean


def test_two_keys_that_look_the_same_then_are_kept_apart() -> None:
    value: JsonValue = {GITHUB: 1, GITHUB + "x": 2}
    assert PLAIN.redact_json(value) == {mark("GitHub token"): 1, f"{mark('GitHub token')} 2": 2}


def test_what_is_nested_too_deeply_is_left_out() -> None:
    value: JsonValue = GITHUB
    for _ in range(5000):
        value = [value]
    cleaned = PLAIN.redact_json(value)
    assert cleaned == "nested too deeply"


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | texts,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["password", "token", "a", GITHUB]) | texts, inner, max_size=3
        )
    ),
    max_leaves=6,
)


@given(json_values, st.booleans(), st.sampled_from([None, 2]))
@settings(max_examples=60)
def test_json_text_stays_json_and_only_its_strings_change(
    value: JsonValue,
    is_ascii: bool,  # noqa: FBT001 - drawn by hypothesis
    indent: int | None,
) -> None:
    text = json.dumps(value, ensure_ascii=is_ascii, indent=indent)
    cleaned = REDACTOR.redact_json_text(text)
    assert REDACTOR.redact_json_text(cleaned) == cleaned
    before, after = json.dumps(_skeleton(value)), json.dumps(_skeleton(json.loads(cleaned)))
    assert before == after


def _skeleton(value: JsonValue) -> JsonValue:
    match value:
        case str():
            return ""
        case list():
            return [_skeleton(item) for item in value]
        case dict():
            return [_skeleton(item) for item in value.values()]
        case _:
            return value


def test_numbers_and_layout_of_json_text_stay_as_they_were() -> None:
    text = '{ "n": 1e400, "m": 1.10,\n "password" : "hunter2x", "n": 2 }'
    assert PLAIN.redact_json_text(text) == text.replace("hunter2x", mark("credential"))


def test_broken_json_text_is_cleaned_as_text() -> None:
    assert PLAIN.redact_json_text(f'{{"a": "{GITHUB}", ') == f'{{"a": "{mark("GitHub token")}", '


# --- messages -----------------------------------------------------------------------------

PARTS: list[tuple[Part, Part]] = [
    (Text(f"use {GITHUB}"), Text(f"use {mark('GitHub token')}")),
    (
        ToolCall("c1", "bash", json.dumps({"command": f"echo {GITHUB}"})),
        ToolCall(
            "c1",
            "bash",
            json.dumps({"command": f"echo {mark('GitHub token')}"}, ensure_ascii=False),
        ),
    ),
    (
        ToolResult(
            "c1",
            f"out {GITHUB}",
            media=(Media("image/png", FILL, f"{GITHUB}.png"),),
            metadata={"summary": GITHUB, "n": [1]},
        ),
        ToolResult(
            "c1",
            f"out {mark('GitHub token')}",
            media=(Media("image/png", FILL, f"{mark('GitHub token')}.png"),),
            metadata={"summary": mark("GitHub token"), "n": [1]},
        ),
    ),
    (
        ShellCommand(f"echo {GITHUB}", f"{GITHUB}\n", 0),
        ShellCommand(f"echo {mark('GitHub token')}", f"{mark('GitHub token')}\n", 0),
    ),
    (
        Opaque({"kind": "hologram", "said": [GITHUB]}),
        Opaque({"kind": "hologram", "said": [mark("GitHub token")]}),
    ),
]


@pytest.mark.parametrize(("part", "expected"), PARTS, ids=lambda part: part.kind)
def test_every_part_of_a_message_is_cleaned(part: Part, expected: Part) -> None:
    messages = (Message("user", (SummaryMark("x"), part)),)
    cleaned = PLAIN.redact_messages(messages)
    assert cleaned == (Message("user", (SummaryMark("x"), expected)),)
    assert PLAIN.redact_messages(cleaned) is cleaned


@pytest.mark.parametrize(
    "part",
    [
        Reasoning(f"the key is {GITHUB}", {"signature": FILL}),
        Reasoning("hm", {"signature": FILL, "thinking": f"the key is {GITHUB}"}),
    ],
)
def test_reasoning_with_a_secret_is_left_out_whole(part: Reasoning) -> None:
    messages = (Message("assistant", (part, Text("ok")), model="m"),)
    assert PLAIN.redact_messages(messages) == (Message("assistant", (Text("ok"),), model="m"),)


def test_reasoning_and_media_without_one_stay_byte_for_byte() -> None:
    signature = base64.b64encode(bytes(range(256)) * 8).decode()
    messages = (
        Message("assistant", (Reasoning("hm", {"signature": signature, "data": signature}),)),
        Message("user", (Media("image/png", signature, "a.png"),)),
    )
    assert PLAIN.redact_messages(messages) is messages


def test_clean_messages_among_others_are_the_very_objects() -> None:
    clean, other = Message("user", (Text("hello"),)), Message("user", (Text(GITHUB),))
    cleaned = PLAIN.redact_messages((clean, other))
    assert cleaned[0] is clean
    assert MESSAGES.validate_json(MESSAGES.dump_json(cleaned)) == cleaned


# --- outputs ------------------------------------------------------------------------------


def test_outputs_are_cleaned_but_for_bytes_and_ids() -> None:
    display_id = HEX[:32]
    content: dict[str, JsonValue] = {
        "data": {
            "text/markdown": f"`{GITHUB}`",
            "text/plain": GITHUB,
            "image/png": GITHUB,
            "image/svg+xml": f"<svg>{GITHUB}</svg>",
            "application/vnd.crush.turn.v1+json": {"messages": [GITHUB]},
            "application/vnd.jupyter.widget-view+json": {"model_id": display_id},
        },
        "metadata": {"crush": {"pending": True}},
        "transient": {"display_id": display_id},
    }
    shown = mark("GitHub token")
    assert Redactor({}, ("[0-9a-f]{32}",)).redact_output(content) == {
        "data": {
            "text/markdown": f"`{shown}`",
            "text/plain": shown,
            "image/png": GITHUB,
            "image/svg+xml": f"<svg>{shown}</svg>",
            "application/vnd.crush.turn.v1+json": {"messages": [shown]},
            "application/vnd.jupyter.widget-view+json": {"model_id": display_id},
        },
        "metadata": {"crush": {"pending": True}},
        "transient": {"display_id": display_id},
    }


@pytest.mark.parametrize(
    "content",
    [
        {"name": "stdout", "text": f"{GITHUB}\n"},
        {"ename": "ToolError", "evalue": GITHUB, "traceback": [f"ToolError: {GITHUB}"]},
        {
            "output_type": "stream",
            "name": "stdout",
            "text": [f"{line}\n" for line in PEM.split("\n")],
        },
        {"output_type": "display_data", "metadata": {}, "data": {"text/plain": ["a\n", GITHUB]}},
    ],
)
def test_streams_errors_and_outputs_of_files_are_cleaned(content: dict[str, JsonValue]) -> None:
    cleaned = PLAIN.redact_output(content)
    shown = json.dumps(cleaned)
    assert GITHUB not in shown
    assert LINE not in shown
    assert cleaned.keys() == content.keys()
    assert PLAIN.redact_output(cleaned) is cleaned


def test_a_clean_output_is_the_very_object() -> None:
    content: dict[str, JsonValue] = {"data": {"text/plain": "a", "image/png": FILL}, "metadata": {}}
    assert PLAIN.redact_output(content) is content


def test_a_redactor_does_not_show_what_it_keeps(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG):
        shown = repr(Redactor({"CORP_TOKEN": "Zq81-7731-xx"}, ("[",)))
    assert "Zq81" not in shown + caplog.text


SLICE = 10
"""So much of a secret would be something."""


@pytest.mark.parametrize(
    "secret",
    [
        pytest.param(f"ghp_{'Ab1' * 12}", id="a token"),
        pytest.param("Correct/Horse+Battery=9", id="a value of the environment"),
        pytest.param("\n".join([LINE] * 40), id="the lines of a private key"),
    ],
)
def test_the_end_of_a_text_that_grows_shows_no_part_of_a_secret(secret: str) -> None:
    redactor = Redactor({"SOME_SECRET": "Correct/Horse+Battery=9"})
    mark = "RSA PRIVATE KEY-----"
    key = f"-----BEGIN {mark}\n{secret}\n-----END {mark}"
    whole = f"It is {key if LINE in secret else secret}\nand\nso\non\n"
    pieces = {secret[at : at + SLICE] for at in range(len(secret) - SLICE + 1)}

    shown = [redacted_so_far(whole[:end], redactor) for end in range(len(whole) + 1)]

    assert [text for text in shown if any(piece in text for piece in pieces)] == []
    assert shown[-1].endswith("on\n")


@pytest.mark.parametrize("text", ["loading 45%", "tests ......", "a [====>", "5 of 9\n"])
def test_progress_is_shown_while_it_grows(text: str) -> None:
    assert redacted_so_far(text, Redactor({"SOME_SECRET": "Correct/Horse+Battery=9"})) == text
