"""What of a project's configuration counts only when it is trusted: all that is not harmless."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crush_kernel.config.claims import Claim, claims_of, digest_of, inert
from crush_kernel.messages import JsonObject

FILE = "crush.json"

CLAIMED: dict[str, tuple[JsonObject, tuple[str, ...]]] = {
    "a hook": ({"hooks": {"PreToolUse": [{"command": "x"}]}}, ("hooks",)),
    "a server": ({"mcp": {"x": {"command": "sh", "args": ["-c"]}}}, ("mcp", "x")),
    "a server by URL": ({"mcp": {"x": {"type": "http", "url": "https://x"}}}, ("mcp", "x")),
    "a server's environment": ({"mcp": {"x": {"env": {"A": "b"}}}}, ("mcp", "x")),
    "a disabled server with a command": (
        {"mcp": {"x": {"disabled": True, "command": "sh"}}},
        ("mcp", "x"),
    ),
    "an enabled server": ({"mcp": {"x": {"disabled": False}}}, ("mcp", "x")),
    "a language server": ({"lsp": {"go": {"command": "gopls"}}}, ("lsp", "go")),
    "a URL": ({"providers": {"p": {"base_url": "http://x"}}}, ("providers", "p", "base_url")),
    "a key": ({"providers": {"p": {"api_key": "$(id)"}}}, ("providers", "p", "api_key")),
    "headers": (
        {"providers": {"p": {"extra_headers": {"a": "b"}}}},
        ("providers", "p", "extra_headers"),
    ),
    "a body": ({"providers": {"p": {"extra_body": {}}}}, ("providers", "p", "extra_body")),
    "a type": ({"providers": {"p": {"type": "openai"}}}, ("providers", "p", "type")),
    "prices": ({"providers": {"p": {"models": []}}}, ("providers", "p", "models")),
    "a refresh command": (
        {"providers": {"p": {"aws_auth_refresh": "x"}}},
        ("providers", "p", "aws_auth_refresh"),
    ),
    "a name that is a command": (
        {"providers": {"p": {"name": "`id`"}}},
        ("providers", "p", "name"),
    ),
    "a provider that is no object": ({"providers": {"p": "x"}}, ("providers", "p")),
    "the environment": ({"env": {"PATH": "."}}, ("env",)),
    "a folder": ({"options": {"data_directory": "/x"}}, ("options", "data_directory")),
    "a memory file outside": (
        {"options": {"context_paths": ["../x"]}},
        ("options", "context_paths"),
    ),
    "a memory file of the user": (
        {"options": {"context_paths": ["~/.ssh/id"]}},
        ("options", "context_paths"),
    ),
    "a memory file by a variable": (
        {"options": {"context_paths": ["$HOME/x"]}},
        ("options", "context_paths"),
    ),
    "skills elsewhere": ({"options": {"skills_paths": ["/x"]}}, ("options", "skills_paths")),
    "the user's memory": (
        {"options": {"global_context_paths": ["x"]}},
        ("options", "global_context_paths"),
    ),
    "a memory file from up within": (
        {"options": {"context_paths": ["docs", "a/../../x"]}},
        ("options", "context_paths"),
    ),
    "a memory file of a drive": (
        {"options": {"context_paths": ["C:x"]}},
        ("options", "context_paths"),
    ),
    "a memory file up by backslashes": (
        {"options": {"context_paths": ["a\\..\\..\\x"]}},
        ("options", "context_paths"),
    ),
    "a command in a key": ({"tools": {"ls": {"$(id)": 1}}}, ("tools",)),
    "a command in a list": ({"tools": {"ls": ["a", ["`id`"]]}}, ("tools",)),
    "a server that may be on": ({"mcp": {"x": {"disabled": "no"}}}, ("mcp", "x")),
    "no sandbox": ({"options": {"sandbox": False}}, ("options", "sandbox")),
    "servers by themselves": ({"options": {"auto_lsp": True}}, ("options", "auto_lsp")),
    "something in another spelling": ({"Hooks": {}}, ("Hooks",)),
    "something unknown": ({"plugins": ["x"]}, ("plugins",)),
}

HARMLESS: tuple[JsonObject, ...] = (
    {"$schema": "https://charm.land/crush.json"},
    {"models": {"large": {"provider": "openai", "model": "gpt", "max_tokens": 10}}},
    {"permissions": {"deny": ["bash(echo $(x))"], "allowed_tools": ["bash"]}},
    {"options": {"disabled_tools": ["bash"], "context_paths": ["docs/rules.md"], "sandbox": True}},
    {"providers": {"p": {"disable": True}}},
    {"mcp": {"x": {"disabled": True, "disabled_tools": ["y"]}}},
    {"tools": {"ls": {"max_depth": 3, "ignore": ["a", {"b": None}]}}},
    {"mcp": {"x": {"disabled_tools": ["y"]}}},
    {"options": {}, "mcp": {}, "providers": {"p": {}}},
)


@pytest.mark.parametrize(
    ("document", "keys"), [pytest.param(*case, id=name) for name, case in CLAIMED.items()]
)
def test_it_is_claimed_and_taken_out(document: JsonObject, keys: tuple[str, ...]) -> None:
    (claim,) = claims_of(document, FILE)
    assert (claim.file, claim.keys) == (FILE, keys)
    assert claims_of(inert(document), FILE) == ()


@pytest.mark.parametrize("document", HARMLESS)
def test_what_is_harmless_stays(document: JsonObject) -> None:
    assert claims_of(document, FILE) == ()
    assert inert(document) == document


def test_the_rest_of_a_file_stays() -> None:
    document: JsonObject = {"hooks": {}, "permissions": {"deny": ["bash"]}, "env": {"A": "b"}}
    assert inert(document) == {"permissions": {"deny": ["bash"]}}


KEYS = st.sampled_from(
    (
        "hooks",
        "mcp",
        "providers",
        "options",
        "env",
        "models",
        "permissions",
        "x",
        "name",
        "disabled",
    )
) | st.text(max_size=3)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.sampled_from(("a", "$(x)", "`x`", "../x")),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=12,
)
DOCUMENTS = st.dictionaries(KEYS, JSON, max_size=5)


@given(DOCUMENTS)
def test_what_is_inert_claims_nothing_and_stays_so(document: JsonObject) -> None:
    rest = inert(document)
    assert claims_of(rest, FILE) == ()
    assert inert(rest) == rest


@given(DOCUMENTS, DOCUMENTS)
def test_documents_that_claim_alike_differ_in_nothing_but_the_inert(
    one: JsonObject, other: JsonObject
) -> None:
    claims = claims_of(one, FILE), claims_of(other, FILE)
    is_same = digest_of(claims[0]) == digest_of(claims[1])
    assert is_same == (sorted(map(repr, claims[0])) == sorted(map(repr, claims[1])))


def test_the_order_of_claims_makes_no_difference_and_everything_else_does() -> None:
    one, other = Claim(FILE, ("mcp", "x"), {"command": "a"}), Claim(FILE, ("mcp", "y"), "b")
    digests = [
        digest_of(claims)
        for claims in (
            (one, other),
            (one,),
            (one, one),
            (Claim("sub/crush.json", ("mcp", "x"), {"command": "a"}), other),
            (Claim(FILE, ("mcp", "x"), {"command": "a "}), other),
            (Claim(FILE, ("mcp.x",), {"command": "a"}), other),
            (Claim(FILE, ("mcp", "x"), {"command": "a", "args": []}), other),
        )
    ]
    assert digest_of((other, one)) == digests[0]
    assert len(set(digests)) == len(digests)


def test_half_a_character_has_a_digest() -> None:
    assert len(digest_of((Claim(FILE, ("env",), "\ud800"),))) == 64
