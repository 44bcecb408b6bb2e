"""The names of tools as rules know them, and which of them are about the same thing. Pure.

A pattern of paths or of servers is about the files and the servers: it means the same whichever
tool of a family it is written with.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from crush_kernel.permissions.request import Action

SHELL: Final = "bash"

WRITERS: Final = frozenset(
    ("edit", "multiedit", "write", "notebook_edit", "lsp_rename", "lsp_replace_symbol")
)
"""Tools that change files, and nothing else."""

READERS: Final = frozenset(("view", "ls", "grep", "glob"))
"""Tools that show files, their contents or their names."""

DOWNLOAD: Final = "download"
"""It talks to a server and writes a file, and is in both families."""

FETCHERS: Final = frozenset(("fetch", "agentic_fetch", "web_fetch", DOWNLOAD))
"""Tools that talk to the server that they are told."""

_OTHERS: Final = (
    "agent",
    "crush_info",
    "crush_logs",
    "job_kill",
    "job_output",
    "list_mcp_resources",
    "lsp_call_hierarchy",
    "lsp_definition",
    "lsp_diagnostics",
    "lsp_references",
    "lsp_restart",
    "lsp_symbols",
    "present_plan",
    "question",
    "read_mcp_resource",
    "sourcegraph",
    "todos",
    "web_search",
)

KNOWN: Final = frozenset((SHELL, *WRITERS, *READERS, *FETCHERS, *_OTHERS))
"""All but those of MCP servers, which are called `mcp_<server>_<tool>`."""

ACTIONS: Final[Mapping[str, Action]] = MappingProxyType(
    {
        "use": "use",
        "read": "read",
        "list": "list",
        "write": "write",
        "execute": "execute",
        "fetch": "fetch",
        "download": "fetch",
    }
)
"""Actions by what people call them; Crush has one of its own for downloads."""
