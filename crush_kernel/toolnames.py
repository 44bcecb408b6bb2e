"""The names of all tools: what they touch, and what other programs call them. Pure.

A rule for paths or for servers is about the files and the servers: it means the same whichever
tool of a family it is written with. Hooks and agents that were written for Claude Code know our
tools by the names that they have there.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

SHELL: Final = "bash"

JOBS: Final = ("job_output", "job_kill")
"""Tools for commands that go on in the background."""

READERS: Final = frozenset(("view", "ls", "grep", "glob"))
"""Tools that show files, their contents or their names."""

DOWNLOAD: Final = "download"
"""It talks to a server and writes a file, and is in both families."""

FETCHERS: Final = frozenset(("fetch", "agentic_fetch", "web_fetch", DOWNLOAD))
"""Tools that talk to the server that they are told."""

_WRITERS: Final = ("edit", "multiedit", "write", "notebook_edit")
_CRUSH_WRITERS: Final = ("lsp_rename", "lsp_replace_symbol")

WRITERS: Final = frozenset((*_WRITERS, *_CRUSH_WRITERS))
"""Tools that change files, and nothing else."""

TOOLS: Final = frozenset(
    (
        *(SHELL, *JOBS, *READERS, *_WRITERS, *FETCHERS),
        *("agent", "crush_info", "crush_logs", "present_plan", "question", "sourcegraph"),
        *("todos", "web_search"),
    )
)
"""All that there are, those of MCP servers aside, which are called `mcp_<server>_<tool>`."""

KNOWN: Final = TOOLS.union(
    _CRUSH_WRITERS,
    ("lsp_call_hierarchy", "lsp_definition", "lsp_diagnostics", "lsp_references", "lsp_restart"),
    ("lsp_symbols", "list_mcp_resources", "read_mcp_resource"),
)
"""Those, and the ones that only Crush has: rules that are written for both may name them."""

CLAUDE_NAMES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "agent": "Task",
        "bash": "Bash",
        "edit": "Edit",
        "fetch": "WebFetch",
        "glob": "Glob",
        "grep": "Grep",
        "ls": "LS",
        "multiedit": "MultiEdit",
        "notebook_edit": "NotebookEdit",
        "todos": "TodoWrite",
        "view": "Read",
        "web_search": "WebSearch",
        "write": "Write",
    }
)
"""What Claude Code calls the tools that it has too."""
